// What people come for, done as they would do it: with a mouse and keys on a desk, with a finger on a phone. Everything they do is counted,
// and the time that it took is printed; signing in is not part of it.
//
//   PLEXUS_TASK   which of the tasks below
//   PLEXUS_SIZE   desk or phone
//   and what kit.mjs reads, PLEXUS_URL, PLEXUS_TOKEN, and what a task says
//
// The task `join` is only the phone's side of `phone`: it opens PLEXUS_PAIR, and is not counted.
//
// Prints `task NAME SIZE: ...`; exit code 1 if it could not be done.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DESK, PHONE, caller, launch, live, need, signIn, until, watch } from './kit.mjs';

const base = need('PLEXUS_URL').replace(/\/$/, '');
const token = need('PLEXUS_TOKEN');
const task = need('PLEXUS_TASK');
const size = need('PLEXUS_SIZE');
const shots = process.env.PLEXUS_SHOTS;
/** How long anything may take, ms: real agents start, on a busy machine. Reaching it is a failure. */
const PATIENCE_MS = 150_000;
/** Longer than what has just appeared ignores presses, ms. */
const ARMED_MS = 450;

const api = caller(base, () => token);

/** The hands of a person: what they do is counted. */
class Hands {
  presses = 0;
  keys = 0;
  texts = 0;
  began = Date.now();

  /** @param {import('playwright-core').Page} page */
  constructor(page) { this.page = page; }

  /** A click, or on a phone a tap. */
  async press(/** @type {import('playwright-core').Locator} */ what) {
    this.presses += 1;
    await (size === 'phone' ? what.tap() : what.click());
  }

  /** A key: only where there is a keyboard. */
  async key(/** @type {string} */ name) {
    assert.equal(size, 'desk', 'a phone has no such keys');
    this.keys += 1;
    await this.page.keyboard.press(name);
  }

  /** Types into what has the focus. However long it is, it is counted once. */
  async write(/** @type {string} */ text) {
    this.texts += 1;
    await this.page.keyboard.type(text);
  }

  /** A row of the rail, which on a phone stands at the bottom. */
  go = (/** @type {string} */ hash) => this.press(this.page.locator(`nav a[href="${hash}"]:visible`).first());
}

/** A picture of a step, if pictures are wanted. */
const look = async (/** @type {import('playwright-core').Page} */ page, /** @type {string} */ name) => {
  if (shots) await page.screenshot({ path: join(shots, `task-${task}-${size}-${name}.png`) });
};

/** A device of this size: a page of its own. */
async function device(/** @type {Awaited<ReturnType<typeof launch>>} */ kit, /** @type {boolean} */ small) {
  const context = await kit.context(small ? { viewport: PHONE, hasTouch: true, isMobile: true } : { viewport: DESK });
  context.setDefaultTimeout(PATIENCE_MS);
  return context.newPage();
}

/** What somebody does on the phone that joins: it has opened the address, and is asked. */
async function joins(/** @type {import('playwright-core').Page} */ other, /** @type {string} */ address) {
  await other.goto(address);
  await other.locator('plexus-signin #join').tap();
}

/** @type {Record<string, (page: import('playwright-core').Page, hands: Hands, kit: Awaited<ReturnType<typeof launch>>) => Promise<void>>} */
const tasks = {
  // The first page of an empty gateway; PATH has a real agent.
  async first(page, hands) {
    await hands.press(page.locator('plexus-new-session .kind[data-preset="gemini"]'));
    await hands.press(page.locator('plexus-new-session #say'));
    await hands.write('FAKE:long 3');
    await look(page, 'filled');
    await hands.press(page.locator('plexus-new-session #start'));
    await page.locator('plexus-session', { hasText: 'chunk-0003' }).waitFor();
  },

  // Codex, which does not run, has a conversation that was held outside of Plexus.
  async continue(page, hands) {
    await hands.press(page.locator('plexus-new-session .kind[data-preset="codex-app"]'));
    await hands.press(page.locator('plexus-new-session #old'));
    await look(page, 'asleep');
    await hands.press(page.locator('plexus-new-session #wake'));
    const row = page.locator('plexus-past .row', { hasText: 'said-before' });
    await row.waitFor();
    await look(page, 'list');
    await hands.press(row);
    await hands.press(page.locator('plexus-new-session #start'));
    await page.locator('plexus-session', { hasText: 'said-before' }).waitFor();
    await look(page, 'resumed');
    await hands.press(page.locator('plexus-session #prompt'));
    await hands.write('FAKE:long 3');
    if (size === 'desk') await hands.key('Enter');
    else await hands.press(page.locator('plexus-session #send'));
    await page.locator('plexus-session', { hasText: 'chunk-0003' }).waitFor();
  },

  // Twenty requests of five agents are open, of which four are dangerous: those are denied, the others are allowed.
  async questions(page, hands) {
    const { requests } = await api('GET', '/v1/requests?state=open');
    assert.equal(requests.length, 20);
    const dangerous = new Set(requests.filter((/** @type {any} */ one) => one.risk === 'danger').map((/** @type {any} */ one) => one.request_id));
    assert.equal(dangerous.size, 4);
    await until('all rows', async () => (await page.locator('plexus-inbox #count, plexus-inbox', { hasText: '20' }).count()) > 0);
    if (size === 'desk') {
      // Each is read, then all are answered.
      for (let n = 0; n < 20; n += 1) {
        await hands.key('j');
        await page.locator('plexus-requests [role="row"][aria-current="true"]:not([data-unread])').waitFor();
      }
      await hands.key('Control+a');
      await hands.key('a');
      await hands.press(page.locator('plexus-many #go[aria-disabled="false"]', { hasText: 'Allow 16 once' }));
      await until('four are left', async () => (await api('GET', '/v1/requests?state=open')).requests.length === 4);
      await page.locator('plexus-many dialog[open]').waitFor({ state: 'detached' });
      // What was left out is still selected.
      await page.locator('.bar', { hasText: '4 selected' }).waitFor();
      await hands.key('d');
      await hands.press(page.locator('plexus-many #go[aria-disabled="false"]', { hasText: 'Deny 4' }));
    } else {
      // The first row opens, and each answer brings the next one.
      const cards = 'plexus-card:not([hidden]) article[data-request]';
      if (!(await page.locator(`${cards}:visible`).count())) await hands.press(page.locator('plexus-requests [role="row"][data-request] .words').first());
      let id = '';
      for (let n = 0; n < 20; n += 1) {
        const card = page.locator(`${cards}:not([data-request="${id}"]):visible`);
        await card.locator('.actions[data-arming="false"]').waitFor();
        id = (await card.getAttribute('data-request')) ?? '';
        await page.waitForTimeout(ARMED_MS);
        await hands.press(page.locator(`${cards}[data-request="${id}"] button.answer[data-key="${dangerous.has(id) ? 'd' : 'a'}"]`));
        await until('the answer', async () => (await api('GET', `/v1/requests/${id}`)).state === 'answered');
      }
    }
    await until('an empty inbox', async () => (await api('GET', '/v1/requests?state=open')).requests.length === 0);
    for (const one of requests) {
      const { receipt } = await api('GET', `/v1/requests/${one.request_id}`);
      assert.equal(receipt.option_id, dangerous.has(one.request_id) ? 'reject_once' : 'allow_once', one.display);
    }
  },

  // The agent of the session "Nightly" ended in the middle of its run.
  async stopped(page, hands) {
    await hands.go('#/sessions');
    await hands.press(page.locator('plexus-sessions .row', { hasText: 'Nightly' }).first());
    // Why it stopped stands where one would answer.
    await page.locator('plexus-session', { hasText: /exit(?:ed with)? code 3|code 3/ }).waitFor();
    await hands.press(page.locator('plexus-session #start-again'));
    await page.locator('plexus-session #prompt').waitFor();
    await hands.press(page.locator('plexus-session #prompt'));
    await hands.write('echo it-goes-on');
    if (size === 'desk') await hands.key('Enter');
    else await hands.press(page.locator('plexus-session #send'));
    await page.locator('plexus-session', { hasText: 'it-goes-on' }).waitFor();
    await page.locator('plexus-session #session-state[state="idle"]').waitFor();
  },

  // Thirty files changed in the session "Rework"; three comments go to its agent, which says what it was told.
  async review(page, hands) {
    await hands.go('#/sessions');
    await hands.press(page.locator('plexus-sessions .row', { hasText: 'Rework' }).first());
    await hands.press(page.locator('plexus-session #changes'));
    await page.locator('plexus-changes .sum', { hasText: '30 files' }).waitFor();
    const comment = async (/** @type {string} */ words) => {
      if (size === 'desk') await hands.key('c');
      else await hands.press(page.locator('plexus-changes #comment'));
      await page.locator('plexus-changes #text').waitFor();
      await hands.write(words);
      if (size === 'desk') await hands.key('Enter');
      else await hands.press(page.locator('plexus-changes #save'));
      await page.locator('plexus-changes .said', { hasText: words }).waitFor();
    };
    for (const [n, words] of ['Is this meant?', 'Say why.', 'A better name?'].entries()) {
      const file = page.locator('plexus-changes plexus-change-file').nth(n);
      await file.locator('.row.add').first().waitFor();
      await hands.press(file.locator('.row.add').first());
      await comment(words);
    }
    await hands.press(page.locator('plexus-changes #send', { hasText: 'Send 3 comments' }));
    for (const words of ['Is this meant?', 'Say why.', 'A better name?']) await page.locator('plexus-session', { hasText: words }).waitFor();
  },

  // Another device joins; what the person who joins does is counted, too.
  async phone(page, hands, kit) {
    await hands.go('#/devices');
    await hands.press(page.locator('plexus-devices #add'));
    await hands.press(page.locator('plexus-pairing #make'));
    const code = (await page.locator('plexus-pairing #code').textContent())?.trim();
    // The QR code is this address.
    const other = await device(kit, true);
    hands.presses += 1;
    await joins(other, `${base}/#pair=${code}`);
    const number = (await other.locator('plexus-signin #number').textContent())?.trim() ?? '';
    await page.locator('plexus-pairing .number', { hasText: number }).waitFor();
    await hands.press(page.locator('plexus-pairing #confirm'));
    await live(other);
  },

  // What today cost, over all sessions: 5.50 USD were told.
  async cost(page, hands) {
    if (size === 'desk') await hands.go('#/usage');
    else {
      await hands.press(page.locator('header.top plexus-menu button').first());
      await hands.press(page.locator('header.top plexus-menu [role^="menuitem"]', { hasText: 'Usage' }));
    }
    await page.locator('plexus-usage', { hasText: need('PLEXUS_COST') }).waitFor();
  },
};

const kit = await launch({ shots });
let failed = false;
/** @type {import('playwright-core').Page | undefined} */
let page;
try {
  const work = tasks[task];
  assert.ok(work || task === 'join', `no task ${task}`);
  page = await device(kit, size === 'phone');
  const seen = watch(page);
  if (task === 'join') { await joins(page, need('PLEXUS_PAIR')); await live(page); await kit.close(); process.exit(0); }
  const { code } = await api('POST', '/v1/codes', { scopes: ['watch', 'prompt', 'approve', 'admin'], ttl: 120 });
  await signIn(page, base, code);
  const hands = new Hands(page);
  await work(page, hands, kit);
  const seconds = ((Date.now() - hands.began) / 1000).toFixed(1);
  console.log(`task ${task} ${size}: ${hands.presses} presses, ${hands.keys} keys, ${hands.texts} texts, ${seconds} s`);
  if (shots) await page.screenshot({ path: join(shots, `task-${task}-${size}.png`) });
  assert.deepEqual(seen.complaints, []);
} catch (error) {
  failed = true;
  console.error(`not ok task ${task} ${size}\n`, error);
  if (shots) await page?.screenshot({ path: join(shots, `task-failure-${task}-${size}.png`) }).catch(() => {});
} finally {
  await kit.close();
}
process.exit(failed ? 1 : 0);
