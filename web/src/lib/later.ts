// Work that nobody waits for: it must not delay what a person came to see.

/** How long such work waits at most, ms. */
const PATIENCE_MS = 2_000;
/** The pause instead, ms, in browsers that do not tell when they are idle. */
const PAUSE_MS = 200;

/** Does the work when the page has nothing else to do, and at the latest after {@link PATIENCE_MS}. */
export function later(work: () => void): void {
  if (typeof requestIdleCallback === 'function') requestIdleCallback(() => work(), { timeout: PATIENCE_MS });
  else setTimeout(work, PAUSE_MS);
}
