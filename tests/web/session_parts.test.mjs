// The pure parts of the session view: the fold of events, Markdown in parts, terminal output, visible characters. No browser.
//
//   PLEXUS_WEB   the folder web/, with its node_modules
//
// Prints a line `ok ...` for each thing that holds; the first one that does not ends it with exit code 1.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { DECEPTIVE, SEQUENCES } from './hostile_corpus.mjs';

const web = resolve(process.env.PLEXUS_WEB ?? join(import.meta.dirname, '../../web'));
const { rolldown } = await import(pathToFileURL(createRequire(join(web, 'node_modules/vite/package.json')).resolve('rolldown')).href);
const dir = mkdtempSync(join(tmpdir(), 'plexus-parts-'));
const ok = (/** @type {string} */ what) => console.log(`ok ${what}`);
try {
  const entry = join(dir, 'entry.ts');
  const from = (/** @type {string} */ file) => JSON.stringify(join(web, 'src', file));
  writeFileSync(entry, `export * from ${from('session/model.ts')}; export * from ${from('render/ansi.ts')}; export * from ${from('render/segment.ts')}; export * from ${from('render/visible.ts')};`);
  const build = await rolldown({ input: entry, logLevel: 'silent' });
  await build.write({ file: join(dir, 'parts.mjs') });
  const { Conversation, itemMarkdown, Ansi, ansiLines, Segmenter, segments, visible, readable, oneLine, cut } = await import(pathToFileURL(join(dir, 'parts.mjs')).href);

  // --- characters
  for (const c of DECEPTIVE) {
    const shown = visible(`a${c}b`);
    assert.ok(!shown.includes(c), `U+${c.codePointAt(0)?.toString(16)} stays`);
    assert.equal(shown, `a\\u{${c.codePointAt(0)?.toString(16)}}b`);
    assert.ok(!oneLine(c).includes(c));
  }
  assert.equal(visible('touch a.txt && ls "ü" 日本語 שלום'), 'touch a.txt && ls "ü" 日本語 שלום');
  assert.equal(readable('👩‍👩‍👧 مرحبا \u2067ok\u2069'), '👩‍👩‍👧 مرحبا \u2067ok\u2069');
  assert.equal(readable('a\u202eb'), 'a\\u{202e}b');
  assert.equal(cut('a😀b', 2), 'a');
  ok(`${DECEPTIVE.length} deceptive code points are shown as what they are`);

  // --- terminal output
  const flat = (/** @type {any[]} */ lines) => lines.map((line) => line.map((/** @type {any} */ run) => run.text).join(''));
  assert.deepEqual(flat(ansiLines('10%\r50%\r100%\ndone')), ['100%', 'done']);
  assert.deepEqual(flat(ansiLines('hello\rJ')), ['Jello']);
  assert.deepEqual(flat(ansiLines('abcdef\r\x1b[Kxy')), ['xy']);
  assert.deepEqual(flat(ansiLines('ab\bc')), ['ac']);
  assert.deepEqual(ansiLines('\x1b[31mred\x1b[0m plain')[0], [{ text: 'red', style: { fg: 1 } }, { text: ' plain', style: null }]);
  assert.deepEqual(ansiLines('\x1b[38;2;1;2;3mx')[0][0].style, { fg: '#010203' });
  assert.deepEqual(ansiLines('\x1b[1;48;5;300mx')[0][0].style, { bold: true, bg: 255 });
  assert.ok(SEQUENCES.length >= 200, String(SEQUENCES.length));
  for (const sequence of SEQUENCES) {
    const text = `<${sequence}>\nnext`;
    const whole = JSON.stringify(ansiLines(text));
    // eslint-disable-next-line no-control-regex
    assert.ok(!/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/.test(flat(ansiLines(text)).join('')), JSON.stringify(sequence));
    for (let at = 1; at < text.length; at++) {
      const ansi = new Ansi();
      ansi.push(text.slice(0, at));
      ansi.push(text.slice(at));
      assert.deepEqual(flat(ansi.all()), flat(JSON.parse(whole)), `${JSON.stringify(sequence)} split at ${at}`);
    }
  }
  ok(`${SEQUENCES.length} escape sequences leave text and colour, wherever they are split`);

  // --- Markdown in parts
  const page = `# Title\n\n${'A paragraph of words. '.repeat(80)}\n\n- one\n- two\n\n\`\`\`rust\nfn main() {\n\n    x();\n}\n\`\`\`\nafter\n\n${'more '.repeat(600)}\n\n| a | b |\n|---|---|\n| 1 | 2 |\n`.repeat(6);
  const whole = segments(page);
  assert.ok(whole.length > 6);
  assert.equal(whole.filter((/** @type {any} */ s) => s.kind === 'code').length, 6);
  assert.ok(whole.every((/** @type {any} */ s) => s.kind !== 'code' || s.text === 'fn main() {\n\n    x();\n}\n'));
  let seed = 7;
  const random = () => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648;
  for (let round = 0; round < 40; round++) {
    const segmenter = new Segmenter();
    for (let at = 0; at < page.length;) {
      const size = 1 + Math.floor(random() * (round < 20 ? 9 : 900));
      segmenter.push(page.slice(at, at + size));
      at += size;
    }
    assert.deepEqual(segmenter.all(), whole);
  }
  const long = 'x'.repeat(1 << 20);
  assert.ok(segments(long).every((/** @type {any} */ s) => s.text.length <= 20_000));
  assert.equal(segments(long).map((/** @type {any} */ s) => s.text).join(''), long);
  ok('Markdown falls into the same parts however it comes');

  // --- the fold
  let pos = 0;
  const event = (/** @type {string} */ kind, /** @type {any} */ body, run = 'r1') => ({ session_id: 's', run_id: run, seq: pos, cursor: `e:${++pos}`, at: new Date(1e12 + pos * 1000).toISOString(), kind, event: body, meta: { runtime_id: 'demo', dialect: 'acp' } });
  const say = (/** @type {string} */ text, /** @type {string} */ kind = 'agent_message_chunk') => event(kind, { content: { type: 'text', text } });
  const events = [
    event('run_started', { run_id: 'r1', by: { device_id: 'd', name: 'laptop' } }),
    event('user_message_chunk', { content: { type: 'text', text: 'hello' } }),
    say('thin', 'agent_thought_chunk'), say('king', 'agent_thought_chunk'),
    say('I '), say('do it.'),
    event('tool_call', { toolCallId: 't', title: 'Edit', kind: 'edit', status: 'pending' }),
    event('request_opened', { request_id: 'q', type: 'permission', title: 'may I', display: 'touch x', options: [], tool_call_id: 't', state: 'open' }),
    event('request_resolved', { request_id: 'q', state: 'answered', ok: true, resolved_by: { device_id: 'p', name: 'phone' } }),
    event('tool_call_update', { toolCallId: 't', status: 'completed' }),
    say('Done.'),
    event('plan', { entries: [{ content: 'a', status: 'pending' }] }), event('plan', { entries: [{ content: 'a', status: 'completed' }] }),
    event('usage_update', { used: 10, size: 100 }),
    event('current_mode_update', { currentModeId: 'ask', _meta: { modes: { availableModes: [{ id: 'ask', name: 'Ask' }, { id: 'auto', name: 'Auto' }] } } }), event('current_mode_update', { currentModeId: 'auto' }),
    event('made_up_kind', { x: 1 }), event('raw', [1, null]), event('error', { code: 'x', message: 'y' }),
    event('run_ended', { run_id: 'r1', status: 'completed' }),
  ];
  const talk = new Conversation();
  for (const e of events) talk.apply(e);
  assert.deepEqual(talk.items.map((/** @type {any} */ i) => i.type), ['user', 'thought', 'agent', 'tool', 'request', 'agent', 'plan', 'line', 'folded', 'folded', 'line', 'line']);
  assert.equal(talk.items[2].text, 'I do it.');
  assert.equal(talk.items[3].call.status, 'completed');
  assert.equal(talk.items[3].requests[0].outcome.resolved_by.name, 'phone');
  assert.equal(talk.items[6].entries[0].status, 'completed');
  assert.equal(talk.items[7].body.name, 'Auto');
  assert.equal(talk.items.at(-1).took, 19_000);
  assert.deepEqual(talk.usage, { used: 10, size: 100, cost: '' });
  assert.equal(talk.modes.length, 2);
  assert.equal(new Set(talk.rows.map((/** @type {any} */ r) => r.key)).size, talk.rows.length);
  const before = talk.items.length;
  for (const e of events) talk.apply(e);
  assert.equal(talk.items.length, before, 'an event that comes twice counts once');
  assert.equal(talk.items[2].text, 'I do it.');
  for (let at = 1; at <= pos; at++) assert.ok(talk.rows[talk.rowAt(at)].item.key <= Math.max(at, 2));
  assert.ok(itemMarkdown(talk.items[3]).includes('Edit'));
  ok('the fold: order, merging, marks, unknown kinds, repeats');

  // A snapshot gives the same items the same keys.
  const brief = Conversation.from({
    session: {}, cursor: `e:${pos}`, trimmed: false, surfaces: [], requests: [], latest: {},
    messages: [{ role: 'user', run_id: 'r1', text: 'hello', partial: false, at: '', position: 2 }, { role: 'agent', run_id: 'r1', text: 'I do it.', partial: false, at: '', position: 5 }, { role: 'agent', run_id: 'r1', text: 'Done.', partial: false, at: '', position: 11 }],
    tools: [{ tool_call_id: 't', run_id: 'r1', position: 7, title: 'Edit', status: 'completed' }],
  });
  const keys = new Set(talk.rows.map((/** @type {any} */ r) => r.key));
  assert.ok(brief.rows.every((/** @type {any} */ r) => keys.has(r.key)));
  brief.apply(event('agent_message_chunk', { content: { type: 'text', text: 'more' } }, 'r2'));
  assert.equal(brief.items.at(-1).text, 'more');

  // Hostile bodies: nothing throws, everything is shown somehow.
  const odd = [null, 1, 'x', [], {}, { content: null }, { content: [] }, { content: { type: 'text', text: 5 } }, { toolCallId: {}, content: 7 }, { entries: 'x' }, { entries: [null, 1] }, { availableCommands: [null, { name: {} }] }, { configOptions: [null, { options: [null, { options: [null] }] }] }, { currentModeId: [], _meta: { modes: { availableModes: [null] } } }, { __proto__: null, constructor: 1 }, { request_id: null }, { cost: { amount: 'x' } }];
  const rough = new Conversation();
  for (const kind of ['user_message_chunk', 'agent_message_chunk', 'agent_thought_chunk', 'tool_call', 'tool_call_update', 'plan', 'available_commands_update', 'current_mode_update', 'config_option_update', 'session_info_update', 'usage_update', 'run_started', 'run_status', 'run_ended', 'request_opened', 'request_resolved', 'surface_updated', 'hook', 'runtime_status', 'client_joined', 'client_left', 'error', 'raw', 'constructor', '__proto__', '']) {
    for (const body of odd) rough.apply(event(kind, body));
  }
  for (const item of rough.items) itemMarkdown(item);
  ok('bodies of any shape fold without an error');

  const many = new Conversation();
  const began = performance.now();
  for (let n = 0; n < 200_000; n++) many.apply(say(n % 40 ? `word ${n} ` : `\n\nparagraph ${n} `));
  const ms = Math.round(performance.now() - began);
  assert.ok(many.rows.length > 100 && many.items.length === 1);
  console.log(`speed: folding 200,000 chunks of one message: ${ms} ms, ${many.rows.length} rows`);
} finally {
  rmSync(dir, { recursive: true, force: true });
}
