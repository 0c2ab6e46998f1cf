/// <reference lib="webworker" />
// The push part of the service worker. Shows notifications, opens the page, and answers requests if the device may act from the lock
// screen: never allows a dangerous request, and always shows the outcome.

import { notify as t } from '../text/notify.js';
import { doneOf, hashOf, parsePayload, shapeOf, type Action, type NotificationData } from './payload.js';
import { tray } from './tray.js';
import type { Me } from '../wire/types.js';

/** Timeout of one call to the gateway, ms. Browsers end a worker that takes much longer. */
const CALL_MS = 10_000;
/** Attempts to send an answer, under the same key. */
const TRIES = 3;
/** Time that a "withdrawn" notification without a predecessor is shown, ms: browsers require that each push shows something. */
const GLANCE_MS = 1_500;

// The type library of the page declares `self` as a window.
const worker = self as unknown as ServiceWorkerGlobalScope;

async function shownUnder(tag: string): Promise<Notification | null> {
  const found = await tray(() => worker.registration.getNotifications({ tag }));
  return found[0] ?? null;
}

/** Sets the number on the app's icon: the requests in notifications. */
async function countBadge(): Promise<void> {
  const badge = worker.navigator as unknown as { setAppBadge?: (n: number) => Promise<void>; clearAppBadge?: () => Promise<void> };
  if (!badge.setAppBadge) return;
  const open = (await tray(() => worker.registration.getNotifications())).filter((one) => (one.data as NotificationData | null)?.kind === 'request').length;
  await (open ? badge.setAppBadge(open) : badge.clearAppBadge?.())?.catch(() => {});
}

async function onPush(data: PushMessageData | null): Promise<void> {
  let message: unknown = null;
  try {
    message = data?.json();
  } catch {
    // Not JSON: shown as general news, because browsers require that each push shows something.
  }
  const payload = parsePayload(message);
  const before = payload ? await shownUnder(payload.tag) : null;
  const { title, options } = shapeOf(payload, (before?.data as NotificationData | undefined) ?? null);
  await tray(() => worker.registration.showNotification(title, options as NotificationOptions));
  if (payload?.kind === 'withdrawn' && !before) {
    await new Promise((resolve) => setTimeout(resolve, GLANCE_MS));
    (await shownUnder(payload.tag))?.close();
  }
  await countBadge();
}

/** Opens or focuses the page at the notification's target. */
async function open(data: NotificationData): Promise<void> {
  const hash = hashOf(data);
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
    // Not JSON, such as a proxy's page; only the status counts.
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

/** Answers from the notification, and shows the outcome under the same tag. */
async function answer(action: Action, tag: string, data: NotificationData, csrf: string): Promise<void> {
  const tell = (title: string, body: string, look: boolean) =>
    tray(() => worker.registration.showNotification(title, { ...shapeOf(null, null).options, tag, body, silent: !look, data: { ...data, kind: 'outcome' } }));
  const path = `/v1/requests/${encodeURIComponent(data.request_id ?? '')}/answer`;
  const headers = { 'Content-Type': 'application/json', Accept: 'application/json', 'Plexus-CSRF': csrf, 'Idempotency-Key': freshKey() };
  const body = JSON.stringify({ ok: action === 'allow_once', digest: data.digest });
  // If the system ends this worker now, the notification is still correct.
  await tell(t.sending, '', false);
  for (let left = TRIES; left > 0; left -= 1) {
    try {
      const reply = await call('POST', path, { headers, body });
      const done = doneOf(action, reply.status, reply.body);
      await tell(done.title, done.body, done.look);
      return;
    } catch {
      // No reply came: the same key brings the same receipt.
    }
  }
  await tell(t.unknown, t.tapToLook, true);
}

async function clicked(notification: Notification, action: string): Promise<void> {
  const data = (notification.data ?? { kind: 'news' }) as NotificationData;
  const tag = notification.tag;
  notification.close();
  const acts = (action === 'allow_once' || action === 'deny') && data.kind === 'request' && data.request_id && data.digest;
  // A dangerous request can only be allowed on its card.
  if (acts && !(data.risk === 'danger' && action === 'allow_once')) {
    const device = await me();
    if (device?.lock_screen && device.csrf) {
      await answer(action, tag, data, device.csrf);
      await countBadge();
      return;
    }
  }
  await open(data);
  await countBadge();
}

/** The browser changed its push subscription: registers the new one at the gateway. */
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

worker.addEventListener('push', (event) => event.waitUntil(onPush(event.data)));
worker.addEventListener('notificationclick', (event) => event.waitUntil(clicked(event.notification, event.action)));
worker.addEventListener('notificationclose', (event) => event.waitUntil(countBadge()));
worker.addEventListener('pushsubscriptionchange', (event) => (event as ExtendableEvent).waitUntil(resubscribe(event)));
