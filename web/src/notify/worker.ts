/// <reference lib="webworker" />
// The part of the service worker that takes pushes. It shows, it opens the card, and only where the device was granted acting from
// the lock screen it answers; never what is dangerous, and never without saying what became of it.

import { text } from '../text/en.js';
import { doneOf, hashOf, parsePayload, shapeOf, type Action, type Kept } from './payload.js';
import { tray } from './tray.js';
import type { Me } from '../wire/types.js';

const t = text.notify;
/** How long one call to the gateway may take, ms. The browser ends a worker that takes much longer. */
const CALL_MS = 10_000;
/** How often an answer without a word is sent again, under the same key. */
const TRIES = 3;
/** How long a "withdrawn" stays that replaced nothing, ms: a browser asks that each push shows something. */
const GLANCE_MS = 1_500;

// The page's own library of types says that `self` is a window.
const worker = self as unknown as ServiceWorkerGlobalScope;

async function shownUnder(tag: string): Promise<Notification | null> {
  const found = await tray(() => worker.registration.getNotifications({ tag }));
  return found[0] ?? null;
}

/** The number on the app's icon: the questions that stand in notifications. */
async function countBadge(): Promise<void> {
  const badge = worker.navigator as unknown as { setAppBadge?: (n: number) => Promise<void>; clearAppBadge?: () => Promise<void> };
  if (!badge.setAppBadge) return;
  const open = (await tray(() => worker.registration.getNotifications())).filter((one) => (one.data as Kept | null)?.kind === 'request').length;
  await (open ? badge.setAppBadge(open) : badge.clearAppBadge?.())?.catch(() => {});
}

async function take(data: PushMessageData | null): Promise<void> {
  let said: unknown = null;
  try {
    said = data?.json();
  } catch {
    // What is not JSON is none of ours; it is shown as news all the same, for a browser forbids silence.
  }
  const payload = parsePayload(said);
  const before = payload ? await shownUnder(payload.tag) : null;
  const { title, options } = shapeOf(payload, (before?.data as Kept | undefined) ?? null);
  await tray(() => worker.registration.showNotification(title, options as NotificationOptions));
  if (payload?.kind === 'withdrawn' && !before) {
    await new Promise((resolve) => setTimeout(resolve, GLANCE_MS));
    (await shownUnder(payload.tag))?.close();
  }
  await countBadge();
}

/** Brings the page up at what the notification is about. */
async function open(kept: Kept): Promise<void> {
  const hash = hashOf(kept);
  const windows = await worker.clients.matchAll({ type: 'window', includeUncontrolled: true });
  const there = windows.find((one) => one.focused) ?? windows.find((one) => one.visibilityState === 'visible') ?? windows[0];
  if (!there) {
    await worker.clients.openWindow(`/${hash}`);
    return;
  }
  there.postMessage({ plexus: 'open', hash });
  await there.focus().catch(() => {});
}

async function call(method: string, path: string, more: RequestInit = {}): Promise<{ status: number; body: unknown }> {
  const response = await fetch(path, { method, cache: 'no-store', credentials: 'same-origin', redirect: 'error', referrerPolicy: 'no-referrer', signal: AbortSignal.timeout(CALL_MS), ...more });
  const words = await response.text();
  let body: unknown = null;
  try {
    body = words ? JSON.parse(words) : null;
  } catch {
    // A proxy's page; the status speaks.
  }
  return { status: response.status, body };
}

async function me(): Promise<Me | null> {
  try {
    const { status, body } = await call('GET', '/v1/me');
    return status === 200 ? (body as Me) : null;
  } catch {
    return null;
  }
}

const freshKey = (): string => `push-${Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')}`;

/** Answers from the notification, and shows what became of it under the same tag. */
async function answer(action: Action, tag: string, kept: Kept, csrf: string): Promise<void> {
  const tell = (title: string, body: string, look: boolean) =>
    tray(() => worker.registration.showNotification(title, { ...shapeOf(null, null).options, tag, body, silent: !look, data: { ...kept, kind: 'outcome' } }));
  const path = `/v1/requests/${encodeURIComponent(kept.request_id ?? '')}/answer`;
  const headers = { 'Content-Type': 'application/json', Accept: 'application/json', 'Plexus-CSRF': csrf, 'Idempotency-Key': freshKey() };
  const body = JSON.stringify({ ok: action === 'allow_once', digest: kept.digest });
  // Should the system end this worker half-way, what stands there is true.
  await tell(t.sending, '', false);
  for (let left = TRIES; left > 0; left -= 1) {
    try {
      const reply = await call('POST', path, { headers, body });
      const done = doneOf(action, reply.status, reply.body);
      await tell(done.title, done.body, done.look);
      return;
    } catch {
      // No word came back: the same key again brings the same receipt.
    }
  }
  await tell(t.unknown, t.tapToLook, true);
}

async function clicked(notification: Notification, action: string): Promise<void> {
  const kept = (notification.data ?? { kind: 'news' }) as Kept;
  const tag = notification.tag;
  notification.close();
  const acts = (action === 'allow_once' || action === 'deny') && kept.kind === 'request' && kept.request_id && kept.digest;
  // Allowing what is dangerous takes its card and its gesture, whatever was granted.
  if (acts && !(kept.risk === 'danger' && action === 'allow_once')) {
    const device = await me();
    if (device?.lock_screen && device.csrf) {
      await answer(action, tag, kept, device.csrf);
      await countBadge();
      return;
    }
  }
  await open(kept);
  await countBadge();
}

/** The browser changed its address for pushes: the gateway has to know the new one. */
async function resubscribe(event: Event): Promise<void> {
  const { oldSubscription } = event as Event & { oldSubscription?: PushSubscription | null };
  const device = await me();
  if (!device?.csrf) return;
  const { status, body } = await call('GET', '/v1/push');
  const key = (body as { public_key?: string } | null)?.public_key;
  if (status !== 200 || !key) return;
  const subscription =
    (await worker.registration.pushManager.getSubscription()) ??
    (await worker.registration.pushManager.subscribe(oldSubscription?.options ?? { userVisibleOnly: true, applicationServerKey: key }));
  const { endpoint, keys } = subscription.toJSON();
  await call('PUT', '/v1/push', { headers: { 'Content-Type': 'application/json', 'Plexus-CSRF': device.csrf }, body: JSON.stringify({ endpoint, keys }) });
}

worker.addEventListener('push', (event) => event.waitUntil(take(event.data)));
worker.addEventListener('notificationclick', (event) => event.waitUntil(clicked(event.notification, event.action)));
worker.addEventListener('notificationclose', (event) => event.waitUntil(countBadge()));
worker.addEventListener('pushsubscriptionchange', (event) => (event as ExtendableEvent).waitUntil(resubscribe(event)));
