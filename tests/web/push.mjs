// One file: notifications, played in a real browser against a real gateway: pushes are handed to the service worker as the browser's own
// push service would (CDP), and what it shows is read back. What it is told is in card_kit.mjs.
import assert from 'node:assert/strict';
import { DESK, PHONE, api, armed, ask, base, cardOf, clear, closed, enter, go, launch, play, press, quiet, request, saysOnce, shoot, until } from './card_kit.mjs';

const browser = await launch();
const context = await browser.newContext(DESK);
await context.grantPermissions(['notifications'], { origin: base });
const page = await enter(context, { grant: { scopes: ['watch', 'prompt', 'approve'] } });
await page.evaluate(() => navigator.serviceWorker.ready.then(() => {}));
const worker = await until('a service worker', async () => context.serviceWorkers()[0]);
const me = (await api('GET', '/v1/devices')).body.devices.filter((one) => one.device_id !== 'd_local').reduce((a, b) => (a.created_at > b.created_at ? a : b));

const cdp = await context.newCDPSession(page);
const registration = await new Promise((found) => {
  cdp.on('ServiceWorker.workerRegistrationUpdated', ({ registrations }) => {
    const mine = registrations.find((one) => !one.isDeleted && one.scopeURL.startsWith(base));
    if (mine) found(mine.registrationId);
  });
  cdp.send('ServiceWorker.enable');
});

// What the worker has shown, also if it did not stay.
await worker.evaluate(() => {
  self.told = [];
  const show = ServiceWorkerRegistration.prototype.showNotification;
  ServiceWorkerRegistration.prototype.showNotification = async function (title, options) {
    await show.call(this, title, options);
    self.told.push(options.tag);
  };
});
const told = (tag) => worker.evaluate((tag) => self.told.includes(tag), tag);

const push = (data) => cdp.send('ServiceWorker.deliverPushMessage', { origin: base, registrationId: registration, data: typeof data === 'string' ? data : JSON.stringify(data) });

/** A push arrives; what is shown under its tag afterwards. */
async function deliver(data, done = () => true) {
  await push(data);
  let all = [];
  const tag = data.tag ?? 'news';
  return until(() => `a notification ${tag}; shown are ${JSON.stringify(all)}`, async () => {
    all = await shown();
    const mine = all.filter((one) => one.tag === tag);
    return mine.length && done(mine[0]) ? mine : null;
  });
}
const shown = () =>
  page.evaluate(async () => {
    const worker = await navigator.serviceWorker.ready;
    // One at a time with the worker's own looking and showing.
    const all = await navigator.locks.request('plexus-tray', () => worker.getNotifications());
    return all.map(({ tag, title, body, silent, requireInteraction, actions, data }) => ({ tag, title, body, silent, requireInteraction, actions: (actions ?? []).map((one) => one.action), data }));
  });

/** A click on what is shown under a tag, as the browser tells it to the worker. */
const click = (tag, action = '') =>
  worker.evaluate(
    async ([tag, action]) => {
      const [notification] = await navigator.locks.request('plexus-tray', () => self.registration.getNotifications({ tag }));
      const event = new NotificationEvent('notificationclick', { notification, action });
      // An event of a script may not be waited for; this one is.
      let work;
      Object.defineProperty(event, 'waitUntil', { value: (promise) => { work = promise; } });
      self.dispatchEvent(event);
      await work;
    },
    [tag, action],
  );

const pushOf = (asked, more = {}) => ({
  kind: 'request',
  tag: `request:${asked.request_id}`,
  title: 'demo asks for permission',
  body: asked.display,
  session_id: asked.session_id,
  request_id: asked.request_id,
  digest: asked.digest,
  risk: asked.risk ?? 'low',
  actions: ['allow_once', 'deny'],
  ...more,
});

const stories = {
  async 'a question is shown once, with what can be done; its end replaces it in silence'() {
    const asked = await ask('ask touch pushed.txt');
    const said = pushOf(asked);
    const [first, ...more] = await deliver(said);
    assert.deepEqual(more, []);
    assert.equal(first.title, said.title);
    assert.equal(first.body, asked.display.replaceAll('\n', ' '));
    assert.deepEqual(first.actions, ['allow_once', 'deny']);
    assert.equal(first.requireInteraction, true);
    assert.equal((await deliver(said)).length, 1, 'the same question is one notification');
    const [end] = await deliver({ kind: 'withdrawn', tag: said.tag, title: 'Allowed by laptop', body: '', request_id: asked.request_id, by: 'laptop' }, (one) => one.data.kind === 'withdrawn');
    assert.equal(end.title, 'Allowed by laptop');
    assert.deepEqual([end.actions, end.silent], [[], true]);
    assert.equal((await shown()).length, 1);
    await clear();
  },

  async 'what was withdrawn before it was seen does not stay'() {
    const tag = 'request:q_never_shown';
    await push({ kind: 'withdrawn', tag, title: 'Denied by laptop', body: '', request_id: 'q_never_shown' });
    await until('the withdrawal', () => told(tag));
    await until('nothing of it', async () => !(await shown()).some((one) => one.tag === tag));
  },

  async 'danger cannot be allowed from a notification; what is no push of ours says only that there is news'() {
    const asked = await ask('ask touch d.txt');
    const [one] = await deliver(pushOf(asked, { risk: 'danger' }));
    assert.deepEqual(one.actions, ['deny']);
    const [news] = await deliver('not json');
    assert.equal(news.title, 'New activity in Plexus');
    const [hidden] = await deliver({ kind: 'failed', tag: 'run:r_1', title: 'a\u202eb', body: 'x\u200by', session_id: 's_1' });
    assert.ok(!`${hidden.title}${hidden.body}`.match(/[\u202e\u200b]/), 'hidden characters are visible');
    await clear();
  },

  async 'a click opens the card; an action too, where acting blind was not granted'() {
    const asked = await ask('ask touch opened.txt');
    await go(page, '#/sessions');
    await deliver(pushOf(asked));
    await click(`request:${asked.request_id}`);
    await page.waitForFunction((id) => location.hash === `#/r/${id}`, asked.request_id);
    await armed(cardOf(page, asked.request_id));
    await go(page, '#/sessions');
    await deliver(pushOf(asked));
    await click(`request:${asked.request_id}`, 'allow_once');
    await page.waitForFunction((id) => location.hash === `#/r/${id}`, asked.request_id);
    assert.equal((await request(asked.request_id)).state, 'open', 'nothing was answered');
    await press(cardOf(page, asked.request_id), 'allow');
    await closed(cardOf(page, asked.request_id), 'Allowed once · you');
  },

  async 'granted to act from the lock screen: the answer counts, and the outcome is shown'() {
    assert.equal((await api('PATCH', `/v1/devices/${me.device_id}`, { lock_screen: true })).status, 200);
    const asked = await ask('ask touch locked.txt');
    const tag = `request:${asked.request_id}`;
    await deliver(pushOf(asked));
    await click(tag, 'allow_once');
    const [one] = await until('the outcome', async () => {
      const mine = (await shown()).filter((one) => one.tag === tag);
      return mine[0]?.data.kind === 'outcome' ? mine : null;
    });
    assert.equal(one.title, 'Allowed once, from this notification');
    await saysOnce(asked.session_id, 'allowed (allow_once): touch locked.txt');
    // Somebody was first: the truth is shown, not a guess.
    const late = await ask('ask touch late.txt');
    await deliver(pushOf(late));
    await api('POST', `/v1/requests/${late.request_id}/answer`, { ok: false });
    await click(`request:${late.request_id}`, 'allow_once');
    const [lost] = await until('the outcome', async () => {
      const mine = (await shown()).filter((one) => one.tag === `request:${late.request_id}`);
      return mine[0]?.data.kind === 'outcome' ? mine : null;
    });
    assert.match(lost.title, /^Denied by /);
    assert.match(lost.body, /came too late and was not used/);
    // What is asked has changed since: nothing is answered, and somebody has to look.
    const stale = await ask('ask touch stale.txt');
    await deliver(pushOf(stale, { digest: '0'.repeat(64) }));
    await click(`request:${stale.request_id}`, 'allow_once');
    const [old] = await until('the outcome', async () => {
      const mine = (await shown()).filter((one) => one.tag === `request:${stale.request_id}`);
      return mine[0]?.data.kind === 'outcome' ? mine : null;
    });
    assert.equal(old.title, 'Not answered');
    assert.equal((await request(stale.request_id)).state, 'open');
    // Danger opens its card all the same.
    await go(page, '#/sessions');
    await deliver(pushOf(stale, { risk: 'danger' }));
    await click(`request:${stale.request_id}`, 'allow_once');
    await page.waitForFunction((id) => location.hash === `#/r/${id}`, stale.request_id);
    assert.equal((await request(stale.request_id)).state, 'open');
    await clear();
    await api('PATCH', `/v1/devices/${me.device_id}`, { lock_screen: false });
  },

  async 'title and icon say how many wait'() {
    await clear();
    await go(page, '#/inbox');
    await page.waitForFunction(() => !/^\(\d+\)/.test(document.title));
    const calm = await page.locator('link#favicon').getAttribute('href');
    await ask('ask touch title.txt');
    await page.waitForFunction(() => document.title.startsWith('(1) '));
    assert.notEqual(await page.locator('link#favicon').getAttribute('href'), calm);
    await clear();
    await page.waitForFunction(() => !/^\(\d+\)/.test(document.title));
    assert.equal(await page.evaluate(() => localStorage.getItem('plexus.sound')), null, 'no sound unless asked for');
  },

  async 'the panel: turned on, chosen, tested, turned off; and what stands in the way'() {
    await page.evaluate(() => {
      // A browser without Google's push service cannot subscribe: its part is played here, the gateway's is real.
      const key = (n) => btoa(String.fromCharCode(...Array.from({ length: n }, (_, i) => (i * 7 + 3) % 256))).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');
      let here = null;
      PushManager.prototype.getSubscription = async () => here;
      PushManager.prototype.subscribe = async function subscribe(options) {
        const pair = await crypto.subtle.generateKey({ name: 'ECDH', namedCurve: 'P-256' }, true, ['deriveBits']);
        const raw = new Uint8Array(await crypto.subtle.exportKey('raw', pair.publicKey));
        const p256dh = btoa(String.fromCharCode(...raw)).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');
        here = { options: { applicationServerKey: options.applicationServerKey.buffer }, toJSON: () => ({ endpoint: 'https://fcm.googleapis.com/fcm/send/nobody', keys: { p256dh, auth: key(16) } }), unsubscribe: async () => { here = null; return true; } };
        return here;
      };
    });
    await go(page, '#/settings');
    const panel = page.locator('plexus-notifications');
    await panel.locator('[data-do="on"]').waitFor();
    await shoot(page, 'notifications-off');
    await panel.locator('[data-do="on"]').click();
    await panel.locator('[data-do="off"]').waitFor();
    assert.equal((await panel.locator('[role="switch"]').count()) >= 5, true);
    await panel.locator('input[name="ends"]').click();
    await panel.locator('.say', { hasText: 'Saved' }).waitFor();
    await panel.locator('input[name="quiet"]').click();
    await panel.locator('input[name="from"]').waitFor();
    await shoot(page, 'notifications-on');
    const kept = () => page.evaluate(() => fetch('/v1/push').then((response) => response.json()));
    const on = await kept();
    assert.deepEqual([on.subscribed, on.settings.ends, on.settings.quiet.from], [true, false, '22:00']);
    assert.equal(on.settings.quiet.zone, (await page.evaluate(() => Intl.DateTimeFormat().resolvedOptions().timeZone)).includes('/') ? await page.evaluate(() => Intl.DateTimeFormat().resolvedOptions().timeZone) : undefined);
    // The browser lost it while the gateway has it: the next look makes it anew, without a press.
    await page.evaluate(async () => { const worker = await navigator.serviceWorker.ready; await (await worker.pushManager.getSubscription()).unsubscribe(); });
    await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
    await until('a subscription', () => page.evaluate(async () => Boolean(await (await navigator.serviceWorker.ready).pushManager.getSubscription())));
    await panel.locator('[data-do="off"]').click();
    await panel.locator('[data-do="on"]').waitFor();
    assert.equal((await kept()).subscribed, false);
    const denied = await browser.newContext(PHONE);
    const other = await enter(denied, { hash: '#/settings' });
    await other.locator('plexus-notifications [data-is="blocked"], plexus-notifications [data-do="on"]').first().waitFor();
    await shoot(other, 'notifications-blocked');
    await denied.close();
  },

  async 'no page complained'() {
    quiet();
  },
};

await play(Object.entries(stories), browser);
