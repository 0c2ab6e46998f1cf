// Measures the page of a session, printed as lines `speed: ...`. Asserts no times, only that everything is shown.
//
//   PLEXUS_URL, PLEXUS_TOKEN, PLEXUS_DIR, PLEXUS_PLAYWRIGHT   as in hostile.test.mjs
import assert from 'node:assert/strict';
import { statSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { alone, DESK, PHONE, ok, settled } from './kit.mjs';
import { HARMLESS, api, base, goesOn, harmless, newSession, output, play, prompt, says, script, start, tool, whole } from './session_kit.mjs';

/** What a long run may take, ms. */
const LONG_MS = 180_000;

/** Watches for what users feel, from the page's first moment on. */
function vitals() {
  const v = /** @type {any} */ ({ long: [], cls: 0, lcp: 0, inp: 0, row: 0 });
  /** @type {any} */ (window).__vitals = v;
  const watch = (type, take, more = {}) => { try { new PerformanceObserver((all) => all.getEntries().forEach(take)).observe({ type, buffered: true, ...more }); } catch { /* a browser that cannot tell */ } };
  watch('longtask', (e) => v.long.push([Math.round(e.startTime), Math.round(e.duration)]));
  watch('layout-shift', (e) => { if (!e.hadRecentInput) v.cls += e.value; });
  watch('largest-contentful-paint', (e) => { v.lcp = e.startTime; });
  watch('event', (e) => { if (e.interactionId) v.inp = Math.max(v.inp, e.duration); }, { durationThreshold: 16 });
  const first = () => {
    const page = document.querySelector('plexus-app')?.shadowRoot?.querySelector('plexus-session-page')?.shadowRoot?.querySelector('plexus-session')?.shadowRoot;
    if (page?.querySelector('.feed .row')) requestAnimationFrame(() => setTimeout(() => { v.row = performance.now(); }, 0)); else requestAnimationFrame(first);
  };
  requestAnimationFrame(first);
}
const read = (page) => page.evaluate(() => { const v = /** @type {any} */ (window).__vitals; return { ...v, cls: Math.round(v.cls * 1000) / 1000, lcp: Math.round(v.lcp), row: Math.round(v.row) }; });
const sum = (long) => `${long.length} over 50 ms${long.length ? ` (longest ${Math.max(...long.map((l) => l[1]))} ms)` : ''}`;

/** A session like those that people have: words, code, tools. */
function work(events) {
  const updates = [];
  for (let n = 0; updates.length < events; n++) {
    updates.push(says(`Step ${n}: I look at \`file_${n}.rs\`.`));
    for (let c = 0; c < 12; c++) updates.push(goesOn(` More words of step ${n}, part ${c}, **bold** and plain.${c % 4 === 3 ? '\n\n' : ''}`));
    if (n % 5 === 0) updates.push(goesOn('\n\n```rust\nfn main() {\n    println!("x");\n}\n```\n'));
    updates.push(tool({ title: `cargo check ${n}`, kind: 'execute', status: 'completed', content: output(`\x1b[32mok\x1b[0m ${n}\nline two\n`) }));
    if (n % 3 === 0) updates.push(tool({ title: `Edit file_${n}.rs`, kind: 'edit', content: [{ type: 'diff', path: `file_${n}.rs`, oldText: 'a\nb\nc\n', newText: `a\nb ${n}\nc\n` }] }));
  }
  return updates.slice(0, events);
}

const { context, page: home, seen, close } = await start();
/** A new tab that shows the session, and when its first row stood. */
async function tab(session, at = '') {
  const page = await context.newPage();
  await page.addInitScript(vitals);
  await page.goto(`${base}/#/s/${session}${at}`);
  await page.waitForFunction(() => /** @type {any} */ (window).__vitals?.row > 0);
  return page;
}
const scroller = (page) => page.locator('plexus-session .scroller');
/** Comes to the end and stays there, however slow the machine: false if it never does. */
const atEnd = async (page) => {
  for (let n = 0; n < 100; n++) {
    if (await scroller(page).evaluate((el) => el.scrollHeight - el.clientHeight - el.scrollTop < 30)) return true;
    await page.waitForTimeout(50);
  }
  return false;
};
try {
  // --- the files
  const dist = join(import.meta.dirname, '../../web/dist');
  const sizes = readdirSync(dist, { recursive: true }).map(String).filter((f) => /\.(js|css|html)$/.test(f) && statSync(join(dist, f)).isFile()).map((f) => [f, gzipSync(readFileSync(join(dist, f)), { level: 9 }).length]);
  const all = sizes.reduce((a, [, n]) => a + Number(n), 0);
  console.log(`speed: bundle ${(all / 1024).toFixed(1)} KiB gzip (${sizes.map(([f, n]) => `${f} ${(Number(n) / 1024).toFixed(1)}`).join(', ')})`);
  // Its bounds are in `scripts/web`; what a visit sends is in `weight.test.mjs`.

  // --- a session of 10,000 events
  const ten = await newSession();
  await play(ten, script(work(10_000)), LONG_MS);
  for (const round of ['first', 'second']) {
    const page = await tab(ten);
    await settled(page);
    const v = await read(page);
    console.log(`speed: 10,000 events, ${round} visit: first row ${v.row} ms, LCP ${v.lcp} ms, CLS ${v.cls}, long tasks ${sum(v.long)}`);
    assert.ok(await atEnd(page), 'it opens at the end');
    await page.close();
  }
  ok('speed: a session of 10,000 events opens at its end');

  // --- upwards with the keyboard, until older rows come in above: the row keeps the focus
  const up = await tab(ten);
  await settled(up);
  await up.locator('plexus-session #prompt').click();
  await up.keyboard.press('Escape');
  const rows = () => up.locator('plexus-session .row[aria-setsize]').first().getAttribute('aria-setsize').then(Number);
  const before = await rows();
  for (let n = 0; n < 400 && (await rows()) === before; n++) {
    await up.keyboard.press('k');
    await settled(up);
  }
  assert.ok((await rows()) > before, 'older rows came in');
  assert.ok(await up.locator('plexus-session .row.selected').evaluate((el) => el.getRootNode().activeElement === el), 'the row keeps the focus');
  await up.close();
  ok('speed: a row keeps the focus while older rows come in above it');

  // --- 500 updates a second for ten seconds, on top of them; somebody reads along, then reads above
  const page = await tab(ten);
  await page.waitForFunction(() => { const el = document.querySelector('plexus-app')?.shadowRoot?.querySelector('plexus-session-page')?.shadowRoot?.querySelector('plexus-session')?.shadowRoot; return el && !el.querySelector('.top-note[role="status"]'); });
  await settled(page);
  for (const [where, scroll] of [['at the end', false], ['scrolled up', true]]) {
    if (scroll) { await scroller(page).evaluate((el) => { el.scrollTop -= 3_000; }); await settled(page); }
    const mark = await page.evaluate(() => { const v = /** @type {any} */ (window).__vitals; v.long.length = 0; v.cls = 0; return performance.now(); });
    const top = () => page.evaluate(() => { const root = document.querySelector('plexus-app')?.shadowRoot?.querySelector('plexus-session-page')?.shadowRoot?.querySelector('plexus-session')?.shadowRoot; const el = root.querySelector('.scroller'); const box = el.getBoundingClientRect(); const row = [...root.querySelectorAll('.row')].find((r) => r.getBoundingClientRect().bottom > box.top + 5); return [row.dataset.key, Math.round(row.getBoundingClientRect().top)]; });
    const before = await top();
    await play(ten, 'stream 5000 2', LONG_MS);
    await settled(page);
    const v = await read(page);
    const took = Math.round((await page.evaluate(() => performance.now())) - mark);
    console.log(`speed: 5,000 updates in ${took} ms (${Math.round(5_000_000 / took)} a second), ${where}: long tasks ${sum(v.long)}, CLS ${v.cls}`);
    if (scroll) {
      assert.deepEqual(await top(), before, 'what is read stays where it is');
      assert.ok(await page.locator('plexus-session #jump').isVisible());
    } else assert.ok(await atEnd(page), 'who is at the end stays there');
  }
  ok('speed: while streaming the view follows the end, and a scrolled view does not move');
  const began = Date.now();
  await page.locator('plexus-session #jump').click();
  await page.waitForFunction(() => !document.querySelector('plexus-app')?.shadowRoot?.querySelector('plexus-session-page')?.shadowRoot?.querySelector('plexus-session')?.shadowRoot?.querySelector('#jump'));
  assert.ok(await atEnd(page));
  console.log(`speed: jump to now ${Date.now() - began} ms`);
  // Folding, finding and typing while it streams: how long a press takes to be seen.
  await prompt(ten, 'stream 2000 2');
  // Esc from the empty composer: letters are commands in the conversation.
  await page.locator('plexus-session #prompt').click();
  await page.keyboard.press('Escape');
  for (let n = 0; n < 5; n++) {
    await page.keyboard.press('k');
    await page.keyboard.press('o');
    await alone(page);
  }
  await page.locator('plexus-session #prompt').click();
  await page.keyboard.type('typed while it streams', { delay: 20 });
  assert.equal(await page.locator('plexus-session #prompt').inputValue(), 'typed while it streams');
  await settled(page);
  console.log(`speed: INP while streaming ${(await read(page)).inp} ms`);
  await page.close();

  // --- a session of 200,000 events
  const huge = await newSession();
  await play(huge, script(work(60_000)), LONG_MS);
  await play(huge, 'flood 140000', LONG_MS);
  for (const size of [DESK, PHONE]) {
    const big = await tab(huge);
    await big.setViewportSize(size);
    await settled(big);
    const v = await read(big);
    assert.ok(await atEnd(big), 'it opens at the end');
    const loading = Date.now();
    await whole(big);
    const loaded = Date.now() - loading;
    const after = await read(big);
    const moved = Date.now();
    const seenRows = new Set();
    for (let n = 20; n >= 0; n--) {
      await scroller(big).evaluate((el, part) => { el.scrollTop = el.scrollHeight * part; }, n / 20);
      await big.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
      const keys = await big.locator('plexus-session .feed .row').evaluateAll((rows) => rows.map((row) => /** @type {HTMLElement} */ (row).dataset.key));
      assert.ok(keys.length > 0 && keys.length < 400, String(keys.length));
      for (const key of keys) seenRows.add(key);
    }
    assert.ok(seenRows.size > 100, String(seenRows.size));
    await settled(big);
    assert.equal(await big.locator('plexus-session #older').count(), 0);
    assert.ok((await big.locator('plexus-session .feed .row').allInnerTexts()).some((text) => text.includes('Step 0:')), 'its beginning is at the top');
    console.log(`speed: 200,000 events at ${size.width} px: first row ${v.row} ms, long tasks ${sum(v.long)}; all of it loaded in ${loaded} ms, long tasks ${sum(after.long.slice(v.long.length))}; 21 jumps through all of it ${Date.now() - moved} ms`);
    await big.close();
  }
  ok('speed: a session of 200,000 events opens and scrolls');
  assert.deepEqual(await harmless(home, seen), HARMLESS);
  await api('DELETE', `/v1/sessions/${huge}`);
} finally {
  await close();
}
