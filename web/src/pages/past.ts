import { css, html, nothing } from 'lit';
import { customElement, property, state } from 'lit/decorators.js';
import { repeat } from 'lit/directives/repeat.js';
import { PlexusElement } from '../lib/element.js';
import { list, oneLine } from '../lib/text.js';
import { plexus, why } from '../plexus.js';
import { text } from '../text/en.js';
import { icon } from '../ui/icons.js';
import { announce } from '../ui/say.js';
import type { Resumable, ResumablePage } from '../wire/types.js';

const t = text.shell.sessions.past;
/** Conversations of one page, and rows drawn at a time. */
const STEP = 200;
/** Maximum number of conversations that are read. */
const MOST = 2_000;
/** Maximum number of pages that are read: an agent may return few conversations per page, or none. */
const PAGES = 100;

/** The past conversations of a runtime with a search field. Dispatches `pick`, and `resume` for Enter. Titles and folders are the agent's own. */
@customElement('plexus-past')
export class PlexusPast extends PlexusElement {
  @property() runtime = '';
  @state() private all: Resumable[] = [];
  @state() private next: string | undefined;
  @state() private phase: 'asking' | 'there' | 'failed' = 'asking';
  @state() private problem = '';
  @state() private q = '';
  @state() private picked = '';
  @state() private limit = STEP;
  #requested = '';
  /** The number of the last request: replies to earlier ones are ignored. */
  #serial = 0;

  static override styles = [...[PlexusElement.styles].flat(), css`
    :host { display: flex; flex-direction: column; gap: var(--s2); min-width: 0; }
    .find { position: relative; }
    .find svg { position: absolute; left: 10px; top: 50%; transform: translateY(-50%); color: var(--fg-mute); pointer-events: none; }
    .find input { padding-left: 32px; }
    .rows { max-height: min(42dvh, 330px); overflow: auto; border: 1px solid var(--line); border-radius: var(--r-m); background: var(--bg); overscroll-behavior: contain; }
    @media (max-width: 599px) { .rows { max-height: 34dvh; } }
    .row { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 1px 10px; align-items: baseline; padding: 8px 12px; min-height: 50px; cursor: pointer; content-visibility: auto; contain-intrinsic-size: auto 50px; }
    .row + .row { border-top: 1px solid var(--line); }
    .row:hover { background: var(--bg-hover); }
    .row[aria-selected="true"] { background: var(--accent-wash); box-shadow: inset 3px 0 0 var(--accent); }
    .title { font-weight: 550; }
    .side { font-size: var(--t-s); color: var(--fg-mute); white-space: nowrap; }
    .sub { grid-column: 1 / -1; font-size: var(--t-s); color: var(--fg-mute); }
    .none { display: flex; flex-direction: column; align-items: center; gap: var(--s2); text-align: center; padding: var(--s5) var(--s4); border: 1px dashed var(--line-strong); border-radius: var(--r-m); color: var(--fg-soft); }
    .none svg { color: var(--fg-mute); }
    .foot { display: flex; align-items: center; gap: var(--s2); font-size: var(--t-s); color: var(--fg-mute); min-height: 20px; flex-wrap: wrap; }
  `];

  override willUpdate(): void {
    if (this.runtime === this.#requested) return;
    this.#requested = this.runtime;
    [this.q, this.picked] = ['', ''];
    void this.#read();
  }

  override focus(): void { this.renderRoot.querySelector('input')?.focus(); }

  #found(): Resumable[] {
    const words = this.q.toLowerCase().split(/\s+/).filter(Boolean);
    return words.length ? this.all.filter((one) => { const all = `${one.title ?? ''} ${one.cwd ?? ''} ${one.native_id}`.toLowerCase(); return words.every((word) => all.includes(word)); }) : this.all;
  }

  override render() {
    if (this.phase === 'failed') return html`<p class="note danger" role="alert">${this.problem}</p><div><button type="button" @click=${() => void this.#read()}>${text.common.retry}</button></div>`;
    if (this.phase === 'asking' && !this.all.length) return html`<div class="none" role="status">${icon('clock', 22)}<p>${t.asking}</p></div>`;
    if (!this.all.length) return html`<div class="none" role="status">${icon('sessions', 22)}<p class="strong">${t.none}</p><p class="small">${t.noneText}</p></div>`;
    const found = this.#found();
    const shown = found.slice(0, this.limit);
    const at = shown.findIndex((one) => one.native_id === this.picked);
    return html`<div class="find">${icon('search')}<input type="search" role="combobox" aria-label=${t.find} placeholder=${t.findHint} aria-expanded="true" aria-controls="rows" aria-autocomplete="list"
        aria-activedescendant=${at < 0 ? nothing : `o${at}`} autocomplete="off" spellcheck="false" autocapitalize="off" .value=${this.q} @input=${this.#typed} @keydown=${this.#key}></div>
      ${shown.length ? html`<div class="rows" id="rows" role="listbox" aria-label=${t.list}>${repeat(shown, (one) => one.native_id, (one, i) => this.#row(one, i))}</div>`
        : html`<div class="none" id="rows" role="status">${icon('search', 22)}<p>${this.next ? t.searching : t.noneFound}</p></div>`}
      <div class="foot"><span class="grow">${t.count(found.length, this.next !== undefined)}</span>
        ${found.length > shown.length || this.next ? html`<button type="button" class="compact" ?disabled=${this.phase === 'asking'} @click=${this.#more}>${text.common.more}</button>` : nothing}</div>`;
  }

  #row(one: Resumable, i: number) {
    const when = Date.parse(one.updated_at ?? '');
    return html`<div class="row" role="option" id=${`o${i}`} data-native=${one.native_id} aria-selected=${one.native_id === this.picked} @click=${(e: MouseEvent) => { if (e.detail === 2 && this.picked === one.native_id) this.#resume(); else this.#pick(one); }}>
      <bdi class="title cut">${oneLine(one.title) || t.untitled}</bdi>
      <span class="side">${one.session_id ? html`<span class="chip">${t.open}</span>` : Number.isFinite(when) ? html`<plexus-age .at=${when} short></plexus-age>` : nothing}</span>
      <bdi class="sub cut">${oneLine(one.cwd) || oneLine(one.native_id)}</bdi></div>`;
  }

  #pick(one: Resumable): void {
    this.picked = one.native_id;
    this.dispatchEvent(new CustomEvent('pick', { detail: one }));
  }

  #resume = () => { if (this.picked) this.dispatchEvent(new CustomEvent('resume')); };

  #typed = (event: Event) => {
    this.q = (event.target as HTMLInputElement).value;
    this.limit = STEP;
    // Matches may be older than what was read.
    if (this.q.trim() && this.next && this.phase === 'there') void this.#readMore(MOST);
  };

  #key = (event: KeyboardEvent) => {
    const shown = this.#found().slice(0, this.limit);
    const at = shown.findIndex((one) => one.native_id === this.picked);
    const to = { ArrowDown: at + 1, ArrowUp: at < 0 ? shown.length - 1 : at - 1, PageDown: at + 6, PageUp: at - 6 }[event.key];
    if (event.key === 'Enter' && !event.isComposing) {
      event.preventDefault();
      const one = shown[at] ?? (this.q.trim() && shown.length === 1 ? shown[0] : undefined);
      if (one) { this.#pick(one); this.#resume(); }
    } else if (to !== undefined && shown.length) {
      event.preventDefault();
      const one = shown[Math.max(0, Math.min(shown.length - 1, to))];
      if (one) this.#pick(one);
      void this.updateComplete.then(() => this.renderRoot.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' }));
    }
  };

  #more = () => {
    if (this.#found().length > this.limit) { this.limit += STEP; return; }
    this.limit += STEP;
    void this.#readMore(this.all.length + STEP);
  };

  async #read(): Promise<void> {
    this.#serial++;
    [this.all, this.next, this.phase, this.limit] = [[], '', 'asking', STEP];
    await this.#readMore(STEP);
    if (this.all.length) announce(t.count(this.all.length, this.next !== undefined));
  }

  /** Reads further pages until there are `most` conversations, or no more. */
  async #readMore(most: number): Promise<void> {
    const [serial, runtime] = [this.#serial, this.runtime];
    this.phase = 'asking';
    try {
      for (let pages = 0; pages < PAGES && this.next !== undefined && this.all.length < Math.min(most, MOST); pages++) {
        const page = await plexus.http<ResumablePage>('GET', `/v1/runtimes/${encodeURIComponent(runtime)}/resumable?limit=${STEP}&cursor=${encodeURIComponent(this.next)}`);
        if (serial !== this.#serial) return;
        // A conversation that changed meanwhile comes twice.
        const known = new Set(this.all.map((one) => one.native_id));
        this.all = [...this.all, ...list<Resumable>(page?.resumable).filter((one) => !known.has(one.native_id))];
        this.next = page?.next;
      }
      if (this.all.length >= MOST) this.next = undefined;
      this.phase = 'there';
    } catch (error) {
      if (serial === this.#serial) [this.phase, this.problem] = ['failed', text.shell.failed(why(error))];
    }
  }
}
