// The page while its gateway is not reachable, in a real browser: opened during that time, and left open. A relay imitates failing networks and
// proxies.
//
//   PLEXUS_URL, PLEXUS_CODE, PLEXUS_TOKEN   the gateway, a one-time code, the administrator's token
//   PLEXUS_SHOTS                            a directory for pictures; none are taken if not set
//   and what kit.mjs reads
//
// Prints a line `ok ...` for each passed test; the first failure ends it with exit code 1.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { PATIENCE_MS, PHONE, axe, caller, everywhere, launch, live, need, ok, signIn, within } from './kit.mjs';
import { otherVersion, relay } from './relay.mjs';

const gateway = need('PLEXUS_URL').replace(/\/$/, '');
const token = need('PLEXUS_TOKEN');
const shots = process.env.PLEXUS_SHOTS;
const dist = join(import.meta.dirname, '../../web/dist');

const api = caller(gateway, () => token);

/** An evaluation that can be repeated: one may never end while the service worker of the page changes. */
const ask = (page, fn, arg) => within(page.evaluate(fn, arg), 5_000, 'an evaluation while the service worker may change');
/** Until something that has to be waited for is so, in the page; returns it. */
async function until(page, what, fn, arg) {
  for (const end = Date.now() + PATIENCE_MS; ;) {
    /** @type {unknown} */ let last;
    const got = await ask(page, fn, arg).catch((error) => { last = error; });
    if (got) return got;
    assert.ok(Date.now() < end, `waited in vain until ${what}: ${last ?? got}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}
const cachesOf = (page) => until(page, 'the caches are known', async () => (await caches.keys()).sort());
/** Until the service worker has all of a version. */
const kept = (page, version) => until(page, `all of ${version} is kept`, async (name) => {
  const names = await caches.keys();
  return names.includes(name) && (await (await caches.open(name)).match('/')) !== undefined && Boolean(navigator.serviceWorker.controller);
}, `plexus-files-${version}`);
const versionOf = (page) => ask(page, () => document.querySelector('meta[name="plexus-files"]')?.getAttribute('content'));

/** The shell, which says that it is offline, and says nothing that it does not know. */
async function isOffline(page, what) {
  await page.locator('#stale', { hasText: /offline/i }).waitFor();
  assert.equal(await page.locator('plexus-signin').count(), 0, `${what}: the sign-in page`);
  const claims = await page.getByText(/No pending requests|No sessions yet|No agents/).count();
  assert.equal(claims, 0, `${what}: it claims to know that there is nothing`);
}

const kit = await launch({ shots });
const door = await relay(gateway);
const ROUTES = ['#/inbox', '#/sessions', '#/devices', '#/runtimes', '#/search?q=', '#/search?q=words'];
let failed = false;
let page;
try {
  const one = await api('POST', '/v1/sessions', { runtime_id: 'demo', title: 'On the train' });
  await api('POST', `/v1/sessions/${one.session_id}/prompt`, { text: 'echo said-before ;; diff' });
  const session = `#/s/${one.session_id}`;

  const context = await kit.context();
  page = await context.newPage();
  await page.goto(`${door.base}/`);
  await page.locator('plexus-signin h1').waitFor();
  ok('offline: a browser without a sign-in shows the sign-in page');

  // A code from a link, while something on the way answers in the gateway's place: the code is good still, and used when it can be.
  door.turn('502');
  const second = await kit.context();
  const early = await second.newPage();
  const { code } = await api('POST', '/v1/codes', { scopes: ['watch', 'prompt', 'approve', 'admin'], ttl: 120 });
  door.turn('through');
  await early.goto(`${door.base}/`);
  await early.locator('plexus-signin h1').waitFor();
  door.turn('502');
  await early.evaluate((to) => { location.hash = `#code=${to}`; }, code);
  await early.locator('plexus-signin #note', { hasText: 'Retrying automatically' }).waitFor();
  door.turn('through');
  await live(early);
  await second.close();
  ok('offline: a sign-in code is kept while the gateway is away, and used when it is back');

  await signIn(page, door.base, need('PLEXUS_CODE'));
  const mine = await versionOf(page);
  await kept(page, mine);
  assert.deepEqual(await cachesOf(page), [`plexus-files-${mine}`]);

  // --- opened while the gateway is away, on every page; and back ---------------------------------------------------------------------
  for (const manner of /** @type {const} */ (['cut', '502', '503', 'silent'])) {
    await page.close();
    door.turn(manner);
    page = await context.newPage();
    await page.setViewportSize(PHONE);
    for (const route of manner === 'cut' ? [...ROUTES, session] : ['#/inbox', session]) {
      await page.goto(`${door.base}/${route}`);
      await isOffline(page, `${manner} ${route}`);
      // Nothing of it is a page that was left: each is loaded anew.
      if (route !== session) await page.goto('about:blank');
    }
    if (manner === 'cut') {
      await page.goto('about:blank');
      await page.goto(`${door.base}/#/inbox`);
      await isOffline(page, 'the inbox');
      await everywhere(page, async ({ width, theme }) => {
        if (shots) await page.screenshot({ path: join(shots, `away-${width}-${theme}.png`) });
        await axe(page, `away at ${width}, ${theme}`);
      });
    }
    // It has been trying for some time, so that the next try is as late as tries come.
    await page.waitForTimeout(6_000);
    await isOffline(page, `${manner}, later`);
    const since = Date.now();
    door.turn('through');
    await live(page);
    console.log(`away: ${manner}: live ${Date.now() - since} ms after the gateway was back`);
    await page.locator('#stale').waitFor({ state: 'detached' });
    assert.equal(await page.locator('plexus-signin').count(), 0);
    ok(`offline: a page opened while the gateway is away (${manner}) shows the shell, and is live when the gateway is back`);
  }

  // --- left open -------------------------------------------------------------------------------------------------------------------------
  for (const manner of /** @type {const} */ (['401', 'portal', '502', 'cut', 'silent'])) {
    await page.evaluate((to) => { location.hash = to; }, session);
    await page.locator('plexus-session', { hasText: 'said-before' }).waitFor();
    door.turn(manner);
    await isOffline(page, `left open, ${manner}`);
    await page.locator('#stale', { hasText: 'Last updated at' }).waitFor();
    await page.locator('plexus-session', { hasText: 'said-before' }).waitFor();
    if (manner === '401' || manner === 'portal') await page.locator('#stale', { hasText: 'answered instead' }).waitFor();
    door.turn('through');
    await live(page);
    ok(`offline: an open page (${manner}) stays signed in and shows the reason`);
  }
  // What can be sent at once after that needs the value that goes beside every change.
  await page.reload();
  await live(page);
  await until(page, 'the page has a value for its changes', () => fetch('/v1/me').then((r) => r.json()).then((me) => Boolean(me.csrf)));

  // --- another version of the files ------------------------------------------------------------------------------------------------------
  const other = otherVersion(dist);
  assert.equal(other.version, mine, 'the gateway serves what is in web/dist');
  // A switch that was looked at in its middle: the worker of one version, the files of the other. Nothing of it is kept.
  door.some = new Map([['/sw.js', other.files.get('/sw.js')]]);
  await until(page, 'the worker of the other version was looked at', async () => { await (await navigator.serviceWorker.getRegistration())?.update().catch(() => {}); return true; });
  await until(page, 'nothing is being installed', async () => { const r = await navigator.serviceWorker.getRegistration(); return r && !r.installing && !r.waiting; });
  assert.deepEqual(await cachesOf(page), [`plexus-files-${mine}`], 'a half of another version was kept');
  door.some = null;

  // The gateway comes back with other files under an open page: it says so, and still has all of its own.
  door.files = other.files;
  door.turn('through');
  await page.locator('#outdated', { hasText: 'updated' }).waitFor();
  await kept(page, other.next);
  assert.deepEqual(await cachesOf(page), [`plexus-files-${mine}`, `plexus-files-${other.next}`].sort(), 'the open page’s files are kept as long as it is open');
  const files = await until(page, 'the files that are kept were asked for', async () => Promise.all((await (await caches.open((await caches.keys()).find((name) => !name.includes('feed')) ?? '')).keys()).map(async (r) => [new URL(r.url).pathname, (await fetch(r.url)).status])));
  for (const [path, status] of files.filter(([path]) => path.startsWith('/assets/'))) assert.equal(status, 200, `${path} of the open page’s version`);
  await page.evaluate((to) => { location.hash = to; }, session);
  await page.locator('plexus-session', { hasText: 'said-before' }).waitFor();
  if (shots) await page.screenshot({ path: join(shots, 'outdated.png') });
  // Until the new worker is active, which waits for what the old one still answers, the old one may show its own page where the network is slow:
  // that says again that it is outdated. A page that a service worker serves anew is no navigation that Playwright sees the end of: the browser
  // itself is asked which one it shows, and a reload is one that Playwright sees again.
  const browser = await context.newCDPSession(page);
  const expression = "document.querySelector('meta[name=\"plexus-files\"]')?.getAttribute('content')";
  const shown = () => within(browser.send('Runtime.evaluate', { expression, returnByValue: true }), 5_000, 'the browser names the version').then(({ result }) => result.value, () => null);
  for (const end = Date.now() + 3 * PATIENCE_MS; await shown() !== other.next;) {
    assert.ok(Date.now() < end, 'waited in vain for the page of the other version');
    await page.locator('#outdated button').click({ noWaitAfter: true, timeout: 2_000 }).catch(() => {});
    await new Promise((done) => setTimeout(done, 500));
  }
  await page.reload();
  await live(page);
  await until(page, 'the old files are gone', async (next) => (await caches.keys()).join() === `plexus-files-${next}`, other.next);
  assert.equal(await page.locator('#outdated').count(), 0);
  // And without a network it is the new one, whole.
  door.turn('cut');
  await page.goto('about:blank');
  await page.goto(`${door.base}/${session}`);
  await isOffline(page, 'the other version');
  assert.equal(await versionOf(page), other.next);
  door.turn('through');
  await live(page);
  await page.locator('plexus-session', { hasText: 'said-before' }).waitFor();
  ok('versions: files of two versions never mix, an open page keeps its own, and old files are removed afterwards');

  // --- revoked while the gateway was away: only the gateway's own word shows the way in --------------------------------------------------
  await page.goto('about:blank');
  door.turn('cut');
  await page.goto(`${door.base}/`);
  await isOffline(page, 'before it is known that it was revoked');
  for (const device of (await api('GET', '/v1/devices')).devices) if (device.kind === 'device') await api('DELETE', `/v1/devices/${device.device_id}`);
  door.turn('through');
  await page.locator('plexus-signin #note').waitFor();
  await page.reload();
  await page.locator('plexus-signin h1').waitFor();
  ok('offline: a device revoked meanwhile sees the sign-in page once the gateway replies');
} catch (error) {
  failed = true;
  console.error('not ok\n', error);
  if (shots && page) await page.screenshot({ path: join(shots, 'failure.png') }).catch(() => {});
} finally {
  door.close();
  await kit.close();
}
process.exit(failed ? 1 : 0);
