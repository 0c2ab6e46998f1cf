// The digests of the requests that were seen completely on this screen. A digest names one version of one request, so that a request which
// changes has not been seen.

import { signal } from '../lib/signal.js';
import type { Request } from './wire.js';

/** Maximum number of digests; beyond it the oldest is dropped, and its request must be looked at again. */
const SEEN_MAX = 5_000;

const digests = new Set<string>();
/** Changes whenever a request was seen. */
const version = signal(0);

/** Records that the end of the request was on the screen. A request that is known in part has no digest, and never counts. */
export function markSeen(request: Request): void {
  const { digest } = request;
  if (!digest || request.display_truncated || digests.has(digest)) return;
  const oldest = digests.size >= SEEN_MAX ? digests.values().next().value : undefined;
  if (oldest !== undefined) digests.delete(oldest);
  digests.add(digest);
  version.value += 1;
}

/** Whether all of this version of the request was seen. */
export function wasSeen(request: Request): boolean {
  return version.value >= 0 && Boolean(request.digest) && !request.display_truncated && digests.has(request.digest!);
}
