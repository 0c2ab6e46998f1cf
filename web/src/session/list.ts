// A virtual list of rows of any height: only visible rows are in the document. The visible rows keep their position when others are
// added above or below; at the end the list follows new rows.

/** The rows of the list. */
export interface Source {
  count(): number;
  key(n: number): string;
  /** Changes when the row must be redrawn. */
  revision(n: number): number;
  /** The estimated height of a row that was never measured, px. */
  guess(n: number): number;
  make(n: number): HTMLElement;
  /** Redraws a row that is in the document. */
  update(n: number, el: HTMLElement): void;
  /** Called when a row was removed from the document. */
  drop?(el: HTMLElement): void;
}

/** Distance beyond the visible area in which rows are kept, px. */
const MARGIN_PX = 600;
/** Distance from the end within which the list counts as at the end, px. */
const END_PX = 24;
/** Maximum number of rounds of drawing and measuring until the visible area is filled. */
const ROUNDS = 6;

interface Mounted { el: HTMLElement; n: number; revision: number }

/** Prefix sums of heights: a Fenwick tree. */
class Heights {
  private tree = new Float64Array(1024);
  private own = new Float64Array(1024);
  count = 0;

  get(n: number): number { return this.own[n] ?? 0; }

  set(n: number, height: number): void {
    const change = height - (this.own[n] as number);
    if (!change) return;
    this.own[n] = height;
    for (let i = n + 1; i < this.tree.length; i += i & -i) this.tree[i] = (this.tree[i] as number) + change;
  }

  resize(count: number): void {
    if (count >= this.own.length) {
      let room = this.own.length;
      while (room <= count) room *= 2;
      const own = new Float64Array(room);
      own.set(this.own);
      this.own = own;
      this.tree = new Float64Array(room);
      for (let i = 1; i < room; i++) {
        this.tree[i] = (this.tree[i] as number) + (own[i - 1] as number);
        const up = i + (i & -i);
        if (up < room) this.tree[up] = (this.tree[up] as number) + (this.tree[i] as number);
      }
    }
    for (let n = count; n < this.count; n++) this.set(n, 0);
    this.count = count;
  }

  clear(): void {
    this.tree.fill(0);
    this.own.fill(0);
    this.count = 0;
  }

  /** The height of all rows before `n`. */
  before(n: number): number {
    let sum = 0;
    for (let i = Math.min(n, this.count); i > 0; i -= i & -i) sum += this.tree[i] as number;
    return sum;
  }

  /** The row at height `y`. */
  at(y: number): number {
    let n = 0;
    let left = y;
    for (let step = 2 ** Math.floor(Math.log2(this.tree.length - 1)); step >= 1; step /= 2) {
      const next = n + step;
      if (next <= this.count && (this.tree[next] as number) <= left) { n = next; left -= this.tree[next] as number; }
    }
    return Math.max(0, Math.min(this.count - 1, n));
  }
}

export class VirtualList {
  /** Whether the list follows its end. */
  atEnd = true;
  private readonly heights = new Heights();
  private readonly measured = new Map<string, number>();
  private readonly mounted = new Map<string, Mounted>();
  private readonly top: HTMLElement;
  private readonly bottom: HTMLElement;
  private readonly sizes: ResizeObserver;
  private anchor: { key: string; n: number; offset: number } | null = null;
  private expected = -1;
  private due = false;
  private width = 0;
  private stopped = false;
  /** Whether rows were drawn: at first only those in sight, so that they are there sooner. */
  private begun = false;

  constructor(
    readonly scroller: HTMLElement,
    readonly body: HTMLElement,
    private readonly source: Source,
    private readonly moved: () => void,
  ) {
    this.top = document.createElement('div');
    this.bottom = document.createElement('div');
    this.top.setAttribute('role', 'presentation');
    this.bottom.setAttribute('role', 'presentation');
    body.replaceChildren(this.top, this.bottom);
    scroller.addEventListener('scroll', this.onScroll, { passive: true });
    scroller.addEventListener('wheel', this.onWheel, { passive: true });
    this.sizes = new ResizeObserver(() => this.later());
    this.sizes.observe(scroller);
    this.sizes.observe(body);
  }

  stop(): void {
    this.stopped = true;
    this.scroller.removeEventListener('scroll', this.onScroll);
    this.scroller.removeEventListener('wheel', this.onWheel);
    this.sizes.disconnect();
  }

  /** Handles rows that were replaced or moved. Known keys keep their heights, and the visible rows their position. */
  reset(): void {
    this.heights.clear();
    const now = this.renumber();
    if (this.anchor) {
      const n = now.get(this.anchor.key);
      this.anchor = n === undefined ? null : { ...this.anchor, n };
    }
  }

  /** Rows were added before the others. `now` maps an old row to its new index and the fraction of that row at which it begins. The
   *  visible rows keep their position, about. */
  prepended(now: (n: number) => { n: number; into: number }): void {
    this.heights.clear();
    if (this.anchor) {
      const { n, into } = now(this.anchor.n);
      const there = n >= 0 && n < this.source.count();
      this.anchor = there ? { n, key: this.source.key(n), offset: this.anchor.offset + into * this.source.guess(n) } : null;
    }
    this.renumber();
  }

  /** Gives the rows in the document their new indices, so that they keep the focus and the selection. Returns the index of each key. */
  private renumber(): Map<string, number> {
    const now = new Map(Array.from({ length: this.source.count() }, (_, n) => [this.source.key(n), n] as const));
    for (const [key, row] of this.mounted) {
      row.revision = -1;
      row.n = now.get(key) ?? -1;
    }
    return now;
  }

  /** Moves the visible rows up by `by` px. */
  shift(by: number): void {
    if (!this.anchor || this.atEnd) return;
    this.anchor = { ...this.anchor, offset: this.anchor.offset + by };
    this.draw();
  }

  /** Redraws before the next frame. */
  later(): void {
    if (this.due || this.stopped) return;
    this.due = true;
    requestAnimationFrame(() => { this.due = false; if (!this.stopped) this.draw(); });
  }

  toEnd(): void {
    this.atEnd = true;
    this.anchor = null;
    this.draw();
  }

  /** Puts row `n` at `offset` px below the top of the window. */
  toRow(n: number, offset = 80): void {
    if (n < 0 || n >= this.source.count()) return;
    this.atEnd = false;
    this.anchor = { key: this.source.key(n), n, offset: -offset };
    this.draw();
  }

  /** Scrolls as little as possible to make row `n` visible. */
  show(n: number): void {
    this.draw();
    const top = this.heights.before(n);
    const height = this.heights.get(n);
    const { scrollTop, clientHeight } = this.scroller;
    if (top < scrollTop + 16) this.toRow(n, 24);
    else if (top + height > scrollTop + clientHeight - 16) {
      this.toRow(n, Math.max(24, clientHeight - height - 48));
    }
  }

  /** The element of a row, if it is in the document. */
  element(key: string): HTMLElement | undefined {
    return this.mounted.get(key)?.el;
  }

  /** The first visible row. */
  first(): number {
    return this.heights.at(this.scroller.scrollTop + 8);
  }
  /** The last visible row. */
  last(): number {
    return this.heights.at(this.scroller.scrollTop + this.scroller.clientHeight);
  }
  rows(): IterableIterator<Mounted> {
    return this.mounted.values();
  }

  private readonly onScroll = () => {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    if (Math.abs(scrollTop - this.expected) < 1) return;
    this.expected = scrollTop;
    this.atEnd = scrollHeight - clientHeight - scrollTop <= END_PX;
    this.keep(scrollTop);
    this.later();
    this.moved();
  };

  private readonly onWheel = (event: WheelEvent) => {
    // Scrolling up stops following the end, even if rows are added in the next frame.
    if (event.deltaY < 0 && this.scroller.scrollTop > 0 && this.atEnd) {
      this.atEnd = false;
      this.keep(this.scroller.scrollTop);
      this.moved();
    }
  };

  /** Remembers the first visible row as the anchor. */
  private keep(scrollTop: number): void {
    if (!this.heights.count) { this.anchor = null; return; }
    const n = this.heights.at(scrollTop);
    this.anchor = { key: this.source.key(n), n, offset: scrollTop - this.heights.before(n) };
  }

  private grow(): void {
    const count = this.source.count();
    const had = this.heights.count;
    this.heights.resize(count);
    for (let n = had; n < count; n++) this.heights.set(n, this.measured.get(this.source.key(n)) ?? this.source.guess(n));
  }

  /** Redraws now. */
  draw(): void {
    const wide = this.scroller.clientWidth;
    const high = this.scroller.clientHeight;
    if (!high) return;
    if (wide !== this.width) {
      // A new width changes heights: rows that are not visible are estimated again.
      if (this.width) { this.measured.clear(); }
      this.width = wide;
    }
    const was = this.atEnd;
    this.grow();
    if (!was && !this.anchor) this.keep(this.scroller.scrollTop);
    const margin = this.begun ? MARGIN_PX : 0;
    for (let round = 0; round < ROUNDS; round++) {
      const total = this.heights.before(this.heights.count);
      const inset = this.inset();
      let top = was ? Math.max(0, total + inset - high) : this.anchor ? this.heights.before(this.anchor.n) + this.anchor.offset : this.scroller.scrollTop;
      top = Math.max(0, Math.min(top, Math.max(0, total + inset - high)));
      const from = this.heights.count ? this.heights.at(Math.max(0, top - margin)) : 0;
      const to = this.heights.count ? this.heights.at(top + high + margin) : -1;
      this.mount(from, to);
      if (!this.measure(from, to) || round === ROUNDS - 1) break;
    }
    const total = this.heights.before(this.heights.count);
    // The end is where the scroller ends: rows have margins beside their heights.
    const end = was ? this.scroller.scrollHeight - high : total + this.inset() - high;
    const want = Math.max(0, was ? end : Math.min(this.anchor ? this.heights.before(this.anchor.n) + this.anchor.offset : this.scroller.scrollTop, end));
    if (Math.abs(this.scroller.scrollTop - want) >= 1) this.scroller.scrollTop = want;
    this.expected = this.scroller.scrollTop;
    this.moved();
    if (!this.begun && this.heights.count) {
      this.begun = true;
      this.later();
    }
  }

  /** Keeps a list at its end after a change beside the rows, before that is drawn. */
  settle(): void {
    if (!this.atEnd || !this.begun) return;
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.expected = this.scroller.scrollTop;
  }

  /** The height of the scroller beside the rows (its padding), px. */
  private inset(): number {
    return this.scroller.scrollHeight - this.body.offsetHeight > 0 && this.body.offsetHeight > this.scroller.clientHeight ? this.scroller.scrollHeight - this.body.offsetHeight : 48;
  }

  private mount(from: number, to: number): void {
    const focus = (this.body.getRootNode() as Document | ShadowRoot).activeElement;
    for (const [key, row] of this.mounted) {
      // Indices change only with `reset`, `prepended` and at the end; a missing key was removed.
      const stays = row.n >= 0 && row.n < this.source.count() && this.source.key(row.n) === key;
      // The focused row stays in the document, so that the focus is not lost.
      if (stays && ((row.n >= from && row.n <= to) || (focus && row.el.contains(focus)))) continue;
      this.mounted.delete(key);
      this.sizes.unobserve(row.el);
      row.el.remove();
      this.source.drop?.(row.el);
    }
    let before: Element = this.top;
    const kept = [...this.mounted.values()].sort((a, b) => a.n - b.n);
    for (const row of kept) if (row.n < from) before = row.el;
    for (let n = from; n <= to; n++) {
      const key = this.source.key(n);
      const revision = this.source.revision(n);
      let row = this.mounted.get(key);
      if (!row) {
        row = { el: this.source.make(n), n, revision };
        this.mounted.set(key, row);
        before.after(row.el);
        this.sizes.observe(row.el);
      } else if (row.revision !== revision) {
        this.source.update(n, row.el);
        row.revision = revision;
      }
      row.n = n;
      before = row.el;
    }
  }

  /** Measures the mounted rows; returns whether any height changed. */
  private measure(from: number, to: number): boolean {
    const kept = [...this.mounted.values()].sort((a, b) => a.n - b.n);
    let changed = false;
    for (const row of kept) {
      const height = row.el.getBoundingClientRect().height;
      this.measured.set(this.source.key(row.n), height);
      if (Math.abs(height - this.heights.get(row.n)) > 0.01) { this.heights.set(row.n, height); changed = true; }
    }
    const outside = kept.filter((row) => row.n < from || row.n > to).reduce((sum, row) => sum + this.heights.get(row.n), 0);
    const above = kept.filter((row) => row.n < from).reduce((sum, row) => sum + this.heights.get(row.n), 0);
    this.top.style.height = `${Math.max(0, this.heights.before(from) - above)}px`;
    this.bottom.style.height = `${Math.max(0, this.heights.before(this.heights.count) - this.heights.before(to + 1) - (outside - above))}px`;
    return changed;
  }
}
