// Merges updates of requests and sessions. Pure. Updates come as events, lists and answers, in any order.

import type { Request } from './types.js';

/** The known request after an update; null if the update is older. */
export function merged(known: Request | undefined, update: Request): Request | null {
  if (!known) return update;
  // A resolved request stays resolved: an older list must not open it again.
  if (known.state !== 'open' && update.state === 'open') return null;
  const [was, is] = [known.revision ?? 0, update.revision ?? 0];
  if (is < was) return null;
  const next: Request = { ...known, ...update };
  // A receipt of an earlier revision does not apply.
  if (is > was && !update.receipt) delete next.receipt;
  if (!update.display_truncated) {
    delete next.display_truncated;
    delete next.display_bytes;
  } else if (is === was && known.digest && !known.display_truncated) {
    // The whole request is known, and the update has only a part.
    Object.assign(next, { display: known.display, message: known.message, native: known.native, digest: known.digest });
    delete next.display_truncated;
    delete next.display_bytes;
  } else next.digest = '';
  return next;
}

/** Whether the request itself changed, not only how much of it is known. */
export const changedBetween = (before: Request, now: Request): boolean =>
  (before.revision ?? 0) !== (now.revision ?? 0) || (Boolean(before.digest) && Boolean(now.digest) && before.digest !== now.digest);

/** Whether an update of a session counts: a list that was fetched before an update must not undo it. Live updates come in order,
 *  even if the gateway's clock was set back. */
export const counts = (live: boolean, old: number | undefined, updated: number): boolean => live || old === undefined || !(updated < old);

/** The time of live news: after the newest known, even if the clock was set back. */
export const placed = (at: number, newest: number): number => (at > newest ? at : newest + 1);
