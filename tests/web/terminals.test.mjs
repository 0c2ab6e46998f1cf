// Shared terminals in a real browser, against a real gateway: the list, the screen, typing and only watching, and hostile output.
//
//   PLEXUS_URL, PLEXUS_CODE, PLEXUS_TOKEN   the gateway, a one-time code, the administrator's token
//   PLEXUS_SHELL, PLEXUS_HOSTILE            terminals: a shell, and a program whose output means harm
//   PLEXUS_SHOTS                            a directory for pictures; none are taken if not set
//   and what kit.mjs reads
//
// Prints a line `ok ...` for each passed test; the first failure ends it with exit code 1.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DESK, PATIENCE_MS, PHONE, axe, caller, everywhere, fits, launch, need, ok, settled, signIn, visit, watch } from './kit.mjs';

const base = need('PLEXUS_URL').replace(/\/$/, '');
const token = need('PLEXUS_TOKEN');
const [shell, hostile] = [need('PLEXUS_SHELL'), need('PLEXUS_HOSTILE')];
const shots = process.env.PLEXUS_SHOTS;

const api = caller(base, () => token);

/** Until the screen shows these words. */
const shows = (/** @type {import('playwright-core').Page} */ page, /** @type {string} */ words) =>
  page.waitForFunction((w) => {
    const rows = document.querySelector('plexus-app')?.shadowRoot?.querySelector('plexus-terminals')?.shadowRoot?.querySelector('plexus-terminal-view')?.shadowRoot?.querySelector('.xterm-rows');
    return [...(rows?.children ?? [])].map((row) => row.textContent ?? '').join('\n').replaceAll('\u00a0', ' ').includes(w);
  }, words);

async function judge(/** @type {import('playwright-core').Page} */ page, /** @type {string} */ name) {
  await everywhere(page, async ({ width, theme }) => {
    if (shots) await page.screenshot({ path: join(shots, `${name}-${width}-${theme}.png`) });
    await axe(page, `${name} at ${width}, ${theme}`);
  });
  for (const [width, height] of [[320, 640], [PHONE.width, PHONE.height], [1280, 800], [DESK.width, DESK.height]]) await fits(page, width, height, name);
  await page.setViewportSize(DESK);
  ok(`${name}: axe finds nothing and nothing overflows, at every size and in both themes`);
}

const kit = await launch({ shots });
let failed = false;
try {
  const context = await kit.context();
  const page = await context.newPage();
  const seen = watch(page);
  await signIn(page, base, need('PLEXUS_CODE'));

  // --- the list
  await page.locator('.rail a[href="#/terminals"]').waitFor();
  await visit(page, '#/terminals');
  await page.locator('a.one', { hasText: 'bash --norc' }).waitFor();
  assert.equal(await page.locator('a.one').count(), 2);
  await settled(page);
  await judge(page, 'terminals');

  // --- the screen, and typing
  await page.locator(`a.one[href$="${shell}"]`).click();
  await shows(page, '$');
  assert.equal(await page.locator('#state').innerText(), 'Watching');
  await page.locator('.screen').click();
  await page.keyboard.type('echo not-typed\n');
  await page.locator('#type').click();
  assert.equal(await page.locator('#state').innerText(), 'Typing');
  await page.keyboard.type('printf "\\033[1;35mtyped\\033[0m-%s\\n" $((40+2))\n');
  await shows(page, 'typed-42');
  await page.keyboard.insertText('echo 漢字 ünïcode');
  await page.keyboard.press('Enter');
  await shows(page, '漢字 ünïcode');
  assert.ok(!(await page.locator('.xterm-rows').innerText()).includes('not-typed'), 'nothing is typed before the button was pressed');
  ok('what is typed reaches the program, after a press');
  await page.locator('#fit').click();
  await page.locator('#fit[disabled]').waitFor();
  let size = { rows: 0, cols: 0 };
  for (const until = Date.now() + PATIENCE_MS; size.cols <= 90 || size.rows <= 24;) {
    assert.ok(Date.now() < until, JSON.stringify(size));
    ({ size } = (await api('GET', '/v1/terminals')).terminals.find((/** @type {any} */ one) => one.terminal_id === shell));
  }
  await page.keyboard.type('stty size\n');
  await shows(page, `${size.rows} ${size.cols}`);
  ok('the page’s size is the terminal’s');
  await settled(page);
  await judge(page, 'terminal');

  // --- a device that may only watch
  const { code } = await api('POST', '/v1/codes', { scopes: ['watch'], ttl: 120 });
  const other = await (await kit.context({ viewport: PHONE })).newPage();
  const seenThere = watch(other);
  await signIn(other, base, code);
  await visit(other, `#/terminals/${shell}`);
  await shows(other, 'typed-42');
  assert.equal(await other.locator('#state').innerText(), 'Watching only');
  assert.equal(await other.locator('#type').count(), 0);
  await page.locator('.screen').click();
  await page.keyboard.type('echo seen-$((1+1))-there\n');
  await shows(other, 'seen-2-there');
  if (shots) await other.screenshot({ path: join(shots, 'terminal-watching-390.png') });
  assert.deepEqual(seenThere.complaints, []);
  ok('a device without the scope sees what is typed, and types nothing');

  // --- hostile output
  await visit(page, `#/terminals/${hostile}`);
  await shows(page, 'the end of it');
  assert.equal(await page.locator('.bar h1').innerText(), 'atitle <b>');
  const links = page.locator('.xterm-rows');
  assert.ok((await links.innerText()).includes('a link'));
  await links.getByText('a link').first().click({ force: true });
  assert.equal(context.pages().length, 1, 'no window opens for an address that is no page');
  assert.deepEqual(seen.dialogs, []);
  ok('hostile output is only shown');

  // --- the end
  await visit(page, `#/terminals/${shell}`);
  await shows(page, 'seen-2-there');
  await page.locator('#type').click();
  await page.keyboard.type('exit 3\n');
  await page.locator('.note', { hasText: 'exited with code 3' }).waitFor();
  assert.equal(await page.locator('#type').count(), 0);
  ok('the end of the program is told');

  assert.deepEqual(seen.complaints, [], 'the browser complained of nothing');
  assert.deepEqual(seen.asked.filter((url) => !url.startsWith(base) && !/^(?:data|blob)/.test(url)), []);
} catch (error) {
  failed = true;
  console.error(error);
  if (shots) for (const [n, c] of kit.browser.contexts().entries()) for (const p of c.pages()) await p.screenshot({ path: join(shots, `failed-${n}.png`) }).catch(() => {});
} finally {
  await kit.close();
}
if (failed) process.exit(1);
