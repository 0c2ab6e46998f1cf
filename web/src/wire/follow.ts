import { perFrame } from '../lib/frame.js';
import type { Batch, Sink } from '../plexus.js';
import { text } from '../text/en.js';
import { Refused, why } from './http.js';
import { parseCursor, type Envelope, type Page, type Snapshot } from './types.js';

/** What a session begins with: how it stands, and the newest of its past. */
export interface Opening { snapshot: Snapshot; past: Page }

/** Reads one session: how it stands and its newest past, then what comes after that from the shared connection; each event once, in order. */
export class Follower {
  #batch: Batch = { events: [] };
  /** Events that came while the past was on its way; null when none is. */
  #held: Envelope[] | null = null;
  #loaded = false;
  #epoch = '';
  #pos = -1;
  #serial = 0;
  #stopped = false;
  #flush = perFrame(() => {
    if (this.#stopped) return;
    const batch = this.#batch;
    this.#batch = { events: [] };
    this.sink(batch);
  });

  constructor(
    readonly session_id: string,
    private readonly sink: Sink,
    private readonly read: (session_id: string) => Promise<Opening>,
  ) {}

  stop(): void { this.#stopped = true; }

  /** Whether what the sink holds goes on from what comes. */
  get loaded(): boolean { return this.#loaded; }

  /** Reads the session and goes on from where that ends. */
  async load(reset?: string): Promise<void> {
    const serial = ++this.#serial;
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
      for (const event of held) this.#place(event);
    } catch (error) {
      if (serial !== this.#serial || this.#stopped) return;
      this.#held = null;
      this.#loaded = false;
      this.#batch = { events: [], trouble: { text: why(error), gone: error instanceof Refused && error.status === 404 } };
    }
    this.#flush();
  }

  /** The session was forgotten: nothing of it is true any more. */
  gone(): void {
    this.#serial += 1;
    this.#held = null;
    this.#loaded = false;
    this.#batch = { events: [], trouble: { text: '', gone: true } };
    this.#flush();
  }

  take(event: Envelope): void {
    if (this.#held) this.#held.push(event);
    else if (this.#loaded) this.#place(event);
    // Else its past is still to be read and will hold this event.
  }

  #place(event: Envelope): void {
    const at = parseCursor(event.cursor);
    if (at) {
      // Another epoch: the gateway's history is not the one shown. Read it anew.
      if (at.epoch !== this.#epoch) { void this.load(text.wire.otherHistory); return; }
      if (at.pos <= this.#pos) return;
      this.#pos = at.pos;
    }
    this.#batch.events.push(event);
    this.#flush();
  }
}
