// One card alone on the page: the target of a notification.

import { css, html, nothing } from 'lit';
import { PlexusElement } from '../lib/element.js';
import { plexus } from '../plexus.js';
import { text } from '../text/en.js';
import './card.js';
import { isLeft } from './left.js';
import type { Request } from './wire.js';

const t = text.request;

/** `<plexus-request request_id=..>`: the card of one request, fetched from the gateway if it is not known. */
export class PlexusRequest extends PlexusElement {
  static override properties = { request_id: {}, missing: { state: true } };
  declare request_id: string;
  declare private missing: boolean;
  #requested = '';
  #last: Request | undefined;

  constructor() {
    super();
    this.request_id = '';
    this.missing = false;
  }

  static override styles = [
    ...[PlexusElement.styles].flat(),
    css`
      :host { display: flex; flex-direction: column; gap: 12px; min-height: 0; max-inline-size: 760px; inline-size: 100%; margin-inline: auto; }
      plexus-card { max-block-size: var(--solo-height, calc(100dvh - 132px)); }
      /* On a phone it fills the page, so that the answers are where the thumb is. */
      @media (max-width: 599px) { plexus-card { --fill: var(--solo-height, calc(100dvh - 186px - env(safe-area-inset-bottom))); max-block-size: var(--fill); block-size: var(--fill); } }
      p { padding: 32px 8px; text-align: center; color: var(--fg-mute); }
      a { display: inline-flex; align-items: center; min-block-size: 44px; }
    `,
  ];

  protected override updated(): void {
    if (this.#requested === this.request_id || !plexus.live.value) return;
    this.#requested = this.request_id;
    this.missing = false;
    if (plexus.requests.peek().has(this.request_id)) return;
    const id = this.request_id;
    void plexus.reread(id).then((found) => {
      if (id !== this.request_id) return;
      this.#last = found ?? undefined;
      this.missing = !found;
      this.requestUpdate();
    });
  }

  override render() {
    const live = plexus.live.value;
    const known = plexus.requests.value.get(this.request_id) ?? (this.#last?.request_id === this.request_id ? this.#last : undefined);
    if (known) this.#last = known;
    const inbox = html`<a href=${plexus.href({ page: 'inbox' })}>${t.toInbox}</a>`;
    if (known) return html`<plexus-card layout="solo" .request=${known}></plexus-card>${known.state === 'open' && !isLeft(known.request_id) ? nothing : html`<p>${inbox}</p>`}`;
    return html`<p role="status">${this.missing ? t.notFound : live ? t.loading : t.offline}<br />${inbox}</p>`;
  }
}
customElements.define('plexus-request', PlexusRequest);
