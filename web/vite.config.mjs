import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vite';

// What is built must be the same on every machine: no time, no path of this one. A file whose name holds the digest of its content never
// changes, so browsers keep it for good; the rest (the page itself, its icons, the service worker) has fixed names.
//
// Two builds make `dist`: the page, then (`--mode sw`) the service worker, alone and whole because not every browser loads modules in
// one. The second knows every file of the first by its digest. `pack.mjs` compresses what both made.

const DIST = 'dist';
const hashed = { entryFileNames: 'assets/[name]-[hash].js', chunkFileNames: 'assets/[name]-[hash].js', assetFileNames: 'assets/[name]-[hash][extname]' };
/**
 * What stands together in one file, by the first that fits; each takes what it needs along. Each further file is a further wait on a slow
 * network, and each file is read whole before any of it runs.
 */
const FILES = [
  /** Libraries, which change seldom. */
  { name: 'libraries', test: /node_modules\/(?:@?lit|@preact)/ },
  { name: 'diff', test: /node_modules\/diff/ },
  /** The first script, which runs before the frame is there and must not need it. */
  { name: 'index', test: /src\/(?:main|lib\/(?:early|signin-link)|ui\/pages|wire\/(?:paths|route))\.ts$|vite\/preload-helper/ },
  /** What every page needs. */
  { name: 'frame', test: /src\/(?:page|plexus|lib\/(?:element|frame|keyboard|keys|project|shell|shots|signal|text|theme|time)|style\/base|text\/en|pages\/begin|request\/outcome|ui\/(?:app|dialog|icons|menu|parts|say|state)|wire\/gateway)\.ts$/ },
  /** What is done to a session, in its row and on its page. */
  { name: 'actions', test: /src\/(?:pages\/(?:session-actions|share|abilities)|session\/silence|lib\/editor)\.ts$/ },
  { name: 'card', test: /src\/request\/card\.ts$/ },
  /** What draws the words, the output and the changes of agents. */
  { name: 'markup', test: /src\/(?:render\/(?:diffview|markdown|off|output|segment|style|visible)|surface\/(?:plot|wire))\.ts$/ },
  { name: 'conversation', test: /src\/(?:session\/conversation|pages\/session)\.ts$/ },
];
/** Stands in the page where the version goes; as long as a version is. */
const PLACE = '__PLEXUS_FILES__';
/** Public files that the shell does not need to draw itself. The frame of agents' pages has a policy of its own, and comes from the gateway. */
const APART = ['frame.html', 'icon-180.png', 'icon-512.png', 'icon-maskable-512.png', 'icon-badge.png'];
/** Scripts that are loaded when they are first needed. A first visit does not fetch them; `scripts/web` holds each to a limit of its own. */
const LATER = /^assets\/(?:changes|chart|devices|languages|runtimes|settings|surface|terminals|usage)-/;

const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');

/**
 * Has browsers load the files of the frame together with the page's first script, which would ask for them only once it runs; those of the page
 * that the address names are asked for by that script.
 */
function preloads() {
  return {
    name: 'plexus-preloads',
    enforce: 'post',
    generateBundle(_, bundle) {
      const page = bundle['index.html'];
      const holding = (file) => Object.values(bundle).find((one) => one.type === 'chunk' && one.moduleIds.some((id) => id.endsWith(file)));
      const [first, start] = [holding('/src/main.ts'), holding('/src/page.ts')];
      if (!page || !first || !start) throw new Error('the page, its first script or its frame was not built');
      const wanted = new Set();
      const add = (name) => { if (wanted.has(name) || name === first.fileName) return; wanted.add(name); bundle[name].imports.forEach(add); };
      add(start.fileName);
      const text = String(page.source);
      const links = [...wanted].filter((name) => !text.includes(`href="/${name}"`)).map((name) => `  <link rel="modulepreload" crossorigin href="/${name}">\n`).join('');
      page.source = text.replace('  <link rel="stylesheet"', () => `${links}  <link rel="stylesheet"`);
    },
  };
}

/** Writes into the page which version it is: a digest of itself, of every name (which holds a digest) and of the public files. */
function version() {
  return {
    name: 'plexus-version',
    enforce: 'post',
    generateBundle(_, bundle) {
      const page = bundle['index.html'];
      if (!page || page.type !== 'asset') throw new Error('no index.html was built');
      const fixed = readdirSync('public').sort().map((name) => `${name} ${sha256(readFileSync(join('public', name)))}`);
      const text = String(page.source);
      if (!text.includes(PLACE)) throw new Error(`index.html lacks ${PLACE}`);
      page.source = text.replace(PLACE, sha256([text, ...Object.keys(bundle).sort(), ...fixed].join('\n')).slice(0, PLACE.length));
    },
  };
}

/**
 * The terminal emulator writes the colours of a cell into its style attribute, which the page's policy forbids. Written to the style itself,
 * they are allowed.
 */
function styles() {
  const attribute = 't.setAttribute("style",`${t.getAttribute("style")||""}${e};`)';
  return {
    name: 'plexus-terminal-styles',
    transform(code, id) {
      if (!/@xterm\/xterm\/lib\/xterm\.mjs/.test(id)) return null;
      if (code.split(attribute).length !== 2) throw new Error('another version of @xterm/xterm: see where it sets the attribute `style` of a cell');
      return { code: code.replace(attribute, () => 't.style.cssText+=`${e};`'), map: null };
    },
  };
}

/** What the service worker keeps: the version, and each file with its digest: the shell's at once, others (`later`) when first asked for. */
function manifest() {
  const names = readdirSync(DIST, { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile())
    .map((one) => join(one.parentPath, one.name).slice(DIST.length + 1))
    .filter((name) => !/\.(?:br|gz)$/.test(name) && name !== 'sw.js' && !APART.includes(name))
    .sort();
  const found = /name="plexus-files" content="([0-9a-f]+)"/.exec(readFileSync(join(DIST, 'index.html'), 'utf8'));
  if (!found?.[1]) throw new Error('the page does not say its version: build it first');
  const listed = (some) => some.map((name) => [name === 'index.html' ? '/' : `/${name}`, sha256(readFileSync(join(DIST, name)))]);
  return { version: found[1], files: listed(names.filter((name) => !LATER.test(name))), later: listed(names.filter((name) => LATER.test(name))) };
}

export default defineConfig(({ mode }) => ({
  base: '/',
  publicDir: mode === 'sw' ? false : 'public',
  plugins: mode === 'sw' ? [] : [preloads(), version(), styles()],
  define: mode === 'sw' ? { __MANIFEST__: JSON.stringify(manifest()) } : {},
  worker: { format: 'es', rolldownOptions: { output: hashed } },
  build: {
    outDir: DIST,
    emptyOutDir: false,
    target: ['chrome123', 'firefox121', 'safari17.5'],
    modulePreload: { polyfill: false },
    sourcemap: false,
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    reportCompressedSize: false,
    rolldownOptions: {
      checks: { pluginTimings: false },
      input: mode === 'sw' ? { sw: 'src/sw.ts' } : { index: 'index.html' },
      output: mode === 'sw'
        ? { entryFileNames: '[name].js', format: 'iife' }
        : { ...hashed, format: 'es', codeSplitting: { groups: FILES.map((one, n) => ({ ...one, priority: FILES.length - n })) } },
    },
  },
}));
