// What the tests of surfaces share: the page that shows them, built and served as the gateway would, but without one.
import { createServer } from 'node:http';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { extname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const root = join(import.meta.dirname, '../..');
/** The folder web/, with its node_modules. */
export const WEB = resolve(process.env.PLEXUS_WEB ?? join(root, 'web'));
const TYPES = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript; charset=utf-8', '.css': 'text/css; charset=utf-8', '.svg': 'image/svg+xml', '.png': 'image/png' };

/** The text of a constant of the gateway. @param {string} file @param {string} name */
function constant(file, name) {
  const found = new RegExp(`const ${name}: &str = "([^;]*?(?:;[^"]*)*)";`).exec(readFileSync(join(root, 'src/router', file), 'utf8'));
  if (!found?.[1]) throw new Error(`${file} has no ${name}`);
  return found[1].replace(/\\\n\s*/g, '');
}

/** Builds the page, and serves it with the gateway's own policies. */
export async function serve() {
  const out = mkdtempSync(join(tmpdir(), 'plexus-surfaces-'));
  process.env.PLEXUS_WEB = WEB;
  const { build } = await import(pathToFileURL(join(WEB, 'node_modules/vite/dist/node/index.js')).href);
  await build({ configFile: join(import.meta.dirname, 'surfaces/vite.config.mjs'), logLevel: 'error', build: { outDir: out } });
  const policy = constant('guard.rs', 'CSP');
  const framed = constant('web.rs', 'FRAME_CSP');
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
