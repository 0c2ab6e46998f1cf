// The pinned surface that the user last looked at in each session, and the choice whether sessions open with one; on this device.

const KEY = 'plexus.surface';
const FIRST_KEY = 'plexus.surface.first';
/** Maximum number of stored sessions; the oldest are dropped. */
const SESSIONS_MAX = 200;

function kept(): [session: string, surface: string][] {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(KEY) ?? '[]');
    return Array.isArray(value) ? value.filter((one): one is [string, string] => Array.isArray(one) && typeof one[0] === 'string' && typeof one[1] === 'string') : [];
  } catch { return []; }
}

/** The surface of a session; empty for its conversation. */
export const keptTab = (session: string): string => kept().find(([id]) => id === session)?.[1] ?? '';

export function keepTab(session: string, surface: string): void {
  const others = kept().filter(([id]) => id !== session).slice(0, SESSIONS_MAX - 1);
  try { localStorage.setItem(KEY, JSON.stringify(surface ? [[session, surface], ...others] : others)); } catch { /* storage is off: it lasts as long as the page */ }
}

/** Whether a session opens with what is pinned in it, if anything is, where that has no place beside the conversation. */
export function pinnedFirst(): boolean {
  try { return localStorage.getItem(FIRST_KEY) === '1'; } catch { return false; }
}

export function setPinnedFirst(first: boolean): void {
  try { if (first) localStorage.setItem(FIRST_KEY, '1'); else localStorage.removeItem(FIRST_KEY); } catch { /* storage is off: sessions open as before */ }
}
