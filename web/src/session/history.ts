// The past of a session as far as it is loaded: items of the gateway's pages, the newest first to come, and what happens since.

import { plexus } from '../plexus.js';
import { parseCursor, type Envelope, type Page, type Snapshot } from '../wire/types.js';
import { Conversation } from './model.js';

/** Bytes of the first older page that is asked for; the next ones are as long as what is loaded already. */
const PAGE_LEAST = 96 * 1024;
/** Bytes of a page at most: what the gateway gives. */
const PAGE_MOST = 1024 * 1024;
/** A message that happens now is kept as one item up to this, in characters; then another begins. */
const TOGETHER = 64 * 1024;

const CHUNKS = new Set(['user_message_chunk', 'agent_message_chunk', 'agent_thought_chunk']);

/** Where the first event of an envelope is in the log. */
export const firstPlace = (envelope: Envelope): number => parseCursor(envelope.cursor_first ?? envelope.cursor)?.pos ?? 0;

export class Past {
  readonly #items: Envelope[];
  readonly #latest: Record<string, any>;
  readonly #trimmed: boolean;
  /** What to ask for the page before; null at the beginning. */
  previous: string | null;
  #bytes = 0;

  /** `session_id`'s newest page, and the snapshot for what only the latest matters of. */
  constructor(readonly session_id: string, snapshot: Snapshot, page: Page) {
    this.#items = [...page.events];
    this.#latest = snapshot.latest ?? {};
    this.#trimmed = snapshot.trimmed;
    this.previous = page.previous ?? null;
    this.#bytes = PAGE_LEAST;
  }

  /** The place of the first event that is loaded. */
  get first(): number { return this.#items[0] ? firstPlace(this.#items[0]) : 0; }

  /** How many items are loaded. */
  get count(): number { return this.#items.length; }

  /** What happens now. */
  add(event: Envelope): void {
    const last = this.#items[this.#items.length - 1];
    const text = event.event?.content?.text;
    if (last && CHUNKS.has(event.kind) && last.kind === event.kind && last.run_id === event.run_id && typeof text === 'string'
      && event.event.content.type === 'text' && last.event?.content?.type === 'text' && typeof last.event.content.text === 'string'
      && last.event.messageId === event.event.messageId && last.event.content.text.length < TOGETHER) {
      this.#items[this.#items.length - 1] = {
        ...last, cursor: event.cursor, cursor_first: last.cursor_first ?? last.cursor, merged: (last.merged ?? 1) + 1,
        event: { ...last.event, content: { ...last.event.content, text: last.event.content.text + text } },
      };
    } else this.#items.push(event);
  }

  /** Loads the page before what is loaded. False if there is none. */
  async older(): Promise<boolean> {
    if (this.previous === null) return false;
    const before = this.previous;
    const bytes = Math.min(PAGE_MOST, this.#bytes);
    const page = await plexus.http<Page>(
      'GET', `/v1/sessions/${encodeURIComponent(this.session_id)}/events?merge=true&limit=5000&max_bytes=${bytes}&before=${encodeURIComponent(before)}`,
    );
    // Somebody else loaded it meanwhile.
    if (this.previous !== before) return true;
    this.#items.unshift(...page.events);
    // What is folded anew for a page is no more than that page, about: loading all of a long session costs its length.
    this.#bytes = Math.min(PAGE_MOST, this.#bytes + bytes);
    this.previous = page.resume === 'ok' ? page.previous ?? null : null;
    return true;
  }

  /** All that is loaded, folded. */
  fold(): Conversation {
    const talk = new Conversation();
    talk.older = this.previous !== null;
    talk.trimmed = this.#trimmed;
    for (const item of this.#items) talk.apply(item);
    talk.takeLatest(this.#latest);
    return talk;
  }
}
