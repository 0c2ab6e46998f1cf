// Loads `<plexus-surface>` when a surface is first shown: most pages have none.
import type { PlexusSurface } from './surface.js';

let loading: Promise<unknown> | null = null;

/** Loads the views of surfaces. */
export function loadSurfaces(): Promise<unknown> {
  return (loading ??= import('./surface.js').catch((error: unknown) => { loading = null; throw error; }));
}

export type { PlexusSurface };
