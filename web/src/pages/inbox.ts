import { css, html, nothing } from 'lit';
import { customElement, property } from 'lit/decorators.js';
import { PlexusElement } from '../lib/element.js';
import { plexus } from '../plexus.js';
import '../request/index.js';
import { text } from '../text/en.js';
import { newSession, noAgents } from './begin.js';
import { icon } from '../ui/icons.js';
import { load } from '../ui/pages.js';
import { empty, notYet, pageStyles } from '../ui/parts.js';

const t = text.shell.inbox;

/** All open requests. */
@customElement('plexus-inbox')
export class PlexusInbox extends PlexusElement {
  /** The request of a deep link: shown alone. */
  @property() request = '';
  /** Whether rows were shown: resolved ones stay for a while. */
  #had = false;

  /** Whether the page begins with "New session": it stays while it is shown, so that nothing typed is lost. */
  #first = false;

  static override styles = [...[PlexusElement.styles].flat(), pageStyles, css`
    :host { height: 100%; min-height: 0; display: flex; flex-direction: column; }
    .page { width: 100%; max-width: 820px; overflow-y: auto; box-sizing: border-box; }
    plexus-requests { flex: 1 1 0; }
    h1 { flex: none; }
    .count { flex: 0 1 auto; min-width: 0; overflow: hidden; text-overflow: ellipsis; color: var(--fg-mute); font-size: var(--t-s); }
    .first { padding: var(--s5); max-width: 660px; margin: 0 auto; } .first p { margin: 4px 0 var(--s4); }
    @media (max-width: 599px) { .first { padding: var(--s4); } }
  `];

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#first = false;
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
    const listed = open > 0 || this.#had && this.#rows();
    if (listed) {
      return html`<plexus-requests><h1 slot="title" tabindex="-1">${t.title}</h1>${open ? html`<span slot="title" class="count" id="count">${t.waits(open)}</span>` : nothing}</plexus-requests>`;
    }
    if (plexus.loaded.value && !all.length && noAgents()) this.#first = true;
    if (this.#first) load('new');
    return html`<div class="page">
      <header><h1 tabindex="-1">${t.title}</h1>${plexus.may('prompt') && !this.#first ? html`<button class="primary" id="new" @click=${newSession}>${icon('plus')}${text.shell.sessions.new}</button>` : nothing}</header>
      ${this.#first ? html`<section class="first panel" aria-labelledby="first"><h2 id="first">${text.shell.newSession.first}</h2><p class="soft">${text.shell.newSession.firstText}</p><plexus-new-session></plexus-new-session></section>` : plexus.loaded.value ? empty('check', t.none, t.noneText) : notYet()}
    </div>`;
  }

  /** Whether rows are still shown; read once a second with the clock. */
  #rows(): boolean {
    plexus.now.value;
    return this.renderRoot.querySelector('plexus-requests')?.shadowRoot?.querySelector('[role="row"]') != null;
  }
}
