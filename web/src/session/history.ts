// The whole past of a session, page by page, beside what is shown already.

import { plexus } from '../plexus.js';
import type { Envelope } from '../wire/types.js';
import { Conversation } from './model.js';

/** Events a page. */
const PAGE = 1_000;
/** A session with more events than this is shown from its snapshot until somebody asks for all of it. */
export const HISTORY_MAX = 60_000;

/** Reads events into a conversation of their own up to the place `until`; null if there are too many, or it was given up. */
export async function readHistory(
  session_id: string, until: number, most: number, going: () => boolean, progress: (events: number) => void,
): Promise<Conversation | null> {
  const whole = new Conversation();
  let after = '';
  for (;;) {
    const page = await plexus.http<{ events: Envelope[]; next: string; resume?: string }>(
      'GET', `/v1/sessions/${encodeURIComponent(session_id)}/events?limit=${PAGE}${after ? `&after=${encodeURIComponent(after)}` : ''}`,
    );
    if (!going()) return null;
    for (const event of page.events) whole.apply(event);
    progress(whole.count);
    if (whole.head >= until || !page.events.length) return whole;
    if (whole.count >= most) return null;
    after = page.next;
    // Frames come first.
    await new Promise((resolve) => setTimeout(resolve, 0));
    if (!going()) return null;
  }
}
