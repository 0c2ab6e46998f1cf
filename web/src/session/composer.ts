// One file: the field in which the user writes to the agent. Drafts are stored on this device; Enter sends, Shift+Enter begins a new line.

import { css, html, nothing } from 'lit';
import { PlexusElement } from '../lib/element.js';
import { IMAGES, pasted, promptBody, readShots, type Shot } from '../lib/shots.js';
import { plexus, why } from '../plexus.js';
import { oneLine } from '../render/visible.js';
import { rendered } from '../render/style.js';
import { text as words } from '../text/en.js';
import { icon } from '../ui/icons.js';
import { announce } from '../ui/say.js';
import type { Files, SessionInfo } from '../wire/types.js';
import { mentionAt, mentioned, type Mention } from './mention.js';
import type { Conversation, SlashCommand } from './model.js';
import { style } from './style.js';

const w = words.session;

/** Maximum number of prompts that the arrow keys can recall. */
const HISTORY_MAX = 100;
/** Maximum number of suggested slash commands and files. */
const OFFERS_MAX = 8;
/** Delay after typing before files are requested, ms. */
const FILES_REST_MS = 120;
const DRAFT = 'plexus.draft.';
/** Whether the browser fits a field to its text. */
const FITS_ITSELF = CSS.supports('field-sizing', 'content');

/** Whether a file fits the word that is typed: its characters, in order. Offers may still be those of the word before. */
const fits = (file: string, query: string): boolean => {
  const path = file.toLowerCase();
  let at = -1;
  return [...query.toLowerCase()].every((one) => (at = path.indexOf(one, at + 1)) >= 0);
};

/** A suggestion while a word is typed: a command of the agent, or a file by its path. */
type Offered = { command: SlashCommand } | { file: string };

export class PlexusComposer extends PlexusElement {
  static override properties = { sessionId: {}, asked: { type: Boolean, reflect: true }, conversation: { attribute: false }, facts: { type: Number }, trouble: { state: true }, shots: { state: true }, offered: { state: true }, filesNote: { state: true }, chosen: { state: true }, starting: { state: true }, drafted: { state: true } };
  static override styles = [...[PlexusElement.styles].flat(), rendered, style, css`
    :host { display: block; height: auto; flex: none; background: none; }
    .how { color: var(--fg-mute); font-size: var(--t-s); padding-inline-start: 14px; }
    @media (pointer: coarse) { .how { display: none; } }
    /* While a request is open, its answers have the room: on a phone the field is one line, until it is used. */
    @media (max-width: 599px), (max-height: 560px) {
      :host([asked]) .box-in:not(:focus-within, [data-draft]) { display: flex; align-items: center; }
      :host([asked]) .box-in:not(:focus-within, [data-draft]) textarea { flex: 1 1 0; min-width: 0; height: 42px !important; padding-block: 8px; white-space: nowrap; overflow: hidden; }
      :host([asked]) .box-in:not(:focus-within, [data-draft]) .tools { flex: none; padding: 2px 4px; }
      :host([asked]) .box-in:not(:focus-within, [data-draft]) .tools > :not(#stop) { display: none; }
    }
  `];
  declare sessionId: string;
  /** Whether a request is open above. */
  declare asked: boolean;
  declare conversation: Conversation | null;
  /** Changes when modes, options or commands changed. */
  declare facts: number;
  declare private trouble: string;
  declare private shots: Shot[];
  declare private offered: Offered[];
  /** A note about the suggested files, or the reason why there are none. */
  declare private filesNote: string;
  declare private chosen: number;
  /** Whether the agent is being restarted. */
  declare private starting: boolean;
  /** Whether something is written in the field. */
  declare private drafted: boolean;
  #past: string[] = [];
  #at = -1;
  #loaded = '';
  #sending: Promise<void> = Promise.resolve();
  /** The file that is being named, and where offers for it were closed. */
  #mention: Mention | null = null;
  #closed = -1;
  #filesTimer: ReturnType<typeof setTimeout> | undefined;
  #filesAsked = 0;

  constructor() {
    super();
    this.sessionId = '';
    this.asked = false;
    this.conversation = null;
    this.facts = 0;
    this.trouble = '';
    this.shots = [];
    this.offered = [];
    this.filesNote = '';
    this.chosen = 0;
    this.starting = false;
    this.drafted = false;
  }

  get #field(): HTMLTextAreaElement | null {
    return this.renderRoot.querySelector('textarea');
  }

  override focus(): void {
    this.#field?.focus();
  }

  /** Whether text can be written here. */
  get ready(): boolean {
    return this.#field?.offsetParent != null;
  }

  /** Focuses the field and inserts text at the caret. */
  write(text: string): void {
    const field = this.#field;
    if (!field) return;
    field.focus();
    if (!text) return;
    field.setRangeText(text, field.selectionStart, field.selectionEnd, 'end');
    this.#input();
  }

  override updated(): void {
    const field = this.#field;
    if (!field) this.#loaded = '';
    if (field && this.#loaded !== this.sessionId) {
      this.#loaded = this.sessionId;
      this.#at = -1;
      if (this.shots.length) this.shots = [];
      if (this.offered.length || this.filesNote) this.#close();
      if (this.trouble) this.trouble = '';
      try { field.value = localStorage.getItem(DRAFT + this.sessionId) ?? ''; } catch { field.value = ''; }
      this.#fit();
    }
  }

  #fit(): void {
    const field = this.#field;
    if (!field) return;
    this.drafted = field.value !== '';
    // Browsers that can fit a field to its text do so by themselves (style.ts): measuring lays the page out twice for each press.
    if (FITS_ITSELF) return;
    field.style.height = 'auto';
    field.style.height = `${Math.min(field.scrollHeight, window.innerHeight * 0.38)}px`;
  }

  #input(): void {
    const field = this.#field;
    if (!field) return;
    this.#fit();
    try { if (field.value) localStorage.setItem(DRAFT + this.sessionId, field.value); else localStorage.removeItem(DRAFT + this.sessionId); } catch { /* storage is off: the draft lives as long as the page */ }
    const slash = /^\/([^\s]*)$/.exec(field.value);
    const typed = slash?.[1]?.toLowerCase();
    this.#lookForFiles(field);
    if (this.#mention) return;
    const commands = typed === undefined ? [] : (this.conversation?.commands ?? []).filter((c) => c.name.toLowerCase().startsWith(typed)).slice(0, OFFERS_MAX);
    // Another empty list would draw all of this again with each press of a key.
    if (commands.length || this.offered.length) this.offered = commands.map((command) => ({ command }));
    this.chosen = 0;
  }

  /** Requests the files that match the word at the caret, after a pause in typing. Until then the previous suggestions stay, as far as
   *  they match. */
  #lookForFiles(field: HTMLTextAreaElement): void {
    const at = field.selectionStart === field.selectionEnd ? mentionAt(field.value, field.selectionStart) : null;
    const had = this.#mention;
    if (at?.from !== this.#closed) this.#closed = -1;
    this.#mention = at && at.from !== this.#closed ? at : null;
    if (!this.#mention) { if (had) this.#close(); return; }
    if (had && had.from === at?.from && had.query === at.query) return;
    clearTimeout(this.#filesTimer);
    const serial = ++this.#filesAsked;
    const { query } = this.#mention;
    const still = this.offered.filter((offer) => 'file' in offer && fits(offer.file, query));
    if (still.length !== this.offered.length) [this.offered, this.chosen] = [still, 0];
    this.#filesTimer = setTimeout(() => void this.#files(serial, query), had ? FILES_REST_MS : 0);
  }

  async #files(serial: number, query: string): Promise<void> {
    try {
      const found = await plexus.http<Files>('GET', `/v1/sessions/${encodeURIComponent(this.sessionId)}/files?limit=${OFFERS_MAX}&query=${encodeURIComponent(query)}`);
      if (serial !== this.#filesAsked) return;
      this.offered = (Array.isArray(found?.files) ? found.files : []).filter((file) => typeof file?.path === 'string').map((file) => ({ file: file.path }));
      this.filesNote = [this.offered.length ? '' : w.filesNone(oneLine(query)), found?.truncated ? w.filesCut : ''].filter(Boolean).join(' ');
      announce(w.filesFound(this.offered.length));
    } catch (error) {
      if (serial !== this.#filesAsked) return;
      [this.offered, this.filesNote] = [[], w.filesFailed(why(error))];
    }
    this.chosen = 0;
  }

  /** Closes the suggestions if the caret left the word. */
  #moved(): void {
    const field = this.#field;
    if (field && this.#mention) this.#lookForFiles(field);
  }

  /** Closes the suggestions; the same word does not open them again. */
  #close(): void {
    clearTimeout(this.#filesTimer);
    this.#filesAsked += 1;
    this.#closed = this.#mention?.from ?? -1;
    this.#mention = null;
    [this.offered, this.filesNote, this.chosen] = [[], '', 0];
  }

  #take(offer: Offered): void {
    const field = this.#field;
    if (!field) return;
    if ('command' in offer) field.value = `/${offer.command.name} `;
    else if (this.#mention) {
      const next = mentioned(field.value, this.#mention, oneLine(offer.file));
      field.value = next.text;
      field.setSelectionRange(next.caret, next.caret);
    }
    this.#close();
    this.#input();
    field.focus();
  }

  /** Whether Enter takes the offer rather than sending: not for a command that is there already, nor for a file of another word. */
  #takes(offer: Offered | undefined, field: HTMLTextAreaElement): boolean {
    if (offer === undefined) return false;
    return 'command' in offer ? field.value.trim() !== `/${offer.command.name}` : fits(offer.file, this.#mention?.query ?? '');
  }

  #key(event: KeyboardEvent): void {
    const field = this.#field;
    if (!field || event.isComposing) return;
    if (this.offered.length) {
      if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
        this.chosen = (this.chosen + (event.key === 'ArrowDown' ? 1 : this.offered.length - 1)) % this.offered.length;
        event.preventDefault();
        return;
      }
      const offer = this.offered[this.chosen];
      if (offer && ((event.key === 'Tab' && !event.shiftKey) || (event.key === 'Enter' && !event.shiftKey && this.#takes(offer, field)))) {
        this.#take(offer);
        event.preventDefault();
        return;
      }
    }
    if (event.key === 'Escape' && (this.offered.length || this.filesNote)) { this.#close(); event.preventDefault(); event.stopPropagation(); return; }
    if (event.key === 'Enter' && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      this.#send();
    } else if (event.key === 'ArrowUp' && field.selectionStart === 0 && field.selectionEnd === 0) {
      if (this.#at < 0) {
        const text = (this.conversation?.items ?? []).filter((item) => item.type === 'user').map((item) => (item as { text: string }).text.trim()).filter(Boolean);
        this.#past = [...new Set(text.reverse())].slice(0, HISTORY_MAX);
      }
      if (this.#at + 1 < this.#past.length) { this.#show(++this.#at); event.preventDefault(); }
    } else if (event.key === 'ArrowDown' && this.#at >= 0 && field.selectionStart === field.value.length) {
      this.#show(--this.#at);
      event.preventDefault();
    } else if (event.key === 'Escape') {
      // A field with text keeps the keyboard.
      event.preventDefault();
      if (!field.value) this.dispatchEvent(new Event('leave'));
    }
    else if (event.key.length === 1) this.#at = -1;
  }

  #show(n: number): void {
    const field = this.#field;
    if (!field) return;
    field.value = n < 0 ? '' : (this.#past[n] ?? '');
    field.setSelectionRange(0, 0);
    if (n < 0) this.#at = -1;
    this.#input();
  }

  /** Sends the text of the field, and clears it at once. Prompts are sent in order; one that fails comes back to the field. */
  #send(): void {
    const field = this.#field;
    if (!field) return;
    const text = field.value.trim();
    const shots = this.shots;
    if (!text && !shots.length) return;
    const session = this.sessionId;
    const body = promptBody(text, shots);
    field.value = '';
    this.shots = [];
    this.trouble = '';
    this.#at = -1;
    this.#input();
    this.dispatchEvent(new CustomEvent('sent'));
    this.#sending = this.#sending.then(async () => {
      try {
        await plexus.http('POST', `/v1/sessions/${encodeURIComponent(session)}/prompt`, body);
        for (const shot of shots) URL.revokeObjectURL(shot.url);
      } catch (error) {
        if (this.sessionId !== session) { try { localStorage.setItem(DRAFT + session, text); } catch { /* storage is off */ } return; }
        this.trouble = w.failed(why(error));
        field.value = field.value ? `${text}\n${field.value}` : text;
        this.shots = [...shots, ...this.shots];
        this.#input();
      }
    });
  }

  #images(files: Iterable<File>): void {
    if (readShots(files, (shot) => { this.shots = [...this.shots, shot]; })) this.trouble = w.imageTooBig;
  }

  #paste(event: ClipboardEvent): void {
    const files = pasted(event);
    if (!files.length) return;
    event.preventDefault();
    this.#images(files);
  }

  async #do(work: Promise<unknown>): Promise<void> {
    this.trouble = '';
    try { await work; } catch (error) { this.trouble = w.actionFailed(why(error)); }
  }

  #cancel(run_id?: string): void {
    void this.#do(plexus.http('POST', `/v1/sessions/${encodeURIComponent(this.sessionId)}/cancel`, run_id ? { run_id } : {}));
  }

  #mode(event: Event): void {
    void this.#do(plexus.call('session.set_mode', { session_id: this.sessionId, modeId: (event.target as HTMLSelectElement).value }));
  }

  #option(id: string, category: string, event: Event): void {
    const value = (event.target as HTMLSelectElement).value;
    void this.#do(category === 'model'
      ? plexus.call('model.set', { session_id: this.sessionId, name: value })
      : plexus.call('session.set_config_option', { session_id: this.sessionId, configId: id, value }));
  }

  /** A file that is offered: its name, then its folder. */
  #file(path: string) {
    const cut = path.lastIndexOf('/') + 1;
    return html`${icon('file', 14)}<span class="name"><bdi>${oneLine(path.slice(cut))}</bdi></span>${cut ? html`<span class="desc"><bdi>${oneLine(path.slice(0, cut - 1))}</bdi></span>` : nothing}`;
  }

  /** The meter of the context window. */
  #meter() {
    const usage = this.conversation?.usage;
    if (!usage || usage.size <= 0) return nothing;
    const used = Math.max(0, Math.min(100, Math.round((usage.used / usage.size) * 100)));
    const bar = document.createElement('i');
    bar.style.width = `${used}%`;
    const tokens = `${w.tokens(usage.used.toLocaleString('en'), usage.size.toLocaleString('en'))}${usage.cost ? ` · ${oneLine(usage.cost)}` : ''}`;
    return html`<span class=${`meter ${used > 85 ? 'low' : ''}`} id="context" role="img" aria-label=${`${w.context(used)}: ${tokens}`} title=${tokens}><span class="bar">${bar}</span>${w.contextLeft(100 - used)}</span>`;
  }

  /** Replaces the field after the session's agent has ended; null once it accepts prompts again. */
  #ended(session: SessionInfo) {
    const runtime = plexus.runtimes.value.get(session.runtime_id);
    const name = oneLine(session.runtime_id);
    const locked = (words: string) => html`<div class="locked">${icon('info')} <span>${words}</span></div>`;
    switch (runtime?.state) {
      // A prompt reopens the session.
      case 'ready': return null;
      case 'starting': case 'restarting': return locked(w.startingAgain(name));
      case 'exited': break;
      default: return locked(w.exited);
    }
    if (session.restartable === false) return locked(w.exited);
    if (!plexus.may('admin')) return locked(w.exitedAsk(name));
    return html`<div class="locked ended" role="group" aria-label=${w.exitedWhy(name)}>${icon('info')} <span>${w.exitedWhy(name)}</span>
      <button class="primary" id="start-again" ?disabled=${!plexus.live.value || this.starting} @click=${() => void this.#startAgain(session)}>${icon('play', 14)} ${w.startAgain(name)}</button></div>`;
  }

  async #startAgain(session: SessionInfo): Promise<void> {
    this.starting = true;
    await this.#do(plexus.http('POST', `/v1/runtimes/${encodeURIComponent(session.runtime_id)}/restart`));
    this.starting = false;
    await this.updateComplete;
    this.#field?.focus();
  }

  override render() {
    const session = plexus.sessions.value.get(this.sessionId);
    const prompts = plexus.may('prompt');
    if (!prompts) return html`<div class="compose"><div class="compose-inner"><div class="locked">${icon('eye')} ${w.onlyWatch}</div></div></div>`;
    const ended = session?.state === 'exited' ? this.#ended(session) : null;
    if (ended) return html`<div class="compose"><div class="compose-inner">${this.trouble ? html`<p class="trouble" role="alert">${this.trouble}</p>` : nothing}${ended}</div></div>`;
    const running = session?.state === 'running' || session?.state === 'waiting';
    // A request of the gateway's own, about a ceiling, waits without a run: there is nothing to stop.
    const stoppable = running && (session.state === 'running' || Boolean(session.run_id));
    const queue = session?.queue ?? [];
    const conversation = this.conversation;
    const live = plexus.live.value;
    const selects = plexus.may('approve');
    const how = this.asked && selects;
    const options = (conversation?.options ?? []).filter((o) => o.choices.length > 1 && (o.category === 'model' || selects));
    return html`<div class="compose"><div class="compose-inner">
      ${queue.length ? html`<ul class="queue" aria-label=${w.queued(queue.length)}>${queue.map((prompt) => html`<li>${icon('clock', 14)}<span><bdi>${oneLine(prompt.text)}</bdi>${prompt.ceiling ? html` <small class="mute">${prompt.ceiling === 'day' ? w.waitsForDay : w.waitsForSession}</small>` : nothing}</span>
        <button class="quiet" @click=${() => this.#cancel(prompt.run_id)} aria-label=${w.cancelQueued(oneLine(prompt.text).slice(0, 80))}>${w.takeBack}</button></li>`)}</ul>` : nothing}
      ${this.trouble ? html`<p class="trouble" role="alert">${this.trouble}</p>` : nothing}
      ${this.offered.length || this.filesNote ? html`<div class="offers panel" @pointerdown=${(e: Event) => e.preventDefault()}>${this.offered.length ? html`<div role="listbox" aria-label=${this.#mention ? w.files : w.commands} id="offers">${this.offered.map((offer, n) => html`<button role="option" id=${`offer-${n}`} tabindex="-1"
        aria-selected=${n === this.chosen} @click=${() => this.#take(offer)}>${'command' in offer ? html`<span class="name">/${oneLine(offer.command.name)}</span><span class="desc">${oneLine(offer.command.description || offer.command.hint)}</span>` : this.#file(offer.file)}</button>`)}</div>` : nothing}${this.filesNote ? html`<p class="note-line">${this.filesNote}</p>` : nothing}</div>` : nothing}
      ${how ? html`<p class="note-line how" id="how">${this.drafted ? w.answerByTab : w.answerBy}</p>` : nothing}
      <div class="box-in" ?data-draft=${this.shots.length > 0 || this.drafted} @dragover=${(e: DragEvent) => e.preventDefault()} @drop=${(e: DragEvent) => { e.preventDefault(); this.#images(e.dataTransfer?.files ?? []); }}>
        ${this.shots.length ? html`<div class="shots">${this.shots.map((shot, n) => html`<figure><img src=${shot.url} alt=${w.image}><button class="icon" aria-label=${w.removeImage}
          @click=${() => { this.shots = this.shots.filter((_, m) => m !== n); }}>${icon('close', 12)}</button></figure>`)}</div>` : nothing}
        <textarea id="prompt" rows="1" dir="auto" aria-label=${w.prompt} aria-describedby=${how ? 'how hint' : 'hint'} aria-autocomplete="list" aria-controls=${this.offered.length ? 'offers' : nothing} aria-activedescendant=${this.offered.length ? `offer-${this.chosen}` : nothing}
          placeholder=${running ? w.placeholderQueue : w.placeholder} enterkeyhint="send" @input=${() => this.#input()} @click=${() => this.#moved()} @keyup=${(e: KeyboardEvent) => { if (['ArrowLeft', 'ArrowRight', 'Home', 'End'].includes(e.key)) this.#moved(); }} @blur=${() => { if (this.#mention) this.#close(); }} @keydown=${(e: KeyboardEvent) => this.#key(e)} @paste=${(e: ClipboardEvent) => this.#paste(e)}></textarea>
        <span id="hint" class="sr">${w.sendHint}</span>
        <div class="tools">
          <button class="ghost icon" aria-label=${w.attach} title=${w.attach} @click=${() => this.renderRoot.querySelector<HTMLInputElement>('#files')?.click()}>${icon('plus')}</button>
          <input id="files" type="file" hidden multiple accept=${IMAGES.join(',')} @change=${(e: Event) => { const input = e.target as HTMLInputElement; this.#images(input.files ?? []); input.value = ''; }}>
          ${conversation && selects && conversation.modes.length > 1 ? html`<select id="mode" aria-label=${w.mode} @change=${(e: Event) => this.#mode(e)}>${conversation.modes.map((mode) => html`<option value=${mode.id} ?selected=${mode.id === conversation.mode} title=${oneLine(mode.description)}>${oneLine(mode.name)}</option>`)}</select>` : nothing}
          ${options.map((option) => html`<select aria-label=${oneLine(option.name)} @change=${(e: Event) => this.#option(option.id, option.category, e)}>${option.choices.map((c) => html`<option value=${c.value} ?selected=${c.value === option.value}>${oneLine(c.name)}</option>`)}</select>`)}
          <span class="fill"></span>
          ${this.#meter()}
          ${stoppable ? html`<button class="ghost icon" id="restart" aria-label=${w.restart} title=${w.restartHint} ?disabled=${!live} @click=${() => void this.#do(plexus.http('POST', `/v1/sessions/${encodeURIComponent(this.sessionId)}/restart`, {}))}>${icon('restart')}</button>
            <button id="stop" class="danger" aria-label=${w.stopNow} ?disabled=${!live} @click=${() => this.#cancel(session?.run_id)}>${icon('stop', 14)} <span class="label">${w.stop}</span></button>` : nothing}
          <button id="send" class="primary" aria-label=${running ? w.sendQueued : w.send} ?disabled=${!live} @click=${() => this.#send()}>${icon('send', 14)} <span class="label">${running ? w.sendQueued : w.send}</span></button>
        </div>
      </div>
    </div></div>`;
  }
}
customElements.define('plexus-composer', PlexusComposer);
