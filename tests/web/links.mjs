// Linking agents in the page, in a real browser. Variables as for pages.mjs; PLEXUS_SETTINGS is the file that linking edits. Prints a line
// `ok ...` for each thing that holds.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { axe, everywhere, fits, launch, need, ok, PHONE, signIn, visit, watch } from './kit.mjs';

const base = need('PLEXUS_URL').replace(/\/$/, '');
const settings = need('PLEXUS_SETTINGS');
const shots = process.env.PLEXUS_SHOTS;
const before = readFileSync(settings, 'utf8');

const kit = await launch({ shots });
let failed = false;
let page;
try {
  page = await (await kit.context()).newPage();
  const seen = watch(page);
  const judge = async (name) => {
    await everywhere(page, async ({ width, theme }) => {
      if (shots) await page.screenshot({ path: join(shots, `${name}-${width}-${theme}.png`) });
      await axe(page, `${name} at ${width}, ${theme}`);
    });
    for (const [w, h] of [[320, 640], [PHONE.width, PHONE.height]]) await fits(page, w, h, name);
    await page.setViewportSize({ width: 1280, height: 800 });
  };
  await signIn(page, base, need('PLEXUS_CODE'));
  await page.setViewportSize({ width: 1280, height: 800 });
  await visit(page, '#/runtimes');
  await page.locator('#links').click();
  const row = page.locator('plexus-links [data-agent="claude"]');
  await row.locator('.chip', { hasText: 'Not linked' }).waitFor();
  await page.locator('#links').scrollIntoViewIfNeeded();
  await judge('links');
  ok('links: every agent is listed');

  const dialog = page.locator('plexus-links plexus-dialog dialog[open]');
  const change = page.locator('plexus-links plexus-dialog');
  await row.locator('button', { hasText: 'Link…' }).click();
  await dialog.waitFor();
  assert.ok((await change.locator('code').first().textContent())?.endsWith('.claude/settings.json'));
  assert.ok((await change.locator('ins').count()) > 3, 'the exact change is shown');
  await judge('links-change');
  // Somebody edits the file meanwhile: nothing is changed, and the new change is shown.
  writeFileSync(settings, before.replace('opus', 'sonnet'));
  await change.locator('button.primary').click();
  await change.getByText('no longer as they were shown').waitFor();
  await change.locator('pre', { hasText: 'sonnet' }).waitFor();
  assert.equal(readFileSync(settings, 'utf8'), before.replace('opus', 'sonnet'));
  ok('links: another change than the shown one is not made');
  await change.locator('button.primary').click();
  await row.locator('.chip', { hasText: /^Linked$/ }).waitFor();
  assert.ok(readFileSync(settings, 'utf8').includes('hook claude --inbox'));
  ok('links: an agent is linked');
  await row.locator('button', { hasText: 'Unlink…' }).click();
  await change.getByText('byte for byte').waitFor();
  await change.locator('button.primary').click();
  await row.locator('.chip', { hasText: 'Not linked' }).waitFor();
  assert.equal(readFileSync(settings, 'utf8'), before.replace('opus', 'sonnet'));
  ok('links: it is unlinked, and the file is as it was');
  // The refusal that was wanted above.
  assert.deepEqual(seen.complaints.filter((one) => !one.includes('409')), []);
} catch (error) {
  failed = true;
  console.error(error);
  if (shots && page) await page.screenshot({ path: join(shots, 'links-failed.png') }).catch(() => {});
} finally {
  await kit.close();
}
process.exit(failed ? 1 : 0);
