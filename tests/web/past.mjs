// Past conversations in "New session", in a real browser: an agent with none, one, fifty and three hundred of them, and one that says
// nothing of them. Variables as for pages.mjs. Prints a line `ok ...` for each thing that holds.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { axe, everywhere, fits, launch, need, ok, PHONE, settled, signIn, visit, watch } from './kit.mjs';

const base = need('PLEXUS_URL').replace(/\/$/, '');
const shots = process.env.PLEXUS_SHOTS;
const faults = /** @type {string[]} */ ([]);

const kit = await launch({ shots });
let failed = false;
let page;
try {
  page = await (await kit.context()).newPage();
  const seen = watch(page);
  async function judge(name) {
    const fault = (/** @type {Error} */ error) => { faults.push(error.message); console.error('not ok', error.message); };
    await everywhere(page, async ({ width, theme }) => {
      if (shots) await page.screenshot({ path: join(shots, `${name}-${width}-${theme}.png`) });
      await axe(page, `${name} at ${width}, ${theme}`).catch(fault);
      // What does not fit scrolls; nothing is pressed flat.
      for (const part of ['#old', '#start', 'plexus-past']) {
        const height = (await page.locator(part).boundingBox())?.height ?? 0;
        if (height < 24) fault(new Error(`${name} at ${width}: ${part} is ${height} high`));
      }
    });
    for (const [w, h] of [[320, 640], [PHONE.width, PHONE.height]]) await fits(page, w, h, name).catch(fault);
    await page.setViewportSize({ width: 1280, height: 800 });
  }
  const choose = async (runtime) => { await page.locator(`.kind[data-runtime="${runtime}"]`).click(); };
  const past = page.locator('plexus-past');
  const rows = past.locator('.row');
  const find = past.locator('input');
  const open = async () => {
    await visit(page, '#/sessions');
    await page.locator('plexus-sessions #new').click();
    await page.locator('plexus-dialog[heading="New session"] dialog[open]').waitFor();
  };

  await signIn(page, base, need('PLEXUS_CODE'));
  await page.setViewportSize({ width: 1280, height: 800 });
  await open();
  await choose('demo-less');
  assert.equal(await page.locator('#old').count(), 0, 'an agent that lists nothing has no such choice');
  await choose('none');
  await page.locator('#old').click();
  await past.getByText('Nothing to resume').waitFor();
  await judge('past-none');
  assert.ok(await page.locator('#start').isDisabled(), 'there is nothing to resume');
  ok('past: an agent without conversations says so');

  await choose('one');
  await rows.first().waitFor();
  assert.equal(await rows.count(), 1);
  await judge('past-one');
  await choose('fifty');
  await past.getByText('50 conversations').waitFor();
  assert.equal(await rows.count(), 50);
  assert.ok((await rows.nth(1).textContent())?.includes('\\u{202e}'), 'a hostile title is shown as what it is');
  assert.equal(await rows.nth(1).locator('img').count(), 0);
  await judge('past-fifty');
  ok('past: lists of one and of fifty are shown');

  // --- three hundred, told ninety at a time, by keyboard alone -------------------------------------------------------------------
  await choose('many');
  await past.getByText('so far').waitFor();
  // It asks on until there is enough for a screen.
  await rows.nth(179).waitFor({ state: 'attached' });
  assert.ok(await rows.count() < 300);
  await find.fill('windows 298');
  await rows.first().waitFor();
  await past.getByText('1 conversation', { exact: false }).waitFor();
  assert.match((await rows.first().textContent()) ?? '', /Windows 298/, 'what is searched for is found beyond the first page');
  await find.fill('no such thing');
  await past.getByText('No matching conversations').waitFor();
  await judge('past-no-match');
  await find.fill('');
  await find.focus();
  for (const key of ['ArrowDown', 'ArrowDown', 'ArrowDown', 'ArrowDown', 'ArrowUp']) await page.keyboard.press(key);
  await settled(page);
  assert.equal(await past.locator('[aria-selected="true"]').getAttribute('data-native'), 'c2');
  await judge('past-many');
  await find.focus();
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => location.hash.startsWith('#/s/'));
  await page.locator('plexus-session', { hasText: 'That was c2.' }).waitFor();
  const resumed = await page.evaluate(() => location.hash);
  ok('past: one of three hundred is found and resumed by keyboard alone, with its history');

  await open();
  await choose('many');
  await page.locator('#old').click();
  await rows.nth(2).locator('.chip', { hasText: 'open here' }).waitFor();
  await rows.nth(2).click();
  await page.locator('#start', { hasText: 'Open' }).click();
  await page.waitForFunction((to) => location.hash === to, resumed);
  ok('past: a conversation that is open here is opened, not resumed again');

  // --- an agent that says nothing, left for another ------------------------------------------------------------------------------
  await open();
  await choose('mute');
  await page.locator('#old').click();
  await past.getByText('Asking the agent').waitFor();
  await judge('past-asking');
  await choose('one');
  await rows.first().waitFor();
  assert.equal(await rows.count(), 1, 'and nobody waits for it');
  await page.locator('#fresh').click();
  assert.equal(await page.locator('input[name="cwd"]').count(), 1);
  ok('past: an agent that does not answer blocks nothing');
  assert.deepEqual(seen.dialogs, []);
  assert.deepEqual(seen.complaints, []);
  assert.deepEqual(faults, []);
} catch (error) {
  failed = true;
  console.error('not ok', error);
  if (shots && page) await page.screenshot({ path: join(shots, 'failed.png') }).catch(() => {});
} finally {
  await kit.close();
}
process.exit(failed ? 1 : 0);
