// The view of one session: follows the session, folds its events, and shows the visible rows.

import { html, nothing, type PropertyValues } from 'lit';
import { PlexusElement } from '../lib/element.js';
import { around, bind, focused, textHome } from '../lib/keys.js';
import { list } from '../lib/text.js';
import { plexus, why, type Batch } from '../plexus.js';
import { rendered } from '../render/style.js';
import { loadSurfaces, type PlexusSurface } from '../surface/index.js';
import { sendAction } from '../surface/wire.js';
import { cut, oneLine, readable } from '../render/visible.js';
import { menuOf } from '../pages/session-actions.js';
import { text as words } from '../text/en.js';
import { icon } from '../ui/icons.js';
import '../ui/menu.js';
import { toast } from '../ui/say.js';
import '../ui/state.js';
import type { Action, Surface } from '../surface/types.js';
import type { PlexusCard } from '../request/card.js';
import type { Request } from '../wire/types.js';
import './composer.js';
import type { PlexusComposer } from './composer.js';
import './dock.js';
import type { Around, PlexusDock } from './dock.js';
import { Past } from './history.js';
import { leave, take, type Followed, type Viewer } from './kept.js';
import { VirtualList } from './list.js';
import { itemMarkdown, revisionOf, type Conversation, type Item, type Row, type ToolItem } from './model.js';
import { keptTab, keepTab, pinnedFirst, setPinnedFirst } from './tab.js';
import { style } from './style.js';
import { absorbed } from './reads.js';
import { guessRow, makeRow, planList, reveal, searchable, updateRow, type Host } from './views.js';
import { silence, silentMinutes } from './silence.js';

const w = words.session;

/** Maximum length of the part of a finished message that screen readers announce, in characters. */
const SPOKEN = 400;
/** Within this distance of the top, px, older history is loaded. */
const OLDER_PX = 1_200;
/** Pause after a failed load of older history before it is tried again automatically, ms. */
const OLDER_AGAIN_MS = 5_000;
/** Maximum number of matches marked by "find". */
const FOUND_MAX = 400;

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const dated = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit' });
const today = () => new Date().toDateString();

const isAttached = (row: Row): boolean => row.item.type === 'line' && row.item.line === 'runtime' && row.item.body?.status === 'attached';

export class PlexusSession extends PlexusElement {
  static override properties = {
    sessionId: { attribute: 'session-id' }, at: { type: Number }, facts: { state: true }, trouble: { state: true }, gone: { state: true }, ready: { state: true },
    reading: { state: true }, ended: { state: true }, news: { state: true }, finding: { state: true }, announcement: { state: true }, note: { state: true }, tab: { state: true },
  };
  static override styles = [...[PlexusElement.styles].flat(), rendered, style];
  declare sessionId: string;
  /** The position of an event to scroll to. */
  declare at: number | undefined;
  declare private facts: number;
  declare private trouble: string;
  declare private gone: boolean;
  declare private ready: boolean;
  /** The number of items loaded so far while all older history is being loaded; -1 otherwise. */
  declare private reading: number;
  declare private ended: boolean;
  declare private news: number;
  declare private finding: { q: string; hits: number[]; n: number } | null;
  declare private announcement: string;
  declare private note: string;
  /** The pinned surface that the user looks at; empty for the conversation. */
  declare private tab: string;

  #list: VirtualList | null = null;
  /** The session that is shown, and all that is loaded of it. */
  #followed: Followed | null = null;
  #generation = 0;
  #filling = false;
  /** The running load of older history. */
  #loading: Promise<boolean> | null = null;
  /** The last failed load of older history: when, and the shown error. */
  #failed = { at: -Infinity, note: '' };
  #opened = new Map<string, boolean>();
  #selected: string | null = null;
  #target: string | null = null;
  #announced: unknown = null;
  #seenRows = 0;
  /** The notes above the rows. */
  #notes = 0;
  #painting = false;
  #toPlace: number | null = null;
  #unbind: () => void = () => {};
  /** The elements of the session's surfaces, which keep the user's inputs while their rows are removed and drawn again. */
  readonly #drawn = new Map<string, PlexusSurface>();
  /** Whether the session was just opened, so that its first view is still to be decided. */
  #opening = false;
  /** The pinned surface that the user chose, and the one that stands beside the conversation if there is space. */
  #place = '';
  #beside = '';

  constructor() {
    super();
    this.sessionId = '';
    this.at = undefined;
    this.facts = 0;
    this.trouble = '';
    this.gone = false;
    this.ready = false;
    this.reading = -1;
    this.ended = true;
    this.news = 0;
    this.finding = null;
    this.announcement = '';
    this.note = '';
    this.tab = '';
  }

  // --- updates ------------------------------------------------------------------------------------------------------------

  override connectedCallback(): void {
    super.connectedCallback();
    addEventListener('plexus-session-do', this.#onDo);
    const composer = () => this.#composer;
    const unbind = this.#bind();
    const leave = textHome({
      get ready() { return composer()?.ready === true; },
      commandsAt: (at) => this.#commandsAt(at),
      owns: (at) => composer()?.shadowRoot?.contains(at) === true,
      write: (text) => composer()?.write(text),
    });
    this.#unbind = () => { unbind(); leave(); };
    if (this.hasUpdated) this.#follow();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    removeEventListener('plexus-session-do', this.#onDo);
    this.#unbind();
    this.#leave();
    this.#generation++;
    this.#loading = null;
    this.#list?.stop();
    this.#list = null;
    this.#drawn.clear();
    this.#clearFound();
  }

  protected override updated(changed: PropertyValues): void {
    if (changed.has('sessionId') || !this.#list) this.#follow();
    if (changed.has('at') && this.at !== undefined && Number.isFinite(this.at)) {
      this.#toPlace = this.at;
      if (this.#conversation?.rows.length) this.#goToPlace();
    }
    this.#dress();
    // The notes above the rows affect the layout.
    const notes = this.renderRoot.querySelectorAll('.top-note').length;
    if (notes !== this.#notes) this.#list?.settle();
    this.#notes = notes;
    this.#list?.later();
    if (changed.has('finding') && this.finding && !changed.get('finding')) this.renderRoot.querySelector<HTMLInputElement>('.find input')?.focus();
  }

  #follow(): void {
    if (!this.sessionId || !this.isConnected) return;
    if (!this.#list) {
      const scroller = this.renderRoot.querySelector<HTMLElement>('.scroller');
      const feed = this.renderRoot.querySelector<HTMLElement>('.feed');
      if (!scroller || !feed) return;
      this.#list = new VirtualList(scroller, feed, {
        count: () => this.#conversation?.rows.length ?? 0,
        key: (n) => this.#conversation?.rows[n]?.key ?? '',
        revision: (n) => { const row = this.#conversation?.rows[n]; return row ? revisionOf(row) : 0; },
        guess: (n) => { const row = this.#conversation?.rows[n]; return row ? guessRow(row, Math.min(860, scroller.clientWidth - 32)) : 0; },
        make: (n) => this.#markRow(makeRow(this.#row(n), this.#host), n),
        update: (n, el) => { updateRow(this.#row(n), el, this.#host); this.#markRow(el, n); },
      }, () => this.#moved());
    }
    if (this.#followed?.session_id === this.sessionId) return;
    this.#leave();
    this.#generation++;
    this.#opened.clear();
    this.#selected = this.#target = null;
    this.#loading = null;
    this.trouble = '';
    this.gone = false;
    this.reading = -1;
    this.finding = null;
    this.note = '';
    this.#drawn.clear();
    this.tab = this.at === undefined ? keptTab(this.sessionId) : '';
    this.#opening = this.at === undefined && pinnedFirst();
    this.#list.reset();
    this.#list.atEnd = true;
    this.#list.later();
    this.#followed = take(this.sessionId, this.#viewer);
    const conversation = this.#conversation;
    this.ready = conversation !== null;
    this.requestUpdate();
    if (!conversation) return;
    // The message was shown before: screen readers have already announced it.
    this.#announced = conversation.lastMessage;
    conversation.shifted = false;
    this.#dress();
    this.#open();
    this.#changed();
  }

  /** The session that was shown stays loaded for a while, unless it could not be read. */
  #leave(): void {
    if (this.trouble) this.#followed?.stop(); else if (this.#followed) leave(this.#followed);
    this.#followed = null;
  }

  get #conversation(): Conversation | null { return this.#followed?.conversation ?? null; }
  get #past(): Past | null { return this.#followed?.past ?? null; }
  get #shelf(): Followed['shelf'] | null { return this.#followed?.shelf ?? null; }

  readonly #viewer: Viewer = { batch: (batch) => this.#applyBatch(batch), surfaces: (names) => this.#surfacesRead(names) };

  #row(n: number): Row {
    return this.#conversation?.rows[n] as Row;
  }

  #markRow(el: HTMLElement, n: number): HTMLElement {
    const key = this.#row(n).key;
    // A note that a session's agent was attached from the beginning adds no information.
    el.classList.toggle('unsaid', n === 0 && isAttached(this.#row(n)));
    el.classList.toggle('selected', key === this.#selected);
    el.classList.toggle('target', key === this.#target);
    el.setAttribute('aria-posinset', String(n + 1));
    el.setAttribute('aria-setsize', String(this.#conversation?.rows.length ?? -1));
    return el;
  }

  #applyBatch(batch: Batch): void {
    const followed = this.#followed;
    if (!followed) return;
    if (batch.trouble) { this.trouble = batch.trouble.text; this.gone = batch.trouble.gone; }
    if (this.gone) {
      // Ignores history that is still being loaded.
      this.#generation++;
      followed.conversation = followed.past = null;
      this.reading = -1;
      this.note = '';
      this.announcement = w.gone;
      this.#list?.reset();
      this.#list?.later();
    }
    if (batch.snapshot && batch.past) {
      this.trouble = '';
      this.gone = false;
      this.#generation++;
      this.#loading = null;
      this.reading = -1;
      followed.past = new Past(this.sessionId, batch.snapshot, batch.past);
      followed.asked.clear();
      followed.conversation = followed.past.fold();
      this.ready = true;
      this.#list?.reset();
      this.#announced = followed.conversation.lastMessage;
      if (batch.reset) followed.shelf.clear();
      for (const surface of list(batch.snapshot.surfaces)) followed.shelf.take(surface);
      if (batch.snapshot.surfaces_omitted) followed.shelf.refresh();
      for (const event of batch.past.events) if (event.kind === 'surface_updated') followed.shelf.take(event.event, event.at);
      this.#dress();
      this.#open();
    }
    if (!followed.conversation) return;
    let drew = false;
    for (const event of batch.events) drew = followed.apply(event) || drew;
    if (drew) { this.#dress(); this.requestUpdate(); }
    this.#changed();
  }

  /** Redraws after a change of the conversation. */
  #changed(): void {
    const conversation = this.#conversation;
    if (!conversation) return;
    if (conversation.shifted) { conversation.shifted = false; this.#list?.reset(); }
    conversation.dirty.clear();
    if (this.#toPlace !== null && conversation.rows.length) this.#goToPlace();
    this.#list?.draw();
    if (conversation.facts !== this.facts) this.facts = conversation.facts;
    if (conversation.lastMessage && conversation.lastMessage !== this.#announced) {
      this.#announced = conversation.lastMessage;
      if (plexus.link.value.phase === 'live') this.announcement = w.announceSaid(cut(readable(conversation.lastMessage.text), SPOKEN));
    }
    this.#count();
  }

  /** Loads older pages while `wanted` returns true, and shows them; the visible rows keep their position. One load at a time. Returns
   *  false if loading should not continue. */
  #older(wanted: (past: Past) => boolean, much = false): Promise<boolean> {
    if (this.#loading) return this.#loading;
    const loading = this.#load(wanted, much).finally(() => {
      // Another load has started for another session or after a reset.
      if (this.#loading !== loading) return;
      this.#loading = null;
      if (this.finding?.q) this.#search(this.finding.q);
    });
    this.#loading = loading;
    return loading;
  }

  /** Loads all older history. True once everything is loaded. */
  async #all(): Promise<boolean> {
    const past = this.#past;
    while (past && past === this.#past && past.previous !== null && await this.#older(() => true, true));
    return past !== null && past === this.#past && past.previous === null;
  }

  /** Whether older history may be loaded automatically. */
  #mayLoad(): boolean {
    return !this.#loading && Boolean(this.#past?.previous) && Date.now() - this.#failed.at > OLDER_AGAIN_MS;
  }

  async #load(wanted: (past: Past) => boolean, much: boolean): Promise<boolean> {
    const past = this.#past;
    const generation = this.#generation;
    const going = () => generation === this.#generation && this.isConnected && past === this.#past;
    if (!past) return false;
    let loaded = 0;
    let well = true;
    try {
      while (going() && past.previous !== null && wanted(past)) {
        if (much) this.reading = past.count;
        if (await past.older()) loaded++;
        // Lets frames be drawn in between.
        await new Promise((resolve) => setTimeout(resolve, 0));
      }
    } catch (error) {
      well = false;
      if (going()) this.note = (this.#failed = { at: Date.now(), note: why(error) }).note;
    }
    if (!going()) return false;
    this.reading = -1;
    if (well && this.note === this.#failed.note) this.note = '';
    if (!loaded) return well;
    this.#refold(past);
    return well;
  }

  /** Loads what pages left out of tool calls, while `going`, and shows it in its place. */
  async #wholes(ids: readonly string[], going = () => true): Promise<void> {
    const past = this.#past;
    const generation = this.#generation;
    const current = () => past === this.#past && generation === this.#generation && this.isConnected;
    if (!past) return;
    let loaded = 0;
    try {
      for (const id of ids) {
        if (!current() || !going()) break;
        this.#followed?.asked.add(id);
        if (await past.whole(id)) loaded++;
        else if (current()) this.note = w.restGone;
      }
    } catch (error) {
      if (current()) this.note = why(error);
    }
    if (loaded && current()) this.#refold(past);
  }

  /** Loads all that pages left out, and searches it; once for several letters. */
  async #searchRest(past: Past): Promise<void> {
    // A rest that could not be loaded is not requested again.
    const ids = past.shortened.filter((id) => !this.#followed?.asked.has(id));
    if (!ids.length || this.#filling) return;
    this.#filling = true;
    await this.#wholes(ids, () => Boolean(this.finding?.q));
    this.#filling = false;
    if (this.finding?.q) this.#search(this.finding.q);
  }

  /** Shows all that is loaded, at the same place. */
  #refold(past: Past): void {
    const was = this.#conversation;
    const sight = this.#blocks();
    const conversation = past.fold();
    conversation.facts = (was?.facts ?? 0) + 1;
    // Screen readers have announced it already.
    this.#announced = conversation.lastMessage;
    this.#seenRows += conversation.items.length - (was?.items.length ?? 0);
    if (this.#followed) this.#followed.conversation = conversation;
    this.#list?.prepended((n) => (was?.rows[n] ? conversation.locate(was.rows[n] as Row) : { n: -1, into: 0 }));
    this.#changed();
    // A message with older text is cut into other rows: scrolls so that the same text is where it was.
    const now = this.#blocks(true);
    for (const { text, top } of sight) {
      const same = now.filter((block) => block.text === text).map((block) => block.top - top).sort((a, b) => Math.abs(a) - Math.abs(b));
      if (same[0] === undefined) continue;
      if (Math.abs(same[0]) >= 0.5) this.#list?.shift(same[0]);
      break;
    }
    this.requestUpdate();
  }

  /** The visible blocks (with `all`, those in the document) of messages and other rows, with their positions. */
  #blocks(all = false): { text: string; top: number }[] {
    const list = this.#list;
    if (!list || list.atEnd) return [];
    const box = list.scroller.getBoundingClientRect();
    const blocks: { text: string; top: number }[] = [];
    for (const { el } of [...list.rows()].sort((a, b) => a.n - b.n)) {
      const inner = el.querySelectorAll('.prose > *');
      for (const block of inner.length ? inner : [el]) {
        const { top, bottom } = block.getBoundingClientRect();
        if (all || (bottom > box.top && top < box.bottom)) blocks.push({ text: block.textContent ?? '', top });
      }
    }
    return blocks;
  }

  // --- position ----------------------------------------------------------------------------------------------------------

  #moved(): void {
    const list = this.#list;
    if (!list) return;
    this.#count();
    if (this.ready && this.#mayLoad() && list.scroller.scrollTop < OLDER_PX) {
      let pages = 0;
      void this.#older(() => pages++ < 1);
    }
    if (this.finding && !this.#painting) {
      this.#painting = true;
      requestAnimationFrame(() => { this.#painting = false; this.#paintFound(); });
    }
  }

  #count(): void {
    const list = this.#list;
    const rows = this.#conversation?.items.length ?? 0;
    if (!list) return;
    if (list.atEnd) {
      this.#seenRows = rows;
    }
    const news = Math.max(0, rows - this.#seenRows);
    if (this.ended !== list.atEnd) this.ended = list.atEnd;
    if (this.news !== news) this.news = news;
  }

  /** Loads older history until the position is there, and scrolls to it. */
  async #reach(place: number): Promise<void> {
    const past = this.#past;
    const far = (past: Past) => past.previous !== null && place < past.first;
    while (past && past === this.#past && far(past) && await this.#older(far, true));
    if (past && past === this.#past && !far(past)) { this.#toPlace = place; this.#goToPlace(); }
  }

  #goToPlace(): void {
    const conversation = this.#conversation;
    const place = this.#toPlace;
    if (!conversation || place === null) return;
    this.#toPlace = null;
    if (this.#past?.previous && place < this.#past.first) {
      // The position is not loaded yet.
      void this.#reach(place);
      return;
    }
    const n = conversation.rowAt(place);
    this.#reveal(n);
    this.#target = conversation.rows[n]?.key ?? null;
    this.#selected = this.#target;
    this.#list?.toRow(n);
    this.#markAll();
  }

  /** Shows a call on its own, if a line stands for it. */
  #reveal(n: number): void {
    const row = this.#conversation?.rows[n];
    if (row) reveal(row.item, this.#host);
  }

  #markAll(): void {
    for (const row of this.#list?.rows() ?? []) if (this.#conversation?.rows[row.n]) this.#markRow(row.el, row.n);
  }

  #select(n: number): void {
    const conversation = this.#conversation;
    if (!conversation?.rows.length) return;
    const at = Math.max(0, Math.min(conversation.rows.length - 1, n));
    this.#selected = conversation.rows[at]?.key ?? null;
    this.#list?.show(at);
    this.#markAll();
    this.#list?.element(this.#selected ?? '')?.focus({ preventScroll: true });
  }

  #selectedRow(): number {
    const conversation = this.#conversation;
    const list = this.#list;
    if (!conversation || !list) return -1;
    const n = this.#selected ? conversation.rows.findIndex((row) => row.key === this.#selected) : -1;
    if (n >= list.first() - 1 && n <= list.last() + 1) return n;
    return -1;
  }

  #step(by: number): void {
    const conversation = this.#conversation;
    const list = this.#list;
    if (!conversation || !list) return;
    const now = this.#selectedRow();
    let n = now < 0 ? (by > 0 ? list.first() - 1 : list.last() + 1) : now;
    const from = conversation.rows[now]?.item;
    // One press moves to the next item, which may have many rows.
    const passes = (row?: Row) => row && (row.item === from || absorbed(row.item));
    do n += by; while (passes(conversation.rows[n]) && n > 0 && n < conversation.rows.length - 1);
    if (n >= 0 && conversation.rows[n] && absorbed(conversation.rows[n].item)) return;
    if (by < 0) while (n > 0 && conversation.rows[n] && conversation.rows[n - 1]?.item === conversation.rows[n]?.item) n--;
    this.#select(n);
  }

  get #composer(): PlexusComposer | null { return this.renderRoot.querySelector('plexus-composer'); }
  get #dock(): PlexusDock | null { return this.renderRoot.querySelector('plexus-dock'); }

  /** Whether letters are commands where the focus is: on a request, and in the conversation if the keyboard went there. */
  #commandsAt(at: Element | null): boolean {
    const card = around(at, (el) => el.localName === 'plexus-card') as PlexusCard | null;
    if (card) return card.open;
    if (around(at, (el) => el.localName === 'plexus-dock')) return true;
    return around(at, (el) => el.classList.contains('scroller')) !== null && at?.matches(':focus-visible') === true;
  }

  #move(by: number): void {
    if (around(focused(), (el) => el.localName === 'plexus-dock')) this.#dock?.step(by);
    else this.#step(by);
  }

  /** Leaves the composer: to the request above it, else to the conversation. */
  readonly #fromComposer = (): void => {
    if (!this.#dock?.focus()) this.renderRoot.querySelector<HTMLElement>('.scroller')?.focus({ preventScroll: true });
  };

  /** Goes to the composer; where there is none, to the conversation. */
  readonly #toComposer = (): void => {
    if (this.#composer?.ready) this.#composer.focus();
    else this.renderRoot.querySelector<HTMLElement>('.scroller')?.focus({ preventScroll: true });
  };

  readonly #scrollerKey = (event: KeyboardEvent): void => {
    if (event.key !== 'Escape' || event.defaultPrevented || !this.#composer?.ready) return;
    event.preventDefault();
    this.#composer.focus();
  };

  #bind(): () => void {
    const selected = () => this.#conversation?.rows[this.#selectedRow()];
    return bind([
      ...['j', ']'].map((key) => ({ key, atOnce: true, run: () => this.#move(1) })),
      ...['k', '['].map((key) => ({ key, atOnce: true, run: () => this.#move(-1) })),
      { key: 'o', run: () => { const row = selected(); if (row) this.#list?.element(row.key)?.querySelector<HTMLButtonElement>('.fold-head')?.click(); } },
      { key: 'e', run: () => this.#list?.toEnd() },
      { key: 'End', run: () => this.#list?.toEnd() },
      { key: 'Home', run: () => this.#list?.toRow(0, 0) },
      { key: 'mod+f', typing: true, run: () => this.#openFind() },
      { key: 'i', run: () => this.#composer?.focus() },
      { key: 'y', run: () => { const row = selected(); if (row) void navigator.clipboard.writeText(itemMarkdown(row.item)).then(() => { this.announcement = words.common.copied; }, () => { this.note = w.notCopied; }); } },
    ]);
  }

  // --- surfaces ----------------------------------------------------------------------------------------------------------

  #surfacesRead(names: string[]): void {
    for (const name of names) this.#conversation?.redraw(name);
    this.#dress();
    this.#changed();
    this.requestUpdate();
  }

  /** The element of a surface, which is made when it is first shown. */
  #surfaceEl(name: string): PlexusSurface | null {
    if (!this.#shelf?.get(name)) return null;
    let el = this.#drawn.get(name);
    if (!el) {
      void loadSurfaces().catch((error: unknown) => { this.note = why(error); });
      el = document.createElement('plexus-surface') as PlexusSurface;
      this.#drawn.set(name, el);
      this.#dressOne(name, el);
    }
    return el;
  }

  #dressOne(name: string, el: PlexusSurface): void {
    const surface = this.#shelf?.get(name);
    if (!surface) return;
    el.surface = surface;
    el.agent = plexus.sessions.peek().get(this.sessionId)?.runtime_id ?? '';
    el.session = this.sessionId;
    el.layout = surface.pinned && !surface.closed ? 'full' : 'inline';
    el.stale = !plexus.live.peek();
    el.prompts = plexus.may('prompt');
    el.approves = plexus.may('approve');
  }

  /** Gives the shown surfaces their latest state. */
  #dress(): void {
    for (const [name, el] of this.#drawn) this.#dressOne(name, el);
  }

  readonly #act = (event: Event): void => {
    const action = event as CustomEvent<Action> & { respondWith(reply: Promise<unknown>): void };
    event.stopPropagation();
    const sent = sendAction(this.sessionId, action.detail);
    // The action may have been refused because the surface changed meanwhile.
    sent.catch(() => this.#shelf?.refresh());
    action.respondWith(sent);
  };

  /** Once the surfaces are known: turns to what is pinned, if sessions open with it. */
  #open(): void {
    const first = this.#opening ? this.#shelf?.pinned() ?? [] : [];
    this.#opening = false;
    if (first.length && !first.some((one) => one.surface === this.tab)) this.tab = first[0]?.surface ?? '';
  }

  /** Shows a surface: in its own place if it is pinned, else in the conversation. */
  #showSurface(name: string): void {
    const { pinned, closed } = this.#shelf?.get(name) ?? {};
    this.#turnTo(pinned && !closed ? name : '');
    const n = this.#rowOf(name);
    if (!(pinned && !closed) && n >= 0) this.#list?.toRow(n, 60);
  }

  /** The row of a surface; -1 if it stands in none that is loaded. */
  #rowOf(name: string): number {
    return this.#conversation?.rows.findIndex(({ item }) => item.type === 'surface' && item.id === name) ?? -1;
  }

  /** The shown surface on which a request is answered. */
  #askedOn(request: Request): Surface | undefined {
    const surface = this.#shelf?.asking(request.request_id);
    return surface && (surface.pinned || this.#rowOf(surface.surface) >= 0) ? surface : undefined;
  }

  #turnTo(tab: string): void {
    this.tab = tab;
    keepTab(this.sessionId, tab);
  }

  /** The tabs of the conversation and the pinned surfaces: of all where there is room for one, of the surfaces beside the conversation. */
  #tabs(pinned: readonly Surface[], now: string, all: boolean) {
    const tabs = [...(all ? [{ id: '', title: words.surface.conversation }] : []), ...pinned.map((one) => ({ id: one.surface, title: oneLine(cut(one.title ?? '', 100)) || one.surface }))];
    const turn = (event: KeyboardEvent) => {
      const at = tabs.findIndex((one) => one.id === now);
      const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      const n = (to + tabs.length) % tabs.length;
      this.#turnTo(tabs[n]?.id ?? '');
      (event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>('button')[n]?.focus();
    };
    return html`<div class=${all ? 'switch all' : 'switch'} role="tablist" aria-label=${all ? words.surface.tabs : words.surface.surfaces} @keydown=${turn}>${tabs.map((one) => html`<button type="button" role="tab" aria-selected=${one.id === now ? 'true' : 'false'}
      tabindex=${one.id === now ? 0 : -1} @click=${() => this.#turnTo(one.id)}><bdi>${one.title}</bdi></button>`)}</div>`;
  }

  /** The choices for the user if something is pinned. */
  #choices(pinned: readonly Surface[]) {
    const first = pinnedFirst();
    return pinned.length || first ? [{ label: words.surface.openWith, separate: true, toggle: true, checked: first, run: () => {
      setPinnedFirst(!first);
      this.announcement = first ? words.surface.opensConversation : words.surface.opensPinned;
      this.requestUpdate();
    } }] : [];
  }

  // --- find ------------------------------------------------------------------------------------------------------------------

  #search(q: string): void {
    const conversation = this.#conversation;
    const wanted = q.toLowerCase();
    const hits: number[] = [];
    if (conversation && wanted) {
      conversation.rows.forEach((row, n) => {
        const part = row.item.type === 'agent' ? row.item.parts[row.part] : null;
        const text = part ? (part.kind === 'text' ? part.segment.text : '') : searchable(row.item);
        if (text.toLowerCase().includes(wanted)) hits.push(n);
      });
    }
    // Older history is loaded, and then searched.
    if (wanted && this.#mayLoad()) void this.#older(() => true, true);
    else if (wanted && this.#past?.previous === null) void this.#searchRest(this.#past);
    const first = this.#list?.first() ?? 0;
    const n = hits.length ? Math.max(0, hits.findIndex((hit) => hit >= first)) : -1;
    this.finding = { q, hits, n };
    if (n >= 0) this.#found(n); else this.#clearFound();
  }

  #found(n: number): void {
    const finding = this.finding;
    if (!finding?.hits.length) return;
    const at = (n + finding.hits.length) % finding.hits.length;
    this.finding = { ...finding, n: at };
    const row = finding.hits[at] as number;
    this.#target = null;
    this.#selected = this.#conversation?.rows[row]?.key ?? null;
    this.#reveal(row);
    const item = this.#conversation?.rows[row]?.item;
    if (item && (item.type === 'tool' || item.type === 'thought')) { this.#opened.set(String(item.key), true); item.rev++; }
    this.#list?.toRow(row, 120);
    this.#markAll();
    this.#paintFound();
  }

  #paintFound(): void {
    const registry = (CSS as unknown as { highlights?: Map<string, unknown> }).highlights;
    const Highlight = (globalThis as unknown as { Highlight?: new (...ranges: Range[]) => unknown }).Highlight;
    if (!registry || !Highlight || !this.finding?.q) return;
    const wanted = this.finding.q.toLowerCase();
    const ranges: Range[] = [];
    const now: Range[] = [];
    for (const row of this.#list?.rows() ?? []) {
      const walker = document.createTreeWalker(row.el, NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); node && ranges.length < FOUND_MAX; node = walker.nextNode()) {
        const text = (node.nodeValue ?? '').toLowerCase();
        for (let at = text.indexOf(wanted); at >= 0 && ranges.length < FOUND_MAX; at = text.indexOf(wanted, at + wanted.length)) {
          if (at + wanted.length > (node.nodeValue ?? '').length) break;
          const range = new Range();
          range.setStart(node, at);
          range.setEnd(node, at + wanted.length);
          (row.n === this.finding.hits[this.finding.n] ? now : ranges).push(range);
        }
      }
    }
    registry.set('plexus-found', new Highlight(...ranges));
    registry.set('plexus-found-now', new Highlight(...now));
  }

  #clearFound(): void {
    const registry = (CSS as unknown as { highlights?: Map<string, unknown> }).highlights;
    registry?.delete('plexus-found');
    registry?.delete('plexus-found-now');
  }

  #closeFind(): void {
    this.finding = null;
    this.#clearFound();
    this.renderRoot.querySelector<HTMLElement>('.scroller')?.focus();
  }

  // --- the host of the rows -----------------------------------------------------------------------------------------------------

  readonly #host: Host = {
    opened: (key) => this.#opened.get(key),
    open: (key, open) => { this.#opened.set(key, open); },
    whole: (item: ToolItem) => void this.#wholes([item.id]),
    again: (item: Item) => { item.rev++; this.#list?.later(); },
    me: () => plexus.me.value?.device_id,
    time: (at) => {
      const date = new Date(at);
      if (Number.isNaN(date.getTime())) return '';
      return date.toDateString() === today() ? clock.format(date) : dated.format(date);
    },
    span: (ms) => {
      const s = Math.round(ms / 1000);
      const { seconds, minutes, hours } = words.common;
      if (ms < 1000) return seconds(Math.max(0.1, Math.round(ms / 100) / 10));
      return s < 90 ? seconds(s) : s < 5_400 ? minutes(Math.round(s / 60)) : hours(Math.round(s / 3600));
    },
    link: (item) => plexus.href({ page: 'session', session_id: this.sessionId, at: Math.floor(item.key) }),
    surface: (id) => {
      const surface = this.#shelf?.get(id);
      if (!surface) return null;
      const title = oneLine(cut(surface.title ?? '', 200)) || oneLine(id);
      // A pinned surface is drawn in its own place.
      return { title, el: surface.pinned && !surface.closed ? null : this.#surfaceEl(id), show: () => this.#turnTo(id) };
    },
  };

  // --- actions -------------------------------------------------------------------------------------------------------

  /** The loaded conversation as Markdown. */
  #markdown(): string {
    const title = oneLine(plexus.sessions.value.get(this.sessionId)?.title ?? words.common.untitled);
    return [`# ${title}`, ...(this.#conversation?.items ?? []).map(itemMarkdown).filter(Boolean)].join('\n\n');
  }

  /** Handles commands of the menu and the palette. */
  readonly #onDo = (event: Event): void => {
    const what = (event as CustomEvent<string>).detail;
    if (what === 'find') this.#openFind();
    else if (what === 'copy') void this.#copyAll();
  };

  async #copyAll(): Promise<void> {
    // Copies nothing if loading failed; the error is shown.
    if (this.#past && !(await this.#all())) return;
    navigator.clipboard.writeText(this.#markdown()).then(() => toast(words.common.copied, { tone: 'ok' }), () => { this.note = w.notCopied; });
  }

  #openFind(): void {
    if (this.finding) this.renderRoot.querySelector<HTMLInputElement>('.find input')?.focus();
    else this.finding = { q: '', hits: [], n: -1 };
  }

  // --- rendering ---------------------------------------------------------------------------------------------------------

  /** The conversation, as the dock needs it. */
  #around(): Around {
    return { placeOf: ({ request_id }) => this.#conversation?.request(request_id)?.key ?? 0, askedOn: (request) => this.#askedOn(request), place: this.#place, beside: this.#beside, show: (name) => this.#showSurface(name) };
  }

  override render() {
    const conversation = this.#conversation;
    const session = plexus.sessions.value.get(this.sessionId);
    const title = oneLine(cut(session?.title ?? conversation?.title ?? '', 200)) || (this.gone ? w.goneTitle : session || conversation ? words.common.untitled : words.common.loading);
    const viewers = (plexus.viewers.value.get(this.sessionId) ?? []).map((viewer) => oneLine(viewer.name)).join(', ');
    const asked = [...plexus.requests.value.values()].some((request) => request.session_id === this.sessionId && request.state === 'open');
    const stale = !plexus.live.value;
    const stuck = session ? silentMinutes(session) : 0;
    const plan = conversation?.plan ?? [];
    const pinned = this.gone ? [] : this.#shelf?.pinned() ?? [];
    const tab = this.#place = pinned.some((one) => one.surface === this.tab) ? this.tab : '';
    const beside = this.#beside = tab || pinned[0]?.surface || '';
    return html`
      <header>
        <a class="btn ghost icon back" href=${plexus.href({ page: 'sessions' })} aria-label=${w.back}>${icon('back')}</a>
        <div class="titles">
          <h1 id="title" tabindex="-1"><bdi>${title}</bdi></h1>
          <div class="facts" ?hidden=${!session && (this.gone || this.ready)}><bdi class="agent">${oneLine(session?.runtime_id ?? '')}</bdi><span aria-hidden="true">·</span>${stuck ? html`<span class="stuck">${words.shell.sessions.silent(stuck)}</span>` : nothing}${plexus.runtimes.value.get(session?.runtime_id ?? '')?.acted_unasked ? html`<span class="stuck">${words.shell.runtimes.actsUnasked}</span>` : nothing}<bdi class="cut mono" title=${oneLine(session?.cwd ?? '')}>${oneLine(session?.cwd ?? '')}</bdi></div>
        </div>
        ${viewers ? html`<span class="lookers" title=${w.lookers(viewers)}>${icon('eye', 14, w.lookers(viewers))}<bdi class="cut names">${viewers}</bdi></span>` : nothing}
        ${session?.archived ? html`<span class="chip">${w.archived}</span>` : nothing}
        ${session?.linked ? html`<span class="mute" id="linked" title=${words.common.linked}>${icon('terminal', 14, words.common.linked)}</span>` : nothing}
        ${session ? silence(session) : nothing}
        ${session ? html`<plexus-state id="session-state" .state=${session.state}></plexus-state>` : nothing}
        ${session && plexus.me.value?.kind !== 'share' ? html`<a class="btn ghost icon" id="changes" href=${plexus.href({ page: 'changes', session_id: this.sessionId })} aria-label=${w.changes} title="${w.changes} (g c)">${icon('changes')}</a>` : nothing}
        <button class="ghost icon" id="find" aria-label=${w.find} title=${w.find} @click=${() => this.#openFind()}>${icon('search')}</button>
        ${session ? html`<plexus-menu id="menu" label=${w.menu} .items=${() => [...menuOf(session), { label: w.copyMarkdown, icon: 'copy' as const, separate: true, run: () => void this.#copyAll() }, ...this.#choices(pinned)]}></plexus-menu>` : nothing}
      </header>
      ${pinned.length ? this.#tabs(pinned, tab, true) : nothing}
      <div class=${`split ${stale ? 'stale' : ''} ${tab ? 'turned' : ''}`} @surface-action=${this.#act}>
        <div class="main">
          ${this.finding ? this.#find() : nothing}
          <div class="view"><div class="scroller" tabindex="0" role="region" aria-label=${w.conversation} @keydown=${this.#scrollerKey}>
            ${conversation?.trimmed && !conversation.older ? html`<div class="top-note">${w.earlier}</div>` : nothing}
            ${conversation?.older && this.reading < 0 ? html`<div class="top-note" id="older"><button class="compact" @click=${() => void this.#all()}>${w.loadAll}</button></div>` : nothing}
            ${this.reading >= 0 ? html`<div class="top-note" role="status">${w.loadingAll(this.reading)}</div>` : nothing}
            <div class="feed" role=${conversation?.rows.length ? 'feed' : 'group'} aria-busy=${String(!this.ready)} aria-label=${w.conversation}></div>
          </div>
          ${this.gone || this.trouble ? html`<div class="void"><h2>${this.gone ? w.gone : w.trouble(this.trouble)}</h2>${this.gone ? html`<p><a href=${plexus.href({ page: 'sessions' })}>${w.goneTo}</a></p>` : nothing}</div>`
            : !this.ready ? html`<div class="void">${stale ? words.shell.stale.unknown : w.loading}</div>`
            : conversation && !conversation.rows.slice(0, 2).some((row, n) => n > 0 || !isAttached(row)) ? html`<div class="void"><h2>${w.empty}</h2><p>${plexus.may('prompt') ? w.emptyHint : ''}</p></div>` : nothing}
          ${this.ended ? nothing : html`<button class="jump" id="jump" @click=${() => this.#list?.toEnd()}>${icon('down', 14)} ${this.news ? `${w.jump} · ${w.jumpNew(this.news)}` : w.jump}</button>`}
          </div>
          ${this.note ? html`<div class="compose"><div class="compose-inner"><p class="note danger" role="alert">${this.note}</p></div></div>` : nothing}
          <plexus-dock ?sheet=${!tab} .sessionId=${this.sessionId} .conversation=${this.#around()} @leave=${this.#toComposer}></plexus-dock>
          <plexus-composer ?hidden=${this.gone} ?asked=${asked} @leave=${this.#fromComposer} .sessionId=${this.sessionId} .conversation=${conversation} .facts=${this.facts} @sent=${() => this.#list?.toEnd()}></plexus-composer>
        </div>
        ${pinned.length ? html`<section class="pinned" aria-label=${words.surface.surfaces}>${pinned.length > 1 ? this.#tabs(pinned, beside, false) : nothing}<div class="place">${this.#surfaceEl(beside)}</div></section>` : nothing}
        <aside class=${plan.length ? 'has' : ''} aria-label=${w.plan}>${plan.length ? planList(plan) : nothing}</aside>
      </div>
      <div class="sr" aria-live="polite" id="announce">${this.announcement}</div>`;
  }

  #find() {
    const finding = this.finding;
    if (!finding) return nothing;
    return html`<search class="find panel">
      <input type="search" aria-label=${w.find} placeholder=${w.find} .value=${finding.q} @input=${(e: Event) => this.#search((e.target as HTMLInputElement).value)}
        @keydown=${(e: KeyboardEvent) => { if (e.key === 'Enter') { this.#found(finding.n + (e.shiftKey ? -1 : 1)); e.preventDefault(); } else if (e.key === 'Escape') { this.#closeFind(); e.preventDefault(); e.stopPropagation(); } }}>
      <span class="count" role="status">${finding.q ? (finding.hits.length ? w.findCount(finding.n + 1, finding.hits.length) : w.findNone) : ''}</span>
      <button class="ghost icon compact" aria-label=${w.previous} @click=${() => this.#found(finding.n - 1)}>${icon('up', 14)}</button>
      <button class="ghost icon compact" aria-label=${w.next} @click=${() => this.#found(finding.n + 1)}>${icon('down', 14)}</button>
      <button class="ghost icon compact" aria-label=${words.common.close} @click=${() => this.#closeFind()}>${icon('close', 14)}</button>
    </search>`;
  }
}
customElements.define('plexus-session', PlexusSession);
