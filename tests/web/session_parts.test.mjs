// Tests of the pure parts of the page, without a browser: the fold of events, Markdown segments, terminal output, visible characters, and
// decisions about requests.
//
//   PLEXUS_WEB   the folder web/, with its node_modules
//
// Prints a line `ok ...` for each passed test; the first failure ends it with exit code 1.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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
  writeFileSync(entry, `export * from ${from('session/model.ts')}; export * from ${from('session/reads.ts')}; export * from ${from('render/ansi.ts')}; export * from ${from('render/segment.ts')}; export * from ${from('render/visible.ts')}; export * from ${from('request/display.ts')}; export * from ${from('request/questions.ts')}; export * from ${from('wire/merge.ts')}; export { KINDS } from ${from('wire/types.ts')}; export * from ${from('lib/attention.ts')}; export * from ${from('lib/time.ts')}; export { byProject, projectOf } from ${from('lib/project.ts')}; export { mentionAt, mentioned } from ${from('session/mention.ts')};`);
  const build = await rolldown({ input: entry, logLevel: 'silent' });
  await build.write({ file: join(dir, 'parts.mjs') });
  const { Conversation, revisionOf, absorbed, countsOf, folds, KINDS, itemMarkdown, Ansi, ansiLines, Segmenter, segments, visible, readable, oneLine, cut, blocksOf, sizeOf, answersOf, choose, chooseOwn, wrongWith, questionsOf, NOTHING, merged, changedBetween, Attention, LOOKING_MS, counts, placed, skewFrom, byProject, projectOf, mentionAt, mentioned } = await import(pathToFileURL(join(dir, 'parts.mjs')).href);

  {
    // Calls that only looked at something stand together; whatever else happened in between ends the stretch.
    const conversation = new Conversation();
    let pos = 0;
    const event = (/** @type {string} */ kind, /** @type {any} */ body) => conversation.apply({ cursor: `e.${++pos}`, kind, run_id: 'r', seq: pos, session_id: 's', at: '2026-11-26T00:00:00Z', event: body });
    const call = (/** @type {string} */ id, /** @type {any} */ more) => event('tool_call_update', { toolCallId: id, ...more });
    const read = (/** @type {string} */ id, kind = 'read') => call(id, { kind, title: id, status: 'completed' });
    const shown = () => conversation.items.filter((/** @type {any} */ item) => !absorbed(item)).map((/** @type {any} */ item) => (item.type === 'tool' ? (folds(item) ? `${item.id} and ${item.reads.items.length - 1}` : item.id) : item.type));
    read('a'); read('b');
    assert.deepEqual(shown(), ['a', 'b'], 'two are no stretch');
    call('c', { kind: 'read', title: 'c', status: 'in_progress' });
    read('d', 'search');
    assert.deepEqual(shown(), ['a', 'b', 'c', 'd'], 'it is not over');
    read('c');
    assert.deepEqual(shown(), ['a and 3']);
    assert.deepEqual(countsOf(conversation.items[0].reads), [['read', 3], ['search', 1]]);
    call('e', { kind: 'edit', title: 'e', status: 'completed' });
    read('f');
    event('agent_thought_chunk', { content: { type: 'text', text: 'hm' } });
    read('g'); read('h'); call('i', { kind: 'read', title: 'i', status: 'failed' });
    assert.deepEqual(shown(), ['a and 3', 'e', 'f', 'thought', 'g', 'h', 'i'], 'changes, thoughts and failures stand alone');
    conversation.dirty.clear();
    call('b', { content: [{ type: 'diff', path: 'x', oldText: '', newText: 'y' }] });
    assert.deepEqual(shown().slice(0, 5), ['a', 'b', 'c', 'd', 'e'], 'it changed something after all');
    assert.ok(['a', 'b', 'c', 'd'].every((id) => [...conversation.dirty].some((/** @type {any} */ item) => item.id === id)), 'all are drawn again');
    const first = conversation.items.find((/** @type {any} */ item) => item.id === 'g');
    read('j'); read('k'); call('i', { status: 'completed' });
    assert.deepEqual(shown().slice(-1), ['g and 4']);
    first.reads.open = true;
    assert.deepEqual(shown().slice(-5), ['g and 4', 'h and 4', 'i and 4', 'j and 4', 'k and 4'], 'a person opened it');
    // A thousand in any order cost what they are.
    const many = Array.from({ length: 1000 }, (_, n) => `m${n}`);
    call('e2', { kind: 'edit', status: 'completed' });
    for (const id of many) call(id, { kind: 'read', status: 'in_progress' });
    conversation.dirty.clear();
    for (const id of many.toReversed()) read(id);
    assert.deepEqual(shown().slice(-1), ['m0 and 999']);
    ok('reads: one line stands for those that follow one another');
  }

  {
    const in_ = (/** @type {string} */ cwd, /** @type {object} */ project = undefined) => projectOf({ cwd, project });
    assert.deepEqual(in_('/w/plexus/src/deep', { name: 'plexus', root: '/w/plexus', branch: 'main' }), { key: '/w/plexus', name: 'plexus', branch: 'main', worktree: '', root: '/w/plexus', below: 'src/deep' });
    assert.deepEqual(in_('/w/login', { name: 'plexus', root: '/w/plexus', worktree: 'login' }), { key: '/w/plexus', name: 'plexus', branch: 'login', worktree: 'login', root: '/w/plexus', below: '' });
    assert.deepEqual(in_('/w/notes/'), { key: '/w/notes/', name: 'notes', branch: '', worktree: '', root: '/w/notes/', below: '' });
    assert.equal(in_('/').name, '/');
    assert.ok(!/[\u202e\n]/.test(in_('/w/a\u202e\nb').name + in_('/w/a\u202e\nb').root), 'text that is safe to show');
    const one = (id, root, state, at, open = 0) => ({ session_id: id, cwd: root, project: { name: root.slice(1), root }, state, at, open });
    const all = [one('a', '/x', 'idle', 9), one('b', '/y', 'idle', 1), one('c', '/y', 'waiting', 2, 2), one('d', '/z', 'idle', 5), one('e', '/z', 'running', 3), one('f', '/z', 'exited', 7)];
    const groups = byProject(all, (s) => s.open, (s) => s.at).map((group) => [group.name, group.waiting, group.sessions.map((s) => s.session_id).join('')]);
    assert.deepEqual(groups, [['y', 2, 'cb'], ['x', 0, 'a'], ['z', 0, 'efd']]);
    const many = Array.from({ length: 2_000 }, (_, n) => one(`s${n}`, `/p${n % 100}`, 'idle', n));
    assert.equal(byProject(many, () => 0, (s) => s.at).length, 100);
    ok('projects: what waits is first, then by last activity');
  }
  {
    const at = (/** @type {string} */ text) => mentionAt(text, text.length);
    for (const [text, query] of [['@', ''], ['look at @src/m', 'src/m'], ['(@a', 'a'], ['@a\\ b', 'a b'], ['line\n@x', 'x']]) assert.equal(at(text)?.query, query, text);
    for (const text of ['', 'me@example', '@a b', '@a@b', 'a', '@a\n']) assert.equal(at(text), null, text);
    assert.equal(mentionAt('@abc', 2)?.query, 'a', 'up to the caret');
    assert.equal(at(`@${'x'.repeat(300)}`), null, 'a long word is no file');
    assert.deepEqual(mentioned('see @ma and', { from: 4, to: 7, query: 'ma' }, 'src/main menu.ts'), { text: 'see @src/main\\ menu.ts and', caret: 23 });
    assert.deepEqual(mentioned('@', { from: 0, to: 1, query: '' }, 'a'), { text: '@a ', caret: 3 });
    ok('mentions: the word at the caret, and a path in its place');
  }

  {
    let now = 1_000;
    const attention = new Attention(() => now);
    assert.ok(attention.here && !attention.touch());
    now += LOOKING_MS - 1;
    assert.ok(attention.here);
    now += 1;
    assert.ok(!attention.here, 'nobody touched anything for two minutes');
    assert.ok(attention.touch() && attention.here, 'and that somebody does is news');
    assert.equal(LOOKING_MS, 120_000);
    ok('attention: a page without input for two minutes is not viewed');
  }

  assert.ok(!counts(false, 5, 4) && counts(false, 5, 5) && counts(false, undefined, 4), 'a page of a listing undoes nothing');
  assert.ok(counts(true, 5, 4), 'what is told in order counts, though the clock was set back');
  assert.equal(placed(4, 5), 6);
  assert.equal(placed(7, 5), 7);
  ok('merge: a clock that is set back hides no session update');

  assert.equal(skewFrom(0, 10_000, 10_200, 30_400), 0, 'a reply that took twenty seconds says nothing of a clock');
  assert.equal(skewFrom(0, 10_000, 9_500, 9_600), 0, 'the header counts whole seconds');
  const hour = 3_600_000;
  const behind = skewFrom(0, hour, 0, 200);
  assert.ok(Math.abs(behind - hour) < 1_000, String(behind));
  assert.equal(skewFrom(behind, 2 * hour, hour, hour + 20_000), behind, 'a slow reply that fits changes nothing');
  assert.equal(skewFrom(behind, hour, hour, hour + 100), 0, 'a clock that was set right is right');
  ok('clock skew: a slow reply does not change it');

  {
    // --- the golden cases, which the gateway's fold has to pass as well (crates/protocol/src/transcript)
    const NOTE = /** @type {Record<string, string>} */ ({ error: 'error', runtime: 'runtime_status', client: 'client_joined', status: 'run_status' });
    const shown = (/** @type {any} */ item) => {
      const base = { position: item.key, run_id: item.run, ...(item.parent ? { parent: item.parent.id } : {}) };
      const blocks = () => item.parts.filter((/** @type {any} */ part) => part.kind === 'block').map((/** @type {any} */ part) => part.block);
      switch (item.type) {
        case 'user': case 'agent': case 'thought': return { ...base, type: item.type, id: item.id, text: item.text, blocks: blocks(), partial: item.partial };
        case 'tool': { const { status, ...call } = item.call; return { ...base, type: 'tool', id: item.id, status: status ?? '', call, output: item.output }; }
        case 'plan': return { ...base, type: 'plan', entries: item.entries.map((/** @type {any} */ entry) => ({ content: entry.content, status: entry.status })) };
        case 'request': return { ...base, type: 'request', id: item.id, request: item.request, receipt: item.outcome };
        case 'surface': return { ...base, type: 'surface', id: item.id, body: item.body };
        case 'folded': return { ...base, type: 'note', kind: item.kind, body: item.body };
        case 'line': {
          if (item.line === 'end') return { ...base, type: 'end', body: item.body, took: item.took ?? null };
          const { left, ...body } = item.body;
          return { ...base, type: 'note', kind: left ? 'client_left' : NOTE[item.line], body };
        }
        default: throw new Error(`no golden form of ${item.type}`);
      }
    };
    const folder = join(import.meta.dirname, '../golden');
    const cases = readdirSync(folder).filter((file) => file.endsWith('.json'));
    const kinds = new Set();
    for (const file of cases) {
      const golden = JSON.parse(readFileSync(join(folder, file), 'utf8'));
      const conversation = new Conversation();
      for (const event of golden.events) {
        kinds.add(event.kind);
        conversation.apply(structuredClone(event));
      }
      // The page adds lines for changes of titles, modes and options.
      const items = conversation.items.filter((/** @type {any} */ item) => item.type !== 'line' || !['mode', 'option', 'title'].includes(item.line));
      for (const [n, expected] of golden.transcript.entries()) assert.deepEqual(items[n] && shown(items[n]), expected, `item ${n} of ${file}`);
      assert.equal(items.length, golden.transcript.length, file);
    }
    assert.ok(cases.length >= 8);
    assert.deepEqual([...kinds].sort(), [...KINDS].sort(), 'every kind of event is in a case, and the page knows it');
    ok(`fold: ${cases.length} golden cases give the gateway's transcript`);
  }

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
  ok(`visible: ${DECEPTIVE.length} deceptive code points are escaped`);

  {
    // --- displays: drawing loses nothing, and only colours depend on the kind
    const hunk = 'edit src/a.rs\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n\\ no line end at the end of the file\nwrite b\n@@ -0,0 +1,1 @@\n+x';
    const drawn = (/** @type {string} */ display, /** @type {boolean | undefined} */ edit) => blocksOf(display, edit).flat();
    assert.deepEqual(drawn(hunk, true).map((/** @type {any} */ line) => line.kind), ['head', 'hunk', 'same', 'del', 'add', 'where', 'head', 'hunk', 'add']);
    assert.deepEqual(drawn(hunk, undefined).map((/** @type {any} */ line) => line.kind), drawn(hunk, true).map((/** @type {any} */ line) => line.kind));
    assert.ok(drawn(hunk, false).every((/** @type {any} */ line) => line.kind === 'plain'), 'a command that looks like an edit is none');
    const mixed = `edit a\n+${'x'.repeat(5_000)}\n${'-y\\u{202e}\n'.repeat(300)} end`;
    for (const edit of [true, false, undefined]) {
      assert.equal(drawn(mixed, edit).map((/** @type {any} */ line) => line.parts.map((/** @type {any} */ part) => part.text).join('') + (line.ends ? '\n' : '')).join(''), mixed);
    }
    const word = `edit big.txt\n@@ -297,7 +297,7 @@\n ${['a', 'b', 'c'].join('\n ')}\n-old\n+new\n ${['d', 'e', 'f'].join('\n ')}`;
    assert.equal(sizeOf(word).long, false, 'one word in a long file is short');
    ok('display: an edit is drawn line by line, completely, and nothing else is drawn as an edit');

    // --- merging updates of a request
    const asked = { request_id: 'r', state: 'open', revision: 0, display: 'a', digest: 'd0', warnings: [], options: [] };
    assert.equal(merged({ ...asked, state: 'answered' }, asked), null, 'resolved is for good');
    const second = merged(asked, { ...asked, revision: 1, changed: true, display: 'b', digest: 'd1' });
    assert.deepEqual([second.display, second.digest, changedBetween(asked, second)], ['b', 'd1', true]);
    assert.equal(merged(second, asked), null, 'an earlier revision comes too late');
    const part = { ...asked, display: 'beginning', display_truncated: true, display_bytes: 99_999, digest: undefined };
    const first = merged(undefined, part);
    const all = merged(first, { ...asked, display: 'all of it', digest: 'd0' });
    assert.deepEqual([all.display, all.digest, all.display_truncated, all.display_bytes], ['all of it', 'd0', undefined, undefined]);
    assert.equal(changedBetween(first, all), false, 'the rest of the same is no change');
    assert.deepEqual([merged(all, part).display, merged(all, part).digest], ['all of it', 'd0'], 'told in part again, it stays whole');
    const later = merged(all, { ...part, revision: 1 });
    assert.deepEqual([later.display, later.digest, later.display_truncated], ['beginning', '', true], 'the whole of before is none of now');
    ok('merge: request updates in any order give the newest revision and the whole display');

    // --- questions
    const colour = { id: 'c', text: 'Which?', options: [{ id: '1', label: 'red' }, { id: '2', label: 'blue' }], multiple: false, free_text: true };
    const many = { id: '__proto__', text: 'Which ones?', options: [{ id: 'x', label: 'x' }, { id: 'y', label: 'y' }, { id: 'z', label: 'z' }], multiple: true, free_text: false, optional: true, fits: { least: 2 } };
    const age = { id: 'n', text: 'How many?', options: [], multiple: false, free_text: true, fits: { number: 'integer', least: 1, most: 9 } };
    const say = (/** @type {any[]} */ ...pairs) => answersOf([colour, many, age], new Map(pairs));
    const red = choose(colour, NOTHING, '1', true);
    assert.deepEqual(say().question, colour);
    assert.equal(say(['c', red]).question, age, 'what may be left out was');
    assert.equal(wrongWith(many, choose(many, NOTHING, 'y', true)) === '', false, 'one of two');
    assert.deepEqual([...choose(colour, red, '2', true).chosen], ['2'], 'one at most');
    assert.deepEqual([...chooseOwn(colour, red, true).chosen], [], 'own words are a choice');
    assert.notEqual(wrongWith(colour, { ...NOTHING, own: true, words: ' ' }), '');
    for (const [words, fits] of [['5', true], ['0', false], ['10', false], ['1.5', false], ['x', false], ['', false]]) assert.equal(wrongWith(age, { ...NOTHING, own: true, words }) === '', fits, String(words));
    const both = choose(many, choose(many, NOTHING, 'z', true), 'x', true);
    const given = say(['c', { ...NOTHING, own: true, words: ' teal ' }], ['__proto__', both], ['n', { ...NOTHING, own: true, words: '3' }]).answers;
    assert.deepEqual(Object.entries(given), [['c', ['teal']], ['__proto__', ['x', 'z']], ['n', ['3']]]);
    assert.equal(JSON.stringify(given), '{"c":["teal"],"__proto__":["x","z"],"n":["3"]}');
    assert.equal(questionsOf({ type: 'pick', subject: { type: 'question', questions: [{ ...colour, id: 'answer' }] } }).length, 0, 'a pick is its own question');
    assert.equal(questionsOf({ type: 'elicitation', subject: { type: 'question', questions: [colour, age] } }).length, 2);
    ok('questions: answers are complete, in order, and within their limits');
  }

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
  ok(`terminal output: ${SEQUENCES.length} escape sequences leave only text and colour, wherever they are split`);

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
  // While a line without an end grows, only a part of it changes.
  const growing = new Segmenter();
  let most = 0;
  for (let n = 0; n < 3_000; n++) { growing.push(`word-${n} `); most = Math.max(most, growing.open()?.text.length ?? 0); }
  assert.ok(most > 3_000 && most <= 4_000, `the part that is drawn again has ${most} characters`);
  assert.equal(segments(long).map((/** @type {any} */ s) => s.text).join(''), long);
  ok('segments: Markdown is cut into the same parts in whatever pieces it arrives');

  {
    // Of a message that grows, a chunk changes its last part; the part before it changes once, when it is settled.
    const conversation = new Conversation();
    let pos = 0;
    let most = 0;
    /** @type {Map<string, number>} */ let before = new Map();
    for (let n = 0; n < 4_000; n++) {
      conversation.apply({ cursor: `e:${++pos}`, kind: 'agent_message_chunk', run_id: 'r', seq: pos, session_id: 's', at: '2026-11-26T00:00:00Z', event: { content: { type: 'text', text: n % 40 ? `word ${n} ` : `\n\nparagraph ${n} ` } } });
      const now = new Map(conversation.rows.map((/** @type {any} */ row) => [row.key, revisionOf(row)]));
      most = Math.max(most, [...now].filter(([key, revision]) => before.has(key) && before.get(key) !== revision).length);
      before = now;
    }
    assert.ok(conversation.rows.length > 20, String(conversation.rows.length));
    assert.equal(most, 1, 'a chunk draws one known row again');
    ok('the fold: a chunk of a long message draws its last part again, and no other');
  }

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

  // Merged pages, loaded backwards, fold to the same items with the same keys; the latest states come from the snapshot.
  const same = new Conversation();
  for (const e of [{ cursor: 'e:1', run_id: 'r', at: '', kind: 'agent_message_chunk', event: { content: { type: 'text', text: 'Hello ' } } }, { cursor: 'e:2', run_id: 'r', at: '', kind: 'agent_message_chunk', event: { content: { type: 'text', text: 'you' } } }]) same.apply(e);
  const one = new Conversation();
  one.apply({ cursor: 'e:2', cursor_first: 'e:1', merged: 2, run_id: 'r', at: '', kind: 'agent_message_chunk', event: { content: { type: 'text', text: 'Hello you' } } });
  one.takeLatest({ usage_update: { used: 1, size: 2 } });
  assert.deepEqual(one.rows.map((/** @type {any} */ r) => [r.key, r.item.text]), same.rows.map((/** @type {any} */ r) => [r.key, r.item.text]));
  assert.deepEqual([one.head, one.count, one.usage.size], [2, 2, 2]);
  // A long text comes in parts of one event.
  for (const [before, text] of [[0, ' and'], [1, ' all']]) one.apply({ cursor: 'e:3', cursor_first: 'e:3', merged: 1, cut: { before, after: 1 - before }, run_id: 'r', at: '', kind: 'agent_message_chunk', event: { content: { type: 'text', text } } });
  assert.equal(one.items[0].text, 'Hello you and all');

  // Hostile bodies: nothing throws, and everything is shown.
  const odd = [null, 1, 'x', [], {}, { content: null }, { content: [] }, { content: { type: 'text', text: 5 } }, { toolCallId: {}, content: 7 }, { entries: 'x' }, { entries: [null, 1] }, { availableCommands: [null, { name: {} }] }, { configOptions: [null, { options: [null, { options: [null] }] }] }, { currentModeId: [], _meta: { modes: { availableModes: [null] } } }, { __proto__: null, constructor: 1 }, { request_id: null }, { cost: { amount: 'x' } }];
  const rough = new Conversation();
  for (const kind of ['user_message_chunk', 'agent_message_chunk', 'agent_thought_chunk', 'tool_call', 'tool_call_update', 'plan', 'available_commands_update', 'current_mode_update', 'config_option_update', 'session_info_update', 'usage_update', 'run_started', 'run_status', 'run_ended', 'request_opened', 'request_resolved', 'surface_updated', 'hook', 'runtime_status', 'client_joined', 'client_left', 'error', 'raw', 'constructor', '__proto__', '']) {
    for (const body of odd) rough.apply(event(kind, body));
  }
  for (const item of rough.items) itemMarkdown(item);
  ok('fold: bodies of any shape cause no error');

  const many = new Conversation();
  const began = performance.now();
  for (let n = 0; n < 200_000; n++) many.apply(say(n % 40 ? `word ${n} ` : `\n\nparagraph ${n} `));
  const ms = Math.round(performance.now() - began);
  assert.ok(many.rows.length > 100 && many.items.length === 1);
  console.log(`speed: folding 200,000 chunks of one message: ${ms} ms, ${many.rows.length} rows`);
} finally {
  rmSync(dir, { recursive: true, force: true });
}
