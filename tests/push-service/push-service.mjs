// A push service on loopback, for tests: what browsers' vendors run, with its own crypto (node's), no dependencies.
//
//   node push-service.mjs [--port N] [--self-test]
//
// It prints `listening http://127.0.0.1:PORT` when it is ready (port 0, the default, means any free one), then one line of JSON
// for everything that reaches it, and exits when its stdin closes, so that it cannot outlive the test that started it.
//
//   POST /subscriptions              -> 201 {id, endpoint, keys: {p256dh, auth}}: what a browser's pushManager would give
//   POST /push/ID                    a push: decrypted (RFC 8291), its VAPID proof checked (RFC 8292), printed
//   PUT  /push/ID/answer             {status, times?, retry_after?, delay_ms?}: how the next ones are answered; without `times` all
//   POST /hook/..                    anything else that is sent: printed as it came, with its headers (webhooks, ntfy)
//   PUT  /hook/../answer             as for a push
//   GET  /lines                      everything printed so far: {lines: [..]}
//
// A push is printed as {kind: "push", id, status, payload, ttl, urgency, topic, vapid: {aud, sub, exp, k}}, or with `problem` in
// place of `payload` where a real service would have refused it. A hook as {kind: "hook", path, status, headers, body}.
import crypto from 'node:crypto';
import http from 'node:http';
import { parseArgs } from 'node:util';

const { values: options } = parseArgs({
  options: { port: { type: 'string', default: '0' }, 'self-test': { type: 'boolean', default: false } },
});
/** What a push service takes at least, and at most must take: RFC 8030, 7.2. */
const BODY_MAX = 4096;
/** How far ahead a VAPID proof may expire: RFC 8292, 2. */
const DAY = 24 * 3600;

const b64 = (bytes) => Buffer.from(bytes).toString('base64url');
const bytes = (text) => Buffer.from(text, 'base64url');

/** RFC 8291 and RFC 8188: the plain text of a message for this subscription. */
export function decrypt(subscription, body) {
  if (body.length < 21 + 65 + 17) throw new Error('the message is too short');
  const salt = body.subarray(0, 16);
  const record = body.readUInt32BE(16);
  const idLength = body[20];
  if (idLength !== 65) throw new Error(`the key id has ${idLength} bytes, not 65`);
  const sender = body.subarray(21, 86);
  const sealed = body.subarray(86);
  if (sealed.length > record) throw new Error('more than one record');
  const secret = subscription.ecdh.computeSecret(sender);
  const own = subscription.ecdh.getPublicKey();
  const info = Buffer.concat([Buffer.from('WebPush: info\0'), own, sender]);
  const hkdf = (salt, secret, info, length) => Buffer.from(crypto.hkdfSync('sha256', secret, salt, info, length));
  const ikm = hkdf(subscription.auth, secret, info, 32);
  const key = hkdf(salt, ikm, 'Content-Encoding: aes128gcm\0', 16);
  const nonce = hkdf(salt, ikm, 'Content-Encoding: nonce\0', 12);
  const opening = crypto.createDecipheriv('aes-128-gcm', key, nonce);
  opening.setAuthTag(sealed.subarray(-16));
  const padded = Buffer.concat([opening.update(sealed.subarray(0, -16)), opening.final()]);
  const end = padded.findLastIndex((byte) => byte !== 0);
  if (padded[end] !== 2) throw new Error('the last record does not end with 2');
  return padded.subarray(0, end);
}

/** RFC 8292: the claims of a VAPID proof that holds for this origin. */
export function proven(authorization, origin) {
  const match = /^vapid t=([\w-]+\.[\w-]+\.[\w-]+), ?k=([\w-]+)$/.exec(authorization ?? '');
  if (!match) throw new Error(`no VAPID proof: ${authorization}`);
  const [, token, k] = match;
  const [head, claims, signature] = token.split('.');
  const point = bytes(k);
  if (point.length !== 65 || point[0] !== 4) throw new Error('k is no uncompressed point');
  const jwk = { kty: 'EC', crv: 'P-256', x: b64(point.subarray(1, 33)), y: b64(point.subarray(33)) };
  const key = { key: crypto.createPublicKey({ key: jwk, format: 'jwk' }), dsaEncoding: 'ieee-p1363' };
  if (!crypto.verify('sha256', Buffer.from(`${head}.${claims}`), key, bytes(signature))) throw new Error('the signature is wrong');
  const { alg } = JSON.parse(bytes(head));
  if (alg !== 'ES256') throw new Error(`alg is ${alg}`);
  const said = JSON.parse(bytes(claims));
  const now = Date.now() / 1000;
  if (said.aud !== origin) throw new Error(`aud is ${said.aud}, not ${origin}`);
  if (!(said.exp > now && said.exp < now + DAY)) throw new Error(`exp is ${said.exp - now} s ahead`);
  if (said.sub !== undefined && !/^(mailto:|https:)/.test(said.sub)) throw new Error(`sub is ${said.sub}`);
  return { ...said, k };
}

/** The example of RFC 8291, 5. */
function selfTest() {
  const ecdh = crypto.createECDH('prime256v1');
  ecdh.setPrivateKey(bytes('q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94'));
  const message = bytes('DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN');
  const plain = decrypt({ ecdh, auth: bytes('BTBZMqHH6r4Tts7J_aSIgg') }, message).toString();
  if (plain !== 'When I grow up, I want to be a watermelon') throw new Error(`got ${plain}`);
  console.log('ok');
}

const subscriptions = new Map();
const answers = new Map();
const lines = [];

function say(line) {
  lines.push(line);
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

/** How this path is answered now. */
function planned(path, usual) {
  const plan = answers.get(path);
  if (!plan) return { status: usual };
  if (plan.times !== undefined && (plan.times -= 1) <= 0) answers.delete(path);
  return plan;
}

function answer(res, { status, retry_after: retryAfter, delay_ms: delay = 0 }) {
  const headers = { 'content-type': 'text/plain' };
  if (retryAfter !== undefined) headers['retry-after'] = String(retryAfter);
  // A redirect must not be followed: it leads back here, where it would be seen.
  if (status >= 300 && status < 400) headers.location = '/hook/redirected';
  setTimeout(() => res.writeHead(status, headers).end('x'.repeat(1000)), delay);
}

function push(origin, req, res, body) {
  const id = req.url.split('/')[2];
  const plan = planned(req.url, 201);
  const { ttl, urgency, topic, authorization, 'content-encoding': encoding } = req.headers;
  const line = { kind: 'push', id, status: plan.status, ttl, urgency, topic };
  try {
    if (body.length > BODY_MAX) throw new Error(`${body.length} bytes`);
    if (encoding !== 'aes128gcm') throw new Error(`content-encoding is ${encoding}`);
    if (!/^\d+$/.test(ttl ?? '')) throw new Error(`ttl is ${ttl}`);
    if (topic !== undefined && !/^[\w-]{1,32}$/.test(topic)) throw new Error(`topic is ${topic}`);
    const subscription = subscriptions.get(id);
    if (!subscription) throw Object.assign(new Error('there is no such subscription'), { status: 404 });
    line.vapid = proven(authorization, origin);
    line.payload = JSON.parse(decrypt(subscription, body));
  } catch (error) {
    line.problem = error.message;
    line.status = plan.status = error.status ?? 400;
  }
  say(line);
  answer(res, plan);
}

function serve(origin, req, res, body) {
  const { method, url } = req;
  const json = (status, value) => res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
  if (method === 'POST' && url === '/subscriptions') {
    const ecdh = crypto.createECDH('prime256v1');
    ecdh.generateKeys();
    const [id, auth] = [b64(crypto.randomBytes(12)), crypto.randomBytes(16)];
    subscriptions.set(id, { ecdh, auth });
    return json(201, { id, endpoint: `${origin}/push/${id}`, keys: { p256dh: b64(ecdh.getPublicKey()), auth: b64(auth) } });
  }
  if (method === 'PUT' && url.endsWith('/answer')) {
    answers.set(url.slice(0, -'/answer'.length), JSON.parse(body));
    return json(200, {});
  }
  if (method === 'GET' && url === '/lines') return json(200, { lines });
  if (method === 'POST' && url.startsWith('/push/')) return push(origin, req, res, body);
  const plan = planned(url, 200);
  say({ kind: 'hook', method, path: url, status: plan.status, headers: req.headers, body: body.toString() });
  return answer(res, plan);
}

if (options['self-test']) {
  selfTest();
} else {
  const server = http.createServer((req, res) => {
    const parts = [];
    req.on('data', (part) => parts.push(part));
    req.on('end', () => {
      try {
        serve(`http://127.0.0.1:${server.address().port}`, req, res, Buffer.concat(parts));
      } catch (error) {
        res.writeHead(400).end(error.message);
      }
    });
  });
  server.listen(Number(options.port), '127.0.0.1', () => {
    process.stdout.write(`listening http://127.0.0.1:${server.address().port}\n`);
  });
  process.stdin.on('end', () => process.exit(0));
  process.stdin.resume();
}
