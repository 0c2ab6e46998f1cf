// Sessions that are read and followed. The last few that were shown stay so: a user who returns to one sees it at once, from memory,
// without a call of the gateway. Events of a session that is not shown are only queued, and applied together.

import { effect } from '../lib/signal.js';
import { plexus, type Batch } from '../plexus.js';
import { Shelf } from '../surface/shelf.js';
import { readSurfaces } from '../surface/wire.js';
import type { Envelope } from '../wire/types.js';
import type { Past } from './history.js';
import type { Conversation } from './model.js';

/** Maximum number of sessions that stay followed without being shown; the one that was left first is read again when it is shown again. */
const KEPT_MAX = 8;
/** Maximum number of events that are queued for one session; then they are applied, so that a long message is one item again. */
const ASIDE_MAX = 1_000;
/** Maximum number of items of one session; with more it is read again when it is shown again. */
const ITEMS_MAX = 5_000;

/** The view that shows a session. */
export interface Viewer {
  batch(batch: Batch): void;
  /** Reports surfaces that were read again. */
  surfaces(names: string[]): void;
}

/** A session that is followed, and all that is loaded of it. */
export class Followed {
  /** Null until it was read. */
  past: Past | null = null;
  conversation: Conversation | null = null;
  /** The tool calls whose rest was requested. */
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

  /** Attaches the view that shows the session. */
  show(viewer: Viewer): void {
    this.#apply();
    this.#viewer = viewer;
  }

  /** Detaches the view. */
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
    // The session was deleted, or has another history: it is read again when it is shown again.
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

/** The sessions that are not shown, in the order in which they were left: the last one at the end. */
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

/** Releases a session that is no longer shown; it stays loaded for a while if it was read. */
export function leave(followed: Followed): void {
  followed.hide();
  if (!followed.past || followed.past.count > ITEMS_MAX) { followed.stop(); return; }
  // Two views of one session need only one of them.
  kept.get(followed.session_id)?.stop();
  kept.delete(followed.session_id);
  kept.set(followed.session_id, followed);
  for (const [, oldest] of kept) { if (kept.size <= KEPT_MAX) break; forget(oldest); }
}

// The next user of this browser may have fewer permissions.
effect(() => { if (plexus.link.value.phase === 'signed-out') for (const [, one] of [...kept]) forget(one); });
