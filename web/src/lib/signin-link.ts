// The sign-in in the address. The page's first script takes it, before anything else runs.

/** RFC 9110 token characters: the only ones that may stand in a WebSocket subprotocol. */
export const TOKEN_SHAPE = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{8,1024}$/;
const CODE_SHAPE = /^[A-Za-z0-9_-]{4,256}$/;

/** A sign-in by a one-time code, by a code from another screen, or by the token of a shared link; the value is empty if it is not one. */
export interface Wanted { kind: 'code' | 'pair' | 'share'; value: string }

/** The sign-in that the URL names, or null. It is removed from the address bar. */
export function takeLink(): Wanted | null {
  const match = /^#(code|pair|share)=(.*)$/.exec(location.hash);
  if (!match) return null;
  history.replaceState(null, '', location.pathname);
  let value = '';
  // A value that cannot be decoded is no sign-in; an exception here would leave the page empty.
  try { value = decodeURIComponent(match[2] ?? ''); } catch { /* it stays empty */ }
  const fine = match[1] === 'share' ? TOKEN_SHAPE.test(value) : CODE_SHAPE.test(value);
  return { kind: match[1] as Wanted['kind'], value: fine ? value : '' };
}

/** The sign-in that the page was opened with. */
export const linkAtStart = takeLink();
