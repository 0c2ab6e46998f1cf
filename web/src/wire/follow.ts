import { perFrame } from '../lib/frame.js';
import type { Batch, Sink } from '../plexus.js';
import { text } from '../text/en.js';
import { Refused, why } from './http.js';
import { parseCursor, type Envelope, type Page, type Snapshot } from './types.js';

/** The start of a followed session: its snapshot and the newest page of its past. */
export interface Opening { snapshot: Snapshot; past: Page }

/** Follows one session: reads its snapshot and newest page, then takes later events from the shared connection; each event once, in order. */
export class Follower {
  #batch: Batch = { events: [] };
  /** Events that arrived while the session is being read; null otherwise. */
  #held: Envelope[] | null = null;
  #loaded = false;
  #epoch = '';
  #pos = -1;
  #serial = 0;
  #stopped = false;
  /** Whether the current read began before the connection was established, which then continues where the read ends. */
  #early = false;
  /** The reason why the loaded data is not continued while no view needs it. */
  #lost = '';
  #flush = perFrame(() => {
    if (this.#stopped) return;
    const lost = this.#lost;
    this.#lost = '';
    // A view may need it again meanwhile.
    if (lost && !this.rests()) { void this.load(lost); return; }
    const batch: Batch = lost ? { events: [], trouble: { text: '', gone: false } } : this.#batch;
    this.#batch = { events: [] };
    this.sink(batch);
  }, true);

  constructor(
    readonly session_id: string,
    private readonly sink: Sink,
    private readonly read: (session_id: string) => Promise<Opening>,
    private readonly rests: () => boolean = () => false,
  ) {}

  stop(): void { this.#stopped = true; }

  /** Whether the session was read, so that new events continue it. */
  get loaded(): boolean { return this.#loaded; }

  /** Reads the session again after events were missed, if a view needs it. */
  again(reset: string): void {
    if (!this.rests()) { void this.load(reset); return; }
    this.#serial += 1;
    this.#held = [];
    this.#lost = reset;
    this.#flush();
  }

  /** Whether the session is being read, so that the events of the connection continue it. */
  get opening(): boolean { return this.#early && this.#held !== null; }

  /** Reads the session, and continues after that. `early`: the connection will begin where this ends. */
  async load(reset?: string, early = false): Promise<void> {
    const serial = ++this.#serial;
    this.#early = early;
    this.#held = [];
    try {
      const { snapshot, past } = await this.read(this.session_id);
      if (serial !== this.#serial || this.#stopped) return;
      const at = parseCursor(past.next);
      this.#epoch = at?.epoch ?? '';
      this.#pos = at?.pos ?? -1;
      this.#batch = { snapshot, past, events: [], ...(this.#loaded ? { reset: reset ?? text.wire.hole } : {}) };
      this.#loaded = true;
      const held = this.#held ?? [];
      this.#held = null;
      for (const event of held) this.#append(event);
    } catch (error) {
      if (serial !== this.#serial || this.#stopped) return;
      this.#held = null;
      this.#loaded = false;
      this.#batch = { events: [], trouble: { text: why(error), gone: error instanceof Refused && error.status === 404 } };
    }
    this.#flush();
  }

  /** The session was deleted. */
  gone(): void {
    this.#serial += 1;
    this.#held = null;
    this.#loaded = false;
    this.#batch = { events: [], trouble: { text: '', gone: true } };
    this.#flush();
  }

  take(event: Envelope): void {
    if (this.#held) this.#held.push(event);
    else if (this.#loaded) this.#append(event);
    // Otherwise the session will be read later, with this event.
  }

  #append(event: Envelope): void {
    const at = parseCursor(event.cursor);
    if (at) {
      // Another epoch: the gateway has another history. Read the session again.
      if (at.epoch !== this.#epoch) { this.again(text.wire.otherHistory); return; }
      if (at.pos <= this.#pos) return;
      this.#pos = at.pos;
    }
    this.#batch.events.push(event);
    this.#flush();
  }
}
