// The page's first script makes these calls before the rest of the code has arrived: on a slow network, code and data arrive together. The
// first call for the same address takes the reply instead of calling again.

/** Set while this browser has the gateway's cookie, which scripts cannot see: a request without it would be logged as refused. */
export const COOKIE_KEY = 'plexus.here';
/** The token of this tab, which is sent instead of the cookie. */
export const TOKEN_KEY = 'plexus.token';
/** Timeout of a call, early or not, ms. */
export const CALL_MS = 20_000;
/** Time after which a later call is made again, since an early reply may be out of date, ms. */
const FRESH_MS = 60_000;

/** A call on its way: when it was sent, ms since the epoch, and its reply. */
export interface Early { sent: number; reply: Promise<Response> }
const early = new Map<string, Early>();

/** The options of every call, whether early or not. */
export const CALL: RequestInit = { cache: 'no-store', redirect: 'error', referrerPolicy: 'no-referrer' };

/** The way in which the page will sign in, by the data of this browser: by its cookie, by the token of this tab, or not by itself. */
export function keptSignIn(): 'cookie' | 'token' | null {
  try { return sessionStorage.getItem(TOKEN_KEY) !== null ? 'token' : localStorage.getItem(COOKIE_KEY) !== null ? 'cookie' : null; } catch { return null; }
}

/** Makes the calls that the page will need. Only for a browser with a cookie: nothing is known of others. */
export function askEarly(...paths: string[]): void {
  if (keptSignIn() !== 'cookie') return;
  for (const path of paths) {
    const reply = fetch(path, { ...CALL, headers: { Accept: 'application/json' }, credentials: 'same-origin', signal: AbortSignal.timeout(CALL_MS) });
    // The later call handles the error; without one, nobody needs it.
    reply.catch(() => {});
    early.set(path, { sent: Date.now(), reply });
  }
}

/** The early reply for this address: once, and while it is fresh. */
export function takeEarly(path: string): Early | undefined {
  const one = early.get(path);
  early.delete(path);
  return one && Date.now() - one.sent < FRESH_MS ? one : undefined;
}

/** Whether there is an early reply for this address, or will be. */
export const isAsked = (path: string): boolean => early.has(path);

/** Drops early replies, after the page signed in as another device, or out. */
export function forgetEarly(): void { early.clear(); }
