// The wall: the pinned surfaces of all sessions, side by side. A surface is read when it comes into view, and drawn again only while it is
// in view: the cost is that of the visible ones.
import { css, html, nothing, type PropertyValues } from 'lit';
import { customElement, state } from 'lit/decorators.js';
import { repeat } from 'lit/directives/repeat.js';
import { PlexusElement } from '../lib/element.js';
import { bind, focused } from '../lib/keys.js';
import { effect } from '../lib/signal.js';
import { oneLine } from '../lib/text.js';
import { plexus, why } from '../plexus.js';
import { cut } from '../render/visible.js';
import { loadSurfaces, type PlexusSurface } from '../surface/index.js';
import { Shelf } from '../surface/shelf.js';
import type { Action } from '../surface/types.js';
import { Wall, type Pinned } from '../surface/wall.js';
import { readPinned, readSurfaces, sendAction } from '../surface/wire.js';
import { text } from '../text/en.js';
import { command, empty, notYet, pageStyles } from '../ui/parts.js';
import '../ui/state.js';

const t = text.shell.home;
/** Number of surfaces that have a place at first; a button adds more. */
const STEP = 120;
/** Distance outside of the visible area within which a surface is read, px. */
const AHEAD_PX = 200;
/** Time after the surfaces have moved in which presses do not count, ms: the pressed one may not be the intended one. */
const MOVED_MS = 500;
/** The order of sessions when the page is opened. */
const STATES: readonly string[] = ['waiting', 'running', 'idle', 'exited'];

@customElement('plexus-home')
export class PlexusHome extends PlexusElement {
  /** Counts changes of what is on the wall. */
  @state() private changes = 0;
  @state() private limit = STEP;
  @state() private listed = false;
  @state() private problem = '';
  readonly #wall = new Wall();
  /** The places, which keep their order: nothing moves under a pointer because a session became busy. */
  #order: string[] = [];
  /** The next rendering moves surfaces. */
  #moves = false;
  #movedAt = -Infinity;
  readonly #shelves = new Map<string, Shelf>();
  readonly #drawn = new Map<string, PlexusSurface>();
  readonly #inView = new Set<string>();
  #watcher: IntersectionObserver | null = null;
  readonly #watched = new Map<Element, string>();
  #stop: Array<() => void> = [];
  #epoch = '';
  #reads = 0;

  static override styles = [...[PlexusElement.styles].flat(), pageStyles, css`
    .page { max-width: none; }
    .count { color: var(--fg-mute); font-size: var(--t-s); }
    .wall { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 400px), 1fr)); gap: var(--s5) var(--s4); }
    .tile { display: flex; flex-direction: column; gap: 6px; min-width: 0; scroll-margin: 12px; }
    .tile > header { display: flex; align-items: center; gap: 8px; min-height: 28px; min-width: 0; font-size: var(--t-s); color: var(--fg-mute); }
    .tile h2 { flex: 1 1 0; min-width: 0; font-size: var(--t-m); }
    .tile h2 a { display: flex; align-items: center; gap: 6px; color: var(--fg); min-height: 28px; }
    .tile h2 a:hover { text-decoration: underline; }
    .tile h2 .agent { flex: none; max-width: 45%; color: var(--fg-mute); font-weight: 450; }
    @media (pointer: coarse) { .tile h2 a { min-height: 40px; } }
    .place { flex: 1; display: flex; flex-direction: column; min-width: 0; min-height: 180px; }
    .place > plexus-surface { flex: 1; min-width: 0; }
    .later { flex: 1; display: grid; place-items: center; padding: 12px; border: 1px dashed var(--line-strong); border-radius: var(--r-m); color: var(--fg-mute); text-align: center; overflow-wrap: anywhere; }
    .more { margin-top: var(--s4); }
    .empty .command { margin-top: 0; }
  `];

  override connectedCallback(): void {
    super.connectedCallback();
    const step = (by: number) => () => {
      const all = [...this.renderRoot.querySelectorAll<HTMLElement>('.tile h2 a')];
      const tiles = all.map((link) => link.closest('.tile'));
      // The focus may be within a surface, in a shadow root of its own.
      let at: Node | null = focused();
      while (at && !(at instanceof HTMLElement && at.classList.contains('tile'))) at = at.parentNode ?? (at as unknown as ShadowRoot).host ?? null;
      const i = tiles.indexOf(at as Element | null);
      const next = all[i < 0 ? (by > 0 ? 0 : all.length - 1) : Math.max(0, Math.min(all.length - 1, i + by))];
      next?.focus({ preventScroll: true });
      next?.closest('.tile')?.scrollIntoView({ block: 'nearest' });
    };
    this.#stop = [
      bind([{ key: 'j', atOnce: true, run: step(1) }, { key: 'k', atOnce: true, run: step(-1) }]),
      plexus.listen((event) => {
        if (event.kind !== 'surface_updated') return;
        if (this.#wall.take(event.session_id, event.event, event.at)) this.#arrange();
        const name = (event.event as { surface?: unknown } | null)?.surface;
        if (this.#shelves.get(event.session_id)?.take(event.event, event.at)) this.#dress(`${event.session_id}/${String(name)}`);
      }),
      // After each connection: changes may have been missed.
      effect(() => { if (plexus.live.value) queueMicrotask(() => void this.#read()); }),
    ];
    // The list scrolls in the page's own scroller.
    this.#watcher = new IntersectionObserver((entries) => this.#seen(entries), { root: this.closest('main'), rootMargin: `${AHEAD_PX}px 0px` });
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    for (const stop of this.#stop) stop();
    for (const shelf of this.#shelves.values()) shelf.stop();
    this.#watcher?.disconnect();
    this.#watched.clear();
    this.#shelves.clear();
    this.#drawn.clear();
    this.#inView.clear();
    this.#order = [];
  }

  // --- what is on the wall -------------------------------------------------------------------------------------------------

  async #read(): Promise<void> {
    const read = ++this.#reads;
    this.#wall.reading();
    try {
      const pinned = await readPinned();
      if (read !== this.#reads || !this.isConnected) return;
      this.#wall.read(pinned);
      this.listed = true;
      this.problem = '';
      this.#arrange();
    } catch (error) {
      if (read === this.#reads) this.problem = why(error);
      return;
    }
    // In another history the revisions begin anew.
    const epoch = plexus.me.peek()?.gateway.epoch ?? '';
    const other = this.#epoch !== '' && epoch !== '' && epoch !== this.#epoch;
    if (epoch) this.#epoch = epoch;
    for (const shelf of this.#shelves.values()) if (other) shelf.clear(); else shelf.refresh();
  }

  /** Gives new surfaces a place after the others; those of one session stand together when the page is opened. */
  #arrange(): void {
    const known = new Set(this.#order);
    const here = this.#order.filter((key) => this.#wall.get(key));
    const sessions = plexus.sessions.peek();
    const news = plexus.news.peek();
    const rank = ({ session_id }: Pinned) => { const at = STATES.indexOf(sessions.get(session_id)?.state ?? ''); return at < 0 ? STATES.length : at; };
    const fresh = this.#wall.all.filter((one) => !known.has(one.key)).sort((a, b) => rank(a) - rank(b)
      || (news.get(b.session_id) ?? 0) - (news.get(a.session_id) ?? 0) || (a.key < b.key ? -1 : 1));
    if (known.size && (here.length < known.size || fresh.length)) this.#moves = true;
    this.#order = [...here, ...fresh.map((one) => one.key)];
    for (const key of this.#drawn.keys()) if (!this.#wall.get(key)) this.#forget(key);
    this.changes++;
  }

  #forget(key: string): void {
    this.#drawn.delete(key);
    this.#inView.delete(key);
    const session = key.slice(0, key.lastIndexOf('/'));
    if ([...this.#drawn.keys()].some((other) => other.startsWith(`${session}/`))) return;
    this.#shelves.get(session)?.stop();
    this.#shelves.delete(session);
  }

  /** The surfaces with a place, without those of archived and deleted sessions. */
  #shown(): Pinned[] {
    const [sessions, loaded] = [plexus.sessions.value, plexus.loaded.value];
    return this.#order.map((key) => this.#wall.get(key)).filter((one): one is Pinned => {
      const session = one && sessions.get(one.session_id);
      return one !== undefined && (session ? !session.archived : !loaded);
    });
  }

  // --- what is in view -----------------------------------------------------------------------------------------------------

  #seen(entries: IntersectionObserverEntry[]): void {
    let drew = false;
    for (const { target, isIntersecting } of entries) {
      const key = this.#watched.get(target);
      if (key === undefined) continue;
      if (!isIntersecting) { this.#inView.delete(key); continue; }
      this.#inView.add(key);
      drew = this.#draw(key) || drew;
      this.#dress(key);
    }
    if (drew) this.changes++;
  }

  /** Makes the element of a surface, and reads its session's; false if that was done before. */
  #draw(key: string): boolean {
    const one = this.#wall.get(key);
    if (!one || this.#drawn.has(key)) return false;
    void loadSurfaces().catch((error: unknown) => { this.problem = why(error); });
    const el = document.createElement('plexus-surface') as PlexusSurface;
    const { session_id } = one;
    this.#drawn.set(key, el);
    el.layout = 'tile';
    el.session = session_id;
    el.addEventListener('surface-action', (event) => this.#act(session_id, event));
    if (!this.#shelves.has(session_id)) {
      const shelf = new Shelf(() => readSurfaces(session_id), (names) => { for (const name of names) this.#dress(`${session_id}/${name}`); this.changes++; });
      this.#shelves.set(session_id, shelf);
      shelf.refresh();
    }
    return true;
  }

  /** Gives a surface that is in view its latest state. */
  #dress(key: string): void {
    const [el, one] = [this.#drawn.get(key), this.#wall.get(key)];
    const surface = one && this.#shelves.get(one.session_id)?.get(one.surface);
    if (!el || !surface || !this.#inView.has(key)) return;
    el.surface = surface;
    el.agent = plexus.sessions.peek().get(one.session_id)?.runtime_id ?? '';
    el.stale = !plexus.live.peek();
    el.prompts = plexus.may('prompt');
    el.approves = plexus.may('approve');
  }

  #act(session_id: string, event: Event): void {
    const action = event as CustomEvent<Action> & { respondWith(reply: Promise<unknown>): void };
    event.stopPropagation();
    const sent = sendAction(session_id, action.detail);
    // The action may have been refused because the surface changed meanwhile.
    sent.catch(() => this.#shelves.get(session_id)?.refresh());
    action.respondWith(sent);
  }

  /** Stops presses just after the surfaces moved. Those by a key stay where the focus is. */
  readonly #guard = (event: MouseEvent): void => {
    if (event.detail === 0 || performance.now() - this.#movedAt > MOVED_MS) return;
    event.preventDefault();
    event.stopPropagation();
  };

  protected override updated(_changed: PropertyValues): void {
    // From when it is seen: a busy machine may take longer to render than presses are ignored for.
    if (this.#moves) [this.#moves, this.#movedAt] = [false, performance.now()];
    const now = new Set<Element>();
    for (const place of this.renderRoot.querySelectorAll<HTMLElement>('.place')) {
      const key = place.dataset['key'] ?? '';
      now.add(place);
      if (this.#watched.get(place) === key) continue;
      this.#watched.set(place, key);
      this.#watcher?.unobserve(place);
      this.#watcher?.observe(place);
    }
    for (const place of this.#watched.keys()) if (!now.has(place)) { this.#watcher?.unobserve(place); this.#watched.delete(place); }
    for (const key of this.#inView) this.#dress(key);
  }

  // --- rendering -----------------------------------------------------------------------------------------------------------

  override render() {
    const all = this.#shown();
    const sessions = new Set(all.map((one) => one.session_id)).size;
    const shown = all.slice(0, this.limit);
    // Read here, so that a change of it draws the surfaces again, and so that the ages stay true.
    void [plexus.live.value, plexus.now.value];
    const open = new Map<string, string[]>();
    for (const r of plexus.requests.value.values()) if (r.state === 'open') open.set(r.session_id, [...(open.get(r.session_id) ?? []), r.request_id]);
    return html`<div class="page">
      <header><h1 tabindex="-1">${t.title}</h1>${all.length ? html`<span class="count" id="count">${t.count(all.length, sessions)}</span>` : nothing}</header>
      ${this.problem ? html`<p class="note danger" role="alert">${t.failed(this.problem)} <button class="compact" @click=${() => void this.#read()}>${text.common.retry}</button></p>` : nothing}
      ${shown.length ? html`<ul class="wall" aria-label=${t.wall} @click=${{ handleEvent: this.#guard, capture: true }}>${repeat(shown, (one) => one.key, (one) => this.#tile(one, open.get(one.session_id) ?? []))}</ul>` : this.#none()}
      ${all.length > shown.length ? html`<p class="more"><button @click=${() => { this.limit += STEP; }}>${text.common.more} (${all.length - shown.length})</button></p>` : nothing}
    </div>`;
  }

  #none() {
    if (!this.listed || !plexus.loaded.value) return this.problem ? nothing : notYet();
    return empty('home', t.none, t.noneText, command(t.example));
  }

  /** `requests`: the open ones of its session. */
  #tile(one: Pinned, requests: readonly string[]) {
    const session = plexus.sessions.value.get(one.session_id);
    const surface = this.#shelves.get(one.session_id)?.get(one.surface);
    const el = surface ? this.#drawn.get(one.key) : undefined;
    const open = requests.filter((id) => id !== surface?.ask?.request_id).length;
    return html`<li class="tile">
      <header><plexus-state .state=${session?.state ?? 'idle'} bare></plexus-state>
        <h2><a href=${plexus.href({ page: 'session', session_id: one.session_id })}><bdi class="cut">${oneLine(cut(session?.title ?? '', 200)) || text.common.untitled}</bdi><bdi class="agent cut">${oneLine(session?.runtime_id ?? '')}</bdi></a></h2>
        ${open ? html`<a class="chip warn" href=${plexus.href({ page: 'session', session_id: one.session_id })}>${text.shell.sessions.requests(open)}</a>` : nothing}
        <plexus-age .at=${surface?.at ?? one.at} short></plexus-age></header>
      <div class="place" data-key=${one.key}>${el ?? html`<div class="later"><bdi>${oneLine(one.title) || oneLine(one.surface)}</bdi></div>`}</div></li>`;
  }
}
