// The requests of a session above its composer, and the ways in which a press or a key may answer by accident. In a real browser against a
// real gateway with the runtimes `demo` and `asks` (tests/agents/asks.mjs).
//
// What it is told is in card_kit.mjs. Prints `ok ..` for each story; the first that does not hold ends it with exit code 1.
import assert from 'node:assert/strict';
import { DESK, PHONE, api, base, changed, device, enter, go, launch, play, prompt, quiet, request, requests, session, shoot, teller, until } from './card_kit.mjs';
import { alone, axe } from './kit.mjs';

const browser = await launch();
const open = async (/** @type {any} */ size) => {
  const context = await browser.newContext(size);
  const tell = await teller(context);
  return { page: await enter(context), tell };
};
const { page: desk, tell } = await open(DESK);
const { page: phone } = await open(PHONE);
const other = await device('kitchen tablet', ['watch', 'approve']);
const elsewhere = (request_id, option_id) => fetch(`${base}/v1/requests/${request_id}/answer`, { method: 'POST', headers: { Authorization: `Bearer ${other.token}`, 'Content-Type': 'application/json' }, body: JSON.stringify({ option_id }) });

/** The next card takes a press within this time of an answer, ms: it includes its guard (`guardMs`). */
const NEXT_MS = 500;
const ASKED = ['npm test', 'git push origin main', 'cargo check', 'make deploy', 'touch a'];

/** A session that asks for these commands, on a page; its requests in the order in which they were asked. */
async function asking(page, commands = ASKED.slice(0, 2)) {
  const id = await session('asks');
  await prompt(id, JSON.stringify({ ask: commands }));
  const all = (await requests(id, commands.length)).reverse();
  await go(page, `#/s/${id}`);
  await active(page, all[0]).waitFor();
  return { id, all };
}
const active = (page, one) => page.locator(`plexus-dock plexus-card[data-open] article[data-request="${one.request_id}"]`);
const field = (page) => page.locator('plexus-composer #prompt');
const armed = (page, one) => active(page, one).locator('.actions[data-arming="false"]').waitFor();
const allow = (page, one) => active(page, one).locator('[data-role="allow_once"], plexus-hold[data-action="option:allow_once"]');
const states = async (all) => Promise.all(all.map(async (one) => { const now = await request(one.request_id); return now.state === 'answered' ? now.receipt.option_id : now.state; }));
/** After the time in which an accident would have happened, these are the states. */
async function stays(page, all, expected) {
  await alone(page);
  assert.deepEqual(await states(all), expected);
}
/** The centre of the button that allows, of the card that stands there now or stood there last. */
async function aim(page, one) {
  await allow(page, one).waitFor();
  const box = await allow(page, one).boundingBox();
  assert.ok(box);
  return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
}
const intoCard = async (page, one) => { await field(page).focus(); await page.keyboard.press('Escape'); await armed(page, one); };
const twice = ['open', 'open'];

/** Ends what a session still asks. */
const done = (id) => api('POST', `/v1/sessions/${id}/cancel`, {});

const stories = {
  async 'one card, the others as rows, and each request once in its session'() {
    const { id, all } = await asking(desk, ASKED);
    assert.equal(await desk.locator('plexus-dock plexus-card').count(), 1);
    assert.equal(await desk.locator('plexus-dock .rows button:visible').count(), 3);
    assert.equal(await desk.locator('plexus-dock .rows a', { hasText: '1 more request' }).count(), 1);
    assert.equal(await desk.locator('plexus-session .feed .row.request:visible, plexus-session .feed .chip:visible').count(), 0, 'the conversation does not say it again');
    await shoot(desk, 'dock-open');
    await axe(desk, 'a session that asks');
    // A row opens its card, which takes the answer; the keyboard goes with it.
    await desk.locator(`plexus-dock .rows [data-request="${all[2].request_id}"]`).click();
    await active(desk, all[2]).waitFor();
    await armed(desk, all[2]);
    await allow(desk, all[2]).click();
    await until('an answer', async () => (await request(all[2].request_id)).state === 'answered');
    await active(desk, all[0]).waitFor();
    await desk.locator('plexus-session .row.tool .chip.ok').waitFor();
    assert.equal(await desk.locator('plexus-session .feed .row.request:visible').count(), 0, 'its call says what became of it');
    await shoot(desk, 'dock-answered');
    await done(id);
  },

  async 'a new request takes the keyboard from no composer, empty or not, and a line says how to answer'() {
    const id = await session('asks');
    await go(desk, `#/s/${id}`);
    for (const draft of ['', 'half a sentence']) {
      await field(desk).fill(draft);
      await field(desk).focus();
      await prompt(id, JSON.stringify({ ask: ['npm test'] }));
      const [one] = await requests(id);
      await active(desk, one).waitFor();
      await desk.locator('plexus-composer #how', { hasText: draft ? 'Shift Tab' : 'Esc, then a' }).waitFor();
      await armed(desk, one);
      await desk.keyboard.type('a');
      assert.equal(await field(desk).inputValue(), `${draft}a`);
      await stays(desk, [one], ['open']);
      await field(desk).fill('');
      // As the line says.
      await desk.keyboard.press('Escape');
      await armed(desk, one);
      await desk.keyboard.press('a');
      await until('an answer', async () => (await states([one]))[0] === 'allow_once');
      // Nothing else is asked: the keyboard is at the composer again.
      await until('the composer', () => desk.evaluate(() => window['deep']('plexus-composer').shadowRoot.activeElement?.id === 'prompt'));
      await until('the end of the run', async () => (await api('GET', `/v1/sessions/${id}`)).body.state === 'idle');
    }
  },

  async 'twenty requests, one by one: the next is whole, in sight and takes a press'() {
    for (const [page, by] of /** @type {[any, string][]} */ ([[desk, 'keys'], [desk, 'pointer'], [phone, 'finger']])) {
      const { all } = await asking(page, Array.from({ length: 20 }, (_, n) => `make target-${n}`));
      // The page's own clock: from the end of one card to the moment in which the next one takes a press.
      await page.evaluate(() => {
        const watched = window['waits'];
        window['waits'] = [];
        if (watched) return;
        document.addEventListener('closed', () => {
          const [since, waits] = [performance.now(), window['waits']];
          const look = () => {
            // After the last card of a round there is no next one.
            if (window['waits'] !== waits) return;
            const card = window['deep']('plexus-dock')?.shadowRoot.querySelector('plexus-card[data-open]');
            const button = card?.shadowRoot.querySelector('[data-role="allow_once"]');
            const box = button?.getBoundingClientRect();
            const hit = box && box.width && card.shadowRoot.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
            if (card?.armed && hit && (hit === button || button.contains(hit))) waits.push(performance.now() - since);
            else if (performance.now() - since < 30_000) requestAnimationFrame(look);
          };
          requestAnimationFrame(look);
        });
      });
      if (by === 'keys') await intoCard(page, all[0]);
      for (const [n, one] of all.entries()) {
        await armed(page, one);
        if (n === 10 && by !== 'pointer') await shoot(page, 'dock-twenty');
        if (by === 'keys') await page.keyboard.press('a');
        else await (by === 'finger' ? allow(page, one).tap() : allow(page, one).click());
        await until(`the answer to ${one.display}`, async () => (await states([one]))[0] === 'allow_once');
      }
      assert.deepEqual(await states(all), all.map(() => 'allow_once'));
      await until('all waits', () => page.evaluate((n) => window['waits'].length >= n, all.length - 1));
      const waits = (await page.evaluate(() => window['waits'])).map(Math.round).sort((a, b) => a - b);
      console.log(`from an answer to the next card, by ${by}: ${waits[0]} to ${waits.at(-1)} ms, median ${waits[Math.floor(waits.length / 2)]} ms`);
      // A busy machine delays some; what the page itself takes is in all of them.
      assert.ok(waits[0] <= NEXT_MS, `${waits}`);
      // The conversation is there again.
      await page.locator('plexus-session .scroller').click({ position: { x: 8, y: 40 } });
    }
  },

  // --- by accident: none of these answers what was not meant ------------------------------------------------------------------------

  async 'a finger that drums where the card appears'() {
    const { id, all } = await asking(phone);
    const at = await aim(phone, all[0]);
    await done(id);
    await active(phone, all[0]).waitFor({ state: 'detached' });
    await prompt(id, JSON.stringify({ ask: ['npm test'] }));
    for (let n = 0; n < 4; n += 1) { await phone.touchscreen.tap(at.x, at.y); await phone.waitForTimeout(90); }
    const [one] = await requests(id);
    // A tap may have begun to write: then it comes as a row.
    await phone.locator(`plexus-dock [data-request="${one.request_id}"]:visible`).first().waitFor();
    for (let n = 0; n < 3; n += 1) await phone.touchscreen.tap(at.x, at.y);
    await stays(phone, [one], ['open']);
    await done(id);
  },
  async 'a double press, and a press where the next card has just come'() {
    for (const pause of [0, 60, 200]) {
      const { id, all } = await asking(desk);
      await armed(desk, all[0]);
      const { x, y } = await aim(desk, all[0]);
      await desk.mouse.click(x, y);
      await desk.waitForTimeout(pause);
      await desk.mouse.click(x, y);
      await stays(desk, all, ['allow_once', 'open']);
      await done(id);
    }
  },
  async 'a turned phone, and a zoomed page'() {
    for (const turn of [() => phone.setViewportSize({ width: 844, height: 390 }), () => phone.setViewportSize({ width: 300, height: 650 })]) {
      const { id, all } = await asking(phone);
      await armed(phone, all[0]);
      await turn();
      const { x, y } = await aim(phone, all[0]);
      await phone.setViewportSize(PHONE.viewport);
      await armed(phone, all[0]);
      // Nothing comes between the turn and the tap: the guard is short.
      await turn();
      await phone.touchscreen.tap(x, y);
      // What was answered was not by that tap: the button had moved under it.
      await stays(phone, all, twice);
      await phone.setViewportSize(PHONE.viewport);
      await done(id);
    }
  },
  async 'Enter on the button; a digit that no button shows; a digit that meant always once'() {
    const { id, all } = await asking(desk);
    await intoCard(desk, all[0]);
    await allow(desk, all[0]).focus();
    await alone(desk);
    await desk.keyboard.press('Enter');
    for (const key of ['1', '2', '3']) { await desk.keyboard.press(key); await alone(desk); }
    await field(desk).fill('');
    await go(desk, '#/inbox');
    await desk.locator('plexus-requests [role="row"]').first().waitFor();
    await desk.keyboard.press('j');
    await alone(desk);
    await desk.keyboard.press('1');
    await stays(desk, all, twice);
    await done(id);
  },
  async 'always, without its second step'() {
    const { id, all } = await asking(desk);
    await intoCard(desk, all[0]);
    await desk.keyboard.press('A');
    await stays(desk, all, twice);
    await desk.keyboard.press('Escape');
    await done(id);
  },
  async 'a key that is held down, over two cards'() {
    const { id, all } = await asking(desk);
    await intoCard(desk, all[0]);
    for (let n = 0; n < 30; n += 1) { await desk.keyboard.down('a'); await desk.waitForTimeout(40); }
    await desk.keyboard.up('a');
    await stays(desk, all, ['allow_once', 'open']);
    await done(id);
  },
  async 'a key held from the composer into the card, and over a step back in the history'() {
    const { id, all } = await asking(desk);
    await field(desk).focus();
    await desk.keyboard.down('a');
    await field(desk).fill('');
    await desk.keyboard.press('Escape');
    for (let n = 0; n < 20; n += 1) { await desk.keyboard.down('a'); await desk.waitForTimeout(40); }
    await desk.keyboard.up('a');
    await go(desk, '#/sessions');
    await desk.locator('plexus-sessions .row').first().waitFor();
    await desk.keyboard.down('a');
    await desk.goBack();
    await active(desk, all[0]).waitFor();
    for (let n = 0; n < 20; n += 1) { await desk.keyboard.down('a'); await desk.waitForTimeout(40); }
    await desk.keyboard.up('a');
    await stays(desk, all, twice);
    await field(desk).fill('');
    await done(id);
  },
  async 'Escape and a letter at once'() {
    const { id, all } = await asking(desk);
    await field(desk).focus();
    await armed(desk, all[0]);
    for (const key of ['a', 'd']) { await desk.keyboard.press('Escape'); await desk.keyboard.press(key); await stays(desk, all, twice); await desk.keyboard.press('Escape'); }
    await done(id);
  },
  async 'a letter while the window gets the focus again, and a press then'() {
    const { id, all } = await asking(desk);
    await intoCard(desk, all[0]);
    await desk.evaluate(() => { window.dispatchEvent(new Event('blur')); window.dispatchEvent(new Event('focus')); });
    await desk.keyboard.press('a');
    await stays(desk, all, twice);
    const { x, y } = await aim(desk, all[0]);
    await desk.evaluate(() => { document.dispatchEvent(new Event('visibilitychange')); });
    await desk.mouse.click(x, y);
    await stays(desk, all, twice);
    await done(id);
  },
  async 'a letter that is composed, and text that is pasted, on the card'() {
    const { id, all } = await asking(desk);
    await intoCard(desk, all[0]);
    const cdp = await desk.context().newCDPSession(desk);
    await cdp.send('Input.dispatchKeyEvent', { type: 'rawKeyDown', windowsVirtualKeyCode: 229, key: 'Process', code: 'KeyA' });
    await cdp.send('Input.dispatchKeyEvent', { type: 'keyUp', windowsVirtualKeyCode: 229, key: 'Process', code: 'KeyA' });
    await cdp.send('Input.insertText', { text: 'a' });
    await stays(desk, all, twice);
    await field(desk).fill('');
    await intoCard(desk, all[0]);
    await desk.evaluate(() => { window['deep']('plexus-card[data-open]').shadowRoot.querySelector('article').dispatchEvent(new ClipboardEvent('paste', { bubbles: true, composed: true, clipboardData: new DataTransfer() })); });
    await cdp.send('Input.insertText', { text: 'all of it' });
    await stays(desk, all, twice);
    await done(id);
  },
  async 'a letter as somebody else answers, and as the agent changes its mind'() {
    const first = await asking(desk);
    await intoCard(desk, first.all[0]);
    await desk.keyboard.press('a');
    await elsewhere(first.all[0].request_id, 'reject_once');
    await stays(desk, first.all, ['reject_once', 'open']);
    await done(first.id);
    const second = await asking(desk);
    await intoCard(desk, second.all[0]);
    const sent = /** @type {string[]} */ ([]);
    desk.on('request', (one) => { if (one.url().endsWith('/answer')) sent.push(one.url()); });
    await desk.keyboard.press('a');
    tell('request_updated', changed(second.all[0]));
    await active(desk, second.all[0]).locator('.changed').waitFor();
    await stays(desk, second.all, twice);
    assert.deepEqual(sent, []);
    await done(second.id);
  },
  async 'Space held from the composer onto the button'() {
    const { id, all } = await asking(desk);
    await field(desk).focus();
    await armed(desk, all[0]);
    await desk.keyboard.down(' ');
    await allow(desk, all[0]).focus();
    await desk.keyboard.up(' ');
    await stays(desk, all, twice);
    await field(desk).fill('');
    await done(id);
  },
  async 'a dialog that asks, and a sentence with Enter'() {
    await go(desk, '#/devices');
    const row = desk.locator(`plexus-devices [data-device="${other.device_id}"]`);
    await row.locator('plexus-menu button').first().click();
    await row.getByRole('menuitem').last().click();
    await desk.locator('plexus-asking dialog[open]').waitFor();
    for (const text of ['yes do it', 'ok a', 'revoke']) { await desk.keyboard.type(text, { delay: 15 }); await desk.keyboard.press('Enter'); }
    await desk.locator('plexus-asking dialog[open]').waitFor();
    await desk.keyboard.press('Escape');
    const { body } = await api('GET', '/v1/devices');
    assert.ok(body.devices.some((one) => one.name === 'kitchen tablet'));
  },
  async 'danger: quick presses, and a key that is let go'() {
    const { id, all } = await asking(desk, ['rm -rf build', 'npm test']);
    await intoCard(desk, all[0]);
    const { x, y } = await aim(desk, all[0]);
    for (let n = 0; n < 15; n += 1) await desk.mouse.click(x, y);
    await intoCard(desk, all[0]);
    await desk.keyboard.press('a');
    await stays(desk, all, twice);
    await done(id);
  },
};

await play(Object.entries({ ...stories, async 'nothing was complained of'() { quiet(); } }), browser);
