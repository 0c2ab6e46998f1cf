// This browser's push subscription, and the obstacles to it.

import { signal } from '../lib/signal.js';
import { plexus, Refused, why } from '../plexus.js';
import { text } from '../text/en.js';
import type { Push, PushSettings } from '../wire/types.js';

const t = text.notify;
/** Time for the service worker to become ready, ms. */
const READY_MS = 8_000;

/** The gateway's settings for this device. */
export type Settings = Partial<PushSettings>;

/** The state of push notifications. `blocked`: by the browser's settings; `unable`: not possible here. */
export interface PushState {
  is: 'unknown' | 'unable' | 'blocked' | 'off' | 'on';
  /** The reason for `unable` and `blocked`. */
  words: string;
  settings: Settings;
}

export const push = signal<PushState>({ is: 'unknown', words: '', settings: {} });

const isApple = (): boolean => /iPhone|iPad|iPod/.test(navigator.userAgent) || (navigator.userAgent.includes('Mac') && navigator.maxTouchPoints > 1);
const fromHome = (): boolean => matchMedia('(display-mode: standalone)').matches || (navigator as { standalone?: boolean }).standalone === true;

/** The obstacle to pushes in this browser; empty if there is none. */
export function missingSupport(): string {
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

/** Updates `push` from the browser and the gateway. */
export async function refreshPush(): Promise<void> {
  if (plexus.me.peek()?.kind === 'share') {
    push.value = { is: 'unable', words: t.share, settings: {} };
    return;
  }
  const missing = missingSupport();
  let reply: Push;
  try {
    reply = await plexus.http<Push>('GET', '/v1/push');
  } catch (error) {
    const words = error instanceof Refused && (error.status === 404 || error.status === 405) ? t.noGateway : t.failed(why(error));
    push.value = { is: 'unable', words: missing || words, settings: {} };
    return;
  }
  const settings = reply.settings ?? {};
  if (missing) push.value = { is: 'unable', words: missing, settings };
  else if (Notification.permission === 'denied') push.value = { is: 'blocked', words: t.blocked, settings };
  else {
    const isSubscribed = async () => {
      const here = await (await navigator.serviceWorker.getRegistration())?.pushManager?.getSubscription().catch(() => null);
      return Boolean(here) && same(here?.options.applicationServerKey, bytesOf(reply.public_key));
    };
    let subscribedHere = await isSubscribed();
    // A wanted subscription that was lost is renewed: the gateway's key changed, or the push service or browser dropped it.
    if (Notification.permission === 'granted' && (reply.lapsed || (reply.subscribed && !subscribedHere)) && (await registerSubscription(reply.public_key, true)) === '') {
      reply = { ...reply, subscribed: true };
      subscribedHere = await isSubscribed();
    }
    push.value = { is: subscribedHere && reply.subscribed ? 'on' : 'off', words: subscribedHere && !reply.subscribed ? t.elsewhere : '', settings };
  }
}

/** Subscribes and registers the subscription at the gateway; `anew` replaces the current one. Returns the error; empty on success. */
async function registerSubscription(public_key: string, anew: boolean): Promise<string> {
  const worker = await registration();
  if (!worker) return t.noWorker;
  try {
    const key = bytesOf(public_key || (await plexus.http<Push>('GET', '/v1/push')).public_key);
    let subscription = await worker.pushManager.getSubscription();
    // A subscription with another key would never get a push.
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

/** Turns pushes on: asks for permission and subscribes. Returns the error; empty on success. Needs a user gesture. */
export async function subscribe(): Promise<string> {
  const permission = await Notification.requestPermission();
  if (permission === 'denied') {
    push.value = { ...push.peek(), is: 'blocked', words: t.blocked };
    return t.blocked;
  }
  if (permission !== 'granted') return t.dismissed;
  const error = await registerSubscription('', false);
  if (error) return error;
  await refreshPush();
  return '';
}

/** Turns pushes off in the browser and at the gateway. */
export async function unsubscribe(): Promise<string> {
  try {
    await plexus.http('DELETE', '/v1/push');
    const here = await (await navigator.serviceWorker?.getRegistration())?.pushManager?.getSubscription();
    await here?.unsubscribe();
  } catch (error) {
    return t.failed(why(error));
  }
  await refreshPush();
  return '';
}

/** Changes the settings; returns the error, empty on success. */
export async function change(settings: Settings): Promise<string> {
  try {
    const reply = await plexus.http<Partial<Push> & Settings>('PATCH', '/v1/push/settings', { ...settings });
    push.value = { ...push.peek(), settings: { ...push.peek().settings, ...settings, ...(reply?.settings ?? {}) } };
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
