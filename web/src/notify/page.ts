// What runs beside the pages: badges, the sound, and what the background part asks of an open page.

import { effect } from '../lib/signal.js';
import { plexus } from '../plexus.js';
import { startBadges } from './badge.js';
import { look } from './push.js';
import { startSound } from './sound.js';
import { tray } from './tray.js';

let started = false;

/** Called once, when the page begins. */
export function startNotify(): void {
  if (started) return;
  started = true;
  startBadges();
  startSound();
  navigator.serviceWorker?.addEventListener('message', (event: MessageEvent<{ plexus?: string; hash?: string } | null>) => {
    const said = event.data;
    // Only a place within the page: no address ever comes this way.
    if (said?.plexus === 'open' && typeof said.hash === 'string' && said.hash.startsWith('#/')) location.hash = said.hash;
  });
  navigator.serviceWorker?.startMessages?.();
  // What this page shows needs no notification any more.
  document.addEventListener('visibilitychange', () => void tidy());
  void tidy();
  // A subscription that came to nothing is made anew at the next visit.
  let looked = false;
  effect(() => {
    if (looked || !plexus.me.value) return;
    looked = true;
    void look();
  });
}

/** Takes away notifications of questions that the reader is now looking at. */
async function tidy(): Promise<void> {
  if (document.hidden || !('serviceWorker' in navigator)) return;
  try {
    const worker = await navigator.serviceWorker.getRegistration();
    for (const shown of worker ? await tray(() => worker.getNotifications()) : []) if (['withdrawn', 'outcome', 'news'].includes(shown.data?.kind)) shown.close();
  } catch {
    // Not where there is no background part.
  }
}
