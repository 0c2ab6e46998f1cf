// Whether the gateway says what its descriptions say it says. Drives it through every method of its native WebSocket and
// every route, and holds each message, in both directions, to asyncapi.json and openapi.json: a message that is not
// described, a member that is missing and a member that is not described are failures.
//
// What the demo agent cannot bring about is named in UNSEEN; those messages are held to their descriptions by their examples.
import assert from 'node:assert/strict';

import { pinned, session, token, url } from './stage.mjs';

const { default: WebSocket } = await pinned('ws');
const { default: Ajv } = await pinned('ajv');
const { default: addFormats } = await pinned('ajv-formats');
const { Parser } = (await pinned('@asyncapi/parser')).default;

/** A slow reader falls behind at its own time; only Codelia's runtimes ask for text or picks, or tell of their context. */
const UNSEEN = ['gateway.lag', 'run.context', 'ui.pick.request'];

const bearer = { authorization: `Bearer ${token}` };
const fetched = async (path) => (await fetch(`${url}${path}`)).json();
const asyncapi = await fetched('/asyncapi.json');
const openapi = await fetched('/openapi.json');

const ajv = new Ajv({ strict: false, allErrors: true });
(addFormats.default ?? addFormats)(ajv);
ajv.addSchema(asyncapi, 'asyncapi');
ajv.addSchema(openapi, 'openapi');

const pointer = (parts) => `#/${parts.map((part) => part.replaceAll('~', '~0').replaceAll('/', '~1')).map(encodeURIComponent).join('/')}`;
const compiled = new Map();

/** Validates, and returns what is wrong. */
function wrong(doc, at, value) {
  const ref = `${doc}${at}`;
  if (!compiled.has(ref)) compiled.set(ref, ajv.compile({ $ref: ref }));
  const check = compiled.get(ref);
  if (!check(value)) return JSON.stringify(check.errors.slice(0, 4));
  const root = doc === 'asyncapi' ? asyncapi : openapi;
  return undescribed(root, doc, [{ schema: find(root, at) }], value, '');
}

function find(root, at) {
  return at.slice(2).split('/').filter(Boolean).reduce((value, part) => value[decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')], root);
}

/** All the schemas that hold for a value where these do. */
function holding(root, doc, schemas, value) {
  const all = [];
  const fits = (schema) => {
    const key = `${doc} ${JSON.stringify(schema)}`;
    const absolute = JSON.parse(JSON.stringify(schema), (name, one) => (name === '$ref' ? `${doc}${one}` : one));
    if (!compiled.has(key)) compiled.set(key, ajv.compile(absolute));
    return compiled.get(key)(value);
  };
  const take = (schema) => {
    if (schema === undefined || typeof schema === 'boolean') return;
    all.push(schema);
    if (schema.$ref) take(find(root, schema.$ref));
    for (const part of schema.allOf ?? []) take(part);
    for (const part of [...(schema.oneOf ?? []), ...(schema.anyOf ?? [])]) if (fits(part)) take(part);
    if (schema.if && fits(schema.if)) take(schema.then);
  };
  for (const { schema } of schemas) take(schema);
  return all;
}

/** The first member that no schema describes. */
function undescribed(root, doc, schemas, value, place) {
  if (value === null || typeof value !== 'object') return null;
  const all = holding(root, doc, schemas, value);
  if (Array.isArray(value)) {
    const items = all.filter(({ items }) => items).map(({ items }) => ({ schema: items }));
    for (const [n, one] of value.entries()) {
      const found = undescribed(root, doc, items, one, `${place}/${n}`);
      if (found) return found;
    }
    return null;
  }
  const open = all.some(({ additionalProperties }) => additionalProperties === true || typeof additionalProperties === 'object');
  for (const [name, one] of Object.entries(value)) {
    const described = all.filter(({ properties }) => properties?.[name] !== undefined).map(({ properties }) => ({ schema: properties[name] }));
    if (described.length === 0 && !open) return `${place}/${name} is not described`;
    const found = described.length > 0 && undescribed(root, doc, described, one, `${place}/${name}`);
    if (found) return found;
  }
  return null;
}

const seen = new Set();
const message = (name) => pointer(['components', 'messages', name, 'payload']);

/** Holds one message to its description. */
function hold(name, value) {
  assert.ok(asyncapi.components.messages[name], `${name} is not described: ${JSON.stringify(value)}`);
  const why = wrong('asyncapi', message(name), value);
  assert.equal(why ?? null, null, `${name}: ${why}\n${JSON.stringify(value)}`);
  seen.add(name);
}

/** A connection whose every frame is held to the description. */
class Line {
  constructor(as = token) {
    this.next = 1;
    this.asked = new Map();
    this.heard = [];
    this.waiting = [];
    this.socket = new WebSocket(`${url.replace('http', 'ws')}/v1/ws`, ['plexus.v1', `plexus.bearer.${as}`]);
    this.socket.on('message', (data) => this.take(JSON.parse(data)));
    this.opened = new Promise((resolve) => this.socket.on('open', resolve));
  }

  take(value) {
    if (value.method !== undefined) {
      hold(value.method, value);
      this.heard.push(value);
      this.waiting = this.waiting.filter(({ wanted, resolve }) => !(wanted(value) && (resolve(value), true)));
    } else if (value.error !== undefined) {
      hold('error', value);
      this.asked.get(value.id)?.resolve(value);
    } else {
      const { name, resolve } = this.asked.get(value.id);
      hold(`${name}.result`, value);
      resolve(value);
    }
  }

  say(value) {
    this.socket.send(JSON.stringify(value));
  }

  async ask(method, params) {
    await this.opened;
    const id = this.next++;
    const name = asyncapi.components.messages[method] ? method : 'runtime.call';
    const value = { jsonrpc: '2.0', id, method, params };
    hold(name, value);
    return new Promise((resolve) => {
      this.asked.set(id, { name, resolve });
      this.say(value);
    });
  }

  async done(method, params) {
    const reply = await this.ask(method, params);
    assert.ok(reply.result !== undefined, `${method}: ${JSON.stringify(reply)}`);
    return reply.result;
  }

  async refused(method, params, code) {
    const reply = await this.ask(method, params);
    assert.equal(reply.error?.data?.code, code, `${method}: ${JSON.stringify(reply)}`);
  }

  until(wanted) {
    const found = this.heard.find(wanted);
    return found ? Promise.resolve(found) : new Promise((resolve) => this.waiting.push({ wanted, resolve }));
  }

  method(name) {
    return this.until(({ method }) => method === name);
  }

  ended(run) {
    return this.until(({ method, params }) => method === 'agent.event' && params.kind === 'run_ended' && params.run_id === run);
  }
}

// The descriptions themselves, and their examples.
const { document, diagnostics } = await new Parser().parse(JSON.stringify(asyncapi));
const errors = diagnostics.filter(({ severity }) => severity === 0);
assert.deepEqual(errors.map(({ message, path }) => `${path.join('.')}: ${message}`), [], 'asyncapi.json is no AsyncAPI');
assert.ok(document.operations().length > 25);
for (const [name, { examples }] of Object.entries(asyncapi.components.messages)) {
  assert.ok(examples.length > 0, `${name} has no example`);
  for (const { payload } of examples) hold(name, payload);
}
seen.clear();

// A harness that finds nothing proves nothing.
const good = structuredClone(asyncapi.components.messages['agent.event'].examples[0].payload);
const { seq: _, ...missing } = good.params;
for (const bad of [{ ...good, params: missing }, { ...good, params: { ...good.params, surprise: 1 } }, { ...good, params: { ...good.params, kind: 'new' } }]) {
  assert.throws(() => hold('agent.event', bad));
}
assert.throws(() => hold('gateway.surprise', { jsonrpc: '2.0', method: 'gateway.surprise', params: {} }));
seen.clear();

// Every method of the WebSocket.
const line = new Line();
await line.refused('session.list', {}, 'not_initialized');
await line.done('initialize', { protocol_version: '0', client: { name: 'held', version: '1' }, ui_capabilities: { supports_confirm: true } });
await line.done('runtime.list', {});
await line.done('session.list', { limit: 5 });
const other = await line.done('session.new', { runtime_id: 'demo', title: 'other' });
await line.done('session.attach', { session_id: session, from: 'start', projection: 'native' });
await line.method('gateway.hello');
await line.method('gateway.live');
const all = 'think ;; plan ;; diff ;; mode ;; usage ;; junk ;; stream 3 ;; ask';
const { run_id } = await line.done('run.start', { session_id: session, text: all });
const waits = await line.done('run.start', { session_id: session, input: { type: 'text', text: 'echo queued' } });
const asked = await line.method('ui.confirm.request');
// A response that is no answer is told so; then one that is.
line.say({ jsonrpc: '2.0', id: asked.id, result: { option_id: 'nothing' } });
await line.method('gateway.error');
const answer = { jsonrpc: '2.0', id: asked.id, result: { ok: true } };
hold('ui.answer', answer);
line.say(answer);
await line.method('ui.request.resolved');
await line.refused('ui.request.answer', { request_id: asked.id, ok: false }, 'already_resolved');
await line.ended(run_id);
await line.ended(waits.run_id);
const again = await line.done('run.start', { session_id: session, content: [{ type: 'text', text: 'ask ;; hang' }] });
const second = await line.until(({ method, id }) => method === 'ui.confirm.request' && id !== asked.id);
await line.done('ui.request.answer', { request_id: second.id, option_id: 'reject_once', idempotency_key: 'k' });
await line.done('run.cancel', { session_id: session });
await line.ended(again.run_id);
await line.done('session.history', { session_id: session, limit: 1000 });
await line.done('session.rename', { session_id: session, title: 'renamed' });
await line.done('session.archive', { session_id: session });
await line.done('session.archive', { session_id: session, archived: false });
await line.done('presence.update', { session_id: session, focused: true });
await line.method('presence.changed');
await line.done('presence.update', { session_id: null, focused: false });
await line.done('session.detach', { session_id: session });
for (const after of ['elsewhere:5', 'now']) await line.done('session.attach', { session_id: '*', after });
await line.method('gateway.snapshot');
for (const method of ['model.list', 'model.set', 'mcp.list', 'skills.list', 'ui.context.update', 'shell.history']) {
  // The demo agent has none of them, and says so.
  const reply = await line.ask(method, { session_id: session });
  if (reply.error) seen.add(`${method}.result`);
}
seen.add('runtime.call.result');
await line.refused('run.start', { session_id: session }, 'invalid_params');
await line.refused('run.start', { session_id: 's_nothing', text: 'x' }, 'session_not_found');
await line.refused('run.cancel', { session_id: session }, 'run_not_found');
await line.refused('session.history', { session_id: session, after: 'elsewhere:5' }, 'bad_cursor');
await line.done('run.restart', { session_id: session });
line.say('nonsense');

// Every route.
const called = new Set();

/** Calls an operation and holds what comes to its description. */
async function call(method, path, { params = {}, query = '', body, headers = {}, as = bearer, status } = {}) {
  const operation = openapi.paths[path]?.[method.toLowerCase()];
  assert.ok(operation, `${method} ${path} is not described`);
  called.add(`${method} ${path}`);
  const real = path.replace(/\{(\w+)\}/g, (__, name) => encodeURIComponent(params[name]));
  const json = body === undefined ? {} : { 'content-type': 'application/json' };
  if (body !== undefined && (status ?? 200) < 400) {
    const why = wrong('openapi', pointer(['paths', path, method.toLowerCase(), 'requestBody', 'content', 'application/json', 'schema']), body);
    assert.equal(why ?? null, null, `${method} ${path} takes: ${why}`);
  }
  const reply = await fetch(`${url}${real}${query}`, { method, headers: { ...as, ...json, ...headers }, body: body === undefined ? undefined : JSON.stringify(body) });
  if (status !== undefined) assert.equal(reply.status, status, `${method} ${real}: ${await reply.clone().text()}`);
  const code = operation.responses[reply.status] ? String(reply.status) : 'default';
  assert.ok(code !== 'default' || reply.status >= 400, `${method} ${path}: ${reply.status} is not described`);
  const content = operation.responses[code].content ?? {};
  const type = reply.headers.get('content-type')?.split(';')[0];
  const text = await reply.text();
  // A patch of nothing is an empty text.
  if (type === undefined || (text === '' && !type.startsWith('text/'))) {
    assert.deepEqual(content, {}, `${method} ${path} brought nothing`);
    return null;
  }
  assert.ok(content[type], `${method} ${path}: ${type} is not described`);
  if (!type.endsWith('json')) return text;
  const value = JSON.parse(text);
  if (path.endsWith('.json')) return value;
  const why = wrong('openapi', pointer(['paths', path, method.toLowerCase(), 'responses', code, 'content', type, 'schema']), value);
  assert.equal(why ?? null, null, `${method} ${path} ${reply.status}: ${why}\n${text.slice(0, 2000)}`);
  return value;
}

for (const path of ['/healthz', '/readyz', '/metrics', '/openapi.json', '/asyncapi.json', '/v1/me', '/v1/runtimes', '/v1/sessions', '/v1/devices']) {
  await call('GET', path, { status: 200 });
}
await call('GET', '/v1/me', { as: {}, status: 401 });
await call('POST', '/v1/runtimes', { body: { preset: 'demo', id: 'second', outlive: false, cwd: '/' }, status: 201 });
await line.method('runtime.updated');
await call('POST', '/v1/runtimes', { body: { preset: 'demo', id: 'second' }, status: 409 });
await call('POST', '/v1/runtimes', { body: {}, status: 422 });
await call('GET', '/v1/runtimes/{id}', { params: { id: 'second' }, status: 200 });
await call('GET', '/v1/runtimes/{id}/resumable', { params: { id: 'demo' }, query: '?limit=1', status: 200 });
await call('GET', '/v1/agents', { status: 200 });
await call('GET', '/v1/folders', { query: '?under=/&prefix=et', status: 200 });
await call('GET', '/v1/folders', { query: '?under=/no/such/folder', status: 404 });
await call('GET', '/v1/folders/files', { query: '?under=/etc&query=hosts&limit=5', status: 200 });
await call('GET', '/v1/folders/files', { status: 400 });
await call('GET', '/v1/folders/files', { query: '?under=/no/such/folder', status: 404 });
await call('GET', '/v1/worktrees', { status: 200 });
await call('POST', '/v1/worktrees/remove', { body: { path: '/no/such/worktree', delete_branch: true }, status: 404 });
await call('POST', '/v1/sessions', { body: { runtime_id: 'demo', cwd: '/', worktree: { branch: 'no good' } }, status: 422 });
await call('POST', '/v1/sessions', { body: { start: { dialect: 'acp', command: ['false'] }, cwd: '/' }, status: 502 });
await call('POST', '/v1/sessions', { body: {}, status: 422 });
const made = await call('POST', '/v1/sessions', { body: { runtime_id: 'demo', title: 'made' }, status: 201 });
const id = made.session_id;
await call('GET', '/v1/sessions/{id}/mcp', { params: { id }, status: 409 });
await call('GET', '/v1/sessions/{id}/skills', { params: { id }, status: 409 });
const { files } = await call('GET', '/v1/sessions/{id}/files', { params: { id }, query: '?query=a&limit=5', status: 200 });
assert.ok(files.length <= 5, JSON.stringify(files));
await call('GET', '/v1/sessions/{id}/files', { params: { id }, query: `?query=${'x'.repeat(201)}`, status: 400 });
await call('GET', '/v1/sessions/{id}/changes', { params: { id }, status: 200 });
await call('GET', '/v1/sessions/{id}/changes', { params: { id }, query: '?run=r_none', status: 404 });
await call('GET', '/v1/sessions/{id}/changes/file', { params: { id }, query: '?path=none', status: 404 });
await call('GET', '/v1/sessions/{id}/changes/patch', { params: { id }, status: 200 });
await call('GET', '/v1/sessions/{id}/changes/undone', { params: { id }, status: 200 });
await call('POST', '/v1/sessions/{id}/changes/undo', { params: { id }, body: { path: 'none', digest: 'none', during_run: true }, status: 404 });
await call('POST', '/v1/sessions/{id}/changes/redo', { params: { id }, body: { patch_id: 'none', during_run: true }, status: 404 });
await call('POST', '/v1/sessions/{id}/changes/review', { params: { id }, body: { comments: [] }, status: 422 });
const prompt = (text) => call('POST', '/v1/sessions/{id}/prompt', { params: { id }, body: { text }, status: 202 });
await prompt('ask2 ;; hang');
let open;
do {
  ({ requests: open } = await call('GET', '/v1/requests', { query: `?state=open&session=${id}`, status: 200 }));
} while (open.length < 2);
await call('GET', '/v1/requests/{id}', { params: { id: open[0].request_id }, status: 200 });
const first = { params: { id: open[0].request_id }, body: { ok: true, digest: open[0].digest }, headers: { 'idempotency-key': 'first' } };
await call('POST', '/v1/requests/{id}/answer', { ...first, status: 200 });
await call('POST', '/v1/requests/{id}/answer', { ...first, headers: {}, status: 409 });
await call('GET', '/v1/sessions/{id}/snapshot', { params: { id }, status: 200 });
await call('POST', '/v1/sessions/{id}/cancel', { params: { id }, body: {}, status: 202 });
await call('POST', '/v1/requests/{id}/answer', { params: { id: open[1].request_id }, body: { ok: true }, status: 410 });
await prompt('diff ;; echo hello words');
let page = { next: '' };
const events = [];
while (events.filter(({ kind }) => kind === 'run_ended').length < 2) {
  page = await call('GET', '/v1/sessions/{id}/events', { params: { id }, query: `?after=${page.next}&wait=5`, status: 200 });
  events.push(...page.events);
}
await call('GET', '/v1/sessions/{id}/events', { params: { id }, query: '?after=elsewhere:1', status: 200 });
await call('GET', '/v1/events', { query: '?limit=2000', status: 200 });
await call('GET', '/v1/events', { query: '?after=elsewhere:1', status: 200 });
await call('GET', '/v1/events', { query: '?after=nonsense', status: 400 });
await call('GET', '/v1/sessions/{id}', { params: { id }, status: 200 });
await call('GET', '/v1/sessions/{id}', { params: { id: 's_nothing' }, status: 404 });
await call('GET', '/v1/sessions/{id}/snapshot', { params: { id }, status: 200 });
assert.ok((await call('GET', '/v1/search', { query: '?q=hello', status: 200 })).hits.length > 0);
for (const by of ['day', 'runtime', 'project', 'session', 'run']) assert.equal((await call('GET', '/v1/usage', { query: `?by=${by}`, status: 200 })).by, by);
await call('PUT', '/v1/usage/ceilings', { body: { day: { tokens: 1_000_000_000, costs: [{ amount: 500, currency: 'USD' }] }, sessions: { [id]: {} } }, status: 200 });
await call('PUT', '/v1/usage/ceilings', { body: { day: { tokens: 0 } }, status: 422 });
assert.equal((await call('GET', '/v1/usage/ceilings', { status: 200 })).day.tokens, 1_000_000_000);
await call('GET', '/v1/requests', { query: '?state=all', status: 200 });
const phone = await call('POST', '/v1/devices', { body: { name: 'phone', scopes: ['watch'], sessions: [id] }, status: 201 });
const watches = { authorization: `Bearer ${phone.token}` };
await call('GET', '/v1/me', { as: watches, status: 200 });
await call('POST', '/v1/sessions/{id}/prompt', { params: { id }, body: { text: 'x' }, as: watches, status: 403 });
await call('PATCH', '/v1/devices/{id}', { params: { id: phone.device_id }, body: { name: 'my phone' }, status: 200 });
await call('GET', '/v1/devices', { status: 200 });
await call('DELETE', '/v1/devices/{id}', { params: { id: phone.device_id }, status: 204 });
await call('DELETE', '/v1/devices/{id}', { params: { id: 'd_local' }, status: 409 });
await call('DELETE', '/v1/local-browsers', { status: 200 });
const { code } = await call('POST', '/v1/codes', { body: { scopes: ['watch'] }, status: 201 });
await call('POST', '/v1/pair', { body: { code, name: 'tablet' }, as: {}, status: 200 });
await call('POST', '/v1/pair', { body: { code, name: 'tablet' }, as: {}, status: 401 });
const tablet = await call('POST', '/v1/devices', { body: { name: 'tablet', scopes: ['watch'], approve_up_to: 'low', lock_screen: true }, status: 201 });
const origin = new URL(url).origin;
const browser = { authorization: `Bearer ${tablet.token}`, origin };
const { csrf } = await call('POST', '/v1/signin', { body: { cookie: true, name: 'page' }, as: browser, status: 200 });
assert.match(csrf, /^[0-9a-f]{64}$/);
await call('DELETE', '/v1/me', { as: browser, status: 204 });
await call('DELETE', '/v1/me', { status: 409 });
const share = await call('POST', '/v1/sessions/{id}/shares', { params: { id }, body: { hours: 2 }, status: 201 });
const guest = { authorization: `Bearer ${share.token}` };
await call('GET', '/v1/me', { as: guest, status: 200 });
await call('DELETE', '/v1/me', { as: guest, status: 403 });
await call('GET', '/v1/devices', { status: 200 });
const pairing = async () => {
  const begun = await call('POST', '/v1/pairings', { body: { scopes: ['watch'], approve_up_to: 'low', runtimes: ['demo'], name: 'watch' }, status: 201 });
  await call('GET', '/v1/pairings/{id}', { params: { id: begun.pairing_id }, status: 200 });
  await call('POST', '/v1/pair/look', { body: { code: begun.code }, as: {}, status: 200 });
  const ticket = await call('POST', '/v1/pair', { body: { code: begun.code, name: 'phone' }, as: {}, status: 202 });
  await call('POST', '/v1/pair/wait', { body: { ticket: ticket.ticket }, as: {}, status: 202 });
  return { ...ticket, id: begun.pairing_id };
};
const yes = await pairing();
await call('POST', '/v1/pairings/{id}/confirm', { params: { id: yes.id }, body: { number: yes.number }, status: 200 });
await call('POST', '/v1/pair/wait', { body: { ticket: yes.ticket, wait: 5 }, as: {}, status: 200 });
await call('GET', '/v1/pairings/{id}', { params: { id: yes.id }, query: '?wait=5', status: 200 });
const no = await pairing();
await call('DELETE', '/v1/pairings/{id}', { params: { id: no.id }, status: 204 });
await call('POST', '/v1/pair/wait', { body: { ticket: no.ticket, wait: 5 }, as: {}, status: 410 });
await call('POST', '/v1/pairings/{id}/confirm', { params: { id: 'p_nothing' }, body: { number: 42 }, status: 404 });
// A surface, a press on it, and a question by it.
const button = { id: 'root', component: 'Button', child: 'label', action: { event: { name: 'go' } } };
const drawn = { surface: 'deploy', components: [button, { id: 'label', component: 'Text', text: 'Go' }] };
const at = { id, surface: 'deploy' };
await call('POST', '/v1/sessions/{id}/surfaces', { params: { id }, body: drawn, headers: { 'idempotency-key': 'drawn' }, status: 200 });
await call('PATCH', '/v1/sessions/{id}/surfaces/{surface}', { params: at, body: { title: 'Deploy' }, status: 200 });
await call('PATCH', '/v1/sessions/{id}/surfaces/{surface}', { params: at, body: { title: 'x', expect_rev: 1 }, status: 409 });
await call('GET', '/v1/sessions/{id}/surfaces', { params: { id }, status: 200 });
await call('GET', '/v1/surfaces', { status: 200 });
await line.done('ui.surface.action', { session_id: id, surface: 'deploy', rev: 2, component: 'root', event: 'go' });
await line.refused('ui.surface.action', { session_id: id, surface: 'deploy', rev: 2, component: 'root', event: 'go' }, 'stale_surface');
await call('POST', '/v1/sessions/{id}/surfaces/{surface}/action', { params: at, body: { rev: 3, component: 'root', event: 'go' }, status: 200 });
const { ask_id: ask } = await call('POST', '/v1/sessions/{id}/asks', { params: { id }, body: { surface: 'deploy', submit: ['root'], question: 'Go?' }, status: 200 });
await call('GET', '/v1/sessions/{id}/asks/{ask}', { params: { id, ask }, query: '?wait=0', status: 200 });
await call('POST', '/v1/requests/{id}/answer', { params: { id: ask }, body: { answers: { submit: ['root'] } }, status: 200 });
await call('GET', '/v1/sessions/{id}/asks/{ask}', { params: { id, ask }, status: 200 });
await call('DELETE', '/v1/sessions/{id}/surfaces/{surface}', { params: at, status: 200 });
// The same over the WebSocket.
await line.done('ui.surface.show', { session_id: id, show: drawn, idempotency_key: 'drawn-ws' });
await line.done('ui.surface.update', { session_id: id, surface: 'deploy', update: { title: 'Deploy' } });
await line.refused('ui.surface.update', { session_id: id, surface: 'deploy', update: { title: 'x', expect_rev: 1 } }, 'stale_surface');
await line.done('ui.surface.list', { session_id: id });
const { ask_id: askedAgain } = await line.done('ui.surface.ask', { session_id: id, ask: { surface: 'deploy', submit: ['root'], question: 'Go?' } });
await line.done('ui.surface.wait', { session_id: id, ask_id: askedAgain });
await call('POST', '/v1/requests/{id}/answer', { params: { id: askedAgain }, body: { answers: { submit: ['root'] } }, status: 200 });
await line.done('ui.surface.wait', { session_id: id, ask_id: askedAgain, wait_s: 5 });
await line.done('ui.surface.close', { session_id: id, surface: 'deploy' });
// And by MCP.
await call('POST', '/mcp/{id}', { params: { id }, body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'ui_show', arguments: drawn } }, status: 200 });
await call('POST', '/mcp/{id}', { params: { id }, body: { jsonrpc: '2.0', method: 'notifications/initialized' }, status: 202 });
await call('POST', '/v1/pair/look', { body: { code: 'ABCD-2345' }, as: {}, status: 401 });
await call('PATCH', '/v1/sessions/{id}', { params: { id }, body: { title: 'made, and named' }, status: 200 });
await call('PATCH', '/v1/sessions/{id}', { params: { id }, body: { title: ' ' }, status: 422 });
await call('POST', '/v1/sessions/{id}/restart', { params: { id }, body: {}, status: 202 });
await call('POST', '/v1/sessions/{id}/restart', { params: { id }, body: { run_id: 'r_nothing' }, status: 404 });
await call('GET', '/v1/sessions/{id}/export', { params: { id }, query: '?format=html', status: 200 });
await call('GET', '/v1/runtimes/{id}/logs', { params: { id: 'second' }, status: 200 });
await call('POST', '/v1/runtimes/{id}/restart', { params: { id: 'second' }, status: 200 });
await call('GET', '/v1/doctor', { status: 200 });
await call('POST', '/v1/clock/confirm', { status: 200 });
for (const path of ['/ca', '/ca.crt', '/ca.mobileconfig']) await call('GET', path, { as: {}, status: 404 });
// The public key of a subscription that nobody has: RFC 8291, 5.
const keys = { p256dh: 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4', auth: 'BTBZMqHH6r4Tts7J_aSIgg' };
await call('PUT', '/v1/push', { body: { endpoint: 'https://elsewhere.example/x', keys }, status: 422 });
await call('PUT', '/v1/push', { body: { endpoint: 'https://fcm.googleapis.com/fcm/send/example', keys }, status: 200 });
await call('GET', '/v1/push', { status: 200 });
await call('PATCH', '/v1/push/settings', { body: { ends: false, quiet: { from: '22:00', to: '07:00', offset_minutes: 60 } }, status: 200 });
await call('DELETE', '/v1/push', { status: 204 });
await call('POST', '/v1/push/test', { body: {}, status: 409 });
await call('GET', '/v1/runtimes', { status: 200 });
await call('DELETE', '/v1/runtimes/{id}', { params: { id: 'second' }, status: 204 });
await line.method('runtime.removed');
await call('DELETE', '/v1/sessions/{id}', { params: { id: other.session_id }, status: 204 });
await line.method('session.deleted');
await call('GET', '/v1/terminals', { status: 200 });
await call('GET', '/v1/listeners', { status: 200 });
await call('PUT', '/v1/listeners/tls', { body: { listen: '127.0.0.1:0' }, status: 409 });
await call('DELETE', '/v1/listeners/tls', { status: 404 });
await call('PUT', '/v1/listeners/proxy', { body: { public_url: 'https://box.tail1.ts.net' }, status: 200 });
await call('DELETE', '/v1/listeners/proxy', { status: 204 });
await call('GET', '/v1/link', { status: 200 });
// Nothing is changed that was not shown.
await call('POST', '/v1/link/{agent}', { params: { agent: 'codex' }, body: { action: 'link', digest: 'x' }, status: 422 });
await call('POST', '/v1/link/{agent}', { params: { agent: 'unknown' }, body: { action: 'unlink', digest: 'x' }, status: 404 });
await call('GET', '/v1/terminals/{id}/ws', { params: { id: 't_unknown1' }, status: 404 });
// Its one answer that is described is the handshake's, which was had above.
await call('GET', '/v1/ws', { status: 426 });

const unseen = Object.keys(asyncapi.components.messages).filter((name) => !seen.has(name));
assert.deepEqual(unseen.sort(), [...UNSEEN].sort(), 'messages that are described and were not seen');
const routes = Object.entries(openapi.paths).flatMap(([path, of]) => Object.keys(of).map((method) => `${method.toUpperCase()} ${path}`));
// Other surfaces have players of their own.
const native = routes.filter((route) => !/ \/(acp|ag-ui|codelia|mirror|rc|remote|ui)\b/.test(route));
assert.deepEqual(native.filter((route) => !called.has(route)), [], 'routes that were not called');
process.stdout.write(`${seen.size} kinds of message and ${called.size} operations as described\n`);
process.exit(0);
