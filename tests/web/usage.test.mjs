// What agents spent, in a real browser, against a real gateway: nothing yet, what the demo agent tells, and figures of other agents that the
// gateway is made to seem to give.
//
//   PLEXUS_URL, PLEXUS_CODE, PLEXUS_TOKEN   the gateway, a one-time code, the administrator's token
//   PLEXUS_SHOTS                            a directory for pictures; none are taken if not set
//   and what kit.mjs reads
//
// Prints a line `ok ...` for each passed test; the first failure ends it with exit code 1.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DESK, PHONE, axe, caller, everywhere, fits, launch, need, ok, settled, signIn, visit, watch } from './kit.mjs';

const base = need('PLEXUS_URL').replace(/\/$/, '');
const token = need('PLEXUS_TOKEN');
const shots = process.env.PLEXUS_SHOTS;

const api = caller(base, () => token);

async function judge(/** @type {import('playwright-core').Page} */ page, /** @type {string} */ name) {
  await everywhere(page, async ({ width, theme }) => {
    if (shots) await page.screenshot({ path: join(shots, `${name}-${width}-${theme}.png`), fullPage: false });
    await axe(page, `${name} at ${width}, ${theme}`);
  });
  for (const [width, height] of [[320, 640], [PHONE.width, PHONE.height], [1280, 800], [DESK.width, DESK.height]]) await fits(page, width, height, name);
  await page.setViewportSize(DESK);
  ok(`${name}: axe finds nothing and nothing overflows, at every size and in both themes`);
}

/** A prompt that the demo agent answers, telling what it took. */
async function spend(/** @type {string} */ session, /** @type {number} */ bytes) {
  const { run_id: run } = await api('POST', `/v1/sessions/${session}/prompt`, { text: `echo ${'x'.repeat(bytes)} ;; usage` });
  for (let next = ''; ;) {
    const page = await api('GET', `/v1/sessions/${session}/events?after=${next}&wait=20`);
    if (page.events.some((/** @type {any} */ event) => event.kind === 'run_ended' && event.run_id === run)) return;
    next = page.next;
  }
}

/** Figures of several agents, as `GET /v1/usage` gives them. */
function figures(/** @type {URL} */ url) {
  const by = url.searchParams.get('by');
  const [from, to] = [url.searchParams.get('from') ?? '', url.searchParams.get('to') ?? ''];
  const at = `${to}T10:15:00.000Z`;
  const usd = (/** @type {number} */ amount) => [{ amount, currency: 'USD' }];
  const days = [];
  for (let day = Date.parse(from); day <= Date.parse(to); day += 86_400_000) days.push(new Date(day).toISOString().slice(0, 10));
  const rows = {
    day: days.map((day, n) => ({ day, at, usage: n % 7 === 5 ? {} : { input_tokens: 900_000 + 310_000 * ((n * 7) % 5), output_tokens: 20_000 + 9_000 * (n % 4), costs: usd(2.5 + ((n * 5) % 7)) } })),
    runtime: [
      { runtime_id: 'claude', at, usage: { input_tokens: 31_400_000, cached_read_tokens: 29_000_000, cached_write_tokens: 1_100_000, output_tokens: 410_000, costs: [{ amount: 3.5, currency: 'EUR' }, { amount: 41.27, currency: 'USD' }] } },
      { runtime_id: 'codex-app', at, usage: { input_tokens: 8_020_000, cached_read_tokens: 6_900_000, output_tokens: 96_000, reasoning_tokens: 61_000 } },
      { runtime_id: 'gemini', at, usage: { input_tokens: 512_000, output_tokens: 9_400 } },
      { runtime_id: 'opencode', at, usage: { input_tokens: 80_500, output_tokens: 2_100, costs: usd(0.0314) } },
    ],
    project: [{ project: '/home/you/work/plexus', at, usage: { input_tokens: 40_000_000, output_tokens: 500_000, costs: usd(41.3) } }],
    session: [
      { session_id: 's_one', runtime_id: 'claude', project: '/home/you/work/plexus', title: '<img src=x onerror=alert(1)> \u202etitle', at, usage: { input_tokens: 31_400_000, output_tokens: 410_000, costs: usd(41.27) } },
      { session_id: 's_two', runtime_id: 'gemini', project: `/home/you/${'deep/'.repeat(30)}folder`, title: 'A long title '.repeat(12), at, usage: { input_tokens: 512_000, output_tokens: 9_400 } },
    ],
  };
  const total = { input_tokens: 40_012_500, cached_read_tokens: 35_900_000, cached_write_tokens: 1_100_000, output_tokens: 517_500, reasoning_tokens: 61_000, costs: [{ amount: 3.5, currency: 'EUR' }, { amount: 41.3014, currency: 'USD' }] };
  return { by, from, to, utc_offset: 0, known_since: `${days[Math.floor(days.length / 2)]}T12:00:00.000Z`, total, rows: rows[/** @type {keyof typeof rows} */ (by)] ?? [], truncated: by === 'session' };
}

const kit = await launch({ shots });
let failed = false;
try {
  const context = await kit.context();
  const page = await context.newPage();
  const seen = watch(page);
  await signIn(page, base, need('PLEXUS_CODE'));
  const cell = (/** @type {number} */ row, /** @type {number} */ column) => page.locator('tbody tr').nth(row).locator('th, td').nth(column);
  const press = (/** @type {string} */ name) => page.locator('main').getByRole('button', { name, exact: true }).click();

  // --- nothing yet
  await page.locator('.rail a[href="#/usage"]').click();
  await page.getByRole('heading', { name: 'No usage was reported for these days' }).waitFor();
  await page.getByText('tokens, with cache and reasoning').waitFor();
  await settled(page);
  await judge(page, 'usage-empty');

  // --- what the demo agent tells
  const sessions = [];
  for (const title of ['Small', 'Large']) sessions.push((await api('POST', '/v1/sessions', { runtime_id: 'demo', title })).session_id);
  await spend(sessions[0], 400);
  await spend(sessions[1], 8_000);
  await visit(page, '#/inbox');
  await page.keyboard.press('g');
  await page.keyboard.press('u');
  await page.locator('dl.sums').waitFor();
  assert.equal(await page.locator('tbody tr').count(), 1);
  assert.equal(await cell(0, 0).innerText(), 'demo');
  assert.equal(await page.locator('plexus-surface-chart svg[role="img"]').count(), 1);
  await press('Session');
  await page.locator('tbody tr').nth(1).waitFor();
  assert.match(await cell(0, 0).innerText(), /^Large/);
  await press('Read');
  assert.match(await cell(0, 0).innerText(), /^Small/, 'sorted the other way round');
  assert.equal(await page.locator('thead th[aria-sort="ascending"]').count(), 1);
  await page.locator('tbody a', { hasText: 'Large' }).click();
  await page.waitForFunction((to) => location.hash === to, `#/s/${sessions[1]}`);
  ok('usage: sums, bars and a table that is sorted, and leads to the session');

  // --- in the session
  await page.getByText(/Finished.* tokens · .* USD/).waitFor();
  await page.locator('plexus-menu#menu button').first().click();
  await page.getByRole('menuitem', { name: 'What it spent' }).click();
  await page.waitForFunction((to) => location.hash === to, `#/usage?session=${sessions[1]}`);
  await page.getByText('Only of “Large”').waitFor();
  await page.getByRole('table', { name: 'By run' }).waitFor();
  assert.equal(await page.locator('tbody tr').count(), 1);
  await page.getByRole('link', { name: 'Show all sessions' }).click();
  await page.getByRole('table', { name: 'By agent' }).waitFor();
  ok('usage: a run says at its end what it spent, and a session leads to its runs');

  // --- many agents, two currencies, hostile names
  await page.route(/\/v1\/usage\?/, (route) => route.fulfill({ json: figures(new URL(route.request().url())) }));
  await press('30 days');
  await page.getByText('40M').first().waitFor();
  assert.deepEqual(await page.locator('dl.sums dt').allInnerTexts(), ['Read', 'Of it cached', 'Written', 'Of it reasoning', 'Cost']);
  assert.deepEqual(await page.locator('dl.sums dd.small').allInnerTexts(), ['3.50 EUR', '41.30 USD'], 'currencies are not added together');
  assert.equal(await cell(0, 4).innerText(), '3.50 EUR + 41.27 USD');
  assert.match(await cell(2, 4).innerText(), /not reported|–/);
  await page.getByText(/Counted since/).waitFor();
  await press('Cost (USD)');
  await page.getByText('10USD').or(page.getByText('10\u00a0USD')).first().waitFor();
  await press('Tokens');
  await settled(page);
  await judge(page, 'usage');
  await press('Session');
  await page.locator('tbody a').nth(1).waitFor();
  await settled(page);
  await judge(page, 'usage-sessions');
  await page.unroute(/\/v1\/usage\?/);

  // --- ceilings: what is wrong is said, what is set is kept, and a prompt that waits says for what
  const [day, each] = [page.getByLabel('All sessions in a day'), page.getByLabel('Each session')];
  await day.fill('five dollars');
  await press('Save ceilings');
  await page.getByText('Write an amount with its currency').waitFor();
  assert.equal(await day.getAttribute('aria-invalid'), 'true');
  await day.fill('2M tokens, 50 usd');
  await each.fill('100 tokens');
  await press('Save ceilings');
  await page.getByText('Set here.').nth(1).waitFor();
  assert.equal(await day.inputValue(), '50.00 USD, 2_000_000 tokens');
  await day.scrollIntoViewIfNeeded();
  await settled(page);
  await judge(page, 'usage-ceilings');
  const waiting = await api('POST', `/v1/sessions/${sessions[1]}/prompt`, { text: 'echo this one waits' });
  assert.equal(waiting.queued, true);
  await visit(page, `#/s/${sessions[1]}`);
  await page.locator('.queue').getByText('waits: this session’s ceiling is reached').waitFor();
  await page.getByText(/This session has spent [0-9,]+ of 100 tokens\. Go on\?/).locator('visible=true').first().waitFor();
  await settled(page);
  await judge(page, 'ceiling-asked');
  const [asked] = (await api('GET', '/v1/requests')).requests;
  await api('POST', `/v1/requests/${asked.request_id}/answer`, { option_id: 'go_on' });
  await page.locator('.queue').waitFor({ state: 'detached' });
  await visit(page, '#/usage');
  await press('As configured');
  await page.getByText('No ceiling.').nth(1).waitFor();
  ok('usage: ceilings are set, a reached one asks in its session, and the prompt that waits says so');

  // --- a phone: in the account's menu
  await page.setViewportSize(PHONE);
  await visit(page, '#/inbox');
  await page.locator('.top plexus-menu button').first().click();
  await page.locator('.top').getByRole('menuitem', { name: 'Usage' }).click();
  await page.waitForFunction(() => location.hash === '#/usage');
  ok('usage: a phone has it in the account\'s menu');

  assert.deepEqual([seen.complaints, seen.dialogs], [[], []], 'the browser complained of nothing');
} catch (error) {
  failed = true;
  console.error(error);
  if (shots) for (const [n, c] of kit.browser.contexts().entries()) for (const p of c.pages()) await p.screenshot({ path: join(shots, `failed-${n}.png`) }).catch(() => {});
} finally {
  await kit.close();
}
if (failed) process.exit(1);
