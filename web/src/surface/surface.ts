// `<plexus-surface>`: what an agent drew, in a frame that says who drew it. Whatever is drawn stays inside: it has no styles of its own, no
// place outside of the frame, and nothing in it answers anything but the surface's own question.
import { html, nothing, type PropertyValues } from 'lit';
import { PlexusElement } from '../lib/element.js';
import { cut, oneLine } from '../render/visible.js';
import { rendered } from '../render/style.js';
import { text as words } from '../text/en.js';
import { icon } from '../ui/icons.js';
import { content } from './content.js';
import { inputs } from './inputs.js';
import { layout } from './layout.js';
import { SurfaceModel, type Place } from './model.js';
import { plain } from './plain.js';
import { draw, keyOf, type Drawing, type Scene } from './scene.js';
import { style } from './style.js';
import { DRAWN_MAX, TITLE_MAX, type Action, type Json, type Surface } from './types.js';

const t = words.surface;

/** Maximum length of the JSON in the fold, in characters. */
const RAW_MAX = 50_000;
/** Maximum length of an agent's name, in characters. */
const AGENT_MAX = 80;

/** A person acted: `detail` is what to send. Whoever sends it says so with `respondWith`. */
export class SurfaceActionEvent extends CustomEvent<Action> {
  /** The reply that was promised; null if nobody sends the action. */
  reply: Promise<unknown> | null = null;
  constructor(action: Action) { super('surface-action', { detail: action, bubbles: true, composed: true }); }
  respondWith(reply: Promise<unknown>): void { this.reply = reply; }
}

type Status = { is: 'none' } | { is: 'sending' } | { is: 'sent'; answer: boolean; rev: number } | { is: 'failed'; why: string };
interface Modal { content: Place; label: string; opener: HTMLElement | null }

export class PlexusSurface extends PlexusElement {
  static override properties = {
    surface: { attribute: false }, agent: {}, session: {}, layout: { reflect: true }, stale: { type: Boolean }, prompts: { attribute: false }, approves: { attribute: false },
    status: { state: true }, modal: { state: true }, unfolded: { state: true },
  };
  static override styles = [...[PlexusElement.styles].flat(), rendered, style];
  declare surface: Surface | null;
  /** The name of the agent. */
  declare agent: string;
  /** The session, so that what a person allowed in one counts for it alone. */
  declare session: string;
  /** `inline`: in a conversation, of limited height; `full`: in a place of its own; `tile`: one of many, of limited height and without its text. */
  declare layout: 'inline' | 'full' | 'tile';
  /** Whether the surface may have changed since: there is no connection. */
  declare stale: boolean;
  /** Whether this device may prompt, and answer. */
  declare prompts: boolean;
  declare approves: boolean;
  declare private status: Status;
  declare private modal: Modal | null;
  /** Whether the fold with its text is open. */
  declare private unfolded: boolean;

  readonly model = new SurfaceModel();
  #editing: string | null = null;
  #pressing = false;
  /** Inputs that the gateway took with a revision. */
  #taken: { given: { [pointer: string]: Json }; rev: number } | null = null;
  readonly #touched = new Set<string>();
  readonly #kept = new Map<string, unknown>();
  readonly #uids = new Map<string, number>();
  readonly #scene: Scene;

  constructor() {
    super();
    this.surface = null;
    this.agent = '';
    this.session = '';
    this.layout = 'inline';
    this.stale = false;
    this.prompts = false;
    this.approves = false;
    this.status = { is: 'none' };
    this.modal = null;
    this.unfolded = false;
    const self = this;
    this.#scene = {
      model: this.model,
      get agent() { return self.#agent; },
      get session() { return self.session; },
      get fixed() { return self.#fixed; },
      left: 0,
      locked: (id) => this.#locked(id),
      act: (place, event, item) => this.#act(place, event, item),
      edit: (place, pointer, value) => this.#edit(place, pointer, value),
      editing: (place, pointer) => this.#focus(place, pointer),
      touched: (place) => this.#touched.has(keyOf(place)),
      kept: <T>(place: Place, first: T): T => (this.#kept.has(keyOf(place)) ? (this.#kept.get(keyOf(place)) as T) : first),
      keep: (place, value) => { this.#kept.set(keyOf(place), value); this.requestUpdate(); },
      uid: (place) => this.#uid(place),
      openModal: (_place, to, label) => { this.modal = { content: to, label, opener: this.shadowRoot?.activeElement as HTMLElement | null }; },
      draw: { ...layout, ...inputs, ...content },
    };
  }

  get #agent(): string {
    return oneLine(cut(this.agent, AGENT_MAX)) || t.someAgent;
  }

  protected override willUpdate(changed: PropertyValues): void {
    const surface = this.surface;
    if (!changed.has('surface') || !surface) return;
    const other = this.model.surface?.surface !== surface.surface;
    this.model.take(surface, this.#editing);
    this.#settle();
    if (other) {
      this.#taken = null;
      this.#touched.clear();
      this.#kept.clear();
      this.#uids.clear();
      this.status = { is: 'none' };
      this.modal = null;
    }
    if (this.modal && (surface.closed || !this.model.component(this.modal.content.id))) this.modal = null;
    if (this.status.is === 'sent' && surface.rev > this.status.rev + 1) this.status = { is: 'none' };
  }

  protected override updated(changed: PropertyValues): void {
    for (const box of this.renderRoot.querySelectorAll<HTMLElement>('.drawn, .modal')) {
      // Parts that scroll can be scrolled by the keyboard.
      if (box.scrollHeight > box.clientHeight + 1 || box.scrollWidth > box.clientWidth + 1) box.tabIndex = 0; else box.removeAttribute('tabindex');
    }
    if (!changed.has('modal')) return;
    const before = changed.get('modal') as Modal | null | undefined;
    if (this.modal && !before) this.renderRoot.querySelector<HTMLElement>('.modal .close')?.focus();
    else if (!this.modal && before?.opener?.isConnected) before.opener.focus();
  }

  // --- what a person does -------------------------------------------------------------------------------------------------

  /** Whether fields cannot be changed. */
  get #fixed(): boolean {
    const { surface } = this;
    return !surface || surface.closed === true || !(this.prompts || (surface.ask && this.approves));
  }

  #locked(id: string): string {
    const { surface } = this;
    if (!surface || surface.closed) return t.closed;
    const answers = surface.ask?.submit.includes(id) === true;
    if (answers ? !this.approves : !this.prompts) return answers ? t.mayNotAnswer : t.mayNot;
    if (this.stale) return t.offline;
    return this.status.is === 'sending' ? t.sending : '';
  }

  /** Forgets what was entered and taken, once the surface has come to the revision that has it: not before, so that no field flickers. */
  #settle(): void {
    if (!this.#taken || (this.surface?.rev ?? 0) < this.#taken.rev) return;
    this.model.sent(this.#taken.given);
    this.#taken = null;
  }

  #uid(place: Place): string {
    const key = keyOf(place);
    let n = this.#uids.get(key);
    if (n === undefined) { n = this.#uids.size; this.#uids.set(key, n); }
    return `c${n}`;
  }

  #focus(place: Place, pointer: string | null): void {
    if (pointer === null && this.#editing !== null) this.#touched.add(keyOf(place));
    this.#editing = pointer;
    if (pointer === null && !this.#pressing) this.requestUpdate();
  }

  /** A press began. What is wrong with the field that loses the focus is shown after it, so that nothing moves from under the pointer. */
  #pressed = (): void => {
    this.#pressing = true;
    const ended = () => {
      removeEventListener('pointerup', ended);
      removeEventListener('pointercancel', ended);
      // The click comes after this.
      setTimeout(() => { this.#pressing = false; this.requestUpdate(); }, 0);
    };
    addEventListener('pointerup', ended);
    addEventListener('pointercancel', ended);
  };

  #edit(place: Place, pointer: string, value: Json): void {
    this.model.edit(pointer, value);
    // A field that is being typed in shows what is wrong when it is left; others at once.
    if (this.#editing === null) this.#touched.add(keyOf(place));
    if (this.status.is === 'failed') this.status = { is: 'none' };
    this.requestUpdate();
  }

  #act(place: Place, event: string, item?: number | string): void {
    const { surface } = this;
    if (!surface || this.#locked(place.id)) return;
    const wrong = this.model.wrong(t.wrongForm);
    if (wrong.length) {
      for (const one of wrong) this.#touched.add(keyOf(one));
      this.status = { is: 'failed', why: t.wrongInputs(wrong.length) };
      return;
    }
    const given = this.model.inputs();
    const answer = surface.ask?.submit.includes(place.id) === true;
    const action = new SurfaceActionEvent({
      surface: surface.surface, rev: surface.rev, component: place.id, event, inputs: given,
      ...(place.scope ? { instance: place.scope } : {}), ...(item === undefined ? {} : { item }),
    });
    this.dispatchEvent(action);
    if (!action.reply) return;
    this.status = { is: 'sending' };
    action.reply.then(
      (reply) => {
        const said = (reply as { rev?: unknown } | null)?.rev;
        const rev = typeof said === 'number' ? said : surface.rev;
        this.#taken = { given, rev };
        this.#settle();
        this.status = { is: 'sent', answer, rev };
      },
      (error: unknown) => { this.status = { is: 'failed', why: t.failed(oneLine(cut(error instanceof Error ? error.message : String(error), 300)).replace(/\.$/, '')) }; },
    );
  }

  // --- rendering ------------------------------------------------------------------------------------------------------------

  override render() {
    const { surface } = this;
    if (!surface) return html`<div class="frame"><p class="drawn mute">${t.loading}</p></div>`;
    const title = oneLine(cut(surface.title ?? '', TITLE_MAX)) || oneLine(surface.surface);
    this.#scene.left = DRAWN_MAX;
    const body = this.model.component('root') ? draw(this.#scene, { id: 'root', scope: '' }, { above: [], flat: false }) : html`<p class="mute">${t.empty}</p>`;
    // Many side by side are no landmarks each: several may have the same name.
    return html`<section class=${surface.closed ? 'frame closed' : 'frame'} role=${this.layout === 'tile' ? 'group' : nothing} aria-label=${t.label(title, this.#agent)}>
      <header><h2><bdi>${title}</bdi></h2><span class="by">${icon('pencil', 12)}<bdi>${t.drawnBy(this.#agent)}</bdi></span>${this.#chips(surface)}</header>
      <div class=${this.modal ? 'stage over' : 'stage'}>
        <div class="drawn" ?inert=${Boolean(this.modal) || surface.closed === true} role="group" aria-label=${title} @pointerdown=${this.#pressed}>${body}</div>
        ${this.modal ? this.#overlay(this.modal) : nothing}
      </div>
      <div class=${`status ${this.status.is === 'failed' ? 'bad' : this.status.is === 'sent' ? 'good' : ''}`} role="status">${this.#said()}</div>
      ${this.layout === 'tile' ? nothing : this.#fold(surface)}
    </section>`;
  }

  #chips(surface: Surface): Drawing {
    return html`${surface.ask && !surface.closed ? html`<span class="chip accent">${icon('info', 12)} ${t.asks}</span>` : nothing}
      ${surface.pinned && this.layout === 'inline' ? html`<span class="chip">${t.pinned}</span>` : nothing}
      ${surface.closed ? html`<span class="chip">${t.closed}</span>` : this.stale ? html`<span class="chip warn">${t.stale}</span>` : nothing}`;
  }

  #overlay(modal: Modal): Drawing {
    const close = () => { this.modal = null; };
    const key = (event: KeyboardEvent) => { if (event.key === 'Escape') { event.stopPropagation(); event.preventDefault(); close(); } };
    return html`<div class="modal" role="dialog" aria-label=${t.label(modal.label, this.#agent)} @keydown=${key}>
      <div class="bar"><span class="title">${modal.label}</span><span class="by">${icon('pencil', 12)}<bdi>${t.drawnBy(this.#agent)}</bdi></span><button type="button" class="ghost icon close" aria-label=${t.closeModal} @click=${close}>${icon('close')}</button></div>
      <div class="inside">${draw(this.#scene, modal.content, { above: [], flat: false })}</div></div>`;
  }

  #said(): string {
    switch (this.status.is) {
      case 'none': return '';
      case 'sending': return t.sending;
      case 'sent': return this.status.answer ? t.answered : t.sent;
      case 'failed': return this.status.why;
    }
  }

  #fold(surface: Surface): Drawing {
    const toggled = (event: Event) => { this.unfolded = (event.target as HTMLDetailsElement).open; };
    return html`<details class="foot" @toggle=${toggled}><summary>${t.raw}</summary>${this.unfolded ? html`<h3>${t.rawText}</h3><pre tabindex="0">${plain(this.model)}</pre>
      <h3>${t.rawJson}</h3><pre tabindex="0">${JSON.stringify(surface, null, 2).slice(0, RAW_MAX)}</pre>` : nothing}</details>`;
  }
}
customElements.define('plexus-surface', PlexusSurface);
