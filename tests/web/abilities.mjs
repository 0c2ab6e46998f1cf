// The dialog with an agent's MCP servers and skills, in a real browser: with an agent that reports them, and with one that does not.
// Variables as for pages.mjs. Prints a line `ok ...` for each passed test.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { axe, everywhere, fits, launch, need, ok, PHONE, signIn, visit, watch } from './kit.mjs';

const base = need('PLEXUS_URL').replace(/\/$/, '');
const shots = process.env.PLEXUS_SHOTS;

const kit = await launch({ shots });
let failed = false;
let page;
try {
  page = await (await kit.context()).newPage();
  const seen = watch(page);
  await signIn(page, base, need('PLEXUS_CODE'));
  await visit(page, '#/sessions');
  const menu = (title) => page.locator('plexus-sessions .row', { hasText: title }).locator('plexus-menu');
  const entry = (title) => menu(title).locator('[role="menuitem"]', { hasText: 'MCP servers and skills' });
  await menu('plain').locator('button').first().click();
  await menu('plain').locator('[role="menuitem"]').first().waitFor();
  assert.equal(await entry('plain').count(), 0, 'an agent that does not tell has no such entry');
  await page.keyboard.press('Escape');

  await menu('codelia').locator('button').first().click();
  await entry('codelia').click();
  const dialog = page.locator('plexus-abilities');
  await dialog.getByText('github').waitFor();
  await dialog.getByText('26 tools').waitFor();
  await dialog.getByText('spawn mcp-files ENOENT').waitFor();
  await dialog.getByText('release-notes', { exact: true }).waitFor();
  await dialog.getByText('no front matter').waitFor();
  assert.equal(await dialog.locator('li img').count(), 0);
  assert.ok((await dialog.locator('li[data-server^="<img"]').textContent())?.includes('\\u{202e}'), 'a hostile name is shown as what it is');
  ok('abilities: servers are listed with their state, skills with their description');
  await everywhere(page, async ({ width, theme }) => {
    if (shots) await page.screenshot({ path: join(shots, `abilities-${width}-${theme}.png`) });
    await axe(page, `abilities at ${width}, ${theme}`);
  });
  for (const [w, h] of [[320, 640], [PHONE.width, PHONE.height]]) await fits(page, w, h, 'abilities');
  await page.keyboard.press('Escape');
  await dialog.locator('dialog[open]').waitFor({ state: 'detached' });
  ok('abilities: the dialog fits the screen and has no axe violations');
  assert.deepEqual(seen.dialogs, []);
  assert.deepEqual(seen.complaints, []);
} catch (error) {
  failed = true;
  console.error('not ok', error);
  if (shots && page) await page.screenshot({ path: join(shots, 'failed.png') }).catch(() => {});
} finally {
  await kit.close();
}
process.exit(failed ? 1 : 0);
