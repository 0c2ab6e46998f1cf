// Text that is typed while requests open, change and close answers nothing and opens nothing, wherever the focus is; and in a session all of
// it goes into the composer. In a real browser against a real gateway with the runtimes `demo` and `asks` (tests/agents/asks.mjs).
//
// What it is told is in card_kit.mjs. Prints `ok ..` for each story; the first that does not hold ends it with exit code 1.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DESK, api, base, device, enter, go, launch, play, prompt, quiet, requests, session, until } from './card_kit.mjs';
import { OWN_PAGE, ownPage } from './kit.mjs';

const browser = await launch();
const context = await browser.newContext({ ...DESK, ...OWN_PAGE });
await ownPage(context);
const page = await enter(context);
const other = await device('kitchen tablet', ['watch', 'prompt', 'approve']);

// --- what is typed -------------------------------------------------------------------------------------------------------------

/** Every key of docs/keys.md that writes a character. */
const KEYS = [...new Set([...readFileSync(join(import.meta.dirname, '../../docs/keys.md'), 'utf8').matchAll(/^\| (`[^|]+) \|/gm)].flatMap(([, cell]) => [...cell.matchAll(/`([^`]+)`/g)].flatMap(([, key]) => key.split(' '))).filter((key) => /^[!-~]$/.test(key)))];
assert.ok(KEYS.length > 30, `${KEYS.length} keys`);
const TAILS = ['dd a test, please', ' test for it', 'es or no', ' i think so', 'ny idea why'];
/** Sentences that begin with each key, and with each sequence of keys. */
const SENTENCES = [
  ...KEYS.flatMap((key, n) => TAILS.map((_, m) => `${key}${TAILS[(n + m) % TAILS.length]}`)),
  'say hello', 'maybe yes', 'always', 'nothing', 'any idea why?', 'add a test', 'what now', 'yes please do', 'g i g s g u', 'gi', 'gh pr create', 'gs', 'go', 'gt 3', 'gb', 'gc', 'g, then',
  'deny it', 'do not', 'just kill it', 'okay', 'x marks it', 'A list', 'Always', 'No, 1 of 2', '1', '2 of 3', '?!', '/review', 'a d a d',
].filter((text) => text.length > 1);
/** How fast: all at once, as people type, with a rest between two words. */
const PACES = [0, 12, 45];
const REST_MS = 700;

async function type(text, n) {
  const words = text.split(/(?<= )/);
  for (const [m, word] of words.entries()) {
    if (m && n % 9 === 0 && words[m - 1].length > 2) await page.waitForTimeout(REST_MS);
    await page.keyboard.type(word, { delay: PACES[n % PACES.length] });
  }
}

// --- what happens meanwhile ----------------------------------------------------------------------------------------------------

const COMMANDS = ['npm test', 'git push origin main', 'cargo check', 'make deploy', 'touch a'];
/** Answers requests of a session from another device, whereupon the agent opens others, until it is stopped. The agent changes what is open. */
function unrest(id) {
  let going = true;
  const work = (async () => {
    while (going) {
      const [one] = await requests(id, COMMANDS.length);
      await fetch(`${base}/v1/requests/${one.request_id}/answer`, { method: 'POST', headers: { Authorization: `Bearer ${other.token}`, 'Content-Type': 'application/json' }, body: JSON.stringify({ option_id: 'reject_once' }) });
      await new Promise((next) => { setTimeout(next, 1_100); });
    }
  })();
  return async () => { going = false; await work; };
}

/** The requests that were answered by anything but `other`, and that are not open. */
async function answeredHere() {
  const { body } = await api('GET', '/v1/requests');
  return body.requests.filter((one) => one.state === 'answered' && one.receipt?.resolved_by?.device_id !== other.device_id);
}

/** Where the page is, and what is open over it. */
const place = () => page.evaluate(() => {
  const open = [];
  const walk = (root) => { for (const el of root.querySelectorAll('*')) { if (el.matches('dialog[open], [popover]:popover-open')) open.push(el.getAttribute('aria-label') ?? el.getAttribute('aria-labelledby') ?? el.localName); if (el.shadowRoot) walk(el.shadowRoot); } };
  walk(document);
  return { hash: location.hash, open };
});
const focusOn = (css) => page.evaluate((what) => { const el = window['deep'](what); el?.focus(); return Boolean(el); }, css);
const composer = page.locator('plexus-composer #prompt');

// --- where the focus is ---------------------------------------------------------------------------------------------------------

const mine = await session('asks');
const quietOne = await session('demo');
await prompt(quietOne, 'echo hello ;; diff');
await prompt(mine, JSON.stringify({ ask: COMMANDS, change: 'npm run lint', after: 4_000, again: true }));
await requests(mine, 5);
const inSession = async () => { if ((await place()).hash !== `#/s/${mine}`) { await go(page, `#/s/${mine}`); await page.locator('plexus-session article[data-status="open"]').first().waitFor(); } };
const at = (hash, css) => async () => { if ((await place()).hash !== hash) await go(page, hash); await until(css, () => focusOn(css)); };
/** The places, and for those in a session what stands in the composer before. */
const PLACES = {
  session: {
    'opened in the rail': async () => { await go(page, '#/inbox'); await page.locator(`.recent a[href="#/s/${mine}"]`).click(); await page.locator('plexus-session article[data-status="open"]').first().waitFor(); },
    'the body': async () => { await inSession(); await page.evaluate(() => /** @type {any} */ (document.activeElement)?.blur()); },
    'the composer': async () => { await inSession(); await composer.focus(); },
    'the title': async () => { await inSession(); await focusOn('plexus-session h1'); },
    'a button of the head': async () => { await inSession(); await focusOn('plexus-session #find'); },
    'a link of the rail': async () => { await inSession(); await focusOn('.rail .nav'); },
    'a press in the conversation': async () => { await inSession(); await page.locator('plexus-session .scroller').click({ position: { x: 8, y: 8 } }); },
    'the request, by Esc': async () => { await inSession(); await composer.focus(); await page.keyboard.press('Escape'); },
    'a button of the request': async () => { await inSession(); await focusOn('plexus-dock plexus-card[data-open] button.answer'); },
    'the next request, by j': async () => { await inSession(); await composer.focus(); await page.keyboard.press('Escape'); await page.keyboard.press('j'); await page.waitForTimeout(450); },
    'a row of another request': async () => { await inSession(); await focusOn('plexus-dock .rows button'); },
    'the composer, while the request has been left': async () => { await inSession(); await composer.focus(); await page.keyboard.press('Escape'); await page.keyboard.press('Escape'); },
  },
  elsewhere: {
    'the inbox': at('#/inbox', 'plexus-inbox h1'),
    'a row of the inbox': at('#/inbox', 'plexus-requests [role="row"]'),
    'the card of the inbox': at('#/inbox', 'plexus-requests plexus-card:not([hidden]) article'),
    'a button of the inbox': at('#/inbox', 'plexus-requests plexus-card:not([hidden]) button.answer'),
    'a request alone': async () => { const { body } = await api('GET', '/v1/requests?state=open'); await go(page, `#/r/${body.requests.at(-1).request_id}`); await until('the card', () => focusOn('plexus-request article')); },
    'the sessions': at('#/sessions', 'plexus-sessions h1'),
    'a session in the list': at('#/sessions', 'plexus-sessions [data-session]'),
    'the conversation of a session': async () => { await go(page, `#/s/${quietOne}`); await page.locator('plexus-session .row').first().waitFor(); await composer.focus(); await page.keyboard.press('Escape'); },
    'the changes': at(`#/s/${quietOne}/changes`, 'plexus-changes h1'),
    'the search': at('#/search?q=', 'plexus-search h1'),
    'home': at('#/home', 'plexus-home h1'),
    'the runtimes': at('#/runtimes', 'plexus-runtimes h1'),
    'the devices': at('#/devices', 'plexus-devices h1'),
    'the usage': at('#/usage', 'plexus-usage h1'),
    'the settings': at('#/settings', 'plexus-settings h1'),
  },
};

const stories = {
  async 'in a session all that is typed goes into the composer, answers nothing and opens nothing'() {
    const stop = unrest(mine);
    const places = Object.entries(PLACES.session);
    for (const [n, text] of SENTENCES.entries()) {
      const [name, put] = places[n % places.length];
      await put();
      await composer.fill('');
      if (name !== 'the composer') await put();
      await type(text, n);
      const now = await place();
      assert.deepEqual([await composer.inputValue(), now.hash, now.open], [text, `#/s/${mine}`, []], `“${text}” with the focus on ${name}`);
    }
    await composer.fill('');
    await stop();
    assert.deepEqual(await answeredHere(), []);
    console.log(`typed in a session: ${SENTENCES.length} sentences in ${places.length} places`);
  },

  async 'elsewhere what is typed answers nothing and opens nothing'() {
    const stop = unrest(mine);
    const places = Object.entries(PLACES.elsewhere);
    for (const [n, text] of SENTENCES.entries()) {
      const [name, put] = places[n % places.length];
      await put();
      const before = (await place()).hash;
      await type(text, n);
      const now = await place();
      // What a search is typed into stands in its address.
      assert.deepEqual([now.hash.replace(/q=.*/, 'q='), now.open], [before.replace(/q=.*/, 'q='), []], `“${text}” with the focus on ${name}`);
      if (name === 'the conversation of a session') { assert.equal(await composer.inputValue(), text, `“${text}” with the focus on ${name}`); await composer.fill(''); }
      await page.keyboard.press('Escape');
    }
    await stop();
    assert.deepEqual(await answeredHere(), []);
    console.log(`typed elsewhere: ${SENTENCES.length} sentences in ${places.length} places`);
  },
};

await play(Object.entries({ ...stories, async 'nothing was complained of'() { quiet(); } }), browser);
