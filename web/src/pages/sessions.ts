import { css, html, nothing } from 'lit';
import { customElement, state } from 'lit/decorators.js';
import { guard } from 'lit/directives/guard.js';
import { repeat } from 'lit/directives/repeat.js';
import { PlexusElement } from '../lib/element.js';
import { editor } from '../lib/editor.js';
import { bind, focused } from '../lib/keys.js';
import { byProject, keepFolded, projectOf, readFolded, type ProjectGroup } from '../lib/project.js';
import { oneLine } from '../lib/text.js';
import { plexus } from '../plexus.js';
import { text } from '../text/en.js';
import { icon } from '../ui/icons.js';
import { command, empty, notYet, pageStyles } from '../ui/parts.js';
import '../ui/state.js';
import type { SessionInfo, Viewer } from '../wire/types.js';
import { archive, menuOf, rename } from './session-actions.js';
import { newSession } from './begin.js';
import './abilities.js';
import './share.js';
import { silence, silentMinutes } from '../session/silence.js';

const t = text.shell.sessions;
/** Rows drawn at first; a button draws more. */
const STEP = 200;
/** Rows of one project that are drawn at first, so that a busy one does not hide the others; a button draws more. */
const PROJECT_STEP = 20;
const NOBODY: readonly Viewer[] = [];
/** Rows drawn at once, more than a phone's screen holds: the others follow slice by slice, and the page answers between them. */
const SLICE = 12;

/** The list of all sessions. */
@customElement('plexus-sessions')
export class PlexusSessions extends PlexusElement {
  @state() private filter = '';
  @state() private archived = false;
  @state() private limit = STEP;
  /** The rows that are drawn by now. */
  @state() private drawn = SLICE;
  #due: ReturnType<typeof setTimeout> | undefined;
  /** The folded projects. */
  @state() private folded: ReadonlySet<string> = readFolded();
  /** The rows drawn of a project, where there are more than at first. */
  @state() private grown: ReadonlyMap<string, number> = new Map();
  /** The only project that is shown; empty: all. */
  @state() private only = '';
  #unbind: () => void = () => {};

  static override styles = [...[PlexusElement.styles].flat(), pageStyles, css`
    .tools { display: flex; gap: var(--s2); margin-bottom: var(--s4); align-items: center; flex-wrap: wrap; }
    .filter { position: relative; flex: 1 1 200px; max-width: 340px; }
    .filter svg { position: absolute; left: 10px; top: 50%; transform: translateY(-50%); color: var(--fg-mute); pointer-events: none; }
    .filter input { padding-left: 32px; }
    .seg { display: inline-flex; border: 1px solid var(--line-strong); border-radius: var(--r-s); overflow: hidden; }
    .seg button { border: 0; border-radius: 0; background: transparent; color: var(--fg-soft); }
    .seg button[aria-pressed="true"] { background: var(--bg-active); color: var(--fg); }
    .seg button:focus-visible { outline-offset: -2px; }
    .project { margin-bottom: var(--s4); }
    .project.folded { margin-bottom: 2px; } .project.folded + .project:not(.folded) { margin-top: var(--s3); }
    .project > h2 { position: sticky; top: 0; z-index: 2; display: flex; align-items: center; gap: 2px; background: var(--bg); padding: 2px 0; }
    .fold { flex: 1; min-width: 0; justify-content: flex-start; gap: 8px; min-height: 36px; padding: 0 8px 0 6px; border: 0; background: transparent; color: var(--fg); font-size: var(--t-m); font-weight: 600; }
    .fold:hover { background: var(--bg-hover); }
    .fold > svg { flex: none; color: var(--fg-mute); transition: transform 0.12s; }
    .fold[aria-expanded="false"] > svg { transform: rotate(-90deg); }
    .fold .name { flex: 0 1 auto; min-width: 40px; text-align: left; }
    .fold .root { flex: 0 100 auto; min-width: 0; color: var(--fg-mute); font-size: var(--t-s); font-weight: 400; }
    .fold .n { flex: none; color: var(--fg-mute); font-size: var(--t-s); font-weight: 450; }
    .fold .chip { flex: none; margin-left: auto; }
    .rest { margin-top: 4px; color: var(--fg-soft); }
    .narrow[aria-pressed="true"] { background: var(--bg-active); color: var(--fg); }
    .branch { flex: none; max-width: 22ch; font-weight: 500; height: 18px; }
    .branch svg { flex: none; }
    .row { position: relative; display: grid; grid-template-columns: 20px minmax(0, 1fr) auto auto; gap: 2px 10px; align-items: center; padding: 9px 6px 9px 14px; min-height: 54px; }
    .row:hover { background: var(--bg-hover); }
    .row:first-child { border-radius: inherit; } .row:last-child { border-radius: inherit; }
    .row > a { color: inherit; min-width: 0; text-decoration: none; }
    .row > a::after { content: ""; position: absolute; inset: 0; border-radius: inherit; }
    .row > a:focus-visible { outline: none; }
    .row > a:focus-visible::after { outline: var(--focus); outline-offset: -2px; border-radius: var(--r-s); }
    .title { display: flex; align-items: center; gap: 7px; font-weight: 550; min-width: 0; }
    .unread .title { font-weight: 650; }
    .new { width: 7px; height: 7px; border-radius: 50%; background: var(--accent); flex: none; }
    .sub { display: flex; gap: 6px; color: var(--fg-mute); font-size: var(--t-s); min-width: 0; white-space: nowrap; overflow: hidden; }
    .sub .agent { color: var(--fg-soft); flex: none; }
    .sub .folder { direction: rtl; text-align: left; }
    .doing { color: var(--fg-soft); }
    .side { display: flex; align-items: center; gap: 8px; font-size: var(--t-s); color: var(--fg-mute); }
    .side .age { min-width: 44px; text-align: right; }
    .menu { position: relative; z-index: 1; }
    .who { display: inline-flex; gap: 4px; align-items: center; }
    @media (pointer: coarse) { .fold, .narrow, .rest { min-height: 44px; } .narrow { min-width: 44px; } }
    @media (max-width: 599px) { .fold .root { display: none; } .branch { max-width: 14ch; } .row { padding-right: 0; } .side .who, .side .q { display: none; } .side { flex-direction: column-reverse; align-items: flex-end; gap: 2px; } .side .age { min-width: 0; } .filter { max-width: none; } }
  `];

  override connectedCallback(): void {
    super.connectedCallback();
    const rows = () => [...this.renderRoot.querySelectorAll<HTMLElement>('.fold, .row > a, .rest')];
    const step = (by: number) => () => {
      const all = rows();
      const i = all.indexOf(focused() as HTMLElement);
      all[i < 0 ? (by > 0 ? 0 : all.length - 1) : Math.max(0, Math.min(all.length - 1, i + by))]?.focus();
    };
    const on = (act: (s: SessionInfo) => unknown) => () => {
      const id = (focused() as HTMLElement | null)?.dataset?.['session'];
      const s = id ? plexus.sessions.peek().get(id) : undefined;
      if (s && plexus.may('prompt')) void act(s);
    };
    this.#unbind = bind([
      { key: 'j', atOnce: true, run: step(1) }, { key: 'k', atOnce: true, run: step(-1) }, { key: 'ArrowDown', run: step(1) }, { key: 'ArrowUp', run: step(-1) },
      { key: 'e', run: on((s) => archive(s)) }, { key: 'r', run: on((s) => rename(s)) },
      { key: 'ArrowLeft', run: () => this.#side(true) }, { key: 'ArrowRight', run: () => this.#side(false) },
      { key: 'p', run: () => { const key = this.#at(); if (key || this.only) this.#narrow(this.only ? '' : key); } },
      { key: '/', atOnce: true, run: () => this.renderRoot.querySelector('input')?.focus() },
    ]);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#unbind();
    clearTimeout(this.#due);
    this.#due = undefined;
  }

  /** Draws the next slice, until every row that is shown is there. */
  #drawOn(shown: number): void {
    if (this.drawn >= shown || this.#due !== undefined) return;
    this.#due = setTimeout(() => { this.#due = undefined; this.drawn += SLICE; }, 0);
  }

  /** The project that has the focus: its header, or a row of it. */
  #at(): string {
    const section = (focused() as HTMLElement | null)?.closest<HTMLElement>('.project');
    return section?.dataset['project'] ?? '';
  }

  #fold(key: string, fold = !this.folded.has(key)): void {
    const folded = new Set(this.folded);
    folded.delete(key);
    if (fold) folded.add(key);
    this.folded = folded;
    keepFolded(folded);
  }

  /** Left and right: from a row to its project's header, which they fold and unfold. */
  #side(left: boolean): void {
    const at = focused() as HTMLElement | null;
    const section = at?.closest<HTMLElement>('.project');
    const header = section?.querySelector<HTMLElement>('.fold');
    const key = section?.dataset['project'];
    if (!at || !header || key === undefined) return;
    const open = header.getAttribute('aria-expanded') === 'true';
    if (at !== header) { if (left) header.focus(); }
    else if (left === open) this.#fold(key, left);
    else if (!left) section?.querySelector<HTMLElement>('.row > a')?.focus();
  }

  /** Draws more rows of a project; the first of them gets the focus. */
  #grow(key: string, from: number): void {
    this.grown = new Map(this.grown).set(key, from + STEP);
    this.limit += STEP;
    void this.updateComplete.then(() => {
      const section = [...this.renderRoot.querySelectorAll<HTMLElement>('.project')].find((one) => one.dataset['project'] === key);
      section?.querySelectorAll<HTMLElement>('.row > a')[from]?.focus();
    });
  }

  /** Shows one project, or all. */
  #narrow(key: string): void {
    const was = this.only || key;
    [this.only, this.limit] = [key, STEP];
    // The header keeps the focus, wherever it is now.
    void this.updateComplete.then(() => {
      const section = [...this.renderRoot.querySelectorAll<HTMLElement>('.project')].find((one) => one.dataset['project'] === was);
      section?.querySelector<HTMLElement>('.fold')?.focus();
    });
  }

  #groups(open: ReadonlyMap<string, number>): ProjectGroup[] {
    const q = this.filter.trim().toLowerCase();
    const news = plexus.news.value;
    const words = (s: SessionInfo) => `${s.title ?? ''} ${s.runtime_id} ${s.project?.name ?? ''} ${s.project?.branch ?? ''} ${s.project?.worktree ?? ''} ${s.cwd} ${t.state[s.state] ?? ''} ${s.doing ?? ''}`;
    const some = [...plexus.sessions.value.values()]
      .filter((s) => Boolean(s.archived) === this.archived)
      .filter((s) => !this.only || projectOf(s).key === this.only)
      .filter((s) => !q || words(s).toLowerCase().includes(q));
    // While a run goes on, its session stays where it is, whatever the agent says.
    const at = (s: SessionInfo) => s.run_id && s.prompted_at ? Date.parse(s.prompted_at) : news.get(s.session_id) ?? Date.parse(s.updated_at);
    return byProject(some, (s) => open.get(s.session_id) ?? s.open_requests, at);
  }

  /** The number of open requests of each session. */
  #open(): Map<string, number> {
    const counts = new Map<string, number>();
    for (const r of plexus.requests.value.values()) if (r.state === 'open') counts.set(r.session_id, (counts.get(r.session_id) ?? 0) + 1);
    return counts;
  }

  override render() {
    const open = this.#open();
    const groups = this.#groups(open);
    // A match of the filter is shown even in a folded project.
    const folds = (group: ProjectGroup): boolean => !this.filter.trim() && this.only !== group.key && this.folded.has(group.key);
    let left = this.limit;
    let more = 0;
    const shown = groups.map((group) => {
      const folded = folds(group);
      const most = groups.length === 1 ? left : Math.min(left, this.grown.get(group.key) ?? PROJECT_STEP);
      const rows = folded ? [] : group.sessions.slice(0, most);
      if (!folded && !rows.length) more += group.sessions.length;
      left -= rows.length;
      return { group, rows, folded };
    }).filter(({ rows, folded }) => rows.length || folded);
    this.#drawOn(this.limit - left);
    let undrawn = this.drawn;
    const slices = shown.map((one) => {
      const rows = one.rows.slice(0, Math.max(0, undrawn));
      undrawn -= rows.length;
      return { ...one, rows, all: one.rows.length };
    });
    return html`<div class="page">
      <header><h1 tabindex="-1">${t.title}</h1>
        ${plexus.may('prompt') ? html`<button class="primary" id="new" @click=${newSession}>${icon('plus')}${t.new}</button>` : nothing}</header>
      <div class="tools">
        <div class="filter">${icon('search')}<input type="search" aria-label=${t.filter} placeholder=${t.filterHint} .value=${this.filter} @input=${(e: Event) => { this.filter = (e.target as HTMLInputElement).value; this.limit = STEP; }}
          @keydown=${(e: KeyboardEvent) => { if (e.key === 'ArrowDown' || e.key === 'Enter') { e.preventDefault(); this.renderRoot.querySelector<HTMLElement>('.row > a')?.focus(); } }}></div>
        <div class="seg" role="group" aria-label=${t.which}>${[false, true].map((a) => html`<button aria-pressed=${this.archived === a} @click=${() => { this.archived = a; }}>${a ? t.showArchived : t.showActive}</button>`)}</div>
      </div>
      ${slices.length ? repeat(slices, ({ group }) => group.key, ({ group, rows, all, folded }) => this.#group(group, rows, all, folded, open)) : this.#none()}
      ${more ? html`<p><button id="more" @click=${() => { this.limit += STEP; }}>${text.common.more} (${more})</button></p>` : nothing}
      <plexus-share></plexus-share><plexus-abilities></plexus-abilities>
    </div>`;
  }

  #none() {
    if (!plexus.loaded.value) return notYet();
    if (this.filter || this.only) return empty('search', t.noneFound, t.noneFoundText, html`<button @click=${() => { [this.filter, this.only] = ['', '']; }}>${t.clear}</button>`);
    if (this.archived) return empty('archive', t.noneArchived, t.noneArchivedText);
    return empty('sessions', t.none, t.noneText, command(t.noneCommand));
  }

  /** One project. Of the rows that belong here (`all`) those of the next slices are still to come. */
  #group(group: ProjectGroup, rows: SessionInfo[], all: number, folded: boolean, open: ReadonlyMap<string, number>) {
    const { key, name, root, sessions, waiting } = group;
    const only = this.only === key;
    const narrow = only ? t.allProjects(name) : t.only(name);
    return html`<section class="project ${folded ? 'folded' : ''}" data-project=${key}>
      <h2><button class="fold" aria-expanded=${!folded} @click=${() => this.#fold(key)}>${icon('down', 14)}<bdi class="name cut">${name}</bdi><span class="root cut" aria-hidden="true"><bdi>${root}</bdi></span>
        <span class="n">${t.count(sessions.length)}</span>${waiting ? html`<span class="chip warn">${t.requests(waiting)}</span>` : nothing}</button>
        <button class="ghost icon narrow" aria-pressed=${only} aria-label=${narrow} title=${narrow} @click=${() => this.#narrow(only ? '' : key)}>${icon('only', 14)}</button></h2>
      ${folded ? nothing : html`<ul class="list">${repeat(rows, (s) => s.session_id, (s) => this.#row(s, open.get(s.session_id) ?? s.open_requests))}</ul>
        ${all < sessions.length ? html`<button class="ghost rest" @click=${() => this.#grow(key, all)}>${t.more(sessions.length - all, name)}</button>` : nothing}`}</section>`;
  }

  /** A row; drawn anew only if something in it is new. */
  #row(s: SessionInfo, open: number) {
    const unread = plexus.unread.value.has(s.session_id);
    const at = plexus.news.value.get(s.session_id) ?? Date.parse(s.updated_at);
    const viewers = plexus.viewers.value.get(s.session_id) ?? NOBODY;
    const can = plexus.runtimes.value.get(s.runtime_id)?.capabilities;
    return guard([s, open, unread, at, viewers, silentMinutes(s), plexus.me.value, editor.value, can], () => this.#drawRow(s, open, unread, at, viewers));
  }

  #drawRow(s: SessionInfo, open: number, unread: boolean, at: number, viewers: readonly Viewer[]) {
    const title = oneLine(s.title) || text.common.untitled;
    const doing = oneLine(s.doing ?? '');
    const { branch, worktree, below } = projectOf(s);
    const where = worktree ? t.worktree(worktree) : t.branch(branch);
    return html`<li class="row ${unread ? 'unread' : ''}">
      <plexus-state .state=${s.state} bare></plexus-state>
      <a href=${plexus.href({ page: 'session', session_id: s.session_id })} data-session=${s.session_id}>
        <span class="title"><bdi class="cut">${title}</bdi>${unread ? html`<span class="new" role="img" aria-label=${t.unread}></span>` : nothing}</span>
        <span class="sub">${branch ? html`<span class="chip branch" title=${where}>${icon(worktree ? 'folder' : 'branch', 12, where)}<bdi class="cut" aria-hidden="true">${branch}</bdi></span>` : nothing}<bdi class="agent">${oneLine(s.runtime_id)}</bdi>${doing || below ? html`<span aria-hidden="true">·</span>` : nothing}${doing ? html`<bdi class="doing cut">${doing}</bdi>` : html`<bdi class="cut">${below}</bdi>`}</span></a>
      <span class="side">
        ${s.linked ? html`<span class="mute" title=${text.common.linked}>${icon('terminal', 14, text.common.linked)}</span>` : nothing}
        ${viewers.length ? html`<span class="who" title=${t.lookers(viewers.map((viewer) => oneLine(viewer.name)).join(', '))}>${icon('eye', 14, t.lookers(viewers.map((viewer) => oneLine(viewer.name)).join(', ')))}${viewers.length}</span>` : nothing}
        ${s.queue?.length ? html`<span class="chip q">${t.queued(s.queue.length)}</span>` : nothing}
        ${silence(s)}
        ${open ? html`<span class="chip warn">${t.requests(open)}</span>` : nothing}
        <span class="age"><plexus-age .at=${at} short></plexus-age></span></span>
      <plexus-menu class="menu" label=${t.menu(title)} .items=${() => menuOf(s)}></plexus-menu></li>`;
  }
}
