// The card of one request: what the agent wants, exactly what it would do, the gateway's judgement, and the answers.
//
// - The gateway's facts (runtime, session, folder, risk, the exact display, warnings) stand outside; the agent's own text stands in a
//   quotation and is inserted as text only.
// - No answer counts before the card has stood still for a moment; "allow" needs that all of it was seen, danger also a hold. What lasts
//   takes a second step. Enter never allows. The card never takes the focus by itself.
// - The answers stand below what scrolls, always whole.
// - A resolved card becomes one line.

import { html, nothing, type PropertyValues, type TemplateResult } from 'lit';
import { PlexusElement } from '../lib/element.js';
import { oneLine, readable } from '../lib/text.js';
import { plexus } from '../plexus.js';
import { text } from '../text/en.js';
import { face, faceStyles } from '../ui/face.js';
import { icon } from '../ui/icons.js';
import '../ui/menu.js';
import type { MenuItem } from '../ui/menu.js';
import { actionsOf, barOf, ruleOf, UNAVAILABLE, type Action } from './actions.js';
import { span } from './age.js';
import { Answering, type Sent } from './answering.js';
import { Arming, WATCH_MS } from './arming.js';
import { agentWords, apart, asksOnly, folderOf, headOf, wordsOf } from './asked.js';
import { cardStyles } from './card.css.js';
import { sizeOf } from './display.js';
import './exact.js';
import type { PlexusExact } from './exact.js';
import { Draft, fieldsOf } from './fields.js';
import './hold.js';
import type { PlexusHold } from './hold.js';
import { join } from './keys.js';
import { isLeft, leave, resume } from './left.js';
import { answerer } from './me.js';
import { outcomeOf } from './outcome.js';
import { changedBetween } from '../wire/merge.js';
import { questionsOf } from './questions.js';
import { markSeen } from './seen.js';
import { post } from './send.js';
import { riskOf, type Answer, type Receipt, type Request } from './wire.js';

const t = text.request;

/** Pauses before an answer without a reply is sent again, ms; the last one repeats. */
const ASK_AGAIN_MS = [1_500, 3_000, 6_000, 12_000];
/** Maximum length of an agent's text that is shown at first, in characters; a button shows the rest. */
const QUOTE_CHARS = 600;
/** The same limit in lines. */
const QUOTE_LINES = 6;
/** Maximum length of the text of a question that cannot have been cut, in characters: the gateway cuts at 4,096 bytes. */
const WHOLE_CHARS = 1_024;
/** A deadline sooner than this is emphasized, ms. */
const SOON_MS = 60_000;
/** Maximum length of a reason, in characters. */
const REASON_CHARS = 2_000;

type Status = 'open' | 'sending' | 'unknown' | 'closed';

/** The gateway's reasons for the risk. */
const reasonsOf = (request: Request): string[] => (request.risk_reasons ?? []).map((reason) => oneLine(reason)).filter((reason) => reason !== '');

/** Whether the questions hold all that was sent: none is so long that the gateway may have cut it. */
function formIsWhole({ subject, display_truncated }: Request): boolean {
  if (display_truncated || subject?.type !== 'question') return false;
  return subject.questions.every((one) => [one.text, ...one.options.flatMap((option) => [option.label, option.description ?? ''])].every((words) => words.length < WHOLE_CHARS));
}

/** `<plexus-card .request=${request}>`. `layout`: `pane` beside or below the list, `dock` above a composer, `solo` alone on the page. */
export class PlexusCard extends PlexusElement {
  static override properties = { request: { attribute: false }, layout: { reflect: true }, status: { state: true } };
  declare request: Request;
  declare layout: 'pane' | 'dock' | 'solo';
  declare private status: Status;

  #arming = new Arming(performance.now());
  #timer: ReturnType<typeof setInterval> | undefined;
  #armed: ReturnType<typeof setTimeout> | undefined;
  #read = false;
  #shown: Request | null = null;
  #answering: Answering | null = null;
  #attempt = 0;
  #again: ReturnType<typeof setTimeout> | undefined;
  #asking = false;
  #receipt: Receipt | null = null;
  #late = false;
  #closedWords = '';
  #say = '';
  #bad = false;
  #saysMore = false;
  #reasonOpen = false;
  #draft = new Draft();
  /** Whether the request changed while it was shown, and the person has not confirmed reading it again. */
  #changed = false;
  #leave: () => void = () => {};
  /** Whether a word is typed instead of holding a button. */
  #typing = false;
  /** The id of the answer that waits for its second step; empty if none does. */
  #step = '';
  #formEnd: IntersectionObserver | undefined;
  /** The time when the request was resolved, ms since the epoch; 0 while it is open. */
  closedAt = 0;

  constructor() {
    super();
    this.layout = 'solo';
    this.status = 'open';
  }

  static override styles = [...[PlexusElement.styles].flat(), faceStyles, cardStyles];

  // --- state ------------------------------------------------------------------------------------------------------------

  /** The newest known state of the request. */
  get #now(): Request {
    return plexus.requests.value.get(this.request.request_id) ?? this.request;
  }

  /** Whether it can still be answered. */
  get open(): boolean {
    return this.status !== 'closed' && !isLeft(this.request.request_id);
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
    document.addEventListener('visibilitychange', this.rearm);
    window.addEventListener('focus', this.rearm);
    window.addEventListener('resize', this.rearm);
    window.addEventListener('online', this.#askNow);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#leave();
    clearInterval(this.#timer);
    clearTimeout(this.#armed);
    clearTimeout(this.#again);
    this.#formEnd?.disconnect();
    document.removeEventListener('visibilitychange', this.rearm);
    window.removeEventListener('focus', this.rearm);
    window.removeEventListener('resize', this.rearm);
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
    this.#draft = new Draft();
    this.#reasonOpen = false;
    this.#changed = false;
    this.#typing = false;
    this.#step = '';
    this.#say = '';
    this.#bad = false;
    this.closedAt = 0;
    this.status = 'open';
    this.#arming.again(performance.now());
  }

  /** Becomes one line with the outcome. */
  #close(receipt: Receipt | null, words = ''): void {
    if (this.status === 'closed') return;
    const article = this.renderRoot?.querySelector<HTMLElement>('article');
    this.renderRoot?.querySelectorAll<PlexusHold>('plexus-hold').forEach((hold) => hold.stop());
    clearTimeout(this.#again);
    // The focused button disappears: the card keeps the focus.
    if (this.shadowRoot?.activeElement) article?.focus({ preventScroll: true });
    this.#receipt = receipt;
    this.#closedWords = words;
    this.closedAt = Date.now();
    this.status = 'closed';
    this.#ended(!this.#late && receipt?.resolved_by?.device_id === plexus.me.peek()?.device_id);
  }

  /** Reports that the request needs no further answer here. `mine`: it was answered by a press on this card, so that the next one may
   *  take its place. */
  #ended(mine: boolean): void {
    this.dispatchEvent(new CustomEvent('closed', { bubbles: true, composed: true, detail: { request_id: this.request.request_id, mine } }));
  }

  protected override updated(): void {
    for (const hold of this.renderRoot.querySelectorAll<PlexusHold>('plexus-hold')) {
      const action = this.#actions().find((one) => one.id === hold.dataset['action']);
      hold.may = () => action !== undefined && this.#mayPress(action);
      hold.still = () => this.open && this.#arming.armed(performance.now());
    }
    this.#watchForm();
    this.#watch();
    // Elements around the card may be drawn after it and move it: the guard begins with that frame, not with the next check.
    requestAnimationFrame(this.#watch);
  }

  /** The questions of a form are what is asked: they count as read once their end was on the screen. */
  #watchForm(): void {
    const end = this.renderRoot.querySelector('.form-end');
    this.#formEnd?.disconnect();
    if (!end || this.#read || !formIsWhole(this.#now)) return;
    this.#formEnd = new IntersectionObserver((entries) => {
      if (entries.some((entry) => entry.isIntersecting)) this.#wasRead();
    });
    this.#formEnd.observe(end);
  }

  // --- when a press counts ------------------------------------------------------------------------------------------------------

  /** Takes no press for a moment: the card appeared, moved, changed or got the focus. */
  rearm = (): void => {
    this.#arming.again(performance.now());
    this.#drawArming();
  };

  /** Whether a press counts now. */
  get armed(): boolean { return this.#arming.armed(performance.now()); }

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
    clearTimeout(this.#armed);
    if (arming === 'true') this.#armed = setTimeout(this.#watch, this.#arming.left(performance.now()));
  }

  #actions(): Action[] {
    return actionsOf(this.#now, answerer());
  }

  /** The answer that waits for its second step. */
  #stepped(): Action | undefined {
    return this.#step ? this.#actions().find((action) => action.id === this.#step) : undefined;
  }

  /** The reason why nothing can be answered now; empty if something can. */
  #hindrance(): string {
    if (this.#now.observe_only) return UNAVAILABLE.observe_only;
    if (!plexus.may('approve')) return UNAVAILABLE.scope;
    return plexus.live.value ? '' : t.offline;
  }

  /** The reason why this answer cannot be given now; empty if it can. */
  #obstacle(action: Action): string {
    if (this.status === 'sending') return t.sending;
    if (this.status === 'unknown') return t.unknown;
    const { sense, lasting } = ruleOf(action);
    if (sense === 'defer') return '';
    if (action.unavailable) return UNAVAILABLE[action.unavailable];
    if (!plexus.live.value) return t.offline;
    if (sense !== 'allow') return '';
    if (lasting && this.#draft.edits(this.#now)) return t.editedOnce;
    if (this.#now.display_truncated) return t.readFirst;
    if (!this.#read) return sizeOf(this.#now.display).long ? t.readFirst : t.seeFirst;
    if (this.#changed) return t.changedSince;
    return '';
  }

  #mayPress(action: Action): boolean {
    if (!this.open) return false;
    this.#watch();
    const obstacle = this.#obstacle(action);
    // A button that can never be pressed shows the reason at once.
    const words = obstacle && obstacle !== t.readFirst && obstacle !== t.seeFirst ? obstacle : this.#arming.armed(performance.now()) ? obstacle : t.early;
    if (words) this.#tell(words, true);
    return words === '';
  }

  #tell(words: string, bad = false): void {
    this.#say = words;
    this.#bad = bad;
    this.requestUpdate();
  }

  /** Handles a press of an answer. `held`: the button was held down long enough. */
  #press(action: Action, held = false): void {
    if (!this.#mayPress(action)) return;
    if (action.role === 'later') return this.#toDesk();
    // An answer that also covers later requests is confirmed in a separate step.
    if (ruleOf(action).lasting && this.#step !== action.id) return this.#toStep(action);
    if (action.hold && !held) return this.#tell(t.holdHint, true);
    const answer = this.#answerOf(action);
    if (answer) void this.#send(answer);
  }

  /** Leaves the request open for another device. */
  #toDesk(): void {
    leave(this.#now.request_id);
    this.renderRoot.querySelector<HTMLElement>('article')?.focus({ preventScroll: true });
    this.#ended(true);
  }

  #resume = (): void => {
    resume(this.#now.request_id);
    this.rearm();
  };

  /** Shows what an answer means, with a button for it; with '' goes back. */
  #toStep(action: Action | null): void {
    this.#step = action?.id ?? '';
    this.#typing = false;
    this.#say = '';
    this.rearm();
    this.requestUpdate();
    this.renderRoot.querySelector<HTMLElement>('article')?.focus({ preventScroll: true });
  }

  /** The complete answer; null if something is missing, which is said. */
  #answerOf(action: Action): Answer | null {
    const request = this.#now;
    const answer: Answer = { ...action.answer };
    if (action.role === 'send') {
      const part = this.#draft.complete(request);
      if ('words' in part) {
        if (part.question) this.renderRoot.querySelector<HTMLElement>(`fieldset[data-question="${CSS.escape(part.question.id)}"] :is(input, textarea)`)?.focus();
        this.#tell(part.words, true);
        return null;
      }
      return { ...answer, ...part };
    }
    const { sense } = ruleOf(action);
    const reason = this.#draft.reason.trim();
    if (sense === 'deny' && request.allow_reason && reason) answer.reason = reason;
    if (sense === 'allow' && this.#draft.edits(request)) answer.edited = this.#draft.edit ?? '';
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
    const { key } = event;
    if (/^[1-9]$/.test(key) && this.#pickNth(Number(key))) return true;
    const step = this.#stepped();
    const action = step ? [step].find((one) => one.key === key) : this.#keyed(key);
    if (action) {
      if (event.repeat) return true;
      if (action.hold && (step || !ruleOf(action).lasting)) this.#holdOf(action)?.begin();
      else this.#press(action);
      return true;
    }
    if (event.repeat) return false;
    switch (key) {
      case 'r':
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
        return step !== undefined;
    }
  }

  /** The answer of a key: of a letter any, of a digit one that shows it. */
  #keyed(key: string): Action | undefined {
    const actions = this.#actions();
    return (/^[1-9]$/.test(key) ? barOf(actions).bar : actions).find((action) => action.key === key);
  }

  /** Picks the nth item of a choice, or takes it back. */
  #pickNth(n: number): boolean {
    const request = this.#now;
    const item = request.type === 'pick' && !request.options.length && !questionsOf(request).length ? request.items?.[n - 1] : undefined;
    if (!item) return false;
    this.#draft.pick(request, item.id, request.multi ? !this.#draft.picked.has(item.id) : true);
    this.requestUpdate();
    return true;
  }

  /** Handles the release of a key: ends the hold that it began. */
  keyUp(): void {
    this.renderRoot.querySelectorAll<PlexusHold>('plexus-hold').forEach((hold) => hold.stop());
  }

  override focus(): void {
    this.rearm();
    this.renderRoot.querySelector<HTMLElement>('article')?.focus();
    this.scrollIntoView({ block: 'nearest' });
  }

  #holdOf(action: Action): PlexusHold | null {
    return this.renderRoot.querySelector<PlexusHold>(`plexus-hold[data-action="${CSS.escape(action.id)}"]`);
  }

  #enter = (event: KeyboardEvent, action: Action): void => {
    if (event.key !== 'Enter' || ruleOf(action).sense !== 'allow') return;
    event.preventDefault();
    this.#tell(t.enterNever, true);
  };

  /** Enter in a one-line field does nothing. */
  #noEnter = (event: KeyboardEvent): void => {
    if (event.key === 'Enter' && !event.isComposing) event.preventDefault();
    if (event.key === 'Escape') this.focus();
  };

  /** Escape ends a second step, and what was opened. */
  #escape = (event: KeyboardEvent): void => {
    if (event.key !== 'Escape' || event.defaultPrevented || !(this.#step || this.#typing)) return;
    event.preventDefault();
    event.stopPropagation();
    this.#toStep(null);
  };

  // --- fields and tools ----------------------------------------------------------------------------------------------------------

  #toField(selector: string): void {
    this.rearm();
    this.requestUpdate();
    void this.updateComplete.then(() => this.renderRoot.querySelector<HTMLElement>(selector)?.focus());
  }

  #openReason(): void {
    this.#reasonOpen = !this.#reasonOpen || this.#draft.reason !== '';
    this.#toField('.reason');
  }

  #openEdit(): void {
    const { editable } = this.#now;
    if (!editable) return;
    this.#draft.edit = this.#draft.edit === null ? editable.value : null;
    this.#toField('.edit');
  }

  #openWord(): void {
    this.#typing = true;
    this.#draft.word = '';
    this.#toField('.typed');
  }

  // --- drawing ------------------------------------------------------------------------------------------------------------------

  override render() {
    const request = this.#now;
    const agent = oneLine(request.runtime_id) || t.runtimeUnknown;
    const left = isLeft(request.request_id) && this.status === 'open';
    return html`<article
      tabindex="-1"
      aria-label=${t.card(agent)}
      data-status=${left ? 'left' : this.status}
      data-risk=${riskOf(request)}
      data-request=${request.request_id}
      data-type=${request.type}
      ?data-plain=${asksOnly(request) && riskOf(request) !== 'danger'}
      @keydown=${this.#escape}
    >${left ? this.#leftLine(request) : this.status === 'closed' ? this.#outcome(request) : this.#bar(request, agent)}</article>`;
  }

  #bar(request: Request, agent: string): TemplateResult {
    const { words, target, more } = headOf(request);
    return html`<header>
        ${face(request.runtime_id)}
        <span class="what"><b class="who">${agent}</b> ${words}${target ? html` <b class="target" title=${`${target.head}${target.tail}`}><bdi class="from">${target.head}</bdi><bdi class="to">${target.tail}</bdi></b>` : nothing}${more ? html` <span class="counts">${more}</span>` : nothing}</span>
        ${this.#session(request)} ${this.#when(request)}
      </header>
      <div class="body">${this.#changed ? this.#changedNote() : nothing}${asksOnly(request) ? [this.#quoted(request), this.#exact(request)] : [this.#exact(request), this.#quoted(request)]}${this.#warnings(request)}${this.#reasonField(request)}</div>
      <p class="say" role="status" ?data-bad=${this.#bad && this.#say !== ''}>${this.#words(request)}${this.status === 'unknown' && !this.#asking ? html`<button type="button" class="tool ask" @click=${this.#askNow}>${t.unknownNow}</button>` : nothing}</p>
      <div class="actions" data-arming="true">${this.#facts(request)}${this.#answers(request, agent)}</div>`;
  }

  /** The text below the display: the outcome of the last press, else the reason that prevents an answer. */
  #words(request: Request): string {
    if (this.#say) return this.#say;
    const actions = this.#actions();
    if (!actions.length && !request.observe_only) return t.cannot(request.request_id);
    const hindrance = this.#hindrance();
    if (hindrance) return this.status === 'open' ? hindrance : '';
    if (actions.some((action) => action.unavailable === 'risk')) return UNAVAILABLE.risk;
    return this.#read || !sizeOf(request.display).long ? '' : t.readFirst;
  }

  /** The exact display of the action. A form shows its questions instead; the sent text can be opened. */
  #exact(request: Request): TemplateResult {
    const { shown } = apart(request);
    const unreadable = request.subject?.type === 'unreadable';
    const question = request.subject?.type === 'question';
    const exact = html`<plexus-exact ?bare=${!question && !unreadable && request.subject?.type !== 'edit'} .display=${shown} .truncated=${request.display_truncated ?? false} .bytes=${request.display_bytes} .edit=${request.subject ? request.subject.type === 'edit' : undefined}
      @read=${this.#exactRead} @opened=${this.rearm} @whole=${this.#fetchWhole}></plexus-exact>`;
    const fields = fieldsOf(request, { draft: this.#draft, changed: () => this.#tell(''), keydown: this.#noEnter });
    if (!question) return html`<section><h2 class="sr">${t.exactly}</h2>${unreadable ? html`<p class="unreadable">${t.unreadable}</p>` : nothing}${exact}</section>${fields}`;
    const [first] = request.subject?.type === 'question' ? request.subject.questions : [];
    const single = questionsOf(request).length === 0;
    return html`${single ? html`<p class="said asked"><bdi>${readable(first?.text ?? '')}</bdi></p>` : nothing}${fields}${single ? html`<span class="form-end"></span>` : nothing}
      <details class="sent" ?open=${!formIsWhole(request)} @toggle=${this.rearm}><summary>${t.sent}</summary>${exact}</details>`;
  }

  #exactRead = (): void => {
    if (this.#now.subject?.type !== 'question' || !formIsWhole(this.#now)) this.#wasRead();
  };

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
    this.rearm();
  };

  #wasRead = (): void => {
    this.#read = true;
    // A change while the card was shown counts as seen once the user confirms it.
    if (!this.#changed) markSeen(this.#now);
    if (this.#say === t.readFirst || this.#say === t.seeFirst) this.#tell('');
    this.requestUpdate();
  };

  #warnings(request: Request): TemplateResult | typeof nothing {
    if (!request.warnings.length) return nothing;
    return html`<section class="warnings"><h2 class="sr">${t.warns}</h2><ul>${request.warnings.map((warning) => html`<li>${oneLine(warning)}</li>`)}</ul></section>`;
  }

  /** The session; within its own page a card does not name it. */
  #session(request: Request): TemplateResult | typeof nothing {
    if (this.layout === 'dock') return nothing;
    const title = oneLine(plexus.sessions.value.get(request.session_id)?.title) || t.untitled;
    return html`<a class="session" href=${plexus.href({ page: 'session', session_id: request.session_id })} title=${t.session(title)} aria-label=${t.session(title)}>“<bdi>${title}</bdi>”</a>`;
  }

  /** The risk with its reasons, then where it would happen, and who else looks at it. */
  #facts(request: Request): TemplateResult {
    const risk = riskOf(request);
    const reasons = reasonsOf(request);
    const level = oneLine((request as { danger_level?: unknown }).danger_level);
    const session = plexus.sessions.value.get(request.session_id);
    const viewers = plexus.viewers.value.get(request.session_id) ?? [];
    const folder = session && !session.cwd ? t.folderUnknown : folderOf(request, session?.cwd);
    const name = folder.slice(folder.lastIndexOf('/') + 1);
    const plain = asksOnly(request) && risk !== 'danger';
    return html`<div class="facts">
      ${plain ? nothing : html`<span class="why"><b class="risk" title=${t.riskHints[risk] ?? ''}>${t.risks[risk]}</b> ${[...reasons, ...(level && level !== 'normal' && risk !== 'danger' ? [t.level(level)] : [])].join('; ')}</span>`}
      <span class="where">
        ${folder ? html`<code class="folder" title=${folder}><bdi class="from">${name ? folder.slice(0, folder.length - name.length) : folder}</bdi><bdi class="to">${name}</bdi></code>` : nothing}
        ${request.changed && !this.#changed ? html`<span>${t.changedBefore}</span>` : nothing}
        ${viewers.length ? html`<span class="lookers">${t.lookers(viewers.map((one) => oneLine(one.name)).join(', '))}</span>` : nothing}
      </span>
    </div>`;
  }

  #when(request: Request): TemplateResult {
    const now = plexus.now.value;
    const asked = Date.parse(request.opened_at);
    const left = request.expires_at ? Date.parse(request.expires_at) - now : NaN;
    const parts = [Number.isNaN(asked) ? '' : span(now - asked), Number.isNaN(left) ? '' : left > 0 ? t.expiresIn(span(left)) : t.expiring];
    return html`<span class="when" ?data-soon=${left < SOON_MS}>${parts.filter(Boolean).join(' · ')}</span>`;
  }

  /** The agent's text that the gateway does not show. */
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

  #reasonField(request: Request): TemplateResult | typeof nothing {
    if (!this.#reasonOpen || !request.allow_reason) return nothing;
    return html`<div class="field">
      <label for="reason">${t.reason}</label>
      <input id="reason" class="reason" type="text" maxlength=${REASON_CHARS} autocomplete="off" .value=${this.#draft.reason}
        @input=${(event: Event) => { this.#draft.reason = (event.target as HTMLInputElement).value; this.requestUpdate(); }} @keydown=${this.#noEnter} />
    </div>`;
  }

  #answers(request: Request, agent: string): TemplateResult | typeof nothing {
    const actions = this.#actions();
    if (!actions.length || request.observe_only || !plexus.may('approve')) return nothing;
    const step = this.#stepped();
    if (this.#typing) return this.#typed(step ?? barOf(actions).bar[0]!);
    if (step) return this.#confirm(step, agent);
    const { bar, menu } = barOf(actions);
    const items = this.#items(request, menu, actions);
    return html`<div class="answers" data-count=${bar.length}>
      ${bar.map((action, n) => this.#button(action, n === 0 && ruleOf(action).primary))}
      ${items.length ? html`<plexus-menu label=${t.more} .items=${items} @click=${this.rearm}></plexus-menu>` : nothing}
    </div>`;
  }

  /** The items of the menu: the other answers, then the tools. */
  #items(request: Request, menu: Action[], actions: Action[]): MenuItem[] {
    const deny = actions.some((action) => action.key === 'd');
    const answers = menu.map((action): MenuItem => {
      const { verb, lasting, sense } = ruleOf(action);
      const label = lasting || sense === 'allow' ? `${verb}…` : verb;
      return { label, note: action.label, id: action.id, run: () => (sense === 'allow' || lasting ? this.#toStep(action) : this.#press(action)) };
    });
    const tools: (MenuItem | null)[] = [
      request.allow_reason && deny ? { label: t.denyWhy, id: 'reason', run: () => this.#openReason() } : null,
      request.editable ? { label: this.#draft.edit === null ? t.edit : t.stopEdit, id: 'edit', run: () => this.#openEdit() } : null,
      actions.some((action) => action.hold && !action.unavailable) ? { label: t.typeInstead, id: 'word', run: () => this.#openWord() } : null,
    ];
    return [...answers, ...tools.filter((tool) => tool !== null)];
  }

  /** The second step of an answer: what it means, the agent's label for it, and a button of its own. */
  #confirm(action: Action, agent: string): TemplateResult {
    const { lasting, sense } = ruleOf(action);
    return html`<div class="step">
      <p>${lasting ? t.lasts[sense](agent) : nothing} ${action.label ? html`${t.labelled} “<bdi>${action.label}</bdi>”.` : nothing}</p>
      <div class="answers" data-count="2">
        ${this.#button({ ...action, label: '' }, true)}
        <button type="button" class="answer" data-action="back" @click=${() => this.#toStep(null)}><strong>${t.back}</strong></button>
        ${action.hold ? html`<plexus-menu label=${t.more} .items=${[{ label: t.typeInstead, id: 'word', run: () => this.#openWord() }]} @click=${this.rearm}></plexus-menu>` : nothing}
      </div>
    </div>`;
  }

  /** The alternative to holding a button: type a word, then press. */
  #typed(action: Action): TemplateResult {
    const ready = this.#draft.word.trim().toLowerCase() === t.typeWord;
    return html`<div class="word">
      <div class="field">
        <label for="typed">${t.typeLabel}</label>
        <input id="typed" class="typed" type="text" autocomplete="off" autocapitalize="off" spellcheck="false" .value=${this.#draft.word} @input=${(event: Event) => { this.#draft.word = (event.target as HTMLInputElement).value; this.requestUpdate(); }} @keydown=${this.#noEnter} />
      </div>
      <div class="answers" data-count="2">
        <button type="button" class="answer primary typed-go" data-sense="allow" aria-disabled=${ready && !this.#obstacle(action) ? 'false' : 'true'}
          @keydown=${(event: KeyboardEvent) => this.#enter(event, action)} @click=${() => (ready ? this.#press(action, true) : this.#tell(t.typeLabel, true))}><strong>${this.#verbOf(action)}</strong></button>
        <button type="button" class="answer" data-action="back" @click=${() => this.#toStep(null)}><strong>${t.back}</strong></button>
      </div>
    </div>`;
  }

  #verbOf(action: Action): string {
    const request = this.#now;
    const { sense, lasting, verb } = ruleOf(action);
    if (sense === 'allow' && !lasting && this.#draft.edits(request)) return t.allowEdited;
    if (action.key === 'd' && this.#draft.reason.trim() && request.allow_reason) return t.denyNow;
    return verb;
  }

  /** One answer. */
  #button(action: Action, primary: boolean): TemplateResult {
    const off = this.#obstacle(action) !== '';
    const size = primary ? 'primary' : '';
    if (action.hold) {
      return html`<plexus-hold
        class="answer-hold ${size}"
        data-action=${action.id}
        data-key=${action.key ?? ''}
        data-sense="allow"
        .verb=${this.#verbOf(action)}
        .label=${action.label}
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
      data-role=${action.role}
      data-sense=${ruleOf(action).sense}
      data-key=${action.key ?? ''}
      aria-disabled=${off ? 'true' : 'false'}
      @keydown=${(event: KeyboardEvent) => this.#enter(event, action)}
      @click=${() => this.#press(action)}
    ><strong>${this.#verbOf(action)}${action.key ? html`<kbd aria-hidden="true">${action.key}</kbd>` : nothing}</strong>${action.label ? html`<small title=${action.label}>“<bdi>${action.label}</bdi>”</small>` : nothing}</button>`;
  }

  #leftLine(request: Request): TemplateResult {
    return html`<div class="outcome" role="status" data-sense="none">${icon('clock', 14)}<span class="line"><strong>${t.left}</strong> · <code>${wordsOf(request)}</code></span>
      <button type="button" class="tool" data-action="resume" @click=${this.#resume}>${t.answerHere}</button></div>`;
  }

  /** The receipt: what was answered, by whom, when, and to what. */
  #outcome(request: Request): TemplateResult {
    const receipt = this.#receipt;
    const asked = html`<code>${wordsOf(request)}</code>`;
    if (!receipt) return html`<div class="outcome" role="status" data-sense="none">${icon('info', 14)}<span class="line"><strong>${this.#closedWords || t.gone}</strong> · ${asked}</span></div>`;
    const outcome = outcomeOf(receipt, request, plexus.me.value?.device_id);
    const mark = { allow: 'check', deny: 'close', none: 'info' } as const;
    const took = Date.parse(outcome.at ?? '') - Date.parse(request.opened_at);
    const parts = [outcome.who, Number.isNaN(took) ? '' : t.after(span(took))].filter(Boolean);
    return html`<div role="status"><div class="outcome" data-sense=${outcome.sense}>${icon(mark[outcome.sense], 14)}<span class="line"><strong>${outcome.what}</strong>${parts.map((part) => ` · ${part}`)} · ${asked}</span></div>
      ${outcome.edited ? html`<p class="more-said">${t.editedTo} <code>${outcome.edited}</code></p>` : nothing}${outcome.reason ? html`<p class="more-said">${t.because(outcome.reason)}</p>` : nothing}${this.#late ? html`<p class="more-said late">${t.late}</p>` : nothing}</div>`;
  }
}
customElements.define('plexus-card', PlexusCard);
