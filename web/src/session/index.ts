// `<plexus-session>`, in a file of its own: the pages that most visits begin with need nothing of it.

/** Comes when the element is there. */
export const ready: Promise<unknown> = import('./conversation.js');
