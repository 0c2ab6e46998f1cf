// The page's part of notifications: badges, the sound, and messages of the service worker.

import { later } from '../lib/later.js';
import { effect } from '../lib/signal.js';
import { plexus } from '../plexus.js';
import { startBadges } from './badge.js';
import { refreshPush } from './push.js';
import { startSound } from './sound.js';
import { tray } from './tray.js';

let started = false;

/** Called once, when the page begins. */
export function startNotify(): void {
  if (started) return;
  started = true;
  navigator.serviceWorker?.addEventListener('message', (event: MessageEvent<{ plexus?: string; hash?: string } | null>) => {
    const message = event.data;
    // Only fragments are accepted: a message cannot lead to another address.
    if (message?.plexus === 'open' && typeof message.hash === 'string' && message.hash.startsWith('#/')) location.hash = message.hash;
  });
  navigator.serviceWorker?.startMessages?.();
  later(() => {
    startBadges();
    startSound();
    // A visible page needs no notification of its content.
    document.addEventListener('visibilitychange', () => void tidy());
    void tidy();
    // A lost subscription is renewed at the next visit.
    let looked = false;
    effect(() => {
      if (looked || !plexus.me.value) return;
      looked = true;
      later(() => void refreshPush());
    });
  });
}

/** Closes notifications that need no answer while the page is visible. */
async function tidy(): Promise<void> {
  if (document.hidden || !('serviceWorker' in navigator)) return;
  try {
    const worker = await navigator.serviceWorker.getRegistration();
    for (const shown of worker ? await tray(() => worker.getNotifications()) : []) if (['withdrawn', 'outcome', 'news'].includes(shown.data?.kind)) shown.close();
  } catch {
    // There is no service worker.
  }
}
