// The page at `/` in a real browser, against a real gateway with the demo runtime.
//
//   PLEXUS_URL         http://127.0.0.1:PORT of the running gateway, with a runtime whose id is "demo"
//   PLEXUS_CODE        a one-time code, as `plexus open` makes it
//   PLEXUS_PLAYWRIGHT  a directory that holds node_modules/playwright-core
//   CHROMIUM           the browser; /usr/bin/chromium if not set
//   PLEXUS_SHOTS       a directory for screenshots; none are taken if not set
//
// Prints a line `ok ...` for each thing that holds; the first one that does not ends it with exit code 1.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

/** How long a condition may take to come true, ms; reaching it is a failure. */
const PATIENCE_MS = 30_000;

/** @param {string} name */
function need(name) {
  const value = process.env[name];
  if (!value) { console.error(`page.test: ${name} is not set`); process.exit(2); }
  return value;
}

const base = need('PLEXUS_URL').replace(/\/$/, '');
const code = need('PLEXUS_CODE');
const { chromium } = createRequire(join(resolve(need('PLEXUS_PLAYWRIGHT')), 'package.json'))('playwright-core');
const shots = process.env.PLEXUS_SHOTS;
if (shots) mkdirSync(shots, { recursive: true });

const profile = mkdtempSync(join(tmpdir(), 'plexus-page-'));
const ok = (/** @type {string} */ what) => console.log(`ok ${what}`);

const context = await chromium.launchPersistentContext(profile, {
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  headless: true,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  viewport: { width: 1440, height: 900 },
  colorScheme: 'light',
});
let failed = false;
try {
  context.setDefaultTimeout(PATIENCE_MS);
  const page = context.pages()[0] ?? await context.newPage();
  /** @type {string[]} */ const dialogs = [];
  /** @type {string[]} */ const complaints = [];
  /** @type {string[]} */ const asked = [];
  page.on('dialog', (d) => { dialogs.push(d.message()); d.dismiss().catch(() => {}); });
  page.on('pageerror', (e) => complaints.push(String(e)));
  page.on('console', (m) => { if (m.type() === 'error') complaints.push(m.text()); });
  page.on('request', (r) => asked.push(r.url()));

  /** @param {string} name */
  const shoot = async (name) => {
    if (!shots) return;
    for (const [width, height] of [[390, 844], [1440, 900]]) {
      await page.setViewportSize({ width, height });
      for (const scheme of /** @type {const} */ (['light', 'dark'])) {
        await page.emulateMedia({ colorScheme: scheme });
        // Buttons that moved are pale for a moment.
        await page.waitForFunction(() => !document.querySelector('.card .actions[data-arming="true"]'));
        await page.screenshot({ path: join(shots, `${name}-${width}-${scheme}.png`) });
      }
    }
    await page.emulateMedia({ colorScheme: 'light' });
  };
  /** Fails if anything sticks out to the right. @param {number} width @param {number} height @param {string} where */
  const fits = async (width, height, where) => {
    await page.setViewportSize({ width, height });
    const out = await page.evaluate(() => {
      const wide = document.documentElement.clientWidth;
      /** @type {string[]} */ const over = [];
      if (document.documentElement.scrollWidth > wide) over.push(`page ${document.documentElement.scrollWidth}`);
      for (const el of document.querySelectorAll('#app *')) {
        // A one-line title is cut with an ellipsis by its parent; that is no overflow.
        if (el.parentElement && getComputedStyle(el.parentElement).textOverflow === 'ellipsis') continue;
        const box = el.getBoundingClientRect();
        if (box.width > 0 && box.height > 0 && !el.closest('.sr') && !el.classList.contains('sr') && !el.classList.contains('skip') && box.right > wide + 1) over.push(`${el.tagName}.${el.className} ends at ${Math.round(box.right)}`);
      }
      for (const id of ['feed', 'inbox-body', 'list']) {
        const el = document.getElementById(id);
        if (el && el.scrollWidth > el.clientWidth + 1) over.push(`#${id} scrolls sideways`);
      }
      return over;
    });
    assert.deepEqual(out, [], `${where} at ${width}x${height}`);
    ok(`nothing overflows: ${where} at ${width}x${height}`);
  };
  const agentText = () => page.locator('.msg-agent .said').allTextContents().then((all) => all.join('\n'));
  /** Until this many runs have ended before our eyes. @param {number} n */
  const ended = async (n) => {
    await page.waitForFunction((want) => [...document.querySelectorAll('.sep')].filter((e) => e.textContent?.startsWith('finished')).length >= want, n);
    await page.locator('#session-state[data-state="idle"]').waitFor();
  };
  /** @param {string} text */
  const prompt = async (text) => {
    await page.fill('#prompt', text);
    await page.click('#send');
    await page.waitForFunction(() => /** @type {HTMLTextAreaElement} */ (document.getElementById('prompt')).value === '');
  };

  // Nobody is signed in yet.
  await page.goto(`${base}/`);
  await page.locator('#signin:not([hidden])').waitFor();
  await fits(390, 844, 'sign-in');
  await shoot('signin');
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.goto('about:blank');

  // The page, and what it is served with.
  const first = await page.goto(`${base}/#code=${encodeURIComponent(code)}`);
  const csp = first?.headers()['content-security-policy'] ?? '';
  for (const part of ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'"]) assert.ok(csp.includes(part), `the policy lacks ${part}: ${csp}`);
  assert.ok(!csp.includes('unsafe-inline') && !csp.includes('unsafe-eval'), csp);
  ok('strict content policy');

  await page.locator('#phase[data-phase="live"]').waitFor();
  assert.ok(!page.url().includes(code) && !page.url().includes('code='), page.url());
  const kept = await page.evaluate(() => ({ session: sessionStorage.length, local: localStorage.length, cookie: document.cookie }));
  assert.deepEqual(kept, { session: 1, local: 0, cookie: '' });
  ok('signed in by the fragment, which is gone; the token is in this tab only');
  await fits(390, 844, 'list');
  await shoot('list');
  await page.setViewportSize({ width: 1440, height: 900 });

  // A new session.
  await page.click('#new-toggle');
  await page.click('#new-runtimes button[data-runtime="demo"]');
  await page.locator('#session:not([hidden])').waitFor();
  await page.waitForFunction(() => location.hash.startsWith('#/s/'));
  await page.locator('#feed-note', { hasText: 'Nothing has been said yet' }).waitFor();
  ok('new session on demo');

  // A request, answered on its card.
  // A click in the very moment the card appears, as of somebody who meant to press something else.
  await page.evaluate(() => {
    const box = /** @type {HTMLElement} */ (document.getElementById('cards'));
    new MutationObserver((_, observer) => {
      const hit = /** @type {HTMLElement|null} */ (box.querySelector('button[data-sense="allow"]'));
      if (hit) { observer.disconnect(); hit.click(); }
    }).observe(box, { childList: true, subtree: true });
  });
  await prompt('ask ;; echo done');
  const card = page.locator('.card[data-status="open"]');
  await card.first().waitFor();
  assert.equal(await card.count(), 1);
  await card.locator('.card-note', { hasText: 'just appeared' }).waitFor();
  ok('a click at the moment a card appears is not taken');
  assert.ok((await card.locator('.chip').textContent())?.includes('demo'));
  const allow = card.locator('button[data-sense="allow"]').first();
  await page.locator('.card .actions[data-arming="false"]').waitFor();
  await allow.focus();
  await page.keyboard.press('Enter');
  await card.locator('.card-note', { hasText: 'Enter never allows' }).waitFor();
  assert.equal(await card.count(), 1, 'Enter left the request open');
  assert.ok(!(await agentText()).includes('done'), 'the run waits for the answer');
  ok('a request shows as a card; Enter does not allow');
  await fits(390, 844, 'session with a request');
  await fits(320, 640, 'session with a request');
  await fits(1440, 900, 'session with a request');
  await shoot('request');
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.locator('.card .actions[data-arming="false"]').waitFor();
  const heightBefore = (await card.first().boundingBox())?.height ?? 0;
  await allow.click();
  const outcome = page.locator('.card[data-status="closed"] .outcome[data-sense="allow"]');
  await outcome.waitFor();
  assert.match((await outcome.textContent()) ?? '', /^Allowed.* by .+, /);
  await page.waitForFunction(() => [...document.querySelectorAll('.msg-agent .said')].some((e) => e.textContent?.includes('done')));
  assert.equal(await outcome.locator('small').count(), 0, 'the only one who answered is told to have been late');
  const heightAfter = (await page.locator('.card[data-status="closed"]').boundingBox())?.height ?? 0;
  assert.ok(Math.abs(heightAfter - heightBefore) <= 1, `the card changed its height: ${heightBefore} to ${heightAfter}`);
  ok('allowed on the card, which says so in place');
  await ended(1);
  ok('the agent went on: done');
  await shoot('resolved');
  await page.setViewportSize({ width: 1440, height: 900 });

  // Markup from an agent is text.
  const evil = '<img src=x onerror=alert(1)>';
  await prompt(`echo ${evil}`);
  await page.waitForFunction((text) => [...document.querySelectorAll('.msg-agent .said')].some((e) => e.textContent?.includes(text)), evil);
  await ended(2);
  assert.equal(await page.locator('#feed img, #feed script, #feed iframe, #feed a').count(), 0);
  assert.deepEqual(dialogs, []);
  ok('markup stays text');

  // Streaming, and the same text again after a reload: what was shown live is what is kept.
  await prompt('stream 20');
  await ended(3);
  assert.equal(await page.locator('.msg-user').count(), 3);
  const live = await agentText();
  await page.reload();
  await page.locator('#phase[data-phase="live"]').waitFor();
  await page.waitForFunction((n) => document.querySelectorAll('.msg-agent').length >= n, 3);
  await page.waitForFunction((text) => [...document.querySelectorAll('.msg-agent .said')].map((e) => e.textContent).join('\n') === text, live);
  ok('a reload shows the same text, still signed in');
  await fits(390, 844, 'session');
  await fits(320, 640, 'session');
  await fits(1440, 900, 'session');
  await shoot('session');
  await page.setViewportSize({ width: 1440, height: 900 });

  // No network, said plainly; then back.
  assert.deepEqual(complaints, []);
  await context.setOffline(true);
  await page.locator('#stale:not([hidden])', { hasText: 'What you see was true at' }).waitFor();
  assert.equal(await page.getAttribute('#send', 'aria-disabled'), 'true');
  await context.setOffline(false);
  await page.locator('#phase[data-phase="live"]').waitFor();
  await page.locator('#stale').waitFor({ state: 'hidden' });
  assert.equal(await agentText(), live);
  ok('a lost connection is said, and comes back without a repeat');

  const elsewhere = asked.filter((u) => !u.startsWith(`${base}/`) && !u.startsWith('data:'));
  assert.deepEqual(elsewhere, [], 'requests that left the origin');
  assert.ok(asked.every((u) => !/[?&](token|access_token|code)=/.test(u)));
  assert.ok(asked.every((u) => new URL(u).pathname !== '/x'), 'the image in the text was fetched');
  ok('no request left the origin, no secret in an address');

  await page.click('#signout');
  await page.locator('#signin:not([hidden])').waitFor();
  assert.equal(await page.evaluate(() => sessionStorage.length), 0);
  assert.equal(await page.locator('.card, .row, .item').count(), 0);
  ok('signed out: nothing left on the page');

  // The same code a second time.
  await page.goto(`${base}/?again#code=${encodeURIComponent(code)}`);
  await page.locator('#signin-note', { hasText: 'not accepted' }).waitFor();
  assert.ok(!page.url().includes('code='));
  ok('a code works once');
  assert.deepEqual(dialogs, []);
} catch (error) {
  failed = true;
  console.error('not ok', error);
  const page = context.pages()[0];
  if (shots && page) await page.screenshot({ path: join(shots, 'failure.png') }).catch(() => {});
} finally {
  await context.close();
  rmSync(profile, { recursive: true, force: true });
}
process.exit(failed ? 1 : 0);
