// The surfaces of one session, as they are now: the gateway's state, and the changes since.
import { fold, surfaceOf } from './fold.js';
import type { Surface } from './types.js';

/** Minimum time between two reads of the state, ms. */
const AGAIN_MS = 1_000;
/** Maximum number of consecutive reads that may fail. */
const FAILURES_MAX = 5;

export class Shelf {
  readonly #all = new Map<string, Surface>();
  #reading = false;
  /** Whether a change was missed since the last reading began. */
  #missed = false;
  #failures = 0;
  #stopped = false;

  /** `changed` is called after a reading, with the names that changed by it. */
  constructor(private readonly read: () => Promise<Surface[]>, private readonly changed: (names: string[]) => void) {}

  stop(): void { this.#stopped = true; }

  get(name: string): Surface | undefined { return this.#all.get(name); }

  /** The surface on which a request is answered. */
  asking(request_id: string): Surface | undefined {
    return [...this.#all.values()].find((one) => one.ask?.request_id === request_id && !one.closed);
  }

  /** The pinned surfaces, by name. */
  pinned(): Surface[] {
    return [...this.#all.values()].filter((one) => one.pinned && !one.closed).sort((a, b) => (a.surface < b.surface ? -1 : 1));
  }

  /** The history was replaced: revisions begin anew. */
  clear(): void {
    this.#all.clear();
    this.refresh();
  }

  /** Takes a surface, or a change of one. True if a surface changed by it; if its state is not known any more, it is read. */
  take(body: unknown, at?: string): boolean {
    const name = surfaceOf(body);
    const folded = fold(name === null ? undefined : this.#all.get(name), body, at);
    if (name !== null && folded.is === 'new') this.#all.set(name, folded.surface);
    else if (folded.is !== 'old') this.refresh();
    return folded.is === 'new';
  }

  /** Reads the state. One reading at a time. */
  refresh(): void {
    this.#missed = true;
    if (this.#reading || this.#stopped) return;
    this.#reading = true;
    void this.#readAll();
  }

  /** Takes a surface as it was read. One that cannot be understood is not read again. */
  #newer(one: Surface): boolean {
    const folded = fold(this.#all.get(one.surface), one);
    if (folded.is === 'new') this.#all.set(one.surface, folded.surface);
    return folded.is === 'new';
  }

  async #readAll(): Promise<void> {
    while (this.#missed && !this.#stopped && this.#failures < FAILURES_MAX) {
      this.#missed = false;
      try {
        const state = await this.read();
        if (this.#stopped) return;
        this.#failures = 0;
        const names = state.filter((one) => this.#newer(one)).map((one) => one.surface);
        if (names.length) this.changed(names);
      } catch { this.#failures++; this.#missed = true; }
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
    this.#reading = false;
    this.#failures = 0;
  }
}
