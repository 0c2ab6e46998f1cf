// The sign-in that a link asks for, until it is done.
import { signal } from '../lib/signal.js';
import { linkAtStart, takeLink, type Wanted } from '../lib/signin-link.js';

export type { Wanted };

/** The sign-in that the URL names, or null. */
export const signinWanted = signal<Wanted | null>(linkAtStart);
// A sign-in link opened in a tab that is signed in already.
window.addEventListener('hashchange', () => {
  const next = takeLink();
  if (next) signinWanted.value = next;
});
