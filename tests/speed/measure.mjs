// Measures the page and prints the tables of docs/web.md ("Speed"); started by scripts/speed, which says what the options are.
//
//   PLEXUS_URL, PLEXUS_TOKEN, PLEXUS_DIR   the running gateway, its administrator's token, and a folder to work in
//   PLEXUS_PLAYWRIGHT                      a directory that holds node_modules/lighthouse and node_modules/playwright-core
//   CHROMIUM                               the browser; /usr/bin/chromium if not set
//   PLEXUS_SHOTS                           a folder for pictures and Lighthouse's own reports; none are kept if not set
//   PLEXUS_PAGE                            a built page that is measured instead of the program's
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { cpus, loadavg } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { DESK, OWN_PAGE, PATIENCE_MS, need, ownPage, signIn } from '../web/kit.mjs';
import { api, base } from '../web/session_kit.mjs';
import { load } from './load.mjs';
import { requests, sessions, worked } from './situations.mjs';
import { put, table } from './table.mjs';

const { values: options, positionals: wanted } = parseArgs({ allowPositionals: true, options: { runs: { type: 'string', default: '3' }, write: { type: 'boolean', default: false } } });
const runs = Number(options.runs);
if (!Number.isInteger(runs) || runs < 1) { console.error('--runs takes a number from 1'); process.exit(2); }
const shots = process.env.PLEXUS_SHOTS;
if (shots) mkdirSync(shots, { recursive: true });

/** @type {import('./table.mjs').Line[]} */ let lines = [];
const say = (/** @type {import('./table.mjs').Line} */ line) => { lines.push(line); console.error(`speed: ${line.what}: ${line.measured} ${line.unit}${line.more ? ` (${line.more})` : ''}`); };

// --- pages ---------------------------------------------------------------------------------------------------------------------

const { chromium } = createRequire(join(resolve(need('PLEXUS_PLAYWRIGHT')), 'package.json'))('playwright-core');
/** A page that does nothing, of one kilobyte, with a field and a link: what this machine and browser take by themselves. */
const nothing = createServer((_, res) => { res.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' }).end(`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Nothing</title></head><body><h1>Nothing</h1><a href="#">A link</a> <textarea aria-label="Field"></textarea><p>${'Words. '.repeat(100)}</p></body></html>`); });
await new Promise((done) => { nothing.listen(0, '127.0.0.1', () => done(undefined)); });
const freePort = () => new Promise((done) => { const server = createServer().listen(0, '127.0.0.1', () => { const { port } = /** @type {import('node:net').AddressInfo} */ (server.address()); server.close(() => done(port)); }); });
const floor = `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (nothing.address()).port}/nothing`;
const port = /** @type {number} */ (await freePort());
const context = await chromium.launchPersistentContext(join(need('PLEXUS_DIR'), 'profile'), {
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', headless: true, viewport: DESK, ...OWN_PAGE,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', `--remote-debugging-port=${port}`],
});
context.setDefaultTimeout(PATIENCE_MS);
const { code } = await api('POST', '/v1/codes', { scopes: ['watch', 'prompt', 'approve', 'admin'] });
const home = context.pages()[0] ?? await context.newPage();
await ownPage(context);
await signIn(home, base, code);
await home.goto('about:blank');

// --- what is measured ----------------------------------------------------------------------------------------------------------

/** Lighthouse of one place, on both profiles. */
async function score(/** @type {typeof import('./lighthouse.mjs').rated} */ rated, /** @type {string} */ what, /** @type {string} */ hash, /** @type {Record<string, any>} */ floors) {
  for (const profile of /** @type {const} */ (['phone', 'desk'])) {
    const at = await rated(`${base}/${hash}`, { port, profile, runs });
    const least = floors[profile];
    say({ what: `${what}, ${profile}: Lighthouse`, measured: at.score, unit: '', target: 95, least: true, floor: least.score, more: `shift ${at.shift.toFixed(3)}, blocked ${at.blocked} ms` });
    say({ what: `${what}, ${profile}: largest paint`, measured: at.lcp, unit: 'ms', ...(profile === 'phone' ? { target: 2_000 } : {}), floor: least.lcp });
  }
}

async function first() {
  // Loaded here: who measures the page under load does not need it.
  const { rated } = await import('./lighthouse.mjs');
  /** @type {Record<string, any>} */ const floors = {};
  for (const profile of /** @type {const} */ (['phone', 'desk'])) floors[profile] = await rated(floor, { port, profile, runs });
  await requests(50);
  await score(rated, 'Inbox with 50 requests', '#/inbox', floors);
  await sessions(200);
  await score(rated, '200 sessions', '#/sessions', floors);
  await score(rated, 'Session of 50,000 events', `#/s/${await worked(50_000)}`, floors);
}

const under = load({ context, floor, say, dir: need('PLEXUS_DIR'), shots });
/** The tables: their markers in docs/web.md, how to name each on the command line, and what is measured for it, in this order. */
const tables = [
  { name: 'speed', part: 'first', each: { first } },
  { name: 'speed under load', part: 'load', each: under },
];
const known = tables.flatMap(({ part, each }) => [part, ...Object.keys(each)]);
const unknown = wanted.find((word) => !known.includes(word));

try {
  if (unknown !== undefined) throw new Error(`"${unknown}" is not measured; what is: ${[...new Set(known)].join(', ')}`);
  for (const { name, part, each } of tables) {
    const all = !wanted.length || wanted.includes(part);
    const some = Object.entries(each).filter(([word]) => all || wanted.includes(word));
    if (!some.length) continue;
    lines = [];
    const before = loadavg()[0] ?? 0;
    for (const [, work] of some) await work();
    const version = execFileSync(need('PLEXUS_PROGRAM'), ['--version'], { encoding: 'utf8' }).trim();
    const kind = need('PLEXUS_PROGRAM').includes('/debug/') ? ', built without optimization' : '';
    const how = part === 'first' ? `; Lighthouse: median of ${runs}` : '';
    const machine = `${new Date().toISOString().slice(0, 10)}, ${version}${kind}, Chromium ${context.browser()?.version() ?? ''}, ${cpus().length} processors (${cpus()[0]?.model.trim()}), load ${before.toFixed(1)} before and ${(loadavg()[0] ?? 0).toFixed(1)} after${how}.`;
    const text = `${table(lines)}\n\n${machine}`;
    console.log(text);
    // A part of a table would take the place of all of it.
    if (options.write && all) put('docs/web.md', name, text);
  }
} finally {
  // A browser that ended before must not hide why.
  await context.close().catch(() => {});
  nothing.close();
}
