// Home and pinned surfaces in a real browser, against a real gateway: what is pinned in many sessions, live, read only where it is seen,
// answered by touch, and what a session opens with.
//
//   PLEXUS_URL          http://127.0.0.1:PORT of the running gateway
//   PLEXUS_TOKEN        its administrator's token
//   PLEXUS_DIR          a folder for files
//   PLEXUS_PLAYWRIGHT   a folder with node_modules/playwright-core and axe-core
//   PLEXUS_SHOTS        a folder for pictures; none are taken if not set
//
// Prints a line `ok ...` for each passed test; the first failure ends it with exit code 1.
import assert from 'node:assert/strict';
import { axe, everywhere, fits, live, ok, PATIENCE_MS, settled, shoot, signIn, watch } from './kit.mjs';
import { api, base, HARMLESS, harmless, newSession, start } from './session_kit.mjs';
import { GALLERY, rowsOf } from './surface_fixtures.mjs';

/** Most rows of a table. */
const ROWS_MAX = 10_000;
/** Sessions with something pinned. */
const MANY = 60;
const SIZES = [[320, 640], [390, 844], [1280, 900], [2560, 1300]];
const DESK = { width: 1280, height: 900 };

/** Shows one of the fixtures. @param {string} session @param {any} one @param {object} [more] */
const draw = (session, one, more = {}) => {
  const [, { updateComponents: { components } }, data] = one.messages;
  return api('POST', `/v1/sessions/${session}/surfaces`, { surface: one.surface, title: one.title, components, ...(data ? { data: data.updateDataModel.value } : {}), ...more });
};
const named = async (/** @type {string} */ title) => {
  const session = await newSession();
  await api('PATCH', `/v1/sessions/${session}`, { title });
  return session;
};
const progress = (/** @type {string} */ label) => ({ surface: 'progress', title: label, messages: [{}, { updateComponents: { components: [{ id: 'root', component: 'Progress', label, value: { path: '/done' } }] } }, { updateDataModel: { value: { done: 0.1 } } }] });
const QUESTION = {
  surface: 'release', title: 'Release',
  components: [
    { id: 'root', component: 'Column', children: ['name', 'sure', 'go'] },
    { id: 'name', component: 'TextField', label: 'Name of the release', value: { path: '/name' } },
    { id: 'sure', component: 'CheckBox', label: 'Push the tag as well', value: { path: '/tag' } },
    { id: 'go', component: 'Button', variant: 'primary', child: 'got', action: { event: { name: 'submit' } } }, { id: 'got', component: 'Text', text: 'Release' },
  ],
  data: { name: 'v1', tag: false },
};

const { kit, context, page, seen, close } = await start({ viewport: DESK });
const home = page.locator('plexus-home');
const tile = (/** @type {string} */ title, at = page) => at.locator('plexus-home .tile', { hasText: title });
/** The sessions of which the page has read the surfaces since `from`. */
const read = (from = 0) => seen.asked.slice(from).flatMap((url) => /\/v1\/sessions\/([^/]+)\/surfaces$/.exec(url)?.[1] ?? []);
const shown = () => page.locator('plexus-home plexus-surface').count();

try {
  // --- nothing is pinned
  await page.goto(`${base}/#/home`);
  await home.getByText('Nothing is pinned').waitFor();
  await everywhere(page, async ({ width, theme }) => axe(page, `empty home ${width} ${theme}`));
  await shoot(page, kit.shots, 'home-empty');
  ok('home: says what it is for while nothing is pinned');

  // --- one session, live
  const first = await named('Port the parser');
  await draw(first, GALLERY.build);
  await page.waitForTimeout(300);
  assert.equal(await home.locator('.tile').count(), 0, 'what is not pinned is not there');
  await api('PATCH', `/v1/sessions/${first}/surfaces/build`, { pinned: true });
  await tile('Port the parser').locator('plexus-surface').getByText('1,284').waitFor();
  await tile('Port the parser').getByText('Drawn by demo').waitFor();
  await api('PATCH', `/v1/sessions/${first}/surfaces/build`, { data: [{ path: '/counts/0', value: 1301 }] });
  await tile('Port the parser').getByText('1,301').waitFor();
  assert.equal(await home.locator('#count').innerText(), '1 pinned surface of 1 session');
  ok('home: what is pinned appears, under its session and agent, and changes as it is drawn');

  // --- many sessions: only what is seen is read
  /** @type {string[]} */ const all = [];
  for (let n = 0; n < MANY - 1; n++) {
    const session = await named(`Session ${n}`);
    all.push(session);
    if (n === 0) {
      await draw(session, GALLERY.data, { pin: true });
      const rows = rowsOf(ROWS_MAX - 400);
      // In parts: a call may not bring all of it.
      for (let from = 0; from < rows.length; from += 2_400) await api('PATCH', `/v1/sessions/${session}/surfaces/data`, { data: [{ path: '/rows', append: rows.slice(from, from + 2_400) }] });
    }
    else await draw(session, [GALLERY.code, GALLERY.layout, progress(`Task ${n}`)][n % 3], { pin: true });
  }
  await page.goto('about:blank');
  const before = seen.asked.length;
  await page.goto(`${base}/#/home`);
  await home.locator('.tile').nth(MANY - 1).waitFor({ state: 'attached' });
  await home.locator('plexus-surface').first().waitFor();
  assert.equal(await home.locator('.tile').count(), MANY);
  // Until all that was read is drawn.
  let once = /** @type {string[]} */ ([]);
  for (const until = Date.now() + PATIENCE_MS; ;) {
    await settled(page);
    await page.waitForTimeout(100);
    once = read(before);
    if (once.length && once.length === await shown()) break;
    assert.ok(Date.now() < until, `${once.length} sessions are read, ${await shown()} surfaces are drawn`);
  }
  assert.ok(once.length >= 2 && once.length <= 12, `${once.length} of ${MANY} sessions are read`);
  assert.equal(new Set(once).size, once.length, 'each once');
  assert.equal(seen.asked.slice(before).filter((url) => /\/snapshot|\/events/.test(url)).length, 0, 'no session is read beyond its surfaces');
  const early = await shown();
  assert.ok(early <= 12, `${early} surfaces are drawn`);
  // One far below changes: it is neither read nor drawn for that.
  const hidden = all.find((session) => !once.includes(session)) ?? '';
  assert.ok(hidden);
  const later = seen.asked.length;
  const [surface] = (await api('GET', `/v1/sessions/${hidden}/surfaces`)).surfaces;
  await api('PATCH', `/v1/sessions/${hidden}/surfaces/${surface.surface}`, { title: 'Renamed out of sight' });
  await page.waitForTimeout(500);
  assert.deepEqual([read(later), await shown()], [[], early]);
  await home.locator('.tile').last().scrollIntoViewIfNeeded();
  await home.locator('.tile').last().locator('plexus-surface').waitFor();
  assert.ok(read(later).length < MANY / 2, 'what was skipped on the way is not read');
  ok(`home: of ${MANY} sessions the ${once.length} in sight are read, the others when they come into view`);

  // --- every size
  for (const [width, height] of SIZES) await fits(page, /** @type {number} */ (width), /** @type {number} */ (height), 'home');
  await page.setViewportSize({ width: 2560, height: 1300 });
  await page.locator('main').evaluate((el) => { el.scrollTop = 0; });
  await settled(page);
  const columns = await home.locator('.wall').evaluate((el) => getComputedStyle(el).gridTemplateColumns.split(' ').length);
  assert.ok(columns >= 4, `${columns} columns at 2560 px`);
  await page.setViewportSize({ width: 320, height: 640 });
  await settled(page);
  assert.equal(await home.locator('.wall').evaluate((el) => getComputedStyle(el).gridTemplateColumns.split(' ').length), 1);
  await page.setViewportSize(DESK);
  await everywhere(page, async ({ width, theme }) => axe(page, `home ${width} ${theme}`));
  await shoot(page, kit.shots, 'home');
  ok('home: from one column at 320 px to many at 2560, no axe violation in both themes');

  // --- by the keyboard
  await page.locator('main').evaluate((el) => { el.scrollTop = 0; });
  await page.keyboard.press('g');
  await page.keyboard.press('i');
  await page.waitForFunction(() => location.hash === '#/inbox');
  await page.keyboard.press('g');
  await page.keyboard.press('h');
  await page.waitForFunction(() => location.hash === '#/home');
  await home.locator('.tile').nth(2).waitFor();
  for (const key of ['j', 'j', 'j', 'k']) await page.keyboard.press(key);
  const second = await home.locator('.tile h2 a').nth(1).getAttribute('href');
  const at = await page.evaluate(() => document.querySelector('plexus-app')?.shadowRoot?.querySelector('plexus-home')?.shadowRoot?.activeElement?.getAttribute('href'));
  assert.equal(at, second);
  await page.keyboard.press('Enter');
  await page.waitForFunction((to) => location.hash === to, second);
  await page.goBack();
  ok('home: reached, walked through and left by the keyboard');

  // --- a press just after the surfaces moved does not count
  await home.locator('.tile').first().waitFor();
  const top = await home.locator('.tile').first().locator('h2 a').getAttribute('href');
  await page.evaluate(() => {
    const root = document.querySelector('plexus-app')?.shadowRoot?.querySelector('plexus-home')?.shadowRoot;
    const wall = root?.querySelector('.wall');
    const count = root?.querySelectorAll('.tile').length;
    // As soon as there is one less, what is first now is pressed; not by a timer, which a busy machine delays until it may count.
    const moved = new MutationObserver(() => {
      if (root?.querySelectorAll('.tile').length === count) return;
      moved.disconnect();
      const link = /** @type {HTMLElement} */ (root?.querySelector('.tile h2 a'));
      link.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true, composed: true, detail: 1 }));
      /** @type {any} */ (window).__pressed = location.hash;
    });
    if (wall) moved.observe(wall, { childList: true, subtree: true });
  });
  const [, gone] = /#\/s\/(.*)/.exec(top ?? '') ?? [];
  await api('PATCH', `/v1/sessions/${gone}/surfaces/${(await api('GET', `/v1/sessions/${gone}/surfaces`)).surfaces.find((/** @type {any} */ one) => one.pinned).surface}`, { pinned: false });
  await page.waitForFunction(() => /** @type {any} */ (window).__pressed !== undefined);
  assert.equal(await page.evaluate(() => /** @type {any} */ (window).__pressed), '#/home');
  await home.locator('.tile').nth(MANY - 2).waitFor({ state: 'attached' });
  assert.equal(await home.locator('.tile').count(), MANY - 1);
  await api('PATCH', `/v1/sessions/${all.find((session) => session !== gone)}`, { archived: true });
  await home.locator('.tile').nth(MANY - 2).waitFor({ state: 'detached' });
  ok('home: what is not pinned any more and archived sessions leave; a press at that moment does not count');

  // --- a question, answered by touch on a phone
  const asking = await named('Release 1.2');
  await api('POST', `/v1/sessions/${asking}/surfaces`, { ...QUESTION, pin: true });
  const ask = await api('POST', `/v1/sessions/${asking}/asks`, { surface: 'release', submit: ['go'], question: 'Release it?' });
  const hand = await kit.context({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 });
  const phone = await hand.newPage();
  const told = watch(phone);
  const { code } = await api('POST', '/v1/codes', { scopes: ['watch', 'prompt', 'approve'], ttl: 120 });
  await signIn(phone, base, code);
  await phone.goto(`${base}/#/home`);
  // A session that asks stands first.
  const card = phone.locator('plexus-home .tile').first();
  await card.getByText('Waits for your answer').waitFor();
  assert.ok((await card.innerText()).includes('Release 1.2'));
  await axe(phone, 'a question at home');
  await card.getByLabel('Name of the release').tap();
  await card.getByLabel('Name of the release').fill('v2');
  await card.getByLabel('Push the tag as well').tap();
  await card.getByRole('button', { name: 'Release', exact: true }).tap();
  await card.getByText('Answered.').waitFor();
  const outcome = await api('GET', `/v1/sessions/${asking}/asks/${ask.ask_id}`);
  assert.deepEqual([outcome.state, outcome.answer.inputs], ['answered', { '/name': 'v2', '/tag': true }], JSON.stringify(outcome));
  await card.getByText('Waits for your answer').waitFor({ state: 'detached' });
  ok('home: a pinned question is answered by touch at 390 px, once');

  // --- in its session: a line instead of a card, the whole phone, and what the session opens with
  await api('POST', `/v1/sessions/${asking}/asks`, { surface: 'release', submit: ['go'], question: 'Once more?' });
  await phone.goto(`${base}/#/s/${asking}`);
  const line = phone.locator('plexus-session .asked');
  await line.getByText('Once more?').waitFor();
  assert.equal(await phone.locator('plexus-session plexus-card').count(), 0, 'the form does not stand there twice');
  await line.getByRole('button', { name: 'Show' }).tap();
  await phone.getByRole('tab', { name: 'Release', selected: true }).waitFor();
  await settled(phone);
  const box = await phone.locator('plexus-session .pinned').boundingBox();
  assert.ok(box && box.width === 390 && box.height > 844 * 0.6, `the surface has the phone: ${JSON.stringify(box)}`);
  assert.equal(await phone.locator('plexus-composer').isVisible(), false);
  for (const theme of /** @type {const} */ (['light', 'dark'])) {
    await phone.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
    await settled(phone);
    await axe(phone, `a pinned surface on a phone, ${theme}`);
    if (kit.shots) await phone.screenshot({ path: `${kit.shots}/pinned-390-${theme}.png` });
  }
  await line.getByRole('button', { name: 'As a card' }).tap();
  await phone.locator('plexus-session plexus-card').waitFor();
  await phone.getByRole('tab', { name: 'Conversation' }).tap();
  const menu = phone.locator('plexus-session #menu');
  const choice = menu.getByRole('menuitemcheckbox', { name: 'Open sessions with what is pinned' });
  await menu.locator('button').first().tap();
  assert.equal(await choice.getAttribute('aria-checked'), 'false');
  await choice.tap();
  await phone.reload();
  await live(phone);
  await phone.getByRole('tab', { name: 'Release', selected: true }).waitFor();
  await phone.locator('plexus-session .pinned plexus-surface').getByText('Waits for your answer').waitFor();
  // Another session opens with what is pinned in it, too; a link to a place in the conversation shows the conversation.
  const other = all[5] ?? '';
  await phone.goto(`${base}/#/s/${other}`);
  await phone.locator('plexus-session [role="tab"][aria-selected="true"]').nth(0).waitFor();
  await phone.waitForFunction(() => document.querySelector('plexus-app')?.shadowRoot?.querySelector('plexus-session-page')?.shadowRoot?.querySelector('plexus-session')?.shadowRoot?.querySelector('.split.turned'));
  await phone.goto('about:blank');
  await phone.goto(`${base}/#/s/${other}/at/1`);
  await phone.getByRole('tab', { name: 'Conversation', selected: true }).waitFor();
  await phone.goto(`${base}/#/s/${asking}`);
  await phone.getByRole('tab', { name: 'Release', selected: true }).waitFor();
  await menu.locator('button').first().tap();
  await choice.tap();
  await phone.getByRole('tab', { name: 'Conversation' }).tap();
  await phone.reload();
  await phone.getByRole('tab', { name: 'Conversation', selected: true }).waitFor();
  assert.deepEqual(await harmless(phone, told), HARMLESS);
  ok('session: on a phone the pinned surface has all of it; a session opens with it if the person chose so, also after a reload');

  // --- beside the conversation on a desk
  await page.goto(`${base}/#/s/${asking}`);
  await page.locator('plexus-session .pinned plexus-surface').waitFor();
  await page.locator('plexus-session .asked').getByText('Once more?').waitFor();
  for (const width of [1280, 1440]) {
    await page.setViewportSize({ width, height: 900 });
    await settled(page);
    const [left, right] = await Promise.all(['.scroller', '.pinned'].map((part) => page.locator(`plexus-session ${part}`).boundingBox()));
    assert.ok(left && right && left.width > 300 && right.width >= 400 && right.x >= left.x + left.width - 1, `${width}: ${JSON.stringify([left, right])}`);
  }
  await everywhere(page, async ({ width, theme }) => axe(page, `a session with a pinned surface ${width} ${theme}`));
  await shoot(page, kit.shots, 'pinned');
  const surfaceAt = page.locator('plexus-session .pinned plexus-surface');
  await surfaceAt.getByLabel('Name of the release').fill('v3');
  await surfaceAt.getByRole('button', { name: 'Release', exact: true }).click();
  await page.locator('plexus-session .asked').getByText('Once more? Answered by').waitFor();
  ok('session: beside the conversation on a desk; who answered is said above the composer');

  assert.deepEqual(await harmless(page, seen), HARMLESS);
  await context.close();
} finally {
  await close();
}
