// Which surfaces are pinned, in all sessions: the gateway's list, and the changes since. Pure; it knows nothing of what is on them.
import { list } from '../lib/text.js';
import { surfaceOf } from './fold.js';
import { TITLE_MAX } from './types.js';

/** A pinned surface, without what is on it. */
export interface Pinned {
  readonly key: string;
  readonly session_id: string;
  readonly surface: string;
  readonly rev: number;
  /** Empty if it has none. */
  readonly title: string;
  /** The time of the last change, RFC 3339; empty if unknown. */
  readonly at: string;
}

export const keyOf = (session_id: string, surface: string): string => `${session_id}/${surface}`;
const str = (value: unknown): string => (typeof value === 'string' ? value : '');

export class Wall {
  #all = new Map<string, Pinned>();
  /** The surfaces that changed while the list is being read: what is known of them is newer. Null if it is not. */
  #changed: Set<string> | null = null;

  get(key: string): Pinned | undefined { return this.#all.get(key); }
  get all(): Pinned[] { return [...this.#all.values()]; }

  /** The list is about to be read. */
  reading(): void { this.#changed = new Set(); }

  /** Takes the list that was read. */
  read(surfaces: unknown): void {
    const changed = this.#changed ?? new Set();
    this.#changed = null;
    const next = new Map([...this.#all].filter(([key]) => changed.has(key)));
    for (const one of list<Record<string, unknown> | null>(surfaces)) {
      const [session_id, surface] = [str(one?.['session_id']), surfaceOf(one)];
      if (!one || !session_id || surface === null) continue;
      const key = keyOf(session_id, surface);
      if (!changed.has(key)) next.set(key, { key, session_id, surface, rev: Number(one['rev']) || 0, title: str(one['title']).slice(0, TITLE_MAX), at: str(one['at']) });
    }
    this.#all = next;
  }

  /** Takes a change of a surface of a session. Returns whether another surface is pinned by it, or one is not any more. */
  take(session_id: string, body: unknown, at: string): boolean {
    const surface = surfaceOf(body);
    if (surface === null) return false;
    const given = body as Record<string, unknown>;
    const [key, rev] = [keyOf(session_id, surface), Number(given['rev'])];
    const known = this.#all.get(key);
    if (!Number.isSafeInteger(rev) || (known && rev <= known.rev)) return false;
    this.#changed?.add(key);
    const whole = given['base'] === undefined;
    const pinned = given['closed'] !== true && (typeof given['pinned'] === 'boolean' ? given['pinned'] : !whole && known !== undefined);
    if (!pinned) return this.#all.delete(key);
    const title = typeof given['title'] === 'string' ? given['title'].slice(0, TITLE_MAX) : (!whole && known?.title) || '';
    this.#all.set(key, { key, session_id, surface, rev, title, at });
    return known === undefined;
  }
}
