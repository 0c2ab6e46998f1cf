// The page of a session in a real browser, against a real gateway: messages, tools, requests, and all actions.
//
//   PLEXUS_URL, PLEXUS_TOKEN, PLEXUS_DIR, PLEXUS_PLAYWRIGHT   as in hostile.test.mjs
//   PLEXUS_SHOTS   a folder for pictures; none are taken if not set
//
// Prints a line `ok ...` for each passed test; the first failure ends it with exit code 1.
import assert from 'node:assert/strict';
import { alone, PATIENCE_MS, axe, everywhere, fits, ok, settled, shoot, signIn, watch } from './kit.mjs';
import { HARMLESS, api, base, goesOn, harmless, newSession, output, play, prompt, says, script, show, start, tool } from './session_kit.mjs';

const SHOWCASE = [
  { sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: 'The tests fail in the parser. I should read it first, then change `parse.rs`.' } },
  says('I’ll look at the parser and **fix the off-by-one** in `parse_header`.\n\n## What I found\n\n- The loop stops one byte early\n- `read_line` keeps the `\\r`\n\n1. First step\n2. Second step, as [the docs](https://docs.rs/tokio) have it\n\n> Quoted words of somebody.\n\n'),
  goesOn('```rust\nfn parse_header(input: &[u8]) -> usize {\n    // Stops at the first empty line.\n    input.len()\n}\n```\n\n| case | before | after |\n|---|---|---|\n| empty | panic | error |\n'),
  tool({ title: 'src/parse.rs', kind: 'read', locations: [{ path: '/home/me/project/src/parse.rs', line: 40 }], content: output('use std::io;\n') }),
  tool({ toolCallId: 'tests', title: 'cargo test --all', kind: 'execute', status: 'in_progress', rawInput: { command: 'cargo test --all' } }),
  { sessionUpdate: 'tool_call_update', toolCallId: 'tests', status: 'failed', content: output('\x1b[1m\x1b[32m   Compiling\x1b[0m project v0.1.0\n\x1b[1m\x1b[31merror\x1b[0m: test failed\n\ntest parse::empty ... \x1b[31mFAILED\x1b[0m\nprogress 10%\rprogress 100%\n') },
  tool({ title: 'Edit src/parse.rs', kind: 'edit', content: [{ type: 'diff', path: '/home/me/project/src/parse.rs', oldText: `fn parse() {\n    while n < input.len() - 1 {\n        n += 1;\n    }\n}\n${'same\n'.repeat(30)}last\n`, newText: `fn parse() {\n    while n < input.len() {\n        n += 1;\n    }\n}\n${'same\n'.repeat(30)}last line\n` }] }),
  tool({ title: 'A picture', kind: 'other', status: 'failed', content: [{ type: 'content', content: { type: 'image', mimeType: 'image/png', data: 'iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mNk+M9Qz0AEYBxVSF+FABJADveWkH6oAAAAAElFTkSuQmCC' } }] }),
  { sessionUpdate: 'plan', entries: [{ content: 'Read the parser', priority: 'high', status: 'completed' }, { content: 'Fix the loop', priority: 'high', status: 'in_progress' }, { content: 'Run the tests again', priority: 'low', status: 'pending' }] },
  { sessionUpdate: 'usage_update', used: 61_234, size: 200_000, cost: { amount: 0.42, currency: 'USD' } },
  { sessionUpdate: 'not_known_to_anybody', n: 1 },
  says('The tests pass now.'),
];

const { kit, page, seen, close } = await start({ permissions: ['clipboard-read', 'clipboard-write'] });
const root = page.locator('plexus-session');
const rows = root.locator('.feed .row');
const ended = async (n) => { await page.waitForFunction((want) => document.querySelector('plexus-app')?.shadowRoot?.querySelector('plexus-session-page')?.shadowRoot?.querySelector('plexus-session')?.shadowRoot?.querySelectorAll('.row.line.end').length >= want, n); };
const atEnd = () => root.locator('.scroller').evaluate((el) => el.scrollHeight - el.clientHeight - el.scrollTop < 30);
try {
  // --- everything that may stand in a session
  const session = await newSession();
  await play(session, script(SHOWCASE));
  await show(page, session);
  await ended(1);
  await root.locator('.scroller').evaluate((el) => { el.scrollTop = 0; });
  await settled(page);
  assert.equal(await root.locator('.prose h2').first().innerText(), 'What I found');
  await root.locator('figure.code .hl-keyword').first().waitFor();
  assert.equal(await root.locator('.prose a').first().getAttribute('rel'), 'noopener noreferrer nofollow');
  await root.locator('.scroller').evaluate((el) => { el.scrollTop = el.scrollHeight; });
  await settled(page);
  const failed = root.locator('.card.failed').filter({ hasText: 'cargo test' });
  await failed.locator('.lines').waitFor();
  const lines = await failed.locator('.lines .line').allInnerTexts();
  assert.ok(lines.includes('progress 100%') && !lines.some((line) => line.includes('10%\r')), lines.join('|'));
  assert.equal(await failed.locator('.lines .line span').filter({ hasText: 'FAILED' }).evaluate((el) => el.style.color), 'var(--ansi-1)');
  await root.locator('.diff .line.add mark, .diff .line.del mark').first().waitFor();
  assert.equal(await root.locator('.diff .fold').count(), 1);
  await root.locator('.diff .fold button').click();
  assert.equal(await root.locator('.diff .fold').count(), 0);
  assert.ok((await root.locator('.media img').first().getAttribute('src'))?.startsWith('blob:'));
  await page.waitForFunction(() => { const img = document.querySelector('plexus-app')?.shadowRoot?.querySelector('plexus-session-page')?.shadowRoot?.querySelector('plexus-session')?.shadowRoot?.querySelector('.media img'); return img && img.naturalWidth === 10; });
  assert.equal(await root.locator('.row.folded').count(), 1, 'an unknown kind is shown');
  assert.ok((await root.locator('#context').getAttribute('aria-label'))?.includes('31%'));
  ok('session: shows messages, thoughts, tools, output, diffs, pictures, plan, usage and unknown kinds');
  // --- calls that only look: one line for those that follow one another
  {
    const reading = await newSession();
    const looks = Array.from({ length: 9 }, (_, n) => tool({ title: `src/part${n}.rs`, kind: n % 3 ? 'read' : 'search', content: output(`line of part ${n}\n`) }));
    await play(reading, script([...looks, tool({ title: 'cargo check', kind: 'execute' }), says('It is in part 4.')]));
    await show(page, reading);
    await ended(1);
    const line = root.locator('.row .reads');
    await line.waitFor();
    assert.match(await line.innerText(), /Search 3, Read 6/);
    assert.equal(await root.locator('.row.tool:visible .card').count(), 1, 'the other one is drawn');
    await shoot(page, process.env.PLEXUS_SHOTS, 'conversation-reads');
    const opened = (/** @type {boolean} */ open) => root.locator(`.row .reads[aria-expanded="${open}"]`).waitFor();
    await line.click();
    await opened(true);
    assert.equal(await root.locator('.row.tool:visible .card').count(), 10);
    await line.click();
    await opened(false);
    assert.equal(await root.locator('.row.tool:visible .card').count(), 1);
    // What is looked for is shown.
    await page.keyboard.press('Control+f');
    await root.locator('.find input').fill('line of part 4');
    await root.locator('.row.tool:visible .card').filter({ hasText: 'src/part4.rs' }).waitFor();
    await page.keyboard.press('Escape');
    ok('session: one line stands for calls that only look');
    await show(page, session);
    await ended(1);
  }
  await everywhere(page, async ({ width, height, theme }) => {
    await root.locator('.scroller').evaluate((el) => { el.scrollTop = 0; });
    await settled(page);
    await axe(page, `session, top, ${width} ${theme}`);
    if (theme === 'light') await fits(page, width, height, 'session');
    await root.locator('.scroller').evaluate((el) => { el.scrollTop = el.scrollHeight; });
    await settled(page);
    await axe(page, `session, end, ${width} ${theme}`);
  });
  ok('session: no axe violations and no overflow in both sizes and themes');
  await shoot(page, process.env.PLEXUS_SHOTS, 'conversation-end');
  await root.locator('.scroller').evaluate((el) => { el.scrollTop = 0; });
  await shoot(page, process.env.PLEXUS_SHOTS, 'conversation');

  // --- the composer: draft, send, history, slash commands, queue, stop
  const field = root.locator('#prompt');
  await field.fill('a draft that stays');
  await page.reload();
  await rows.first().waitFor();
  assert.equal(await field.inputValue(), 'a draft that stays');
  await field.fill('');
  await field.fill('echo first\nline');
  await field.press('Shift+Enter');
  assert.equal(await field.inputValue(), 'echo first\nline\n');
  await field.fill('echo hello there');
  await field.press('Enter');
  await page.waitForFunction(() => document.querySelector('plexus-app')?.shadowRoot?.querySelector('plexus-session-page')?.shadowRoot?.querySelector('plexus-session')?.shadowRoot?.querySelector('plexus-composer')?.shadowRoot?.querySelector('textarea')?.value === '');
  await root.locator('.row.agent').filter({ hasText: 'hello there' }).waitFor();
  await page.waitForFunction(() => /hello there/.test(document.querySelector('plexus-app')?.shadowRoot?.querySelector('plexus-session-page')?.shadowRoot?.querySelector('plexus-session')?.shadowRoot?.querySelector('#announce')?.textContent ?? ''));
  await field.press('ArrowUp');
  assert.equal(await field.inputValue(), 'echo hello there');
  await field.fill('/st');
  const offers = root.locator('.offers button');
  await offers.first().waitFor();
  assert.deepEqual((await offers.locator('.name').allInnerTexts()).sort(), ['/stderr', '/stream']);
  await field.press('ArrowDown');
  await field.press('Tab');
  assert.ok(['/stderr ', '/stream '].includes(await field.inputValue()));
  await field.fill('');
  await root.locator('#files').setInputFiles({ name: 'p.png', mimeType: 'image/png', buffer: Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mNk+M9Qz0AEYBxVSF+FABJADveWkH6oAAAAAElFTkSuQmCC', 'base64') });
  await root.locator('.shots img').waitFor();
  await root.locator('.shots button').click();
  await root.locator('.shots img').waitFor({ state: 'detached' });
  await field.fill('hang');
  await field.press('Enter');
  await root.locator('#stop').waitFor();
  await field.fill('echo queued one');
  await field.press('Enter');
  await field.fill('echo queued two');
  await field.press('Enter');
  await root.locator('.queue li').nth(1).waitFor();
  await root.locator('.queue li').filter({ hasText: 'queued one' }).getByRole('button').click();
  await page.waitForFunction(() => document.querySelector('plexus-app')?.shadowRoot?.querySelector('plexus-session-page')?.shadowRoot?.querySelector('plexus-session')?.shadowRoot?.querySelector('plexus-composer')?.shadowRoot?.querySelectorAll('.queue li').length === 1);
  await root.locator('#stop').click();
  await root.locator('.row.agent').filter({ hasText: 'queued two' }).waitFor();
  assert.equal(await root.locator('.row.agent').filter({ hasText: 'queued one' }).count(), 0);
  ok('composer: draft, new lines, sending, history, slash commands, queue, taking back, stopping');

  // --- what Markdown says of a table's columns and of a list's first number counts; the tab has the session's name
  const tables = await newSession();
  await play(tables, 'echo | n | state |\n|--:|:-:|\n| 1 | ok |\n\n3. third\n4. fourth');
  await show(page, tables);
  await root.locator('.row.agent td').nth(1).waitFor();
  assert.deepEqual(await root.locator('.row.agent td').evaluateAll((all) => all.map((one) => getComputedStyle(one).textAlign)), ['right', 'center']);
  assert.equal(await root.locator('.row.agent ol').getAttribute('start'), '3');
  assert.match(await page.title(), /^echo .* – Plexus$/);
  await show(page, session);
  ok('session: columns are aligned as Markdown says, lists begin where they should, and the tab is named');

  // --- restart: the same prompt again
  await prompt(session, 'think ;; hang');
  await root.locator('#restart').waitFor();
  const before = (await api('GET', `/v1/sessions/${session}`)).run_id;
  await root.locator('#restart').click();
  for (let n = 0; ; n++) {
    const now = await api('GET', `/v1/sessions/${session}`);
    if (now.run_id && now.run_id !== before) break;
    assert.ok(n < 200, 'the run is not restarted');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await root.locator('#stop').click();
  await page.waitForFunction(() => !document.querySelector('plexus-app')?.shadowRoot?.querySelector('plexus-session-page')?.shadowRoot?.querySelector('plexus-session')?.shadowRoot?.querySelector('plexus-composer')?.shadowRoot?.querySelector('#stop'));
  ok('composer: a run is restarted');

  // --- modes
  assert.equal(await root.locator('#mode').inputValue(), 'ask');
  await root.locator('#mode').selectOption('auto');
  await root.locator('.row.line.mode').waitFor();
  await page.waitForFunction(() => document.querySelector('plexus-app')?.shadowRoot?.querySelector('plexus-session-page')?.shadowRoot?.querySelector('plexus-session')?.shadowRoot?.querySelector('plexus-composer')?.shadowRoot?.querySelector('#mode')?.value === 'auto');
  await root.locator('#mode').selectOption('ask');
  await root.locator('.row.line.mode').nth(1).waitFor();
  ok('composer: the mode is changed, and the change is in the conversation');

  // --- a question: its card, and who allowed it
  await prompt(session, 'ask touch marked.txt');
  const card = root.locator('plexus-card');
  await card.waitFor();
  const [request] = (await api('GET', '/v1/requests?state=open')).requests.filter((r) => r.session_id === session);
  await api('POST', `/v1/requests/${request.request_id}/answer`, { option_id: 'allow_once', digest: request.digest });
  const { name } = await api('GET', '/v1/me');
  await root.locator('.row.tool .chip.ok').filter({ hasText: name }).waitFor();
  assert.equal(await root.locator('.row.request:visible').count(), 0, 'its call says it, and nothing else');
  ok('session: a request appears above the composer, and its call shows who allowed it');

  // --- another session goes on meanwhile: this one still has all of its past
  const beside = await newSession();
  await play(beside, 'echo beside');
  await page.evaluate((to) => { location.hash = to; }, `#/s/${beside}`);
  await root.locator('.row.agent').filter({ hasText: 'beside' }).waitFor();
  await ended(1);
  await page.evaluate((to) => { location.hash = to; }, `#/s/${session}`);
  await root.locator('.row.tool .chip.ok').filter({ hasText: name }).waitFor();
  await root.locator('.top-note').waitFor({ state: 'detached' });
  ok('session: switching between sessions');

  // --- sessions that were shown before are shown from memory, with what came meanwhile; nothing is asked of the gateway
  const reads = [];
  const onRead = (request) => { if (/\/v1\/sessions\/[^/]+\/(?:snapshot|events)/.test(request.url())) reads.push(request.url()); };
  page.on('request', onRead);
  await page.evaluate((to) => { location.hash = to; }, `#/s/${beside}`);
  await root.locator('.row.agent').filter({ hasText: 'beside' }).waitFor();
  await play(session, 'echo while nobody looked');
  await play(session, 'flood 2500');
  await play(beside, 'echo still here');
  await root.locator('.row.agent').filter({ hasText: 'still here' }).waitFor();
  await page.evaluate((to) => { location.hash = to; }, `#/s/${session}`);
  await root.locator('.row.agent').filter({ hasText: 'beside' }).waitFor({ state: 'detached' });
  await root.locator('.scroller').evaluate((el) => { el.scrollTop = el.scrollHeight; });
  await page.keyboard.press('Escape');
  await page.keyboard.press('Control+f');
  await root.locator('.find input').fill('while nobody looked');
  await root.locator('.find .count').filter({ hasText: '1 of 2' }).waitFor();
  await page.keyboard.press('Escape');
  await page.evaluate(() => { location.hash = '#/sessions'; });
  await page.locator('plexus-sessions .row').first().waitFor();
  await page.evaluate((to) => { location.hash = to; }, `#/s/${beside}`);
  await root.locator('.row.agent').filter({ hasText: 'still here' }).waitFor();
  assert.deepEqual(reads, [], 'what was shown is not read again');
  page.off('request', onRead);
  ok('session: one that was shown before is shown from memory, with what came meanwhile');

  // --- what happens in one session draws its own row of the list, and no menu
  await page.evaluate(() => { location.hash = '#/sessions'; });
  await page.locator('plexus-sessions .row').nth(1).waitFor();
  await settled(page);
  await page.evaluate(() => {
    const drawn = /** @type {any} */ (window).__drawn = { menus: 0, frames: 0, lists: 0 };
    const counting = (name, take) => {
      const element = /** @type {any} */ (customElements.get(name)).prototype;
      const { render } = element;
      element.render = function counted() { take(this); return render.call(this); };
    };
    counting('plexus-menu', (menu) => { if (menu.getRootNode().host?.localName === 'plexus-sessions') drawn.menus++; });
    counting('plexus-sessions', () => drawn.lists++);
    const frame = () => { drawn.frames++; requestAnimationFrame(frame); };
    requestAnimationFrame(frame);
  });
  await play(beside, 'stream 200 2');
  await settled(page);
  const drawn = await page.evaluate(() => /** @type {any} */ (window).__drawn);
  assert.ok(drawn.lists > 0 && drawn.lists <= drawn.frames, `the list is drawn at most once a frame: ${JSON.stringify(drawn)}`);
  // A row that moves to its place when its run begins, and when it ends, is put into the document again.
  assert.ok(drawn.menus <= 4, `a menu that is closed is not drawn again: ${JSON.stringify(drawn)}`);
  await page.evaluate((to) => { location.hash = to; }, `#/s/${session}`);
  await rows.first().waitFor();
  ok('sessions: what happens in one draws the list at most once a frame, and no menu that is closed');

  // --- a paragraph that grows stays the same element: only what is new is added to it
  const grown = await newSession();
  await play(grown, 'echo begun');
  await show(page, grown);
  await root.locator('.feed').evaluate((feed) => {
    const gone = /** @type {any} */ (window).__gone = { paragraphs: 0, texts: 0 };
    new MutationObserver((all) => {
      for (const one of all) {
        if (one.type === 'characterData') gone.texts++;
        for (const node of one.removedNodes) if (node.nodeName === 'P') gone.paragraphs++;
      }
    }).observe(feed, { childList: true, characterData: true, subtree: true });
  });
  await play(grown, 'stream 300 2');
  await root.locator('.row.agent').filter({ hasText: /chunk-0300/ }).waitFor();
  const gone = await page.evaluate(() => /** @type {any} */ (window).__gone);
  assert.equal(gone.paragraphs, 0, `a paragraph that grows is not made anew: ${JSON.stringify(gone)}`);
  assert.ok(gone.texts > 0, 'its text grew');
  await show(page, session);
  ok('session: a paragraph that grows stays, and gets what is new');

  // --- keyboard, find, deep links
  // All of its past, so that nothing comes before what is at the top. The driver's own click scrolls there first, which loads it, too.
  await root.locator('#older button').evaluateAll((all) => { for (const one of all) /** @type {HTMLElement} */ (one).click(); });
  await root.locator('#older').waitFor({ state: 'detached' });
  await page.locator('plexus-session .scroller').focus();
  await page.keyboard.press('Home');
  await settled(page);
  await root.locator('#jump').waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await root.locator('.row.selected').waitFor();
  const thought = root.locator('.row.thought').first();
  for (let n = 0; n < 6 && !(await thought.evaluate((el) => el.classList.contains('selected'))); n++) await page.keyboard.press('j');
  await page.keyboard.press('o');
  await thought.locator('.prose').waitFor();
  await page.keyboard.press('o');
  await thought.locator('.prose').waitFor({ state: 'detached' });
  await page.keyboard.press('e');
  await alone(page);
  await settled(page);
  assert.ok(await atEnd());
  await page.keyboard.press('Control+f');
  await root.locator('.find input:focus').waitFor();
  await page.keyboard.type('off-by-one');
  await page.waitForFunction(() => /1 of 1/.test(document.querySelector('plexus-app')?.shadowRoot?.querySelector('plexus-session-page')?.shadowRoot?.querySelector('plexus-session')?.shadowRoot?.querySelector('.find .count')?.textContent ?? ''));
  await root.locator('.row.selected').filter({ hasText: 'off-by-one' }).waitFor();
  assert.ok(await page.evaluate(() => /** @type {any} */ (CSS).highlights?.get('plexus-found-now')?.size > 0));
  await page.keyboard.press('Escape');
  await root.locator('.find').waitFor({ state: 'detached' });
  const { events } = await api('GET', `/v1/sessions/${session}/events?limit=1000`);
  const wanted = events.find((e) => e.kind === 'tool_call' && e.event.title === 'src/parse.rs');
  await show(page, session, `/at/${wanted.cursor.split(':').pop()}`);
  await root.locator('.row.target').filter({ hasText: 'src/parse.rs' }).waitFor();
  assert.ok(!(await atEnd()));
  ok('session: keys j, k, o, e and deep links');

  // --- copying
  await root.locator('.scroller').evaluate((el) => { el.scrollTop = 0; });
  await settled(page);
  await root.locator('.row.agent.first .who button').first().click();
  assert.ok((await page.evaluate(() => navigator.clipboard.readText())).includes('**fix the off-by-one**'));
  await root.locator('figure.code button').first().click();
  assert.ok((await page.evaluate(() => navigator.clipboard.readText())).startsWith('fn parse_header'));
  ok('session: a message is copied as Markdown, a code block as code');

  // --- who is cut off sees the end of it; a second screen sees the same, character for character
  const twin = await kit.context();
  const other = await twin.newPage();
  const otherSeen = watch(other);
  await signIn(other, base, (await api('POST', '/v1/codes', { scopes: ['watch'], ttl: 120 })).code);
  await show(other, session);
  await root.locator('.scroller').evaluate((el) => { el.scrollTop = el.scrollHeight; });
  await prompt(session, 'stream 300 3');
  await settled(other);
  await show(other, session);
  for (let n = 0; (await api('GET', `/v1/sessions/${session}`)).state !== 'idle'; n++) { assert.ok(n < 400); await new Promise((resolve) => setTimeout(resolve, 50)); }
  const last = (p) => p.locator('plexus-session .row.agent').allInnerTexts().then((all) => (all.at(-1) ?? '').replace(/^Agent.*\n(Copy\n)?/m, '').trim());
  await settled(page);
  await settled(other);
  const same = async () => { const text = await last(page); return text.length > 200 && text === await last(other); };
  for (let n = 0; !await same(); n++) { assert.ok(n < 100, `${await last(page)} is not ${await last(other)}`); await new Promise((resolve) => setTimeout(resolve, 50)); }
  assert.ok((await other.locator('plexus-session .locked').innerText()).includes('Read-only'));
  assert.equal(await other.locator('plexus-session #prompt').count(), 0);
  assert.deepEqual(await harmless(other, otherSeen), HARMLESS);
  await twin.close();
  ok('session: a client that joins late sees the same; a read-only device is told so');

  // --- what a page leaves out of a long output comes when somebody asks for it
  const logged = await newSession();
  const logLines = Array.from({ length: 40_000 }, (_, n) => `line ${n} of a long log`);
  const oldCode = Array.from({ length: 20_000 }, (_, n) => `let x${n} = ${n};`).join('\n');
  await play(logged, script([
    tool({ toolCallId: 'long', title: 'cat long.log', kind: 'execute', content: output(logLines.join('\n')) }),
    tool({ toolCallId: 'edit', title: 'Edit a.js', kind: 'edit', content: [{ type: 'diff', path: 'a.js', oldText: oldCode, newText: oldCode.replace('let x7 = 7;', 'let x7 = 8;') }] }),
    says('Both are done.'),
  ]));
  const reader = await page.context().newPage();
  let read = 0;
  const reading = await reader.context().newCDPSession(reader);
  await reading.send('Network.enable');
  reading.on('Network.dataReceived', (event) => { read += event.dataLength; });
  await reader.goto(`${base}/#/s/${logged}`);
  await settled(reader);
  const outputs = reader.locator('plexus-session');
  await outputs.getByText('Both are done.').waitFor({ timeout: PATIENCE_MS });
  for (const title of ['cat long.log', 'Edit a.js']) {
    const head = outputs.locator('.fold-head', { hasText: title });
    if (await head.getAttribute('aria-expanded') !== 'true') await head.click();
  }
  const rest = outputs.getByRole('button', { name: /^Load the rest/ });
  await rest.nth(1).waitFor({ timeout: PATIENCE_MS });
  // Of an edit the page brings what differs, with its line numbers.
  const changed = outputs.locator('.diff .line.add', { hasText: 'let x7 = 8;' });
  await changed.waitFor({ timeout: PATIENCE_MS });
  assert.equal(await changed.locator('.no').last().innerText(), '8');
  const readBefore = read;
  await rest.first().click();
  await rest.nth(1).waitFor({ state: 'detached', timeout: PATIENCE_MS });
  assert.ok(read - readBefore > 500_000, `${read - readBefore} bytes came for the output`);
  // What was left out is found as well.
  await outputs.locator('#find').click();
  await outputs.locator('.find input').fill('let x19999 = 19999');
  await outputs.locator('.find .count', { hasText: /^1\b/ }).waitFor({ timeout: PATIENCE_MS });
  await rest.first().waitFor({ state: 'detached', timeout: PATIENCE_MS });
  await reader.close();
  ok('session: a long output is loaded when somebody asks for it, or searches it; of a large edit its changes are shown');

  // --- a session of 50,000 chunks opens with little on the wire, and what is older comes when somebody looks there
  const chunks = await newSession();
  for (let n = 0; n < 5; n++) {
    const updates = [says(`The beginning of part ${n}.\n\n`)];
    for (let c = 1; c < 10_000; c++) updates.push(goesOn(c % 50 ? `word ${n}.${c} ` : `\n\nparagraph ${n}.${c} `));
    await play(chunks, script(updates), 120_000);
  }
  const long = await page.context().newPage();
  let wire = 0;
  const count = await long.context().newCDPSession(long);
  await count.send('Network.enable');
  /** @type {Set<string>} */
  const files = new Set();
  count.on('Network.requestWillBeSent', ({ requestId, request }) => { if (!new URL(request.url).pathname.startsWith('/v1/')) files.add(requestId); });
  count.on('Network.dataReceived', ({ requestId, dataLength }) => { if (!files.has(requestId)) wire += dataLength; });
  count.on('Network.webSocketFrameReceived', ({ response }) => { wire += response.payloadData.length; });
  await long.goto(`${base}/#/s/${chunks}`);
  await long.locator('plexus-session .feed[aria-busy="false"] .row').first().waitFor();
  await settled(long);
  const view = long.locator('plexus-session');
  await view.locator('.prose').filter({ hasText: 'word 4.9999' }).first().waitFor();
  assert.ok(wire > 10_000 && wire < 300 * 1024, `a session of 50,000 chunks opened with ${wire} bytes`);
  console.log(`ok 50,000 chunks: opened with ${Math.round(wire / 1024)} KiB`);
  // Up: what is in sight stays while older history comes in above it.
  let asked = 0;
  let open = () => {};
  const gate = new Promise((resolve) => { open = () => resolve(null); });
  await long.route(/\/events\?.*before=/, async (route) => { asked++; await gate; await route.continue(); });
  for (let n = 0; n < 400 && !asked; n++) {
    await view.locator('.scroller').evaluate((el) => { el.scrollTop = Math.max(1, el.scrollTop - el.clientHeight); });
    await settled(long);
  }
  assert.equal(asked, 1, 'older history is asked for when somebody comes near');
  const sight = () => view.locator('.scroller').evaluate((el) => {
    const box = el.getBoundingClientRect();
    const blocks = [...el.querySelectorAll('.prose > *')].map((block) => ({ box: block.getBoundingClientRect(), text: block.textContent }));
    return blocks.filter((block) => block.box.bottom > box.top + 5 && block.box.top < box.bottom - 5).map((block) => ({ top: block.box.top - box.top, text: block.text }));
  });
  const height = () => view.locator('.scroller').evaluate((el) => el.scrollHeight);
  const [sees, high] = [await sight(), await height()];
  assert.ok(sees.length > 0);
  open();
  for (let n = 0; (await height()) <= high + 1_000; n++) { assert.ok(n < 400, 'older history comes in'); await new Promise((resolve) => setTimeout(resolve, 50)); }
  await settled(long);
  const still = await sight();
  // Rows may begin at other paragraphs now: the space between two may differ by a little, words and order may not.
  const kept = sees.filter((block) => block.top >= 0 && block.top < 600).map((block) => [block.text, still.filter((now) => now.text === block.text && Math.abs(now.top - block.top) < 8).length]);
  assert.ok(kept.length >= 3 && kept.every(([, found]) => found === 1), `what is in sight stays while older history comes in above it: ${JSON.stringify([sees, still])}`);
  await long.unrouteAll({ behavior: 'wait' });
  // Find looks through all of it, and a link to something old opens there.
  await view.locator('#find').click();
  await view.locator('.find input').fill('word 0.77 ');
  await view.locator('.find .count').filter({ hasText: '1' }).waitFor({ timeout: 60_000 });
  assert.equal(await view.locator('#older').count(), 0, 'all of it was loaded');
  const first = (await api('GET', `/v1/sessions/${chunks}/events?limit=40&merge=true`)).events.find((e) => e.kind === 'agent_message_chunk');
  await show(long, chunks, `/at/${String(first.cursor_first).split(':')[1]}`);
  await view.locator('.row.target').filter({ hasText: 'The beginning of part 0.' }).waitFor({ timeout: 60_000 });
  await long.close();
  ok('session: a long one opens with its newest page; scrolling, finding and links load older ones');

  // --- the runtime goes: last, as no session begins with it any more
  await prompt(session, 'crash');
  await root.locator('.row.line.runtime .note, .row.line.end.bad').first().waitFor();
  ok('session: a crash of the agent is shown');

  assert.deepEqual(await harmless(page, seen), HARMLESS);
} finally {
  await close();
}
