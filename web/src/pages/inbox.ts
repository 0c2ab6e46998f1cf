import { css, html, nothing } from 'lit';
import { customElement, property } from 'lit/decorators.js';
import { PlexusElement } from '../lib/element.js';
import { bind, focused } from '../lib/keys.js';
import { plexus } from '../plexus.js';
import '../request/index.js';
import { text } from '../text/en.js';
import { icon } from '../ui/icons.js';
import { empty, notYet, pageStyles } from '../ui/parts.js';

const t = text.shell.inbox;

/** All open requests. */
@customElement('plexus-inbox')
export class PlexusInbox extends PlexusElement {
  /** The request of a deep link: shown alone. */
  @property() request = '';
  /** Whether cards were shown: resolved ones stay for a while. */
  #had = false;
  #unbind: () => void = () => {};

  static override styles = [...[PlexusElement.styles].flat(), pageStyles, css`
    .page { max-width: 820px; }
    .count { color: var(--fg-mute); font-size: var(--t-s); }
  `];

  override connectedCallback(): void {
    super.connectedCallback();
    const step = (by: number) => () => {
      const all = [...(this.renderRoot.querySelector('plexus-requests')?.shadowRoot?.querySelectorAll<HTMLElement>('plexus-card') ?? [])];
      let at: Node | null = focused();
      while (at && !(at instanceof HTMLElement && at.localName === 'plexus-card')) at = at.parentNode ?? (at as unknown as ShadowRoot).host ?? null;
      const i = at ? all.indexOf(at as HTMLElement) : -1;
      const next = all[i < 0 ? (by > 0 ? 0 : all.length - 1) : Math.max(0, Math.min(all.length - 1, i + by))];
      next?.focus();
      next?.scrollIntoView({ block: 'nearest' });
    };
    this.#unbind = bind([{ key: 'j', run: step(1) }, { key: 'k', run: step(-1) }]);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#unbind();
  }

  override render() {
    const all = [...plexus.requests.value.values()];
    const open = all.filter((r) => r.state === 'open').length;
    if (open) this.#had = true;
    if (!all.length) this.#had = false;
    if (this.request) {
      return html`<div class="page"><header><a class="btn ghost" href="#/inbox">${icon('back')}${t.title}</a><h1 class="sr" tabindex="-1">${t.title}</h1></header><h2 class="sr">${t.open}</h2>
        <plexus-request .request_id=${this.request}></plexus-request></div>`;
    }
    return html`<div class="page">
      <header><h1 tabindex="-1">${t.title}</h1>${open ? html`<span class="count" id="count">${t.waits(open)}</span>` : nothing}</header>
      <h2 class="sr">${t.open}</h2><plexus-requests></plexus-requests>
      ${open || this.#had && this.#cards() ? nothing : plexus.loaded.value ? empty('check', t.none, t.noneText) : notYet()}
    </div>`;
  }

  /** The number of cards still shown; read once a second with the clock. */
  #cards(): number {
    plexus.now.value;
    return this.renderRoot.querySelector('plexus-requests')?.shadowRoot?.querySelectorAll('plexus-card').length ?? 0;
  }
}
