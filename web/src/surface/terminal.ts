// Program output in a surface. Its end stays in sight while it grows, unless somebody scrolled up.
import { css, html, type PropertyValues } from 'lit';
import { PlexusElement } from '../lib/element.js';
import { Output } from '../render/output.js';
import { LINE_PX } from '../render/lines.js';
import { rendered } from '../render/style.js';

/** Rows shown at once. */
const ROWS = { least: 3, usual: 16, most: 60 } as const;
/** Within this distance of the end, px, the end is followed. */
const END_PX = 8;

export class PlexusSurfaceTerminal extends PlexusElement {
  static override properties = { text: { attribute: false }, rows: { attribute: false }, label: { attribute: false } };
  static override styles = [...[PlexusElement.styles].flat(), rendered, css`
    :host { display: block; min-inline-size: 0; }
    .lines { max-height: none; padding: 6px 0; }
  `];
  declare text: string;
  declare rows: number;
  declare label: string;
  #output: Output | null = null;

  constructor() {
    super();
    this.text = '';
    this.rows = 0;
    this.label = '';
  }

  override render() {
    this.#output ??= new Output(this.label);
    return html`${this.#output.el}`;
  }

  protected override updated(changed: PropertyValues): void {
    const box = this.#output?.el.querySelector<HTMLElement>('.lines');
    if (!box) return;
    const ended = !this.hasUpdated || box.scrollHeight - box.clientHeight - box.scrollTop < END_PX;
    if (changed.has('rows')) box.style.maxHeight = `${(this.rows > 0 ? Math.max(ROWS.least, Math.min(ROWS.most, Math.trunc(this.rows))) : ROWS.usual) * LINE_PX + 14}px`;
    if (!changed.has('text')) return;
    this.#output?.set(this.text);
    // Long output is parsed in slices, so its end comes later.
    if (ended) requestAnimationFrame(() => { box.scrollTop = box.scrollHeight; });
  }
}
customElements.define('plexus-surface-terminal', PlexusSurfaceTerminal);
