// One file of a session's changes: its heading, and its diff once it is near what is in sight.
import { css, html, nothing, type PropertyValues, type TemplateResult } from 'lit';
import { customElement, property, state } from 'lit/decorators.js';
import { repeat } from 'lit/directives/repeat.js';
import { PlexusElement } from '../lib/element.js';
import { compare } from '../render/diffview.js';
import { cut, visible } from '../render/visible.js';
import { text } from '../text/en.js';
import { changesWords as t } from '../text/changes.js';
import { icon } from '../ui/icons.js';
import '../ui/menu.js';
import type { MenuItem } from '../ui/menu.js';
import type { ChangeDiff, ChangedFile } from '../wire/types.js';
import { hunksOf, placeOf, sides, type Comment, type Hunk, type Row, type Side } from './model.js';

/** Lines of a file that are drawn at first, and more at a press. */
const ROWS = 600;
/** The longest drawn part of a line, in characters. */
const LINE_SHOWN = 2_000;
/** The height of a line, px, for what is not drawn yet. */
const LINE_PX = 20;

/** Lines of a file that are chosen for a comment. */
export interface Lines { path: string; side: Side; line: number; end: number; digest: string }

/** `<plexus-change-file>`: dispatches `wanted` when its diff is needed, `lines` when lines are chosen, `undo`, `viewed`, `comment-edit` and `comment-drop`. */
@customElement('plexus-change-file')
export class PlexusChangeFile extends PlexusElement {
  @property({ attribute: false }) file!: ChangedFile;
  @property({ attribute: false }) diff: ChangeDiff | null = null;
  @property() problem = '';
  @property({ attribute: false }) comments: readonly Comment[] = [];
  /** The items of its menu, requested when it opens. */
  @property({ attribute: false }) items: () => MenuItem[] = () => [];
  @property({ type: Boolean }) wide = false;
  @property({ type: Boolean }) viewed = false;
  /** Whether the file changed after it was viewed. */
  @property({ type: Boolean }) again = false;
  @property({ type: Boolean }) undo = false;
  @property({ type: Boolean }) folded = false;
  @property({ attribute: false }) chosen: Lines | null = null;
  @state() private near = false;
  @state() private shown = ROWS;
  #hunks: Hunk[] = [];
  #height = 0;
  #watch: IntersectionObserver | null = null;

  static override styles = [...[PlexusElement.styles].flat(), css`
    :host { display: block; border: 1px solid var(--line); border-radius: var(--r-m); background: var(--bg-raised); margin-bottom: var(--s4); scroll-margin-top: 8px; }
    /* Out of sight it costs no layout; it is as high as it was, or probably will be, and can be found and read all the same. */
    :host { content-visibility: auto; contain-intrinsic-block-size: auto calc(var(--height) + 42px); }
    :host([folded]) { contain-intrinsic-block-size: auto 42px; }
    header { position: sticky; top: 0; z-index: 2; display: flex; align-items: center; gap: 8px; padding: 4px 6px 4px 4px; background: var(--bg-raised); border-radius: var(--r-m) var(--r-m) 0 0; border-bottom: 1px solid var(--line); flex-wrap: wrap; }
    :host([folded]) header { border-bottom: 0; border-radius: var(--r-m); }
    .fold { flex: 1 1 160px; min-width: 0; justify-content: flex-start; gap: 6px; border: 0; background: none; font: 550 0.8125rem/1.4 var(--mono); text-align: start; padding: 4px; overflow-wrap: anywhere; white-space: normal; height: auto; color: var(--fg); }
    .fold svg { flex: none; color: var(--fg-mute); }
    .facts { display: flex; align-items: center; gap: 8px; font-size: var(--t-s); color: var(--fg-mute); flex-wrap: wrap; }
    .plus { color: var(--ok); } .minus { color: var(--danger); } .plus, .minus { font-variant-numeric: tabular-nums; }
    .chip { padding: 1px 7px; border-radius: 999px; background: var(--bg-active); color: var(--fg-soft); white-space: nowrap; }
    .chip.others { background: var(--warn-wash); color: var(--warn); }
    label.check { display: inline-flex; align-items: center; gap: 6px; min-height: 32px; padding: 0 4px; }
    label.check input { margin-top: 0; }
    .from { flex-basis: 100%; padding: 0 28px 2px; color: var(--fg-mute); font-size: var(--t-s); overflow-wrap: anywhere; }
    .body { overflow-x: auto; font: 0.8125rem/20px var(--mono); }
    /* What is not drawn is as high as it was, or probably will be. */
    .far { min-height: var(--height); }
    .body > p { font-family: var(--sans, inherit); padding: 12px 14px; color: var(--fg-mute); }
    .part { display: flex; align-items: center; gap: 8px; padding: 2px 10px; background: var(--info-wash); color: var(--info); min-height: 30px; position: sticky; left: 0; }
    .part .at { flex: 1; min-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
    .part button { font-size: var(--t-s); }
    .rows { min-width: max-content; }
    .row { display: flex; min-height: 20px; white-space: pre; cursor: pointer; unicode-bidi: isolate; }
    .row:focus { outline: none; } .row:focus-visible { outline: var(--focus); outline-offset: -2px; }
    .no { flex: none; width: 48px; padding-right: 8px; text-align: end; color: var(--fg-mute); user-select: none; }
    .sign { flex: none; width: 16px; user-select: none; color: var(--fg-mute); }
    .add { background: var(--add-bg); } .del { background: var(--del-bg); }
    .add > .sign { color: var(--ok); } .del > .sign { color: var(--danger); }
    mark { color: inherit; border-radius: 2px; } .add mark { background: var(--add-word); } .del mark { background: var(--del-word); }
    .chosen { box-shadow: inset 3px 0 0 var(--accent); } .chosen .no { color: var(--accent); font-weight: 650; }
    .pair { display: grid; grid-template-columns: minmax(50%, max-content) minmax(50%, max-content); } .pair > * + * { border-left: 1px solid var(--line); } .pair .none { background: var(--bg-sunken); }
    .said { position: sticky; left: 0; max-width: min(720px, 100vw - 60px); margin: 6px 12px 8px 64px; padding: 8px 10px; border: 1px solid var(--accent-line, var(--line-strong)); border-radius: var(--r-s); background: var(--bg); font-family: var(--sans, inherit); white-space: pre-wrap; overflow-wrap: anywhere; }
    .said .meta { display: flex; align-items: center; gap: 8px; color: var(--fg-mute); font-size: var(--t-s); } .said .meta .grow { flex: 1; }
    .warn { color: var(--warn); }
    @media (pointer: coarse) { .fold, label.check { min-height: 44px; } .row { min-height: 28px; line-height: 28px; } .part { min-height: 44px; } }
    @media (max-width: 599px) { .no { width: 34px; padding-right: 5px; } .said { margin-left: 12px; } }
  `];

  override connectedCallback(): void {
    super.connectedCallback();
    this.#watch = new IntersectionObserver(([entry]) => {
      if (!entry) return;
      // A diff far from the visible area is not drawn, and keeps its height.
      if (!entry.isIntersecting && this.near) this.#height = this.renderRoot.querySelector<HTMLElement>('.body')?.offsetHeight ?? this.#height;
      this.near = entry.isIntersecting;
    }, { rootMargin: '800px 0px' });
    this.#watch.observe(this);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#watch?.disconnect();
  }

  protected override willUpdate(changed: PropertyValues<this>): void {
    if (changed.has('diff')) { this.#hunks = this.diff ? hunksOf(this.diff.diff) : []; this.#height = 0; }
    this.style.setProperty('--height', `${this.#height || this.#guess()}px`);
    if (this.near && !this.folded && !this.diff && !this.problem && this.file.compared === 'text') this.#tell('wanted');
  }

  #tell(name: string, detail?: unknown): void { this.dispatchEvent(new CustomEvent(name, { detail })); }

  override render() {
    const f = this.file;
    const path = visible(f.path);
    return html`<header>
        <button class="fold" aria-expanded=${!this.folded} aria-label=${t.fold(path)} @click=${() => this.#tell('fold')}>${icon(this.folded ? 'forward' : 'down', 14)}<bdi>${path}</bdi></button>
        <span class="facts"><span class="chip">${t.status[f.status] ?? f.status}</span>
          ${f.by === 'session' ? nothing : html`<span class="chip others">${f.by === 'others' ? t.others : t.both}</span>`}
          ${this.again ? html`<span class="chip others">${t.again}</span>` : nothing}
          ${f.added == null ? nothing : html`<span role="img" aria-label=${t.lines(f.added, f.removed ?? 0)}><span class="plus">+${f.added}</span> <span class="minus">−${f.removed ?? 0}</span></span>`}
          <label class="check"><input type="checkbox" id="viewed" .checked=${this.viewed} @change=${() => this.#tell('viewed')}>${t.viewed}</label></span>
        <plexus-menu label=${t.more(path)} .items=${this.items}></plexus-menu>
        ${f.from ? html`<bdi class="from">${t.from(visible(f.from))}</bdi>` : nothing}</header>
      ${this.folded ? nothing : html`<div class="body ${this.near ? '' : 'far'}" tabindex="-1">${this.near ? this.#body() : nothing}</div>`}`;
  }

  /** The estimated height of the diff. */
  #guess(): number {
    return this.file.compared === 'text' ? Math.min(ROWS, (this.file.added ?? 0) + (this.file.removed ?? 0) + 8) * LINE_PX : 44;
  }

  #body(): TemplateResult {
    if (this.file.compared !== 'text') return html`<p>${visible(this.file.reason ?? this.file.compared)}</p>`;
    if (this.problem) return html`<p class="warn" role="alert">${this.problem} <button class="compact" @click=${() => this.#tell('wanted')}>${text.common.retry}</button></p>`;
    if (!this.diff) return html`<p class="far">${text.common.loading}</p>`;
    const parts: TemplateResult[] = [];
    let left = this.shown;
    const total = this.#hunks.reduce((sum, hunk) => sum + hunk.rows.length, 0);
    for (const hunk of this.#hunks) {
      if (left <= 0) break;
      parts.push(this.#part(hunk, hunk.rows.slice(0, left)));
      left -= hunk.rows.length;
    }
    return html`${parts}${total > this.shown ? html`<p><button class="compact" @click=${() => { this.shown += ROWS; }}>${t.showRows(Math.min(ROWS, total - this.shown))}</button></p>` : nothing}
      ${this.diff.truncated ? html`<p>${t.truncated}</p>` : nothing}`;
  }

  #part(hunk: Hunk, rows: Row[]): TemplateResult {
    const at = visible(hunk.heading);
    return html`<div class="part" role="group" aria-label=${t.hunk(visible(this.file.path), at)} tabindex="-1" data-part=${hunk.index}><span class="at">${at}</span>
        ${this.undo ? html`<button class="ghost compact" @click=${() => this.#tell('undo', hunk.index)}>${t.undoHunk}</button>` : nothing}</div>
      <div class="rows" @click=${this.#press} @keydown=${this.#key}>${this.wide
        ? sides(rows).map(([was, is]) => this.#under(is ?? was, html`<div class="pair">${this.#half(was, 'old')}${this.#half(is, 'new')}</div>`, was))
        : rows.map((row) => this.#under(row, html`<div class="row ${row.kind} ${this.#isChosen(row) ? 'chosen' : ''}" tabindex="-1" data-side=${placeOf(row).side} data-line=${placeOf(row).line}><span class="no">${row.a || ''}</span><span class="no">${row.b || ''}</span><span class="sign">${row.kind === 'add' ? '+' : row.kind === 'del' ? '−' : ' '}</span>${this.#words(row)}</div>`))}</div>`;
  }

  #half(row: Row | null, side: Side): TemplateResult {
    if (!row) return html`<div class="none"></div>`;
    const line = side === 'old' ? row.a : row.b;
    // An unchanged line stands on both sides, and is commented on the new one.
    const place = placeOf(row);
    return html`<div class="row ${row.kind} ${place.side === side && this.#isChosen(row) ? 'chosen' : ''}" tabindex="-1" data-side=${place.side} data-line=${place.line}><span class="no">${line || ''}</span><span class="sign">${row.kind === 'add' ? '+' : row.kind === 'del' ? '−' : ' '}</span>${this.#words(row)}</div>`;
  }

  #words(row: Row): unknown {
    const shown = cut(row.text, LINE_SHOWN);
    const rest = row.text.length > LINE_SHOWN ? ` ${text.session.restOfLine(row.text.length - LINE_SHOWN)}` : '';
    if (row.mate === undefined || row.kind === 'same') return html`<span>${visible(shown)}${rest}</span>`;
    return html`<span>${row.kind === 'del' ? compare(row.text, row.mate)[0] : compare(row.mate, row.text)[1]}</span>`;
  }

  #isChosen(row: Row): boolean {
    const { side, line } = placeOf(row);
    const at = this.chosen;
    return !!at && at.path === this.file.path && at.side === side && line >= at.line && line <= at.end;
  }

  /** A line with the comments that end on it. */
  #under(row: Row | null, drawn: TemplateResult, other: Row | null = null): TemplateResult {
    const mine = this.comments.filter((one) => [row, other].some((at) => { if (!at) return false; const { side, line } = placeOf(at); return one.side === side && one.end === line; }));
    return html`${drawn}${mine.length ? repeat(mine, (one) => one.id, (one) => this.#said(one)) : nothing}`;
  }

  #said(one: Comment): TemplateResult {
    return html`<div class="said" role="note" data-comment=${one.id}><div class="meta"><span>${one.side === 'old' ? t.removed(one.line) : t.line(one.line, one.end)}</span>${one.digest === this.file.digest ? nothing : html`<span class="warn">${t.stale}</span>`}<span class="grow"></span>
      <button class="ghost compact" @click=${() => this.#tell('comment-edit', one.id)}>${t.edit}</button><button class="ghost compact" @click=${() => this.#tell('comment-drop', one.id)}>${t.drop}</button></div>${one.text}</div>`;
  }

  #place(row: Element | null | undefined): { side: Side; line: number } | null {
    return row instanceof HTMLElement && row.dataset['line'] ? { side: row.dataset['side'] as Side, line: Number(row.dataset['line']) } : null;
  }

  #choose(place: { side: Side; line: number }, grow: boolean): void {
    const at = this.chosen;
    const same = grow && at && at.path === this.file.path && at.side === place.side;
    const line = same ? Math.min(at.line, place.line) : place.line;
    const end = same ? Math.max(at.end, place.line) : place.line;
    this.#tell('lines', { path: this.file.path, side: place.side, line, end, digest: this.file.digest } satisfies Lines);
  }

  #press = (event: MouseEvent): void => {
    // Text that is being selected is no press.
    if (!getSelection()?.isCollapsed) return;
    const row = (event.target as Element).closest<HTMLElement>('.row');
    const place = this.#place(row);
    if (!row || !place) return;
    row.focus({ preventScroll: true });
    this.#choose(place, event.shiftKey);
  };

  #key = (event: KeyboardEvent): void => {
    if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return;
    const all = [...this.renderRoot.querySelectorAll<HTMLElement>('.row[data-line]')];
    const at = all.indexOf(event.target as HTMLElement);
    const next = at < 0 ? undefined : all[at + (event.key === 'ArrowDown' ? 1 : -1)];
    const place = this.#place(next);
    if (!next || !place) return;
    event.preventDefault();
    next.focus();
    this.#choose(place, event.shiftKey);
  };

  /** The parts of the diff, and which of them has the focus. */
  parts(): { all: HTMLElement[]; at: number } {
    const all = [...this.renderRoot.querySelectorAll<HTMLElement>('[data-part]')];
    const here = this.shadowRoot?.activeElement ?? null;
    let at = -1;
    for (const [n, part] of all.entries()) if (here && (part === here || part.compareDocumentPosition(here) & Node.DOCUMENT_POSITION_FOLLOWING)) at = n;
    return { all, at };
  }

  /** Goes to a part, and chooses its first changed line. */
  enter(n: number): void {
    const part = this.renderRoot.querySelector<HTMLElement>(`[data-part="${n}"]`);
    const row = part?.nextElementSibling?.querySelector<HTMLElement>('.row.add') ?? part?.nextElementSibling?.querySelector<HTMLElement>('.row.del') ?? null;
    const place = this.#place(row);
    if (!row || !place) return part?.focus();
    row.focus({ preventScroll: true });
    part?.scrollIntoView({ block: 'center' });
    this.#choose(place, false);
  }
}

declare global { interface HTMLElementTagNameMap { 'plexus-change-file': PlexusChangeFile } }
