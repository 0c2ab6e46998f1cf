// Cards of all sorts of requests in a real browser: edits, unreadable subjects, changes while open, displays that are sent in part, forms, and
// many one after the other. The gateway is real; the requests are inserted into its WebSocket by a relay, which also records the answers.
//
//   PLEXUS_URL, PLEXUS_CODE, PLEXUS_TOKEN   the gateway, a one-time code, the administrator's token
//   PLEXUS_SHOTS                            a directory for pictures; none are taken if not set
//   and what kit.mjs reads
//
// Prints a line `ok ...` for each passed test; the first failure ends it with exit code 1.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DESK, PHONE, axe, caller, everywhere, fits, launch, live, need, ok, signIn, visit, watch } from './kit.mjs';

const base = need('PLEXUS_URL').replace(/\/$/, '');
const token = need('PLEXUS_TOKEN');
const shots = process.env.PLEXUS_SHOTS;
/** How long a card takes to arm and to notice a move, ms: the times of web/src/request/arming.ts with a margin. */
const ARMED_MS = 600;

const api = caller(base, () => token);

const kit = await launch({ shots });
let failed = false;
let page;
try {
  const { session_id } = await api('POST', '/v1/sessions', { runtime_id: 'demo', title: 'Asked' });
  const context = await kit.context({ viewport: PHONE });
  page = await context.newPage();
  const seen = watch(page);
  /** @type {(message: object) => void} */ let put = () => {};
  await page.routeWebSocket(/\/v1\/ws/, (socket) => {
    const server = socket.connectToServer();
    socket.onMessage((message) => server.send(message));
    server.onMessage((message) => socket.send(message));
    put = (message) => socket.send(JSON.stringify(message));
  });
  /** @type {Array<{id: string, body: any}>} */ const answers = [];
  /** @type {Map<string, any>} */ const wholes = new Map();
  let fetched = 0;
  await page.route(/\/v1\/requests\/[^/]+(\/answer)?$/, async (route) => {
    const [, id, answer] = /requests\/([^/]+)(\/answer)?$/.exec(route.request().url()) ?? [];
    if (answer) {
      const body = route.request().postDataJSON();
      answers.push({ id, body });
      const receipt = { request_id: id, state: 'answered', ok: true, ...body, resolved_by: { device_id: 'd_x', name: 'Me' }, at: new Date().toISOString(), won: true };
      await route.fulfill({ json: receipt });
    } else {
      fetched += 1;
      const whole = wholes.get(id);
      await route.fulfill(whole ? { json: whole } : { status: 503, contentType: 'text/html', body: 'away' });
    }
  });
  await signIn(page, base, need('PLEXUS_CODE'));

  let serial = 0;
  const ALLOW = [{ id: 'allow_once', label: 'Yes', kind: 'allow_once' }, { id: 'reject_once', label: 'No', kind: 'reject_once' }];
  const request = (more) => ({
    request_id: `r_asked_${serial++}`, session_id, run_id: 'r_1', runtime_id: 'demo', type: 'permission', state: 'open', title: 'A question', display: 'true', warnings: [], risk: 'elevated',
    risk_reasons: [], revision: 0, digest: 'd0', options: ALLOW, allow_reason: false, allow_remember: false, opened_at: new Date().toISOString(), ...more,
  });
  const tell = (kind, body) => put({ jsonrpc: '2.0', method: 'agent.event', params: { session_id, run_id: 'r_1', seq: 0, at: new Date().toISOString(), kind, event: body, meta: { runtime_id: 'demo', dialect: 'acp' } } });
  const cardOf = (one) => page.locator(`article[data-request="${one.request_id}"]`);
  /** Opens a question on a page of its own. */
  async function ask(more) {
    const one = request(more);
    tell('request_opened', one);
    await visit(page, `#/r/${one.request_id}`);
    await cardOf(one).waitFor();
    return one;
  }
  const allow = (one) => cardOf(one).locator('[data-key="a"]');
  const deny = (one) => cardOf(one).locator('[data-key="d"]');
  const pressed = async (button) => { await page.waitForTimeout(ARMED_MS); await button.click({ force: true }); };
  async function judge(name) {
    await everywhere(page, async ({ width, theme }) => {
      if (shots) await page.screenshot({ path: join(shots, `${name}-${width}-${theme}.png`) });
      await axe(page, `${name} at ${width}, ${theme}`);
    });
    await fits(page, PHONE.width, PHONE.height, name);
    await page.setViewportSize(PHONE);
  }

  // --- an edit of one word in 600 lines ----------------------------------------------------------------------------------------------------
  const lines = ['line 297', 'line 298', 'line 299'];
  const display = ['edit src/deep/in/a/folder/names.txt', '@@ -297,7 +297,7 @@', ...lines.map((one) => ` ${one}`), '-the old word', '+the new word', ' line 301', ' line 302', ' line 303'].join('\n');
  const edit = await ask({ title: 'Edit names.txt', display, subject: { type: 'edit', files: [{ path: 'src/deep/in/a/folder/names.txt', added: 1, removed: 1 }] }, risk_reasons: ['changes a file outside the folder'] });
  const box = cardOf(edit);
  assert.deepEqual(await box.locator('plexus-exact .line').evaluateAll((all) => all.map((one) => one.className.replace('line ', ''))), ['head', 'hunk', 'same', 'same', 'same', 'del', 'add', 'same', 'same', 'same']);
  assert.equal(await box.locator('plexus-exact pre').evaluate((pre) => [...pre.querySelectorAll('.line')].map((one) => one.textContent).join('')), display);
  await box.locator('.why', { hasText: 'changes a file outside the folder' }).waitFor();
  // All that has to be read and all that can be pressed is on the phone at once.
  const inSight = await page.evaluate(() => {
    const deep = (root, selector) => { for (const el of root.querySelectorAll('*')) { if (el.matches(selector)) return el; const found = el.shadowRoot && deep(el.shadowRoot, selector); if (found) return found; } return null; };
    const article = deep(document, 'article');
    const [head, last] = [deep(article.getRootNode(), 'header'), deep(article.getRootNode(), '.answers')];
    const order = ['header', 'plexus-exact', '.why', '.where', '.answers'].map((selector) => deep(article.getRootNode(), selector)?.getBoundingClientRect().top).filter((top) => top !== undefined);
    const body = deep(article.getRootNode(), '.body');
    return { sorted: order.every((top, n) => n === 0 || top > order[n - 1]), top: head.getBoundingClientRect().top >= 0, end: last.getBoundingClientRect().bottom <= innerHeight, exact: body.scrollTop === 0 && deep(article.getRootNode(), 'plexus-exact').getBoundingClientRect().bottom <= last.getBoundingClientRect().top };
  });
  assert.deepEqual(inSight, { sorted: true, top: true, end: true, exact: true });
  await judge('asked-edit');
  await pressed(allow(edit));
  await box.and(page.locator('[data-status="closed"]')).waitFor();
  assert.deepEqual(answers.at(-1), { id: edit.request_id, body: { option_id: 'allow_once', digest: 'd0' } });
  ok('card: an edit is a diff with risk reasons, and one word in 600 lines is readable on a phone without scrolling');

  // --- what cannot be read ---------------------------------------------------------------------------------------------------------------
  const opaque = await ask({ title: 'Do it', display: '{"blob":"\\u{202e}AAECAw=="}', subject: { type: 'unreadable' }, risk: 'danger', risk_reasons: ['cannot be read'] });
  await cardOf(opaque).locator('header', { hasText: 'asks for something that Plexus cannot read' }).waitFor();
  await cardOf(opaque).locator('.unreadable', { hasText: 'cannot tell what it would do. Below is what the agent sent, unchanged.' }).waitFor();
  await cardOf(opaque).locator('plexus-exact', { hasText: '{"blob":"\\u{202e}AAECAw=="}' }).waitFor();
  await judge('asked-unreadable');
  ok('card: an unreadable subject is marked, and shown as it was sent');

  // --- it changes while it is open ---------------------------------------------------------------------------------------------------------
  const first = await ask({ display: 'make test', subject: { type: 'command', argv: ['make test'] } });
  await page.waitForTimeout(ARMED_MS);
  assert.equal(await allow(first).getAttribute('aria-disabled'), 'false');
  tell('request_updated', { ...first, display: 'make deploy', subject: { type: 'command', argv: ['make deploy'] }, revision: 1, changed: true, digest: 'd1' });
  const note = cardOf(first).locator('.changed', { hasText: 'This request changed while it was open. Read it again.' });
  await note.waitFor();
  await cardOf(first).locator('plexus-exact', { hasText: 'make deploy' }).waitFor();
  const before = answers.length;
  await pressed(allow(first));
  await page.waitForTimeout(ARMED_MS);
  assert.equal(answers.length, before, 'a yes was given to what was not read');
  assert.equal(await allow(first).getAttribute('aria-disabled'), 'true');
  await judge('asked-changed');
  // An earlier revision that comes late changes nothing.
  tell('request_updated', first);
  await pressed(note.locator('button'));
  await note.waitFor({ state: 'detached' });
  await cardOf(first).locator('plexus-exact', { hasText: 'make deploy' }).waitFor();
  await pressed(allow(first));
  await cardOf(first).and(page.locator('[data-status="closed"]')).waitFor();
  assert.deepEqual(answers.at(-1), { id: first.request_id, body: { option_id: 'allow_once', digest: 'd1' } });
  const no = await ask({ display: 'make test' });
  tell('request_updated', { ...no, display: 'make deploy', revision: 1, changed: true, digest: 'd1' });
  await cardOf(no).locator('.changed').waitFor();
  await pressed(deny(no));
  await cardOf(no).and(page.locator('[data-status="closed"]')).waitFor();
  ok('card: a request that changed while open says so, takes a no, and a yes only after reading again');

  // --- too long to come unasked ----------------------------------------------------------------------------------------------------------
  const all = `begin\n${Array.from({ length: 2_000 }, (_, n) => `echo step ${n}`).join('\n')}\nrm -rf the-end`;
  const part = { display: all.slice(0, 16_000), display_truncated: true, display_bytes: all.length, digest: undefined, subject: { type: 'command', argv: [] } };
  const long = await ask(part);
  await pressed(allow(long));
  assert.equal(await allow(long).getAttribute('aria-disabled'), 'true');
  // It cannot be had at first; a no is possible meanwhile, which is tried with another one.
  await cardOf(long).locator('button.open', { hasText: all.length.toLocaleString('en') }).click();
  await cardOf(long).locator('.say', { hasText: 'could not be loaded' }).waitFor();
  const other = await ask({ ...part });
  await pressed(deny(other));
  await cardOf(other).and(page.locator('[data-status="closed"]')).waitFor();
  assert.deepEqual(answers.at(-1)?.body, { option_id: 'reject_once' });
  await visit(page, `#/r/${long.request_id}`);
  wholes.set(long.request_id, { ...long, display: all, display_truncated: undefined, display_bytes: undefined, digest: 'd-whole' });
  const asked = fetched;
  await cardOf(long).locator('button.open').click();
  await cardOf(long).locator('plexus-exact[opened]').waitFor();
  assert.equal(fetched, asked + 1);
  assert.equal(await allow(long).getAttribute('aria-disabled'), 'true', 'its end was not seen');
  await judge('asked-long');
  await cardOf(long).locator('plexus-exact pre').evaluate(async (pre) => { while (pre.scrollTop + pre.clientHeight < pre.scrollHeight - 1) { pre.scrollTop = pre.scrollHeight; await new Promise(requestAnimationFrame); } });
  await cardOf(long).locator('.foot').scrollIntoViewIfNeeded();
  await cardOf(long).locator('.foot', { hasText: 'Read to its end' }).waitFor();
  await pressed(allow(long));
  await cardOf(long).and(page.locator('[data-status="closed"]')).waitFor();
  assert.deepEqual(answers.at(-1), { id: long.request_id, body: { option_id: 'allow_once', digest: 'd-whole' } });
  ok('card: a display sent in part is fetched and read to its end before a yes, and takes a no at once');

  // --- a form, by keyboard ---------------------------------------------------------------------------------------------------------------
  const questions = [
    { id: 'colour', header: 'Colour', text: 'Which colour shall the button have?', options: [{ id: '1', label: 'Red', description: 'As it was' }, { id: '2', label: 'Blue' }], multiple: false, free_text: true },
    { id: 'targets', text: 'Where shall it be tried?', options: [{ id: 'a', label: 'Chrome' }, { id: 'b', label: 'Firefox' }, { id: 'c', label: 'Safari' }], multiple: true, free_text: false },
    { id: 'count', header: 'How many', text: 'How many users?', options: [], multiple: false, free_text: true, fits: { number: 'integer', least: 1, most: 100 } },
  ];
  const form = await ask({ type: 'elicitation', title: 'Some questions', display: questions.map((one) => one.text).join('\n'), subject: { type: 'question', questions }, options: [], risk: 'low' });
  const at = cardOf(form);
  await pressed(allow(form));
  await at.locator('.say', { hasText: 'Colour: Choose an answer.' }).waitFor();
  const focused = () => page.evaluate(() => { let one = document.activeElement; while (one?.shadowRoot?.activeElement) one = one.shadowRoot.activeElement; return one?.closest('fieldset')?.dataset['question']; });
  assert.equal(await focused(), 'colour', 'the question that lacks an answer has the focus');
  assert.equal(await page.getByRole('radiogroup', { name: /Which colour shall the button have/ }).count(), 1);
  await page.getByRole('radio', { name: 'Other' }).focus();
  await page.keyboard.press('Space');
  await page.keyboard.press('Tab');
  await page.keyboard.type('teal');
  await page.getByRole('checkbox', { name: 'Safari' }).focus();
  await page.keyboard.press('Space');
  await page.getByRole('checkbox', { name: 'Chrome' }).focus();
  await page.keyboard.press('Space');
  await page.getByRole('textbox', { name: 'Your own text for: How many' }).fill('1000');
  await at.locator('.wrong', { hasText: 'At most 100.' }).waitFor();
  await judge('asked-form');
  await page.getByRole('textbox', { name: 'Your own text for: How many' }).fill('12');
  await allow(form).scrollIntoViewIfNeeded();
  await pressed(allow(form));
  await at.and(page.locator('[data-status="closed"]')).waitFor();
  assert.deepEqual(answers.at(-1), { id: form.request_id, body: { answers: { colour: ['teal'], targets: ['a', 'c'], count: ['12'] }, digest: 'd0' } });
  const unanswered = await ask({ type: 'elicitation', title: 'Some questions', display: 'q', subject: { type: 'question', questions }, options: [] });
  await pressed(deny(unanswered));
  await cardOf(unanswered).and(page.locator('[data-status="closed"]')).waitFor();
  assert.deepEqual(answers.at(-1)?.body, { answers: {}, digest: 'd0' });
  ok('card: a form works by keyboard and for screen readers');

  // --- what was answered and lingers hides no new question --------------------------------------------------------------------------------
  await visit(page, '#/inbox');
  const rowOf = (one) => page.locator(`[role="row"][data-request="${one.request_id}"]`);
  for (let n = 0; n < 40; n++) {
    const one = request({ display: `make ${n}`, risk: 'low' });
    tell('request_opened', one);
    // Somebody's finger is on the list all the while, so that nothing leaves it.
    await page.locator('plexus-requests').dispatchEvent('pointermove', { pointerType: 'mouse' });
    const below = page.locator('plexus-requests .new button');
    await rowOf(one).or(below).first().waitFor();
    if (await below.count()) await below.click();
    await rowOf(one).waitFor();
    tell('request_resolved', { request_id: one.request_id, state: 'answered', ok: true, resolved_by: { device_id: 'd_x', name: 'Me' }, at: new Date().toISOString() });
    await rowOf(one).and(page.locator('[data-state="closed"]')).waitFor({ state: 'attached' });
  }
  await judge('asked-answered');
  ok('list: a new request is drawn however many answered ones stay above it');

  const known = /503|Failed to load resource/;
  assert.deepEqual(seen.complaints.filter((one) => !known.test(one)), []);
  await page.setViewportSize(DESK);
} catch (error) {
  failed = true;
  console.error('not ok\n', error);
  if (shots && page) await page.screenshot({ path: join(shots, 'failure.png') }).catch(() => {});
} finally {
  await kit.close();
}
process.exit(failed ? 1 : 0);
