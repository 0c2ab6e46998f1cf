// Work that is not urgent: it must not delay the content of the page.

/** Maximum time that such work waits, ms. */
const PATIENCE_MS = 2_000;
/** Pause in browsers that do not report when they are idle, ms. */
const PAUSE_MS = 200;

/** Does the work when the page has nothing else to do, and at the latest after {@link PATIENCE_MS}. */
export function later(work: () => void): void {
  if (typeof requestIdleCallback === 'function') requestIdleCallback(() => work(), { timeout: PATIENCE_MS });
  else setTimeout(work, PAUSE_MS);
}
