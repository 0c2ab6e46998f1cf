// The output of a hostile agent in a real browser, against a real gateway: nothing runs, nothing leaves the origin, nothing freezes.
//
//   PLEXUS_URL, PLEXUS_TOKEN   a gateway with the runtime "demo"
//   PLEXUS_DIR                 a folder for scripts of the demo agent
//   PLEXUS_PLAYWRIGHT          a folder with node_modules/playwright-core
//
// Prints a line `ok ...` for each passed test; the first failure ends it with exit code 1.
import assert from 'node:assert/strict';
import { DECEPTIVE, PAYLOADS, SEQUENCES } from './hostile_corpus.mjs';
import { ok, settled } from './kit.mjs';
import { HARMLESS, api, base, harmless, newSession, output, play, says, script, show, start, through, tool } from './session_kit.mjs';

/** Payloads a session; each stands in a message, a thought, a tool's title, input and output, a plan, a diff. */
const A_SESSION = 130;

const { page, seen, close } = await start();
try {
  // --- 500 payloads in every place where text may stand
  assert.ok(PAYLOADS.length >= 500);
  let stops = 0;
  for (let at = 0; at < PAYLOADS.length; at += A_SESSION) {
    const some = PAYLOADS.slice(at, at + A_SESSION);
    const session = await newSession();
    const updates = some.flatMap((payload, n) => [
      says(payload),
      says(payload, n % 3 ? 'agent_message_chunk' : 'agent_thought_chunk'),
      tool({
        title: payload, kind: n % 2 ? 'execute' : payload, status: n % 5 ? 'completed' : 'failed', rawInput: { command: payload, [payload]: payload }, locations: [{ path: payload, line: 1 }],
        content: n % 4 === 0 ? [{ type: 'diff', path: payload, oldText: `a\n${payload}\n`, newText: `b\n${payload}x\n` }]
          : n % 4 === 1 ? [{ type: 'content', content: { type: 'resource_link', name: payload, uri: payload } }, { type: 'content', content: { type: 'image', mimeType: 'image/svg+xml', data: btoa('<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>') } }]
            : output(payload),
      }),
    ]);
    updates.push({ sessionUpdate: 'plan', entries: some.slice(0, 40).map((content) => ({ content, priority: content, status: content })) });
    updates.push({ sessionUpdate: 'available_commands_update', availableCommands: some.slice(0, 8).map((name) => ({ name, description: name })) });
    updates.push({ sessionUpdate: 'session_info_update', title: some[0] });
    await play(session, script(updates));
    await show(page, session);
    stops += await through(page, async () => {
      // Everything that can be opened is opened.
      await page.locator('plexus-session .feed').evaluate((feed) => {
        for (const head of feed.querySelectorAll('.fold-head[aria-expanded="false"]')) /** @type {HTMLElement} */ (head).click();
      });
    });
    const bad = await page.locator('plexus-session .feed').evaluate((feed) => {
      const known = new Set(['A', 'ARTICLE', 'AUDIO', 'BDI', 'BLOCKQUOTE', 'BR', 'BUTTON', 'CODE', 'DEL', 'DIV', 'EM', 'FIGCAPTION', 'FIGURE', 'H1', 'H2', 'H3', 'H4', 'H5', 'H6', 'HR', 'IMG', 'LI', 'MARK', 'OL', 'P', 'path', 'PRE', 'SPAN', 'STRONG', 'svg', 'TABLE', 'TBODY', 'TD', 'TH', 'THEAD', 'TR', 'UL']);
      const out = [];
      for (const el of feed.querySelectorAll('*')) {
        if (!known.has(el.tagName)) out.push(el.tagName);
        for (const { name, value } of el.attributes) {
          if (name.startsWith('on')) out.push(`${el.tagName} ${name}`);
          if (name === 'href' && !/^(https?:\/\/|#\/s\/)/.test(value)) out.push(value);
          if (name === 'src' && !value.startsWith('blob:')) out.push(value);
        }
      }
      return out;
    });
    assert.deepEqual(bad, []);
    assert.deepEqual(await harmless(page, seen), HARMLESS);
    await api('DELETE', `/v1/sessions/${session}`);
  }
  ok(`hostile: ${PAYLOADS.length} payloads in every place: nothing ran, nothing left the origin, no complaint of the policy (${stops} windows)`);

  // --- what is followed says where it goes
  const links = await newSession();
  await play(links, script([says('[https://good.example](https://evil.example/) [ok](https://docs.rs/x) [js](javascript:alert(1)) ![pic](https://evil.example/p.png) https://plain.example/a [u](https://good.example@evil.example/)')]));
  await show(page, links);
  const anchors = await page.locator('plexus-session .prose a').evaluateAll((all) => all.map((a) => `${a.textContent}|${a.rel}|${a.target}|${a.referrerPolicy}`));
  assert.ok(anchors.some((a) => a.startsWith('https://good.example (evil.example)|')), anchors.join('\n'));
  assert.ok(anchors.every((a) => a.endsWith('|noopener noreferrer nofollow|_blank|no-referrer')), anchors.join('\n'));
  assert.equal(await page.locator('plexus-session .prose img').count(), 0);
  assert.ok((await page.locator('plexus-session .prose').innerText()).includes('(javascript:alert(1))'));
  ok('hostile: links show their host, other schemes are text, images are not fetched');

  // --- 200 escape sequences
  const escapes = await newSession();
  const whole = SEQUENCES.map((sequence, n) => `${n}<${sequence}>`).join('\n');
  await play(escapes, script([tool({ kind: 'execute', title: 'escapes', status: 'failed', content: output(whole) }), tool({ kind: 'execute', title: `t\x1b]0;x\x07`, content: output('\x1b[31mred\x1b[0m') })]));
  await show(page, escapes);
  const lines = page.locator('plexus-session .lines').first();
  await lines.waitFor();
  const shown = await lines.evaluate(async (el) => {
    let all = '';
    for (let top = 0; top < el.scrollHeight; top += el.clientHeight) {
      el.scrollTop = top;
      await new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); });
      all += el.textContent;
      for (const inner of el.querySelectorAll('*')) if (!['DIV', 'SPAN', 'BUTTON'].includes(inner.tagName)) all += `TAG ${inner.tagName}`;
    }
    return all;
  });
  // eslint-disable-next-line no-control-regex
  assert.ok(!/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/.test(shown) && !shown.includes('TAG'), 'a control character is in the document');
  assert.ok(!shown.includes('c3RvbGVu') && !shown.includes('evil.example'), 'what a sequence says is not shown');
  assert.equal(await page.title().then((title) => title.includes('title')), false);
  assert.deepEqual(await harmless(page, seen), HARMLESS);
  ok(`hostile: ${SEQUENCES.length} escape sequences leave only text and colour`);

  // --- deceptive characters: visible in titles, paths, commands; joined in prose
  const deceptive = await newSession();
  await play(deceptive, script(DECEPTIVE.flatMap((c) => [tool({ title: `a${c}b`, kind: 'execute', locations: [{ path: `/p${c}q` }], rawInput: { command: `ls ${c}x` }, status: 'failed', content: [{ type: 'diff', path: `d${c}e`, oldText: `o${c}`, newText: `n${c}` }] })])));
  await show(page, deceptive);
  /** @type {Set<string>} */ const met = new Set();
  await through(page, async () => {
    for (const text of await page.locator('plexus-session .feed .card').allTextContents()) {
      // A tab and a line feed end lines; everything else of the corpus must not be there as it is.
      for (const c of DECEPTIVE) { assert.ok(!text.includes(c), `U+${c.codePointAt(0)?.toString(16)} in ${JSON.stringify(text.slice(0, 200))}`); if (text.includes(`\\u{${c.codePointAt(0)?.toString(16)}}`)) met.add(c); }
    }
  });
  assert.equal(met.size, DECEPTIVE.length);
  ok(`hostile: ${DECEPTIVE.length} deceptive code points are visible in titles, paths, commands and diffs`);

  // --- other scripts and emoji are left whole
  const scripts = await newSession();
  const family = '👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽';
  await play(scripts, script([says(`مرحبا بالعالم\n\nשלום\n\nplain ${family} end\n\n日本語 हिन्दी ไทย`), says('\u202eevil\u202c text')]));
  await show(page, scripts);
  const prose = await page.locator('plexus-session .prose').allInnerTexts().then((all) => all.join('\n'));
  assert.ok(prose.includes(family) && prose.includes('مرحبا بالعالم') && prose.includes('हिन्दी'), prose);
  assert.ok(prose.includes('\\u{202e}evil') && !prose.includes('\u202e'));
  const sides = await page.locator('plexus-session .prose p').evaluateAll((all) => all.slice(0, 3).map((p) => { const range = document.createRange(); range.selectNodeContents(p); return range.getBoundingClientRect().left - p.getBoundingClientRect().left > 40 ? 'right' : 'left'; }));
  assert.deepEqual(sides, ['right', 'right', 'left']);
  ok('hostile: right-to-left text is right-aligned, emoji stay joined, overrides are escaped');

  // --- one line of a megabyte, in a message, a title and an output
  const long = await newSession();
  await play(long, 'line 1048576');
  await play(long, script([tool({ title: 'x'.repeat(1 << 20), content: output('y'.repeat(1 << 20)), status: 'failed' }), says('z'.repeat(1 << 20)), says(`\`\`\`\n${'w'.repeat(1 << 20)}\n\`\`\``), says('['.repeat(60_000)), says('*a_ '.repeat(30_000)), says('> '.repeat(5_000)), says('| a '.repeat(20_000))]));
  await show(page, long);
  await through(page, async () => { await settled(page); }, 40);
  await page.locator('plexus-session .scroller').evaluate((el) => { el.scrollTop = el.scrollHeight; });
  await settled(page);
  await page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
  assert.equal(await page.evaluate(() => 6 * 7), 42);
  ok('hostile: lines of a megabyte and slow Markdown do not freeze the page');

  // --- a diff of 20,000 lines
  const diff = await newSession();
  const old = Array.from({ length: 20_000 }, (_, n) => `line ${n} of the file`).join('\n');
  const now = Array.from({ length: 20_000 }, (_, n) => (n % 3 ? `line ${n} of the file` : `line ${n} of the changed file`)).join('\n');
  await play(diff, script([tool({ title: 'Rewrite', kind: 'edit', content: [{ type: 'diff', path: '/big.txt', oldText: old, newText: now }] })]));
  await show(page, diff);
  const began = Date.now();
  // It is longer than what a page of the past brings of a tool call.
  await page.getByRole('button', { name: /^Load the rest/ }).click();
  await page.locator('plexus-session .diff .line.add').first().waitFor();
  console.log(`speed: a diff of 20,000 lines opens in ${Date.now() - began} ms`);
  assert.equal(await page.locator('plexus-session .diff-status').innerText(), '+6,667 −6,667');
  assert.ok(await page.locator('plexus-session .diff .line').count() < 400);
  assert.ok(await page.locator('plexus-session .diff mark').count() > 0);
  await page.locator('plexus-session .diff .lines').evaluate((el) => { el.scrollTop = el.scrollHeight / 2; });
  await page.locator('plexus-session .diff .line').filter({ hasText: 'line 10002 of the changed file' }).first().waitFor();
  ok('hostile: a diff of 20,000 lines opens in parts');

  assert.deepEqual(await harmless(page, seen), HARMLESS);
  console.log(`asked only ${base}`);
} finally {
  await close();
}
