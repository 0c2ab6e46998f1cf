// One answer to several requests: a dialog that lists what will be answered and what is left out and why, and afterwards what became of
// each. Each answer carries its own digest and its own key.

import { css, html, nothing, type TemplateResult } from 'lit';
import { PlexusElement } from '../lib/element.js';
import { projectOf } from '../lib/project.js';
import { oneLine } from '../lib/text.js';
import { plexus } from '../plexus.js';
import { text } from '../text/en.js';
import '../ui/dialog.js';
import { toast } from '../ui/say.js';
import { UNAVAILABLE } from './actions.js';
import { Answering, type Sent } from './answering.js';
import { Arming } from './arming.js';
import { wordsOf } from './asked.js';
import { answerer } from './me.js';
import { outcomeOf } from './outcome.js';
import { wasSeen } from './seen.js';
import { post } from './send.js';
import { leftOut, planOf, sendAll, type Plan, type Sense } from './several.js';
import type { Request } from './wire.js';

const t = text.request.many;

/** Maximum length of a reason, in characters; the gateway accepts no longer one. */
const REASON_CHARS = 2_000;
/** Interval of the check whether the button accepts a press, ms. */
const WATCH_MS = 80;
/** Requests that are listed; the others are counted. More would be read by nobody. */
const LISTED = 200;

type Phase = 'closed' | 'asking' | 'sending' | 'done';

/** `<plexus-many>`: opened by `ask`. Dispatches `answered` once answers were sent. */
export class PlexusMany extends PlexusElement {
  static override properties = { phase: { state: true }, armed: { state: true } };
  declare private phase: Phase;
  declare private armed: boolean;
  #sense: Sense = 'deny';
  /** The chosen requests, as they were shown at that time. */
  #asked: readonly Request[] = [];
  #reason = '';
  #say = '';
  #arming = new Arming(performance.now());
  #timer: ReturnType<typeof setInterval> | undefined;
  #size = -1;
  /** The number of answers that are sent, including those whose outcome is already known. */
  #total = 0;
  #outcomes = new Map<Answering, Sent>();

  constructor() {
    super();
    this.phase = 'closed';
    this.armed = false;
  }

  static override styles = [
    ...[PlexusElement.styles].flat(),
    css`
      :host { display: contents; }
      ul { display: flex; flex-direction: column; border: 1px solid var(--line); border-radius: var(--r-s); overflow-y: auto; max-block-size: min(34dvh, 320px); }
      ul:focus-visible { outline-offset: -2px; }
      li { display: flex; gap: 10px; align-items: baseline; padding: 5px 10px; min-inline-size: 0; }
      li + li { border-block-start: 1px solid var(--line); }
      li bdi { flex: 1 1 0; min-inline-size: 0; overflow-wrap: anywhere; font-family: var(--mono); font-size: var(--t-s); direction: ltr; display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3; overflow: hidden; }
      li small { flex: none; max-inline-size: 45%; color: var(--fg-mute); font-size: var(--t-s); overflow-wrap: anywhere; text-align: end; }
      h3 { margin-block-end: 4px; }
      .out { color: var(--fg-soft); }
      .out details + details { border-block-start: 1px solid var(--line); }
      summary { min-block-size: 32px; display: flex; align-items: center; gap: 6px; cursor: pointer; }
      summary::before { content: '▸'; color: var(--fg-mute); }
      details[open] summary::before { content: '▾'; }
      @media (pointer: coarse) { summary { min-block-size: 44px; } }
      .row { display: flex; gap: var(--s2); flex-direction: row-reverse; }
      .row button { min-block-size: 44px; flex: 0 1 auto; min-inline-size: 8rem; white-space: normal; }
      .row #go { background: var(--accent-solid); color: var(--on-accent); border-color: transparent; font-weight: 620; }
      .row #go.deny { background: var(--danger-solid); color: #fff; }
      .say { color: var(--danger); }
      .say:not(:empty) { margin-block-end: 8px; }
      .said { color: var(--fg-mute); }
      @media (max-width: 599px) { .row button { flex: 1 1 0; } }
    `,
  ];

  override connectedCallback(): void {
    super.connectedCallback();
    this.#timer = setInterval(this.#watch, WATCH_MS);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    clearInterval(this.#timer);
  }

  /** Asks whether to answer all of these requests. */
  ask(sense: Sense, requests: readonly Request[]): void {
    // The outcome of the answers under way is shown first.
    if (this.phase === 'sending') return;
    this.#sense = sense;
    this.#asked = requests;
    this.#reason = '';
    this.#say = '';
    this.#size = -1;
    this.#outcomes.clear();
    this.phase = 'asking';
  }

  /** The plan of the answers that would be sent now. */
  #plan(): Plan {
    return planOf(this.#asked, this.#sense, { now: plexus.requests.value, device: answerer(), seen: wasSeen, reason: this.#reason.trim() });
  }

  #watch = (): void => {
    if (this.phase === 'asking') this.armed = this.#arming.armed(performance.now());
  };

  protected override updated(): void {
    if (this.phase !== 'asking') return;
    // Another number of requests is another question.
    const { length } = this.#plan().will;
    if (length === this.#size) return;
    this.#size = length;
    this.#arming.again(performance.now());
    this.armed = false;
  }

  /** The reason why nothing can be sent now; empty if it can. */
  #obstacle(): string {
    if (!plexus.may('approve')) return UNAVAILABLE.scope;
    if (!plexus.live.value) return text.request.offline;
    return '';
  }

  #press = (): void => {
    const plan = this.#plan();
    // The number on the button is the number that is sent.
    const words = this.#obstacle() || (plan.will.length === 0 || plan.will.length !== this.#size || !this.#arming.armed(performance.now()) ? text.request.early : '');
    this.#say = words;
    this.requestUpdate();
    if (!words) void this.#send(plan.will.map(({ request, answer }) => new Answering(request, answer, post)));
  };

  #enter = (event: KeyboardEvent): void => {
    if (event.key !== 'Enter' || this.#sense === 'deny') return;
    event.preventDefault();
    this.#say = text.request.enterNever;
    this.requestUpdate();
  };

  async #send(all: readonly Answering[]): Promise<void> {
    this.phase = 'sending';
    this.#total = this.#outcomes.size + all.length;
    await sendAll(all, (answering, sent) => {
      this.#outcomes.set(answering, sent);
      if (sent.is === 'refused') void plexus.reread(answering.request.request_id);
      this.requestUpdate();
    });
    this.dispatchEvent(new Event('answered'));
    // If nothing remains to be read, a line reports it.
    if (this.phase === 'sending' && this.#by('won').length < this.#outcomes.size) this.phase = 'done';
    else {
      toast(this.#sum());
      this.#closed();
    }
  }

  #by(is: Sent['is']): [Answering, Sent][] {
    return [...this.#outcomes].filter(([, sent]) => sent.is === is);
  }

  /** The outcome of all answers, in one sentence. */
  #sum(): string {
    const won = this.#by('won').length;
    const rest = this.#outcomes.size - won;
    return `${this.#sense === 'allow' ? t.allowed(won) : t.denied(won)}${rest ? ` ${t.rest(rest)}` : ''}`;
  }

  #again = (): void => {
    const unknown = this.#by('unknown').map(([answering]) => answering);
    for (const answering of unknown) this.#outcomes.delete(answering);
    if (unknown.length) void this.#send(unknown);
  };

  #closed = (): void => {
    if (this.phase === 'closed') return;
    this.phase = 'closed';
    this.dispatchEvent(new Event('closed'));
  };

  override render() {
    const plan = this.phase === 'asking' ? this.#plan() : null;
    const n = plan?.will.length ?? 0;
    const heading = this.phase === 'asking' ? (this.#sense === 'allow' ? t.allowTitle(n) : t.denyTitle(n)) : this.phase === 'sending' ? t.sending(this.#outcomes.size, this.#total) : this.phase === 'done' ? this.#sum() : '';
    return html`<plexus-dialog .open=${this.phase !== 'closed'} heading=${heading} @close=${this.#closed}>
      ${plan ? this.#asking(plan) : this.phase === 'done' ? this.#done() : this.phase === 'sending' ? html`<p class="said" role="status">${t.wait}</p>` : nothing}
    </plexus-dialog>`;
  }

  #items(requests: readonly Request[], label: string, note: (request: Request) => string): TemplateResult {
    return html`<ul tabindex="0" aria-label=${label}>
      ${requests.slice(0, LISTED).map((request) => html`<li><bdi>${wordsOf(request)}</bdi><small>${note(request)}</small></li>`)}
      ${requests.length > LISTED ? html`<li><small>${t.moreListed(requests.length - LISTED)}</small></li>` : nothing}
    </ul>`;
  }

  #from = (request: Request): string => {
    const session = plexus.sessions.value.get(request.session_id);
    return [oneLine(request.runtime_id), session?.cwd ? projectOf(session).name : ''].filter(Boolean).join(' · ');
  };

  #asking(plan: Plan): TemplateResult {
    const { will } = plan;
    const reasons = will.filter(({ request }) => request.allow_reason).length;
    const obstacle = this.#obstacle();
    const verb = this.#sense === 'allow' ? t.allowDo(will.length) : t.denyDo(will.length);
    const out = [...leftOut(plan)];
    return html`${will.length ? html`<section class="will"><h3>${this.#sense === 'allow' ? t.willAllow : t.willDeny}</h3>${this.#items(will.map(({ request }) => request), this.#sense === 'allow' ? t.willAllow : t.willDeny, this.#from)}</section>` : nothing}
      ${out.length
        ? html`<section class="out"><h3>${t.leftOut(plan.out.length)}</h3>
            ${out.map(([why, requests]) => html`<details><summary>${t.why[why](requests.length)}</summary>${this.#items(requests, t.why[why](requests.length), this.#from)}</details>`)}</section>`
        : nothing}
      ${this.#sense === 'deny' && reasons
        ? html`<label class="field">${reasons === will.length ? t.reason : t.reasonFor(reasons, will.length)}
            <input id="reason" maxlength=${REASON_CHARS} autocomplete="off" .value=${this.#reason} @input=${(event: Event) => { this.#reason = (event.target as HTMLInputElement).value; }} @keydown=${(event: KeyboardEvent) => { if (event.key === 'Enter') event.preventDefault(); }} />
          </label>`
        : nothing}
      <div slot="foot"><p class="say" role="status">${this.#say || obstacle}</p>
        <div class="row">
          ${will.length ? html`<button type="button" id="go" class=${this.#sense} aria-disabled=${obstacle || !this.armed ? 'true' : 'false'} @keydown=${this.#enter} @click=${this.#press}>${verb}</button>` : nothing}
          <button type="button" id="cancel" @click=${this.#dismiss}>${text.common.cancel}</button>
        </div></div>`;
  }

  #done(): TemplateResult {
    const lost = [...this.#by('lost'), ...this.#by('closed')];
    const refused = this.#by('refused');
    const unknown = this.#by('unknown');
    const me = plexus.me.value?.device_id;
    const outcome = new Map(lost.map(([{ request }, sent]) => [request.request_id, 'receipt' in sent && sent.receipt ? outcomeOf(sent.receipt, request, me).text : sent.is === 'closed' ? sent.words : '']));
    const words = new Map(refused.map(([{ request }, sent]) => [request.request_id, sent.is === 'refused' ? sent.words : '']));
    const part = (found: [Answering, Sent][], heading: string, note: (request: Request) => string) =>
      found.length ? html`<section><h3>${heading}</h3>${this.#items(found.map(([{ request }]) => request), heading, note)}</section>` : nothing;
    return html`${part(lost, t.lost(lost.length), (request) => outcome.get(request.request_id) ?? '')}
      ${part(refused, t.refused(refused.length), (request) => words.get(request.request_id) ?? '')}
      ${part(unknown, t.unknown(unknown.length), this.#from)}
      <div slot="foot" class="row">
        ${unknown.length ? html`<button type="button" id="again" @click=${this.#again}>${text.request.unknownNow}</button>` : nothing}
        <button type="button" id="close" @click=${this.#dismiss}>${text.common.close}</button>
      </div>`;
  }

  #dismiss = (): void => this.#closed();
}
customElements.define('plexus-many', PlexusMany);
