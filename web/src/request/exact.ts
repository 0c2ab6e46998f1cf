// The exact display of a request. Dispatches `read` once its end was visible; a long display must be opened first. Of a very long
// one only the beginning is here: opening it dispatches `whole` to fetch the rest, and only the whole counts as read.

import { css, html, nothing, type PropertyValues } from 'lit';
import { PlexusElement } from '../lib/element.js';
import { text } from '../text/en.js';
import { blocksOf, previewOf, sizeOf, type Line, type Size } from './display.js';

const t = text.request;

const line = (one: Line) =>
  html`<span class="line ${one.kind}" ?data-on=${one.goesOn}>${one.parts.map((part) => (part.mark ? html`<mark>${part.text}</mark>` : part.text))}${one.ends ? '\n' : ''}</span>`;

export class PlexusExact extends PlexusElement {
  static override properties = { display: {}, truncated: { type: Boolean }, bytes: { type: Number }, edit: { attribute: false }, bare: { type: Boolean, reflect: true }, opened: { type: Boolean, reflect: true }, long: { type: Boolean, reflect: true } };
  declare display: string;
  /** Whether `display` is only the beginning; `bytes` is the length of the whole. */
  declare truncated: boolean;
  declare bytes: number | undefined;
  /** Whether it is an edit, if known. */
  declare edit: boolean | undefined;
  /** Whether it stands without a frame while it is short. */
  declare bare: boolean;
  /** Whether it was opened and the rest is being fetched. */
  #wanted = false;
  declare opened: boolean;
  declare long: boolean;
  #size: Size = { lines: 0, chars: 0, long: false };
  #blocks: Line[][] = [];
  #watch: IntersectionObserver | undefined;
  #read = false;

  constructor() {
    super();
    this.display = '';
    this.truncated = false;
    this.bare = false;
    this.opened = false;
    this.long = false;
  }

  static override styles = [
    ...[PlexusElement.styles].flat(),
    css`
      :host { display: block; min-width: 0; }
      .box { border: 1px solid var(--line); border-radius: var(--r-s); background: var(--bg-sunken); overflow: hidden; }
      pre {
        margin: 0; padding: 4px 0; font-family: var(--mono); font-size: var(--t-s); line-height: 1.5; tab-size: 4;
        white-space: pre-wrap; overflow-wrap: anywhere; direction: ltr; unicode-bidi: isolate; text-align: left;
      }
      :host([long]) pre { scrollbar-gutter: stable; }
      :host([long][opened]) pre { max-block-size: min(55dvh, 36rem); overflow: auto; overscroll-behavior: contain; }
      pre:focus-visible { outline: var(--focus); outline-offset: -3px; }
      .block { display: block; }
      :host([opened]) .block { content-visibility: auto; contain-intrinsic-block-size: auto 122em; }
      .line { display: block; min-block-size: 1.5em; padding-inline: 10px 8px; }
      .line.add { background: var(--add-bg); box-shadow: inset 3px 0 var(--ok); }
      .line.del { background: var(--del-bg); box-shadow: inset 3px 0 var(--danger); }
      .line.head { font-weight: 650; }
      .line.where { color: var(--fg-mute); }
      .line.hunk { color: var(--fg-mute); background: var(--bg-raised); }
      .line[data-on]::before { content: '↪ '; color: var(--fg-mute); user-select: none; }
      mark { background: var(--warn-wash); color: var(--warn); border-radius: 3px; box-shadow: inset 0 0 0 1px var(--warn-line); font-weight: 600; }
      .cut { position: relative; }
      :host([long]:not([opened])) .cut::after { content: ''; position: absolute; inset: auto 0 0 0; block-size: 3em; background: linear-gradient(transparent, var(--bg-sunken)); pointer-events: none; }
      :host([bare]:not([long])) .box { border: 0; background: none; }
      :host([bare]:not([long])) pre { padding: 0; font-size: var(--t-m); }
      :host([bare]:not([long])) .line { padding-inline: 0; }
      .open { display: block; inline-size: 100%; min-block-size: 44px; border: 0; border-block-start: 1px solid var(--line); border-radius: 0; background: var(--bg-raised); color: var(--accent); font: inherit; font-weight: 600; cursor: pointer; padding: 8px 12px; }
      .open:focus-visible { outline: var(--focus); outline-offset: -3px; }
      .end { display: block; block-size: 1px; }
      .foot { padding: 6px 12px; border-block-start: 1px solid var(--line); color: var(--fg-mute); font-size: var(--t-s); }
    `,
  ];

  protected override willUpdate(changed: PropertyValues): void {
    if (changed.has('display') || changed.has('truncated')) {
      this.#size = sizeOf(this.display);
      this.long = this.#size.long || this.truncated;
      // The rest has arrived.
      this.opened = this.#wanted && !this.truncated;
      if (!this.truncated) this.#wanted = false;
      this.#read = false;
    }
    if (changed.has('display') || changed.has('truncated') || changed.has('opened') || changed.has('edit')) {
      this.#blocks = blocksOf(this.long && !this.opened ? previewOf(this.display) : this.display, this.edit);
    }
  }

  override render() {
    const whole = !this.long || this.opened;
    return html`<div class="box">
      <div class="cut">
        <pre tabindex=${this.long && this.opened ? 0 : nothing} role=${this.long && this.opened ? 'group' : nothing} aria-label=${this.long && this.opened ? t.exactly : nothing}>${this.#blocks.map((block) => html`<span class="block">${block.map(line)}</span>`)}${whole ? html`<span class="end"></span>` : nothing}</pre>
      </div>
      ${whole
        ? this.long
          ? html`<div class="foot">${this.#read ? t.readAll : t.readOn}</div>`
          : nothing
        : html`<button class="open" type="button" aria-disabled=${this.#wanted ? 'true' : nothing} @click=${this.open}>${this.#wanted ? t.fetching : this.truncated ? t.openWhole(this.bytes ?? 0) : t.openFull(this.#size.lines, this.#size.chars)}</button>`}
    </div>`;
  }

  /** Shows the whole display. */
  open = (): void => {
    if (!this.long || this.opened || this.#wanted) return;
    if (this.truncated) {
      this.#wanted = true;
      this.requestUpdate();
      this.dispatchEvent(new Event('whole'));
      return;
    }
    this.opened = true;
    this.dispatchEvent(new Event('opened'));
    void this.updateComplete.then(() => this.renderRoot.querySelector<HTMLElement>('pre')?.focus({ preventScroll: true }));
  };

  /** Fetching the rest failed; it can be opened again. */
  failed(): void {
    this.#wanted = false;
    this.requestUpdate();
  }

  protected override updated(): void {
    const end = this.renderRoot.querySelector('.end');
    this.#watch?.disconnect();
    if (!end || this.#read) return;
    // Relative to the window: an end that is scrolled out of a box or off the screen has not been seen.
    this.#watch = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      this.#watch?.disconnect();
      this.#read = true;
      this.requestUpdate();
      this.dispatchEvent(new Event('read'));
    });
    this.#watch.observe(end);
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.requestUpdate();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#watch?.disconnect();
  }
}
customElements.define('plexus-exact', PlexusExact);
