// The tab's title and icon and the app's badge: the number of open requests, and whether the page is connected.

import { effect } from '../lib/signal.js';
import { plexus } from '../plexus.js';

const PREFIX = /^\(\d+\) /;
const SIZE = 64;

/** The number of open requests that can be answered here. */
function openRequests(): number {
  let n = 0;
  for (const request of plexus.requests.value.values()) if (request.state === 'open' && !request.observe_only) n += 1;
  return n;
}

type State = 'calm' | 'asked' | 'away';

/** The tab's icon as a data URL. */
function iconUrl(state: State): string {
  const field = state === 'away' ? '#6b7280' : '#4f46d8';
  const dot = state === 'asked' ? `<circle cx="50" cy="14" r="13" fill="#e5383b" stroke="#fff" stroke-width="4"/>` : '';
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${SIZE} ${SIZE}"><rect width="${SIZE}" height="${SIZE}" rx="14" fill="${field}"/><g fill="none" stroke="#fff" stroke-opacity=".75" stroke-width="5" stroke-linecap="round"><path d="M14 16 32 32 14 48M32 32h18M32 32 50 16M32 32l18 16"/></g><circle cx="32" cy="32" r="8" fill="#fff"/>${dot}</svg>`;
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}

let count = 0;

function title(): void {
  const plain = document.title.replace(PREFIX, '');
  const wanted = count > 0 ? `(${count}) ${plain}` : plain;
  if (document.title !== wanted) document.title = wanted;
}

/** Keeps title, icon and badge up to date. Called once. */
export function startBadges(): void {
  // Other code sets the title without the number.
  const at = document.querySelector('title');
  if (at) new MutationObserver(title).observe(at, { childList: true, characterData: true, subtree: true });
  let shown: State | '' = '';
  effect(() => {
    const signedIn = plexus.me.value !== null;
    count = signedIn ? openRequests() : 0;
    title();
    const state: State = signedIn && !plexus.live.value ? 'away' : count > 0 ? 'asked' : 'calm';
    const link = document.querySelector<HTMLLinkElement>('link#favicon, link[rel="icon"]');
    if (link && state !== shown) {
      shown = state;
      link.type = 'image/svg+xml';
      link.href = iconUrl(state);
    }
    const badge = navigator as Navigator & { setAppBadge?: (n: number) => Promise<void>; clearAppBadge?: () => Promise<void> };
    if (plexus.live.value) void (count > 0 ? badge.setAppBadge?.(count) : badge.clearAppBadge?.())?.catch(() => {});
  });
}
