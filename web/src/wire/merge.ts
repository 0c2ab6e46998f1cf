// What is known of a request, and what is told of it anew. Pure. News come over two ways and in any order: an event, a list, an answer.

import type { Request } from './types.js';

/** What is known after `told`; null if that says nothing new. */
export function merged(known: Request | undefined, told: Request): Request | null {
  if (!known) return told;
  // Resolved is for good: an older page must not open it again.
  if (known.state !== 'open' && told.state === 'open') return null;
  const [was, is] = [known.revision ?? 0, told.revision ?? 0];
  if (is < was) return null;
  const next: Request = { ...known, ...told };
  // What was said of an earlier revision is not true of this one.
  if (is > was && !told.receipt) delete next.receipt;
  if (!told.display_truncated) {
    delete next.display_truncated;
    delete next.display_bytes;
  } else if (is === was && known.digest && !known.display_truncated) {
    // It was fetched whole, and is told in part again.
    Object.assign(next, { display: known.display, message: known.message, native: known.native, digest: known.digest });
    delete next.display_truncated;
    delete next.display_bytes;
  } else next.digest = '';
  return next;
}

/** Whether what is asked is another thing than before: not merely more of the same words. */
export const changedBetween = (before: Request, now: Request): boolean =>
  (before.revision ?? 0) !== (now.revision ?? 0) || (Boolean(before.digest) && Boolean(now.digest) && before.digest !== now.digest);

/** Whether what is told of a session counts: a page of a listing that was fetched before an update must not undo it, while what the
 *  connection tells comes in its order, whatever the gateway's clock did. */
export const counts = (live: boolean, old: number | undefined, told: number): boolean => live || old === undefined || !(told < old);

/** When news that came just now is placed: never before what was there already, if the clock was set back. */
export const placed = (at: number, newest: number): number => (at > newest ? at : newest + 1);
