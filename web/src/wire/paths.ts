// The addresses of what a page opens with: the first script asks for them early, and the page takes the replies under the same addresses.
import type { Route } from '../plexus.js';

/** Bytes of the past that a session opens with; older pages are loaded on demand. */
const OPENING_BYTES = 64 * 1024;
/** Bytes of each member of a tool call in a page of the past; the rest is loaded when somebody wants to see it. */
export const OUTPUT_BYTES = 16 * 1024;

/** This device. */
export const ME = '/v1/me';
/** The open requests, as many as an inbox usually has: of more, the first are those that the connection tells. */
export const OPEN_REQUESTS = '/v1/requests?state=open&limit=50';

/** All sessions, from a place in their list. */
export const sessionsFrom = (cursor: string): string => `/v1/sessions?archived=all&cursor=${encodeURIComponent(cursor)}`;

/** The paths that a session reads first: its snapshot, which contains the latest states (plan, mode, commands), and the newest page of
 *  its past. */
export function openingOf(session_id: string): { snapshot: string; past: string } {
  const path = `/v1/sessions/${encodeURIComponent(session_id)}`;
  return {
    snapshot: `${path}/snapshot?max_bytes=0`,
    past: `${path}/events?before=now&merge=true&limit=1000&max_output=${OUTPUT_BYTES}&max_bytes=${OPENING_BYTES}`,
  };
}

/** The paths that the page at a route reads first. */
export function firstOf(route: Route): string[] {
  switch (route.page) {
    case 'inbox': return [ME, OPEN_REQUESTS];
    case 'sessions': return [ME, sessionsFrom('')];
    case 'session': return [ME, ...Object.values(openingOf(route.session_id))];
    default: return [ME];
  }
}
