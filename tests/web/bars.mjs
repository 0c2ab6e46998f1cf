// The decision bar in a real browser: its height, its words whatever an agent calls its answers, the second step of what lasts, forms, and
// twenty requests answered one by one. The gateway is real; the requests are inserted into the page's WebSocket, and the answers recorded.
//
// What it is told is in card_kit.mjs. Prints `ok ..` for each story; the first that does not hold ends it with exit code 1.
import assert from 'node:assert/strict';
import { ARMED_MS, DESK, PHONE, answerOf, api, armed, ask as asks, cardOf, clear, closed, enter, fromMenu, go, launch, play, press, quiet, rowOf, shoot, until } from './card_kit.mjs';
import { axe, fits } from './kit.mjs';

const browser = await launch();
/** @type {{id: string, body: any}[]} */ const answers = [];
/** A page, what puts messages of a gateway before it, and its answers, which end here. */
async function open(options, grant = {}) {
  const context = await browser.newContext(options);
  const put = { now: (/** @type {object} */ message) => void message };
  await context.routeWebSocket(/\/v1\/ws/, (socket) => {
    const server = socket.connectToServer();
    socket.onMessage((message) => server.send(message));
    server.onMessage((message) => socket.send(message));
    put.now = (message) => socket.send(JSON.stringify(message));
  });
  const page = await enter(context, { grant });
  const me = await page.evaluate(async () => (await (await fetch('/v1/me')).json()).device_id);
  await page.route('**/answer', async (route) => {
    const [, id = ''] = /requests\/([^/]+)\/answer/.exec(route.request().url()) ?? [];
    const body = route.request().postDataJSON();
    answers.push({ id, body });
    const receipt = { request_id: id, state: 'answered', ok: true, ...body, resolved_by: { device_id: me, name: 'Me' }, at: new Date().toISOString() };
    await route.fulfill({ json: { ...receipt, won: true } });
    tell((message) => put.now(message), receipt, 'request_resolved');
  });
  return { page, put: (/** @type {object} */ message) => put.now(message) };
}
const { page: desk, put: putDesk } = await open(DESK);
const { page: phone, put: putPhone } = await open(PHONE);
const pages = /** @type {const} */ ([[desk, putDesk], [phone, putPhone]]);
const { session_id } = (await api('POST', '/v1/sessions', { runtime_id: 'demo', title: 'Bars' })).body;

let serial = 0;
const ALLOW = [{ id: 'always', label: 'Always', kind: 'allow_always' }, { id: 'yes', label: 'Allow once', kind: 'allow_once' }, { id: 'no', label: 'Deny', kind: 'reject_once' }];
const made = (more = {}) => {
  const n = serial++;
  return {
    request_id: `r_bar_${n}`, session_id, run_id: 'r_1', runtime_id: 'gemini', type: 'permission', state: 'open', title: '', display: `npm test -- ${n}\nin /home/me/src/billing-api`, warnings: [], risk: 'elevated',
    risk_reasons: ['runs code from this folder'], subject: { type: 'command', argv: [`npm test -- ${n}`] }, revision: 0, generation: 1, digest: `d${n}`, options: ALLOW, allow_reason: false, allow_remember: false,
    opened_at: new Date(Date.now() - 9_000).toISOString(), ...more,
  };
};
const tell = (put, one, kind = 'request_opened', body = one) => put({ jsonrpc: '2.0', method: 'agent.event', params: { session_id, run_id: 'r_1', seq: 0, at: new Date().toISOString(), kind, event: body, meta: { runtime_id: 'demo', dialect: 'acp' } } });
/** Asks on a page, on a card of its own. */
async function ask(page, put, more = {}) {
  const one = made(more);
  tell(put, one);
  await go(page, `#/r/${one.request_id}`);
  const card = cardOf(page, one.request_id);
  await armed(card);
  return { one, card };
}
const end = (put, one) => tell(put, one, 'request_resolved', { request_id: one.request_id, state: 'withdrawn', resolved_by: { device_id: 'gateway', name: '' }, at: new Date().toISOString() });
const heightOf = async (locator) => (await locator.boundingBox()).height;
/** The text of each answer, without its key and the agent's label. */
const verbs = (card) => card.locator('.answers > :is(button, plexus-hold)').evaluateAll((all) => all.map((one) => (one.shadowRoot ?? one).querySelector('strong')?.textContent?.replace(/[ad1-9]$|Holding…/, '').trim()));
/** The elements that Tab reaches in the bar, in order. */
async function tabbed(page, card) {
  await card.evaluate((article) => article.focus());
  const found = [];
  for (let n = 0; n < 8; n++) {
    await page.keyboard.press('Tab');
    found.push(await page.evaluate(() => {
      let at = document.activeElement;
      let action = '';
      while (at) {
        action ||= at.dataset?.action ?? (at.localName === 'plexus-menu' ? 'menu' : '');
        at = at.shadowRoot?.activeElement ?? null;
      }
      return action;
    }));
  }
  return found.filter(Boolean);
}
const HOSTILE = [
  { id: '1', label: 'Reject', kind: 'allow_once' },
  { id: '2', label: 'Deny this, and stop asking', kind: 'allow_always' },
  { id: '3', label: 'Allow just this once', kind: 'reject_once' },
  { id: '4', label: 'x'.repeat(200), kind: 'allow_once' },
  { id: '5', label: '', kind: 'reject_always' },
  { id: '6', label: 'Deny', kind: 'other' },
  { id: '7', label: '\u202eyneD', kind: 'allow_once' },
];
const QUESTIONS = [
  { id: 'database', text: 'Which database?', options: [{ id: 'p', label: 'PostgreSQL' }, { id: 's', label: 'SQLite' }], multiple: false, free_text: false },
  { id: 'extras', text: 'Extras', header: 'up to 2', options: [{ id: 'm', label: 'migrations' }, { id: 'e', label: 'seed' }, { id: 'b', label: 'backup' }], multiple: true, free_text: false, optional: true, fits: { most: 2 } },
  { id: 'port', text: 'Port', options: [], multiple: false, free_text: true, fits: { number: 'integer', least: 1 } },
  { id: 'name', text: 'Name of the project', options: [], multiple: false, free_text: true },
];
const FORM = { runtime_id: 'opencode', type: 'elicitation', options: [], display: 'A JSON object with "database" (one of "postgres", "sqlite") and more', risk_reasons: ['tells the agent something'], subject: { type: 'question', questions: QUESTIONS } };

const stories = {
  async 'a command takes 96 px on a desk, in the inbox, in a session and alone, with its reason whole'() {
    const one = await asks('ask npm test -- --watch=false');
    const card = cardOf(desk, one.request_id);
    const places = { alone: `#/r/${one.request_id}`, inbox: '#/inbox', session: `#/s/${one.session_id}` };
    for (const [place, hash] of Object.entries(places)) {
      await go(desk, hash);
      await armed(card);
      const height = await heightOf(card);
      assert.ok(height <= 96, `${place}: ${height} px`);
      const why = await card.locator('.why').evaluate((el) => el.textContent?.replace(/\s+/g, ' ').trim());
      assert.equal(why, `Elevated ${one.risk_reasons.join('; ')}`, place);
      await shoot(desk, `bar-${place}`);
    }
    assert.equal(await card.locator('pre').textContent(), 'npm test -- --watch=false');
    await clear();
    await closed(card, 'Denied');
    assert.ok((await heightOf(card)) <= 34, 'an answered card is one line');
  },

  async 'the folder that a request names stands among the facts, whole in its title, and not in the command'() {
    const { one, card } = await ask(desk, putDesk);
    assert.equal(await card.locator('.folder').getAttribute('title'), '/home/me/src/billing-api');
    assert.equal(await card.locator('pre').textContent(), one.display.replace(/\nin .*/, ''));
    end(putDesk, one);
  },

  async 'Tab reaches allow once, deny and the menu, in this order; what lasts is in the menu'() {
    const { one, card } = await ask(desk, putDesk);
    assert.deepEqual((await tabbed(desk, card)).slice(0, 3), ['option:yes', 'option:no', 'menu']);
    assert.deepEqual(await verbs(card), ['Allow once', 'Deny']);
    end(putDesk, one);
  },

  async 'whatever an agent calls its answers, the verbs are ours'() {
    for (const [page, put] of pages) {
      const { one, card } = await ask(page, put, { runtime_id: 'liar', options: HOSTILE });
      assert.deepEqual(await verbs(card), ['Allow once', 'Deny']);
      assert.equal(await answerOf(card, 'option:1').locator('small').textContent(), '“Reject”');
      assert.equal(await answerOf(card, 'option:3').locator('small').textContent(), '“Allow just this once”');
      const menu = card.locator('plexus-menu button[aria-haspopup]');
      await (page === phone ? menu.tap() : menu.click());
      await card.locator('plexus-menu .item').first().waitFor();
      const items = await card.locator('plexus-menu .item').allInnerTexts();
      const lines = items.map((item) => item.split('\n').filter(Boolean));
      assert.deepEqual(lines.map(([verb]) => verb), ['Allow once…', 'Allow once…', 'Answer…', 'Always allow…', 'Always deny…']);
      assert.deepEqual([lines[0][1]?.length, lines[1][1], lines[2][1], lines[3][1], lines[4][1]], [83, '“\\u{202e}yneD”', '“Deny”', '“Deny this, and stop asking”', undefined]);
      await shoot(page, 'bar-hostile');
      await page.keyboard.press('Escape');
      await fits(page, page === phone ? 390 : 1440, page === phone ? 844 : 900, 'misleading labels');
      await fits(page, 320, 568, 'misleading labels');
      await page.setViewportSize(page === phone ? PHONE.viewport : DESK.viewport);
      // The key of "deny" denies, whatever the label says.
      await press(card, 'deny');
      await closed(card, 'Denied · you');
      assert.equal(answers.at(-1)?.body.option_id, '3');
      end(put, one);
    }
  },

  async 'what lasts takes a second step, by pointer and by key, and says what it means'() {
    const { one, card } = await ask(desk, putDesk, { options: HOSTILE });
    const before = answers.length;
    await fromMenu(card, 'option:2');
    await card.locator('.step', { hasText: 'gemini would remember this and stop asking.' }).waitFor();
    await card.locator('.step', { hasText: '“Deny this, and stop asking”' }).waitFor();
    await axe(desk, 'the second step');
    await shoot(desk, 'bar-always');
    // It is guarded like a card that has just appeared.
    await answerOf(card, 'back').click();
    await fromMenu(card, 'option:2');
    await answerOf(card, 'option:2').evaluate((button) => button.click());
    await card.locator('.say', { hasText: 'just appeared' }).waitFor();
    await desk.keyboard.press('Escape');
    await answerOf(card, 'option:1').waitFor();
    await armed(card);
    await desk.keyboard.press('A');
    await card.locator('.step').waitFor();
    assert.equal(answers.length, before, 'one press of A answers nothing');
    // Other answers' keys do nothing here.
    await armed(card);
    await desk.keyboard.press('d');
    await desk.waitForTimeout(ARMED_MS);
    assert.equal(answers.length, before);
    await desk.keyboard.press('A');
    await closed(card, 'Always allowed · you');
    assert.deepEqual(answers.at(-1), { id: one.request_id, body: { option_id: '2', digest: one.digest } });
  },

  async 'danger: the second step of what lasts is held, and so is the primary answer'() {
    const { one, card } = await ask(desk, putDesk, { risk: 'danger', risk_reasons: ['deletes outside the folder'] });
    const before = answers.length;
    assert.deepEqual(await verbs(card), ['Hold to allow', 'Deny']);
    await fromMenu(card, 'option:always');
    const hold = card.locator('.step plexus-hold');
    await armed(card);
    await hold.click();
    await card.locator('.say', { hasText: 'Released too early' }).waitFor();
    assert.equal(answers.length, before);
    await shoot(desk, 'bar-danger-always');
    await armed(card);
    const { x, y, width, height } = await hold.boundingBox();
    await desk.mouse.move(x + width / 2, y + height / 2);
    await desk.mouse.down();
    await closed(card, 'Always allowed');
    await desk.mouse.up();
    assert.equal(answers.at(-1)?.body.option_id, 'always');
    end(putDesk, one);
  },

  async 'digits answer only what shows them, and never for good'() {
    const { one, card } = await ask(desk, putDesk, { options: HOSTILE });
    const before = answers.length;
    await card.evaluate((article) => article.focus());
    for (const digit of '123456789') {
      await armed(card);
      await desk.keyboard.press(digit);
      await desk.waitForTimeout(ARMED_MS);
    }
    assert.equal(answers.length, before, 'no digit is shown, so none answers');
    end(putDesk, one);
    const choice = await ask(desk, putDesk, { options: [{ id: 'a', label: 'Postgres', kind: 'other' }, { id: 'b', label: 'SQLite', kind: 'other' }, ALLOW[0]] });
    assert.deepEqual(await choice.card.locator('.answers kbd').allTextContents(), ['1', '2']);
    await choice.card.evaluate((article) => article.focus());
    // Its keys wait for a moment after the focus came, whether or not it was armed.
    await desk.waitForTimeout(ARMED_MS);
    await armed(choice.card);
    await desk.keyboard.press('2');
    await closed(choice.card, 'Answered “SQLite”');
    assert.equal(answers.at(-1)?.body.option_id, 'b');
  },

  async 'a form shows its questions: four at once on a desk, and usable at 200 % and on a small phone'() {
    const { one, card } = await ask(desk, putDesk, FORM);
    const inView = () => card.locator('fieldset.question').evaluateAll((all) => all.map((el) => { const box = el.getBoundingClientRect(); return box.top >= 0 && box.bottom <= innerHeight; }));
    assert.deepEqual(await inView(), [true, true, true, true]);
    assert.equal(await card.locator('.risk').count(), 0, 'a plain question has no badge');
    assert.equal(await card.getByText('A JSON object').isVisible(), false, 'the schema is folded');
    assert.ok((await heightOf(card)) < 360, `${await heightOf(card)} px`);
    await axe(desk, 'a form');
    await shoot(desk, 'bar-form');
    await card.locator('summary').click();
    await card.getByText('A JSON object').waitFor();
    await card.locator('summary').click();
    for (const [width, height] of [[720, 450], [390, 844], [320, 568]]) {
      await fits(desk, width, height, 'a form');
      await armed(card);
      for (const which of ['allow', 'deny']) {
        const box = await answerOf(card, which).boundingBox();
        assert.ok(box.y >= 0 && box.y + box.height <= height, `${which} at ${width}x${height}: ${JSON.stringify(box)}`);
      }
      await card.locator('fieldset.question').last().scrollIntoViewIfNeeded();
      await shoot(desk, `bar-form-${height}`);
    }
    await desk.setViewportSize(DESK.viewport);
    await desk.getByRole('radio', { name: 'SQLite' }).check();
    await desk.getByRole('textbox', { name: /Port/ }).fill('5432');
    await desk.getByRole('textbox', { name: /Name of the project/ }).fill('shop');
    await press(card, 'allow');
    await closed(card, 'Answered · you');
    assert.deepEqual(answers.at(-1)?.body.answers, { database: ['s'], port: ['5432'], name: ['shop'] });
    end(putDesk, one);
  },

  async 'on a phone a request is a sheet, and twenty are answered one by one without another press'() {
    await go(phone, '#/inbox');
    const all = Array.from({ length: 20 }, (_, n) => made(n % 4 ? {} : { risk: 'danger', risk_reasons: ['pipes the network into a shell', 'deletes outside the folder'] }));
    for (const one of all) tell(putPhone, one);
    await rowOf(phone, all[1].request_id).waitFor();
    const current = () => phone.evaluate(() => window['deep']('plexus-requests').opened);
    // One that is alone opens by itself.
    if (!(await current())) await phone.locator('[role="row"] .words').first().tap();
    const done = new Set();
    // How long it takes from a press to the next card that takes one is measured in the page: what a busy machine adds outside does not count.
    await phone.evaluate(() => {
      window['waits'] = [];
      document.addEventListener('click', (event) => {
        if (!(event.composedPath()[0] instanceof Element) || !event.composedPath().some((one) => one.localName === 'button' && one.dataset?.key === 'd')) return;
        const since = performance.now();
        const before = window['deep']('plexus-requests').opened;
        const look = () => {
          const { opened } = window['deep']('plexus-requests');
          const ready = opened !== before && window['deep'](`article[data-request="${opened}"] .actions[data-arming="false"]`);
          if (ready) window['waits'].push(Math.round(performance.now() - since));
          else if (performance.now() - since < 10_000) setTimeout(look, 5);
        };
        look();
      }, true);
    });
    for (let n = 0; n < all.length; n++) {
      const id = await current();
      assert.ok(id && !done.has(id), `the next one is there: ${id}`);
      const card = cardOf(phone, id);
      for (const [width, height] of n < 2 ? [[320, 568], [390, 844]] : []) {
        await phone.setViewportSize({ width, height });
        await armed(card);
        for (const which of ['allow', 'deny']) {
          const box = await answerOf(card, which).boundingBox();
          assert.ok(box.height >= 52 && box.y > height / 2 && box.y + box.height <= height, `${which} at ${width}x${height}: ${JSON.stringify(box)}`);
        }
        const cut = await card.locator('.answers > :is(button, plexus-hold)').evaluateAll((all) => all.map((one) => one.shadowRoot?.querySelector('button') ?? one).filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent));
        assert.deepEqual(cut, [], `at ${width}x${height} no answer is cut`);
        const why = await card.locator('.why').boundingBox();
        assert.ok(why.y > 0 && why.y + why.height <= height, 'the reason is in sight');
        await shoot(phone, `bar-sheet-${n}`);
      }
      await armed(card);
      const asked = answers.length;
      await answerOf(card, 'deny').tap();
      done.add(id);
      if (n === all.length - 1) break;
      await until('the next card', async () => (await current()) !== id);
      await cardOf(phone, await current()).locator('.actions[data-arming="false"]').waitFor();
      assert.equal(answers.length, asked + 1);
    }
    console.log(`from an answer to the next card that takes one, ms: ${(await phone.evaluate(() => window['waits'])).join(' ')}`);
    await until('the rows again', async () => (await current()) === '');
    assert.deepEqual(answers.slice(-20).map((one) => one.body.option_id), Array(20).fill('no'));
    await shoot(phone, 'bar-sheet-end');
  },

  async 'above its limit a device denies, or leaves the request for the desk'() {
    const limited = await open(PHONE, { scopes: ['watch', 'approve'], approve_up_to: 'elevated' });
    const one = made({ risk: 'danger', risk_reasons: ['deletes outside the folder'] });
    await go(limited.page, '#/inbox');
    tell(limited.put, one);
    await rowOf(limited.page, one.request_id).waitFor({ state: 'attached' });
    const card = cardOf(limited.page, one.request_id);
    await armed(card);
    await card.locator('.say', { hasText: 'Too risky for this device. Deny it here, or allow it at your computer.' }).waitFor();
    const hold = answerOf(card, 'allow');
    assert.equal(await hold.evaluate((el) => el.off), true);
    await shoot(limited.page, 'bar-limited');
    await fits(limited.page, 320, 568, 'above the limit');
    await limited.page.setViewportSize(PHONE.viewport);
    const before = answers.length;
    await press(card, 'later');
    await rowOf(limited.page, one.request_id).getByText('left for the desk').waitFor();
    assert.equal(answers.length, before, 'nothing was sent');
    await rowOf(limited.page, one.request_id).locator('.words').tap();
    await card.locator('[data-action="resume"]').tap();
    await press(card, 'deny');
    await until('the denial', async () => answers.at(-1)?.body.option_id === 'no');
    await limited.page.context().close();
  },

  async 'no page complained'() {
    quiet();
  },
};

await play(Object.entries(stories), browser);
