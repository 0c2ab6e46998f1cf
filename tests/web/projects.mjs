// Sessions by project, results of a search by project, and files in prompts, in a real browser. One file: one browser and one story.
//
//   PLEXUS_URL, PLEXUS_CODE, PLEXUS_TOKEN   the gateway, a one-time code, the administrator's token
//   PLEXUS_WORK                             the folder with the repositories `plexus` (and its worktree `login`) and `website`, and `notes`
//   PLEXUS_SHOTS                            a directory for pictures; none are taken if not set
//   and what kit.mjs reads
//
// Prints a line `ok ...` for each passed test; the first failure ends it with exit code 1.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DESK, PHONE, axe, caller, everywhere, fits, launch, live, need, ok, settled, signIn, visit, watch } from './kit.mjs';

const base = need('PLEXUS_URL').replace(/\/$/, '');
const code = need('PLEXUS_CODE');
const token = need('PLEXUS_TOKEN');
const work = need('PLEXUS_WORK');
const shots = process.env.PLEXUS_SHOTS;

const api = caller(base, () => token);
async function judge(page, name) {
  await everywhere(page, async ({ width, theme }) => {
    if (shots) await page.screenshot({ path: join(shots, `${name}-${width}-${theme}.png`) });
    await axe(page, `${name} at ${width}, ${theme}`);
  });
  for (const [w, h] of [[320, 640], [PHONE.width, PHONE.height], [768, 1024], [2560, 1300]]) await fits(page, w, h, name);
  await page.setViewportSize(DESK);
  ok(`${name}: axe finds nothing and nothing overflows, at every size and in both themes`);
}

const kit = await launch({ shots });
let failed = false;
let page;
try {
  const context = await kit.context({});
  page = await context.newPage();
  const seen = watch(page);
  const open = (cwd, title) => api('POST', '/v1/sessions', { runtime_id: 'demo', cwd: join(work, cwd), title });
  const parser = await open('plexus', 'Rewrite the parser');
  await open('login', 'The login form');
  await open('plexus', 'Fix the flaky test');
  const site = await open('website', 'A page for the release');
  await open('notes', 'Notes without a repository');
  await api('POST', `/v1/sessions/${site.session_id}/prompt`, { text: 'ask make deploy' });
  await api('POST', `/v1/sessions/${parser.session_id}/prompt`, { text: 'echo a-rare-word' });
  await signIn(page, base, code);
  await live(page);

  // --- the list ------------------------------------------------------------------------------------------------------------------
  await visit(page, '#/sessions');
  const projects = page.locator('plexus-sessions .project');
  const header = (name) => page.locator('plexus-sessions .project', { has: page.locator('.fold .name', { hasText: new RegExp(`^${name}$`) }) }).locator('.fold');
  await projects.first().locator('.chip.warn', { hasText: '1 request' }).first().waitFor();
  await page.waitForFunction(() => document.querySelector('plexus-app').shadowRoot.querySelector('plexus-sessions').shadowRoot.querySelectorAll('.row').length >= 5);
  assert.equal(await projects.first().locator('.fold .name').innerText(), 'website', 'the project that waits is first');
  const names = await page.locator('plexus-sessions .fold .name').allInnerTexts();
  for (const name of ['website', 'plexus', 'notes']) assert.equal(names.filter((one) => one === name).length, 1, `${name} is one project: ${names}`);
  const plexus = page.locator(`plexus-sessions .project[data-project="${join(work, 'plexus')}"]`);
  assert.equal(await plexus.locator('.row').count(), 3, 'a worktree belongs to its repository');
  assert.ok((await plexus.locator('.fold').innerText()).includes('3 sessions'));
  await plexus.locator('.row', { hasText: 'The login form' }).locator('.branch svg[aria-label="Worktree login"]').waitFor();
  await plexus.locator('.row', { hasText: 'Rewrite the parser' }).locator('.branch', { hasText: 'main' }).waitFor();
  assert.equal(await page.locator('plexus-sessions .row', { hasText: 'Notes without a repository' }).locator('.branch').count(), 0);
  await judge(page, 'projects');

  // --- by keyboard ---------------------------------------------------------------------------------------------------------------
  const focusIs = (what) => page.waitForFunction((wanted) => {
    let at = document.activeElement;
    while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
    return (at?.textContent ?? '').includes(wanted);
  }, what);
  await page.locator('plexus-sessions h1').focus();
  await page.keyboard.press('j');
  await focusIs('website');
  await page.keyboard.press('ArrowDown');
  await focusIs('A page for the release');
  await page.keyboard.press('ArrowLeft');
  await focusIs('website');
  await page.keyboard.press('ArrowLeft');
  await page.locator('plexus-sessions .fold[aria-expanded="false"]', { hasText: 'website' }).waitFor();
  assert.equal(await page.locator('plexus-sessions .row', { hasText: 'A page for the release' }).count(), 0);
  assert.ok((await header('website').innerText()).includes('1 request'), 'a folded project still says that it waits');
  await page.reload();
  await live(page);
  await page.locator('plexus-sessions .fold[aria-expanded="false"]', { hasText: 'website' }).waitFor();
  ok('projects: rows and headers by keyboard; what is folded stays folded on this device');
  await header('website').focus();
  await page.keyboard.press('ArrowRight');
  await page.locator('plexus-sessions .row', { hasText: 'A page for the release' }).waitFor();
  await page.keyboard.press('ArrowRight');
  await focusIs('A page for the release');
  await page.keyboard.press('p');
  await page.waitForFunction(() => document.querySelector('plexus-app').shadowRoot.querySelector('plexus-sessions').shadowRoot.querySelectorAll('.project').length === 1);
  await focusIs('website');
  await page.locator('plexus-sessions .narrow[aria-pressed="true"]').waitFor();
  await page.keyboard.press('p');
  await plexus.waitFor();
  await page.locator('plexus-sessions input[type="search"]').fill('login-form-with');
  await page.waitForFunction(() => document.querySelector('plexus-app').shadowRoot.querySelector('plexus-sessions').shadowRoot.querySelectorAll('.row').length === 1);
  ok('projects: one alone by `p`, and the filter knows branches');

  await page.locator('plexus-sessions input[type="search"]').fill('');

  // --- search ----------------------------------------------------------------------------------------------------------------------
  await api('POST', `/v1/sessions/${(await open('notes', 'More notes')).session_id}/prompt`, { text: 'echo a-rare-word' });
  for (let hits = []; new Set(hits.map((hit) => hit.session_id)).size < 2;) ({ hits } = await api('GET', '/v1/search?q=a-rare-word&limit=100'));
  await visit(page, '#/search?q=a-rare-word');
  await page.locator('plexus-search h2.project', { hasText: 'plexus' }).waitFor();
  await page.locator('plexus-search h2.project', { hasText: 'notes' }).waitFor();
  await judge(page, 'search-projects');
  await page.locator('plexus-search .projects button', { hasText: 'notes' }).click();
  await page.locator('plexus-search h2.project', { hasText: 'plexus' }).waitFor({ state: 'detached' });
  ok('search: results by project, and those of one project alone');

  // --- files in a prompt -------------------------------------------------------------------------------------------------------------
  await visit(page, `#/s/${site.session_id}`);
  const field = page.locator('plexus-composer textarea');
  await field.waitFor();
  await field.focus();
  await field.pressSequentially('look at @main');
  const options = page.locator('plexus-composer [role="option"]');
  // What fits the first letters may be there before.
  const offered = async () => options.locator('.name').allInnerTexts();
  for (const end = Date.now() + 20_000; (await offered()).length !== 2 && Date.now() < end;) await page.waitForTimeout(50);
  assert.deepEqual(await offered(), ['main.ts', 'main menu.ts'], 'what is ignored is left out');
  assert.equal(await field.getAttribute('aria-activedescendant'), 'offer-0');
  assert.equal(await field.getAttribute('aria-controls'), 'offers');
  await judge(page, 'files');
  await field.focus();
  if (!(await options.count())) { await field.press('Backspace'); await field.pressSequentially('n'); await options.nth(1).waitFor(); }
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  assert.equal(await field.inputValue(), 'look at @src/pages/main\\ menu.ts ');
  await options.first().waitFor({ state: 'detached' });
  await field.pressSequentially('and @readme');
  await options.first().filter({ hasText: 'README' }).waitFor();
  await page.keyboard.press('Tab');
  assert.equal(await field.inputValue(), 'look at @src/pages/main\\ menu.ts and @README.md ');
  await field.pressSequentially('@main');
  await options.first().waitFor();
  await page.keyboard.press('Escape');
  await options.first().waitFor({ state: 'detached' });
  await field.pressSequentially('.');
  await field.pressSequentially(' me@example');
  await page.waitForTimeout(400);
  assert.equal(await options.count(), 0, 'an address is no file, and a closed list stays closed');
  await field.fill('');
  await field.pressSequentially('@evil');
  // What fits the first letters may be there before.
  await options.first().filter({ hasText: 'evil' }).waitFor();
  const shown = await options.first().innerText();
  assert.ok(!/[\u202e\n]/.test(shown.replace(/\n+$/, '')) && shown.includes('evil'), JSON.stringify(shown));
  await page.keyboard.press('Enter');
  assert.ok(!/[\u202e\n]/.test(await field.inputValue()), JSON.stringify(await field.inputValue()));
  await field.fill('');
  await field.pressSequentially('@nothing-like-it');
  await page.locator('plexus-composer .note-line', { hasText: 'No file fits' }).waitFor();
  await field.fill('');
  ok('files: `@` offers them by keyboard; names are shown as they are');

  await page.setViewportSize(PHONE);
  await field.focus();
  await field.pressSequentially('@main');
  await options.first().click();
  assert.equal(await field.inputValue(), '@src/main.ts ');
  assert.ok(await field.evaluate((el) => el === /** @type {ShadowRoot} */ (el.getRootNode()).activeElement), 'the keyboard of a phone stays');
  ok('files: by touch');
  await field.fill('');
  assert.deepEqual(seen.complaints, []);
} catch (error) {
  failed = true;
  console.error('not ok', error);
  if (page && shots) await page.screenshot({ path: join(shots, 'projects-failed.png') }).catch(() => {});
} finally {
  await kit.close?.();
}
process.exit(failed ? 1 : 0);
