// One file: the card of a request, played in a real browser against a real gateway with the runtimes `demo` and `codelia`; what it
// is told is in card_kit.mjs. Prints `ok ..` for each story; the first that does not hold ends it with exit code 1.
import assert from 'node:assert/strict';
import { ARMED_MS, DESK, PHONE, answerOf, api, armed, ask, base, cardOf, clear, closed, device, enter, fromMenu, go, launch, play, press, prompt, quiet, request, requests, rowOf, said, saysOnce, session, shoot, shown, until } from './card_kit.mjs';

const browser = await launch();
const desk = await enter(await browser.newContext(DESK));
const phone = await enter(await browser.newContext(PHONE));
const other = await device('kitchen tablet', ['watch', 'approve']);

/** What another device says. */
async function elsewhere(request_id, answer) {
  const response = await fetch(`${base}/v1/requests/${request_id}/answer`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${other.token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify(answer),
  });
  return { status: response.status, body: await response.json() };
}

const box = async (locator) => {
  const { x, y, width, height } = await locator.boundingBox();
  return [x, y, width, height].map((n) => Math.round(n * 10) / 10);
};
const note = (card, words) => card.locator('[role="status"]', { hasText: words }).waitFor();
/** The display as the card shows it: the folder of its last line stands among the facts. */
const displayOn = async (card) => `${await card.locator('pre').textContent()}\nin ${await card.locator('.folder').getAttribute('title')}`;
const stillOpen = async (id) => assert.equal((await request(id)).state, 'open');
/** A press held for `ms`, by mouse. */
async function hold(page, locator, ms) {
  const { x, y, width, height } = await locator.boundingBox();
  await page.mouse.move(x + width / 2, y + height / 2);
  await page.mouse.down();
  await page.waitForTimeout(ms);
  await page.mouse.up();
}
const LONG = `printf ${Array.from({ length: 60 }, (_, n) => `line-${n}`).join('\n')}`;
/** What the gateway itself calls dangerous. */
const DANGER = 'rm -rf /';

/** The one session of the runtime that takes reasons, text and choices. */
let talk = '';
const idle = (id) => until('an idle session', async () => (await api('GET', `/v1/sessions/${id}`)).body.state === 'idle');

const stories = {
  async 'a press at the moment a card appears is not taken'() {
    await clear();
    await desk.evaluate(() => {
      window['pressed'] = 0;
      const look = () => {
        const hit = window['deep']('button.answer[data-key="a"]');
        if (hit) {
          hit.click();
          window['pressed'] += 1;
        } else requestAnimationFrame(look);
      };
      look();
    });
    const asked = await ask('ask touch early.txt');
    const card = await shown(desk, asked.request_id);
    await note(card, 'just appeared');
    assert.equal(await desk.evaluate(() => window['pressed']), 1);
    await stillOpen(asked.request_id);
    await armed(card);
    await shoot(desk, 'card');
    await press(card, 'allow');
    await closed(card, 'Allowed once · you');
    await saysOnce(asked.session_id, 'allowed (allow_once): touch early.txt');
    await shoot(desk, 'card-allowed');
  },

  async 'Enter never allows; Space does'() {
    const asked = await ask('ask touch enter.txt');
    const card = await shown(desk, asked.request_id);
    await armed(card);
    assert.notEqual(await desk.evaluate(() => window['deep']('button.answer:focus')?.dataset.sense ?? null), 'allow', 'nothing is preselected');
    for (const which of ['allow', 'always']) {
      if (which === 'always') await fromMenu(card, 'option:allow_always');
      await answerOf(card, which === 'allow' ? which : 'option:allow_always').focus();
      await armed(card);
      await desk.keyboard.press('Enter');
      await note(card, 'Enter never allows');
      await stillOpen(asked.request_id);
    }
    await desk.keyboard.press('Escape');
    await answerOf(card, 'allow').focus();
    await armed(card);
    await desk.keyboard.press('Space');
    await closed(card, 'Allowed once · you');
  },

  async 'a card that moved takes no press until it has stood still'() {
    const asked = await ask('ask touch moved.txt');
    const card = await shown(desk, asked.request_id);
    await armed(card);
    await answerOf(card, 'allow').evaluate((button) => {
      const host = /** @type {HTMLElement} */ (button.getRootNode().host);
      host.style.marginTop = '72px';
      button.click();
    });
    await note(card, 'just appeared or moved');
    await stillOpen(asked.request_id);
    await press(card, 'allow');
    await closed(card, 'Allowed once · you');
  },

  async 'what is long must be opened and read to its end'() {
    const asked = await ask(`ask ${LONG}`);
    const card = await shown(phone, asked.request_id);
    await armed(card);
    assert.equal(await answerOf(card, 'allow').getAttribute('aria-disabled'), 'true');
    await press(card, 'allow');
    await note(card, 'read to the end');
    await shoot(phone, 'card-long');
    await card.locator('button.open').tap();
    await card.locator('pre').evaluate((pre) => { if (pre.scrollHeight <= pre.clientHeight) throw new Error("nothing to scroll"); });
    await phone.waitForTimeout(ARMED_MS);
    await press(card, 'allow');
    await note(card, 'read to the end');
    await stillOpen(asked.request_id);
    assert.equal(await displayOn(card), asked.display, 'the whole of it stands there, byte for byte');
    await card.locator('.end').scrollIntoViewIfNeeded();
    await card.locator('.foot', { hasText: 'Read to its end' }).waitFor();
    await shoot(phone, 'card-long-read');
    await card.locator('[data-key="a"][aria-disabled="false"]').waitFor();
    await press(card, 'allow');
    await closed(card, 'Allowed once · you');
  },

  async 'danger takes a hold: by mouse'() {
    const asked = await ask(`ask ${DANGER}`);
    assert.equal(asked.risk, 'danger', JSON.stringify(asked));
    const card = await shown(desk, asked.request_id);
    await armed(card);
    await shoot(desk, 'card-danger');
    const button = answerOf(card, 'option:allow_once').locator('button');
    await button.click();
    await note(card, 'Released too early');
    await stillOpen(asked.request_id);
    await hold(desk, button, 500);
    await note(card, 'Released too early');
    await stillOpen(asked.request_id);
    await button.focus();
    await desk.keyboard.press('Enter');
    await note(card, 'Enter never allows');
    await stillOpen(asked.request_id);
    const { x, y, width, height } = await button.boundingBox();
    await desk.mouse.move(x + width / 2, y + height / 2);
    await desk.mouse.down();
    await closed(card, 'Allowed once · you');
    await desk.mouse.up();
  },

  async 'danger takes a hold: by finger'() {
    const asked = await ask(`ask ${DANGER}tmp`);
    const card = await shown(phone, asked.request_id);
    await armed(card);
    await card.scrollIntoViewIfNeeded();
    await shoot(phone, 'card-danger');
    const button = answerOf(card, 'option:allow_once').locator('button');
    await armed(card);
    await button.tap();
    await note(card, 'Released too early');
    await stillOpen(asked.request_id);
    await armed(card);
    const { x, y, width, height } = await button.boundingBox();
    const cdp = await phone.context().newCDPSession(phone);
    const at = [{ x: x + width / 2, y: y + height / 2 }];
    await cdp.send('Input.dispatchTouchEvent', { type: 'touchStart', touchPoints: at });
    await closed(card, 'Allowed once · you');
    await cdp.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] });
  },

  async 'danger takes a hold: by keyboard, or the word'() {
    const first = await ask(`ask ${DANGER}srv`);
    let card = await shown(desk, first.request_id);
    await armed(card);
    await card.focus();
    await desk.waitForTimeout(ARMED_MS);
    await desk.keyboard.down('a');
    await note(card, 'Keep holding');
    await desk.keyboard.up('a');
    await note(card, 'Released too early');
    await stillOpen(first.request_id);
    await armed(card);
    await desk.keyboard.down('a');
    await closed(card, 'Allowed once · you');
    await desk.keyboard.up('a');
    const second = await ask(`ask ${DANGER}opt`);
   card = await shown(desk, second.request_id);
    await armed(card);
    await fromMenu(card, 'word');
    await armed(card);
    await card.locator('.typed-go').click({ force: true });
    await stillOpen(second.request_id);
    await card.locator('.typed').fill('allow');
    await desk.keyboard.press('Enter');
    await stillOpen(second.request_id);
    await armed(card);
    await card.locator('.typed-go').click();
    await closed(card, 'Allowed once · you');
  },

  async 'answered elsewhere: nothing moves, and where the buttons were nothing can be pressed'() {
    await clear();
    const id = await session();
    await prompt(id, 'ask2');
    const [first, second] = await requests(id, 2);
    // Each is at the first request, by a press on its row, and so uses the list.
    for (const page of [desk, phone]) await armed(await shown(page, first.request_id));
    const rows = () => Promise.all([desk, phone].flatMap((page) => [first, second].map((one) => box(rowOf(page, one.request_id)))));
    const button = await answerOf(cardOf(phone, first.request_id), 'allow').boundingBox();
    const before = await rows();
    assert.equal((await elsewhere(first.request_id, { option_id: 'reject_once' })).status, 200);
    for (const page of [desk, phone]) {
      await closed(cardOf(page, first.request_id), 'Denied · kitchen tablet');
      await rowOf(page, first.request_id).locator('.outcome', { hasText: 'Denied by kitchen tablet' }).waitFor();
    }
    assert.deepEqual(await rows(), before);
    await shoot(phone, 'card-elsewhere');
    for (const page of [desk, phone]) assert.ok((await cardOf(page, first.request_id).boundingBox()).height < 40, 'the outcome is one line');
    await phone.touchscreen.tap(button.x + button.width / 2, button.y + button.height / 2);
    await stillOpen(second.request_id);
    assert.deepEqual(await rows(), before);
    await clear();
  },

  async 'a resolved row goes once nobody uses the list, and what stays is where it was'() {
    await clear();
    const id = await session();
    await prompt(id, 'ask2');
    const [first, second] = await requests(id, 2);
    await shown(desk, second.request_id);
    await desk.mouse.move(700, 890);
    assert.equal((await elsewhere(first.request_id, { option_id: 'reject_once' })).status, 200);
    await rowOf(desk, first.request_id).locator('.outcome').waitFor();
    const card = await box(cardOf(desk, second.request_id));
    await desk.mouse.move(0, 0);
    await desk.evaluate(() => window['deep'](':focus')?.blur());
    await rowOf(desk, first.request_id).waitFor({ state: 'detached' });
    assert.deepEqual(await box(cardOf(desk, second.request_id)), card, 'the open card stays where it is');
    await clear();
  },

  async 'a new request comes below: nothing slides under the finger'() {
    await clear();
    const first = await ask('ask touch one.txt');
    const card = await shown(desk, first.request_id);
    await armed(card);
    const boxes = () => Promise.all([card, rowOf(desk, first.request_id)].map(box));
    const before = await boxes();
    const second = await ask(`ask ${DANGER}usr`);
    await rowOf(desk, second.request_id).waitFor();
    assert.deepEqual(await boxes(), before);
    assert.ok((await box(rowOf(desk, second.request_id)))[1] > before[1][1], 'it stands below, though it is riskier');
    await shoot(desk, 'inbox');
    await shoot(phone, 'inbox');
    await clear();
  },

  async 'the race is lost: who won, and that the answer was not used'() {
    const asked = await ask('ask touch race.txt');
    const card = await shown(desk, asked.request_id);
    await armed(card);
    await desk.route('**/answer', async (route) => {
      await elsewhere(asked.request_id, { option_id: 'reject_once' });
      await route.continue();
    });
    await press(card, 'allow');
    await closed(card, 'Denied · kitchen tablet');
    await card.locator('.late').waitFor();
    await desk.unroute('**/answer');
    await saysOnce(asked.session_id, 'rejected (reject_once): touch race.txt');
    await shoot(desk, 'card-lost');
  },

  async 'the network goes before the answer arrives: said, and sent again under the same key'() {
    const asked = await ask('ask touch lost.txt');
    const card = await shown(desk, asked.request_id);
    await armed(card);
    const keys = [];
    let cut = true;
    await desk.route('**/answer', async (route) => {
      keys.push(route.request().headers()['idempotency-key']);
      if (cut) await route.abort('connectionreset');
      else await route.continue();
    });
    await press(card, 'allow');
    await note(card, 'not known yet');
    await stillOpen(asked.request_id);
    await shoot(desk, 'card-unknown');
    cut = false;
    await closed(card, 'Allowed once · you');
    assert.equal(await card.locator('.late').count(), 0);
    assert.ok(keys.length >= 2 && keys[0] && new Set(keys).size === 1, `one key for all: ${keys}`);
    await saysOnce(asked.session_id, 'allowed (allow_once): touch lost.txt');
    await desk.unroute('**/answer');
  },

  async 'the network goes after the answer arrived: it counts once, and is no loss'() {
    const asked = await ask('ask touch kept.txt');
    const card = await shown(desk, asked.request_id);
    await armed(card);
    await desk.route('**/answer', async (route) => {
      await route.fetch();
      await route.abort('connectionreset');
    });
    await press(card, 'allow');
    await closed(card, 'Allowed once · you');
    assert.equal(await card.locator('.late').count(), 0);
    await saysOnce(asked.session_id, 'allowed (allow_once): touch kept.txt');
    await desk.unroute('**/answer');
  },

  async 'offline is said, and nothing can be answered then'() {
    const asked = await ask('ask touch offline.txt');
    const card = await shown(desk, asked.request_id);
    await armed(card);
    await desk.context().setOffline(true);
    await note(card, 'Not connected');
    await press(card, 'allow');
    await desk.context().setOffline(false);
    await card.locator('[data-key="a"][aria-disabled="false"]').waitFor();
    await stillOpen(asked.request_id);
    await press(card, 'deny');
    await closed(card, 'Denied · you');
  },

  async 'a withdrawn request says so'() {
    const asked = await ask('ask touch gone.txt ;; hang');
    const card = await shown(desk, asked.request_id);
    await card.waitFor();
    await api('POST', `/v1/sessions/${asked.session_id}/cancel`, {});
    await closed(card, 'Withdrawn');
  },

  async 'a reason for the no reaches the agent'() {
    talk = await session('codelia');
    await prompt(talk, 'run true');
    const [asked] = await requests(talk);
    const card = await shown(desk, asked.request_id);
    await armed(card);
    await fromMenu(card, 'reason');
    await card.locator('.reason').fill('use the other folder');
    await desk.keyboard.press('Enter');
    await stillOpen(asked.request_id);
    await armed(card);
    await shoot(desk, 'card-reason');
    await press(card, 'deny');
    await closed(card, 'Denied · you');
    await card.locator('.more-said', { hasText: 'use the other folder' }).waitFor();
    await saysOnce(asked.session_id, 'because use the other folder');
  },

  async 'what is edited before the yes reaches the agent, and once only'() {
    const asked = await ask('edit touch demo.txt');
    const card = await shown(desk, asked.request_id);
    await armed(card);
    await fromMenu(card, 'edit');
    await card.getByText('Nothing is changed yet').waitFor();
    await card.locator('.edit').fill('touch other.txt');
    assert.deepEqual((await card.locator('.changes span').allTextContents()).sort(), ['+ touch other.txt', '- touch demo.txt']);
    await shoot(desk, 'card-edit');
    await fromMenu(card, 'option:allow_always');
    await press(card, 'option:allow_always');
    await note(card, 'only be allowed once');
    await stillOpen(asked.request_id);
    await answerOf(card, 'back').click();
    await press(card, 'allow');
    await closed(card, 'Allowed once, edited · you');
    await saysOnce(asked.session_id, 'allowed after a change: touch other.txt');
  },

  async 'text and choices reach the agent'() {
    // That runtime has one session, and is busy for a moment after each run.
    const id = talk;
    await idle(id);
    await prompt(id, 'prompt');
    const [typed] = await requests(id);
    let card = await shown(desk, typed.request_id);
    await armed(card);
    await shoot(desk, 'card-prompt');
    await press(card, 'send');
    await note(card, 'Type an answer');
    await card.locator('.value').fill('forty-two');
    await desk.keyboard.press('Enter');
    await stillOpen(typed.request_id);
    await press(card, 'send');
    await closed(card, 'Answered');
    await saysOnce(id, 'value "forty-two"');
    await idle(id);
    await prompt(id, 'pick ;; say done');
    const [picked] = await requests(id);
   card = await shown(desk, picked.request_id);
    await armed(card);
    await card.focus();
    await desk.waitForTimeout(ARMED_MS);
    await desk.keyboard.press('2');
    await card.locator('input:checked').waitFor();
    await shoot(desk, 'card-pick');
    await desk.keyboard.press('a');
    await closed(card, 'Chosen: Ask');
  },

  async 'keys answer only a card that was focused, and no sooner than a moment later'() {
    await clear();
    const asked = await ask('ask touch keys.txt');
    const card = await shown(desk, asked.request_id);
    await armed(card);
    await desk.evaluate(() => {
      let at = document.activeElement;
      while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
      /** @type {HTMLElement|null} */ (at)?.blur();
    });
    await desk.keyboard.press('a');
    await desk.waitForTimeout(ARMED_MS);
    await stillOpen(asked.request_id);
    await card.evaluate((article) => article.focus());
    await desk.keyboard.press('a');
    await desk.waitForTimeout(ARMED_MS);
    await stillOpen(asked.request_id);
    await desk.keyboard.press('d');
    await closed(card, 'Denied · you');
  },

  async 'a device that may not answer says why'() {
    const asked = await ask('ask touch watch.txt');
    const context = await browser.newContext(DESK);
    const watcher = await enter(context, { grant: { scopes: ['watch'] } });
    const card = await shown(watcher, asked.request_id);
    await note(card, 'may watch but not answer');
    assert.equal(await card.locator('button.answer, plexus-hold').count(), 0, 'a device that only watches has no answers');
    await shoot(watcher, 'card-watch');
    await context.close();
    await clear();
  },

  async 'a device may answer up to a level: above it, it says so'() {
    const asked = await ask(`ask ${DANGER}var`);
    const context = await browser.newContext(DESK);
    const careful = await enter(context, { grant: { scopes: ['watch', 'approve'], approve_up_to: 'low' } });
    await note(await shown(careful, asked.request_id), 'Too risky for this device. Deny it here, or allow it at your computer.');
    await context.close();
    const pocket = await browser.newContext(PHONE);
    const phone = await enter(pocket, { grant: { scopes: ['watch', 'approve'], approve_up_to: 'elevated' } });
    const card = await shown(phone, asked.request_id);
    await note(card, 'Too risky for this device.');
    assert.ok((await card.locator('.say').boundingBox()).height < 50, 'in a line or two');
    assert.equal(await answerOf(card, 'allow').evaluate((one) => (one.localName === 'plexus-hold' ? one.off : one.getAttribute('aria-disabled') === 'true')), true, 'nothing here allows it');
    assert.equal(await answerOf(card, 'deny').getAttribute('aria-disabled'), 'false', 'a denial is always possible');
    const [wide, inner] = await phone.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= inner, `${wide} > ${inner}`);
    await shoot(phone, 'card-too-risky-phone');
    await press(card, 'later');
    await rowOf(phone, asked.request_id).getByText('left for the desk').waitFor();
    await stillOpen(asked.request_id);
    // It is still there for who wants to answer it after all.
    const again = await shown(phone, asked.request_id);
    await again.locator('[data-action="resume"]').tap();
    await answerOf(again, 'deny').waitFor();
    await pocket.close();
    await clear();
  },

  async 'what is too long to come unasked is fetched from the gateway and read to its end'() {
    const asked = await ask(`ask ${'echo a word; '.repeat(20_000)}touch the-end.txt`);
    assert.equal(asked.display_truncated, true);
    const context = await browser.newContext(PHONE);
    const phone = await enter(context, { hash: `#/r/${asked.request_id}` });
    const card = cardOf(phone, asked.request_id);
    await card.waitFor();
    await press(card, 'allow');
    await stillOpen(asked.request_id);
    await card.locator('button.open').click();
    const exact = card.locator('plexus-exact[opened] pre');
    await exact.waitFor();
    await press(card, 'allow');
    await stillOpen(asked.request_id);
    await exact.evaluate(async (pre) => {
      while (pre.scrollTop + pre.clientHeight < pre.scrollHeight - 1) {
        pre.scrollTop = pre.scrollHeight;
        await new Promise(requestAnimationFrame);
      }
    });
    assert.ok((await exact.textContent()).endsWith('touch the-end.txt'), 'its end is what was asked');
    await card.locator('.foot').scrollIntoViewIfNeeded();
    await card.locator('.foot', { hasText: 'Read to its end' }).waitFor();
    await armed(card);
    await press(card, 'allow');
    await until('it is answered', async () => (await request(asked.request_id)).state === 'answered');
    await context.close();
    await clear();
  },

  async 'a revoked device answers nothing'() {
    const asked = await ask('ask touch revoked.txt');
    const context = await browser.newContext(DESK);
    const page = await enter(context, { grant: { scopes: ['watch', 'approve'] } });
    await armed(await shown(page, asked.request_id));
    // The page does not hear of it: what it then sends is refused.
    const before = (await api('GET', '/v1/devices')).body.devices;
    const mine = before.reduce((a, b) => (a.created_at > b.created_at ? a : b));
    assert.equal((await api('DELETE', `/v1/devices/${mine.device_id}`)).status, 204);
    await cardOf(page, asked.request_id).waitFor({ state: 'detached' });
    await stillOpen(asked.request_id);
    await context.close();
    await clear();
  },

  async 'one card alone, at its address; and what is gone'() {
    const asked = await ask('ask touch alone.txt');
    await go(phone, `#/r/${asked.request_id}`);
    const card = cardOf(phone, asked.request_id);
    await armed(card);
    await shoot(phone, 'alone');
    const small = await phone.evaluate(() => {
      const found = [];
      const walk = (root) => {
        for (const one of root.querySelectorAll('*')) {
          if (one.matches('article button.answer, article button.tool, article plexus-hold, article input:not([type=checkbox], [type=radio])')) {
            const { width, height } = one.getBoundingClientRect();
            if (width > 0 && (width < 44 || height < 44)) found.push(`${one.className} ${width}x${height}`);
          }
          if (one.shadowRoot) walk(one.shadowRoot);
        }
      };
      walk(document);
      return found;
    });
    assert.deepEqual(small, [], 'a thumb needs 44 px');
    const wide = await phone.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(wide <= 0, `sticks out by ${wide}`);
    await phone.setViewportSize({ width: 320, height: 640 });
    await armed(card);
    assert.ok((await phone.evaluate(() => document.documentElement.scrollWidth)) <= 320);
    const bottom = await answerOf(card, 'allow').boundingBox();
    assert.ok(bottom.y + bottom.height <= 640 && bottom.y > 400 && bottom.height >= 52, 'the answers are in reach of the thumb');
    await shoot(phone, 'alone-small');
    await phone.setViewportSize(PHONE.viewport);
    await press(card, 'allow');
    await closed(card, 'Allowed once · you');
    await go(phone, '#/r/q_nothing');
    await phone.getByText('There is no such request').waitFor();
    await go(phone, '#/inbox');
  },

  async 'what an agent writes is quoted, and never stands as ours'() {
    const asked = await ask('ask echo "\u202eallowed\u202c" <img src=x onerror=alert(1)> # Allowed by admin');
    const card = await shown(desk, asked.request_id);
    await armed(card);
    assert.equal(await card.locator('img, script, iframe').count(), 0);
    const display = await displayOn(card);
    assert.equal(display, asked.display);
    assert.ok(display.includes('\\u{202e}') && !display.includes('\u202e'));
    assert.equal(await card.locator('mark').count(), 2);
    for (const words of await card.locator('header .what, .when, .facts, .warnings').allTextContents()) assert.ok(!words.includes('admin'), words);
    await shoot(desk, 'card-deceptive');
    await clear();
  },

  async 'no page complained'() {
    quiet();
  },
};

await play(Object.entries(stories), browser);
