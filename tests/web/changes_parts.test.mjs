// Tests of what the page of a session's changes computes, without a browser: hunks and their pairs of lines, both sides, comments that are
// kept, and the review that is sent.
//
//   PLEXUS_WEB   the folder web/, with its node_modules
//
// Prints a line `ok ...` for each passed test; the first failure ends it with exit code 1.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const web = resolve(process.env.PLEXUS_WEB ?? join(import.meta.dirname, '../../web'));
const { rolldown } = await import(pathToFileURL(createRequire(join(web, 'node_modules/vite/package.json')).resolve('rolldown')).href);
const dir = mkdtempSync(join(tmpdir(), 'plexus-changes-'));
const ok = (/** @type {string} */ what) => console.log(`ok ${what}`);
const kept = new Map();
globalThis.localStorage = /** @type {any} */ ({ getItem: (/** @type {string} */ key) => kept.get(key) ?? null, setItem: (/** @type {string} */ key, /** @type {string} */ value) => void kept.set(key, value), removeItem: (/** @type {string} */ key) => void kept.delete(key) });
try {
  const entry = join(dir, 'entry.ts');
  writeFileSync(entry, `export * from ${JSON.stringify(join(web, 'src/changes/model.ts'))}; export { parseRoute, href } from ${JSON.stringify(join(web, 'src/wire/route.ts'))}; export * from ${JSON.stringify(join(web, 'src/pages/ceiling-text.ts'))};`);
  const build = await rolldown({ input: entry, logLevel: 'silent' });
  await build.write({ file: join(dir, 'parts.mjs') });
  const { hunksOf, sides, placeOf, reviewOf, keepComments, keptComments, keepViewed, keptViewed, parseRoute, href, ceilingText, readCeiling } = await import(pathToFileURL(join(dir, 'parts.mjs')).href);

  {
    for (const [words, read] of /** @type {[string, unknown][]} */ ([
      ['', {}], [' 5 usd ', { costs: [{ amount: 5, currency: 'USD' }] }], ['2M tokens', { tokens: 2_000_000 }],
      ['0.25 EUR, 2_000k tokens', { costs: [{ amount: 0.25, currency: 'EUR' }], tokens: 2_000_000 }],
      ...['5', 'USD', '5 dollars', '0 USD', '-5 USD', '5e9 USD', '0 tokens', '1.5M tokens', '5 USD,', '1 USD, 2 usd', '1k tokens, 1k tokens'].map((wrong) => [wrong, null]),
    ])) assert.deepEqual(readCeiling(words), read, words);
    for (const words of ['', '5.00 USD', '0.2500 EUR, 2_000_000 tokens']) assert.equal(ceilingText(readCeiling(words)), words);
    ok('ceilings are read as people write them, and what is shown is read as the same');
  }

  {
    const diff = '--- a/x\n+++ b/x\n@@ -1,4 +1,5 @@ fn one\n same\n-old 1\n-old 2\n+new 1\n+new 2\n+--- not a heading\n same too\n@@ -20,2 +21,1 @@\n-gone\n kept\n\\ No newline at end of file\n';
    const [one, two, ...more] = hunksOf(diff);
    assert.equal(more.length, 0);
    assert.deepEqual(one.rows.map((/** @type {any} */ row) => [row.kind, row.a, row.b, row.text]), [['same', 1, 1, 'same'], ['del', 2, 0, 'old 1'], ['del', 3, 0, 'old 2'], ['add', 0, 2, 'new 1'], ['add', 0, 3, 'new 2'], ['add', 0, 4, '--- not a heading'], ['same', 4, 5, 'same too']]);
    assert.ok(one.rows.every((/** @type {any} */ row) => row.mate === undefined), 'two lines and three: which replaces which is not known');
    assert.deepEqual([two.index, two.heading, two.rows.map((/** @type {any} */ row) => [row.kind, row.a, row.b])], [1, '@@ -20,2 +21,1 @@', [['del', 20, 0], ['same', 21, 21]]]);
    const [only] = hunksOf('@@ -1,2 +1,2 @@\n-a\n-b\n+A\n+B\n');
    assert.deepEqual(only.rows.map((/** @type {any} */ row) => row.mate), ['A', 'B', 'a', 'b']);
    assert.deepEqual(hunksOf(''), []);
    ok('hunks: lines with their numbers, and which line replaces which');

    assert.deepEqual(sides(one.rows).map(([was, is]) => [was?.text ?? null, is?.text ?? null]), [['same', 'same'], ['old 1', 'new 1'], ['old 2', 'new 2'], [null, '--- not a heading'], ['same too', 'same too']]);
    assert.deepEqual(one.rows.slice(0, 4).map(placeOf), [{ side: 'new', line: 1 }, { side: 'old', line: 2 }, { side: 'old', line: 3 }, { side: 'new', line: 2 }]);
    ok('sides: what was beside what is, and where each line is commented');
  }
  {
    const comment = { id: 'c', path: 'x', side: 'new', line: 3, end: 5, text: 'why?', digest: 'd' };
    keepComments('s_1', [comment]);
    assert.deepEqual(keptComments('s_1'), [comment]);
    assert.deepEqual(keptComments('s_2'), []);
    for (let n = 0; n < 60; n++) keepComments(`s_more_${n}`, [comment]);
    assert.deepEqual(keptComments('s_1'), [], 'only those of the latest sessions are kept');
    keepComments('s_more_59', []);
    assert.deepEqual(keptComments('s_more_59'), []);
    kept.set('plexus.review', '[["s", [{"id": 1}, null]], "junk", 3]');
    assert.deepEqual(keptComments('s'), [], 'what is no comment is left out');
    keepViewed('s', new Map([['x', 'd1']]));
    assert.deepEqual([...keptViewed('s')], [['x', 'd1']]);
    assert.deepEqual(reviewOf([comment, { ...comment, line: 5, side: 'old' }], '  '), { comments: [{ path: 'x', side: 'new', line: 3, end_line: 5, text: 'why?' }, { path: 'x', side: 'old', line: 5, text: 'why?' }] });
    assert.equal(reviewOf([comment], ' look ').text, 'look');
    ok('comments: kept on this device within bounds, and sent as the gateway takes them');
  }
  assert.deepEqual(parseRoute(href({ page: 'changes', session_id: 's/1' })), { page: 'changes', session_id: 's/1' });
  ok('route: the changes of a session have an address');
} finally {
  rmSync(dir, { recursive: true, force: true });
}
