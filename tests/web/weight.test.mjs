// What visits of a session send to a phone, counted where it leaves for the browser: the page, what the service worker fetches, calls and
// WebSocket. Printed as lines `weight: ...`.
//
//   PLEXUS_URL, PLEXUS_TOKEN, PLEXUS_DIR, PLEXUS_PLAYWRIGHT   as in hostile.test.mjs
import assert from 'node:assert/strict';
import { launch, live, ok, PATIENCE_MS, PHONE, settled, visit } from './kit.mjs';
import { relay } from './relay.mjs';
import { api, base, goesOn, newSession, output, play, says, script, tool } from './session_kit.mjs';

/** What the first visit may send, the service worker's files included. Bytes. */
const FIRST = 300 * 1000;
/** What another visit may send. Bytes. */
const AGAIN = 30 * 1000;
/** What playing a long session may take, ms. */
const LONG_MS = 180_000;
/** For so long nothing may have been sent before what was sent is counted, ms: a heartbeat more does not matter. */
const QUIET_MS = 1_500;

/** A session with words, code, output and an edit. */
function work(/** @type {number} */ events) {
  const updates = [];
  for (let n = 0; updates.length < events; n++) {
    updates.push(says(`Step ${n}: I look at \`file_${n}.rs\`.`), goesOn(' And then **more**.'));
    if (n % 5 === 0) updates.push(goesOn('\n\n```rust\nfn main() {\n    println!("x");\n}\n```\n'));
    updates.push(tool({ title: `cargo check ${n}`, kind: 'execute', content: output(`ok ${n}\nline two\n`) }));
    if (n % 3 === 0) updates.push(tool({ title: `Edit file_${n}.rs`, kind: 'edit', content: [{ type: 'diff', path: `file_${n}.rs`, oldText: 'a\nb\n', newText: `a\nb ${n}\n` }] }));
  }
  return updates.slice(0, events);
}

const kit = await launch();
const door = await relay(base);

/** What was sent, once nothing more comes. */
async function quiet() {
  for (const until = Date.now() + PATIENCE_MS; ;) {
    const before = door.sent();
    await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
    if (door.sent() === before) return before;
    assert.ok(Date.now() < until, 'it does not stop sending');
  }
}
const rows = (/** @type {import('playwright-core').Page} */ page) => page.locator('plexus-session .feed[aria-busy="false"] .row').first().waitFor();
const worked = (/** @type {import('playwright-core').Page} */ page) => page.evaluate(async () => { await navigator.serviceWorker.ready; });

try {
  for (const [what, make] of /** @type {const} */ ([
    ['a session of 600 events', async (/** @type {string} */ id) => play(id, script(work(600)), LONG_MS)],
    ['a session of 50,000 events', async (/** @type {string} */ id) => { await play(id, 'flood 49400', LONG_MS); await play(id, script(work(600)), LONG_MS); }],
  ])) {
    const session = await newSession();
    await make(session);
    const { code } = await api('POST', '/v1/codes', { scopes: ['watch', 'prompt', 'approve', 'admin'], ttl: 120 });
    const context = await kit.context({ viewport: PHONE, hasTouch: true, isMobile: true });
    const page = await context.newPage();
    const start = door.sent();
    await page.goto(`${door.base}/#code=${encodeURIComponent(code)}`);
    await live(page);
    await visit(page, `#/s/${session}`);
    await rows(page);
    await settled(page);
    await worked(page);
    const first = (await quiet()) - start;
    console.log(`weight: ${what}, first visit: ${first} bytes, of ${FIRST} at most`);
    await page.close();
    const mark = await quiet();
    const again = await context.newPage();
    await again.goto(`${door.base}/#/s/${session}`);
    await rows(again);
    await live(again);
    await settled(again);
    const repeated = (await quiet()) - mark;
    console.log(`weight: ${what}, another visit: ${repeated} bytes, of ${AGAIN} at most`);
    assert.ok(first > 50_000 && repeated > 0, 'the visits were counted');
    assert.ok(first <= FIRST, `the first visit of ${what} sends ${first} bytes`);
    assert.ok(repeated <= AGAIN, `another visit of ${what} sends ${repeated} bytes`);
    ok(`weight: ${what}: the first visit and another one are small`);
    await context.close();
  }
} finally {
  door.close();
  await kit.close();
}
