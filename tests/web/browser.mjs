// A browser that a story drives: a line of JSON on stdin is one thing to do, a line on stdout what came of it.
//
//   {"id":1,"page":"phone","do":"open","url":"http://..","width":390,"height":844,"touch":true,"scheme":"dark"}
//   {"id":1,"ok":true,"value":..}   or   {"id":1,"error":".."}
//
// Each page named here is a browser profile of its own: another device. Everything a page complained of (errors, violations of the
// content policy, requests to other origins) is kept and handed out by `complaints`.
//
//   PLEXUS_PLAYWRIGHT  a directory that holds node_modules/playwright-core
//   CHROMIUM           the browser; /usr/bin/chromium if not set
import { mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { draw } from './terminal.mjs';

/** How long a condition may take to come true, ms; reaching it is a failure. */
const PATIENCE_MS = 60_000;

const { chromium } = createRequire(join(resolve(process.env.PLEXUS_PLAYWRIGHT ?? ''), 'package.json'))('playwright-core');
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});

/** @typedef {{ page: any, context: any, origin: string, complaints: string[] }} Screen */
/** @type {Map<string, Screen>} */
const screens = new Map();

/** @param {string} name @returns {Screen} */
function screen(name) {
  const found = screens.get(name);
  if (!found) throw new Error(`no page ${name} is open`);
  return found;
}

/** The service worker's side of the page's origin. @param {Screen} at */
async function worker(at) {
  const there = at.context.serviceWorkers().find((/** @type {any} */ one) => one.url().startsWith(at.origin));
  return there ?? at.context.waitForEvent('serviceworker', { timeout: PATIENCE_MS });
}

/** @type {Record<string, (what: any) => Promise<any>>} */
const doings = {
  /** A page in a profile of its own; `script` runs before the page's own in every document. */
  async open({ page: name, url, width, height, touch = false, scheme = 'light', permissions = [], script }) {
    const context = await browser.newContext({
      viewport: { width, height }, hasTouch: touch, isMobile: touch, colorScheme: scheme, deviceScaleFactor: touch ? 2 : 1,
    });
    context.setDefaultTimeout(PATIENCE_MS);
    const origin = new URL(url).origin;
    if (permissions.length) await context.grantPermissions(permissions, { origin });
    /** @type {string[]} */ const complaints = [];
    await context.exposeBinding('__complain', (/** @type {any} */ _, /** @type {string} */ text) => { complaints.push(text); });
    await context.addInitScript(() => {
      document.addEventListener('securitypolicyviolation', (e) => {
        /** @type {any} */ (window).__complain(`content policy: ${e.violatedDirective} ${e.blockedURI} ${e.sample}`);
      });
    });
    if (script) await context.addInitScript({ content: script });
    const page = await context.newPage();
    page.on('pageerror', (/** @type {any} */ e) => complaints.push(`error: ${e}`));
    page.on('dialog', (/** @type {any} */ d) => { complaints.push(`dialog: ${d.message()}`); d.dismiss().catch(() => {}); });
    context.on('request', (/** @type {any} */ r) => {
      const to = r.url();
      if (!to.startsWith(`${origin}/`) && !/^(data|blob|about):/.test(to)) complaints.push(`left the origin: ${to}`);
    });
    screens.set(name, { page, context, origin, complaints });
    await page.goto(url);
  },
  async goto({ page, url }) { await screen(page).page.goto(url); },
  async reload({ page }) { await screen(page).page.reload(); },
  async click({ page, on }) { await screen(page).page.locator(on).first().click(); },
  async tap({ page, on }) { await screen(page).page.locator(on).first().tap(); },
  /** Presses and holds, as a thumb does. */
  async hold({ page, on, ms }) {
    const place = screen(page).page.locator(on).first();
    await place.scrollIntoViewIfNeeded();
    const box = await place.boundingBox();
    const { mouse } = screen(page).page;
    await mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    await mouse.down();
    await screen(page).page.waitForTimeout(ms);
    await mouse.up();
  },
  async fill({ page, on, text }) { await screen(page).page.locator(on).first().fill(text); },
  async press({ page, key }) { await screen(page).page.keyboard.press(key); },
  async text({ page, on }) { return screen(page).page.locator(on).first().innerText(); },
  async count({ page, on }) { return screen(page).page.locator(on).count(); },
  async wait({ page, on, state = 'visible' }) { await screen(page).page.locator(on).first().waitFor({ state }); },
  // Asked again and again from here: a script that polls in the page would need `eval`, which its policy forbids.
  async until({ page, script }) {
    const deadline = Date.now() + PATIENCE_MS;
    while (!await screen(page).page.evaluate(script)) {
      if (Date.now() > deadline) throw new Error(`not within ${PATIENCE_MS} ms: ${script}`);
      await new Promise((resolve) => { setTimeout(resolve, 50); });
    }
  },
  async run({ page, script }) { return screen(page).page.evaluate(script); },
  async url({ page }) { return screen(page).page.url(); },
  async shoot({ page, file, full = false }) {
    mkdirSync(dirname(file), { recursive: true });
    await screen(page).page.screenshot({ path: file, fullPage: full });
  },
  /** Captures of terminals as pictures. */
  async draw({ pairs }) {
    for (const [, to] of pairs) mkdirSync(dirname(to), { recursive: true });
    await draw(browser, pairs);
  },
  async offline({ page, off }) { await screen(page).context.setOffline(off); },
  /** A push message arrives: what the browser does once the push service's bytes are decrypted. */
  async push({ page, data }) {
    const at = screen(page);
    await worker(at);
    const cdp = await at.context.newCDPSession(at.page);
    await cdp.send('ServiceWorker.enable');
    /** @type {string | undefined} */ let registrationId;
    await new Promise((done) => {
      cdp.on('ServiceWorker.workerRegistrationUpdated', (/** @type {any} */ { registrations }) => {
        const found = registrations.find((/** @type {any} */ one) => one.scopeURL.startsWith(at.origin) && !one.isDeleted);
        if (found) { registrationId = found.registrationId; done(undefined); }
      });
      setTimeout(done, 5_000);
    });
    if (!registrationId) throw new Error('no service worker is registered');
    await cdp.send('ServiceWorker.deliverPushMessage', { origin: at.origin, registrationId, data });
    await cdp.detach();
  },
  /** What stands in the tray. */
  async notifications({ page }) {
    return screen(page).page.evaluate(async () => {
      const registration = await navigator.serviceWorker.ready;
      // One at a time with the page's worker: the browser drops one that is being shown while they are read.
      const all = await navigator.locks.request('plexus-tray', () => registration.getNotifications());
      return all.map((n) => ({ title: n.title, body: n.body, tag: n.tag, data: n.data, actions: /** @type {any} */ (n).actions }));
    });
  },
  async complaints({ page }) { return screen(page).complaints; },
  async close({ page }) { await screen(page).context.close(); screens.delete(page); },
};

const say = (/** @type {object} */ what) => process.stdout.write(`${JSON.stringify(what)}\n`);
say({ ready: true });
for await (const line of createInterface({ input: process.stdin })) {
  const what = JSON.parse(line);
  try {
    const doing = doings[what.do];
    if (!doing) throw new Error(`cannot ${what.do}`);
    say({ id: what.id, ok: true, value: (await doing(what)) ?? null });
  } catch (error) {
    say({ id: what.id, error: String(error) });
  }
}
await browser.close();
