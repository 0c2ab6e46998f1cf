// The loaded part of a session's history: items of the gateway's pages, loaded backwards, and events since.

import { plexus } from '../plexus.js';
import { OUTPUT_BYTES } from '../wire/paths.js';
import { parseCursor, type Envelope, type Page, type Snapshot } from '../wire/types.js';
import { Conversation } from './model.js';

/** Bytes of the first older page; further pages are as long as all that is loaded. */
const PAGE_LEAST = 96 * 1024;
/** Maximum size of a page, in bytes: the gateway's limit. */
const PAGE_MOST = 1024 * 1024;
/** Maximum length of an item of a live message, in characters; then another item begins. */
const TOGETHER = 64 * 1024;

const CHUNKS = new Set(['user_message_chunk', 'agent_message_chunk', 'agent_thought_chunk']);

/** The position of an envelope's first event. */
export const firstPlace = (envelope: Envelope): number => parseCursor(envelope.cursor_first ?? envelope.cursor)?.pos ?? 0;

const lastPlace = (envelope: Envelope): number => parseCursor(envelope.cursor)?.pos ?? 0;

/** Whether the page left out a part of the item. */
const isShort = (item: Envelope): boolean => item.event?._meta?.plexus?.left_out > 0;

export class Past {
  readonly #items: Envelope[];
  readonly #latest: Record<string, any>;
  readonly #trimmed: boolean;
  /** The cursor of the page before; null at the beginning. */
  previous: string | null;
  #bytes = 0;

  /** Starts from the session's newest page; the snapshot has the latest states. */
  constructor(readonly session_id: string, snapshot: Snapshot, page: Page) {
    this.#items = [...page.events];
    this.#latest = snapshot.latest ?? {};
    this.#trimmed = snapshot.trimmed;
    this.previous = page.previous ?? null;
    this.#bytes = PAGE_LEAST;
  }

  /** The position of the first loaded event. */
  get first(): number { return this.#items[0] ? firstPlace(this.#items[0]) : 0; }

  /** The number of loaded items. */
  get count(): number { return this.#items.length; }

  /** Adds a live event. */
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

  /** Loads the page before. False if there is none. */
  async older(): Promise<boolean> {
    if (this.previous === null) return false;
    const before = this.previous;
    const bytes = Math.min(PAGE_MOST, this.#bytes);
    const page = await plexus.http<Page>(
      'GET', `/v1/sessions/${encodeURIComponent(this.session_id)}/events?merge=true&limit=5000&max_output=${OUTPUT_BYTES}&max_bytes=${bytes}&before=${encodeURIComponent(before)}`,
    );
    // Another caller loaded it meanwhile.
    if (this.previous !== before) return true;
    this.#items.unshift(...page.events);
    // Each page is about as long as all loaded before, which is folded again: loading a whole session costs O(length).
    this.#bytes = Math.min(PAGE_MOST, this.#bytes + bytes);
    this.previous = page.resume === 'ok' ? page.previous ?? null : null;
    return true;
  }

  /** The tool calls of which pages left something out. */
  get shortened(): string[] {
    return [...new Set(this.#items.filter(isShort).map((item) => String(item.event.toolCallId)))];
  }

  /** Loads what pages left out of a tool call. False if it is no longer kept. */
  async whole(toolCallId: string): Promise<boolean> {
    const short = this.#items.filter((item) => isShort(item) && item.event.toolCallId === toolCallId);
    for (const item of short) {
      const end = lastPlace(item);
      const wholes: Envelope[] = [];
      for (let from = firstPlace(item); from <= end;) {
        const after = `${parseCursor(item.cursor)?.epoch}:${from - 1}`;
        const page = await plexus.http<Page>(
          'GET', `/v1/sessions/${encodeURIComponent(this.session_id)}/events?merge=true&limit=1&after=${encodeURIComponent(after)}`,
        );
        const whole = page.events[0];
        if (page.resume !== 'ok' || whole?.event?.toolCallId !== toolCallId) return false;
        wholes.push(whole);
        from = lastPlace(whole) + 1;
      }
      // Newer events may be part of the last item.
      const last = wholes[wholes.length - 1];
      const until = last ? lastPlace(last) : 0;
      const at = this.#items.indexOf(item);
      // Another caller loaded it meanwhile.
      if (at < 0) continue;
      const rest = this.#items.slice(at + 1).filter((other) => other.event?.toolCallId !== toolCallId || lastPlace(other) > until);
      this.#items.splice(at, this.#items.length - at, ...wholes, ...rest);
    }
    return true;
  }

  /** The fold of all loaded items. */
  fold(): Conversation {
    const conversation = new Conversation();
    conversation.older = this.previous !== null;
    conversation.trimmed = this.#trimmed;
    for (const item of this.#items) conversation.apply(item);
    conversation.takeLatest(this.#latest);
    return conversation;
  }
}
