// What the tests of surfaces share: the page that shows them, built and served as the gateway would, but without one.
import { createServer } from 'node:http';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, extname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const root = join(import.meta.dirname, '../..');
/** A folder with the node_modules of web/; another one is named by PLEXUS_WEB_MODULES. */
export const WEB = resolve(process.env.PLEXUS_WEB ?? join(root, 'web'));
const TYPES = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript; charset=utf-8', '.css': 'text/css; charset=utf-8', '.svg': 'image/svg+xml', '.png': 'image/png' };

/** The text of a constant of the gateway. @param {string} file @param {string} name */
function constant(file, name) {
  const found = new RegExp(`const ${name}: &str = "([^;]*?(?:;[^"]*)*)";`).exec(readFileSync(join(root, file), 'utf8'));
  if (!found?.[1]) throw new Error(`${file} has no ${name}`);
  return found[1].replace(/\\\n\s*/g, '');
}

/**
 * Builds the page from a copy of its sources: its packages need not be installed in web/.
 * @param {string} out where it goes
 */
async function buildInto(out) {
  const copy = mkdtempSync(join(realpathSync(tmpdir()), 'plexus-surfaces-src-'));
  const modules = process.env.PLEXUS_WEB_MODULES ?? WEB;
  try {
    const kept = (/** @type {string} */ from) => !['node_modules', 'dist'].includes(basename(from));
    cpSync(join(root, 'web'), join(copy, 'web'), { recursive: true, filter: kept });
    mkdirSync(join(copy, 'tests/web'), { recursive: true });
    cpSync(join(import.meta.dirname, 'surfaces'), join(copy, 'tests/web/surfaces'), { recursive: true });
    cpSync(join(root, 'clients/typescript/src'), join(copy, 'clients/typescript/src'), { recursive: true });
    symlinkSync(join(modules, 'node_modules'), join(copy, 'web/node_modules'));
    process.env.PLEXUS_WEB = join(copy, 'web');
    const { build } = await import(pathToFileURL(join(modules, 'node_modules/vite/dist/node/index.js')).href);
    await build({ configFile: join(copy, 'tests/web/surfaces/vite.config.mjs'), logLevel: 'error', build: { outDir: out } });
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

/** Builds the page, and serves it with the gateway's own policies. */
export async function serve() {
  const out = mkdtempSync(join(tmpdir(), 'plexus-surfaces-'));
  await buildInto(out);
  const policy = constant('src/router/guard.rs', 'CSP');
  const framed = constant('crates/web/src/lib.rs', 'FRAME_CSP');
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? '/', 'http://x').pathname;
    const name = path === '/' ? '/index.html' : path;
    try {
      const bytes = readFileSync(join(out, name.replaceAll('..', '')));
      response.writeHead(200, { 'content-type': TYPES[extname(name)] ?? 'application/octet-stream', 'content-security-policy': name === '/frame.html' ? framed : policy, 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer', 'cross-origin-opener-policy': 'same-origin', 'cross-origin-resource-policy': 'same-origin' });
      response.end(bytes);
    } catch {
      response.writeHead(404, { 'content-security-policy': policy });
      response.end();
    }
  });
  await new Promise((done) => { server.listen(0, '127.0.0.1', () => done(undefined)); });
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  return { base: `http://127.0.0.1:${port}`, close: () => { server.close(); server.closeAllConnections(); rmSync(out, { recursive: true, force: true }); } };
}
