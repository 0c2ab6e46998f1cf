// Loads `<plexus-session>` on demand: the first pages of most visits do not need it.

let loading: Promise<unknown> | undefined;

/** Defines the element. A load that fails is reported as that of any other part, and tried again by the next call. */
export function loadSession(): void {
  loading ??= import('./conversation.js').catch(() => { loading = undefined; });
}
