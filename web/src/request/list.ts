// The list of open requests, for the inbox and for one session. The order is fixed once it is drawn: new requests are added below,
// and resolved ones stay until nobody points at the list.

import { css, html, nothing } from 'lit';
import { repeat } from 'lit/directives/repeat.js';
import { PlexusElement } from '../lib/element.js';
import { oneLine } from '../lib/text.js';
import { plexus } from '../plexus.js';
import { text } from '../text/en.js';
import './card.js';
import type { PlexusCard } from './card.js';
import { newOrder, type Placed } from './order.js';
import type { Request } from './wire.js';

const t = text.request;

/** How long a resolved card stays at least, ms: time to read the outcome. */
const STAY_MS = 8_000;
/** How long after the last touch the list counts as in use, ms: a touch screen does not report where a finger is between touches. */
const TOUCHED_MS = 4_000;
/** How often the list checks whether resolved cards can be removed, ms. */
const SWEEP_MS = 1_000;
/** Cards of open requests drawn at first; a button draws more. Each card watches its position and redraws with the clock. */
const DRAWN = 25;
/** How long a card takes to fade, ms; as in the card's style. */
const FADE_MS = 260;

/** `<plexus-requests>`: all open requests; with `session`, those of one. `layout` as the card's. */
export class PlexusRequests extends PlexusElement {
  static override properties = { session: {}, layout: { reflect: true } };
  declare session: string | undefined;
  declare layout: 'inline' | 'dock';

  #order: Placed[] = [];
  #gone = new Set<string>();
  #touchedAt = 0;
  #inside = false;
  #sweep: ReturnType<typeof setInterval> | undefined;
  #unseen = new Set<string>();
  #drawn = DRAWN;
  /** Index from which another group of cards is drawn, after "new requests" was pressed. */
  #from = Infinity;
  /** Identifiers of the drawn cards. */
  #shown = new Set<string>();
  #announced = '';
  #first = true;
  #watch: IntersectionObserver | undefined;

  constructor() {
    super();
    this.layout = 'inline';
  }

  static override styles = [
    ...[PlexusElement.styles].flat(),
    css`
      :host { display: block; position: relative; min-width: 0; }
      .list { display: flex; flex-direction: column; gap: 14px; overflow-anchor: auto; }
      :host([layout='dock']) .list { gap: 8px; max-block-size: inherit; }
      .new { position: sticky; inset-block-end: 12px; display: flex; justify-content: center; pointer-events: none; block-size: 0; z-index: 2; }
      .new button {
        pointer-events: auto; transform: translateY(-100%); min-block-size: 44px; padding: 8px 18px; border-radius: 999px; box-shadow: var(--shadow-2); font-weight: 600;
        background: var(--accent-solid); color: var(--on-accent); border-color: transparent; white-space: nowrap;
      }
      .rest { margin: 14px 0 72px; text-align: center; }
      .rest button { min-block-size: 44px; }
      .new button:hover { background: var(--accent-solid-hover); }
    `,
  ];

  override connectedCallback(): void {
    super.connectedCallback();
    this.addEventListener('pointerenter', this.#pointer);
    this.addEventListener('pointermove', this.#pointer);
    this.addEventListener('pointerdown', this.#pointer);
    this.addEventListener('pointerleave', this.#left);
    this.#sweep = setInterval(this.#clean, SWEEP_MS);
    this.#watch = new IntersectionObserver((entries) => {
      for (const entry of entries) if (entry.isIntersecting) this.#unseen.delete((entry.target as PlexusCard).request.request_id);
      this.requestUpdate();
    });
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    clearInterval(this.#sweep);
    this.#watch?.disconnect();
    for (const [name, listener] of [['pointerenter', this.#pointer], ['pointermove', this.#pointer], ['pointerdown', this.#pointer], ['pointerleave', this.#left]] as const) {
      this.removeEventListener(name, listener as EventListener);
    }
  }

  #pointer = (event: PointerEvent): void => {
    this.#inside = event.pointerType === 'mouse';
    this.#touchedAt = Date.now();
  };
  #left = (): void => {
    this.#inside = false;
  };

  /** Whether nobody uses the list, so that cards may be removed. */
  get #untouched(): boolean {
    return !this.#inside && Date.now() - this.#touchedAt > TOUCHED_MS && !this.matches(':focus-within');
  }

  #cards(): PlexusCard[] {
    return [...this.renderRoot.querySelectorAll<PlexusCard>('plexus-card')];
  }

  #clean = (): void => {
    if (document.hidden || !this.#untouched) return;
    for (const card of this.#cards()) {
      if (card.open || card.hasAttribute('leaving') || Date.now() - card.closedAt < STAY_MS) continue;
      card.setAttribute('leaving', '');
      setTimeout(() => {
        // The list may be in use again.
        if (!this.#untouched) {
          card.removeAttribute('leaving');
          return;
        }
        this.#gone.add(card.request.request_id);
        this.requestUpdate();
      }, FADE_MS);
    }
  };

  /** The requests to draw, in their order. */
  #wanted(): Request[] {
    const all = [...plexus.requests.value.values()].filter((request) => !this.session || request.session_id === this.session);
    const known = new Set(this.#order.map((one) => one.id));
    const shown = all.filter((request) => !this.#gone.has(request.request_id) && (request.state === 'open' || known.has(request.request_id)));
    const { order, added } = newOrder(this.#order, shown, this.#first);
    if (!this.#first) for (const id of added) this.#unseen.add(id);
    if (plexus.loaded.value) this.#first = false;
    this.#order = order;
    const ordered = new Set(order.map((one) => one.id));
    for (const id of this.#unseen) if (!ordered.has(id)) this.#unseen.delete(id);
    const newest = added.length ? shown.find((request) => request.request_id === added[added.length - 1]) : undefined;
    if (newest) {
      const title = oneLine(plexus.sessions.peek().get(newest.session_id)?.title) || t.untitled;
      this.#announced = t.opened(oneLine(newest.runtime_id), title);
    }
    const by = new Map(shown.map((request) => [request.request_id, request]));
    return order.map((one) => by.get(one.id)).filter((request) => request !== undefined);
  }

  /** The requests that are drawn: a limited number of open ones, and all that are drawn already. */
  #bounded(requests: Request[]): Request[] {
    let open = 0;
    const drawn = requests.filter((request, n) => {
      if (request.state !== 'open') return this.#shown.has(request.request_id);
      open += 1;
      return open <= this.#drawn || (n >= this.#from && n < this.#from + DRAWN) || this.#shown.has(request.request_id);
    });
    this.#shown = new Set(drawn.map((request) => request.request_id));
    return drawn;
  }

  override render() {
    const requests = this.#wanted();
    const drawn = this.#bounded(requests);
    const rest = requests.filter((request) => request.state === 'open').length - drawn.filter((request) => request.state === 'open').length;
    return html`<div class="list" role="list" aria-label=${t.list}>
        ${repeat(
          drawn,
          (request) => request.request_id,
          (request) => html`<plexus-card role="listitem" .request=${request} .layout=${this.layout}></plexus-card>`,
        )}
      </div>
      ${rest > 0 ? html`<p class="rest"><button type="button" @click=${this.#more}>${t.moreCards(Math.min(DRAWN, rest), rest)}</button></p>` : nothing}
      ${this.#unseen.size && this.layout === 'inline'
        ? html`<div class="new"><button type="button" @click=${this.#toNew}>${t.newOnes(this.#unseen.size)}</button></div>`
        : nothing}
      <div class="sr" role="status" aria-live="assertive">${this.#announced}</div>`;
  }

  protected override updated(): void {
    for (const card of this.#cards()) if (this.#unseen.has(card.request.request_id)) this.#watch?.observe(card);
  }

  #more = (): void => {
    const before = this.#shown;
    this.#drawn += DRAWN;
    this.requestUpdate();
    void this.updateComplete.then(() => this.#cards().find((card) => !before.has(card.request.request_id))?.focus());
  };

  #toNew = async (): Promise<void> => {
    const at = this.#order.findIndex((one) => this.#unseen.has(one.id));
    const id = this.#order[at]?.id;
    if (id !== undefined && !this.#shown.has(id)) {
      this.#from = at;
      this.requestUpdate();
      await this.updateComplete;
    }
    const card = this.#cards().find((one) => this.#unseen.has(one.request.request_id));
    this.#unseen.clear();
    this.requestUpdate();
    card?.scrollIntoView({ block: 'start' });
    card?.focus();
  };
}
customElements.define('plexus-requests', PlexusRequests);
