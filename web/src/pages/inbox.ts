import { css, html, nothing } from 'lit';
import { customElement, property } from 'lit/decorators.js';
import { PlexusElement } from '../lib/element.js';
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
  /** Whether rows were shown: resolved ones stay for a while. */
  #had = false;

  static override styles = [...[PlexusElement.styles].flat(), pageStyles, css`
    :host { height: 100%; min-height: 0; display: flex; flex-direction: column; }
    .page { width: 100%; max-width: 820px; overflow-y: auto; box-sizing: border-box; }
    plexus-requests { flex: 1 1 0; }
    h1 { flex: none; }
    .count { flex: 0 1 auto; min-width: 0; overflow: hidden; text-overflow: ellipsis; color: var(--fg-mute); font-size: var(--t-s); }
  `];

  override render() {
    const all = [...plexus.requests.value.values()];
    const open = all.filter((r) => r.state === 'open').length;
    if (open) this.#had = true;
    if (!all.length) this.#had = false;
    if (this.request) {
      return html`<div class="page"><header><a class="btn ghost" href="#/inbox">${icon('back')}${t.title}</a><h1 class="sr" tabindex="-1">${t.title}</h1></header><h2 class="sr">${t.open}</h2>
        <plexus-request .request_id=${this.request}></plexus-request></div>`;
    }
    const listed = open > 0 || this.#had && this.#rows();
    if (listed) {
      return html`<plexus-requests><h1 slot="title" tabindex="-1">${t.title}</h1>${open ? html`<span slot="title" class="count" id="count">${t.waits(open)}</span>` : nothing}</plexus-requests>`;
    }
    return html`<div class="page">
      <header><h1 tabindex="-1">${t.title}</h1></header>
      ${plexus.loaded.value ? empty('check', t.none, t.noneText) : notYet()}
    </div>`;
  }

  /** Whether rows are still shown; read once a second with the clock. */
  #rows(): boolean {
    plexus.now.value;
    return this.renderRoot.querySelector('plexus-requests')?.shadowRoot?.querySelector('[role="row"]') != null;
  }
}
