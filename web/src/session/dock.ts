// The requests above the composer: one card, what became of the one before it, and the others as rows.
//
// The outcome stands above the card: its coming and going moves no button. The focus never comes here by itself; only from the card that was
// just answered with the keyboard does it go on to the next one.

import { css, html, nothing } from 'lit';
import { repeat } from 'lit/directives/repeat.js';
import { PlexusElement } from '../lib/element.js';
import { byPointer, focused, writable } from '../lib/keys.js';
import { plexus } from '../plexus.js';
import { lineOf } from '../request/asked.js';
import type { PlexusCard } from '../request/card.js';
import { isLeft, resume } from '../request/left.js';
import { RISK_ICON, riskOf } from '../request/wire.js';
import { cut, oneLine } from '../render/visible.js';
import { text as words } from '../text/en.js';
import { icon } from '../ui/icons.js';
import { load } from '../ui/pages.js';
import type { Surface } from '../surface/types.js';
import type { Request } from '../wire/types.js';

const w = words.session;

/** Time that the outcome of the last request stays, ms. */
const RECEIPT_MS = 8_000;
/** Maximum number of rows of further requests; the others are in the inbox. */
const ROWS_MAX = 3;

/** The screens on which the card is a sheet; as in the styles. */
const NARROW = matchMedia('(max-width: 599px)');

/** The conversation below the requests, and its surfaces, on which some of them are answered. */
export interface Around {
  /** The position of a request in the conversation; 0 if it is not loaded. */
  placeOf(request: Request): number;
  /** The shown surface on which a request is answered. */
  askedOn(request: Request): Surface | undefined;
  /** The surface that is in sight already, and the one that stands beside the conversation where there is room. */
  place: string;
  beside: string;
  show(surface: string): void;
}

/** `<plexus-dock>`. Dispatches `leave` when the keyboard is to go back to the composer. */
export class PlexusDock extends PlexusElement {
  static override properties = { sessionId: {}, conversation: { attribute: false }, folded: { type: Boolean, reflect: true } };
  declare sessionId: string;
  declare conversation: Around | null;
  /** Whether the card is a row: on a phone, where it would cover the conversation and the composer. */
  declare folded: boolean;
  /** The request whose card is open, as long as it can be answered; empty if none. */
  #active = '';
  /** The requests whose cards were open: what was typed there stays. */
  readonly #opened = new Set<string>();
  /** The answered request that is shown last, and when it was answered. */
  #last: { id: string; at: number } | null = null;
  /** Whether the keyboard goes on to the next card. */
  #goesOn = false;
  /** The requests of surfaces that are shown as cards all the same, and those that were shown as a line. */
  readonly #asCards = new Set<string>();
  readonly #asStrips = new Set<string>();

  constructor() {
    super();
    this.sessionId = '';
    this.conversation = null;
    this.folded = false;
  }

  static override styles = [...[PlexusElement.styles].flat(), css`
    :host { display: flex; flex-direction: column; flex: 0 1 auto; min-height: 0; height: auto; max-height: 75%; background: none; padding: 2px var(--s4) var(--s3); box-sizing: border-box; }
    :host([hidden]) { display: none; }
    .inner { display: flex; flex-direction: column; gap: 6px; min-height: 0; inline-size: 100%; max-width: 860px; margin: 0 auto; }
    @container (min-width: 1500px) { .inner { max-width: 1020px; } }
    .inner > * { flex: none; }
    plexus-card { max-block-size: calc(75cqb - var(--s3) - 4px); }
    .inner > plexus-card[data-open] { flex: 0 1 auto; min-block-size: 0; }
    .rows { display: flex; flex-direction: column; border: 1px solid var(--line); border-radius: var(--r-m); background: var(--bg-raised); overflow: hidden; }
        .rows > * { display: flex; align-items: center; justify-content: flex-start; gap: 10px; min-height: 34px; padding: 3px 12px; border: 0; border-radius: 0; background: none; font-weight: 450; text-align: start; min-inline-size: 0; font-size: var(--t-s); color: var(--fg-soft); }
    .rows[data-alone] { border: 0; }
    .rows > :not(:last-child) { border-bottom: 1px solid var(--line); }
    .rows > :hover { background: var(--bg-hover); }
    .rows > :focus-visible { outline-offset: -2px; }
    .what { flex: 1 1 60px; min-inline-size: 0; display: flex; gap: 6px; color: var(--fg); white-space: nowrap; }
    .what bdi { overflow: hidden; text-overflow: ellipsis; }
    .why { flex: 0 1 auto; min-inline-size: 5em; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
    .risk { flex: none; display: inline-flex; align-items: center; gap: 4px; color: var(--fg-mute); }
    .risk[data-risk='danger'] { color: var(--danger); font-weight: 600; } .risk[data-risk='elevated'] { color: var(--warn); }
    .asked { display: flex; align-items: center; flex-wrap: wrap; gap: 6px 8px; padding: 7px 8px 7px 12px; border-color: var(--accent-line); background: var(--accent-wash); }
    .asked > svg { flex: none; color: var(--accent); }
    .asked .words { flex: 1 1 160px; min-width: 0; overflow-wrap: anywhere; }
    @container (min-width: 960px) { .asked .beside { display: none; } }
    @media (pointer: coarse) { .rows > * { min-height: 44px; } }
    .sheet, .folded { display: none; }
    /* On a phone the card is a sheet: its answers are where the thumb is. */
    @media (max-width: 599px) {
      :host { padding-inline: var(--s3); }
      .rows .why { display: none; }
      :host([sheet][asking]:not([folded])) { position: absolute; inset: 0; z-index: 5; max-height: none; padding-block-end: max(var(--s2), env(safe-area-inset-bottom)); background: var(--bg); }
      :host([sheet][asking]:not([folded])) .inner { flex: 1 1 auto; }
      :host([sheet][asking]:not([folded])) plexus-card[data-open] { flex: 1 1 auto; max-block-size: none; }
      :host([sheet][asking]:not([folded])) .sheet { display: flex; align-items: center; justify-content: space-between; }
      :host([sheet][asking][folded]) plexus-card[data-open] { display: none; }
      :host([sheet][asking][folded]) .folded { display: flex; }
    }
  `];

  override connectedCallback(): void {
    super.connectedCallback();
    this.addEventListener('closed', this.#closed);
    this.addEventListener('keydown', this.#key);
    NARROW.addEventListener('change', this.#narrowed);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.removeEventListener('closed', this.#closed);
    this.removeEventListener('keydown', this.#key);
    NARROW.removeEventListener('change', this.#narrowed);
  }

  /** Folds a card that became a sheet when the phone was turned: it must not cover a text that is being written. */
  #narrowed = (): void => {
    if (NARROW.matches && writable(focused()) && !this.matches(':focus-within')) this.folded = true;
  };

  protected override willUpdate(changed: Map<string, unknown>): void {
    if (!changed.has('sessionId')) return;
    this.#last = null;
    this.#goesOn = false;
    this.folded = false;
    this.#active = '';
    this.#opened.clear();
    this.#asCards.clear();
    this.#asStrips.clear();
  }

  get #card(): PlexusCard | null { return this.renderRoot.querySelector<PlexusCard>('plexus-card[data-open]'); }

  /** Focuses the card; false if there is none. */
  override focus(): boolean {
    const card = this.#card;
    card?.focus();
    return card !== null;
  }

  /** Opens the card of the next request, or of the previous one. */
  step(by: number): void {
    const open = this.#open();
    const at = open.findIndex((request) => request.request_id === this.#active);
    const to = open[Math.max(0, Math.min(open.length - 1, at + by))];
    if (to) void this.#choose(to.request_id);
  }

  async #choose(id: string): Promise<void> {
    resume(id);
    this.folded = false;
    this.#active = id;
    this.requestUpdate();
    await this.updateComplete;
    this.focus();
  }

  /** Handles the end of the card's request: answered here, which the card reports itself, or elsewhere. */
  #closed = (event: Event): void => {
    if ((event.composedPath()[0] as PlexusCard).request.request_id === this.#active) this.#end();
    this.requestUpdate();
  };

  #end(): void {
    if (!this.#active) return;
    this.#goesOn = !byPointer() && this.#card?.matches(':focus-within') === true;
    this.#last = { id: this.#active, at: Date.now() };
    this.#active = '';
    setTimeout(() => this.requestUpdate(), RECEIPT_MS + 50);
  }

  protected override updated(): void {
    if (!this.#goesOn) return;
    this.#goesOn = false;
    const card = this.#card;
    if (card) void card.updateComplete.then(() => card.focus());
    else this.dispatchEvent(new Event('leave'));
  }

  #key = (event: KeyboardEvent): void => {
    if (event.key !== 'Escape' || event.defaultPrevented || writable(event.composedPath()[0] ?? null)) return;
    event.preventDefault();
    this.dispatchEvent(new Event('leave'));
  };

  /** The open requests of the session in the order in which they were asked, also those of one moment. */
  #open(): Request[] {
    return [...plexus.requests.value.values()]
      .filter((request) => request.session_id === this.sessionId && request.state === 'open' && request.request_id !== this.#last?.id)
      .sort((a, b) => Date.parse(a.opened_at) - Date.parse(b.opened_at) || (this.conversation?.placeOf(a) ?? 0) - (this.conversation?.placeOf(b) ?? 0));
  }

  /** Whether a request is a line that leads to its surface: the card would only say the same again, over it. */
  #isStrip(request: Request): boolean {
    const id = request.request_id;
    if (this.#asCards.has(id)) return false;
    if (this.conversation?.askedOn(request)) this.#asStrips.add(id);
    // The surface may say that it was answered before the request does.
    return this.#asStrips.has(id);
  }

  override render() {
    if (this.#active && plexus.requests.value.get(this.#active)?.state !== 'open') this.#end();
    const open = this.#open();
    const strips = open.filter((request) => this.#isStrip(request));
    const cards = open.filter((request) => !strips.includes(request));
    // The card stays: it must not become another one under the pointer.
    const here = cards.filter((request) => !isLeft(request.request_id));
    const active = here.find((request) => request.request_id === this.#active) ?? here[0];
    // A user who is writing is not interrupted.
    if (active && !this.#active && writable(focused())) this.folded = true;
    this.#active = active?.request_id ?? '';
    if (active) { this.#opened.add(this.#active); load('card'); }
    const more = cards.filter((request) => request !== active);
    const last = this.#last && Date.now() - this.#last.at < RECEIPT_MS ? plexus.requests.value.get(this.#last.id) : undefined;
    const shown = [...(last ? [last] : []), ...cards.filter((request) => this.#opened.has(request.request_id))];
    const ended = [...plexus.requests.value.values()].filter((request) => request.session_id === this.sessionId && request.state !== 'open' && this.#asStrips.has(request.request_id) && !this.#asCards.has(request.request_id)).slice(-1);
    const row = (request: Request) => this.#row(request, request === active);
    this.toggleAttribute('asking', active !== undefined);
    this.hidden = !shown.length && !strips.length && !more.length && !ended.length;
    return html`<div class="inner">
      ${ended.map((request) => html`<div class="asked panel" role="status" data-request=${request.request_id}>${icon('check', 14)}<span class="words">${this.#outcome(request)}</span></div>`)}
      ${strips.map((request) => this.#strip(request))}
      ${active ? html`<div class="sheet"><span class="mute">${more.length ? w.moreRequests(more.length) : nothing}</span><button type="button" class="ghost" @click=${() => { this.folded = true; }}>${w.toConversation}${icon('down')}</button></div>` : nothing}
      ${repeat(shown, (request) => request.request_id, (request) => html`<plexus-card layout="dock" ?data-open=${request === active} ?hidden=${request !== active && request !== last} .request=${request}></plexus-card>`)}
      ${cards.length ? html`<div class="rows" role="group" aria-label=${w.requests} ?data-alone=${!more.length}>
        ${active ? row(active) : nothing}${more.slice(0, ROWS_MAX).map(row)}
        ${more.length > ROWS_MAX ? html`<a href=${plexus.href({ page: 'inbox' })}>${w.moreCards(more.length - ROWS_MAX)}</a>` : nothing}</div>` : nothing}
    </div>`;
  }

  #row(request: Request, active: boolean) {
    const { verb, head, tail } = lineOf(request);
    const risk = riskOf(request);
    const reason = oneLine(request.risk_reasons?.[0]);
    return html`<button type="button" class=${active ? 'folded' : ''} data-request=${request.request_id} @click=${() => void this.#choose(request.request_id)}>
      <span class="what">${verb ? html`<span>${verb}</span>` : nothing}<bdi class="mono">${head}${tail}</bdi></span>
      <span class="risk" data-risk=${risk}>${icon(RISK_ICON[risk], 14)}${words.request.risks[risk]}</span>${reason ? html`<span class="why">${reason}</span>` : nothing}</button>`;
  }

  #strip(request: Request) {
    const id = request.request_id;
    const on = this.conversation?.askedOn(request);
    const agent = oneLine(plexus.sessions.value.get(this.sessionId)?.runtime_id ?? '') || words.surface.someAgent;
    return html`<div class="asked panel" role="group" aria-label=${words.surface.askedBy(agent)} data-request=${id}>${icon('info', 14)}
      <span class="words"><strong><bdi>${words.surface.askedBy(agent)}</bdi></strong> <bdi>${oneLine(cut(request.title ?? '', 200))}</bdi></span>
      ${!on || this.conversation?.place === on.surface ? nothing : html`<button class=${this.conversation?.beside === on.surface ? 'compact beside' : 'compact'} @click=${() => this.conversation?.show(on.surface)}>${words.surface.show}</button>`}
      <button class="compact ghost" @click=${() => { this.#asCards.add(id); this.requestUpdate(); }}>${words.surface.asCard}</button></div>`;
  }

  #outcome(request: Request): string {
    const title = oneLine(cut(request.title ?? '', 200));
    return request.state === 'answered' ? words.surface.answeredBy(title, oneLine(cut(request.receipt?.resolved_by?.name ?? '', 80))) : words.surface.askEnded(title);
  }
}
customElements.define('plexus-dock', PlexusDock);
