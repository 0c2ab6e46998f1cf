// Tests of the pure parts of the inbox, without a browser: what a row says, groups and their order, which rows are drawn, what is chosen,
// which requests one answer may go to, and how several answers are sent.
//
//   PLEXUS_WEB   the folder web/, with its node_modules
//
// Prints a line `ok ...` for each passed test; the first failure ends it with exit code 1.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const web = resolve(process.env.PLEXUS_WEB ?? join(import.meta.dirname, '../../web'));
const { rolldown } = await import(pathToFileURL(createRequire(join(web, 'node_modules/vite/package.json')).resolve('rolldown')).href);
const dir = mkdtempSync(join(tmpdir(), 'plexus-parts-'));
const ok = (/** @type {string} */ what) => console.log(`ok ${what}`);
try {
  const entry = join(dir, 'entry.ts');
  const files = ['asked', 'order', 'outcome', 'several', 'actions', 'seen', 'answering'].map((file) => `export * from ${JSON.stringify(join(web, 'src/request', `${file}.ts`))};`);
  writeFileSync(entry, [...files, `export { KEYS } from ${JSON.stringify(join(web, 'src/ui/keys.ts'))};`].join(' '));
  const build = await rolldown({ input: entry, logLevel: 'silent' });
  await build.write({ file: join(dir, 'parts.mjs') });
  const parts = await import(pathToFileURL(join(dir, 'parts.mjs')).href);
  const { agentWords, apart, folderOf, headOf, lineOf, outcomeOf, sameAs, wordsOf } = parts;
  const { clustered, entriesOf, indexAt, newOrder, offsetsOf, rangeOf } = parts;
  const { NONE, planOf, ranged, sendAll, stillChosen, toggled, toggledAll, leftOut } = parts;
  const { actionsOf, ANSWER_KEYS, barOf, markSeen, wasSeen, KEYS } = parts;

  let serial = 0;
  const ALLOW = [{ id: 'yes', label: 'Yes', kind: 'allow_once' }, { id: 'always', label: 'Always', kind: 'allow_always' }, { id: 'no', label: 'No', kind: 'reject_once' }];
  /** @returns {any} */
  const request = (more = {}) => {
    const n = serial++;
    return {
      request_id: `r${n}`, session_id: 's', run_id: 'u', runtime_id: 'demo', type: 'permission', state: 'open', title: '', display: `touch ${n}`, warnings: [], risk: 'elevated', risk_reasons: [],
      revision: 0, generation: 1, digest: `d${n}`, options: ALLOW, allow_reason: false, allow_remember: false, opened_at: new Date(n * 1000).toISOString(), ...more,
    };
  };
  const command = (/** @type {string} */ line, more = {}) => request({ display: `${line}\nin /w`, subject: { type: 'command', argv: [line] }, ...more });

  // --- what a row says
  const bomb = `${'a '.repeat(10_000)}\n\u202eend`;
  for (const [asked, words] of /** @type {[any, string][]} */ ([
    [command('cargo test'), 'cargo test'],
    [request({ display: 'make a\nmake b\nin /w', subject: { type: 'command' } }), 'make a make b'],
    [command('echo \u202egpj.exe\tx\u200b'), 'echo \\u{202e}gpj.exe x\\u{200b}'],
    [request({ display: 'edit a', subject: { type: 'edit', files: [{ path: 'src/a/b.rs', added: 3, removed: 1 }, { path: 'c', added: 1 }], more: 2 } }), 'Edit src/a/b.rs and 3 more files +4 −1'],
    [request({ display: 'edit', subject: { type: 'edit', files: [] } }), 'Edit edit'],
    [request({ subject: { type: 'fetch', url: 'https://example.org/\u202e' } }), 'Fetch https://example.org/\\u{202e}'],
    [request({ display: 'First,\nthen', subject: { type: 'plan' } }), 'Plan First, then'],
    [request({ subject: { type: 'question', questions: [{ id: 'a', text: 'Which?', options: [] }, { id: 'b', text: 'Why?', options: [] }] } }), 'Asks “Which?” 1 of 2 questions'],
    [request({ display: '{"blob":1}', subject: { type: 'unreadable' } }), 'Unreadable: {"blob":1}'],
    [request({ type: 'prompt', display: 'Your name?' }), 'Asks “Your name?”'],
    [request({ display: '', title: 'Do it' }), 'Do it'],
  ])) assert.equal(wordsOf(asked), words);
  assert.deepEqual([lineOf(request({ subject: { type: 'edit', files: [{ path: 'src/deep/names.txt' }] } }))].map(({ head, tail }) => [head, tail]), [['src/deep/', 'names.txt']], 'a path loses its middle');
  assert.ok(wordsOf(command(bomb)).length < 700 && wordsOf(request({ display: bomb })).length < 700, 'a row holds little of what is long');
  for (const odd of [{ subject: { type: 'tool', name: 'x' } }, { subject: { type: 'of tomorrow' } }, { subject: { type: 'question', questions: [] } }]) assert.equal(typeof wordsOf(request(odd)), 'string');
  ok('row: one line of any request, with hidden characters visible');

  // --- what is the same
  assert.equal(sameAs(command('npm test')), sameAs(command('npm test', { display: 'npm test\nin /other' })), 'the folder does not count');
  assert.notEqual(sameAs(command('npm test')), sameAs(command('npm  test')));
  assert.notEqual(sameAs(request({ display: 'x', subject: { type: 'command', argv: ['a b'] } })), sameAs(request({ display: 'x', subject: { type: 'command', argv: ['a', 'b'] } })), 'two words are not one');
  assert.equal(sameAs(request({ display_truncated: true, display: 'begin' })), '', 'what is known in part is like nothing');
  assert.notEqual(sameAs(request({ display: 'x', subject: { type: 'unreadable' } })), sameAs(request({ display: 'x', subject: { type: 'plan' } })));
  ok('groups: the same command is the same in any folder, and what is known in part is like nothing');

  // --- nothing twice
  for (const [asked, title, message] of /** @type {[any, string, string][]} */ ([
    [command('touch a', { title: 'touch a' }), '', ''],
    [command('touch a', { title: '`touch  A`' }), '', ''],
    [command('touch a && touch b', { title: 'touch a && …' }), '', ''],
    [command('touch a', { title: 'touch a', message: 'I need it.' }), '', 'I need it.'],
    [command('touch a', { title: 'Create a file' }), 'Create a file', ''],
    [command('touch a', { title: 'Create a file', message: 'Create a file' }), 'Create a file', ''],
    [request({ title: 'Allowed by admin', display: 'rm -rf /' }), 'Allowed by admin', ''],
    [request({ title: '', display: 'x' }), '', ''],
  ])) assert.deepEqual(agentWords(asked), { title, message });
  assert.deepEqual(apart(command('x')), { shown: 'x', folder: '/w' }, 'the folder of a command stands among the facts');
  assert.deepEqual(apart(request({ display: 'in /w, or not\nin /w' })), { shown: 'in /w, or not\nin /w', folder: '' }, 'nothing is taken away from what is no command');
  assert.equal(folderOf(command('x'), '/elsewhere'), '/w', 'the folder is the one that the request names');
  assert.equal(folderOf(request({ display: 'in /w, or not' }), '/w'), '/w');
  for (const [asked, words] of /** @type {[any, string][]} */ ([
    [command('x'), 'wants to run'],
    [request({ subject: { type: 'edit', files: [{ path: 'src/a.rs', added: 1, removed: 1 }] } }), 'wants to edit src/a.rs +1 −1'],
    [request({ subject: { type: 'fetch', url: 'u' } }), 'wants to fetch'],
    [request({ subject: { type: 'tool', name: 'deploy\u202e' } }), 'wants to use deploy\\u{202e}'],
    [request({ type: 'elicitation', subject: { type: 'question', questions: [{}, {}] } }), 'has 2 questions'],
    [request({ type: 'prompt' }), 'asks for text'],
    [request({ subject: { type: 'of tomorrow' } }), 'asks for permission'],
  ])) { const { words: said, target, more } = headOf(asked); assert.equal([said, target ? `${target.head}${target.tail}` : '', more].filter(Boolean).join(' '), words); }
  // --- the outcome
  const receipt = (/** @type {any} */ more) => ({ state: 'answered', at: new Date().toISOString(), resolved_by: { device_id: 'd', name: 'Tablet' }, ...more });
  for (const [given, more, words] of /** @type {[any, any, string][]} */ ([
    [{ option_id: 'yes' }, {}, 'Allowed once by Tablet'],
    [{ option_id: 'always' }, {}, 'Always allowed by Tablet'],
    [{ option_id: 'no' }, {}, 'Denied by Tablet'],
    [{ option_id: 'yes', edited: 'x' }, {}, 'Allowed once, edited by Tablet'],
    [{ ok: true }, { options: [] }, 'Allowed once by Tablet'],
    [{ ok: false }, { options: [], type: 'prompt' }, 'Skipped by Tablet'],
    [{ option_id: 'yes', answered_by: 'agent' }, { runtime_id: 'codex' }, 'Allowed once by codex’s reviewer'],
    [{ option_id: 'yes', answered_by: 'rule' }, {}, 'Allowed once by a rule'],
    [{ state: 'expired' }, {}, 'Expired: nobody answered in time'],
  ])) assert.equal(outcomeOf(receipt(given), request(more), 'other').text, words);
  assert.equal(outcomeOf(receipt({ option_id: 'no' }), request(), 'd').text, 'Denied by you');
  ok('card: what was answered, and by whom: a person, a rule or the agent itself');
  ok('card: what the agent says and the folder stand there once');

  // --- the answers of a card
  const device = { may_approve: true };
  const cases = JSON.parse(readFileSync(join(import.meta.dirname, '../../crates/protocol/src/answers/cases.json'), 'utf8'));
  assert.ok(cases.length > 10 && cases.some((/** @type {any} */ one) => one.actions.length > 4), 'the cases are there');
  for (const one of cases) assert.deepEqual(JSON.parse(JSON.stringify(actionsOf(request({ options: [], ...one.request }), one.device))), one.actions, one.name);
  const laidOut = (/** @type {any} */ asked, limit = {}) => { const { bar, menu } = barOf(actionsOf(asked, { ...device, ...limit })); return [bar, menu].map((all) => all.map((/** @type {any} */ one) => one.id).join()); };
  const OTHERS = [{ id: 'a', label: 'A', kind: 'other' }, { id: 'b', label: 'B', kind: 'other' }];
  assert.deepEqual(laidOut(request()), ['option:yes,option:no', 'option:always'], 'allow once and deny stand in the bar; always is in the menu');
  assert.deepEqual(laidOut(request({ options: [] })), ['allow_once,deny', '']);
  assert.deepEqual(laidOut(request({ options: OTHERS })), ['option:a,option:b', '']);
  assert.deepEqual(laidOut(request({ options: [...OTHERS, ...ALLOW] })), ['option:yes,option:no', 'option:a,option:b,option:always']);
  assert.deepEqual(laidOut(request({ options: [...ALLOW, { id: 'two', label: 'Once more', kind: 'allow_once' }] })), ['option:yes,option:no', 'option:two,option:always']);
  assert.deepEqual(laidOut(request({ options: [ALLOW[1], ALLOW[2]] })), ['option:always,option:no', '']);
  assert.deepEqual(laidOut(request({ risk: 'danger' }), { approve_up_to: 'elevated' }), ['option:yes,option:no,later', 'option:always'], 'above its limit a device can leave it open');
  ok('card: the answers are those of the gateway; the primary one and deny stand in the bar');

  // --- order and groups
  const key = (/** @type {any} */ one) => sameAs(one);
  const ids = (/** @type {any} */ found) => found.order.map((/** @type {any} */ one) => (one.group ? `${one.id}*` : one.id)).join(' ');
  const [a, b, c, d, e] = [command('a'), command('b', { risk: 'danger' }), command('a'), command('c', { risk: 'low' }), command('b', { risk: 'danger' })];
  const first = newOrder([], [a, b, c, d], { fresh: true, settled: true, keyOf: key });
  assert.equal(ids(first), `${b.request_id} ${c.request_id}* ${a.request_id}* ${d.request_id}`, 'riskiest first, then the newest, the same together');
  const used = newOrder(first.order, [a, b, c, d, e], { fresh: false, settled: false, keyOf: key });
  assert.equal(ids(used), `${ids(first)} ${e.request_id}`, 'while the list is used, what is new comes last');
  assert.deepEqual(used.added, [e.request_id]);
  const calm = newOrder(used.order, [a, b, c, d, e], { fresh: false, settled: true, keyOf: key });
  assert.equal(ids(calm), `${b.request_id}* ${e.request_id}* ${c.request_id}* ${a.request_id}* ${d.request_id}`, 'once nobody uses it, it joins its group');
  assert.equal(ids(newOrder(calm.order, [a, b, d, e], { fresh: false, settled: false, keyOf: key })), `${b.request_id}* ${e.request_id}* ${a.request_id}* ${d.request_id}`, 'a group keeps its header while the list is used');
  assert.deepEqual(clustered(['x', 'y', 'z'], () => ''), ['x', 'y', 'z'].map((id) => ({ id, group: '' })), 'no key, no group');
  ok('order: new requests are added below, and join their group once nobody uses the list');

  const folded = new Set([sameAs(a)]);
  const rows = entriesOf(calm.order, folded);
  assert.deepEqual(rows.map((/** @type {any} */ one) => [one.kind, one.nth, one.of]), [['group', 1, 3], ['request', 1, 2], ['request', 2, 2], ['group', 2, 3], ['request', 3, 3]]);
  assert.deepEqual([rows[3].ids.length, rows[3].folded], [2, true]);
  const offsets = offsetsOf(rows, 50, 30);
  assert.deepEqual(offsets, [0, 30, 80, 130, 160, 210]);
  assert.deepEqual([-5, 0, 29, 30, 129, 130, 209, 210, 9_999].map((y) => indexAt(offsets, y)), [0, 0, 0, 1, 2, 3, 4, 4, 4]);
  assert.equal(indexAt([0], 0), -1);
  assert.deepEqual(rangeOf(offsets, 30, 50, 0), [1, 3]);
  assert.deepEqual(rangeOf(offsets, 100, 10, 1_000), [0, 5]);
  assert.deepEqual(rangeOf([0], 0, 100, 100), [0, 0]);
  const lots = Array.from({ length: 1_000 }, (_, n) => ({ id: `x${n}`, group: '' }));
  const tall = offsetsOf(entriesOf(lots, new Set()), 48, 40);
  for (const top of [0, 1, 4_800, 47_000]) {
    const [from, to] = rangeOf(tall, top, 800, 400);
    assert.ok(tall[from] <= Math.max(0, top - 400) + 48 && tall[to] >= Math.min(48_000, top + 800) && to - from < 40, `${top}: ${from} to ${to}`);
  }
  ok('window: the rows in sight are drawn, and few others');

  // --- what is chosen
  const order = ['a', 'b', 'c', 'd'];
  const list = (/** @type {any} */ chosen) => [...chosen.ids].sort().join('');
  const one = toggled(NONE, 'b');
  assert.equal(list(one), 'b');
  assert.equal(list(toggled(one, 'b')), '');
  assert.equal(list(ranged(one, 'd', order)), 'bcd');
  assert.equal(list(ranged(ranged(one, 'd', order), 'a', order)), 'abcd', 'a range begins where the first was chosen');
  assert.equal(list(ranged(NONE, 'c', order)), 'c');
  assert.equal(list(ranged(one, 'gone', order)), 'b');
  assert.equal(list(toggledAll(one, ['b', 'c'])), 'bc');
  assert.equal(list(toggledAll(toggledAll(one, ['b', 'c']), ['b', 'c'])), '');
  assert.equal(list(toggledAll(NONE, [])), '');
  const whole = toggledAll(NONE, order);
  assert.equal(stillChosen(whole, () => true), whole);
  assert.equal(list(stillChosen(whole, (/** @type {string} */ id) => id !== 'c')), 'abd', 'what was answered meanwhile is not chosen any more');
  ok('selection: single, ranges, all, and without what is gone');

  // --- one answer to many
  const plan = (/** @type {any[]} */ asked, /** @type {string} */ sense, more = {}) => planOf(asked, sense, { now: new Map(asked.map((one) => [one.request_id, one])), device, seen: () => true, reason: '', ...more });
  const why = (/** @type {any} */ found) => found.out.map((/** @type {any} */ one) => one.why).join();
  const low = request({ risk: 'low' });
  const danger = request({ risk: 'danger' });
  assert.deepEqual(plan([low, request()], 'allow').will.map((/** @type {any} */ one) => one.answer), [{ option_id: 'yes' }, { option_id: 'yes' }], 'once, never always');
  assert.equal(why(plan([danger], 'allow')), 'danger', 'danger is never allowed together');
  assert.equal(why(plan([low], 'allow', { seen: () => false })), 'unread');
  assert.equal(why(plan([request()], 'allow', { device: { may_approve: true, approve_up_to: 'low' } })), 'limit');
  assert.equal(why(plan([request({ observe_only: true })], 'allow')), 'elsewhere');
  assert.equal(why(plan([request({ options: [ALLOW[1], ALLOW[2]] })], 'allow')), 'never_once');
  for (const question of [{ type: 'prompt', options: [] }, { type: 'pick', options: [], items: [] }, { type: 'elicitation', options: [], subject: { type: 'question', questions: [{ id: 'a', text: 'A?', options: [] }] } }]) {
    assert.equal(why(plan([request(question)], 'allow')), 'question');
  }
  assert.equal(why(plan([low], 'allow', { now: new Map() })), 'closed');
  assert.equal(why(plan([low], 'deny', { now: new Map([[low.request_id, { ...low, state: 'answered' }]]) })), 'closed');
  for (const changed of [{ digest: 'other' }, { revision: 1 }]) for (const sense of ['allow', 'deny']) {
    assert.equal(why(plan([low], sense, { now: new Map([[low.request_id, { ...low, ...changed }]]) })), 'changed', 'what was shown is what is answered');
  }
  assert.deepEqual(plan([danger, low], 'deny').will.map((/** @type {any} */ one) => one.answer), [{ option_id: 'no' }, { option_id: 'no' }], 'a denial needs no reading');
  assert.deepEqual(plan([request({ allow_reason: true }), low], 'deny', { reason: 'not now' }).will.map((/** @type {any} */ one) => one.answer), [{ option_id: 'no', reason: 'not now' }, { option_id: 'no' }]);
  assert.deepEqual(plan([danger], 'deny', { device: { may_approve: true, approve_up_to: 'elevated' } }).will.map((/** @type {any} */ one) => one.answer), [{ option_id: 'no' }], 'a limit of risk limits allowing only');
  assert.deepEqual([...leftOut(plan([danger, low, danger], 'allow', { seen: () => false }))].map(([reason, all]) => [reason, all.length]), [['danger', 2], ['unread', 1]]);
  ok('several: low and elevated that were read, once each; never danger, questions, or what changed');

  // --- what was seen
  assert.equal(wasSeen(low), false);
  markSeen(low);
  assert.ok(wasSeen(low) && wasSeen({ ...low }), 'a digest names what was seen');
  assert.ok(!wasSeen({ ...low, digest: 'changed' }) && !wasSeen({ ...low, display_truncated: true }));
  markSeen({ ...low, digest: undefined });
  assert.equal(wasSeen({ ...low, digest: undefined }), false, 'what has no digest was not seen');
  for (let n = 0; n < 6_000; n++) markSeen(request());
  assert.equal(wasSeen(low), false, 'the oldest is forgotten, and must be looked at again');
  ok('seen: by digest, bounded');

  // --- how they are sent
  {
    let under = 0;
    let most = 0;
    const calls = /** @type {Record<string, number>} */ ({});
    const answering = (/** @type {string} */ id, /** @type {any[]} */ outcomes) => ({ request: { request_id: id }, send: async () => {
      most = Math.max(most, ++under);
      calls[id] = (calls[id] ?? 0) + 1;
      await new Promise((done) => setTimeout(done, 1));
      under--;
      return outcomes.length > 1 ? outcomes.shift() : outcomes[0];
    } });
    const all = [...Array.from({ length: 40 }, (_, n) => answering(`w${n}`, [{ is: 'won' }])), answering('lost', [{ is: 'lost' }]), answering('late', [{ is: 'unknown' }, { is: 'won' }]), answering('never', [{ is: 'unknown' }])];
    const told = new Map();
    await sendAll(all, (/** @type {any} */ one, /** @type {any} */ sent) => told.set(one.request.request_id, sent.is), [0, 0]);
    assert.equal(told.size, 43);
    assert.ok(most > 1 && most <= 6, `${most} at the same time`);
    assert.deepEqual(['w0', 'lost', 'late', 'never'].map((id) => [told.get(id), calls[id]]), [['won', 1], ['lost', 1], ['won', 2], ['unknown', 3]]);
    await sendAll([], () => assert.fail());
    ok('several: a few at a time, and one without a reply is sent again');
  }

  // --- the keys: the page's help and the documentation have the same, those that answer as the gateway's table has them
  {
    const table = readFileSync(join(import.meta.dirname, '../../docs/keys.md'), 'utf8').split('\n').filter((line) => line.startsWith('| `')).map((line) => line.split('|').map((cell) => cell.trim()));
    assert.ok(table.length > 10, 'the table is there');
    const plain = (/** @type {string | undefined} */ keys) => (keys ?? '').replaceAll('`', '');
    assert.deepEqual(table.slice(0, ANSWER_KEYS.length).map(([, keys, what]) => [plain(keys), what]), ANSWER_KEYS);
    const here = new Set(table.filter(([, , , page]) => page !== 'no').flatMap(([, keys]) => plain(keys).split(' ')));
    const help = new Set(KEYS.flatMap((/** @type {any} */ [, rows]) => rows.flatMap((/** @type {any} */ [keys]) => keys.split(' '))));
    assert.deepEqual([...here].filter((key) => !help.has(key)), [], 'keys of docs/keys.md that the help of the page does not have');
    assert.deepEqual([...help].filter((key) => !here.has(/** @type {string} */ (key))), [], 'keys of the help that docs/keys.md does not have');
    const answering = KEYS.flatMap((/** @type {any} */ [, rows]) => rows).filter((/** @type {any} */ [, what]) => ANSWER_KEYS.some((/** @type {any} */ [, one]) => one.toLowerCase() === what.toLowerCase()));
    assert.deepEqual(answering.map((/** @type {any} */ [keys]) => keys), ANSWER_KEYS.map((/** @type {any} */ [keys]) => keys));
    ok('keys: the help of the page and docs/keys.md have the same keys, and those of the gateway');
  }
} finally {
  rmSync(dir, { recursive: true, force: true });
}
