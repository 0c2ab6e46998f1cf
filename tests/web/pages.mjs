// Every page in a real browser, against a real gateway with the demo runtime. One file: one browser and one story, in which each page is
// looked at when there is something on it.
//
//   PLEXUS_URL, PLEXUS_CODE, PLEXUS_TOKEN   the gateway, a one-time code, the administrator's token
//   PLEXUS_SHOTS                            a directory for pictures; none are taken if not set
//   and what kit.mjs reads
//
// Prints a line `ok ...` for each passed test; the first failure ends it with exit code 1.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DESK, PHONE, axe, caller, everywhere, fits, launch, live, need, ok, settled, signIn, until, visit, watch } from './kit.mjs';

const base = need('PLEXUS_URL').replace(/\/$/, '');
const code = need('PLEXUS_CODE');
const token = need('PLEXUS_TOKEN');
const shots = process.env.PLEXUS_SHOTS;

/** The gateway's API, as the administrator of this machine. */
const api = caller(base, () => token);
const routes = Object.keys((await (await fetch(`${base}/openapi.json`)).json()).paths);
const has = (path) => routes.includes(path);

/** What the judges found; all of it is told at the end. */
const faults = /** @type {string[]} */ ([]);
/** A page as it stands: pictures, axe and nothing that sticks out, everywhere. */
async function judge(page, name, narrow = true) {
  const before = faults.length;
  const fault = (/** @type {Error} */ error) => { faults.push(error.message); console.error('not ok', error.message); };
  await everywhere(page, async ({ width, theme }) => {
    if (shots) await page.screenshot({ path: join(shots, `${name}-${width}-${theme}.png`) });
    await axe(page, `${name} at ${width}, ${theme}`).catch(fault);
  });
  if (narrow) for (const [w, h] of [[320, 640], [PHONE.width, PHONE.height], [768, 1024], [DESK.width, DESK.height], [2560, 1300]]) await fits(page, w, h, name).catch(fault);
  await page.setViewportSize(DESK);
  if (faults.length === before) ok(`${name}: axe finds nothing and nothing overflows, at every size and in both themes`);
}

const kit = await launch({ shots });
let failed = false;
let page;
try {
  const context = await kit.context({ permissions: ['clipboard-read', 'clipboard-write'] });
  page = await context.newPage();
  const seen = watch(page);
  const focusedIn = () => page.evaluate(() => { let at = document.activeElement; while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement; return `${at?.localName}#${at?.id}.${at?.className}`; });
  const heading = (words) => page.locator('main h1', { hasText: words }).first().waitFor({ state: 'attached' });

  // --- nobody is signed in ---------------------------------------------------------------------------------------------------
  await page.goto(`${base}/`);
  await page.locator('plexus-signin h1').waitFor();
  await judge(page, 'signin');
  // That nobody is signed in is found out by a call that says so.
  seen.complaints.splice(0).forEach((one) => assert.match(one, /401.*\/v1\/me/));
  await page.goto('about:blank');

  const first = await signIn(page, base, code);
  const csp = first?.headers()['content-security-policy'] ?? '';
  for (const part of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'", 'trusted-types lit-html dompurify plexus plexus-worker', "worker-src 'self'"]) assert.ok(csp.includes(part), `the policy lacks ${part}: ${csp}`);
  assert.ok(!csp.includes('unsafe-inline') && !csp.includes('unsafe-eval') && !csp.includes('*'), csp);
  ok('security: strict content policy with named Trusted Types');
  assert.ok(!page.url().includes(code) && !page.url().includes('code='), page.url());
  const kept = await page.evaluate(() => ({ session: { ...sessionStorage }, cookie: document.cookie, local: Object.keys(localStorage).filter((k) => !['plexus.seen', 'plexus.here'].includes(k)) }));
  assert.deepEqual(kept, { session: {}, cookie: '', local: ['plexus.browser'] });
  const cookies = (await context.cookies(base)).filter((c) => /plexus/.test(c.name));
  assert.equal(cookies.length, 1);
  assert.ok(cookies[0].httpOnly && cookies[0].sameSite === 'Strict', JSON.stringify(cookies[0]));
  ok('sign-in: by the fragment, which is removed; scripts cannot read the credential');

  // --- the inbox, with nothing in it ---------------------------------------------------------------------------------------------
  await heading('Inbox');
  await page.locator('plexus-inbox .empty').waitFor();
  await judge(page, 'inbox-empty');

  // --- by keyboard alone: to the sessions, a new one, its page ---------------------------------------------------------------------
  await page.keyboard.press('Tab');
  assert.match(await focusedIn(), /^button#\.primary skip/, 'the first stop is the skip link');
  await page.keyboard.press('Enter');
  assert.match(await focusedIn(), /^main#main/, 'the skip link leads to the content');
  await page.keyboard.press('g');
  await page.keyboard.press('s');
  await heading('Sessions');
  assert.match(await focusedIn(), /^main#main/, 'a new page has the focus');
  await page.keyboard.press('n');
  await page.locator('plexus-dialog[heading="New session"] dialog[open]').first().waitFor();
  await judge(page, 'new-session', false);
  await page.locator('input[name="title"]').fill('Deploy the docs');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => location.hash.startsWith('#/s/'));
  const id = decodeURIComponent((await page.evaluate(() => location.hash)).slice(4));
  await page.locator('plexus-session h1', { hasText: 'Deploy the docs' }).waitFor();
  ok('sessions: a new one by keyboard alone');

  // --- the session -----------------------------------------------------------------------------------------------------------------
  const said = (tab, words) => tab.waitForFunction((want) => {
    const words = (root) => [...root.childNodes].map((n) => n.nodeType === 3 ? n.data : (n.shadowRoot ? words(n.shadowRoot) : '') + words(n)).join('');
    const app = document.querySelector('plexus-app')?.shadowRoot?.querySelector('plexus-session-page')?.shadowRoot?.querySelector('plexus-session')?.shadowRoot;
    return app && words(app).includes(want);
  }, words);
  const evil = '<img src=/x onerror=alert(1)>';
  await api('POST', `/v1/sessions/${id}/prompt`, { text: `think ;; echo ${evil} ;; plan ;; diff ;; stream 12` });
  await said(page, 'chunk-0011');
  await page.locator('plexus-session #session-state[state="idle"]').waitFor();
  assert.deepEqual(seen.dialogs, []);
  ok('session: agent text is shown, and its markup is text');
  await judge(page, 'session');

  // --- two tabs of one browser ---------------------------------------------------------------------------------------------------------
  const other = await context.newPage();
  const otherSeen = watch(other);
  await other.goto(`${base}/#/s/${id}`);
  await live(other);
  await said(other, 'chunk-0011');
  await api('POST', `/v1/sessions/${id}/prompt`, { text: 'echo seen-by-both' });
  await Promise.all([said(page, 'seen-by-both'), said(other, 'seen-by-both')]);
  ok('session: two tabs show the same');
  await other.close();

  // --- requests, everywhere at once ------------------------------------------------------------------------------------------------------
  await api('POST', `/v1/sessions/${id}/prompt`, { text: 'ask make deploy ;; echo after-the-answer' });
  await page.locator('plexus-session plexus-card').waitFor();
  await judge(page, 'session-request');
  await visit(page, '#/inbox');
  const card = page.locator('plexus-card');
  await card.first().waitFor();
  assert.equal(await card.count(), 1);
  await page.locator('.nav .count', { hasText: '1' }).first().waitFor();
  await judge(page, 'inbox');
  const { requests } = await api('GET', '/v1/requests?state=open');
  await visit(page, `#/r/${requests[0].request_id}`);
  await page.locator('plexus-request plexus-card').waitFor();
  await visit(page, '#/inbox');
  await card.first().waitFor();
  await api('POST', `/v1/requests/${requests[0].request_id}/answer`, { option_id: 'allow_once', digest: requests[0].digest });
  await page.locator('plexus-card', { hasText: /Allowed/ }).waitFor();
  await page.waitForFunction(() => !document.querySelector('plexus-app')?.shadowRoot?.querySelector('.nav .count'));
  ok('request: appears, has a link of its own, and shows who answered it elsewhere');

  // --- a session that somebody forgets while it is looked at ----------------------------------------------------------------------------
  const brief = await api('POST', '/v1/sessions', { runtime_id: 'demo', title: 'Not for long' });
  await api('POST', `/v1/sessions/${brief.session_id}/prompt`, { text: 'echo soon-forgotten' });
  await visit(page, `#/s/${brief.session_id}`);
  await page.locator('plexus-session', { hasText: 'soon-forgotten' }).waitFor();
  await api('DELETE', `/v1/sessions/${brief.session_id}`);
  await page.locator('plexus-session .void', { hasText: 'no longer exists' }).waitFor();
  await page.locator('plexus-session', { hasText: 'soon-forgotten' }).waitFor({ state: 'detached' });
  await judge(page, 'session-gone');
  await page.locator('plexus-session .void a').click();
  await page.locator('plexus-sessions').waitFor();
  ok('session: an open page of a deleted session says so');

  // --- the list of sessions ---------------------------------------------------------------------------------------------------------------
  await api('POST', '/v1/sessions', { runtime_id: 'demo', title: 'Fix the flaky test' });
  const waiting = await api('POST', '/v1/sessions', { runtime_id: 'demo', title: 'Upgrade the database' });
  await api('POST', `/v1/sessions/${waiting.session_id}/prompt`, { text: 'ask sudo systemctl restart postgresql' });
  const running = await api('POST', '/v1/sessions', { runtime_id: 'demo', title: 'A very long title that goes on and on, so that it has to be cut somewhere, whatever the size of the screen may be' });
  await api('POST', `/v1/sessions/${running.session_id}/prompt`, { text: 'hang' });
  await visit(page, '#/sessions');
  await page.locator('plexus-sessions .row:has(plexus-state[state="waiting"])', { hasText: 'Upgrade the database' }).waitFor();
  await page.locator('plexus-sessions .row plexus-state[state="running"]').first().waitFor();
  await judge(page, 'sessions');
  await page.locator('plexus-sessions input[type="search"]').fill('flaky');
  await page.waitForFunction(() => document.querySelector('plexus-app').shadowRoot.querySelector('plexus-sessions').shadowRoot.querySelectorAll('.row').length === 1);
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.locator('plexus-session h1', { hasText: 'Fix the flaky test' }).waitFor();
  ok('sessions: the list shows states, can be filtered, and works by keyboard');
  await page.keyboard.press('Escape');

  // --- search, and the place of what was found -----------------------------------------------------------------------------------------
  await visit(page, '#/search?q=');
  await page.locator('plexus-search input').fill('seen-by-both');
  await page.locator('plexus-search .hit').first().waitFor();
  assert.ok((await page.evaluate(() => location.hash)).includes('q=seen-by-both'));
  await judge(page, 'search');
  await page.locator('plexus-search input').focus();
  await page.keyboard.press('Enter');
  assert.match(await focusedIn(), /^a#/);
  await page.keyboard.press('Enter');
  await page.waitForFunction((want) => location.hash.startsWith(`#/s/${want}/at/`), id);
  await said(page, 'seen-by-both');
  ok('search: finds messages, and a hit leads to its position');

  // --- devices -----------------------------------------------------------------------------------------------------------------------
  await api('POST', '/v1/devices', { name: 'Pixel 9, Chrome on Android', scopes: ['watch', 'approve'] });
  await visit(page, '#/devices');
  await page.locator('plexus-devices .row', { hasText: 'Pixel 9' }).waitFor();
  await judge(page, 'devices');
  const phoneRow = page.locator('plexus-devices .row', { hasText: 'Pixel 9' });
  await phoneRow.locator('plexus-menu button').first().click();
  await phoneRow.locator('[role="menuitem"]', { hasText: 'Rename' }).click();
  await page.locator('plexus-asking input').fill('Kitchen tablet');
  await page.keyboard.press('Enter');
  const tablet = page.locator('plexus-devices .row', { hasText: 'Kitchen tablet' });
  await tablet.waitFor();
  await tablet.locator('plexus-menu button').first().click();
  await tablet.locator('[role="menuitem"]', { hasText: 'Revoke' }).click();
  await page.locator('plexus-asking button[type="submit"]').click();
  await tablet.waitFor({ state: 'detached' });
  ok('devices: one is renamed and revoked');

  // --- settings ----------------------------------------------------------------------------------------------------------------------
  await page.locator('plexus-devices a[href="#/settings"]').click();
  const settings = page.locator('plexus-settings');
  await settings.locator('#s-reach bdi', { hasText: base }).waitFor();
  await settings.locator('#s-device .chip', { hasText: 'administer' }).waitFor();
  await judge(page, 'settings');
  await settings.locator('[data-theme-is="dark"]').click();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
  await settings.locator('[data-theme-is="auto"]').click();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), undefined);
  await settings.locator('#editor').selectOption('zed');
  assert.equal(await page.evaluate(() => localStorage.getItem('plexus.editor')), 'zed');
  await visit(page, '#/sessions');
  await page.locator('plexus-sessions .row plexus-menu').first().locator('button').first().click();
  const inEditor = page.getByRole('menuitem', { name: 'Open the folder in the editor' });
  await inEditor.waitFor();
  assert.match(await inEditor.getAttribute('href'), /^zed:\/\/file\//);
  await page.keyboard.press('Escape');
  await page.keyboard.press('g');
  await page.keyboard.press(',');
  await settings.locator('#editor').selectOption('none');
  assert.equal(await page.evaluate(() => localStorage.getItem('plexus.editor')), null);
  ok('settings: the theme and the editor are kept on this device');
  await visit(page, '#/devices');

  // --- another device joins by a code and a number ------------------------------------------------------------------------------------
  if (has('/v1/pairings')) {
    await page.locator('plexus-devices #add').click();
    await judge(page, 'add-device', false);
    await page.locator('plexus-pairing #make').click();
    const shown = page.locator('plexus-pairing #code');
    await shown.waitFor();
    await judge(page, 'add-device-code', false);
    const phone = await kit.context({ viewport: PHONE, userAgent: 'Mozilla/5.0 (Linux; Android 16) AppleWebKit/537.36 Chrome/140.0 Mobile Safari/537.36' });
    const hand = await phone.newPage();
    const handSeen = watch(hand);
    await hand.goto(`${base}/#pair=${(await shown.textContent())?.trim()}`);
    await hand.locator('plexus-signin #join').waitFor();
    await judge(hand, 'join', false);
    await hand.setViewportSize(PHONE);
    await hand.locator('#name').fill('My phone');
    await hand.locator('#join').click();
    const number = (await hand.locator('plexus-signin #number').textContent())?.trim();
    await page.locator('plexus-pairing .number', { hasText: number }).waitFor();
    await judge(page, 'add-device-number', false);
    await judge(hand, 'join-number', false);
    await page.locator('plexus-pairing #confirm').click();
    await live(hand);
    assert.ok(!hand.url().includes('pair='), hand.url());
    // Whoever has just joined is offered notifications, once.
    const offer = hand.locator('plexus-push-offer');
    await offer.locator('[data-do=later]').waitFor();
    await judge(hand, 'push-offer', false);
    await hand.setViewportSize(PHONE);
    await offer.locator('[data-do=later]').click();
    await offer.locator('section').waitFor({ state: 'detached' });
    await hand.reload();
    await live(hand);
    assert.equal(await offer.locator('section').count(), 0, 'somebody has decided');
    await page.locator('plexus-pairing .note.ok').waitFor();
    await page.keyboard.press('Escape');
    await page.locator('plexus-devices .row', { hasText: 'My phone' }).waitFor();
    // Revoked: it is out at once, and says why.
    const { devices } = await api('GET', '/v1/devices');
    await api('DELETE', `/v1/devices/${devices.find((d) => d.name === 'My phone').device_id}`);
    await hand.locator('plexus-signin #note').waitFor();
    assert.deepEqual(handSeen.complaints.filter((c) => !/401|410/.test(c)), []);
    await phone.close();
    ok('pairing: a phone joins by code and number; revoked, it is signed out at once');
  }

  // --- a link to read one session --------------------------------------------------------------------------------------------------------
  if (has('/v1/sessions/{id}/shares')) {
    const link = await api('POST', `/v1/sessions/${id}/shares`, { hours: 1 });
    const guest = await kit.context();
    const reader = await guest.newPage();
    const readerSeen = watch(reader);
    await reader.goto(link.url.replace(/^https?:\/\/[^/]+/, base));
    await reader.locator('#share').waitFor();
    // What was said last: earlier things may be out of sight, and are then not drawn.
    await said(reader, 'after-the-answer');
    assert.ok(!reader.url().includes(link.token));
    await judge(reader, 'shared');
    assert.deepEqual(readerSeen.complaints, []);
    await guest.close();
    ok('share: a link shows its session read-only, and says so');
  }

  // --- runtimes ----------------------------------------------------------------------------------------------------------------------
  await visit(page, '#/runtimes');
  await page.locator('plexus-runtimes .row[data-runtime="demo"]').waitFor();
  await judge(page, 'runtimes');
  await api('POST', '/v1/runtimes', { preset: 'demo', cwd: '/', outlive: false });
  await page.locator('plexus-runtimes .row[data-runtime="demo-2"] .chip', { hasText: 'Ready' }).waitFor();
  const { pid } = (await api('GET', '/v1/runtimes')).runtimes.find((one) => one.runtime_id === 'demo-2');
  const was = page.locator('plexus-runtimes .row[data-runtime="demo-2"] .facts span', { hasText: `${pid}` });
  await was.waitFor();
  await page.locator('plexus-runtimes .row[data-runtime="demo-2"] button', { hasText: 'Restart' }).click();
  await was.waitFor({ state: 'detached' });
  await page.locator('plexus-runtimes .row[data-runtime="demo-2"] .chip', { hasText: 'Ready' }).waitFor();
  await page.locator('plexus-runtimes .row[data-runtime="demo-2"] button', { hasText: 'Stop' }).click();
  await page.locator('plexus-asking button[type="submit"]').click();
  await page.locator('plexus-runtimes .row[data-runtime="demo-2"] .chip', { hasText: 'Ready' }).waitFor({ state: 'detached' });
  await api('POST', '/v1/runtimes', { id: 'dead', dialect: 'acp', command: ['false'], cwd: '/', restart: 'never' });
  await page.locator('plexus-runtimes .row[data-runtime="dead"] button', { hasText: 'Remove' }).click();
  await page.locator('plexus-asking button[type="submit"]').click();
  await page.locator('plexus-runtimes .row[data-runtime="dead"]').waitFor({ state: 'detached' });
  ok('runtimes: one is restarted and stopped, and one that ended is removed');
  if (has('/v1/doctor')) {
    await page.locator('plexus-runtimes #doctor').click();
    await page.locator('plexus-runtimes .check').first().waitFor();
    await judge(page, 'doctor');
  }

  // --- a session whose agent died -------------------------------------------------------------------------------------------------------
  const { connect } = (await api('GET', '/v1/runtimes')).runtimes.find((one) => one.runtime_id === 'demo');
  await api('POST', '/v1/runtimes', { id: 'mortal', dialect: 'acp', command: connect.command, cwd: '/', restart: 'never' });
  const mortal = await api('POST', '/v1/sessions', { runtime_id: 'mortal', title: 'It will die' });
  await visit(page, `#/s/${mortal.session_id}`);
  await page.locator('plexus-session #prompt').fill('echo before-the-end');
  await page.keyboard.press('Enter');
  await said(page, 'before-the-end');
  await api('POST', `/v1/sessions/${mortal.session_id}/prompt`, { text: 'crash' });
  const again = page.locator('plexus-session #start-again', { hasText: 'Start mortal again and continue' });
  await again.waitFor();
  await judge(page, 'session-ended');
  await again.click();
  await page.locator('plexus-session #prompt').fill('echo it-goes-on');
  await page.keyboard.press('Enter');
  await said(page, 'it-goes-on');
  await page.locator('plexus-session #session-state[state="idle"]').waitFor();
  ok('session: after its agent died, the agent is restarted from the composer and prompted at once');

  // --- the palette and the keys ---------------------------------------------------------------------------------------------------------
  await page.keyboard.press('Control+k');
  await page.locator('plexus-palette input').waitFor();
  await judge(page, 'palette', false);
  await page.locator('plexus-palette input').fill('flaky');
  await page.locator('plexus-palette .one[aria-selected="true"]', { hasText: 'Fix the flaky test' }).waitFor();
  await page.keyboard.press('Enter');
  await page.locator('plexus-session h1', { hasText: 'Fix the flaky test' }).waitFor();
  await visit(page, '#/inbox');
  await heading('Inbox');
  await page.keyboard.press('?');
  await page.locator('plexus-help dialog[open]').waitFor();
  await judge(page, 'help', false);
  await page.keyboard.press('Escape');
  const theme = (/** @type {string | undefined} */ name) => page.waitForFunction((wanted) => document.documentElement.dataset['theme'] === wanted, name);
  // Each is alone: several letters in a row are text.
  for (const name of ['light', 'dark', undefined]) { await page.keyboard.press('t'); await theme(name); }
  ok('keys: the palette finds a session, ? shows the keys, t changes the theme');

  // --- no network, said plainly; then back ------------------------------------------------------------------------------------------------
  await visit(page, `#/s/${id}`);
  await said(page, 'after-the-answer');
  const known = (/** @type {string} */ one) => !has('/v1/push') && one.includes('/v1/push');
  assert.deepEqual(seen.complaints.filter((one) => !known(one)), []);
  assert.deepEqual(otherSeen.complaints, []);
  await context.setOffline(true);
  await page.locator('#stale', { hasText: 'Last updated at' }).waitFor();
  await judge(page, 'offline');
  await api('POST', `/v1/sessions/${id}/prompt`, { text: 'echo while-you-were-away' });
  await context.setOffline(false);
  await live(page);
  await page.locator('#stale').waitFor({ state: 'detached' });
  await said(page, 'while-you-were-away');
  ok('connection: a loss is shown with the time of the last state; missed events arrive afterwards');

  // --- a reload shows the same, still signed in ------------------------------------------------------------------------------------------
  await page.reload();
  await live(page);
  await said(page, 'while-you-were-away');
  ok('reload: shows the same, still signed in');

  // `plexus open` again, in a browser that is in already: no second device, and a bad link puts nobody out.
  const many = (await api('GET', '/v1/devices')).devices.length;
  await page.goto(`${base}/#code=${encodeURIComponent((await api('POST', '/v1/codes', { scopes: ['watch', 'prompt', 'approve', 'admin'], ttl: 120 })).code)}`);
  await heading('Inbox');
  await live(page);
  assert.equal((await api('GET', '/v1/devices')).devices.length, many);
  await page.goto(`${base}/#share=nothing-that-is-a-token`);
  await page.locator('plexus-say .toast', { hasText: 'does not work' }).waitFor();
  await live(page);
  ok('sign-in: a signed-in browser needs no second device, and a bad link signs nobody out');

  const elsewhere = seen.asked.filter((u) => !u.startsWith(`${base}/`) && !u.startsWith('data:') && !u.startsWith('blob:') && u !== 'about:blank');
  assert.deepEqual(elsewhere, [], 'requests that left the origin');
  assert.ok(seen.asked.every((u) => !/[?&](token|access_token|code)=/.test(u)));
  assert.ok(seen.asked.every((u) => u.startsWith('data:') || u.startsWith('blob:') || new URL(u).pathname !== '/x'), 'the image in the text was fetched');
  ok('security: no request left the origin, no secret in a URL');

  // --- out, and the code a second time ----------------------------------------------------------------------------------------------------
  const before = (await api('GET', '/v1/devices')).devices.length;
  await visit(page, '#/inbox');
  await page.locator('.rail plexus-menu button').first().click();
  await page.locator('.rail plexus-menu [role="menuitem"]', { hasText: 'Sign out' }).click();
  await page.locator('plexus-asking button[type="submit"]').click();
  await page.locator('plexus-signin h1').waitFor();
  assert.equal((await api('GET', '/v1/devices')).devices.length, before - 1, 'the device is gone');
  await page.locator('plexus-card, .row').first().waitFor({ state: 'detached' });
  // The connection may report the removed device before the response removes the cookie.
  await until('no cookie', async () => (await context.cookies(base)).every((c) => !/plexus/.test(c.name)));
  ok('sign-out: nothing is left on the page, and the device is removed');
  await page.goto(`${base}/?again#code=${encodeURIComponent(code)}`);
  await page.locator('plexus-signin #note', { hasText: 'not accepted' }).waitFor();
  assert.ok(!page.url().includes('code='));
  ok('sign-in: a code works once');
  assert.deepEqual(seen.dialogs, []);
  await settled(page);
  assert.deepEqual(faults, []);
} catch (error) {
  failed = true;
  console.error('not ok', error);
  if (shots && page) await page.screenshot({ path: join(shots, 'failure.png') }).catch(() => {});
} finally {
  await kit.close();
}
process.exit(failed ? 1 : 0);
