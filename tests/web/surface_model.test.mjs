// Tests of the model of surfaces, without a browser: pointers, the fold of changes, values and functions, checks, what a person enters,
// limits. Where A2UI's own web_core can do the same, it is the judge.
//
//   PLEXUS_WEB          the folder web/, with its node_modules
//   PLEXUS_PLAYWRIGHT   a folder with node_modules/@a2ui/web_core (what tests/agents/install.sh prints for tests/web)
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import test, { after } from 'node:test';
import { pathToFileURL } from 'node:url';

const web = resolve(process.env.PLEXUS_WEB ?? join(import.meta.dirname, '../../web'));
const judge = resolve(process.env.PLEXUS_PLAYWRIGHT ?? '', 'node_modules/@a2ui/web_core/src/v0_9');
const { rolldown } = await import(pathToFileURL(createRequire(join(web, 'node_modules/vite/package.json')).resolve('rolldown')).href);
const dir = mkdtempSync(join(tmpdir(), 'plexus-surface-model-'));
after(() => rmSync(dir, { recursive: true, force: true }));
const entry = join(dir, 'entry.ts');
writeFileSync(entry, ['pointer', 'fold', 'regex', 'expression', 'functions', 'model', 'plot', 'unified', 'shelf', 'types'].map((file) => `export * from ${JSON.stringify(join(web, 'src/surface', `${file}.ts`))};`).join('\n'));
// The pieces of the views that the model needs do not touch the document when they are loaded.
const build = await rolldown({ input: entry, logLevel: 'silent', platform: 'node' });
await build.write({ file: join(dir, 'model.mjs'), format: 'esm', codeSplitting: false });
const { get, change, absolute, keysOf, same, fold, matches, parse, FUNCTIONS, functionOf, formatDate, SurfaceModel, ticks, thinned, unifiedLines, Shelf, DRAWN_MAX, ITEMS_MAX } = await import(pathToFileURL(join(dir, 'model.mjs')).href);
const { MessageProcessor, DataContext } = await import(pathToFileURL(join(judge, 'index.js')).href);
const { basicCatalog, createBasicCatalogFunctions } = await import(pathToFileURL(join(judge, 'basic_catalog/index.js')).href);

const version = 'v0.9';
const whole = (/** @type {string} */ surface, /** @type {any[]} */ messages, /** @type {object} */ more = {}) => ({ surface, rev: 1, ...more, messages });
const drawn = (/** @type {any[]} */ components, /** @type {any} */ data = {}) => {
  const model = new SurfaceModel();
  model.take(whole('s', [{ version, createSurface: { surfaceId: 's' } }, { version, updateComponents: { surfaceId: 's', components } }, { version, updateDataModel: { surfaceId: 's', path: '/', value: data } }]));
  return model;
};

test('pointers read and write without touching what does not change', () => {
  const data = { a: { b: [1, { c: 2 }] }, 'x/y': { '~': 3 }, other: {} };
  assert.equal(get(data, '/a/b/1/c'), 2);
  assert.equal(get(data, '/x~1y/~0'), 3);
  assert.equal(get(data, '/'), data);
  assert.equal(get(data, '/a/b/2'), undefined);
  assert.equal(get(data, '/a/b/-1'), undefined);
  assert.equal(get(data, '/a/b/01'), undefined);
  assert.equal(get(data, '/toString'), undefined);
  assert.equal(get(data, '/a/b/length'), undefined);
  const next = change(data, '/a/b/1/c', () => 9);
  assert.deepEqual(next, { a: { b: [1, { c: 9 }] }, 'x/y': { '~': 3 }, other: {} });
  assert.equal(next.other, data.other);
  assert.equal(data.a.b[1].c, 2);
  assert.equal(change(data, '/a/b/0', () => 1), data, 'the same value changes nothing');
  assert.deepEqual(change({}, '/a/0/b', () => 1), { a: [{ b: 1 }] });
  assert.deepEqual(change({ a: 1, b: 2 }, '/a', () => undefined), { b: 2 });
  assert.deepEqual(change({ a: [1, 2, 3] }, '/a/1', () => undefined), { a: [1, null, 3] });
  assert.throws(() => change({ a: 'text' }, '/a/b', () => 1));
  assert.throws(() => change({ a: [] }, '/a/b', () => 1));
  assert.throws(() => change({ a: [] }, '/a/99999999', () => 1), 'no message makes a huge array');
  assert.equal(absolute('name', '/items/3'), '/items/3/name');
  assert.equal(absolute('/name', '/items/3'), '/name');
  assert.equal(absolute('', '/items/3'), '/items/3');
  assert.ok(same({ a: [1, { b: null }] }, { a: [1, { b: null }] }) && !same({ a: 1 }, { a: 1, b: 1 }));
});

test('keys that reach a prototype are refused', () => {
  for (const pointer of ['/__proto__/x', '/a/constructor/prototype', '/prototype', '/~0/__proto__']) {
    assert.equal(keysOf(pointer), null);
    assert.equal(get(JSON.parse('{"__proto__":{"x":1}}'), pointer), undefined);
    assert.throws(() => change({}, pointer, () => 1));
  }
  const model = drawn([{ id: 'root', component: 'Text', text: { path: '/__proto__/x' } }, { id: '__proto__', component: 'Text' }], JSON.parse('{"__proto__":{"x":"bad"}}'));
  model.edit('/__proto__/polluted', 'yes');
  model.edit('/constructor/prototype/polluted', 'yes');
  assert.deepEqual(model.inputs(), {});
  assert.equal(model.component('__proto__'), null);
  assert.equal(model.value({ path: '/__proto__/x' }, ''), undefined);
  assert.equal(fold(undefined, whole('__proto__', [])).is, 'malformed');
  assert.equal(/** @type {any} */ ({}).polluted, undefined);
});

test('a fold of changes gives the compact state', () => {
  const components = (/** @type {any[]} */ ...list) => ({ version, updateComponents: { surfaceId: 'b', components: list } });
  const data = (/** @type {object} */ update) => ({ version, updateDataModel: { surfaceId: 'b', ...update } });
  const create = { version, createSurface: { surfaceId: 'b', catalogId: 'plexus:catalog/1' } };
  let now = fold(undefined, { surface: 'b', rev: 1, title: 'Build', pinned: false, messages: [create, components({ id: 'root', component: 'Text', text: 'one' }, { id: 'x', component: 'Text', text: 'x' })] }, '2026-01-01T00:00:00Z').surface;
  const step = (/** @type {object} */ body) => { const made = fold(now, { surface: 'b', rev: now.rev + 1, base: now.rev, messages: [], ...body }, '2026-01-02T00:00:00Z'); assert.equal(made.is, 'new'); now = made.surface; };
  step({ messages: [data({ path: '/log', append: ['a', 'b'] }), data({ path: '/n', value: 1 })] });
  step({ messages: [data({ path: '/log', append: ['c'] }), data({ path: '/n' }), components({ id: 'x', component: 'Icon', name: 'add' }, { id: 'y', component: 'Divider' })], title: 'Built' });
  step({ pinned: true, ask: { request_id: 'q_1', submit: ['x'] } });
  assert.equal(JSON.stringify(now), JSON.stringify({
    surface: 'b', rev: 4, title: 'Built', pinned: true, at: '2026-01-02T00:00:00Z', ask: { request_id: 'q_1', submit: ['x'] },
    messages: [create, components({ id: 'root', component: 'Text', text: 'one' }, { id: 'x', component: 'Icon', name: 'add' }, { id: 'y', component: 'Divider' }), data({ path: '/', value: { log: ['a', 'b', 'c'] } })],
  }));
  assert.equal(fold(now, { surface: 'b', rev: 4, base: 3, messages: [] }).is, 'old');
  assert.equal(fold(now, { surface: 'b', rev: 7, base: 6, messages: [] }).is, 'gap');
  assert.equal(fold(undefined, { surface: 'b', rev: 7, base: 6, messages: [] }).is, 'gap');
  for (const bad of [null, 7, 'x', [], {}, { surface: 'b' }, { surface: 'a/b', rev: 1, messages: [] }, { surface: 'b', rev: 'x', messages: [] }, { surface: 'b', rev: 9 }]) assert.equal(fold(now, bad).is, 'malformed');
  step({ ask: null, messages: [data({ path: '/', value: {} })] });
  assert.ok(!('ask' in now) && now.messages.length === 2, 'an empty model has no message');
  step({ closed: true, messages: [{ version, deleteSurface: { surfaceId: 'b' } }] });
  assert.ok(now.closed && !now.pinned && now.messages.length === 2, 'a closed surface is shown as it last was');
  const again = fold(now, whole('b', [create], { rev: 9 }));
  assert.ok(again.is === 'new' && !again.surface.closed && again.surface.messages.length === 1);
});

test('a shelf reads the state once after a gap', async () => {
  const create = { version, createSurface: { surfaceId: 'b' } };
  let reads = 0;
  /** @type {string[][]} */ const told = [];
  const shelf = new Shelf(async () => { reads++; return [{ surface: 'b', rev: 8, pinned: true, messages: [create] }]; }, (/** @type {string[]} */ names) => told.push(names));
  assert.equal(shelf.take({ surface: 'b', rev: 7, base: 6, messages: [] }), false);
  assert.equal(shelf.take({ surface: 'b', rev: 8, base: 7, messages: [] }), false);
  await new Promise((done) => setTimeout(done, 20));
  assert.deepEqual([reads, told, shelf.pinned().length], [1, [['b']], 1]);
  assert.equal(shelf.take({ surface: 'b', rev: 9, base: 8, title: 'T', messages: [] }), true);
  assert.equal(shelf.get('b').title, 'T');
  shelf.stop();
});

// --- values ---------------------------------------------------------------------------------------------------------------------

test('the examples of A2UI have the values that web_core gives them', () => {
  let compared = 0;
  const differs = new Set();
  for (const folder of ['basic', 'minimal']) {
    for (const file of readdirSync(join(import.meta.dirname, 'a2ui', folder)).filter((name) => name.endsWith('.json'))) {
      const { messages } = JSON.parse(readFileSync(join(import.meta.dirname, 'a2ui', folder, file), 'utf8'));
      const name = messages[0].createSurface.surfaceId;
      const theirs = new MessageProcessor([basicCatalog]);
      /** @type {any} */ let surface;
      theirs.onSurfaceCreated((/** @type {any} */ made) => { surface = made; });
      const mine = new SurfaceModel();
      /** @type {any} */ let state = fold(undefined, { surface: 'x', rev: 1, messages: [] }).surface;
      for (const message of structuredClone(messages)) {
        // The minimal examples name a catalogue of their own, which the basic one includes but for one function.
        if (message.createSurface) message.createSurface.catalogId = basicCatalog.id;
        theirs.processMessages([message]);
        const folded = fold(state, { surface: 'x', rev: state.rev + 1, base: state.rev, messages: [structuredClone(message)] });
        assert.equal(folded.is, 'new', file);
        state = folded.surface;
        mine.take(state);
        if (!surface) continue;
        assert.deepEqual(mine.data, surface.dataModel.get('/'), file);
        assert.deepEqual([...mine.components.keys()], [...surface.componentsModel.entries].map(([id]) => id), file);
        for (const { component, place } of mine.visits()) {
          if (!component) continue;
          assert.deepEqual(component.component, surface.componentsModel.get(place.id).type, `${file} ${place.id}`);
          const context = new DataContext(surface, place.scope || '/');
          for (const [property, given] of Object.entries(component)) {
            if (['id', 'component', 'children', 'action', 'checks', 'accessibility', 'tabs', 'options'].includes(property)) continue;
            const expected = context.resolveDynamicValue(given);
            const found = mine.value(given, place.scope);
            if (JSON.stringify(given).includes('"capitalize"')) { differs.add(`${file}: capitalize is no function of the basic catalogue`); continue; }
            // What it refuses, and is nothing there, is shown as nothing here.
            assert.deepEqual(found ?? '', expected ?? '', `${file} ${place.id}.${property} ${JSON.stringify(given)}`);
            compared++;
          }
          for (const check of Array.isArray(component.checks) ? component.checks : []) {
            assert.equal(Boolean(mine.value(check.condition, place.scope)), Boolean(context.resolveDynamicValue(check.condition)), `${file} ${place.id} ${check.message}`);
            compared++;
          }
        }
      }
      assert.ok(surface, `${file} ${name}`);
    }
  }
  assert.ok(compared > 900, String(compared));
  assert.ok(differs.size <= 1, [...differs].join('\n'));
});

test('the functions of the basic catalogue do what those of web_core do', () => {
  assert.deepEqual([...FUNCTIONS].sort(), ['and', 'email', 'formatCurrency', 'formatDate', 'formatNumber', 'formatString', 'length', 'not', 'numeric', 'openUrl', 'or', 'pluralize', 'regex', 'required']);
  const theirs = new Map(createBasicCatalogFunctions({ locale: 'en-US' }).map((/** @type {any} */ one) => [one.name, one]));
  const values = [undefined, null, '', 'a', 'a b', 'ada@example.org', 'x@y', '12', '-3.5', 0, 1, 2, 12.345, -7, 1e9, true, false, [], ['a'], [1, 2, 3], { a: 1 }];
  const bounds = [{}, { min: 1 }, { max: 3 }, { min: 1, max: 2 }];
  /** @type {[string, object][]} */ const calls = [];
  for (const value of values) {
    for (const name of ['required', 'not']) calls.push([name, { value }]);
    // Lists and objects are no texts here; there they become some.
    if (typeof value !== 'object') calls.push(['email', { value }], ['regex', { value, pattern: '^a' }], ['regex', { value, pattern: '\\d+' }]);
    for (const more of bounds.slice(1)) calls.push(['length', { value, ...more }], ['numeric', { value, ...more }]);
    for (const more of [{}, { decimals: 0 }, { decimals: 2 }, { grouping: false }, { decimals: 3, grouping: false }]) calls.push(['formatNumber', { value, ...more }], ['formatCurrency', { value, currency: 'USD', ...more }], ['formatCurrency', { value, currency: 'JPY', ...more }]);
    calls.push(['pluralize', { value, one: '1 file', other: 'files' }]);
  }
  for (const list of [[true, true], [true, false], [false, false], [0, 'x'], ['', 1]]) calls.push(['and', { values: list }], ['or', { values: list }]);
  let compared = 0;
  for (const [name, args] of calls) {
    /** @type {any} */ let expected;
    try { expected = theirs.get(name).execute(theirs.get(name).schema.parse(args), /** @type {any} */ ({})); } catch { expected = undefined; }
    const found = functionOf(name)(args);
    // What web_core refuses is not true here, and no text.
    if (expected === undefined) assert.ok(!found || name.startsWith('format') || name === 'pluralize' || name === 'regex' || name === 'not', `${name} ${JSON.stringify(args)}: ${found}`);
    else assert.deepEqual(found, expected, `${name} ${JSON.stringify(args)}`);
    compared++;
  }
  for (const format of ['yyyy-MM-dd', 'M/d/yy', 'EEE, MMM d', 'EEEE, d MMMM yyyy', 'h:mm a', 'hh:mm:ss', 'H:m:s', 'HH:mm', "yyyy-MM-dd'T'HH:mm", "h 'o''clock'", 'SSS', 'ISO', 'E', 'MMMM']) {
    for (const value of ['2026-01-05T09:07:03.045Z', '2025-12-31', 1_764_000_000_000, '2026-07-04T13:00:00+02:00', 'nonsense', '']) {
      const expected = theirs.get('formatDate').execute({ value, format }, /** @type {any} */ ({}));
      assert.equal(formatDate(value, format), expected, `${format} ${value}`);
      compared++;
    }
  }
  assert.ok(compared > 400, String(compared));
});

test('formatString resolves paths, literals and calls', () => {
  const model = drawn([], { n: 3, name: 'Ada', list: [1, 2], items: [{ name: 'one', count: 1 }] });
  const format = (/** @type {string} */ value, scope = '') => model.value({ call: 'formatString', args: { value } }, scope);
  assert.equal(format('Hello ${/name}, ${pluralize(value: ${/n}, one: \'file\', other: "files")}!'), 'Hello Ada, files!');
  assert.equal(format('${name} of ${/n}', '/items/0'), 'one of 3');
  assert.equal(format('\\${/name} costs $5 {}'), '${/name} costs $5 {}');
  assert.equal(format("${formatNumber(value: 1234.5, decimals: 2)} ${'}'} ${true} ${null} ${/list} ${/none}"), '1,234.50 } true  [1,2] ');
  assert.equal(format('${formatString(value: \'<${/name}>\')}'), '<Ada>');
  for (const bad of ['${/name', '${f(x)}', '${1.2.3}', '${a b}', '${f(a:1}', `${'${'.repeat(100)}/name${'}'.repeat(100)}`]) assert.equal(format(bad), undefined, bad);
  assert.deepEqual(parse('plain'), ['plain']);
  // Nothing but values comes of an unknown function, and openUrl is none that computes.
  assert.equal(format('${openUrl(url: \'https://evil.example\')}'), '');
  assert.equal(model.value({ call: 'constructor', args: {} }, ''), undefined);
});

test('calls are counted, texts are bounded, deep nests end', () => {
  const model = drawn([], { big: 'b'.repeat(200_000) });
  const began = Date.now();
  assert.equal(model.value({ call: 'formatString', args: { value: '${/big}'.repeat(1_000) } }, ''), undefined);
  assert.equal(model.value({ call: 'formatString', args: { value: "${not(value:1)}".repeat(2_000) } }, '')?.length, 999 * 5, 'after 1,000 calls nothing more is computed');
  const deep = Array.from({ length: 5_000 }).reduce((inner) => ({ call: 'not', args: { value: inner } }), true);
  assert.ok([true, false, undefined].includes(model.value(deep, '')));
  assert.equal(model.value(Array.from({ length: 100 }).reduce((inner) => [inner], 1), '').length, 1);
  assert.ok(Date.now() - began < 2_000);
});

// --- regular expressions ----------------------------------------------------------------------------------------------------------

test('regular expressions match what those of the language match', () => {
  const patterns = ['abc', '^abc$', 'a|b|', '(?:ab)+c?', '[a-c]+', '[^a-c]', '\\d{3}-\\d{4}', '^\\d{1,3}(?:,\\d{3})*$', 'a{2,}', 'a{0}b', '^[A-Z][\\w.-]*$', '\\bword\\b', '\\Bord', '.+@.+\\..+', '^$', '', 'x*', '(a|b)*c', '^(?<year>\\d{4})$', '[\\d\\-x]', '[\\]a]', '\\u0041', '\\x41', '\\u{1F600}', '\\s+$', '[^\\s]', '(a?){3}a{3}', '\\$\\{', 'a.c', '[.]', 'a{x', '^-?\\d+(\\.\\d+)?$', '[a-]', '\\/', '(|a)b'];
  const texts = ['', 'a', 'b', 'abc', 'xabcx', 'aaa', 'aaaa', 'ababc', '555-1234', '1,234,567', '12,34', 'Hello.World-1', 'a word here', 'sword', 'ada@example.org', '2026', 'x-1', ']', 'A', '😀', 'tab\t', 'a\nc', 'a.c', '${', 'a{x', '-3.5', '3.', '/', '\u00e9t\u00e9', 'é'];
  let compared = 0;
  for (const pattern of patterns) {
    let own;
    try { own = new RegExp(pattern, 'u'); } catch { own = new RegExp(pattern); }
    for (const text of texts) { assert.equal(matches(pattern, text), own.test(text), `/${pattern}/ ${JSON.stringify(text)}`); compared++; }
  }
  assert.ok(compared > 900);
  for (const pattern of ['(?=a)', '(?!a)b', '(?<=a)b', '(a)\\1', '(', ')', '[', 'a**', '*a', '\\p{L}', 'a{3,1}', '\\', '[z-a]', '[a&&b]', '(?i)a', 'x'.repeat(2_000)]) assert.equal(matches(pattern, 'a'), null, pattern);
});

test('no regular expression takes long', () => {
  const long = `${'a'.repeat(990)}!`;
  const began = Date.now();
  for (const pattern of ['(a+)+$', '(a|a)*$', '(.*)*x', '([a-z]+)*\\d', '(a?){300}a{300}', '((a{50}){50}){50}', '(x+x+)+y', '^(([a-z])+.)+[A-Z]([a-z])+$', '((){999}){999}', '(((((((a*)*)*)*)*)*)*)b', `${'a?'.repeat(400)}${'a'.repeat(400)}`]) matches(pattern, long);
  assert.ok(Date.now() - began < 4_000, `${Date.now() - began} ms`);
  assert.equal(matches('a', 'a'.repeat(5_000)), null, 'long texts are left to the gateway');
});

// --- the tree, and what a person enters ----------------------------------------------------------------------------------------------

test('templates make a place for each item; trees end', () => {
  const items = drawn([{ id: 'root', component: 'List', children: { componentId: 'one', path: '/items' } }, { id: 'one', component: 'Text', text: { path: 'n' } }], { items: Array.from({ length: 1_500 }, (_, n) => ({ n })) });
  const { places, more } = items.children(items.component('root').children, '');
  assert.deepEqual([places.length, more, places[3]], [ITEMS_MAX, 500, { id: 'one', scope: '/items/3' }]);
  assert.equal(items.text({ path: 'n' }, '/items/3'), '3');
  const wide = drawn(Array.from({ length: 31 }, (_, n) => ({ id: n ? `l${n}` : 'root', component: 'Column', children: [`l${n + 1}`, `l${n + 1}`] })).concat([{ id: 'l31', component: 'Text', children: [] }]));
  assert.equal([...wide.visits()].length, DRAWN_MAX);
  const circle = drawn([{ id: 'root', component: 'Card', child: 'root' }]);
  assert.equal([...circle.visits()].length, 2);
  const nested = drawn([{ id: 'root', component: 'List', children: { componentId: 'root', path: '/items' } }], { items: Array.from({ length: 1_000 }, () => ({})) });
  assert.ok([...nested.visits()].length <= DRAWN_MAX);
});

test('what a person enters stands over the data until the gateway changes it', () => {
  const field = (/** @type {string} */ id, /** @type {string} */ path) => ({ id, component: 'TextField', label: id, value: { path } });
  const components = [{ id: 'root', component: 'Column', children: ['a', 'b', 't'] }, field('a', '/a'), field('b', '/b'), { id: 't', component: 'Text', text: { path: '/a' } }];
  const state = (/** @type {any} */ data, /** @type {number} */ rev) => whole('s', [{ version, createSurface: { surfaceId: 's' } }, { version, updateComponents: { surfaceId: 's', components } }, { version, updateDataModel: { surfaceId: 's', path: '/', value: data } }], { rev });
  const model = new SurfaceModel();
  model.take(state({ a: '1', b: '1', c: 1 }, 1));
  model.edit('/a', 'typed');
  model.edit('/b', 'typed');
  assert.equal(model.text({ path: '/a' }, ''), 'typed', 'what else is bound to it shows it at once');
  assert.deepEqual(model.data, { a: '1', b: '1', c: 1 });
  model.take(state({ a: '1', b: '1', c: 2 }, 2));
  assert.deepEqual(model.inputs(), { '/a': 'typed', '/b': 'typed' }, 'a change of something else keeps it');
  model.take(state({ a: '2', b: '2', c: 2 }, 3), '/b');
  assert.deepEqual(model.inputs(), { '/b': 'typed' }, 'the gateway wins, but for the field that is being edited');
  assert.equal(model.text({ path: '/a' }, ''), '2');
  model.edit('/b', 'typed more');
  model.sent({ '/b': 'typed' });
  assert.deepEqual(model.inputs(), { '/b': 'typed more' }, 'what was typed since it was sent stays');
  model.take(state({ a: '2', b: 'typed more', c: 2 }, 4));
  assert.deepEqual(model.inputs(), {}, 'what the gateway has as well is no input any more');
  model.edit('/a', 'x');
  model.edit('/a', '2');
  assert.deepEqual(model.inputs(), {}, 'entering what was there is no change');
  model.edit('/list/0/name', 'x');
  assert.deepEqual(model.view.list, [{ name: 'x' }]);
});

test('checks name what is wrong, everywhere in the tree', () => {
  const model = drawn([
    { id: 'root', component: 'Column', children: ['list', 'tabs', 'go'] },
    { id: 'list', component: 'List', children: { componentId: 'mail', path: '/people' } },
    { id: 'mail', component: 'TextField', label: 'Mail', value: { path: 'mail' }, checks: [{ condition: { call: 'email', args: { value: { path: 'mail' } } }, message: 'No mail address.' }] },
    { id: 'tabs', component: 'Tabs', tabs: [{ title: 'A', child: 'one' }, { title: 'B', child: 'two' }] },
    { id: 'one', component: 'Text', text: 'x' }, { id: 'two', component: 'TextField', label: 'Number', value: { path: '/n' }, validationRegexp: '^\\d+$' },
    { id: 'go', component: 'Button', child: 'one', checks: [{ condition: { call: 'and', args: { values: [{ path: '/ok' }, { call: 'required', args: { value: { path: '/n' } } }] } }, message: 'Not yet.' }] },
    { id: 'loose', component: 'TextField', label: 'Not in the tree', value: { path: '/z' }, checks: [{ condition: false, message: 'never' }] },
  ], { people: [{ mail: 'ada@example.org' }, { mail: 'x' }], n: '12a', ok: true });
  assert.deepEqual(model.wrong('form'), [{ id: 'mail', scope: '/people/1' }, { id: 'two', scope: '' }]);
  assert.deepEqual(model.failing(model.component('mail'), '/people/1', 'form'), ['No mail address.']);
  assert.deepEqual(model.failing(model.component('two'), '', 'form'), ['form']);
  assert.deepEqual(model.failing(model.component('go'), '', 'form'), []);
  model.edit('/people/1/mail', 'b@example.org');
  model.edit('/n', '12');
  model.edit('/ok', false);
  assert.deepEqual(model.wrong('form'), []);
  assert.deepEqual(model.failing(model.component('go'), '', 'form'), ['Not yet.']);
});

// --- what is drawn of numbers and changes ---------------------------------------------------------------------------------------------

test('ticks are round and few, thinning keeps peaks and gaps', () => {
  assert.deepEqual(ticks(0, 41, 5), [0, 10, 20, 30, 40, 50]);
  assert.deepEqual(ticks(-4.5, 5, 5), [-6, -4, -2, 0, 2, 4, 6]);
  for (const [low, high] of [[0, 0], [5, 5], [-1e308, 1e308], [1e-9, 2e-9], [0, Infinity]]) assert.ok(ticks(low, high, 5).length <= 50);
  const points = Array.from({ length: 10_000 }, (_, x) => (x > 4_000 && x < 6_000 ? null : { x, y: x === 7_777 ? 99 : x % 10 }));
  const few = thinned(points, 400);
  assert.ok(few.length <= 420 && few.some((point) => point?.y === 99) && few.includes(null));
});

test('a unified diff is read by its hunks', () => {
  const lines = unifiedLines('--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n one\n--- two\n+++ 2\n three\n@@ -9 +9 @@\n-x\n+y\n\\ No newline at end of file\n');
  assert.deepEqual(lines.map((/** @type {any} */ line) => line.kind), ['head', 'head', 'hunk', 'same', 'del', 'add', 'same', 'hunk', 'del', 'add', 'head']);
  assert.deepEqual([lines[4].text, lines[4].a, lines[5].text, lines[5].b, lines[8].a], ['-- two', 2, '++ 2', 2, 9]);
});
