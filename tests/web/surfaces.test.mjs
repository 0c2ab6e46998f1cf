// Surfaces in a real browser, served as the gateway would serve them but without one: every component, what a person does, hostile
// surfaces, and pages in frames.
//
//   PLEXUS_WEB_MODULES  a folder with the node_modules of web/; web/ itself if not set
//   PLEXUS_PLAYWRIGHT   a folder with node_modules/playwright-core and axe-core
//   PLEXUS_SHOTS        a folder for pictures; none are taken if not set
//
// Prints a line `ok ...` for each passed test; the first failure ends it with exit code 1.
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { axe, fits, launch, ok, settled, watch } from './kit.mjs';
import { serve } from './surface_kit.mjs';
import { GALLERY, HOSTILE, HOSTILE_PAGES, PNG, rowsOf, surface } from './surface_fixtures.mjs';

const SIZES = [[1280, 900], [390, 844], [320, 700]];
const site = await serve();
const kit = await launch({ shots: process.env.PLEXUS_SHOTS });
const context = await kit.context({ viewport: { width: 1280, height: 900 } });
const page = await context.newPage();
const seen = watch(page);
// What really leaves: a request that a policy stops is named by the browser, but does not come here.
/** @type {string[]} */ const left = [];
await context.route((/** @type {URL} */ url) => url.origin !== site.base && /^(?:https?|wss?):/.test(url.protocol), (/** @type {any} */ route) => { left.push(route.request().url()); return route.abort(); });
page.on('websocket', (/** @type {any} */ socket) => left.push(socket.url()));
const frame = page.locator('plexus-surface');
const show = async (/** @type {any} */ one, /** @type {object} */ more = {}) => { await page.evaluate(([s, m]) => { kit.clear(); kit.show(JSON.parse(s), { layout: 'full', ...m }); }, /** @type {[string, object]} */ ([JSON.stringify(one), more])); await settled(page); };
const change = async (/** @type {any} */ body) => { const is = await page.evaluate((b) => kit.change(b), body); await settled(page); return is; };
const sent = () => page.evaluate(() => kit.sent.splice(0));
const press = (/** @type {string} */ name) => frame.getByRole('button', { name, exact: true }).click({ force: true });
const model = (/** @type {string} */ name, /** @type {object[]} */ ...messages) => ({ surface: name, messages: messages.map((one) => ({ version: 'v0.9', ...one })) });
/** All text that is shown, through shadow roots. */
const shown = () => page.evaluate(() => {
  let out = '';
  const walk = (/** @type {Node} */ node) => {
    if (node.nodeType === Node.TEXT_NODE) out += node.nodeValue;
    else if (node instanceof Element && node.localName === 'style') return;
    if (node instanceof Element && node.shadowRoot) walk(node.shadowRoot);
    node.childNodes.forEach(walk);
  };
  walk(/** @type {Node} */ (document.getElementById('all')));
  return out;
});
/** Nothing ran, nothing left, nobody complained. @param {{except?: RegExp}} [options] */
async function harmless({ except } = {}) {
  assert.deepEqual(seen.dialogs, []);
  assert.deepEqual(seen.complaints.splice(0).filter((one) => !except?.test(one)), []);
  assert.deepEqual(seen.asked.filter((url) => !url.startsWith(`${site.base}/`) && !/^(?:data|blob:http|about):/.test(url)), []);
  assert.equal(await page.evaluate(() => /** @type {any} */ (window).__hostile ?? null), null);
  assert.equal(await page.evaluate(() => /** @type {any} */ ({}).polluted ?? null), null);
}

try {
  await page.goto(site.base);

  // --- every component, in all sizes and both themes
  for (const [name, one] of Object.entries(GALLERY)) {
    await show(one);
    for (const [width, height] of SIZES) {
      await page.setViewportSize({ width, height });
      for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
        await settled(page);
        await axe(page, `${name} ${width} ${colorScheme}`);
        if (kit.shots) await page.screenshot({ path: join(kit.shots, `surface-${name}-${width}-${colorScheme}.png`), fullPage: true });
      }
      await fits(page, width, height, name);
    }
  }
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' });
  await harmless();
  ok(`surfaces: ${Object.keys(GALLERY).length} of them, every component, no axe violation and no overflow at 1280, 390 and 320 px, light and dark`);

  // --- the frame names the agent
  await show(GALLERY.build, { agent: 'gem\u202eini' });
  assert.equal(await frame.locator('.by').first().innerText(), 'Drawn by gem\\u{202e}ini');
  assert.equal(await frame.locator('section').getAttribute('aria-label'), 'Build of the parser, drawn by gem\\u{202e}ini');
  await show(GALLERY.build, { stale: true });
  assert.ok((await frame.locator('header').innerText()).includes('Out of date'));
  await press('Run again');
  assert.deepEqual(await sent(), []);
  await show(GALLERY.build, { prompts: false });
  await press('Run again');
  assert.deepEqual(await sent(), []);
  assert.equal(await frame.getByRole('button', { name: 'Run again' }).getAttribute('title'), 'This device may look, but not act.');
  await show(GALLERY.form, { prompts: true, approves: false });
  assert.equal(await frame.getByRole('button', { name: 'Release' }).getAttribute('title'), 'This device may not answer.');
  ok('frame: names the agent, says what is out of date, and what this device may not do');

  // --- a form
  await show(GALLERY.form);
  await frame.getByLabel('Name of the release').fill('v 2');
  await frame.getByLabel('Who to tell').fill('nobody');
  assert.equal(await frame.locator('.wrong').count(), 1, 'a field is judged when it is left');
  await press('Release');
  assert.deepEqual(await sent(), []);
  assert.deepEqual(await frame.locator('.wrong').allInnerTexts(), ['Only a-z, 0-9, dots and dashes.', 'This is no mail address.']);
  assert.equal(await frame.locator('.status').innerText(), '2 fields above must be corrected first.');
  await frame.getByLabel('Name of the release').fill('v2');
  await frame.getByLabel('Who to tell').fill('bob@example.org');
  await frame.getByLabel('Push the tag as well').uncheck();
  await frame.getByLabel('Major').check();
  await frame.getByLabel('Windows').check();
  await frame.getByLabel('Linux').uncheck();
  await frame.getByLabel('Share of users').fill('40');
  await frame.getByLabel('Day').fill('2026-04-02');
  await frame.getByLabel('Not before').fill('2026-04-02T10:00');
  await frame.getByLabel('Notes').fill('line\nline');
  await press('Release');
  assert.deepEqual(await sent(), [{ surface: 'form', rev: 1, component: 'go', event: 'submit', inputs: { '/name': 'v2', '/mail': 'bob@example.org', '/agree': false, '/kind': ['major'], '/platforms': ['macos', 'windows'], '/share': 40, '/day': '2026-04-02', '/when': '2026-04-02T10:00', '/about': 'line\nline' } }]);
  await settled(page);
  assert.equal(await frame.locator('.status').innerText(), 'Answered.');
  await page.evaluate(() => { kit.reply = 'refuse'; });
  await press('Release');
  await settled(page);
  assert.equal(await frame.locator('.status').innerText(), 'Not sent: the component changed.');
  await page.evaluate(() => { kit.reply = 'never'; });
  await press('Release');
  await settled(page);
  assert.equal(await frame.locator('.status').innerText(), 'Sending…');
  await press('Release');
  assert.equal((await sent()).length, 2, 'nothing is sent twice');
  ok('form: values and checks, sent once, what came of it');

  // --- the gateway's changes and what a person types
  await show(GALLERY.form);
  const name = frame.getByLabel('Name of the release');
  const mail = frame.getByLabel('Who to tell');
  await mail.fill('typed@example.org');
  await name.fill('typing');
  assert.equal(await change({ ...model('form', { updateDataModel: { surfaceId: 'form', path: '/name', value: 'theirs' } }, { updateDataModel: { surfaceId: 'form', path: '/mail', value: 'theirs@example.org' } }), rev: 2, base: 1 }), 'new');
  assert.deepEqual([await name.inputValue(), await mail.inputValue()], ['typing', 'theirs@example.org'], 'the focused field is kept');
  assert.equal(await name.evaluate((el) => el === /** @type {ShadowRoot} */ (el.getRootNode()).activeElement), true);
  assert.equal(await change({ ...model('form'), rev: 2, base: 1 }), 'old');
  assert.equal(await change({ ...model('form'), rev: 9, base: 8 }), 'gap');
  await show(surface('secret', [{ id: 'root', component: 'Column', children: ['a', 'b', 'c'] }, { id: 'a', component: 'TextField', label: 'Your API key', value: { path: '/a' } }, { id: 'b', component: 'TextField', label: 'Name', value: { path: '/password' } }, { id: 'c', component: 'TextField', label: 'City', value: { path: '/city' } }]));
  assert.equal(await frame.locator('.secret').count(), 2);
  assert.ok((await frame.locator('.secret').first().innerText()).startsWith('Never type passwords'));
  ok('fields: the gateway wins but for the focused one; fields for secrets warn');

  // --- lists, tabs, modal, keys
  await show(GALLERY.layout);
  await frame.getByRole('button', { name: 'delete' }).nth(2).click();
  assert.deepEqual(await sent(), [{ surface: 'layout', rev: 1, component: 'del', event: 'remove', inputs: {}, instance: '/items/2' }]);
  await frame.getByRole('tab', { name: 'First' }).focus();
  await page.keyboard.press('ArrowRight');
  assert.equal(await frame.getByRole('tabpanel').innerText(), 'The second tab.');
  await page.keyboard.press('End');
  assert.equal(await frame.getByRole('tabpanel').innerText(), 'The third tab.');
  await press('Details');
  await settled(page);
  assert.deepEqual(await sent(), [], 'opening tells the agent nothing');
  const dialog = frame.getByRole('dialog');
  assert.ok((await dialog.innerText()).includes('Drawn by gemini'));
  assert.equal(await frame.locator('.drawn').evaluate((el) => /** @type {HTMLElement} */ (el).inert), true);
  const boxes = await page.evaluate(() => { const root = document.querySelector('plexus-surface')?.shadowRoot; return [root?.querySelector('.frame'), root?.querySelector('.modal')].map((el) => el?.getBoundingClientRect().toJSON()); });
  assert.ok(boxes[1].top >= boxes[0].top && boxes[1].bottom <= boxes[0].bottom + 1 && boxes[1].left >= boxes[0].left && boxes[1].right <= boxes[0].right, 'a modal stays in its frame');
  await axe(page, 'modal');
  if (kit.shots) await page.screenshot({ path: join(kit.shots, 'surface-modal-1280-light.png'), fullPage: true });
  await dialog.getByRole('button', { name: 'Do it' }).click();
  assert.equal((await sent())[0].component, 'insideb');
  await page.keyboard.press('Escape');
  await settled(page);
  assert.equal(await dialog.count(), 0);
  assert.equal(await frame.getByRole('button', { name: 'Details' }).evaluate((el) => el === /** @type {ShadowRoot} */ (el.getRootNode()).activeElement), true, 'the focus returns');
  ok('layout: instances, tabs by keys, a modal that stays in its frame');

  // --- a table of 10,000 rows
  await page.evaluate(() => {
    /** @type {any} */ (window).__tasks = [];
    new PerformanceObserver((list) => { for (const entry of list.getEntries()) /** @type {any} */ (window).__tasks.push(Math.round(entry.duration)); }).observe({ type: 'longtask' });
  });
  const rows = rowsOf(10_000);
  await show(surface('big', [{ ...GALLERY.data.messages[1].updateComponents.components[1], id: 'root' }], { rows }));
  const box = frame.locator('plexus-surface-table .box');
  assert.equal(await frame.locator('table').getAttribute('aria-rowcount'), '10001');
  const drawing = await page.evaluate(() => /** @type {any} */ (window).__tasks.splice(0));
  assert.ok(await frame.locator('tr.row').count() < 60);
  const scrolled = await box.evaluate(async (el) => {
    const next = () => new Promise((done) => { requestAnimationFrame(done); });
    const began = performance.now();
    let stops = 0;
    for (let top = 0; top < el.scrollHeight; top += el.scrollHeight / 120) { el.scrollTop = top; stops++; await next(); await next(); }
    el.scrollTop = el.scrollHeight;
    await next(); await next();
    return { ms: Math.round(performance.now() - began), stops };
  });
  const tasks = await page.evaluate(() => /** @type {any} */ (window).__tasks.splice(0));
  assert.equal(await frame.locator('tr.row').last().getAttribute('aria-rowindex'), '10001');
  console.log(`speed: 10,000 rows drawn with long tasks of [${drawing}] ms, scrolled through in ${scrolled.stops} steps of ${scrolled.ms} ms in all, long tasks [${tasks}] ms`);
  assert.ok(await frame.locator('tr.row').count() < 60, 'only the visible rows are in the document');
  await frame.getByLabel('Filter rows').fill('case_999');
  await settled(page);
  assert.equal(await frame.locator('.count').innerText(), '11 of 10,000 rows');
  await frame.getByRole('button', { name: 'Test', exact: true }).click();
  await settled(page);
  assert.equal(await frame.locator('th').first().getAttribute('aria-sort'), 'ascending');
  const first = await frame.locator('tr.row .pick').first().innerText();
  await frame.locator('tr.row .pick').first().click();
  assert.deepEqual(await sent(), [{ surface: 'big', rev: 1, component: 'root', event: 'open', inputs: {}, item: rows.findIndex((row) => row.name === first) }]);
  ok('table: 10,000 rows are scrolled, filtered and sorted; the index is that of the row as given');

  await show(GALLERY.code);
  await frame.getByRole('button', { name: /open\.rs/ }).click();
  assert.deepEqual((await sent()).map((/** @type {any} */ one) => [one.event, one.item]), [['open', 'src/store/sqlite/open.rs']]);
  assert.equal(await change({ ...model('code', { updateDataModel: { surfaceId: 'code', path: '/log', value: `${GALLERY.code.messages[2].updateDataModel.value.log}${'more\n'.repeat(200)}end` } }), rev: 2, base: 1 }), 'new');
  await page.waitForFunction(() => { const lines = document.querySelector('plexus-surface')?.shadowRoot?.querySelector('plexus-surface-terminal')?.shadowRoot?.querySelector('.lines'); return lines && lines.scrollTop > 0 && lines.scrollHeight - lines.clientHeight - lines.scrollTop < 2; });
  await show(GALLERY.data);
  const said = await frame.locator('plexus-surface-chart svg[role="img"]').first().getAttribute('aria-label');
  assert.ok(said?.startsWith('Scatter chart: Time by size. reads: 40 values from '), said ?? '');
  await frame.locator('plexus-surface-chart summary').first().click();
  await frame.locator('plexus-surface-chart details table').first().waitFor();
  await frame.locator('.foot summary').click();
  await settled(page);
  assert.ok((await frame.locator('.foot pre').first().innerText()).includes('Progress: '));
  await axe(page, 'folds open');
  ok('code, terminal, chart: paths are sent, output follows its end, charts have words and a table');

  // --- closed
  assert.equal(await change({ surface: 'data', rev: 2, base: 1, closed: true, messages: [{ version: 'v0.9', deleteSurface: { surfaceId: 'data' } }] }), 'new');
  assert.ok((await frame.locator('header').innerText()).includes('Closed by the agent'));
  assert.equal(await frame.locator('.drawn').evaluate((el) => /** @type {HTMLElement} */ (el).inert), true);
  await axe(page, 'closed');
  ok('closed: shown as it last was, without effect');
  await harmless();

  // --- hostile surfaces
  for (const [name, one] of Object.entries(HOSTILE)) {
    const began = Date.now();
    await show(one);
    const took = Date.now() - began;
    if (took > 2_000) console.log(`speed: ${name} took ${took} ms`);
    assert.ok(took < 20_000, `${name} took ${took} ms`);
    assert.equal(await page.evaluate(() => 6 * 7), 42);
    const bad = await page.evaluate(() => {
      /** @type {string[]} */ const out = [];
      const walk = (/** @type {ParentNode} */ root) => {
        for (const el of root.querySelectorAll('*')) {
          for (const { name: attribute, value } of el.attributes) {
            if (attribute.startsWith('on')) out.push(`${el.localName} ${attribute}`);
            if (attribute === 'style' && /position|url\(/.test(value)) out.push(`${el.localName} ${value}`);
            if (attribute === 'href' && !/^(https?:\/\/)/.test(value)) out.push(value.slice(0, 80));
            if (attribute === 'src' && !/^data:(?:image\/(?:png|jpeg|gif|webp)|audio|video)/.test(value)) out.push(value.slice(0, 80));
          }
          if (['script', 'iframe', 'object', 'embed', 'form', 'base', 'link', 'meta', 'foreignObject'].includes(el.localName)) out.push(el.localName);
          if (el.shadowRoot) walk(el.shadowRoot);
        }
      };
      walk(/** @type {ParentNode} */ (document.getElementById('all')));
      return out;
    });
    assert.deepEqual(bad, [], name);
    // Everything that can be pressed is pressed.
    await page.evaluate(() => {
      const walk = (/** @type {ParentNode} */ root) => {
        for (const el of root.querySelectorAll('*')) {
          if (el.localName === 'button' || el.localName === 'summary') /** @type {HTMLElement} */ (el).click();
          if (el.shadowRoot) walk(el.shadowRoot);
        }
      };
      walk(/** @type {ParentNode} */ (document.getElementById('all')));
    });
    await settled(page);
    for (const [width, height] of [[390, 844], [1280, 900]]) await fits(page, width, height, name);
    if (kit.shots) await page.screenshot({ path: join(kit.shots, `surface-x-${name}-1280-light.png`) });
    await harmless();
  }
  await show(HOSTILE.links);
  assert.equal(await frame.locator('a.press').count(), 0, 'no address of those leads anywhere');
  await show(HOSTILE.wide);
  assert.ok(await frame.locator('.flex-column').count() < 6_000);
  await show(HOSTILE.words);
  const words = await shown();
  assert.ok(!words.includes('\u202e') && (await frame.locator('h2').innerText()).includes('\\u{202e}'));
  await show(HOSTILE.prototype);
  assert.ok(!(await shown()).includes('never'));
  ok(`hostile: ${Object.keys(HOSTILE).length} surfaces have no effect and do not freeze the page`);

  // --- a surface that looks like an approval
  await show(HOSTILE.approval);
  await page.evaluate(() => {
    const over = document.createElement('div');
    over.id = 'approval';
    Object.assign(over.style, { position: 'absolute', top: '120px', left: '200px', width: '300px', height: '120px', background: 'white' });
    document.body.append(over);
  });
  assert.ok((await frame.locator('header').innerText()).includes('Drawn by gemini'));
  assert.equal(await page.evaluate(() => document.elementFromPoint(300, 180)?.id), 'approval', 'what the page puts over it stands over it');
  const cut = await frame.locator('section').evaluate((el) => { const s = getComputedStyle(el); return [s.overflowX, s.isolation, s.contain]; });
  assert.deepEqual(cut, ['clip', 'isolate', 'layout paint']);
  await page.evaluate(() => document.getElementById('approval')?.remove());
  await press('Allow once');
  assert.deepEqual((await sent()).map((/** @type {any} */ one) => [one.surface, one.event]), [['approval', 'allow']], 'it sends an event of its surface, nothing else');
  ok('approval: a surface that looks like one stands in its frame, under the page’s own, and only sends its event');

  // --- only what is in it is loaded
  await show(surface('pictures', [{ id: 'root', component: 'Column', children: ['a', 'b'] }, { id: 'a', component: 'Image', url: PNG, description: 'A square' }, { id: 'b', component: 'Image', url: 'https://evil.example/p.png' }]));
  assert.equal(await frame.locator('img').count(), 1);
  await page.waitForFunction(() => /** @type {HTMLImageElement | null | undefined} */ (document.querySelector('plexus-surface')?.shadowRoot?.querySelector('img'))?.naturalWidth === 10);
  assert.ok((await frame.locator('.elsewhere').innerText()).includes('https://evil.example/p.png'));
  await harmless();
  ok('pictures: data is shown, another address is a link');

  // --- a page of the agent's own
  await show(GALLERY.page);
  assert.equal(await frame.locator('iframe').count(), 0, 'nothing is loaded before it is asked for');
  assert.ok((await shown()).includes('A clock with a button that stops the build.'));
  await press('Load the page');
  const inner = page.frameLocator('plexus-surface iframe');
  // Its scripts are off, so it is drawn and does nothing.
  await inner.frameLocator('iframe').locator('#b').waitFor();
  assert.equal(await inner.frameLocator('iframe').locator('#p').innerText(), '');
  assert.equal(await inner.locator('iframe').getAttribute('sandbox'), '');
  await inner.frameLocator('iframe').locator('#b').click();
  await settled(page);
  assert.deepEqual(await sent(), []);
  await harmless({ except: /Blocked script execution in 'about:srcdoc'/ });
  await axe(page, 'page without scripts');
  if (kit.shots) await page.screenshot({ path: join(kit.shots, 'surface-page-still-1280-light.png') });
  await press('Unload the page');
  // They are allowed for an agent after what they can do was said.
  const allow = async () => {
    await frame.getByRole('button', { name: 'Load it with scripts…', exact: true }).click({ force: true });
    await page.evaluate(() => /** @type {any} */ (window).deep?.('#allow-scripts')?.click());
    assert.equal((await page.evaluate(() => localStorage.getItem('plexus.page-scripts')) ?? '[]').includes('gemini'), false, 'a double press allows nothing');
    await page.waitForTimeout(500);
    assert.match(await frame.locator('[role="alert"]').innerText(), /WebRTC, preconnect/);
    if (kit.shots) await page.screenshot({ path: join(kit.shots, 'surface-page-scripts-1280-light.png') });
    await press('Allow scripts of gemini in this browser');
  };
  await allow();
  await inner.locator('#b').waitFor();
  assert.equal(await inner.locator('#p').innerText(), 'origin null');
  assert.equal(await frame.locator('iframe').getAttribute('sandbox'), 'allow-scripts');
  await inner.locator('#b').click();
  await page.waitForFunction(() => kit.sent.length > 0);
  assert.deepEqual(await sent(), [{ surface: 'page', rev: 1, component: 'p0', event: 'stop', inputs: {} }]);
  await axe(page, 'page');
  if (kit.shots) await page.screenshot({ path: join(kit.shots, 'surface-page-loaded-1280-light.png') });
  // A message from anywhere else counts for nothing.
  await page.evaluate(() => { window.postMessage({ action: 'stop' }, '*'); });
  await settled(page);
  assert.deepEqual(await sent(), []);
  await harmless();
  for (const scripts of [true, false]) {
    if (!scripts) await press('Stop scripts of gemini');
    for (const [n, html] of HOSTILE_PAGES.entries()) {
      await show(surface(`hostile-page-${n}-${scripts}`, [{ id: 'root', component: 'Html', html, text: 'x', actions: ['stop'] }]));
      await press('Load the page');
      await page.locator('plexus-surface iframe').waitFor();
      await page.waitForTimeout(700);
      assert.deepEqual(await page.evaluate(() => [location.href, document.title, localStorage.getItem('plexus.page-scripts'), localStorage.length]), [`${site.base}/`, 'Surfaces', scripts ? '["gemini"]' : '[]', 1]);
      assert.deepEqual([left, seen.dialogs], [[], []], `page ${n}`);
      assert.deepEqual(await sent(), [], 'nothing counts without a press in the frame');
      seen.complaints.length = 0;
    }
  }
  ok(`pages: an opaque origin, no requests, only declared actions after a press; ${HOSTILE_PAGES.length} hostile ones stay in, with scripts and without`);

  // --- what no policy of a browser stops: counted on loopback
  const udp = createSocket('udp4');
  const tcp = createServer((socket) => socket.destroy());
  let [packets, connections] = [0, 0];
  udp.on('message', () => { packets += 1; });
  tcp.on('connection', () => { connections += 1; });
  await Promise.all([once(udp.bind(0, '127.0.0.1'), 'listening'), once(tcp.listen(0, '127.0.0.1'), 'listening')]);
  const [stun, turn] = [udp.address().port, /** @type {import('node:net').AddressInfo} */ (tcp.address()).port];
  const leaks = `<div><template shadowrootmode=open><link rel=preconnect href=http://127.0.0.1:${turn}></template></div><link rel=preconnect href=http://127.0.0.1:${turn}><link rel=dns-prefetch href=//evil.example><p id=p>still</p><script>
    const peer = new RTCPeerConnection({ iceServers: [{ urls: 'stun:127.0.0.1:${stun}' }, { urls: 'turn:127.0.0.1:${turn}?transport=tcp', username: 'u', credential: 'p' }] });
    peer.createDataChannel('x'); peer.createOffer().then((offer) => peer.setLocalDescription(offer)); document.getElementById('p').textContent = 'ran';</script>`;
  try {
    await show(surface('leaks', [{ id: 'root', component: 'Html', html: leaks, text: 'x' }]));
    await press('Load the page');
    await inner.frameLocator('iframe').getByText('still').waitFor();
    await page.waitForTimeout(3_000);
    assert.deepEqual([packets, connections], [0, 0], 'without scripts nothing leaves');
    await press('Unload the page');
    await allow();
    await inner.getByText('ran').waitFor();
    for (const end = Date.now() + 30_000; packets === 0 || connections === 0;) {
      assert.ok(Date.now() < end, `the counters count: ${packets} packets, ${connections} connections`);
      await page.waitForTimeout(100);
    }
    // Scripts that are stopped in another tab end here, too.
    const other = await page.context().newPage();
    await other.goto(site.base);
    await other.evaluate(() => localStorage.setItem('plexus.page-scripts', '[]'));
    await inner.frameLocator('iframe').getByText('still').waitFor();
    await other.close();
  } finally {
    udp.close();
    tcp.close();
  }
  console.log(`with scripts: ${packets} packets by WebRTC, ${connections} connections`);
  ok('pages: no packet and no connection without scripts');
} finally {
  await kit.close();
  site.close();
}
