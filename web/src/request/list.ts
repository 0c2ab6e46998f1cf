// The list of open requests: two lines for each, and one open card. The order is fixed once it is drawn: new requests are added below, and
// resolved ones stay until nobody uses the list. Only the rows in sight are in the document; all have the same height, whatever comes.

import { html, nothing, type PropertyValues } from 'lit';
import { live } from 'lit/directives/live.js';
import { repeat } from 'lit/directives/repeat.js';
import { PlexusElement } from '../lib/element.js';
import { bind } from '../lib/keys.js';
import { digits } from '../lib/digits.js';
import { oneLine } from '../lib/text.js';
import { plexus } from '../plexus.js';
import { text } from '../text/en.js';
import { faceStyles } from '../ui/face.js';
import { icon } from '../ui/icons.js';
import { announce } from '../ui/say.js';
import { sameAs, wordsOf } from './asked.js';
import './card.js';
import type { PlexusCard } from './card.js';
import { joinList } from './keys.js';
import { BESIDE_PX, listStyles } from './list.css.js';
import './many.js';
import type { PlexusMany } from './many.js';
import { isLeft } from './left.js';
import { answerer } from './me.js';
import { clustered, entriesOf, indexAt, newOrder, offsetsOf, rangeOf, type Entry, type Grouping, type Placed } from './order.js';
import { outcomeOf } from './outcome.js';
import { rowOf, type RowHost } from './row.js';
import { wasSeen } from './seen.js';
import { NONE, planOf, ranged, stillChosen, toggled, toggledAll, type Chosen } from './several.js';
import type { Request } from './wire.js';

const t = text.request;

/** Minimum time that a resolved row stays, ms: time to read the outcome. */
const STAY_MS = 8_000;
/** Time after the last touch in which the list counts as in use, ms: a touch screen does not report the place of a finger between
 *  touches. */
const TOUCHED_MS = 4_000;
/** Time that the pointer or the focus may rest in the list until the list no longer counts as in use, ms: on a phone the focus never
 *  leaves by itself. */
const RESTING_MS = 60_000;
/** Interval of the check whether resolved rows can be removed, ms. */
const SWEEP_MS = 1_000;
/** Heights of a row and of a group's header, in the page's font size; with fingers, they are higher. As in list.css.ts. */
const ROW_REM = { fine: 3, coarse: 3.5 } as const;
const HEAD_REM = { fine: 2.5, coarse: 2.75 } as const;
/** Heights of rows and headers here, px. Known before the first row is drawn, so that none moves afterwards. */
function heightsNow(): { row: number; head: number } {
  const rem = parseFloat(getComputedStyle(document.documentElement).fontSize) || 16;
  const pointer = matchMedia('(pointer: coarse)').matches ? 'coarse' : 'fine';
  return { row: ROW_REM[pointer] * rem, head: HEAD_REM[pointer] * rem };
}
/** Distance beyond the visible area in which rows are drawn, px: screen readers and the keyboard find the next ones there. */
const MARGIN_PX = 400;
/** Cards that stay in the document though others are open, so that what was typed in them is kept. */
const KEPT = 8;
/** Pause between two announcements, ms, and before one: several requests at once are one sentence. */
const TELL_MS = 2_500;
const GATHER_MS = 500;
const GROUPING_KEY = 'plexus.inbox.groups';
const GROUPINGS: readonly Grouping[] = ['command', 'session', 'none'];

function keptGrouping(): Grouping {
  try {
    const kept = localStorage.getItem(GROUPING_KEY);
    return GROUPINGS.find((one) => one === kept) ?? 'command';
  } catch { return 'command'; }
}

/** `<plexus-requests>`: all open requests. The slot `title` is the heading. */
export class PlexusRequests extends PlexusElement {
  static override properties = { beside: { type: Boolean, reflect: true }, opened: { state: true }, active: { state: true }, grouping: { state: true } };
  /** Whether there is room for the card beside the rows. */
  declare beside: boolean;
  /** The request whose card is open; empty if none. */
  declare opened: string;
  /** The row that the keyboard is at, by key. */
  declare private active: string;
  declare private grouping: Grouping;

  #order: Placed[] = [];
  #entries: Entry[] = [];
  #offsets: number[] = [0];
  #by = new Map<string, Request>();
  #gone = new Set<string>();
  #folded = new Set<string>();
  #chosen: Chosen = NONE;
  #kept: string[] = [];
  /** The time when each resolved request was first seen as resolved, ms since the epoch. */
  #closedAt = new Map<string, number>();
  /** The person closed the card: none opens by itself until they open one. */
  #shut = false;
  /** The request that was answered last in the sheet. */
  #last = '';
  #touchedAt = 0;
  #inside = false;
  #sweep: ReturnType<typeof setInterval> | undefined;
  #unseen = new Set<string>();
  #first = true;
  #sizes: ResizeObserver | undefined;
  #top = 0;
  #height = 0;
  /** The first row in sight and how far it is scrolled out, px: it stays there when rows above it go. */
  #anchor: { key: string; into: number } | null = null;
  #heights = heightsNow();
  #news: string[] = [];
  #outcomes: string[] = [];
  #told = 0;
  #tellTimer: ReturnType<typeof setTimeout> | undefined;
  #unbind: () => void = () => {};
  #leave: () => void = () => {};

  constructor() {
    super();
    this.beside = false;
    this.opened = '';
    this.active = '';
    this.grouping = keptGrouping();
  }

  static override styles = [...[PlexusElement.styles].flat(), faceStyles, listStyles];

  // --- life --------------------------------------------------------------------------------------------------------------

  override connectedCallback(): void {
    super.connectedCallback();
    for (const name of ['pointerenter', 'pointermove', 'pointerdown'] as const) this.addEventListener(name, this.#pointer);
    this.addEventListener('pointerleave', this.#left);
    this.addEventListener('keydown', this.#used);
    this.#sweep = setInterval(this.#clean, SWEEP_MS);
    this.#leave = joinList(this);
    this.#unbind = bind([
      ...['j', ']'].map((key) => ({ key, atOnce: true, run: () => this.#step(1) })),
      ...['k', '['].map((key) => ({ key, atOnce: true, run: () => this.#step(-1) })),
      { key: 'x', atOnce: true, run: () => this.#tickActive() },
      { key: 'X', atOnce: true, run: () => this.#choose(NONE) },
    ]);
    this.#sizes = new ResizeObserver(() => this.#measure());
    this.#sizes.observe(this);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    for (const name of ['pointerenter', 'pointermove', 'pointerdown'] as const) this.removeEventListener(name, this.#pointer);
    this.removeEventListener('pointerleave', this.#left);
    this.removeEventListener('keydown', this.#used);
    clearInterval(this.#sweep);
    clearTimeout(this.#tellTimer);
    this.#leave();
    this.#unbind();
    this.#sizes?.disconnect();
  }

  #pointer = (event: PointerEvent): void => {
    this.#inside = event.pointerType === 'mouse';
    this.#touchedAt = Date.now();
  };
  #left = (): void => {
    this.#inside = false;
  };
  #used = (): void => {
    this.#touchedAt = Date.now();
  };

  /** Whether nobody uses the list, so that rows may be removed and join groups. */
  get #untouched(): boolean {
    if (this.#chosen.ids.size) return false;
    const resting = this.#inside || this.matches(':focus-within');
    return Date.now() - this.#touchedAt > (resting ? RESTING_MS : TOUCHED_MS);
  }

  get #scroller(): HTMLElement | null {
    return this.renderRoot.querySelector('.scroller');
  }

  /** The card of the row that contains an element: the row was chosen by whoever put the focus there. */
  cardAt(el: Element): PlexusCard | null {
    const id = el.closest<HTMLElement>('[role="row"]')?.dataset['request'];
    return id !== undefined && id === this.opened ? this.#card(id) : null;
  }

  /** While something is selected, the keys that allow and deny mean all of it. They only ask: a dialog lists what follows. */
  several(key: string): (() => void) | null {
    const sense = key === 'a' ? 'allow' : key === 'd' || key === 'r' ? 'deny' : null;
    return this.#chosen.ids.size && sense ? () => this.#many(sense) : null;
  }

  #card(id: string): PlexusCard | null {
    return [...this.renderRoot.querySelectorAll<PlexusCard>('plexus-card')].find((card) => card.request.request_id === id) ?? null;
  }

  #measure(): void {
    const scroller = this.#scroller;
    this.#heights = heightsNow();
    this.beside = this.clientWidth >= BESIDE_PX;
    this.#height = scroller?.clientHeight ?? 0;
    this.requestUpdate();
  }

  /** Removes resolved rows, and lets new ones join their groups, while nobody uses the list. */
  #clean = (): void => {
    if (document.hidden || !this.#untouched) return;
    for (const [id, at] of this.#closedAt) {
      if (Date.now() - at < STAY_MS || this.#card(id)?.unsettled) continue;
      this.#gone.add(id);
    }
    this.requestUpdate();
  };

  // --- what is listed ------------------------------------------------------------------------------------------------------

  #keyOf = (request: Request): string => (this.grouping === 'command' ? sameAs(request) : this.grouping === 'session' ? request.session_id : '');

  /** Brings the rows up to date with the requests. */
  #arrange(): void {
    const all = [...plexus.requests.value.values()];
    const known = new Set(this.#order.map((one) => one.id));
    const shown = all.filter((request) => !this.#gone.has(request.request_id) && (request.state === 'open' || known.has(request.request_id)));
    this.#by = new Map(shown.map((request) => [request.request_id, request]));
    const { order, added } = newOrder(this.#order, shown, { fresh: this.#first, settled: this.#untouched, keyOf: this.#keyOf });
    this.#order = order;
    for (const id of this.#gone) if (!plexus.requests.value.has(id)) this.#gone.delete(id);
    if (!this.#first) {
      for (const id of added) this.#unseen.add(id);
      this.#news.push(...added);
    }
    if (plexus.loaded.value) this.#first = false;
    for (const request of shown) {
      if (request.state === 'open') this.#closedAt.delete(request.request_id);
      else if (!this.#closedAt.has(request.request_id)) {
        this.#closedAt.set(request.request_id, Date.now());
        if (request.request_id !== this.opened) this.#outcomes.push(request.request_id);
      }
    }
    for (const id of this.#closedAt.keys()) if (!this.#by.has(id)) this.#closedAt.delete(id);
    for (const id of this.#unseen) if (!this.#by.has(id)) this.#unseen.delete(id);
    this.#chosen = stillChosen(this.#chosen, (id) => this.#by.get(id)?.state === 'open');
    this.#entries = entriesOf(order, this.#folded);
    this.#offsets = offsetsOf(this.#entries, this.#heights.row, this.#heights.head);
    this.#open();
    if (!this.#entries.some((entry) => entry.key === this.active)) this.active = this.opened && this.#indexOf(this.opened) >= 0 ? this.opened : (this.#entries[0]?.key ?? '');
  }

  /** Decides which card is open: the same one, as long as its row exists; beside the rows, else the first. */
  #open(): void {
    if (this.opened && !this.#by.has(this.opened)) this.opened = '';
    this.#kept = this.#kept.filter((id) => this.#by.has(id));
    if (this.opened || this.#shut) return;
    const open = this.#order.filter(({ id }) => this.#by.get(id)?.state === 'open' && !isLeft(id) && id !== this.#last);
    // Over the rows it would hide them: it opens by itself only if there is nothing to choose from.
    if (!open[0] || !(this.beside || open.length === 1)) return;
    this.#show(open[0].id);
    if (!this.matches(':focus-within')) this.active = open[0].id;
  }

  #show(id: string): void {
    this.opened = id;
    this.#kept = [id, ...this.#kept.filter((one) => one !== id)];
    // A card with a sent answer without an outcome is retained, however many there are.
    this.#kept = this.#kept.filter((one, n) => n < KEPT || this.#card(one)?.unsettled);
  }

  #indexOf(key: string): number {
    return this.#entries.findIndex((entry) => entry.key === key);
  }

  protected override willUpdate(): void {
    this.#holdAnchor();
    this.#arrange();
  }

  /** Remembers what is at the top of the visible rows. */
  #holdAnchor(): void {
    const n = indexAt(this.#offsets, this.#top);
    const entry = this.#entries[n];
    this.#anchor = entry && this.#top > 0 ? { key: entry.key, into: this.#top - this.#offsets[n]! } : null;
  }

  protected override updated(changed: PropertyValues): void {
    const scroller = this.#scroller;
    const rows = this.renderRoot.querySelector<HTMLElement>('.rows');
    if (!scroller || !rows) return;
    // The style is set by script: the Content-Security-Policy forbids style attributes in markup.
    rows.style.blockSize = `${this.#offsets[this.#offsets.length - 1]}px`;
    for (const row of rows.querySelectorAll<HTMLElement>('[data-n]')) row.style.insetBlockStart = `${this.#offsets[Number(row.dataset['n'])] ?? 0}px`;
    const at = this.#anchor ? this.#indexOf(this.#anchor.key) : -1;
    if (this.#anchor && at >= 0) {
      const top = this.#offsets[at]! + this.#anchor.into;
      if (Math.abs(top - this.#top) >= 1) scroller.scrollTop = top;
    }
    if (scroller.clientHeight !== this.#height || this.#top !== scroller.scrollTop) {
      this.#height = scroller.clientHeight;
      this.#top = scroller.scrollTop;
      this.requestUpdate();
    }
    if (changed.has('beside') || changed.has('opened')) this.#intoSight(this.#indexOf(this.opened));
    this.#look();
    this.#tell();
  }

  /** Forgets that requests are new once their rows were in sight. */
  #look(): void {
    if (!this.#unseen.size || document.hidden || !this.#height) return;
    const before = this.#unseen.size;
    const [from, to] = rangeOf(this.#offsets, this.#top, this.#height - this.#heights.row, 0);
    for (const entry of this.#entries.slice(from, to)) for (const id of entry.kind === 'group' ? entry.ids : [entry.id]) this.#unseen.delete(id);
    if (this.#unseen.size !== before) this.requestUpdate();
  }

  /** Announces new and resolved requests, several in one sentence. */
  #tell(): void {
    if (!this.#news.length && !this.#outcomes.length) return;
    const wait = Math.max(GATHER_MS, this.#told + TELL_MS - performance.now());
    this.#tellTimer ??= setTimeout(() => { this.#tellTimer = undefined; this.#say(); }, wait);
  }

  #say(): void {
    this.#told = performance.now();
    const me = plexus.me.peek()?.device_id;
    const one = this.#by.get(this.#news[0] ?? '');
    const done = this.#by.get(this.#outcomes[0] ?? '');
    const sentences = [
      this.#news.length === 1 && one ? t.opened(oneLine(one.runtime_id), wordsOf(one)) : this.#news.length ? t.openedMany(this.#news.length) : '',
      this.#outcomes.length === 1 && done ? `${done.receipt ? outcomeOf(done.receipt, done, me).text : t.gone}: ${wordsOf(done)}.` : this.#outcomes.length ? t.resolvedMany(this.#outcomes.length) : '',
    ];
    this.#news = [];
    this.#outcomes = [];
    announce(sentences.filter(Boolean).join(' '));
  }

  // --- moving --------------------------------------------------------------------------------------------------------------

  /** Scrolls so that row `n` is in sight. */
  #intoSight(n: number): void {
    const scroller = this.#scroller;
    if (!scroller || n < 0 || !this.#height) return;
    const top = this.#offsets[n]!;
    const end = this.#offsets[n + 1]!;
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    else if (end > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = end - scroller.clientHeight;
  }

  /** Moves the keyboard to row `n`, and opens its card. */
  async #goTo(n: number, range = false): Promise<void> {
    const entry = this.#entries[Math.max(0, Math.min(this.#entries.length - 1, n))];
    if (!entry) return;
    const from = this.active;
    this.active = entry.key;
    this.#touchedAt = Date.now();
    if (entry.kind === 'request') {
      this.#shut = false;
      this.#show(entry.id);
      if (range) {
        const chosen = this.#chosen.anchor ? this.#chosen : { ids: this.#chosen.ids, anchor: this.#by.has(from) ? from : entry.id };
        this.#chosen = ranged(chosen, entry.id, this.#openIds());
      }
    }
    this.requestUpdate();
    await this.updateComplete;
    this.#intoSight(this.#indexOf(entry.key));
    this.requestUpdate();
    await this.updateComplete;
    this.#row(entry.key)?.focus({ preventScroll: true });
  }

  #row(key: string): HTMLElement | null {
    return [...this.renderRoot.querySelectorAll<HTMLElement>('[role="row"]')].find((row) => row.dataset['key'] === key) ?? null;
  }

  /** The next row, or the previous one; the first step only goes to the row whose card is open. */
  #step(by: number): void {
    const n = this.#indexOf(this.active);
    void this.#goTo(this.matches(':focus-within') && n >= 0 ? n + by : Math.max(0, n));
  }

  /** The open requests in the order of the rows, also those of folded groups. */
  #openIds(): string[] {
    return this.#order.map((one) => one.id).filter((id) => this.#by.get(id)?.state === 'open');
  }

  #rowKey = (event: KeyboardEvent): void => {
    if ((event.ctrlKey || event.metaKey) && event.key === 'a') {
      this.#choose(toggledAll(NONE, this.#openIds()));
      event.preventDefault();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const n = this.#indexOf(this.active);
    const entry = this.#entries[n];
    const page = Math.max(1, Math.floor(this.#height / this.#heights.row) - 1);
    const steps: Record<string, number> = { ArrowDown: n + 1, ArrowUp: n - 1, Home: 0, End: this.#entries.length - 1, PageDown: n + page, PageUp: n - page };
    const to = steps[event.key];
    if (to !== undefined) void this.#goTo(to, event.shiftKey);
    else if (event.key === ' ') this.#tickActive();
    else if (event.key === 'Enter') this.#enter(entry);
    else if (event.key === 'ArrowLeft' || event.key === 'ArrowRight') this.#fold(entry, event.key === 'ArrowLeft');
    else if (event.key === 'Escape' && this.#chosen.ids.size) this.#choose(NONE);
    else return;
    event.preventDefault();
  };

  /** Enter never answers: it leads into the card. */
  #enter(entry: Entry | undefined): void {
    if (entry?.kind === 'group') this.#fold(entry, !entry.folded);
    else if (entry) this.#card(entry.id)?.focus();
  }

  /** Folds a group, or unfolds it; from a request, its group. */
  #fold(entry: Entry | undefined, fold: boolean): void {
    if (!entry?.group) return;
    if (fold) this.#folded.add(entry.group);
    else this.#folded.delete(entry.group);
    this.active = entry.kind === 'group' ? entry.key : fold ? `group ${entry.group}` : entry.key;
    this.requestUpdate();
    void this.updateComplete.then(() => this.#row(this.active)?.focus({ preventScroll: true }));
  }

  /** A key in the card that nothing there has used. */
  #paneKey = (event: KeyboardEvent): void => {
    if (event.key !== 'Escape' || event.defaultPrevented || !(event.composedPath()[0] as Element).matches('article, [tabindex="-1"]')) return;
    event.preventDefault();
    if (!this.beside) this.#close();
    else this.#row(this.opened)?.focus({ preventScroll: true });
  };

  /** Closes the card below the rows. */
  #close = (): void => {
    const id = this.opened;
    this.#shut = true;
    this.opened = '';
    void this.updateComplete.then(() => this.#row(id)?.focus({ preventScroll: true }));
  };

  /** In the sheet, the next open request takes the place of one that was answered here; its own guard begins then. */
  #answered = (event: Event): void => {
    const { request_id, mine } = (event as CustomEvent<{ request_id: string; mine: boolean }>).detail;
    if (this.beside || !mine || request_id !== this.opened) return;
    this.#last = request_id;
    const ids = this.#entries.flatMap((entry) => (entry.kind === 'request' ? [entry.id] : []));
    const at = ids.indexOf(request_id);
    const next = [...ids.slice(at + 1), ...ids.slice(0, at)].find((id) => this.#by.get(id)?.state === 'open' && this.#card(id)?.open !== false);
    if (next === undefined) this.opened = '';
    else this.#show(next);
    this.active = next ?? request_id;
    this.requestUpdate();
    void this.updateComplete.then(() => (next === undefined ? this.#row(request_id)?.focus({ preventScroll: true }) : this.#card(next)?.focus()));
  };

  /** The outcome of the request that was answered last in the sheet. */
  #lastOutcome(): string {
    const request = this.#by.get(this.#last);
    return request?.receipt && this.opened !== this.#last ? `${outcomeOf(request.receipt, request).what}: ${wordsOf(request)}` : '';
  }

  #nextCard(by: number): void {
    const ids = this.#entries.flatMap((entry) => (entry.kind === 'request' ? [entry.id] : []));
    const at = ids.indexOf(this.opened);
    const id = ids[Math.max(0, Math.min(ids.length - 1, at + by))];
    if (id === undefined) return;
    this.active = id;
    this.#show(id);
    void this.updateComplete.then(() => this.#intoSight(this.#indexOf(id)));
  }

  // --- choosing ------------------------------------------------------------------------------------------------------------

  #choose(chosen: Chosen): void {
    const before = this.#chosen.ids.size;
    this.#chosen = stillChosen(chosen, (id) => this.#by.get(id)?.state === 'open');
    this.requestUpdate();
    if (this.#chosen.ids.size !== before) announce(t.rows.chosen(this.#chosen.ids.size));
  }

  #idsOf(entry: Entry): string[] {
    return (entry.kind === 'group' ? entry.ids : [entry.id]).filter((id) => this.#by.get(id)?.state === 'open');
  }

  #tickActive(): void {
    const entry = this.#entries[this.#indexOf(this.active)];
    if (entry) this.#tick(entry, false);
  }

  #tick(entry: Entry, range: boolean): void {
    const ids = this.#idsOf(entry);
    const [id] = ids;
    if (id === undefined) return;
    if (entry.kind === 'group') this.#choose(toggledAll(this.#chosen, ids));
    else this.#choose(range ? ranged(this.#chosen, id, this.#openIds()) : toggled(this.#chosen, id));
  }

  #ticked(entry: Entry, event: MouseEvent): void {
    event.stopPropagation();
    this.active = entry.key;
    this.#tick(entry, event.shiftKey);
    void this.updateComplete.then(() => this.#row(entry.key)?.focus({ preventScroll: true }));
  }

  #pressed(entry: Entry, event: MouseEvent): void {
    const n = this.#indexOf(entry.key);
    if (entry.kind === 'group') return this.#fold(entry, !entry.folded);
    if (event.ctrlKey || event.metaKey) { this.active = entry.key; return this.#tick(entry, false); }
    void this.#goTo(n, event.shiftKey);
  }

  /** The chosen requests, in the order of the rows. */
  #chosenRequests(): Request[] {
    return this.#openIds().filter((id) => this.#chosen.ids.has(id)).flatMap((id) => this.#by.get(id) ?? []);
  }

  #many(sense: 'allow' | 'deny'): void {
    this.renderRoot.querySelector<PlexusMany>('plexus-many')?.ask(sense, this.#chosenRequests());
  }

  #group(grouping: Grouping): void {
    this.grouping = grouping;
    try { localStorage.setItem(GROUPING_KEY, grouping); } catch { /* storage is off: it lasts as long as the page */ }
    this.#order = clustered(this.#order.map((one) => one.id), (id) => { const request = this.#by.get(id); return request ? this.#keyOf(request) : ''; });
    this.requestUpdate();
  }

  #toNew = (): void => {
    const id = this.#order.find((one) => this.#unseen.has(one.id))?.id;
    this.#unseen.clear();
    const entry = this.#entries.findIndex((one) => (one.kind === 'group' ? one.folded && one.ids.includes(id ?? '') : one.id === id));
    if (entry >= 0) void this.#goTo(entry);
  };

  // --- drawing -------------------------------------------------------------------------------------------------------------

  #scrolled = (event: Event): void => {
    this.#top = (event.currentTarget as HTMLElement).scrollTop;
    this.requestUpdate();
  };

  override render() {
    const entries = this.#entries;
    const [from, to] = rangeOf(this.#offsets, this.#top, this.#height, MARGIN_PX);
    const drawn = entries.slice(from, to).map((entry, n) => ({ entry, n: from + n }));
    // The row that has the focus stays, wherever it is.
    const at = this.#indexOf(this.active);
    // The row stays in its order: an element that is moved in the document loses the focus.
    if (at >= to) drawn.push({ entry: entries[at]!, n: at });
    else if (at >= 0 && at < from) drawn.unshift({ entry: entries[at]!, n: at });
    const host: RowHost = {
      grouping: this.grouping, active: this.active, opened: this.opened, chosen: this.#chosen.ids, count: entries.length,
      request: (id) => this.#by.get(id), pressed: (entry, event) => this.#pressed(entry, event), ticked: (entry, event) => this.#ticked(entry, event),
    };
    const below = [...this.#unseen].filter((id) => this.#by.get(id)?.state === 'open').length;
    return html`<div class="split">
        <div class="side">
          ${this.#bar()}
          <div class="scroller" @scroll=${this.#scrolled}>
            <div class="rows" role="treegrid" aria-label=${t.list} aria-multiselectable="true" aria-rowcount=${entries.length} aria-colcount="2" @keydown=${this.#rowKey}>
              ${repeat(drawn, ({ entry }) => entry.key, ({ entry, n }) => rowOf(entry, n, host))}
            </div>
          </div>
          ${below ? html`<div class="new"><button type="button" @click=${this.#toNew}>${t.newOnes(below)}</button></div>` : nothing}
        </div>
        ${this.#pane()}
      </div>
      <plexus-many @answered=${() => { this.#touchedAt = Date.now(); }} @closed=${() => this.#row(this.active)?.focus({ preventScroll: true })}></plexus-many>`;
  }

  #pane() {
    const ids = this.#entries.flatMap((entry) => (entry.kind === 'request' ? [entry.id] : []));
    const nth = ids.indexOf(this.opened) + 1;
    return html`<section class="pane" aria-label=${t.rows.pane} ?data-shut=${!this.opened} ?data-ended=${this.#by.get(this.opened)?.state !== 'open' || isLeft(this.opened)} @keydown=${this.#paneKey} @closed=${this.#answered}>
      <div class="steps">
        <span class="nth" role="status">${[nth ? t.rows.nth(nth, ids.length) : '', this.#lastOutcome()].filter(Boolean).join(' · ')}</span>
        <button type="button" class="ghost" aria-label=${t.rows.previous} ?disabled=${nth <= 1} @click=${() => this.#nextCard(-1)}>${icon('up')}</button>
        <button type="button" class="ghost" aria-label=${t.rows.next} ?disabled=${nth === ids.length} @click=${() => this.#nextCard(1)}>${icon('down')}</button>
        <button type="button" class="ghost" aria-label=${text.common.close} @click=${this.#close}>${icon('close')}</button>
      </div>
      ${this.opened ? nothing : html`<p class="none">${t.rows.none}</p>`}
      ${repeat(this.#kept, (id) => id, (id) => html`<plexus-card layout="pane" ?hidden=${id !== this.opened} .request=${this.#by.get(id)}></plexus-card>`)}
    </section>`;
  }

  #bar() {
    const open = this.#openIds();
    const { size } = this.#chosen.ids;
    const all = html`<span class="tick"><input type="checkbox" id="all" aria-label=${t.rows.chooseAll(open.length)} .checked=${live(size > 0 && size === open.length)} .indeterminate=${live(size > 0 && size < open.length)} ?disabled=${!open.length}
      @change=${() => this.#choose(size ? NONE : toggledAll(NONE, open))} /></span>`;
    if (!size) {
      return html`<div class="bar">${all}<div class="title"><slot name="title"></slot></div>
        <select id="groups" aria-label=${t.rows.groupBy} .value=${this.grouping} @change=${(event: Event) => this.#group((event.target as HTMLSelectElement).value as Grouping)}>
          ${GROUPINGS.map((one) => html`<option value=${one} ?selected=${one === this.grouping}>${t.rows.groupings[one]}</option>`)}
        </select></div>`;
    }
    const allowed = planOf(this.#chosenRequests(), 'allow', { now: plexus.requests.value, device: answerer(), seen: wasSeen, reason: '' }).will.length;
    return html`<div class="bar" role="toolbar" aria-label=${t.rows.chosen(size)}>${all}<div class="title"><strong>${digits(size)}<span class="word"> ${t.rows.chosenWord}</span></strong><span class="sr"><slot name="title"></slot></span></div>
      <button type="button" id="deny" class="danger" @click=${() => this.#many('deny')}>${t.rows.deny(size)}</button>
      <button type="button" id="allow" title=${t.rows.allowHint} @click=${() => this.#many('allow')}>${t.rows.allow(allowed, size)}</button>
      <button type="button" class="ghost clear" aria-label=${t.rows.clear} @click=${() => this.#choose(NONE)}>${icon('close')}</button></div>`;
  }
}
customElements.define('plexus-requests', PlexusRequests);
