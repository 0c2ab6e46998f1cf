// What stands between a browser and the gateway in the tests: a small reverse proxy that lets everything through, or does what proxies and
// networks do when the gateway is away. It can also serve another version of the page's files.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';

const TYPES = { '.js': 'text/javascript; charset=utf-8', '.css': 'text/css; charset=utf-8', '.html': 'text/html; charset=utf-8', '.svg': 'image/svg+xml', '.webmanifest': 'application/manifest+json' };
const sha256 = (/** @type {string | Buffer} */ bytes) => createHash('sha256').update(bytes).digest('hex');

/**
 * What the relay does with a request: lets it through; cuts the connection; never answers; answers in the gateway's place.
 * @typedef {'through' | 'cut' | 'silent' | '401' | '502' | '503' | 'portal'} Manner
 */

/** @param {string} gateway the gateway's address */
export async function relay(gateway) {
  const to = new URL(gateway);
  /** @type {Set<import('node:net').Socket>} */ const sockets = new Set();
  /** What closed connections took. Bytes. */
  let gone = 0;
  const at = {
    /** @type {Manner} */ manner: 'through',
    /** @type {Map<string, {type: string, bytes: Buffer}> | null} files of another version, by path */ files: null,
    /** @type {Map<string, {type: string, bytes: Buffer}> | null} files that are served beside the gateway's own */ some: null,
    base: '',
    /** What was sent to browsers so far, as sent: headers, compressed files and WebSockets. Bytes. */
    sent: () => [...sockets].reduce((all, socket) => all + socket.bytesWritten, gone),
    /** Cuts every connection there is. */
    cut() { for (const socket of sockets) socket.destroy(); },
    /** From now on. @param {Manner} manner */
    turn(manner) { at.manner = manner; at.cut(); },
    /**
     * Holds requests to such paths back until they are let go, once.
     * @param {RegExp} paths
     */
    hold(paths) {
      const held = { paths, /** @type {Array<() => void>} */ waiting: [] };
      holds.add(held);
      return { get held() { return held.waiting.length; }, go() { holds.delete(held); for (const one of held.waiting) one(); } };
    },
    close() { at.cut(); server.close(); },
  };
  /** @type {Set<{paths: RegExp, waiting: Array<() => void>}>} */ const holds = new Set();
  const onward = (/** @type {import('node:http').IncomingHttpHeaders} */ headers) => {
    const sent = { ...headers, host: to.host };
    if (headers.origin === at.base) sent.origin = to.origin;
    return sent;
  };
  /** @type {Record<string, [number, Record<string, string>, string]>} */
  const answers = {
    401: [401, { 'Content-Type': 'text/html', 'WWW-Authenticate': 'Custom realm="a proxy"' }, '<h1>Who are you?</h1>'],
    502: [502, { 'Content-Type': 'text/html' }, '<h1>Bad gateway</h1>'],
    503: [503, { 'Content-Type': 'application/json' }, '{"code":"unavailable","detail":"try later"}'],
    portal: [200, { 'Content-Type': 'text/html' }, '<h1>Welcome to our network</h1>'],
  };
  const server = createServer((req, res) => {
    if (at.manner === 'cut') { req.socket.destroy(); return; }
    if (at.manner === 'silent') return;
    const answer = answers[at.manner];
    if (answer) { res.writeHead(answer[0], answer[1]).end(answer[2]); return; }
    const path = new URL(req.url ?? '/', at.base).pathname;
    const own = at.some?.get(path) ?? at.files?.get(path);
    if (own) { res.writeHead(200, { 'Content-Type': own.type, 'Cache-Control': 'no-cache', ...policy }).end(own.bytes); return; }
    // The other version has none of the gateway's scripts.
    if (at.files && path.startsWith('/assets/')) { res.writeHead(404).end(); return; }
    for (const one of holds) if (one.paths.test(path)) { one.waiting.push(() => pass(req, res, path)); return; }
    pass(req, res, path);
  });
  const pass = (/** @type {import('node:http').IncomingMessage} */ req, /** @type {import('node:http').ServerResponse} */ res, /** @type {string} */ path) => {
    const up = request({ host: to.hostname, port: to.port, path: req.url, method: req.method, headers: onward(req.headers) }, (back) => {
      if (path === '/' && back.headers['content-security-policy']) policy = { 'Content-Security-Policy': String(back.headers['content-security-policy']) };
      res.writeHead(back.statusCode ?? 502, back.headers);
      back.pipe(res);
    });
    up.on('error', () => res.destroy());
    req.pipe(up);
  };
  /** @type {Record<string, string>} the gateway's own policy, which other versions of its files come with as well */
  let policy = {};
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => { if (sockets.delete(socket)) gone += socket.bytesWritten; });
  });
  server.on('upgrade', (req, socket) => {
    if (at.manner === 'cut') { socket.destroy(); return; }
    if (at.manner === 'silent') return;
    const answer = answers[at.manner];
    if (answer) { socket.end(`HTTP/1.1 ${answer[0]} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`); return; }
    const up = connect(Number(to.port), to.hostname, () => {
      const lines = Object.entries(onward(req.headers)).flatMap(([name, value]) => [value ?? []].flat().map((one) => `${name}: ${one}`));
      up.write(`${req.method} ${req.url} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
      up.pipe(socket).pipe(up);
    });
    up.on('error', () => socket.destroy());
    socket.on('error', () => up.destroy());
    socket.on('close', () => up.destroy());
  });
  await new Promise((done) => { server.listen(0, '127.0.0.1', () => done(null)); });
  at.base = `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (server.address()).port}`;
  return at;
}

/**
 * The files of another version, made from those that are built: every file with a digest in its name has another name, and the service
 * worker knows them by their digests. @param {string} dist
 */
export function otherVersion(dist) {
  const names = readdirSync(dist, { recursive: true }).map(String).filter((name) => /\.(?:js|css|html|svg|webmanifest)$/.test(name));
  /** @type {Map<string, string>} */ const texts = new Map(names.map((name) => [name, readFileSync(join(dist, name), 'utf8')]));
  const renamed = (/** @type {string} */ text) => names.filter((name) => name.startsWith('assets/')).reduce((all, name) => {
    const base = name.slice('assets/'.length);
    return all.replaceAll(base, base.replace(/.(\.\w+)$/, '~$1'));
  }, text);
  const version = /name="plexus-files" content="(\w+)"/.exec(texts.get('index.html') ?? '')?.[1] ?? '';
  const next = 'feed'.repeat(version.length / 4);
  let worker = renamed(texts.get('sw.js') ?? '').replaceAll(version, next);
  /** @type {Map<string, {type: string, bytes: Buffer}>} */ const files = new Map();
  for (const [name, text] of texts) {
    if (name === 'sw.js') continue;
    const bytes = Buffer.from(renamed(text).replaceAll(version, next));
    worker = worker.replaceAll(sha256(text), sha256(bytes));
    files.set(name === 'index.html' ? '/' : `/${renamed(name)}`, { type: TYPES[/** @type {keyof typeof TYPES} */ (name.slice(name.lastIndexOf('.')))], bytes });
  }
  files.set('/sw.js', { type: TYPES['.js'], bytes: Buffer.from(worker) });
  return { files, version, next };
}
