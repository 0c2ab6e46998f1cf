// What the scripts about cards and notifications share: a browser, the page, and the gateway as an administrator sees it.
//
//   PLEXUS_URL         http://127.0.0.1:PORT of the running gateway
//   PLEXUS_TOKEN       the administrator's token
//   PLEXUS_PLAYWRIGHT  a directory that holds node_modules/playwright-core
//   CHROMIUM           the browser; /usr/bin/chromium if not set
//   PLEXUS_SHOTS       a directory for screenshots; none are taken if not set
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { need, ok, OWN_PAGE, ownPage, PATIENCE_MS, signIn, until } from './kit.mjs';

export { until };

/** Longer than a card takes to arm, with its watch. */
export const ARMED_MS = 650;

export const base = need('PLEXUS_URL').replace(/\/$/, '');
const token = need('PLEXUS_TOKEN');
const { chromium } = createRequire(join(resolve(need('PLEXUS_PLAYWRIGHT')), 'package.json'))('playwright-core');
const shots = process.env.PLEXUS_SHOTS;
if (shots) mkdirSync(shots, { recursive: true });

/** Longer than a card takes to see that it has moved. */
const WATCHED_MS = 200;

/** The gateway's API, as the administrator. */
export async function api(method, path, body, headers = {}) {
  const response = await fetch(base + path, {
    method,
    headers: { Authorization: `Bearer ${token}`, ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const words = await response.text();
  return { status: response.status, body: words ? JSON.parse(words) : null };
}

/** A new session. */
export async function session(runtime = 'demo') {
  const { status, body } = await api('POST', '/v1/sessions', { runtime_id: runtime });
  assert.ok(status === 200 || status === 201, JSON.stringify(body));
  return body.session_id;
}

export async function prompt(session_id, text) {
  const { status, body } = await api('POST', `/v1/sessions/${session_id}/prompt`, { text });
  assert.equal(status, 202, JSON.stringify(body));
  return body.run_id;
}

/** The open requests of a session, once there are `n`; oldest first. */
export async function requests(session_id, n = 1) {
  return until(`${n} requests`, async () => {
    const { body } = await api('GET', '/v1/requests?state=open');
    const mine = body.requests.filter((one) => one.session_id === session_id);
    return mine.length >= n ? mine : null;
  });
}

/** A prompt in a session of its own, and its one request. */
export async function ask(text, runtime = 'demo') {
  const id = await session(runtime);
  await prompt(id, text);
  return (await requests(id))[0];
}

export const request = async (id) => (await api('GET', `/v1/requests/${id}`)).body;

/** What the agent has said in a session. */
export async function said(session_id) {
  const { body } = await api('GET', `/v1/sessions/${session_id}/snapshot`);
  return body.messages.filter((one) => one.role === 'agent').map((one) => one.text).join('\n');
}

export const saysOnce = async (session_id, words) => {
  const all = await until(`the agent says “${words}”`, async () => {
    const text = await said(session_id);
    return text.includes(words) ? text : null;
  });
  assert.equal(all.split(words).length, 2, `said once: ${all}`);
};

/** Ends what is open, so that the next story begins with an empty inbox. */
export async function clear() {
  await until('an empty inbox', async () => {
    const { body } = await api('GET', '/v1/requests?state=open');
    for (const one of body.requests) await api('POST', `/v1/requests/${one.request_id}/answer`, one.options.length ? { ok: false } : one.type === 'pick' ? { ids: [] } : { value: null });
    return body.requests.length === 0;
  });
}

/** A device of its own, with a token: for what somebody else does. */
export async function device(name, scopes, more = {}) {
  const { status, body } = await api('POST', '/v1/devices', { name, scopes, ...more });
  assert.equal(status, 201, JSON.stringify(body));
  return body;
}

/** The browser; its contexts show the page of PLEXUS_PAGE, if it is set. */
export async function launch(/** @type {string[]} */ more = []) {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    headless: true,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', ...more],
  });
  const plain = browser.newContext.bind(browser);
  browser.newContext = async (options = {}) => {
    const context = await plain({ ...options, ...OWN_PAGE });
    await ownPage(context);
    return context;
  };
  return browser;
}

export const persistent = (/** @type {string} */ profile, /** @type {string[]} */ more = [], options = {}) =>
  chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    headless: true,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', ...more],
    ...options,
  });

export const DESK = { viewport: { width: 1440, height: 900 } };
export const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 };

/** Everything that a page must not have said. */
const complaints = [];
export const quiet = () => assert.deepEqual(complaints, []);

/** A page that is signed in as a new device, on its inbox. `grant` is what its code is good for. */
export async function enter(context, { grant = {}, hash = '#/inbox' } = {}) {
  context.setDefaultTimeout(PATIENCE_MS);
  const page = context.pages()[0] ?? (await context.newPage());
  page.on('pageerror', (error) => complaints.push(String(error)));
  const { body } = await api('POST', '/v1/codes', { scopes: ['watch', 'prompt', 'approve', 'admin'], ttl: 120, ...grant });
  await page.addInitScript(() => {
    /** The first element that fits, through open shadow roots. */
    window['deep'] = (selector, from = document) => {
      const hit = from.querySelector(selector);
      if (hit) return hit;
      for (const one of from.querySelectorAll('*')) {
        const found = one.shadowRoot && window['deep'](selector, one.shadowRoot);
        if (found) return found;
      }
      return null;
    };
  });
  await signIn(page, base, body.code);
  await go(page, hash);
  return page;
}

export async function go(page, hash) {
  await page.evaluate((to) => { location.hash = to; }, hash);
}

/** The card of a request. */
export const cardOf = (page, request_id) => page.locator(`article[data-request="${request_id}"]`);
/** The row of a request in the inbox. */
export const rowOf = (page, request_id) => page.locator(`[role="row"][data-request="${request_id}"]`);
/** Closes the card that covers the rows of a phone. */
export async function toRows(page) {
  const close = page.locator('plexus-requests:not([beside]) .pane:not([data-shut], [data-ended]) .steps button').last();
  if (await close.count()) await close.tap();
}
/** The card of a request in the inbox, opened by its row. */
export async function shown(page, request_id) {
  const row = rowOf(page, request_id);
  const card = cardOf(page, request_id);
  await row.waitFor();
  if ((await row.getAttribute('aria-current')) !== 'true') {
    await toRows(page);
    const words = row.locator('.words');
    await (await page.evaluate(() => navigator.maxTouchPoints > 0) ? words.tap() : words.click());
  }
  await card.waitFor();
  return card;
}
/** One of its answers: `allow`, `deny`, or the action's id. */
export const answerOf = (card, which) => card.locator(which === 'allow' ? '[data-key="a"]' : which === 'deny' ? '[data-key="d"]' : `[data-action="${which}"]`);
/** Chooses from the card's menu: `Always allow…` by its action's id, or one of `reason`, `edit` and `word`. */
export async function fromMenu(card, item) {
  const touch = await card.page().evaluate(() => navigator.maxTouchPoints > 0);
  const menu = card.locator('plexus-menu > button, plexus-menu button[aria-haspopup]').first();
  await (touch ? menu.tap() : menu.click());
  const one = card.locator(`plexus-menu [data-item="${item}"]`);
  await (touch ? one.tap() : one.click());
}

/** Until the card is in sight and takes a press. */
export async function armed(card) {
  await card.locator('.actions').scrollIntoViewIfNeeded();
  // What moved is noticed within moments, not at once.
  await card.page().waitForTimeout(WATCHED_MS);
  await card.locator('.actions[data-arming="false"]').waitFor();
}

/** A press of what is there, once the card takes one; by finger where the page has one. */
export async function press(card, what) {
  const button = typeof what === 'string' ? answerOf(card, what) : what;
  await button.scrollIntoViewIfNeeded();
  await card.page().waitForTimeout(WATCHED_MS);
  await card.locator('.actions[data-arming="false"]').waitFor();
  await (await card.page().evaluate(() => navigator.maxTouchPoints > 0) ? button.tap({ force: true }) : button.click({ force: true }));
}

/** Until a card is answered and says so in one line; on a phone another card may have taken its place by then. */
export async function closed(card, words) {
  await card.and(card.page().locator('[data-status="closed"]')).waitFor({ state: 'attached' });
  await card.locator('.outcome', { hasText: words }).waitFor({ state: 'attached' });
  assert.equal(await card.locator('button.answer, plexus-hold').count(), 0, 'an answered card has no answers');
}

/** What tells the pages of a context of an event about a request that the gateway knows nothing of; before they are opened. */
export async function teller(context) {
  let put = (/** @type {string} */ message) => void message;
  await context.routeWebSocket(/\/v1\/ws/, (socket) => {
    const server = socket.connectToServer();
    socket.onMessage((message) => server.send(message));
    server.onMessage((message) => socket.send(message));
    put = (message) => socket.send(message);
  });
  return (/** @type {string} */ kind, /** @type {any} */ event) => put(JSON.stringify({ jsonrpc: '2.0', method: 'agent.event', params: { session_id: event.session_id, run_id: event.run_id, seq: 0, at: new Date().toISOString(), kind, event, meta: { runtime_id: event.runtime_id, dialect: 'acp' } } }));
}
/** The request with another command, as the gateway tells of it. */
export const changed = (/** @type {any} */ one, command = 'npm run lint') => ({ ...one, display: command, subject: { type: 'command', argv: [command] }, revision: one.revision + 1, changed: true, digest: `${one.digest}-changed` });

/** A picture of the page in both themes. */
export async function shoot(page, name) {
  if (!shots) return;
  const width = page.viewportSize().width;
  for (const scheme of /** @type {const} */ (['light', 'dark'])) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.waitForTimeout(ARMED_MS);
    await page.screenshot({ path: join(shots, `${name}-${width}-${scheme}.png`) });
  }
  await page.emulateMedia({ colorScheme: 'light' });
}

/** Runs the stories, one after the other; the first that fails ends it with exit code 1. */
export async function play(stories, browser) {
  let failed = false;
  const only = process.env.PLEXUS_ONLY;
  try {
    for (const [name, story] of stories) {
      if (only && !name.includes(only)) continue;
      try {
        await story();
        ok(name);
      } catch (error) {
        failed = true;
        console.error(`not ok ${name}\n`, error);
        const pages = (browser.contexts?.() ?? [browser]).flatMap((context) => context.pages());
        for (const [n, page] of pages.entries()) if (shots) await page.screenshot({ path: join(shots, `failure-${n}.png`) }).catch(() => {});
        break;
      }
    }
  } finally {
    await browser.close();
  }
  process.exit(failed ? 1 : 0);
}
