// The card of one request.
//
// - The gateway's facts (runtime, session, folder, risk, the exact display, warnings) stand outside; the agent's own text stands in a
//   labelled quotation and is inserted as text only.
// - In the order of a decision: what is asked, why it is risky, where. Nothing stands there twice.
// - No answer counts before the card has stood still for a moment; "allow" needs that all of it was seen, danger also a hold. Enter
//   never allows. The card never takes the focus by itself.
// - The answers stand below what scrolls, always whole.
// - A resolved card keeps its height, and shows the outcome in place of the buttons.

import { html, nothing, type PropertyValues, type TemplateResult } from 'lit';
import { PlexusElement } from '../lib/element.js';
import { oneLine, readable, visible } from '../lib/text.js';
import { plexus } from '../plexus.js';
import { text } from '../text/en.js';
import { icon } from '../ui/icons.js';
import { actionsOf, barOf, ruleOf, UNAVAILABLE, type Action } from './actions.js';
import { ago, span } from './age.js';
import { Answering, type Sent } from './answering.js';
import { Arming, WATCH_MS } from './arming.js';
import { agentWords, folderBeside } from './asked.js';
import { cardStyles } from './card.css.js';
import { changesOf } from './change.js';
import { sizeOf } from './display.js';
import './exact.js';
import type { PlexusExact } from './exact.js';
import './hold.js';
import type { PlexusHold } from './hold.js';
import { join } from './keys.js';
import { answerer } from './me.js';
import { outcomeOf } from './outcome.js';
import { changedBetween } from '../wire/merge.js';
import { answersOf, choose, chooseOwn, nameOf, NOTHING, questionsOf, wrongWith, type DraftAnswer } from './questions.js';
import { markSeen } from './seen.js';
import { post } from './send.js';
import { RISK_ICON, riskOf, type Answer, type Question, type Receipt, type Request } from './wire.js';

const t = text.request;

/** Pauses before an answer without a reply is sent again, ms; the last one repeats. */
const ASK_AGAIN_MS = [1_500, 3_000, 6_000, 12_000];
/** Longest agent text shown at first, in characters; a button shows the rest. */
const QUOTE_CHARS = 600;
/** As `QUOTE_CHARS`, in lines. */
const QUOTE_LINES = 6;
/** A deadline sooner than this is emphasized, ms. */
const SOON_MS = 60_000;
/** Longest reason, in characters. */
const REASON_CHARS = 2_000;

/** Keys that mean the same as others. */
const ALIASES: Readonly<Record<string, string>> = { y: 'a', n: 'd', r: 'D' };

type Status = 'open' | 'sending' | 'unknown' | 'closed';

/** The gateway's reasons for the risk. */
const reasonsOf = (request: Request): string[] => (request.risk_reasons ?? []).map((reason) => oneLine(reason)).filter((reason) => reason !== '');

/** `<plexus-card .request=${request}>`. `layout`: `pane` beside or below the list, `dock` above a composer, `solo` alone on the page. */
export class PlexusCard extends PlexusElement {
  static override properties = { request: { attribute: false }, layout: { reflect: true }, status: { state: true } };
  declare request: Request;
  declare layout: 'pane' | 'dock' | 'solo';
  declare private status: Status;

  #arming = new Arming(performance.now());
  #timer: ReturnType<typeof setInterval> | undefined;
  #read = false;
  #shown: Request | null = null;
  #answering: Answering | null = null;
  #attempt = 0;
  #again: ReturnType<typeof setTimeout> | undefined;
  #asking = false;
  #receipt: Receipt | null = null;
  #late = false;
  #closedWords = '';
  #kept: { host: number; actions: number } | null = null;
  #say = '';
  #bad = false;
  #saysMore = false;
  #reasonOpen = false;
  #reason = '';
  #edit: string | null = null;
  #picked = new Set<string>();
  /** The draft answers to the questions, by question id. */
  #drafts = new Map<string, DraftAnswer>();
  /** Whether the request changed while it was shown, and the person has not confirmed reading it again. */
  #changed = false;
  #value: string | null = null;
  #showSecret = false;
  #leave: () => void = () => {};
  #typing = false;
  #word = '';
  /** When it was resolved, ms since the epoch; 0 while open. */
  closedAt = 0;

  constructor() {
    super();
    this.layout = 'solo';
    this.status = 'open';
  }

  static override styles = [...[PlexusElement.styles].flat(), cardStyles];

  // --- state ------------------------------------------------------------------------------------------------------------

  /** The newest known state of the request. */
  get #now(): Request {
    return plexus.requests.value.get(this.request.request_id) ?? this.request;
  }

  /** Whether it can still be answered. */
  get open(): boolean {
    return this.status !== 'closed';
  }

  /** Whether an answer was sent whose outcome is not known yet: then the card must stay in the document. */
  get unsettled(): boolean {
    return this.status === 'sending' || this.status === 'unknown';
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.#arming.again(performance.now());
    this.#timer = setInterval(this.#watch, WATCH_MS);
    this.#leave = join(this);
    document.addEventListener('visibilitychange', this.#rearm);
    window.addEventListener('focus', this.#rearm);
    window.addEventListener('online', this.#askNow);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#leave();
    clearInterval(this.#timer);
    clearTimeout(this.#again);
    document.removeEventListener('visibilitychange', this.#rearm);
    window.removeEventListener('focus', this.#rearm);
    window.removeEventListener('online', this.#askNow);
  }

  protected override willUpdate(changed: PropertyValues): void {
    const request = this.#now;
    const before = this.#shown;
    this.#shown = request;
    if (before && before.request_id !== request.request_id) this.#forget();
    else if (before && request.state === 'open' && changedBetween(before, request)) {
      this.#forget();
      this.#changed = true;
      this.#tell(t.changedSince, true);
    }
    if (this.status !== 'closed' && request.state !== 'open') this.#close(request.receipt ?? null);
    if (changed.has('status') && this.status === 'open') this.#arming.again(performance.now());
  }

  /** Resets everything that was read, typed or pressed: the request is another one, or has changed. */
  #forget(): void {
    this.#read = false;
    this.#answering = null;
    clearTimeout(this.#again);
    this.#receipt = null;
    this.#late = false;
    this.#kept = null;
    this.#edit = null;
    this.#reason = '';
    this.#reasonOpen = false;
    this.#picked.clear();
    this.#drafts.clear();
    this.#changed = false;
    this.#value = null;
    this.#word = '';
    this.#typing = false;
    this.#say = '';
    this.#bad = false;
    this.closedAt = 0;
    this.status = 'open';
    this.#arming.again(performance.now());
  }

  /** Shows the outcome in place of the answers, at the height of the card so far. */
  #close(receipt: Receipt | null, words = ''): void {
    if (this.status === 'closed') return;
    const actions = this.renderRoot?.querySelector<HTMLElement>('.actions');
    const article = this.renderRoot?.querySelector<HTMLElement>('article');
    if (actions && article) this.#kept = { host: article.getBoundingClientRect().height, actions: actions.getBoundingClientRect().height };
    this.renderRoot?.querySelectorAll<PlexusHold>('plexus-hold').forEach((hold) => hold.stop());
    clearTimeout(this.#again);
    // The focused button disappears: the card keeps the focus.
    const active = this.shadowRoot?.activeElement;
    if (active && actions?.contains(active)) article?.focus({ preventScroll: true });
    this.#receipt = receipt;
    this.#closedWords = words;
    this.closedAt = Date.now();
    this.status = 'closed';
    this.dispatchEvent(new CustomEvent('closed', { bubbles: true, composed: true }));
  }

  protected override updated(): void {
    const article = this.renderRoot.querySelector<HTMLElement>('article');
    const actions = this.renderRoot.querySelector<HTMLElement>('.actions');
    if (!article || !actions) return;
    // Set by script: the Content-Security-Policy forbids style attributes in markup.
    article.style.blockSize = this.#kept ? `${this.#kept.host}px` : '';
    actions.style.blockSize = this.#kept ? `${this.#kept.actions}px` : '';
    actions.style.marginBlockStart = this.#kept ? 'auto' : '';
    for (const hold of this.renderRoot.querySelectorAll<PlexusHold>('plexus-hold')) {
      const action = actionsOf(this.#now, answerer()).find((one) => one.id === hold.dataset['action']);
      hold.may = () => action !== undefined && this.#mayPress(action);
      hold.still = () => this.open && this.#arming.armed(performance.now());
    }
    this.#watch();
  }

  // --- when a press counts ------------------------------------------------------------------------------------------------------

  /** Restarts the guard: the card got the keyboard. */
  rearm(): void { this.#rearm(); }

  #rearm = (): void => {
    this.#arming.again(performance.now());
    this.#drawArming();
  };

  #watch = (): void => {
    if (!this.isConnected || !this.open) return;
    const actions = this.renderRoot.querySelector<HTMLElement>('.answers');
    if (!actions) return;
    const { top, left } = actions.getBoundingClientRect();
    this.#arming.seen({ top, left }, performance.now());
    this.#drawArming();
  };

  #drawArming(): void {
    const actions = this.renderRoot.querySelector<HTMLElement>('.actions');
    const arming = String(this.open && !this.#arming.armed(performance.now()));
    if (actions && actions.dataset['arming'] !== arming) actions.dataset['arming'] = arming;
  }

  /** Why this device cannot answer it at all; empty if it can. */
  #hindrance(): string {
    const request = this.#now;
    if (request.observe_only) return t.observeOnly(oneLine(request.runtime_id) || t.runtimeUnknown);
    if (!plexus.may('approve')) return t.mayNot;
    if (!plexus.live.value) return t.offline;
    return '';
  }

  /** Why this answer cannot be given now; empty if it can. */
  #obstacle(action: Pick<Action, 'role' | 'unavailable'>): string {
    if (this.status === 'sending') return t.sending;
    if (this.status === 'unknown') return t.unknown;
    const hindrance = this.#hindrance();
    if (hindrance) return hindrance;
    if (action.unavailable) return UNAVAILABLE[action.unavailable];
    const { sense, lasting } = ruleOf(action);
    if (sense !== 'allow') return '';
    // "Always" covers later requests of any risk, and only the original text.
    if (lasting && this.#isEdited) return t.editedOnce;
    if (this.#now.display_truncated) return t.readFirst;
    if (!this.#read) return sizeOf(this.#now.display).long ? t.readFirst : t.seeFirst;
    if (this.#changed) return t.changedSince;
    return '';
  }

  #mayPress(action: Pick<Action, 'role' | 'unavailable'>): boolean {
    if (!this.open) return false;
    const first = this.#obstacle({ role: 'deny', unavailable: null });
    this.#watch();
    const words = first || (this.#arming.armed(performance.now()) ? this.#obstacle(action) : t.early);
    if (words) {
      this.#tell(words, true);
      return false;
    }
    return true;
  }

  #tell(words: string, bad = false): void {
    this.#say = words;
    this.#bad = bad;
    this.requestUpdate();
  }

  /** Handles a press of an answer. `held`: the button was held down long enough. */
  #press(action: Action, held = false): void {
    if (!this.#mayPress(action)) return;
    if (this.#guarded(action) && !held) {
      this.#tell(t.holdHint, true);
      return;
    }
    const answer = this.#answerOf(action);
    if (typeof answer === 'string') this.#tell(answer, true);
    else void this.#send(answer);
  }

  /** Whether the editable text was changed. */
  get #isEdited(): boolean {
    const { editable } = this.#now;
    return editable != null && this.#edit !== null && this.#edit !== editable.value;
  }

  #guarded(action: Action): boolean {
    return ruleOf(action).sense === 'allow' && riskOf(this.#now) === 'danger';
  }

  /** The complete answer, or the text of what is missing. */
  #answerOf(action: Action): Answer | string {
    const request = this.#now;
    const answer: Answer = { ...action.answer };
    const questions = questionsOf(request);
    if (questions.length) {
      if (action.role !== 'send') return answer;
      const found = answersOf(questions, this.#drafts);
      if ('answers' in found) return { ...answer, answers: found.answers };
      this.renderRoot.querySelector<HTMLElement>(`fieldset[data-question="${CSS.escape(found.question.id)}"] input, fieldset[data-question="${CSS.escape(found.question.id)}"] textarea`)?.focus();
      return questions.length > 1 ? `${nameOf(found.question)}: ${found.words}` : found.words;
    }
    if (action.role === 'send' && request.type === 'pick') {
      if (this.#picked.size === 0) return t.nothingChosen;
      answer.ids = (request.items ?? []).map((item) => item.id).filter((id) => this.#picked.has(id));
    }
    if (action.role === 'send' && request.type === 'prompt') {
      const value = this.#value ?? request.default_value ?? '';
      if (value === '') return t.nothingTyped;
      answer.value = value;
    }
    const reason = this.#reason.trim();
    if (ruleOf(action).sense === 'deny' && request.allow_reason && reason) answer.reason = reason;
    if (ruleOf(action).sense === 'allow' && this.#isEdited) answer.edited = this.#edit ?? '';
    return answer;
  }

  // --- sending ------------------------------------------------------------------------------------------------------------------

  async #send(answer: Answer): Promise<void> {
    this.#answering = new Answering(this.#now, answer, post);
    this.#attempt = 0;
    this.status = 'sending';
    this.#tell(t.sending);
    await this.#deliver();
  }

  async #deliver(): Promise<void> {
    const answering = this.#answering;
    if (!answering || this.#asking) return;
    this.#asking = true;
    clearTimeout(this.#again);
    const sent = await answering.send();
    this.#asking = false;
    // The card shows another request meanwhile.
    if (this.#answering !== answering) return;
    this.#take(sent);
  }

  #take(sent: Sent): void {
    switch (sent.is) {
      case 'won':
        this.#late = false;
        this.#closeWith(sent.receipt);
        break;
      case 'lost':
        // If this client's answer had arrived, its key would have brought `won`.
        this.#late = true;
        this.#closeWith(sent.receipt);
        break;
      case 'closed':
        this.#late = sent.receipt !== null;
        if (this.open) this.#close(sent.receipt, sent.words);
        else this.requestUpdate();
        break;
      case 'refused':
        if (!this.open) break;
        this.#answering = null;
        this.status = 'open';
        this.#tell(sent.words, true);
        void plexus.reread(this.#now.request_id);
        break;
      case 'unknown':
        if (!this.open) break;
        this.status = 'unknown';
        this.#tell(t.unknown, true);
        this.#again = setTimeout(this.#askNow, ASK_AGAIN_MS[Math.min(this.#attempt, ASK_AGAIN_MS.length - 1)]);
        this.#attempt += 1;
        break;
    }
  }

  #closeWith(receipt: Receipt): void {
    if (this.open) this.#close(receipt);
    else {
      this.#receipt = receipt;
      this.requestUpdate();
    }
  }

  /** Sends an answer that had no reply again, under its key. */
  #askNow = (): void => {
    if (this.status !== 'unknown' || !this.isConnected) return;
    this.#tell(t.unknownAsking);
    void this.#deliver();
  };

  // --- keys ---------------------------------------------------------------------------------------------------------------------

  /** Handles a key while this card is focused; returns whether the key has a meaning here. */
  key(event: KeyboardEvent): boolean {
    // On a card that is answered already no key means anything else.
    if (!this.open) return true;
    const request = this.#now;
    const pressed = ALIASES[event.key] ?? event.key;
    const digit = /^[1-9]$/.test(pressed) ? Number(pressed) : 0;
    if (digit && request.type === 'pick' && request.items?.length && !request.options.length) {
      const item = request.items[digit - 1];
      if (item) this.#pick(item.id, request.multi ? !this.#picked.has(item.id) : true);
      return Boolean(item);
    }
    const actions = actionsOf(request, answerer());
    const action = digit ? actions[digit - 1] : actions.find((one) => one.key !== '' && one.key === pressed);
    if (action) {
      if (event.repeat) return true;
      if (this.#guarded(action)) this.#holdOf(action)?.begin();
      else this.#press(action);
      return true;
    }
    if (event.repeat) return false;
    switch (pressed) {
      case 'D':
        if (request.allow_reason && !request.observe_only) this.#openReason();
        return true;
      case 'e':
        if (request.editable && !request.observe_only) this.#openEdit();
        return true;
      case 'c':
        if (this.#changed) this.#readAgain();
        return true;
      case 'o':
        this.renderRoot.querySelector<PlexusExact>('plexus-exact')?.open();
        return true;
      default:
        return false;
    }
  }

  /** Handles the release of a key: ends the hold that it began. */
  keyUp(): void {
    this.renderRoot.querySelectorAll<PlexusHold>('plexus-hold').forEach((hold) => hold.stop());
  }

  /** Focuses the card, and says so. */
  choose(): void {
    this.focus();
    if (this.open) this.#tell(t.focusFirst);
  }

  override focus(): void {
    this.renderRoot.querySelector<HTMLElement>('article')?.focus();
    this.scrollIntoView({ block: 'nearest' });
  }

  #holdOf(action: Action): PlexusHold | null {
    return this.renderRoot.querySelector<PlexusHold>(`plexus-hold[data-action="${CSS.escape(action.id)}"]`);
  }

  #enter = (event: KeyboardEvent, action: Action): void => {
    if (event.key !== 'Enter' || ruleOf(action).sense === 'deny') return;
    event.preventDefault();
    this.#tell(t.enterNever, true);
  };

  /** Enter in a one-line field does nothing. */
  #noEnter = (event: KeyboardEvent): void => {
    if (event.key === 'Enter' && !event.isComposing) event.preventDefault();
    if (event.key === 'Escape') this.focus();
  };

  // --- fields and tools ----------------------------------------------------------------------------------------------------------

  #pick(id: string, on: boolean): void {
    if (!this.#now.multi) this.#picked.clear();
    if (on) this.#picked.add(id);
    else this.#picked.delete(id);
    this.requestUpdate();
  }

  #openReason(): void {
    this.#reasonOpen = !this.#reasonOpen || this.#reason !== '';
    this.requestUpdate();
    if (this.#reasonOpen) void this.updateComplete.then(() => this.renderRoot.querySelector<HTMLElement>('.reason')?.focus());
  }

  #openEdit(): void {
    const editable = this.#now.editable;
    if (!editable) return;
    // The card changes its height: the arming delay starts again.
    this.#edit = this.#edit === null ? editable.value : null;
    this.#rearm();
    this.requestUpdate();
    if (this.#edit !== null) void this.updateComplete.then(() => this.renderRoot.querySelector<HTMLElement>('.edit')?.focus());
  }

  // --- drawing ------------------------------------------------------------------------------------------------------------------

  override render() {
    const request = this.#now;
    const risk = riskOf(request);
    const runtime = oneLine(request.runtime_id) || t.runtimeUnknown;
    // The text of a question is the agent's own: it never stands among the gateway's facts.
    const words = request.type === 'prompt' || request.type === 'pick' || request.subject?.type === 'question';
    const unreadable = request.subject?.type === 'unreadable';
    return html`<article
      tabindex="-1"
      aria-label=${t.card(runtime)}
      data-status=${this.status}
      data-risk=${risk}
      data-request=${request.request_id}
      data-type=${request.type}
    >
      <div class="body">
        <header>
          <span><span class="who">${runtime}</span> <span class="asks">${(t.types as Record<string, string>)[request.type] ?? ''}</span></span>
          ${this.#when(request)}
        </header>
        ${this.#changed && this.open ? this.#changedNote() : nothing}
        <section class=${words ? 'agents' : ''}>
          <h2 class=${words || unreadable ? '' : 'sr'}>${words ? t.agentAsks : unreadable ? t.asSent : t.exactly}</h2>
          ${unreadable ? html`<p class="unreadable">${t.unreadable}</p>` : nothing}
          <plexus-exact .display=${request.display} .truncated=${request.display_truncated ?? false} .bytes=${request.display_bytes} .edit=${request.subject ? request.subject.type === 'edit' : undefined}
            @read=${this.#wasRead} @opened=${this.#rearm} @whole=${this.#fetchWhole}></plexus-exact>
        </section>
        ${this.#why(request)} ${this.#where(request)} ${this.#quoted(request)} ${this.open ? this.#fields(request) : nothing}
      </div>
      <div class="actions" data-arming="true">${this.status === 'closed' ? this.#outcome(request) : this.#controls(request)}</div>
    </article>`;
  }

  /** Fetches the whole request, of which only the beginning is here. */
  #fetchWhole = async (event: Event): Promise<void> => {
    const exact = event.currentTarget as PlexusExact;
    const found = await plexus.reread(this.#now.request_id);
    if (found && !found.display_truncated) return;
    exact.failed();
    this.#tell(t.notFetched, true);
  };

  #changedNote(): TemplateResult {
    return html`<section class="warnings changed" role="alert">
      <h2>${t.changedSince}</h2>
      <button type="button" class="tool" data-tool="again" aria-disabled=${this.#read ? 'false' : 'true'} @click=${this.#readAgain}>${t.readAgain}</button>
    </section>`;
  }

  /** The person confirms reading the changed request. Counts only once all of it was seen and the card stood still. */
  #readAgain = (): void => {
    if (!this.#read) return this.#tell(t.readFirst, true);
    if (!this.#arming.armed(performance.now())) return this.#tell(t.early, true);
    this.#changed = false;
    markSeen(this.#now);
    this.#tell('');
    this.#rearm();
  };

  #wasRead = (): void => {
    this.#read = true;
    // What changed while it was shown counts as seen once the person says so.
    if (!this.#changed) markSeen(this.#now);
    if (this.#say === t.readFirst || this.#say === t.seeFirst) this.#tell('');
    this.requestUpdate();
  };

  /** The risk with its reasons, and what else the gateway warns of. */
  #why(request: Request): TemplateResult {
    const risk = riskOf(request);
    const reasons = reasonsOf(request);
    return html`<p class="why">
        <span class="risk" title=${(t.riskHints as Record<string, string>)[risk] ?? ''}>${icon(RISK_ICON[risk], 14)}${(t.risks as Record<string, string>)[risk]}</span>
        ${reasons.length ? html`<span>${reasons.join('; ')}</span>` : nothing}
      </p>
      ${request.warnings.length
        ? html`<section class="warnings">
            <h2>${t.warns}</h2>
            <ul>
              ${request.warnings.map((warning) => html`<li>${oneLine(warning)}</li>`)}
            </ul>
          </section>`
        : nothing}`;
  }

  /** Where it would happen, and who else looks at it. In its session a card does not name the session. */
  #where(request: Request): TemplateResult {
    const session = plexus.sessions.value.get(request.session_id);
    const viewers = plexus.viewers.value.get(request.session_id) ?? [];
    const folder = session && !session.cwd ? t.folderUnknown : folderBeside(request, session?.cwd);
    return html`<div class="where">
      ${this.layout === 'dock' ? nothing : html`<a href=${plexus.href({ page: 'session', session_id: request.session_id })}>${t.session(oneLine(session?.title) || t.untitled)}</a>`}
      ${folder ? html`<span>${t.folder} <code>${folder}</code></span>` : nothing}
      ${request.changed && this.open && !this.#changed ? html`<span>${t.changedBefore}</span>` : nothing}
      ${viewers.length ? html`<span class="lookers">${t.lookers(viewers.map((one) => oneLine(one.name)).join(', '))}</span>` : nothing}
    </div>`;
  }

  #when(request: Request): TemplateResult | typeof nothing {
    if (!this.open) return nothing;
    const now = plexus.now.value;
    const parts = [t.asked(ago(request.opened_at, now))];
    const left = request.expires_at ? Date.parse(request.expires_at) - now : NaN;
    if (!Number.isNaN(left)) parts.push(left > 0 ? t.expiresIn(span(left)) : t.expiring);
    return html`<span class="when" ?data-soon=${left < SOON_MS}>${parts.join(' · ')}</span>`;
  }

  /** What the agent says beyond what the gateway shows. */
  #quoted(request: Request): TemplateResult | typeof nothing {
    const words = agentWords(request);
    const title = oneLine(words.title);
    const message = readable(words.message).trim();
    if (!title && !message) return nothing;
    const short = message.split('\n', QUOTE_LINES).join('\n').slice(0, QUOTE_CHARS);
    const more = short.length < message.length && !this.#saysMore;
    return html`<blockquote>
      <h2>${t.agentSays}</h2>
      ${title ? html`<div class="said title">${title}</div>` : nothing} ${message ? html`<div class="said">${more ? `${short}…` : message}</div>` : nothing}
      ${more ? html`<button type="button" class="more" @click=${() => { this.#saysMore = true; this.requestUpdate(); }}>${text.common.more}</button>` : nothing}
    </blockquote>`;
  }

  #fields(request: Request): TemplateResult | typeof nothing {
    const questions = questionsOf(request);
    if (questions.length) return html`${questions.map((question, n) => this.#question(question, n, questions.length))}`;
    if (request.observe_only || request.options.length) return this.#edit !== null && request.editable ? this.#editor(request.editable) : nothing;
    if (request.type === 'pick') {
      return html`<fieldset>
        <legend>${request.multi ? t.chooseAny : t.chooseOne}</legend>
        ${(request.items ?? []).map(
          (item, n) => html`<label class="pick">
            <input
              type=${request.multi ? 'checkbox' : 'radio'}
              name="pick"
              .checked=${this.#picked.has(item.id)}
              @change=${(event: Event) => this.#pick(item.id, (event.target as HTMLInputElement).checked)}
              @keydown=${this.#noEnter}
            />
            <span><bdi>${oneLine(item.label || item.id)}</bdi>${item.detail ? html`<small><bdi>${oneLine(item.detail)}</bdi></small>` : nothing}</span>
            ${n < 9 ? html`<kbd aria-hidden="true">${n + 1}</kbd>` : nothing}
          </label>`,
        )}
      </fieldset>`;
    }
    if (request.type === 'prompt') return this.#prompt(request);
    return this.#edit !== null && request.editable ? this.#editor(request.editable) : nothing;
  }

  /** One question: its options as checkboxes or radio buttons, and a text field if free text is allowed. */
  #question(question: Question, n: number, of: number): TemplateResult {
    const draft = this.#drafts.get(question.id) ?? NOTHING;
    const update = (next: DraftAnswer) => { this.#drafts.set(question.id, next); this.#tell(''); };
    const kind = question.multiple ? 'checkbox' : 'radio';
    const name = `question-${n}`;
    const typed = (event: Event) => update({ ...draft, words: (event.target as HTMLInputElement).value, own: true, chosen: question.multiple ? draft.chosen : new Set() });
    const wrong = draft === NOTHING ? '' : wrongWith(question, draft);
    const header = oneLine(question.header);
    const field = html`<input
      class="value own" type="text" autocomplete="off" spellcheck="false" inputmode=${question.fits?.number === 'integer' ? 'numeric' : question.fits?.number ? 'decimal' : 'text'}
      aria-label=${t.questions.ownFor(nameOf(question))} aria-describedby=${`${name}-wrong`} .value=${draft.words} @input=${typed} @keydown=${this.#noEnter} />`;
    return html`<fieldset class="question" data-question=${question.id} role=${question.multiple ? 'group' : 'radiogroup'} aria-describedby=${`${name}-wrong`}>
      <legend>${of > 1 ? html`<small>${t.questions.of(n + 1, of)}${header ? ' · ' : ''}</small>` : nothing}${header ? html`<small><bdi>${header}</bdi></small>` : nothing}
        <span class="asked"><bdi>${readable(question.text)}</bdi></span>
        <small>${question.options.length ? (question.multiple ? t.chooseAny : t.chooseOne) : ''}${question.optional ? ` ${t.questions.optional}` : ''}</small></legend>
      ${question.options.map((option) => html`<label class="pick">
        <input type=${kind} name=${name} .checked=${draft.chosen.has(option.id)} @change=${(event: Event) => update(choose(question, draft, option.id, (event.target as HTMLInputElement).checked))} @keydown=${this.#noEnter} />
        <span><bdi>${oneLine(option.label || option.id)}</bdi>${option.description ? html`<small><bdi>${oneLine(option.description)}</bdi></small>` : nothing}</span>
      </label>`)}
      ${!question.free_text ? nothing : question.options.length
        ? html`<label class="pick"><input type=${kind} name=${name} .checked=${draft.own} @change=${(event: Event) => update(chooseOwn(question, draft, (event.target as HTMLInputElement).checked))} @keydown=${this.#noEnter} /><span>${t.questions.other}</span></label>${field}`
        : field}
      <p class="wrong" id=${`${name}-wrong`} role="status">${wrong}</p>
    </fieldset>`;
  }

  #prompt(request: Request): TemplateResult {
    const value = this.#value ?? request.default_value ?? '';
    const input = (event: Event) => {
      this.#value = (event.target as HTMLInputElement).value;
      this.requestUpdate();
    };
    const label = request.secret ? t.secretField : t.answerField;
    return html`<div class="field">
      <label for="value">${label}</label>
      <div class="row">
        ${request.multiline && !request.secret
          ? html`<textarea id="value" class="value" rows="4" autocomplete="off" .value=${value} @input=${input}></textarea>`
          : html`<input
              id="value"
              class="value"
              type=${request.secret && !this.#showSecret ? 'password' : 'text'}
              autocomplete=${request.secret ? 'one-time-code' : 'off'}
              autocapitalize="off"
              spellcheck="false"
              .value=${value}
              @input=${input}
              @keydown=${this.#noEnter}
            />`}
        ${request.secret
          ? html`<button type="button" class="tool" aria-pressed=${this.#showSecret} @click=${() => { this.#showSecret = !this.#showSecret; this.requestUpdate(); }}>
              ${this.#showSecret ? t.hideSecret : t.showSecret}
            </button>`
          : nothing}
      </div>
    </div>`;
  }

  #editor(editable: { label: string; value: string }): TemplateResult {
    const edited = this.#edit ?? editable.value;
    const changes = changesOf(editable.value, edited);
    return html`<section class="field">
      <label for="edit">${t.editing}: <bdi>${oneLine(editable.label)}</bdi></label>
      <textarea
        id="edit"
        class="edit code"
        rows=${Math.min(10, edited.split('\n').length + 1)}
        autocomplete="off"
        autocapitalize="off"
        spellcheck="false"
        .value=${edited}
        @input=${(event: Event) => { this.#edit = (event.target as HTMLTextAreaElement).value; this.requestUpdate(); }}
        @keydown=${(event: KeyboardEvent) => event.key === 'Escape' && this.focus()}
      ></textarea>
      <h2>${t.changes}</h2>
      ${edited === editable.value
        ? html`<p class="say">${t.noChanges}</p>`
        : html`<div class="changes" tabindex="0" role="group" aria-label=${t.changes}>
            ${changes.map((one) => html`<span class=${one.kind}>${{ same: '  ', add: '+ ', del: '- ' }[one.kind]}${visible(one.text)}</span>`)}
          </div>`}
    </section>`;
  }

  #controls(request: Request): TemplateResult {
    const actions = actionsOf(request, answerer());
    const { bar: main, menu } = barOf(actions);
    const others = menu.filter((action) => !ruleOf(action).lasting);
    const lasting = menu.filter((action) => ruleOf(action).lasting);
    const hindrance = this.#hindrance();
    const say = this.#say || (this.status === 'open' ? hindrance : '') || (this.#read || !actions.length || !sizeOf(request.display).long ? '' : t.readFirst);
    const guarded = actions.some((action) => this.#guarded(action));
    const button = (size: 'wide' | 'whole' | 'small') => (action: Action) => this.#button(action, actions.indexOf(action), size);
    return html`${this.#reasonOpen && request.allow_reason
        ? html`<div class="field">
            <label for="reason">${t.reason}</label>
            <input
              id="reason"
              class="reason"
              type="text"
              maxlength=${REASON_CHARS}
              autocomplete="off"
              .value=${this.#reason}
              @input=${(event: Event) => { this.#reason = (event.target as HTMLInputElement).value; this.requestUpdate(); }}
              @keydown=${this.#noEnter}
            />
          </div>`
        : nothing}
      ${this.#typing && guarded && !hindrance ? this.#typed(actions) : nothing}
      ${actions.length ? html`<div class="answers">${others.map(button('whole'))}${main.map(button(main.length > 1 ? 'wide' : 'whole'))}</div>` : nothing}
      ${lasting.length || !hindrance
        ? html`<div class="extra">
            ${lasting.length ? html`<div class="lasting">${lasting.map(button('small'))}</div>` : nothing} ${hindrance ? nothing : this.#tools(request, guarded)}
          </div>`
        : nothing}
      <p class="say" role="status" ?data-bad=${this.#bad && this.#say !== ''}>
        ${actions.length || request.observe_only ? say : t.cannot(request.request_id)}
        ${this.status === 'unknown' && !this.#asking ? html`<button type="button" class="tool ask" @click=${this.#askNow}>${t.unknownNow}</button>` : nothing}
      </p>`;
  }

  #tools(request: Request, guarded: boolean): TemplateResult | typeof nothing {
    const tools = [
      request.editable && !request.observe_only
        ? html`<button type="button" class="tool" data-tool="edit" aria-expanded=${this.#edit !== null} @click=${() => this.#openEdit()}>${this.#edit === null ? t.edit : t.stopEdit}</button>`
        : null,
      request.allow_reason && !request.observe_only
        ? html`<button type="button" class="tool" data-tool="reason" aria-expanded=${this.#reasonOpen} @click=${() => this.#openReason()}>${t.denyWhy}</button>`
        : null,
      guarded
        ? html`<button type="button" class="tool" data-tool="word" aria-expanded=${this.#typing} @click=${() => { this.#typing = !this.#typing; this.#word = ''; this.requestUpdate(); if (this.#typing) void this.updateComplete.then(() => this.renderRoot.querySelector<HTMLElement>('.typed')?.focus()); }}>${t.typeInstead}</button>`
        : null,
    ].filter((tool) => tool !== null);
    return tools.length ? html`<div class="tools">${tools}</div>` : nothing;
  }

  /** The alternative to holding a button: type a word, then press. */
  #typed(actions: Action[]): TemplateResult {
    const ready = this.#word.trim().toLowerCase() === t.typeWord;
    const action = actions.find((one) => one.key === 'a') ?? actions.find((one) => ruleOf(one).sense === 'allow');
    if (!action) return html``;
    return html`<div class="word">
      <div class="field">
        <label for="typed">${t.typeLabel}</label>
        <input id="typed" class="typed" type="text" autocomplete="off" autocapitalize="off" spellcheck="false" .value=${this.#word} @input=${(event: Event) => { this.#word = (event.target as HTMLInputElement).value; this.requestUpdate(); }} @keydown=${this.#noEnter} />
      </div>
      <button
        type="button"
        class="answer typed-go"
        data-sense="allow"
        aria-disabled=${ready && !this.#obstacle(action) ? 'false' : 'true'}
        @keydown=${(event: KeyboardEvent) => this.#enter(event, action)}
        @click=${() => (ready ? this.#press(action, true) : this.#tell(t.typeLabel, true))}
      >
        <strong>${this.#verbOf(action)}</strong>
      </button>
    </div>`;
  }

  #verbOf(action: Action): string {
    const request = this.#now;
    if (ruleOf(action).sense === 'allow' && !ruleOf(action).lasting && this.#isEdited) return t.allowEdited;
    if (action.key === 'd' && this.#reason.trim() && request.allow_reason) return t.denyNow;
    return ruleOf(action).verb;
  }

  /** One answer. `wide`: one of the two; `whole`: a row of its own; `small`: what lasts, with its reach in words. */
  #button(action: Action, n: number, size: 'wide' | 'whole' | 'small'): TemplateResult {
    const off = this.#obstacle(action) !== '';
    const key = action.key || (n < 9 ? String(n + 1) : '');
    const agent = oneLine(this.#now.runtime_id) || t.runtimeUnknown;
    const reach = size === 'small' ? (action.label ? t.reaches(agent) : ruleOf(action).sense === 'allow' ? t.alwaysPlain(agent) : t.neverPlain(agent)) : '';
    if (this.#guarded(action)) {
      return html`<plexus-hold
        class=${size}
        data-action=${action.id}
        data-sense=${ruleOf(action).sense}
        .verb=${this.#verbOf(action)}
        .quoted=${action.label}
        .reach=${reach}
        .hint=${t.holdHint}
        .off=${off}
        @hold-start=${() => this.#tell(t.holding)}
        @hold-released=${() => this.open && this.#tell(t.released, true)}
        @hold-done=${() => this.#press(action, true)}
        @enter=${() => this.#tell(t.enterNever, true)}
      ></plexus-hold>`;
    }
    return html`<button
      type="button"
      class="answer ${size}"
      data-action=${action.id}
      data-sense=${ruleOf(action).sense}
      data-key=${action.key}
      aria-disabled=${off ? 'true' : 'false'}
      @keydown=${(event: KeyboardEvent) => this.#enter(event, action)}
      @click=${() => this.#press(action)}
    >
      <strong>${this.#verbOf(action)}${key ? html`<kbd aria-hidden="true">${key}</kbd>` : nothing}</strong>
      ${action.label || reach ? html`<small>${reach} ${action.label ? html`“<bdi>${action.label}</bdi>”` : nothing}</small>` : nothing}
    </button>`;
  }

  #outcome(request: Request): TemplateResult {
    const receipt = this.#receipt;
    if (!receipt) return html`<div class="outcome" role="status" data-sense="none">${icon('info', 28)}<div><strong>${this.#closedWords || t.gone}</strong></div></div>`;
    const outcome = outcomeOf(receipt, request, plexus.me.value?.device_id);
    const mark = { allow: 'check', deny: 'close', none: 'info' } as const;
    return html`<div class="outcome" role="status" data-sense=${outcome.sense}>
      ${icon(mark[outcome.sense], 28)}
      <div>
        <strong>${outcome.text}</strong>, <span class="age">${ago(outcome.at, plexus.now.value)}</span>
        ${outcome.edited ? html`<p>${t.editedTo} <code>${outcome.edited}</code></p>` : nothing} ${outcome.reason ? html`<p>${t.because(outcome.reason)}</p>` : nothing} ${this.#late ? html`<p class="late">${t.late}</p>` : nothing}
      </div>
    </div>`;
  }
}
customElements.define('plexus-card', PlexusCard);
