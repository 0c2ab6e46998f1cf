// The changes of a session: every file, its diff, and comments that go to the agent as one prompt. Loaded when it is opened.
import { css, html, nothing, type PropertyValues, type TemplateResult } from 'lit';
import { customElement, property, state } from 'lit/decorators.js';
import { guard } from 'lit/directives/guard.js';
import { repeat } from 'lit/directives/repeat.js';
import '../changes/file.js';
import type { Lines, PlexusChangeFile } from '../changes/file.js';
import { COMMENTS_MAX, COMMENT_CHARS, keepComments, keepViewed, keptComments, keptViewed, reviewOf, setSideBySide, sideBySide, type Comment } from '../changes/model.js';
import { PlexusElement } from '../lib/element.js';
import { editorHref } from '../lib/editor.js';
import { bind } from '../lib/keys.js';
import { oneLine } from '../lib/text.js';
import { plexus, Refused, why } from '../plexus.js';
import { visible } from '../render/visible.js';
import { text } from '../text/en.js';
import { changesWords as t } from '../text/changes.js';
import { confirm } from '../ui/dialog.js';
import { icon } from '../ui/icons.js';
import type { MenuItem } from '../ui/menu.js';
import { attempt, copy, empty, pageStyles } from '../ui/parts.js';
import { announce, toast } from '../ui/say.js';
import type { ChangeDiff, ChangedFile, ChangesView, Envelope } from '../wire/types.js';

/** Files that are drawn at first, and more at a press. */
const FILES = 200;
/** Minimum time between two reads of the list, ms. */
const READ_MS = 2_000;
/** Minimum width for two columns of a diff, px. */
const SIDES_PX = 900;
/** Kinds of events that may change files: after them the list is read again. */
const TELLING: ReadonlySet<string> = new Set(['run_started', 'run_ended', 'tool_call', 'tool_call_update']);
/** Whether the page runs on the machine of the session: only there an editor can open its files. */
const HERE = /^(?:127\.\d+\.\d+\.\d+|localhost|\[::1\])$/.test(location.hostname);

interface Undone { patch_id: string; path: string; at: string; by?: { name?: string } }
interface Loaded { digest: string; diff: ChangeDiff | null; problem: string; asked: boolean }

@customElement('plexus-changes')
export class PlexusChanges extends PlexusElement {
  @property() sessionId = '';
  @state() private list: ChangesView | null = null;
  @state() private problem = '';
  @state() private forbidden = false;
  @state() private run = '';
  @state() private words = '';
  @state() private wide = sideBySide();
  @state() private room = false;
  @state() private shown = FILES;
  @state() private at = '';
  @state() private chosen: Lines | null = null;
  @state() private writing: (Lines & { id: string; text: string }) | null = null;
  @state() private comments: Comment[] = [];
  @state() private first = '';
  @state() private sending = false;
  @state() private undone: Undone[] = [];
  #viewed = new Map<string, string>();
  #folded = new Set<string>();
  #diffs = new Map<string, Loaded>();
  #serial = 0;
  #readAt = 0;
  #later: ReturnType<typeof setTimeout> | undefined;
  #stop: Array<() => void> = [];
  #size: ResizeObserver | null = null;
  /** The key of a review that may have arrived: sent again it counts once. */
  #key = '';

  static override styles = [...[PlexusElement.styles].flat(), pageStyles, css`
    .page { max-width: 1480px; padding-top: 0; }
    .page > header { padding-top: var(--s4); margin-bottom: var(--s3); }
    .page > header .of { color: var(--fg-mute); font-weight: 450; font-size: var(--t-m); }
    .page > header h1 { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden; overflow-wrap: anywhere; }
    .tools { display: flex; flex-wrap: wrap; gap: var(--s2); align-items: center; margin-bottom: var(--s3); }
    .tools select { max-width: min(340px, 100%); }
    .tools .sum { flex: 1 1 160px; color: var(--fg-soft); font-size: var(--t-s); font-variant-numeric: tabular-nums; }
    #notes { margin-bottom: var(--s4); }
    .cols { display: grid; grid-template-columns: minmax(0, 1fr); gap: var(--s4); }
    nav.files { border: 1px solid var(--line); border-radius: var(--r-m); background: var(--bg-raised); }
    nav.files summary, nav.files .top { padding: 8px 12px; font-weight: 600; }
    nav.files summary { min-height: 44px; display: flex; align-items: center; cursor: pointer; }
    nav.files input { width: calc(100% - 16px); margin: 0 8px 8px; }
    nav.files ul { max-height: 50dvh; overflow: auto; padding: 0 4px 6px; }
    nav.files a { display: flex; align-items: center; gap: 6px; padding: 4px 8px; min-height: 32px; border-radius: var(--r-s); color: var(--fg); font-size: var(--t-s); }
    nav.files a:hover { background: var(--bg-hover); text-decoration: none; } nav.files a[aria-current="true"] { background: var(--bg-active); font-weight: 600; }
    nav.files bdi { flex: 1; min-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; direction: rtl; text-align: left; }
    nav.files .n { color: var(--fg-mute); font-variant-numeric: tabular-nums; white-space: nowrap; }
    nav.files a.viewed bdi { color: var(--fg-mute); }
    .bar { position: sticky; bottom: 0; z-index: 5; display: flex; flex-direction: column; gap: 8px; padding: 10px 12px; margin: 0 -12px; background: var(--bg-raised); border: 1px solid var(--line-strong); border-radius: var(--r-m) var(--r-m) 0 0; box-shadow: var(--shadow-2); }
    .bar .line { display: flex; gap: 8px; align-items: center; flex-wrap: wrap; } .bar .line > input { flex: 1 1 200px; min-width: 0; }
    .bar .grow { flex: 1 1 120px; min-width: 0; color: var(--fg-soft); font-size: var(--t-s); overflow: hidden; text-overflow: ellipsis; }
    textarea { width: 100%; min-height: 76px; resize: vertical; font: inherit; }
    .gone { margin-bottom: var(--s4); } .gone li { display: flex; gap: 8px; align-items: baseline; padding: 6px 0; overflow-wrap: anywhere; } .gone .said { flex: 1; }
    .undone { margin-top: var(--s5); } .undone li { display: flex; align-items: center; gap: 8px; padding: 6px 12px; overflow-wrap: anywhere; } .undone li span { flex: 1; }
    .hint { color: var(--fg-mute); font-size: var(--t-s); }
    @media (min-width: 1100px) { .cols { grid-template-columns: 290px minmax(0, 1fr); } .side { position: sticky; top: 8px; align-self: start; } nav.files ul { max-height: calc(100dvh - 220px); } }
    @media (max-width: 599px) { .page { padding-inline: 8px; } .bar { margin-inline: -8px; } .hint { display: none; } }
    @media (pointer: coarse) { nav.files a { min-height: 44px; } }
  `];

  override connectedCallback(): void {
    super.connectedCallback();
    this.#stop = [
      bind([
        { key: 'u', run: () => plexus.go({ page: 'session', session_id: this.sessionId }) },
        { key: 'j', atOnce: true, run: () => this.#step(1) }, { key: 'k', atOnce: true, run: () => this.#step(-1) },
        { key: 'n', atOnce: true, run: () => this.#part(1) }, { key: 'p', atOnce: true, run: () => this.#part(-1) },
        { key: 'v', atOnce: true, run: () => { const file = this.#current(); if (file) this.#view(file, true); } },
        { key: 'c', run: () => this.#write() },
        { key: 'x', run: () => { const file = this.#current(); if (file && plexus.may('approve')) void this.#undo(file); } },
        { key: 's', run: () => this.#turn() },
      ]),
      plexus.listen((event: Envelope) => { if (event.session_id === this.sessionId && TELLING.has(event.kind)) this.#soon(); }),
    ];
    this.#size = new ResizeObserver(() => { this.room = this.clientWidth >= SIDES_PX; });
    this.#size.observe(this);
    addEventListener('focus', this.#soon);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    for (const stop of this.#stop) stop();
    this.#size?.disconnect();
    clearTimeout(this.#later);
    this.#later = undefined;
    removeEventListener('focus', this.#soon);
  }

  protected override willUpdate(changed: PropertyValues<this>): void {
    if (!changed.has('sessionId')) return;
    [this.list, this.problem, this.run, this.words, this.at, this.chosen, this.writing, this.undone] = [null, '', '', '', '', null, null, []];
    this.#diffs.clear();
    this.#folded.clear();
    this.comments = keptComments(this.sessionId);
    this.#viewed = keptViewed(this.sessionId);
    void this.#read();
  }

  get #path(): string { return `/v1/sessions/${encodeURIComponent(this.sessionId)}/changes`; }
  #query = (more: Record<string, string> = {}): string => { const all = new URLSearchParams({ ...more, ...(this.run ? { run: this.run } : {}) }).toString(); return all ? `?${all}` : ''; };

  /** Reads the list again, soon; several calls are one read. */
  #soon = (): void => {
    this.#later ??= setTimeout(() => { this.#later = undefined; void this.#read(); }, Math.max(0, this.#readAt + READ_MS - Date.now()));
  };

  async #read(): Promise<void> {
    const serial = ++this.#serial;
    const session = this.sessionId;
    this.#readAt = Date.now();
    try {
      const list = await plexus.http<ChangesView>('GET', `${this.#path}${this.#query()}`);
      if (serial !== this.#serial || session !== this.sessionId) return;
      this.problem = '';
      this.forbidden = false;
      if (this.list?.rev === list.rev) return;
      if (!this.list) announce(t.loadedSay(list.files.length));
      this.list = list;
      void this.#readUndone();
    } catch (error) {
      if (serial !== this.#serial) return;
      this.forbidden = error instanceof Refused && error.status === 403;
      this.problem = why(error);
    }
  }

  async #readUndone(): Promise<void> {
    try { this.undone = (await plexus.http<{ undone: Undone[] }>('GET', `${this.#path}/undone`)).undone; } catch { /* what is open has said why */ }
  }

  async #load(file: ChangedFile): Promise<void> {
    const had = this.#diffs.get(file.path);
    if (had?.digest === file.digest && (had.asked || had.diff)) return;
    const one: Loaded = { digest: file.digest, diff: null, problem: '', asked: true };
    this.#diffs.set(file.path, one);
    try {
      one.diff = await plexus.http<ChangeDiff>('GET', `${this.#path}/file${this.#query({ path: file.path })}`);
    } catch (error) {
      one.problem = why(error);
      // The file changed back meanwhile: the list is out of date.
      if (error instanceof Refused && error.status === 404) this.#soon();
    }
    one.asked = false;
    if (this.#diffs.get(file.path) === one) this.requestUpdate();
  }

  #fit(): ChangedFile[] {
    const words = this.words.trim().toLowerCase();
    const files = this.list?.files ?? [];
    return words ? files.filter((file) => file.path.toLowerCase().includes(words)) : files;
  }

  override render() {
    const list = this.list;
    const session = plexus.sessions.value.get(this.sessionId);
    const of = session ? html`<bdi class="of">${t.of(oneLine(session.title) || text.common.untitled)}</bdi>` : nothing;
    return html`<div class="page"><header><a class="btn ghost icon" href=${plexus.href({ page: 'session', session_id: this.sessionId })} aria-label=${t.back} title="${t.back} (u)">${icon('back')}</a><h1 tabindex="-1">${t.title} ${of}</h1></header>
      ${this.forbidden ? empty('lock', t.forbidden) : html`
      ${this.problem ? html`<p class="note danger" role="alert">${text.shell.failed(this.problem)} <button class="compact" @click=${() => void this.#read()}>${text.common.retry}</button></p>` : nothing}
      ${!list ? (this.problem ? nothing : html`<p class="mute">${text.common.loading}</p>`) : list.source === 'none' ? html`${empty('file', t.noSource, t.noSourceText)}${this.#notes(list)}` : this.#all(list)}
      ${this.#undoneList()}${this.#bar()}`}</div>`;
  }

  #all(list: ChangesView): TemplateResult {
    if (!list.files.length && !this.run) return html`${empty('check', t.none, t.noneText)}${this.#notes(list)}`;
    const fit = this.#fit();
    const shown = fit.slice(0, this.shown);
    const added = list.files.reduce((sum, file) => sum + (file.added ?? 0), 0);
    const removed = list.files.reduce((sum, file) => sum + (file.removed ?? 0), 0);
    const gone = this.comments.filter((one) => !list.files.some((file) => file.path === one.path));
    return html`<div class="tools"><span class="sum">${t.counted(list.files.length + list.left_off, added, removed)}</span>
        ${list.runs.length > 1 ? html`<label><span class="sr">${t.run}</span><select id="run" @change=${(event: Event) => { this.run = (event.target as HTMLSelectElement).value; this.#diffs.clear(); void this.#read(); }}><option value="">${t.allRuns}</option>
          ${list.runs.map((one) => html`<option value=${one.run_id} ?selected=${one.run_id === this.run}>${t.runName(new Date(one.at).toLocaleTimeString('en', { hour: '2-digit', minute: '2-digit' }), oneLine(one.prompt).slice(0, 60), one.files)}</option>`)}</select></label>` : nothing}
        ${this.room ? html`<button class="compact" id="sides" aria-pressed=${this.wide} @click=${() => this.#turn()}>${t.sides}</button>` : nothing}
        <button class="compact" id="copy-all" @click=${() => void this.#copyPatch()}>${icon('copy', 14)} ${t.copyAll}</button></div>
      ${this.#notes(list)}
      ${gone.length ? html`<section class="gone"><h2>${t.gone}</h2><ul>${gone.map((one) => html`<li><bdi>${visible(one.path)}</bdi><span class="said">${one.text}</span><button class="compact" @click=${() => this.#drop(one.id)}>${t.drop}</button></li>`)}</ul></section>` : nothing}
      <div class="cols"><div class="side">${this.#files(fit)}</div>
        <div class="diffs">${fit.length ? repeat(shown, (file) => file.path, (file) => this.#file(file)) : html`<p class="mute">${t.noFit}</p>`}
          ${fit.length > this.shown ? html`<button id="more" @click=${() => { this.shown += FILES; }}>${t.showFiles(Math.min(FILES, fit.length - this.shown))}</button>` : nothing}
          ${list.left_off ? html`<p class="mute">${t.leftOff(list.left_off)}</p>` : nothing}<p class="hint">${t.keys}</p></div></div>`;
  }

  #notes(list: ChangesView) {
    return list.notes.length ? html`<ul class="note" id="notes">${list.notes.map((note) => html`<li>${note.text}</li>`)}</ul>` : nothing;
  }

  #files(fit: ChangedFile[]): TemplateResult {
    const inner = html`<input type="search" id="find" aria-label=${t.filter} placeholder=${t.filter} .value=${this.words} @input=${(event: Event) => { this.words = (event.target as HTMLInputElement).value; }}>
      <ul>${fit.slice(0, this.shown).map((file) => html`<li><a href="#" class=${this.#viewed.get(file.path) === file.digest ? 'viewed' : ''} aria-current=${this.at === file.path} @click=${(event: Event) => { event.preventDefault(); this.#goTo(file.path); }}>
        <bdi title=${visible(file.path)}>&lrm;${visible(file.path)}&lrm;</bdi><span class="n">${file.added == null ? '' : `+${file.added} −${file.removed ?? 0}`}</span></a></li>`)}</ul>`;
    return html`<nav class="files" aria-label=${t.files}>${matchMedia('(min-width: 1100px)').matches ? html`<div class="top">${t.files}</div>${inner}` : html`<details><summary>${t.files}</summary>${inner}</details>`}</nav>`;
  }

  /** A file is drawn again only if something of it changed: a diff that comes in draws its own file, not two thousand. */
  #file(file: ChangedFile): unknown {
    const had = this.#diffs.get(file.path);
    const loaded = had?.digest === file.digest ? had : null;
    const [diff, problem, marked] = [loaded?.diff ?? null, loaded?.problem ?? '', this.#viewed.get(file.path)];
    const [wide, undo, folded] = [this.wide && this.room, plexus.may('approve') && !this.run, this.#folded.has(file.path)];
    const chosen = this.chosen?.path === file.path ? this.chosen : null;
    return guard([file, diff, problem, this.comments, marked, wide, undo, folded, chosen], () => html`<plexus-change-file data-path=${file.path} .file=${file} .diff=${diff} .problem=${problem} .comments=${this.comments.filter((one) => one.path === file.path)}
      .items=${() => this.#menu(file)} .wide=${wide} .viewed=${marked === file.digest} .again=${marked !== undefined && marked !== file.digest} .undo=${undo}
      ?folded=${folded} .chosen=${chosen}
      @wanted=${() => void this.#load(file)} @fold=${() => this.#fold(file.path)} @viewed=${() => this.#view(file, false)} @lines=${(event: CustomEvent<Lines>) => { this.at = file.path; this.chosen = event.detail; }}
      @undo=${(event: CustomEvent<number>) => void this.#undo(file, event.detail)} @comment-edit=${(event: CustomEvent<string>) => this.#edit(event.detail)} @comment-drop=${(event: CustomEvent<string>) => this.#drop(event.detail)}></plexus-change-file>`);
  }

  #menu(file: ChangedFile): MenuItem[] {
    const items: MenuItem[] = [{ label: t.copyPath, icon: 'copy', run: () => void copy(file.path) }];
    if (file.compared === 'text') items.push({ label: t.copyPatch, icon: 'copy', run: () => void this.#copyPatch(file.path) });
    const root = this.list?.root;
    const line = this.chosen?.path === file.path && this.chosen.side === 'new' ? `:${this.chosen.line}` : '';
    const address = HERE && root && file.status !== 'deleted' ? editorHref(`${root}/${file.path}`) : '';
    if (address) items.push({ label: t.editor, icon: 'file', href: `${address}${line}` });
    if (plexus.may('approve') && !this.run) items.push({ label: t.undoFile, icon: 'restart', danger: true, separate: true, run: () => void this.#undo(file) });
    return items;
  }

  #bar() {
    const w = this.writing;
    if (w) {
      return html`<form class="bar" id="writing" @submit=${(event: Event) => { event.preventDefault(); this.#save(); }}><label for="text">${t.comment(w.line, w.end)} <span class="hint"><bdi>${visible(w.path)}</bdi></span></label>
        <textarea id="text" maxlength=${COMMENT_CHARS} aria-label=${t.commentLabel} .value=${w.text} @input=${(event: Event) => { w.text = (event.target as HTMLTextAreaElement).value; }}
          @keydown=${(event: KeyboardEvent) => { if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) { event.preventDefault(); this.#save(); } else if (event.key === 'Escape') { event.stopPropagation(); this.#leave(); } }}></textarea>
        <div class="line"><span class="grow"></span><button type="button" @click=${() => this.#leave()}>${text.common.cancel}</button><button class="primary" id="save">${t.save}</button></div></form>`;
    }
    if (!plexus.may('prompt') || !this.list?.files.length) return nothing;
    const { chosen } = this;
    const count = this.comments.length;
    if (!chosen && !count) return nothing;
    return html`<div class="bar" role="group" aria-label=${t.title}>
      ${count ? html`<div class="line"><input id="first" aria-label=${t.first} placeholder=${t.first} maxlength="2000" .value=${this.first} @input=${(event: Event) => { this.first = (event.target as HTMLInputElement).value; }}>
        <button class="primary" id="send" ?disabled=${this.sending || !plexus.live.value} @click=${() => void this.#send()}>${t.send(count)}</button></div>` : nothing}
      ${chosen ? html`<div class="line"><bdi class="grow">${visible(chosen.path)}</bdi><button id="comment" @click=${() => this.#write()}>${icon('pencil', 14)} ${t.comment(chosen.line, chosen.end)}</button></div>` : nothing}</div>`;
  }

  #undoneList() {
    if (!this.undone.length || !plexus.may('approve')) return nothing;
    return html`<section class="undone" aria-labelledby="undone"><h2 id="undone">${t.undone}</h2><ul class="list">${this.undone.map((one) => html`<li><span><bdi>${t.undoneBy(visible(one.path), oneLine(one.by?.name))}</bdi></span><plexus-age class="mute" at=${one.at}></plexus-age>
      <button class="compact" @click=${() => void this.#restore(one)}>${t.restore}</button></li>`)}</ul></section>`;
  }

  // --- moving

  #current(): ChangedFile | undefined { return this.#fit().find((file) => file.path === this.at); }
  #element(path: string): PlexusChangeFile | null { return [...this.renderRoot.querySelectorAll('plexus-change-file')].find((one) => one.file.path === path) ?? null; }

  #goTo(path: string): void {
    this.at = path;
    const found = this.#element(path);
    found?.scrollIntoView({ block: 'start' });
    found?.renderRoot.querySelector<HTMLElement>('.fold')?.focus({ preventScroll: true });
  }

  #step(by: number): void {
    const files = this.#fit().slice(0, this.shown);
    const at = files.findIndex((file) => file.path === this.at);
    const next = files[at < 0 ? (by > 0 ? 0 : files.length - 1) : at + by];
    if (next) this.#goTo(next.path);
  }

  #part(by: number): void {
    if (!this.at) this.#step(1);
    const found = this.#element(this.at);
    if (!found) return;
    const { all, at } = found.parts();
    const next = at + by;
    if (next >= 0 && next < all.length) return found.enter(next);
    // Past its end comes the next file; its diff may not be there yet.
    const files = this.#fit();
    const other = files[files.findIndex((file) => file.path === this.at) + by];
    if (other) this.#goTo(other.path);
  }

  #turn(): void {
    if (!this.room) return;
    this.wide = !this.wide;
    setSideBySide(this.wide);
  }

  #fold(path: string): void {
    if (!this.#folded.delete(path)) this.#folded.add(path);
    this.requestUpdate();
  }

  /** Marks a file as viewed, which folds it, or takes the mark away. */
  #view(file: ChangedFile, step: boolean): void {
    const was = this.#viewed.get(file.path) === file.digest;
    if (was) { this.#viewed.delete(file.path); this.#folded.delete(file.path); } else { this.#viewed.set(file.path, file.digest); this.#folded.add(file.path); }
    keepViewed(this.sessionId, this.#viewed);
    this.requestUpdate();
    if (step && !was) void this.updateComplete.then(() => this.#step(1));
  }

  // --- comments

  #write(): void {
    if (!plexus.may('prompt')) return;
    if (!this.chosen) return announce(t.commentHint);
    if (this.comments.length >= COMMENTS_MAX) return toast(t.tooMany(COMMENTS_MAX), { tone: 'danger' });
    this.writing = { ...this.chosen, id: '', text: '' };
    void this.#focusText();
  }

  #edit(id: string): void {
    const one = this.comments.find((comment) => comment.id === id);
    if (!one) return;
    this.writing = { ...one };
    void this.#focusText();
  }

  async #focusText(): Promise<void> {
    await this.updateComplete;
    this.renderRoot.querySelector<HTMLTextAreaElement>('#text')?.focus();
  }

  /** Returns to the line of the comment. */
  #leave(): void {
    const at = this.writing;
    this.writing = null;
    if (at) this.#element(at.path)?.renderRoot.querySelector<HTMLElement>(`.row[data-side="${at.side}"][data-line="${at.end}"]`)?.focus({ preventScroll: true });
  }

  #save(): void {
    const w = this.writing;
    if (!w) return;
    const words = w.text.trim();
    if (words) {
      const one: Comment = { id: w.id || crypto.randomUUID(), path: w.path, side: w.side, line: w.line, end: w.end, text: words, digest: w.digest };
      this.#keep(w.id ? this.comments.map((comment) => (comment.id === w.id ? one : comment)) : [...this.comments, one]);
    } else if (w.id) this.#drop(w.id);
    this.#leave();
  }

  #drop(id: string): void { this.#keep(this.comments.filter((one) => one.id !== id)); }

  #keep(all: Comment[]): void {
    this.comments = all;
    this.#key = '';
    keepComments(this.sessionId, all);
  }

  async #send(): Promise<void> {
    if (this.sending || !this.comments.length) return;
    this.sending = true;
    this.#key ||= crypto.randomUUID();
    const done = await attempt(() => plexus.http('POST', `${this.#path}/review`, reviewOf(this.comments, this.first), { headers: { 'Idempotency-Key': this.#key } }));
    this.sending = false;
    if (!done) return;
    this.#keep([]);
    [this.first, this.chosen] = ['', null];
    toast(t.sent, { tone: 'ok' });
    plexus.go({ page: 'session', session_id: this.sessionId });
  }

  // --- undo, patches

  async #undo(file: ChangedFile, hunk?: number): Promise<void> {
    // The change on the screen is exactly the one that is undone: the digest of the diff that was read.
    const digest = hunk === undefined ? file.digest : (this.#diffs.get(file.path)?.diff?.digest ?? file.digest);
    const busy = ['running', 'waiting'].includes(plexus.sessions.peek().get(this.sessionId)?.state ?? '');
    if (!(await confirm(t.undoTitle(visible(file.path), hunk !== undefined), busy ? `${t.undoBusy} ${t.undoText}` : t.undoText, t.undoDo, true))) return;
    const done = await attempt(() => plexus.http('POST', `${this.#path}/undo`, { path: file.path, digest, ...(hunk === undefined ? {} : { hunk }), ...(busy ? { during_run: true } : {}) }));
    if (done) toast(t.undoneToast(visible(file.path)), { tone: 'ok' });
    this.#readAt = 0;
    await this.#read();
    await this.#readUndone();
  }

  async #restore(one: Undone): Promise<void> {
    const done = await attempt(() => plexus.http('POST', `${this.#path}/redo`, { patch_id: one.patch_id }));
    if (done) toast(t.restored(visible(one.path)), { tone: 'ok' });
    await this.#read();
    await this.#readUndone();
  }

  async #copyPatch(path?: string): Promise<void> {
    const words = await attempt(async () => (await plexus.fetch(`${this.#path}/patch${this.#query(path === undefined ? {} : { path })}`, { accept: 'text/x-diff' })).text());
    if (words !== undefined) await copy(words);
  }
}

declare global { interface HTMLElementTagNameMap { 'plexus-changes': PlexusChanges } }
