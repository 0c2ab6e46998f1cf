// What the tests in a browser, and the script that takes the screenshots, share: one browser, signed in by a code; pictures of a page in both
// sizes and both themes; whether anything sticks out; axe; and what the browser complained of.
//
//   PLEXUS_PLAYWRIGHT  a directory that holds node_modules/playwright-core and axe-core (what tests/agents/install.sh prints)
//   CHROMIUM           the browser; /usr/bin/chromium if not set
//   PLEXUS_PAGE        a built page that is shown instead of the program's, so that nothing must be compiled to try it
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

/** How long a condition may take to come true, ms; reaching it is a failure. */
export const PATIENCE_MS = 30_000;
/** Maximum duration of one evaluation in a page, ms. Playwright has no limit of its own, and an evaluation that begins while Playwright misses
 *  the end of a navigation never ends. */
const EVALUATION_MS = 120_000;
/** Longer than a key waits for another letter, with the guard of a card that just got the focus, ms. */
const ALONE_MS = 700;
export const PHONE = { width: 390, height: 844 };
export const DESK = { width: 1440, height: 900 };
export const THEMES = /** @type {const} */ (['light', 'dark']);

/** Waits until the last key is known to be alone. The page's own clock decides: a busy page runs its timers late, and a key that
 *  comes before them continues a text. */
export const alone = (page) => page.evaluate((ms) => new Promise((done) => setTimeout(done, ms)), ALONE_MS);

/** The result of `work`; an error with the caller's line if `what` takes longer than `ms`. @template T @param {Promise<T>} work @returns {Promise<T>} */
export async function within(work, /** @type {number} */ ms, /** @type {string} */ what) {
  const late = new Error(`not within ${ms} ms: ${what}`);
  /** @type {NodeJS.Timeout | undefined} */ let timer;
  const end = new Promise((_, fail) => { timer = setTimeout(() => fail(late), ms); });
  try { return await Promise.race([work, /** @type {Promise<never>} */ (end)]); } finally { clearTimeout(timer); }
}

/** A variable of the environment that must be there. */
export function need(name) {
  const value = process.env[name];
  if (!value) { console.error(`${name} is not set`); process.exit(2); }
  return value;
}

const modules = createRequire(join(resolve(need('PLEXUS_PLAYWRIGHT')), 'package.json'));
const AXE = readFileSync(modules.resolve('axe-core/axe.min.js'), 'utf8');

/**
 * The gateway's API with a token: an answer that is not a success is an error.
 * @param {string} base @param {() => string} token
 */
export const caller = (base, token) => async (/** @type {string} */ method, /** @type {string} */ path, /** @type {unknown} */ body = undefined) => {
  const headers = { Authorization: `Bearer ${token()}`, ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) };
  const response = await fetch(base + path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  const text = await response.text();
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
  return text ? JSON.parse(text) : null;
};

/** Until `look` gives something, which is returned; `what` it is, or a function that says it. */
export async function until(what, look) {
  for (const deadline = Date.now() + PATIENCE_MS; ;) {
    const got = await look();
    if (got) return got;
    if (Date.now() >= deadline) assert.fail(`never came: ${typeof what === 'function' ? await what() : what}`);
    await new Promise((go) => { setTimeout(go, 40); });
  }
}

export const ok = (what) => console.log(`ok ${what}`);

/** How a context is made for `ownPage`: the service worker would keep files of the program's page. */
export const OWN_PAGE = process.env.PLEXUS_PAGE ? { serviceWorkers: 'block' } : {};

/** Shows the page of PLEXUS_PAGE, if it is set. What its policy and the service worker do is not shown then. */
export async function ownPage(context) {
  const page = process.env.PLEXUS_PAGE;
  if (!page) return;
  // A page that the gateway did not send is of no known network, and may not connect to this machine by itself.
  await context.grantPermissions(['local-network-access']);
  await context.route((/** @type {URL} */ url) => url.pathname === '/' || url.pathname.startsWith('/assets/'), async (/** @type {any} */ route) => {
    const { pathname } = new URL(route.request().url());
    const file = join(page, pathname === '/' ? 'index.html' : pathname);
    await (existsSync(file) ? route.fulfill({ path: file }) : route.continue());
  });
}

/**
 * The browser: one for everything. `context()` makes a profile of its own inside it (another device).
 * @param {{shots?: string}} [options] where pictures go; none are taken if not set
 */
export async function launch({ shots } = {}) {
  const { chromium } = modules('playwright-core');
  if (shots) mkdirSync(shots, { recursive: true });
  const home = mkdtempSync(join(tmpdir(), 'plexus-web-'));
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    headless: true,
    env: { ...process.env, HOME: home },
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
  return {
    browser,
    /** @param {object} [more] options of a Playwright context */
    async context(more = {}) {
      const context = await browser.newContext({ viewport: DESK, colorScheme: 'light', ...OWN_PAGE, ...more });
      await ownPage(context);
      context.setDefaultTimeout(PATIENCE_MS);
      context.on('page', (/** @type {any} */ page) => {
        const evaluate = page.evaluate.bind(page);
        page.evaluate = (/** @type {any[]} */ ...args) => within(evaluate(...args), EVALUATION_MS, 'an evaluation in the page');
      });
      return context;
    },
    async close() {
      await browser.close();
      rmSync(home, { recursive: true, force: true });
    },
    shots,
  };
}

/** Watches a page: dialogs, errors, complaints of the policy, and every address it asked for. */
export function watch(page) {
  const seen = { dialogs: /** @type {string[]} */ ([]), complaints: /** @type {string[]} */ ([]), asked: /** @type {string[]} */ ([]) };
  page.on('dialog', (d) => { seen.dialogs.push(d.message()); d.dismiss().catch(() => {}); });
  page.on('pageerror', (e) => seen.complaints.push(String(e?.stack ?? e)));
  page.on('console', (m) => { if (m.type() === 'error') seen.complaints.push(`${m.text()} (${m.location()?.url ?? ''})`); });
  page.on('request', (r) => seen.asked.push(r.url()));
  page.addInitScript(() => {
    window.addEventListener('securitypolicyviolation', (e) => console.error(`policy: ${e.violatedDirective} ${e.blockedURI} ${e.sourceFile}:${e.lineNumber}`));
  }).catch(() => {});
  return seen;
}

/** Signs a page in by a one-time code, as the link of `plexus open` does, and waits until it is live. */
export async function signIn(page, base, code) {
  const response = await page.goto(`${base}/#code=${encodeURIComponent(code)}`);
  await live(page);
  return response;
}

/** Until what the page shows is true. */
export const live = (page) => page.locator('.link[data-phase="live"]').first().waitFor({ state: 'attached' });

/** Goes to a place of the page. */
export async function visit(page, hash) {
  await page.evaluate((to) => { location.hash = to; }, hash);
  await page.waitForFunction((to) => location.hash === to, hash);
}

/** Lets everything that is being drawn be drawn: fonts, images, Lit, and cards that are arming. */
export async function settled(page) {
  await page.evaluate(async () => {
    const frames = (n) => new Promise((done) => { const one = (left) => (left ? requestAnimationFrame(() => one(left - 1)) : done(null)); one(n); });
    await document.fonts.ready;
    await frames(3);
    const all = [];
    const walk = (root) => { for (const el of root.querySelectorAll('*')) { all.push(el); if (el.shadowRoot) walk(el.shadowRoot); } };
    walk(document);
    await Promise.all(all.map((el) => /** @type {any} */ (el).updateComplete));
    await frames(2);
  });
}

/**
 * Does something at both sizes in both themes, and puts the page back.
 * @param {(at: {width: number, height: number, theme: 'light'|'dark'}) => Promise<void>} work
 */
export async function everywhere(page, work) {
  for (const size of [PHONE, DESK]) {
    await page.setViewportSize(size);
    for (const theme of THEMES) {
      await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
      await settled(page);
      await work({ ...size, theme });
    }
  }
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: null });
  await page.setViewportSize(DESK);
}

/** Pictures NAME-390-light.png, NAME-390-dark.png, NAME-1440-light.png and NAME-1440-dark.png. */
export async function shoot(page, shots, name) {
  if (!shots) return;
  await everywhere(page, async ({ width, theme }) => { await page.screenshot({ path: join(shots, `${name}-${width}-${theme}.png`) }); });
}

/** Fails if anything sticks out to the right, through all shadow roots. What scrolls sideways inside of itself does not count. */
export async function fits(page, width, height, where) {
  await page.setViewportSize({ width, height });
  await settled(page);
  const out = await page.evaluate(() => {
    const wide = document.documentElement.clientWidth;
    /** @type {string[]} */ const over = [];
    if (document.documentElement.scrollWidth > wide) over.push(`the page is ${document.documentElement.scrollWidth} wide`);
    const cuts = (el) => ['hidden', 'clip', 'auto', 'scroll'].includes(getComputedStyle(el).overflowX);
    const walk = (root, cut) => {
      for (const el of root.children) {
        const box = el.getBoundingClientRect();
        const style = getComputedStyle(el);
        if (style.display === 'none' || style.visibility === 'hidden' || el.classList.contains('sr') || el.classList.contains('skip')) continue;
        if (!cut && box.width > 1 && box.height > 1 && box.right > wide + 1) over.push(`${el.localName}.${el.className} ends at ${Math.round(box.right)} of ${wide}`);
        const inner = cut || cuts(el);
        if (el.localName !== 'svg') walk(el, inner);
        if (el.shadowRoot) walk(el.shadowRoot, inner);
      }
    };
    walk(document.body, false);
    // A page that hides what is too wide has not made it fit: its own scroller must not have more than it shows.
    const main = document.querySelector('plexus-app')?.shadowRoot?.querySelector('main');
    if (main && main.scrollWidth > main.clientWidth + 1) over.push(`main scrolls sideways: ${main.scrollWidth} in ${main.clientWidth}`);
    return over.slice(0, 8);
  });
  assert.deepEqual(out, [], `${where} at ${width}x${height}`);
}

/** Runs axe over the page as it stands; fails on any violation. Runs past the page's policy, by the browser's own door. */
export async function axe(page, where) {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(AXE);
  const found = await page.evaluate(async () => {
    const result = await /** @type {any} */ (window).axe.run(document, { resultTypes: ['violations'] });
    return result.violations.map((v) => `${v.id} (${v.impact}): ${v.help}: ${v.nodes.slice(0, 4).map((n) => `${JSON.stringify(n.target)} ${n.any?.[0]?.message ?? n.all?.[0]?.message ?? n.none?.[0]?.message ?? ''}`).join(' | ')}`);
  });
  assert.deepEqual(found, [], `axe: ${where}`);
}
