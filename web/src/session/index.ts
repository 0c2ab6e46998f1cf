// Loads `<plexus-session>` on demand: the first pages of most visits do not need it.

/** Resolves when the element is defined. */
export const ready: Promise<unknown> = import('./conversation.js');
