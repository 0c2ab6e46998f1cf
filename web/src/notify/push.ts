// This browser's subscription to pushes, and what stands in its way.

import { signal } from '../lib/signal.js';
import { plexus, Refused, why } from '../plexus.js';
import { text } from '../text/en.js';
import type { Push, PushSettings } from '../wire/types.js';

const t = text.notify;
/** How long the background part may take to come up, ms. */
const READY_MS = 8_000;

/** What the gateway keeps for this device. */
export type Settings = Partial<PushSettings>;

/** What the panel shows. `blocked`: in the browser; `unable`: never here; `off`/`on`: as chosen. */
export interface PushState {
  is: 'unknown' | 'unable' | 'blocked' | 'off' | 'on';
  /** Why, in words; for `unable` and `blocked`. */
  words: string;
  settings: Settings;
}

export const push = signal<PushState>({ is: 'unknown', words: '', settings: {} });

const isApple = (): boolean => /iPhone|iPad|iPod/.test(navigator.userAgent) || (navigator.userAgent.includes('Mac') && navigator.maxTouchPoints > 1);
const fromHome = (): boolean => matchMedia('(display-mode: standalone)').matches || (navigator as { standalone?: boolean }).standalone === true;

/** What this browser lacks, in words; empty if nothing. */
export function lacks(): string {
  if (!window.isSecureContext) return t.needsHttps;
  if (isApple() && !fromHome() && !('PushManager' in window)) return t.needsHome;
  if (!('serviceWorker' in navigator) || !('PushManager' in window) || !('Notification' in window)) return t.noPush;
  return '';
}

async function registration(): Promise<ServiceWorkerRegistration | null> {
  const late = new Promise<null>((resolve) => setTimeout(() => resolve(null), READY_MS));
  return Promise.race([navigator.serviceWorker.ready, late]);
}

function bytesOf(key: string): Uint8Array<ArrayBuffer> {
  const plain = atob(key.replace(/-/g, '+').replace(/_/g, '/'));
  return Uint8Array.from(plain, (c) => c.charCodeAt(0));
}

const same = (a: ArrayBuffer | null | undefined, b: Uint8Array): boolean => {
  const one = a ? new Uint8Array(a) : null;
  return one !== null && one.length === b.length && one.every((byte, n) => byte === b[n]);
};

/** Finds out how it stands. */
export async function look(): Promise<void> {
  if (plexus.me.peek()?.kind === 'share') {
    push.value = { is: 'unable', words: t.share, settings: {} };
    return;
  }
  const missing = lacks();
  let told: Push;
  try {
    told = await plexus.http<Push>('GET', '/v1/push');
  } catch (error) {
    const words = error instanceof Refused && (error.status === 404 || error.status === 405) ? t.noGateway : t.failed(why(error));
    push.value = { is: 'unable', words: missing || words, settings: {} };
    return;
  }
  const settings = told.settings ?? {};
  if (missing) push.value = { is: 'unable', words: missing, settings };
  else if (Notification.permission === 'denied') push.value = { is: 'blocked', words: t.blocked, settings };
  else {
    const of = async () => {
      const here = await (await navigator.serviceWorker.getRegistration())?.pushManager?.getSubscription().catch(() => null);
      return Boolean(here) && same(here?.options.applicationServerKey, bytesOf(told.public_key));
    };
    let ours = await of();
    // What was wanted and came to nothing by itself is made anew by itself: the gateway's key is another one, the push service
    // or the browser forgot.
    if (Notification.permission === 'granted' && (told.lapsed || (told.subscribed && !ours)) && (await made(told.public_key, true)) === '') {
      told = { ...told, subscribed: true };
      ours = await of();
    }
    push.value = { is: ours && told.subscribed ? 'on' : 'off', words: ours && !told.subscribed ? t.elsewhere : '', settings };
  }
}

/** Subscribes and tells the gateway; `anew`: what there is, is of no use. Returns why not; empty if it is done. */
async function made(public_key: string, anew: boolean): Promise<string> {
  const worker = await registration();
  if (!worker) return t.noWorker;
  try {
    const key = bytesOf(public_key || (await plexus.http<Push>('GET', '/v1/push')).public_key);
    let subscription = await worker.pushManager.getSubscription();
    // A subscription to another gateway's key would never be heard of.
    if (subscription && (anew || !same(subscription.options.applicationServerKey, key))) {
      await subscription.unsubscribe();
      subscription = null;
    }
    subscription ??= await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
    const { endpoint, keys } = subscription.toJSON();
    await plexus.http('PUT', '/v1/push', { endpoint, keys });
  } catch (error) {
    if (error instanceof Refused) return t.failed(why(error));
    return t.subscribeFailed(error instanceof Error ? error.message : String(error));
  }
  return '';
}

/** Turns it on: asks the browser, subscribes, tells the gateway. Returns why not; empty if it is on. Needs a press of a button. */
export async function subscribe(): Promise<string> {
  const permission = await Notification.requestPermission();
  if (permission === 'denied') {
    push.value = { ...push.peek(), is: 'blocked', words: t.blocked };
    return t.blocked;
  }
  if (permission !== 'granted') return t.dismissed;
  const trouble = await made('', false);
  if (trouble) return trouble;
  await look();
  return '';
}

/** Turns it off here and at the gateway. */
export async function unsubscribe(): Promise<string> {
  try {
    await plexus.http('DELETE', '/v1/push');
    const here = await (await navigator.serviceWorker?.getRegistration())?.pushManager?.getSubscription();
    await here?.unsubscribe();
  } catch (error) {
    return t.failed(why(error));
  }
  await look();
  return '';
}

/** Changes what is told; returns why not. */
export async function change(settings: Settings): Promise<string> {
  try {
    const told = await plexus.http<Partial<Push> & Settings>('PATCH', '/v1/push/settings', { ...settings });
    push.value = { ...push.peek(), settings: { ...push.peek().settings, ...settings, ...(told?.settings ?? {}) } };
    return '';
  } catch (error) {
    return t.failed(why(error));
  }
}

export async function test(): Promise<string> {
  try {
    await plexus.http('POST', '/v1/push/test', {});
    return '';
  } catch (error) {
    return t.failed(why(error));
  }
}
