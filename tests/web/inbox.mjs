// The inbox in a real browser against a real gateway with the runtime `demo`: rows and the open card, groups, several answers at once, a
// thousand requests, and the answers of a phone. What must exist in large numbers is inserted into the page's WebSocket.
//
// What it is told is in card_kit.mjs and kit.mjs. Prints `ok ..` for each story; the first that does not hold ends it with exit code 1.
import assert from 'node:assert/strict';
import { ARMED_MS, DESK, PHONE, answerOf, api, armed, ask, base, cardOf, clear, closed, device, enter, fromMenu, go, launch, play, press, prompt, quiet, request, requests, rowOf, saysOnce, session, shoot, shown, toRows, until } from './card_kit.mjs';
import { axe, fits } from './kit.mjs';

const browser = await launch();
/** A page, and what puts messages of a gateway before it. */
async function open(options) {
  const context = await browser.newContext(options);
  const put = { now: (/** @type {object} */ message) => void message };
  await context.routeWebSocket(/\/v1\/ws/, (socket) => {
    const server = socket.connectToServer();
    socket.onMessage((message) => server.send(message));
    server.onMessage((message) => socket.send(message));
    put.now = (message) => socket.send(JSON.stringify(message));
  });
  return { page: await enter(context), put: (/** @type {object} */ message) => put.now(message) };
}
const { page: desk, put: putDesk } = await open(DESK);
const { page: phone, put: putPhone } = await open(PHONE);
const other = await device('kitchen tablet', ['watch', 'approve']);

let serial = 0;
const ALLOW = [{ id: 'allow_always', label: 'Always', kind: 'allow_always' }, { id: 'allow_once', label: 'Yes', kind: 'allow_once' }, { id: 'reject_once', label: 'No', kind: 'reject_once' }];
/** A request that only the pages know of. */
function made(more = {}) {
  const n = serial++;
  return {
    request_id: `r_made_${n}`, session_id: 's_made', run_id: 'r_1', runtime_id: 'demo', type: 'permission', state: 'open', title: '', display: `make target-${n}`, warnings: [], risk: 'low', risk_reasons: ['only reads'],
    subject: { type: 'command', argv: [`make target-${n}`] }, revision: 0, generation: 1, digest: `d${n}`, options: ALLOW, allow_reason: false, allow_remember: false, opened_at: new Date(Date.now() - n * 1000).toISOString(), ...more,
  };
}
const event = (/** @type {any} */ one, kind = 'request_opened', body = one) => ({ jsonrpc: '2.0', method: 'agent.event', params: { session_id: one.session_id, run_id: 'r_1', seq: 0, at: one.opened_at, kind, event: body, meta: { runtime_id: 'demo', dialect: 'acp' } } });
const resolved = (/** @type {any} */ one) => event(one, 'request_resolved', { request_id: one.request_id, state: 'answered', ok: true, resolved_by: { device_id: 'd_x', name: 'Somebody' }, at: new Date().toISOString() });
const rows = (page) => page.locator('plexus-requests [role="row"]');
/** The rows that are whole and not covered, with their heights. */
const inSight = (page) => page.evaluate(() => {
  const list = window['deep']('plexus-requests').shadowRoot;
  const box = list.querySelector('.scroller').getBoundingClientRect();
  return [...list.querySelectorAll('[role="row"]')].map((row) => row.getBoundingClientRect()).filter((row) => row.top >= box.top - 0.5 && row.bottom <= Math.min(box.bottom, innerHeight) + 0.5).map((row) => row.height);
});
const at = (page) => page.evaluate(() => {
  let one = document.activeElement;
  while (one?.shadowRoot?.activeElement) one = one.shadowRoot.activeElement;
  return one?.dataset['request'] ?? (one?.hasAttribute('data-group') ? 'group' : one?.localName);
});
const opened = (page) => page.evaluate(() => window['deep']('plexus-requests').opened);
/** Until everything that the pages were told of is gone again. */
async function forget(all) {
  for (const one of all) for (const put of [putDesk, putPhone]) put(resolved(one));
  for (const page of [desk, phone]) {
    await go(page, '#/devices');
    await page.locator('plexus-devices').waitFor();
    await go(page, '#/inbox');
    await page.locator('plexus-inbox .empty').waitFor();
  }
}
/** Somebody else's answer. */
const elsewhere = (request_id, answer) => fetch(`${base}/v1/requests/${request_id}/answer`, { method: 'POST', headers: { Authorization: `Bearer ${other.token}`, 'Content-Type': 'application/json' }, body: JSON.stringify(answer) });
/** The button of the dialog, once it takes a press. */
const ready = async (page) => {
  const button = page.locator('plexus-many #go[aria-disabled="false"]');
  await button.waitFor();
  return button;
};

const stories = {
  async 'twelve rows on a desk with a card open, seven on a phone with none, and no row changes its height'() {
    await clear();
    const all = Array.from({ length: 40 }, (_, n) => made(n % 3 ? {} : { display: `${'very long '.repeat(400)}${n}`, subject: undefined }));
    for (const put of [putDesk, putPhone]) put(event(all[0]));
    // The first one, alone, opens by itself.
    await phone.locator('plexus-requests .steps button').last().tap();
    for (const one of all.slice(1)) for (const put of [putDesk, putPhone]) put(event(one));
    await phone.locator('plexus-requests .pane').waitFor({ state: 'hidden' });
    for (const page of [desk, phone]) await rows(page).nth(12).waitFor();
    await desk.locator('plexus-card article').waitFor();
    const [many, few] = [await inSight(desk), await inSight(phone)];
    console.log(`rows in sight: ${many.length} on a desk of ${DESK.viewport.height} px beside an open card, ${few.length} on a phone of ${PHONE.viewport.height} px`);
    assert.ok(many.length >= 12, `${many.length} rows on a desk`);
    assert.ok(few.length >= 7, `${few.length} rows on a phone`);
    assert.equal(new Set(many).size, 1, 'all rows have one height');
    await shoot(desk, 'inbox-rows');
    await shoot(phone, 'inbox-rows');
    const more = Array.from({ length: 20 }, () => made());
    for (const one of more) putDesk(event(one));
    await desk.locator('#count', { hasText: '60' }).waitFor();
    assert.deepEqual(await inSight(desk), many, 'what comes changes no row');
    // An open card is a sheet over the rows.
    await rows(phone).nth(1).locator('.words').tap();
    await phone.locator('plexus-card:not([hidden]) article').waitFor();
    const sheet = await phone.locator('plexus-requests .pane').boundingBox();
    assert.ok(sheet.height > 600 && sheet.width === 390, `the sheet is full: ${JSON.stringify(sheet)}`);
    await phone.locator('plexus-requests .steps button').last().tap();
    await phone.locator('plexus-requests .pane').waitFor({ state: 'hidden' });
    await forget([...all, ...more]);
  },

  async 'j and k move, the open card follows, and every row can be reached'() {
    const all = Array.from({ length: 30 }, () => made());
    for (const one of all) putDesk(event(one));
    await rows(desk).nth(10).waitFor();
    await desk.keyboard.press('j');
    assert.equal(await at(desk), all[0].request_id, 'the first step goes to the row whose card is open');
    await desk.keyboard.press('j');
    await until('the second', async () => (await at(desk)) === all[1].request_id);
    assert.equal(await opened(desk), all[1].request_id);
    await desk.keyboard.press('k');
    await until('the first', async () => (await at(desk)) === all[0].request_id);
    await desk.keyboard.press('End');
    await until('the last', async () => (await at(desk)) === all[29].request_id);
    assert.equal(await opened(desk), all[29].request_id);
    const last = rowOf(desk, all[29].request_id);
    assert.deepEqual([await last.getAttribute('aria-posinset'), await last.getAttribute('aria-setsize'), await last.getAttribute('aria-rowindex')], ['30', '30', '30']);
    // Enter leads into the card, and answers nothing; Escape leads back.
    await desk.keyboard.press('Enter');
    await until('the card', async () => (await at(desk)) === all[29].request_id && (await desk.evaluate(() => window['deep']('article:focus') !== null)));
    await desk.keyboard.press('Escape');
    await until('its row', async () => (await desk.evaluate(() => window['deep']('[role="row"]:focus') !== null)));
    await armed(cardOf(desk, all[29].request_id));
    await axe(desk, 'inbox by keyboard');
    await forget(all);
  },

  async 'the keys answer the request of the row that has the focus'() {
    await clear();
    const asked = await ask('ask touch by-row.txt');
    const next = await ask('ask touch next.txt');
    const card = await shown(desk, asked.request_id);
    await rowOf(desk, asked.request_id).locator('.words').click();
    await until('its row has the focus', async () => (await at(desk)) === asked.request_id);
    // The keys wait for a moment after a card, or its row, got the focus.
    await desk.waitForTimeout(ARMED_MS);
    await desk.keyboard.press('a');
    await closed(card, 'Allowed once · you');
    await saysOnce(asked.session_id, 'allowed (allow_once): touch by-row.txt');
    // On a row that is answered the keys mean nothing, also not a new session.
    await desk.keyboard.press('d');
    await desk.waitForTimeout(ARMED_MS);
    assert.equal(await desk.evaluate(() => location.hash), '#/inbox');
    await desk.keyboard.press('j');
    await until('the next', async () => (await at(desk)) === next.request_id);
    await desk.waitForTimeout(ARMED_MS);
    await desk.keyboard.press('d');
    await until('it is denied', async () => (await request(next.request_id)).receipt?.option_id === 'reject_once');
    await clear();
  },

  async 'what was typed in a card is still there after another one was open'() {
    const asked = await ask('edit touch kept.txt');
    const second = await ask('ask touch second.txt');
    const card = await shown(desk, asked.request_id);
    await fromMenu(card, 'edit');
    await card.locator('.edit').fill('touch other.txt');
    await shown(desk, second.request_id);
    assert.equal(await cardOf(desk, asked.request_id).isVisible(), false, 'one card is open');
    await shown(desk, asked.request_id);
    assert.equal(await card.locator('.edit').inputValue(), 'touch other.txt');
    await clear();
  },

  async 'the same command of several sessions is a group, which is folded and selected as one'() {
    await clear();
    await desk.mouse.move(0, 0);
    const same = [];
    for (let n = 0; n < 3; n++) same.push(await ask('ask touch same.txt'));
    const single = await ask('ask touch single.txt');
    // What comes while the list is used stands last; from the start the same stands together.
    await go(desk, '#/devices');
    await go(desk, '#/inbox');
    const head = desk.locator('[role="row"][data-group]', { hasText: 'touch same.txt' });
    await head.locator('.count', { hasText: '3 requests' }).waitFor();
    assert.equal(await head.getAttribute('aria-expanded'), 'true');
    await rowOf(desk, same[0].request_id).waitFor();
    await shoot(desk, 'inbox-groups');
    await head.locator('.words').click();
    await rowOf(desk, same[0].request_id).waitFor({ state: 'detached' });
    assert.equal(await head.getAttribute('aria-expanded'), 'false');
    await desk.keyboard.press('a');
    await desk.waitForTimeout(ARMED_MS);
    await desk.keyboard.press('x');
    await desk.locator('.bar', { hasText: '3 selected' }).waitFor();
    for (const one of same) assert.equal((await request(one.request_id)).state, 'open', 'a group has no answer of its own');
    await desk.keyboard.press('ArrowRight');
    await rowOf(desk, same[2].request_id).waitFor();
    await desk.keyboard.press('Escape');
    await desk.locator('#groups').selectOption('session');
    await head.waitFor({ state: 'detached' });
    await desk.locator('#groups').selectOption('command');
    await head.waitFor();
    assert.equal(await rowOf(desk, single.request_id).getAttribute('aria-level'), '1');
    await clear();
  },

  async 'several are allowed at once: those of low and elevated risk that were read, each with its own digest'() {
    await clear();
    const read = [await ask('ask touch one.txt'), await ask('ask touch two.txt'), await ask('ask touch three.txt')];
    const danger = await ask('ask rm -rf /');
    const unread = await ask(`ask printf ${Array.from({ length: 60 }, (_, n) => `line-${n}`).join('\n')}`);
    for (const one of [...read, danger, unread]) await armed(await shown(desk, one.request_id));
    for (const one of read) await desk.locator(`[role="row"][data-request="${one.request_id}"]:not([data-unread])`).waitFor();
    await desk.locator('#all').check();
    await desk.locator('#allow', { hasText: 'Allow 3 of 5' }).waitFor();
    // With a selection, the key of a row means all of it, and only asks.
    await rowOf(desk, danger.request_id).focus();
    await desk.evaluate(() => {
      const look = () => {
        const button = window['deep']('#go');
        if (button) button.click();
        else requestAnimationFrame(look);
      };
      look();
    });
    await desk.keyboard.press('a');
    const dialog = desk.locator('plexus-many');
    await dialog.locator('h3', { hasText: '2 left out' }).waitFor();
    await dialog.locator('summary', { hasText: '1 dangerous' }).waitFor();
    await dialog.locator('summary', { hasText: '1 not read to the end' }).waitFor();
    assert.equal(await dialog.getByText('rm -rf /').isVisible(), false, 'what is left out is folded');
    // It takes a press once it has stood there for a moment, and Enter never allows.
    await dialog.locator('.say', { hasText: 'just appeared' }).waitFor();
    assert.equal((await request(read[0].request_id)).state, 'open');
    const button = await ready(desk);
    assert.equal((await button.textContent())?.trim(), 'Allow 3 once');
    await axe(desk, 'several at once');
    await shoot(desk, 'inbox-several');
    await button.focus();
    await desk.keyboard.press('Enter');
    await dialog.locator('.say', { hasText: 'Enter never allows' }).waitFor();
    for (const one of read) assert.equal((await request(one.request_id)).state, 'open');
    /** @type {{key: string, body: any, id: string}[]} */ const sent = [];
    await desk.route('**/answer', async (route) => {
      const [, id = ''] = /requests\/([^/]+)\/answer/.exec(route.request().url()) ?? [];
      sent.push({ id, key: route.request().headers()['idempotency-key'], body: route.request().postDataJSON() });
      // One of them is answered by somebody else just before.
      if (id === read[1].request_id) assert.equal((await elsewhere(id, { option_id: 'reject_once' })).status, 200);
      await route.continue();
    });
    await (await ready(desk)).click();
    await dialog.locator('h3', { hasText: '1 was answered before' }).waitFor();
    await dialog.locator('li', { hasText: 'touch two.txt' }).locator('small', { hasText: 'Denied by kitchen tablet' }).waitFor();
    await dialog.locator('h2', { hasText: 'Allowed 2 requests. 1 not.' }).waitFor();
    await shoot(desk, 'inbox-several-done');
    await desk.unroute('**/answer');
    assert.deepEqual(sent.map(({ id, body }) => [id, body]).sort(), read.map((one) => [one.request_id, { option_id: 'allow_once', digest: one.digest }]).sort());
    assert.ok(sent.every((one) => one.key) && new Set(sent.map((one) => one.key)).size === 3, 'a key for each');
    for (const [one, words] of /** @type {const} */ ([[read[0], 'allowed (allow_once): touch one.txt'], [read[1], 'rejected (reject_once): touch two.txt'], [read[2], 'allowed (allow_once): touch three.txt']])) await saysOnce(one.session_id, words);
    for (const one of [danger, unread]) assert.equal((await request(one.request_id)).state, 'open', 'what was left out is open');
    await dialog.locator('#close').click();
    await clear();
  },

  async 'the dialog of fifty keeps its buttons and what will happen in view, at any size'() {
    await clear();
    const safe = Array.from({ length: 5 }, () => made());
    const left = Array.from({ length: 45 }, (_, n) => made({ risk: 'danger', risk_reasons: ['deletes'], display: `psql -c "DROP TABLE users_${n}"`, subject: { type: 'command', argv: [`psql -c "DROP TABLE users_${n}"`] } }));
    for (const one of safe) putDesk(event(one));
    for (const one of safe) { await armed(await shown(desk, one.request_id)); await desk.locator(`[role="row"][data-request="${one.request_id}"]:not([data-unread])`).waitFor(); }
    for (const one of left) putDesk(event(one));
    const all = [...safe, ...left];
    await desk.locator('#count', { hasText: '50' }).waitFor();
    await desk.locator('#all').check();
    await desk.locator('#allow').click();
    const dialog = desk.locator('plexus-many');
    for (const [width, height] of [[1440, 900], [720, 450], [390, 844], [320, 568]]) {
      await desk.setViewportSize({ width, height });
      await ready(desk);
      const view = await desk.evaluate(() => {
        const many = window['deep']('plexus-many').shadowRoot;
        const body = many.querySelector('plexus-dialog').shadowRoot.querySelector('.body');
        const inside = (el) => { const box = el.getBoundingClientRect(); return box.top >= 0 && box.bottom <= innerHeight && box.height > 0; };
        return { scrolled: body.scrollTop, go: inside(many.querySelector('#go')), cancel: inside(many.querySelector('#cancel')), first: inside(many.querySelector('.will li')), title: many.querySelector('plexus-dialog').shadowRoot.querySelector('h2').textContent };
      });
      assert.deepEqual(view, { scrolled: 0, go: true, cancel: true, first: true, title: 'Allow 5 requests once?' }, `${width}x${height}`);
      await shoot(desk, `inbox-fifty-${height}`);
    }
    assert.equal(await dialog.locator('summary').count(), 1, 'one line for each reason');
    await desk.setViewportSize(DESK.viewport);
    await dialog.locator('#cancel').click();
    await desk.keyboard.press('Escape');
    await desk.locator('.bar .clear').click().catch(() => {});
    await forget(all);
  },

  async 'all are denied at once, on a phone; what somebody answered meanwhile is left out'() {
    await clear();
    const all = [await ask('ask touch one.txt'), await ask('ask rm -rf /'), await ask('ask touch two.txt')];
    for (const one of all) await rowOf(phone, one.request_id).waitFor();
    await toRows(phone);
    for (const one of all) await rowOf(phone, one.request_id).locator('.tick').tap();
    await phone.locator('#deny', { hasText: 'Deny 3' }).tap();
    const dialog = phone.locator('plexus-many');
    await dialog.locator('#go', { hasText: 'Deny 3' }).waitFor();
    assert.equal((await elsewhere(all[0].request_id, { option_id: 'allow_once', digest: all[0].digest })).status, 200);
    await dialog.locator('#go', { hasText: 'Deny 2' }).waitFor();
    await dialog.locator('summary', { hasText: '1 no longer open' }).waitFor();
    await shoot(phone, 'inbox-deny');
    await fits(phone, PHONE.viewport.width, PHONE.viewport.height, 'several at once, on a phone');
    await (await ready(phone)).tap();
    await phone.locator('plexus-say .toast', { hasText: 'Denied 2 requests.' }).waitFor();
    for (const one of all.slice(1)) assert.equal((await request(one.request_id)).receipt.option_id, 'reject_once');
    await clear();
  },

  async 'what changed after it was read is not allowed together'() {
    await clear();
    const one = made();
    const two = made();
    for (const each of [one, two]) putDesk(event(each));
    for (const each of [one, two]) {
      await armed(await shown(desk, each.request_id));
      await desk.locator(`[role="row"][data-request="${each.request_id}"]:not([data-unread])`).waitFor();
    }
    await desk.locator('#all').check();
    await desk.locator('#allow', { hasText: 'Allow 2…' }).click();
    await (await ready(desk)).waitFor();
    const changed = { ...one, display: 'make other', subject: { type: 'command', argv: ['make other'] }, revision: 1, changed: true, digest: 'another' };
    putDesk(event(one, 'request_updated', changed));
    const dialog = desk.locator('plexus-many');
    await dialog.locator('#go', { hasText: 'Allow 1 once' }).waitFor();
    await dialog.locator('summary', { hasText: '1 changed since you selected it' }).waitFor();
    await dialog.locator('#cancel').click();
    await desk.locator('#allow', { hasText: 'Allow 1 of 2' }).waitFor();
    await desk.locator(`[role="row"][data-request="${one.request_id}"][data-unread]`).waitFor();
    // Shown again it is read at once, but it changed under the eyes: it counts once that was confirmed.
    const card = await shown(desk, one.request_id);
    await card.locator('.changed').waitFor();
    await armed(card);
    await desk.locator(`[role="row"][data-request="${one.request_id}"][data-unread]`).waitFor();
    await rowOf(desk, one.request_id).focus();
    await desk.keyboard.press('c');
    await desk.locator(`[role="row"][data-request="${one.request_id}"]:not([data-unread])`).waitFor();
    await desk.locator('#allow', { hasText: 'Allow 2…' }).waitFor();
    await desk.locator('.bar .clear').click();
    await forget([changed, two]);
  },

  async 'a thousand open requests: few rows are drawn, all are reached, and nothing takes long'() {
    await go(desk, '#/devices');
    const all = Array.from({ length: 1_000 }, (_, n) => made({ opened_at: new Date(Date.now() - n * 1000).toISOString() }));
    for (const one of all) putDesk(event(one));
    await desk.locator('.nav .count', { hasText: /1,?000|999/ }).first().waitFor({ state: 'attached' });
    await desk.evaluate(() => {
      window['long'] = [];
      new PerformanceObserver((list) => window['long'].push(...list.getEntries().map((entry) => Math.round(entry.duration)))).observe({ type: 'longtask' });
    });
    await go(desk, '#/inbox');
    await desk.locator('[aria-setsize="1000"]').first().waitFor();
    const drawn = () => rows(desk).count();
    assert.ok((await drawn()) < 60, `${await drawn()} rows are drawn`);
    assert.equal(await desk.locator('plexus-requests .rows').getAttribute('aria-rowcount'), '1000');
    await desk.keyboard.press('j');
    await desk.keyboard.press('End');
    await until('the last row', async () => (await at(desk)) === all[999].request_id);
    await desk.keyboard.press('Home');
    await until('the first row', async () => (await at(desk)) === all[0].request_id);
    const scroller = desk.locator('plexus-requests .scroller');
    for (let n = 0; n <= 20; n++) await scroller.evaluate((el, part) => new Promise((done) => { el.scrollTop = el.scrollHeight * part; requestAnimationFrame(() => requestAnimationFrame(done)); }), n / 20);
    assert.ok((await drawn()) < 62);
    assert.equal(await at(desk), all[0].request_id, 'the row that has the focus keeps it, out of sight');
    await scroller.evaluate((el) => { el.scrollTop = 0; });
    for (let n = 0; n < 200; n++) putDesk(event(made({ session_id: `s_${n}` })));
    await desk.locator('plexus-requests .new button', { hasText: '200 new requests below' }).waitFor();
    assert.ok((await drawn()) < 62);
    await desk.locator('#all').check();
    await desk.locator('.bar', { hasText: '1,200 selected' }).waitFor();
    await desk.keyboard.press('Escape');
    const long = await desk.evaluate(() => window['long']);
    console.log(`a thousand requests: ${await drawn()} rows drawn; long tasks (ms): ${long.length ? long.join(' ') : 'none'}`);
    await shoot(desk, 'inbox-thousand');
    await desk.reload();
    await desk.locator('plexus-inbox .empty').waitFor();
  },

  async 'on a phone the answers are whole and in sight, in the inbox and in a session'() {
    await clear();
    const id = await session();
    await prompt(id, `ask printf ${Array.from({ length: 60 }, (_, n) => `line-${n}`).join('\n')}`);
    const [asked] = await requests(id);
    const whole = async (/** @type {string} */ where) => {
      const card = cardOf(phone, asked.request_id);
      await card.locator('.answers').waitFor();
      const { height } = /** @type {any} */ (phone.viewportSize());
      for (const which of ['deny', 'allow']) {
        const box = await answerOf(card, which).boundingBox();
        assert.ok(box && box.y >= 0 && box.y + box.height <= height && box.height >= 52 && box.width >= 80, `${where}: ${which} ${JSON.stringify(box)}`);
        const on = await answerOf(card, which).evaluate((button) => {
          const { x, y, width, height } = button.getBoundingClientRect();
          const root = /** @type {ShadowRoot} */ (button.getRootNode());
          return [[0.5, 0.5], [0.1, 0.1], [0.9, 0.9]].every(([a, b]) => root.elementFromPoint(x + width * a, y + height * b)?.closest('button, plexus-hold') === button);
        });
        assert.ok(on, `${where}: ${which} is covered`);
      }
      const [deny, allow] = await Promise.all(['deny', 'allow'].map((which) => answerOf(card, which).boundingBox()));
      assert.equal(Math.round(deny.y), Math.round(allow.y), `${where}: side by side`);
      assert.equal(await answerOf(card, 'option:allow_always').count(), 0, 'what lasts is in the menu');
      if (where.startsWith('inbox')) assert.ok(allow.y > height * 0.6, `${where}: ${allow.y} is in the reach of a thumb`);
    };
    for (const [width, height] of [[390, 844], [320, 568], [390, 500]]) {
      await phone.setViewportSize({ width, height });
      await go(phone, '#/inbox');
      await shown(phone, asked.request_id);
      await whole(`inbox at ${width}x${height}`);
      await go(phone, `#/s/${id}`);
      await phone.locator('plexus-session plexus-card').waitFor();
      await whole(`session at ${width}x${height}`);
      if (height !== 500) await shoot(phone, `session-asked-${height}`);
      // The sheet goes down to a row, and the field below it is one line.
      await phone.locator('plexus-dock .sheet button').tap();
      const field = await phone.locator('plexus-composer .box-in').boundingBox();
      assert.ok(field && field.height < 60, `the field is one line: ${field?.height}`);
    }
    await phone.setViewportSize(PHONE.viewport);
    // Once the field is used it has all of its parts.
    await phone.locator('plexus-composer textarea').tap();
    await phone.locator('plexus-composer #send').waitFor();
    await phone.locator('plexus-composer textarea').fill('later');
    await phone.locator('plexus-session h1').tap();
    await phone.locator('plexus-composer #send').waitFor();
    await phone.locator('plexus-composer textarea').fill('');
    // A keyboard that covers the page, as Safari's does: all of it stands above.
    await phone.evaluate(() => {
      Object.defineProperty(visualViewport, 'height', { configurable: true, get: () => innerHeight - 300 });
      visualViewport?.dispatchEvent(new Event('resize'));
    });
    await phone.waitForFunction(() => document.querySelector('plexus-app').getBoundingClientRect().bottom <= innerHeight - 299);
    const composer = await phone.locator('plexus-composer').boundingBox();
    assert.ok(composer && composer.y + composer.height <= 844 - 299, 'nothing lies under the keyboard');
    await phone.evaluate(() => { delete visualViewport['height']; visualViewport?.dispatchEvent(new Event('resize')); });
    await go(phone, '#/inbox');
    await clear();
  },

  async 'new and answered requests are announced, several in one sentence'() {
    await clear();
    const heard = () => desk.evaluate(() => window['deep']('plexus-say').shadowRoot.querySelector('[aria-live="polite"]').textContent);
    const asked = await ask('ask touch heard.txt');
    await rowOf(desk, asked.request_id).waitFor();
    const all = Array.from({ length: 5 }, () => made());
    for (const one of all) putDesk(event(one));
    await until('the new ones', async () => /[2-6] new requests/.test((await heard()) ?? ''));
    await shown(desk, all[0].request_id);
    assert.equal((await elsewhere(asked.request_id, { option_id: 'reject_once' })).status, 200);
    await until('who answered', async () => /Denied by kitchen tablet: touch heard.txt/.test((await heard()) ?? ''));
    await forget(all);
  },

  async 'no page complained'() {
    quiet();
  },
};

await play(Object.entries(stories), browser);
