// Sessions that are read and followed. The last few that were shown stay so: who comes back to one sees it at once, from memory, and
// nothing is asked of the gateway. What comes for one that nobody sees is only put aside, and applied in one go.

import { effect } from '../lib/signal.js';
import { plexus, type Batch } from '../plexus.js';
import { Shelf } from '../surface/shelf.js';
import { readSurfaces } from '../surface/wire.js';
import type { Envelope } from '../wire/types.js';
import type { Past } from './history.js';
import type { Conversation } from './model.js';

/** Sessions that stay followed though nobody sees them; the one that was left longest ago is read again when it is shown again. */
const KEPT_MAX = 8;
/** Events that are put aside for one; then they are applied, so that a long message is one item again. */
const ASIDE_MAX = 1_000;
/** Items of one; with more it is read again when it is shown again. */
const ITEMS_MAX = 5_000;

/** Who shows a session. */
export interface Viewer {
  batch(batch: Batch): void;
  /** Surfaces were read again. */
  surfaces(names: string[]): void;
}

/** A session that is followed, and all that is loaded of it. */
export class Followed {
  /** Null until it was read. */
  past: Past | null = null;
  conversation: Conversation | null = null;
  /** The tool calls whose rest was asked for. */
  readonly asked = new Set<string>();
  readonly shelf: Shelf;
  #viewer: Viewer | null;
  #aside: Envelope[] = [];
  readonly #unfollow: () => void;

  constructor(readonly session_id: string, viewer: Viewer) {
    this.#viewer = viewer;
    this.shelf = new Shelf(() => readSurfaces(session_id), (names) => {
      if (this.#viewer) this.#viewer.surfaces(names);
      else for (const name of names) this.conversation?.redraw(name);
    });
    this.#unfollow = plexus.follow(session_id, (batch) => this.#take(batch), () => this.#viewer === null);
  }

  /** Somebody shows it. */
  show(viewer: Viewer): void {
    this.#apply();
    this.#viewer = viewer;
  }

  /** Nobody shows it any more. */
  hide(): void { this.#viewer = null; }

  stop(): void {
    this.#viewer = null;
    this.#unfollow();
    this.shelf.stop();
  }

  /** Applies an event; true if a surface changed by it. */
  apply(event: Envelope): boolean {
    const drew = event.kind === 'surface_updated' && this.shelf.take(event.event, event.at);
    this.past?.add(event);
    this.conversation?.apply(event);
    return drew;
  }

  #take(batch: Batch): void {
    if (this.#viewer) { this.#viewer.batch(batch); return; }
    // It was deleted, or has another history: it is read again when it is shown again.
    if (batch.snapshot || batch.trouble) { forget(this); return; }
    for (const event of batch.events) this.#aside.push(event);
    if (this.#aside.length < ASIDE_MAX) return;
    this.#apply();
    if ((this.past?.count ?? 0) > ITEMS_MAX) forget(this);
  }

  #apply(): void {
    for (const event of this.#aside) this.apply(event);
    this.#aside = [];
  }
}

/** Those that nobody shows, the one left last at the end. */
const kept = new Map<string, Followed>();

function forget(followed: Followed): void {
  followed.stop();
  if (kept.get(followed.session_id) === followed) kept.delete(followed.session_id);
}

/** Follows a session, from what is loaded of it if it was shown before. */
export function take(session_id: string, viewer: Viewer): Followed {
  const known = kept.get(session_id);
  if (!known) return new Followed(session_id, viewer);
  kept.delete(session_id);
  known.show(viewer);
  return known;
}

/** Nobody shows a session any more; it stays loaded for a while if it was read. */
export function leave(followed: Followed): void {
  followed.hide();
  if (!followed.past || followed.past.count > ITEMS_MAX) { followed.stop(); return; }
  // Two views of one session: one of them is enough.
  kept.get(followed.session_id)?.stop();
  kept.delete(followed.session_id);
  kept.set(followed.session_id, followed);
  for (const [, oldest] of kept) { if (kept.size <= KEPT_MAX) break; forget(oldest); }
}

// Whoever signs in next may see less.
effect(() => { if (plexus.link.value.phase === 'signed-out') for (const [, one] of [...kept]) forget(one); });
