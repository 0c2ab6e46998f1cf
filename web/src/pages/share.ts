import { css, html, nothing } from 'lit';
import { customElement, state } from 'lit/decorators.js';
import { PlexusElement } from '../lib/element.js';
import { plexus, why } from '../plexus.js';
import { text } from '../text/en.js';
import { icon } from '../ui/icons.js';
import { copy } from '../ui/parts.js';

const t = text.shell.share;

/** The dialog that creates a read-only link; opened by the window event `plexus-share` with a session id. */
@customElement('plexus-share')
export class PlexusShare extends PlexusElement {
  @state() private session = '';
  @state() private url = '';
  @state() private problem = '';
  #open = (event: Event) => { this.session = (event as CustomEvent<string>).detail; this.url = ''; this.problem = ''; };
  static override styles = [...[PlexusElement.styles].flat(), css`
    form { display: contents; } .actions { display: flex; justify-content: flex-end; gap: var(--s2); }
    .url { display: flex; gap: var(--s2); } .url input { font-family: var(--mono); }
  `];

  override connectedCallback(): void { super.connectedCallback(); window.addEventListener('plexus-share', this.#open); }
  override disconnectedCallback(): void { super.disconnectedCallback(); window.removeEventListener('plexus-share', this.#open); }

  override render() {
    return html`<plexus-dialog heading=${t.title} .open=${this.session !== ''} @close=${() => { this.session = ''; }}>
      ${this.url ? html`<p class="soft">${t.done}</p><div class="url"><input readonly aria-label=${t.link} .value=${this.url} @focus=${(e: Event) => (e.target as HTMLInputElement).select()}>
          <button class="primary" @click=${() => void copy(this.url)}>${icon('copy')}${text.common.copy}</button></div>`
        : html`<form @submit=${(e: Event) => void this.#make(e)}><p class="soft">${t.text}</p>
          <label class="field">${t.hours}<select name="hours">${t.choices.map(([hours, words]) => html`<option value=${hours} ?selected=${hours === 24}>${words}</option>`)}</select></label>
          ${this.problem ? html`<p class="note danger" role="alert">${this.problem}</p>` : nothing}
          <div class="actions"><button type="button" @click=${() => { this.session = ''; }}>${text.common.cancel}</button><button class="primary">${t.make}</button></div></form>`}
    </plexus-dialog>`;
  }

  async #make(event: Event): Promise<void> {
    event.preventDefault();
    const hours = Number(new FormData(event.target as HTMLFormElement).get('hours'));
    try {
      this.url = (await plexus.http('POST', `/v1/sessions/${encodeURIComponent(this.session)}/shares`, { hours })).url;
    } catch (error) { this.problem = text.shell.failed(why(error)); }
  }
}
