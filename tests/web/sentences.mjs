// Text that is typed while requests open, change and close answers nothing and opens nothing, wherever the focus is; and in a session all of
// it goes into the composer. In a real browser against a real gateway with the runtimes `demo` and `asks` (tests/agents/asks.mjs).
//
// What it is told is in card_kit.mjs. Prints `ok ..` for each story; the first that does not hold ends it with exit code 1.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DESK, api, base, changed, device, enter, go, launch, play, prompt, quiet, requests, session, teller, until } from './card_kit.mjs';

const browser = await launch();
const context = await browser.newContext(DESK);
const tell = await teller(context);
const page = await enter(context);
/** The answers that the page sent. */
const sent = /** @type {string[]} */ ([]);
page.on('request', (one) => { if (one.method() === 'POST' && one.url().endsWith('/answer')) sent.push(`${one.url()} ${one.postData()}`); });
const other = await device('kitchen tablet', ['watch', 'prompt', 'approve']);

// --- what is typed -------------------------------------------------------------------------------------------------------------

/** Every key of docs/keys.md that writes a character. */
const KEYS = [...new Set([...readFileSync(join(import.meta.dirname, '../../docs/keys.md'), 'utf8').matchAll(/^\| (`[^|]+) \|/gm)].flatMap(([, cell]) => [...cell.matchAll(/`([^`]+)`/g)].flatMap(([, key]) => key.split(' '))).filter((key) => /^[!-~]$/.test(key)))];
assert.ok(KEYS.length > 30, `${KEYS.length} keys`);
const TAILS = ['dd a test', ' test it', 'es or no', ' i think', 'ny idea'];
/** Sentences that begin with each key, with each sequence of keys, and those that answered once. */
const SENTENCES = [
  ...KEYS.flatMap((key) => TAILS.map((tail) => `${key}${tail}`)),
  'say hello', 'maybe yes', 'always', 'nothing', 'any idea why?', 'add a test', 'what now', 'yes please do', 'g i g s', 'gi hi', 'gh pr list', 'gs is up', 'go on', 'gt 3', 'gb of it', 'gc it', 'gdb it', 'gut', 'grep', 'g, g',
  'deny it', 'do not', 'just kill it', 'okay', 'x marks it', 'A list', 'Always', 'No, 1 of 2', '2 of 3', '?!', '/review', 'a d a d',
];
/** How fast: all at once, as people type, with a rest between two words. */
const PACES = [0, 12, 0, 12, 45];
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
/** Answers requests of a session from another device, whereupon the agent opens others, and changes others, until it is stopped. */
function unrest(id) {
  let going = true;
  const work = (async () => {
    while (going) {
      const [one, two] = await requests(id, COMMANDS.length);
      tell('request_updated', changed(two));
      await fetch(`${base}/v1/requests/${one.request_id}/answer`, { method: 'POST', headers: { Authorization: `Bearer ${other.token}`, 'Content-Type': 'application/json' }, body: JSON.stringify({ option_id: 'reject_once' }) });
      await new Promise((next) => { setTimeout(next, 1_100); });
    }
  })();
  return async () => { going = false; await work; };
}

/** Where the page is, and what is open over it. */
const place = () => page.evaluate(() => {
  const open = [];
  const walk = (root) => { for (const el of root.querySelectorAll('*')) { if (el.matches('dialog[open], [popover]:popover-open')) open.push(el.getAttribute('aria-label') ?? el.getAttribute('aria-labelledby') ?? el.localName); if (el.shadowRoot) walk(el.shadowRoot); } };
  walk(document);
  return { hash: location.hash, open };
});
/** Gives an element the focus, found through one shadow root after the other; whether it is there. */
const focusOn = (/** @type {string[]} */ ...path) => page.evaluate((names) => {
  let el = /** @type {any} */ (null);
  for (const name of names) el = el ? el.shadowRoot?.querySelector(name) : window['deep'](name);
  el?.focus();
  return Boolean(el);
}, path);
const composer = page.locator('plexus-composer #prompt');
/** What stands in the composer, which is empty afterwards. */
const taken = () => page.evaluate(() => {
  const field = window['deep']('plexus-composer')?.shadowRoot.querySelector('#prompt');
  if (!field) return '';
  const text = field.value;
  field.value = '';
  field.dispatchEvent(new Event('input'));
  return text;
});

// --- where the focus is ---------------------------------------------------------------------------------------------------------

const mine = await session('asks');
const quietOne = await session('demo');
await prompt(quietOne, 'echo hello ;; diff');
await prompt(mine, JSON.stringify({ ask: COMMANDS, again: true }));
await requests(mine, 5);
const inSession = async () => { if ((await place()).hash !== `#/s/${mine}`) { await go(page, `#/s/${mine}`); await page.locator('plexus-session article[data-status="open"]').first().waitFor(); } };
const at = (/** @type {string} */ hash, /** @type {string[]} */ ...path) => async () => { if ((await place()).hash !== hash) await go(page, hash); await until(path.join(' '), () => focusOn(...path)); };
const inDock = (/** @type {string[]} */ ...path) => async () => { await inSession(); await until(path.join(' '), () => focusOn('plexus-dock', ...path)); };
/** The place outside of `mine` where text goes to a composer. */
const WRITES = 'the conversation of a session';
/** Steps between the places of two sentences: each key meets other places. */
const STRIDE = 7;
const PLACES = {
  session: {
    'opened in the rail': async () => { await go(page, '#/inbox'); const link = page.locator(`.recent a[href="#/s/${mine}"]`); await link.hover(); await link.click(); await page.locator('plexus-session article[data-status="open"]').first().waitFor(); },
    'the body': async () => { await inSession(); await page.evaluate(() => /** @type {any} */ (document.activeElement)?.blur()); },
    'the composer': async () => { await inSession(); await composer.focus(); },
    'the title': async () => { await inSession(); await focusOn('plexus-session', 'h1'); },
    'a button of the head': async () => { await inSession(); await focusOn('plexus-session', '#find'); },
    'a link of the rail': async () => { await inSession(); await focusOn('.rail .nav'); },
    'a press in the conversation': async () => { await inSession(); await page.locator('plexus-session .scroller').click({ position: { x: 8, y: 8 } }); },
    'the request, by Esc': async () => { await inSession(); await composer.focus(); await page.keyboard.press('Escape'); },
    'a button of the request': inDock('plexus-card[data-open]', 'button.answer'),
    'the next request, by j': async () => { await inSession(); await composer.focus(); await page.keyboard.press('Escape'); await page.keyboard.press('j'); await page.waitForTimeout(450); },
    'a row of another request': inDock('.rows button:not(.folded)'),
    'the composer, while the request has been left': async () => { await inSession(); await composer.focus(); await page.keyboard.press('Escape'); await page.keyboard.press('Escape'); },
  },
  elsewhere: {
    'the inbox': at('#/inbox', 'plexus-inbox', 'h1'),
    'a row of the inbox': at('#/inbox', 'plexus-requests', '[role="row"]'),
    'the card of the inbox': at('#/inbox', 'plexus-requests', 'plexus-card:not([hidden])', 'article'),
    'a button of the inbox': at('#/inbox', 'plexus-requests', 'plexus-card:not([hidden])', 'button.answer'),
    'a request alone': async () => { const { body } = await api('GET', '/v1/requests?state=open'); await go(page, `#/r/${body.requests.at(-1).request_id}`); await until('the card', () => focusOn('plexus-request', 'plexus-card', 'article')); },
    'the sessions': at('#/sessions', 'plexus-sessions', 'h1'),
    'a session in the list': at('#/sessions', 'plexus-sessions', '[data-session]'),
    'the conversation of a session': async () => { await go(page, `#/s/${quietOne}`); await page.locator('plexus-session .row').first().waitFor(); await composer.focus(); await page.keyboard.press('Escape'); },
    'the changes': at(`#/s/${quietOne}/changes`, 'plexus-changes', 'h1'),
    'the search': at('#/search?q=', 'plexus-search', 'h1'),
    'home': at('#/home', 'plexus-home', 'h1'),
    'the runtimes': at('#/runtimes', 'plexus-runtimes', 'h1'),
    'the devices': at('#/devices', 'plexus-devices', 'h1'),
    'the usage': at('#/usage', 'plexus-usage', 'h1'),
    'the settings': at('#/settings', 'plexus-settings', 'h1'),
  },
};

const places = Object.values(PLACES).flatMap((some, n) => Object.entries(some).map(([name, put]) => ({ name, put, session: n === 0 || name === WRITES })));

async function typed(text, n) {
  const { name, put, session: writes } = places[(n * STRIDE) % places.length];
  const where = `“${text}” with the focus on ${name}`;
  await put();
  const before = (await place()).hash;
  await type(text, n);
  const now = await place();
  // What is searched for stands in the address.
  assert.deepEqual([now.hash.replace(/q=.*/, 'q='), now.open], [before.replace(/q=.*/, 'q='), []], where);
  if (writes) assert.equal(await taken(), text, where);
  else await page.keyboard.press('Escape');
}

const stories = {
  async 'a sentence answers nothing and opens nothing, wherever the focus is; in a session it is in the composer'() {
    const stop = unrest(mine);
    for (const [n, text] of SENTENCES.entries()) await typed(text, n);
    await stop();
    assert.deepEqual(sent, []);
    console.log(`typed ${SENTENCES.length} sentences in ${places.length} places`);
  },
};

await play(Object.entries({ ...stories, async 'nothing was complained of'() { quiet(); } }), browser);
