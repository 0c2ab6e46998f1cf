// "New session" in a real browser: from an empty gateway to a working Gemini in three presses, starts that fail or are cancelled, folders,
// the keyboard alone. Variables as for pages.mjs, and PLEXUS_WORK, a folder with `project` and `<b>evil` in it, and the programs `dies`
// and `hangs`. Prints a line `ok ...` for each thing that holds.
import assert from 'node:assert/strict';
import { dirname, join } from 'node:path';
import { axe, everywhere, fits, launch, need, ok, PHONE, signIn, visit, watch } from './kit.mjs';

const base = need('PLEXUS_URL').replace(/\/$/, '');
const work = need('PLEXUS_WORK');
const shots = process.env.PLEXUS_SHOTS;
const faults = /** @type {string[]} */ ([]);

/** How long a real agent may take to start, ms; reaching it is a failure. */
const START_MS = 150_000;

const kit = await launch({ shots });
let failed = false;
let page;
try {
  page = await (await kit.context()).newPage();
  const seen = watch(page);
  const token = need('PLEXUS_TOKEN');
  const api = async (path) => (await fetch(`${base}${path}`, { headers: { Authorization: `Bearer ${token}` } })).json();
  const fault = (/** @type {Error} */ error) => { faults.push(error.message); console.error('not ok', error.message); };
  async function judge(name) {
    await everywhere(page, async ({ width, theme }) => {
      if (shots) await page.screenshot({ path: join(shots, `${name}-${width}-${theme}.png`) });
      await axe(page, `${name} at ${width}, ${theme}`).catch(fault);
    });
    for (const [w, h] of [[320, 640], [PHONE.width, PHONE.height]]) await fits(page, w, h, name).catch(fault);
    await page.setViewportSize({ width: 1280, height: 800 });
  }
  const look = async (name) => { if (shots) await page.screenshot({ path: join(shots, `${name}.png`) }); };
  const form = page.locator('plexus-new-session');
  const dialog = page.locator('plexus-dialog[heading="New session"] dialog[open]');
  // A real agent starts: a busy machine takes its time.
  const inSession = () => page.waitForFunction(() => location.hash.startsWith('#/s/'), null, { timeout: START_MS });

  // --- the first run: three presses ------------------------------------------------------------------------------------------------
  await signIn(page, base, need('PLEXUS_CODE'));
  await page.locator('plexus-inbox plexus-new-session .kind[data-preset="gemini"]').waitFor();
  await judge('first-run');
  let presses = 0;
  const press = async (locator) => { presses += 1; await locator.click(); };
  await press(form.locator('.kind[data-preset="gemini"]'));
  await press(form.locator('#say'));
  await page.keyboard.type('FAKE:text made-in-three-presses');
  await press(form.locator('#start'));
  await inSession();
  await page.locator('plexus-session', { hasText: 'made-in-three-presses' }).waitFor({ timeout: START_MS });
  assert.equal(presses, 3);
  assert.deepEqual((await api('/v1/runtimes')).runtimes.map((one) => one.runtime_id), ['gemini']);
  ok('first run: three presses from the sign-in to a working Gemini');

  // --- by keyboard alone, in another folder: the same agent ---------------------------------------------------------------------------
  await visit(page, '#/inbox');
  await page.locator('plexus-inbox .empty').waitFor();
  await page.keyboard.press('n');
  await dialog.waitFor();
  await form.locator('.kind[data-runtime="gemini"] .chip', { hasText: 'running' }).waitFor();
  await look('new-dialog');
  await form.locator('#cwd').focus();
  await page.keyboard.press('Control+a');
  await page.keyboard.type(`${work}/pro`);
  await form.locator('#folders .one', { hasText: 'project' }).waitFor();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await form.locator('#folders .one[aria-selected="true"]', { hasText: 'project' }).waitFor();
  await page.keyboard.press('Enter');
  await page.waitForFunction((path) => document.querySelector('plexus-app')?.shadowRoot?.querySelector('plexus-new-session')?.shadowRoot?.querySelector('plexus-folder-field')?.shadowRoot?.querySelector('input')?.value === path, `${work}/project`);
  await page.keyboard.press('Escape');
  await dialog.waitFor();
  await form.locator('#say').focus();
  await page.keyboard.type('FAKE:text by-keyboard');
  await page.keyboard.press('Enter');
  await inSession();
  await page.locator('plexus-session', { hasText: 'by-keyboard' }).waitFor();
  const sessions = (await api('/v1/sessions')).sessions;
  assert.equal(sessions[0].cwd, `${work}/project`);
  assert.ok(sessions.length === 2 && sessions.every((one) => one.runtime_id === 'gemini'), 'one runtime, two sessions');
  ok('new: by keyboard alone, with a completed folder, in the agent that runs');

  // --- folders are browsed, and their names are text -----------------------------------------------------------------------------------
  await visit(page, '#/new');
  await form.locator('#cwd').fill(work);
  await form.locator('#browse').click();
  await form.locator('#folders .one', { hasText: '<b>evil' }).waitFor();
  await look('new-browse');
  await form.locator('#folders .one', { hasText: 'The folder above' }).click();
  await form.locator(`#folders[aria-label="Folders in ${dirname(work)}"]`).waitFor();
  assert.equal(await form.locator('#cwd').inputValue(), dirname(work));
  ok('new: folders are browsed one level at a time');

  // --- a start that fails, and one that is cancelled --------------------------------------------------------------------------------------
  await visit(page, '#/sessions');
  await page.locator('plexus-sessions #new').click();
  await dialog.waitFor();
  const custom = async (program) => {
    await form.locator('input[value="custom"]').check();
    await form.locator('input[name="command"]').fill(`${work}/${program}`);
  };
  await custom('dies');
  await form.locator('#say').fill('what was typed stays');
  await page.setViewportSize(PHONE);
  await form.locator('#start').click();
  await form.locator('.problem pre', { hasText: 'not signed in: run dies login' }).waitFor();
  const told = await form.locator('.problem').boundingBox();
  assert.ok(told && told.y >= 0 && told.y + told.height <= PHONE.height, `why it failed is out of sight: ${JSON.stringify(told)}`);
  assert.equal(await form.locator('#say').inputValue(), 'what was typed stays');
  await judge('new-failed');
  await custom('hangs');
  await form.locator('#start').click();
  await form.locator('.busy', { hasText: 'Starting' }).waitFor();
  await look('new-starting');
  await form.locator('#cancel').click();
  await form.locator('.problem', { hasText: 'Cancelled' }).waitFor();
  for (let n = 0; ; n += 1) {
    const left = (await api('/v1/runtimes')).runtimes.map((one) => one.runtime_id);
    if (left.length === 1 && left[0] === 'gemini') break;
    assert.ok(n < 300, `left behind: ${left}`);
    await new Promise((done) => { setTimeout(done, 100); });
  }
  assert.equal((await api('/v1/sessions')).sessions.length, 2);
  ok('new: a start that fails or is cancelled leaves nothing, and what was typed stays');

  // --- an agent that does not run says its past conversations once it is started; and a branch of its own -----------------------------
  await form.locator('.kind[data-preset="demo"]').click();
  await form.locator('#old').click();
  await form.locator('#wake', { hasText: 'Start' }).waitFor();
  assert.ok(await form.locator('#start').isDisabled(), 'there is nothing to resume yet');
  await judge('new-asleep');
  await form.locator('#wake').click();
  await form.locator('plexus-past', { hasText: 'Nothing to resume' }).waitFor({ timeout: START_MS });
  await form.locator('.kind[data-runtime="demo"] input:checked').waitFor();
  ok('new: an agent that does not run is started to see its past conversations');
  await form.locator('#fresh').click();
  await form.locator('#cwd').fill(`${work}/project`);
  await form.locator('#worktree summary').click();
  await form.locator('input[name="branch"]').fill('no good');
  await form.locator('#start').click();
  await form.locator('.problem', { hasText: 'cannot be the name of a branch' }).waitFor();
  await form.locator('input[name="branch"]').fill('from-the-page');
  await judge('new-branch');
  await form.locator('#say').fill('echo on-a-branch');
  await form.locator('#start').click();
  await inSession();
  const made = (await api('/v1/sessions')).sessions.find((one) => one.runtime_id === 'demo');
  assert.ok(made.cwd.endsWith('/project.worktrees/from-the-page'), made.cwd);
  const gone = await fetch(`${base}/v1/runtimes/demo`, { method: 'DELETE', headers: { Authorization: `Bearer ${token}` } });
  assert.equal(gone.status, 204);
  ok('new: a session begins on a branch of its own, in a git worktree');

  // A failed start is answered by the status 502 or 422, which the browser notes; nothing else.
  assert.deepEqual(seen.complaints.filter((one) => !/status of (502|422)/.test(one)), []);
  assert.deepEqual(seen.dialogs, []);
  assert.deepEqual(faults, []);
} catch (error) {
  failed = true;
  console.error('not ok', error?.stack ?? error);
  if (shots && page) await page.screenshot({ path: join(shots, 'new-failure.png') }).catch(() => {});
} finally {
  await kit.close();
}
process.exit(failed ? 1 : 0);
