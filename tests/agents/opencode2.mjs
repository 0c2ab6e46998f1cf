// A double of OpenCode 2's server, made of the schema in its repository (packages/protocol and packages/schema of
// github.com/anomalyco/opencode, November 2026): the routes and events that a client needs, and a model that does as it is told.
//
//   node opencode2.mjs --port N --password WORD --state FILE
//
// The state outlives it, as OpenCode's database does; what ran when it was killed does not go on. A prompt is `say WORDS`,
// `slow N` (N words, one every 10 ms), `run COMMAND` (asks, then runs it), `ask` (a form) or `fail`.
import { execSync } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import { parseArgs } from 'node:util';

const { values: options } = parseArgs({
  options: { port: { type: 'string' }, password: { type: 'string', default: '' }, state: { type: 'string' } },
});
const state = fs.existsSync(options.state) ? JSON.parse(fs.readFileSync(options.state, 'utf8')) : { made: 0, sessions: {} };
/** Whole or not at all: it may be killed at any moment. */
function save() {
  fs.writeFileSync(`${options.state}.new`, JSON.stringify(state));
  fs.renameSync(`${options.state}.new`, options.state);
}
const id = (prefix) => `${prefix}_${(state.made += 1).toString(36).padStart(8, '0')}`;
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const clients = new Set();
/** What runs: the session's way to be interrupted, and its open questions with the functions that answer them. */
const running = new Map();
const questions = new Map();

function tell(event) {
  for (const client of clients) client.write(`data: ${JSON.stringify(event)}\n\n`);
}

function live(type, data) {
  tell({ id: id('evt'), created: Date.now(), type, data });
}

function durable(session, type, data = {}) {
  const { log } = state.sessions[session];
  const event = {
    id: id('evt'), created: Date.now(), type, durable: { aggregateID: session, seq: log.length, version: 1 },
    data: { sessionID: session, ...data },
  };
  log.push(event);
  save();
  tell(event);
}

async function say(session, message, words) {
  const at = { assistantMessageID: message, ordinal: 0 };
  durable(session, 'session.text.started', at);
  let said = '';
  for (const word of words) {
    if (running.get(session)?.stopped) return;
    said += word;
    live('session.text.delta', { sessionID: session, ...at, delta: word });
    if (words.length > 1) await sleep(10);
  }
  durable(session, 'session.text.ended', { ...at, text: said });
}

/** Asks, and waits for the answer; `undefined` when the work is interrupted. */
function ask(session, list, question) {
  list.push(question);
  save();
  return new Promise((answer) => {
    const done = (value) => {
      list.splice(list.indexOf(question), 1);
      questions.delete(question.id);
      save();
      answer(value);
    };
    questions.set(question.id, done);
    running.get(session).questions.push(() => done(undefined));
  });
}

async function act(session, text) {
  const here = state.sessions[session];
  const message = id('msg');
  const [verb, ...rest] = text.split(' ');
  const words = rest.join(' ');
  durable(session, 'session.step.started', { assistantMessageID: message });
  if (verb === 'slow') {
    await say(session, message, Array.from({ length: Number(words) }, (_, n) => `word-${n} `));
  } else if (verb === 'run') {
    const call = id('call');
    const at = { assistantMessageID: message, id: call };
    durable(session, 'session.tool.input.started', { ...at, name: 'shell' });
    durable(session, 'session.tool.called', { ...at, input: { command: words }, executed: false });
    const asked = {
      id: id('per'), sessionID: session, action: 'shell', resources: [`${rest[0]} *`], save: [`${rest[0]} *`],
      source: { type: 'tool', messageID: message, id: call },
    };
    const answer = ask(session, here.permissions, asked);
    live('permission.asked', asked);
    const reply = await answer;
    if (reply === undefined) return;
    live('permission.replied', { sessionID: session, requestID: asked.id, reply });
    if (reply === 'reject') {
      durable(session, 'session.tool.failed', { ...at, error: { type: 'permission.rejected', message: 'rejected' }, executed: false });
    } else {
      const output = execSync(words, { cwd: here.folder, encoding: 'utf8' });
      durable(session, 'session.tool.success', { ...at, content: [{ type: 'text', text: output }], metadata: { exit: 0 }, executed: true });
      await say(session, message, ['All done.']);
    }
  } else if (verb === 'ask') {
    const form = {
      id: id('frm'), sessionID: session, title: 'Which colour?', fields: [{
        key: 'colour', type: 'string', required: true, custom: true,
        options: [{ value: 'red', label: 'Red' }, { value: 'blue', label: 'Blue' }],
      }],
    };
    const answer = ask(session, here.forms, form);
    live('form.created', { form });
    const filled = await answer;
    live(filled ? 'form.replied' : 'form.cancelled', { id: form.id, sessionID: session, answer: filled });
    await say(session, message, [`You said ${JSON.stringify(filled ?? null)}.`]);
  } else if (verb === 'fail') {
    const error = { type: 'provider.auth', message: 'the key is wrong' };
    durable(session, 'session.step.failed', { assistantMessageID: message, error });
    throw error;
  } else {
    await say(session, message, [words]);
  }
  if (running.get(session)?.stopped) return;
  const tokens = { input: 10, output: 5, reasoning: 0, cache: { read: 0, write: 0 } };
  durable(session, 'session.step.ended', { assistantMessageID: message, finish: 'stop', cost: 0, tokens });
}

async function drain(session) {
  if (running.has(session)) return;
  const work = { stopped: false, questions: [] };
  running.set(session, work);
  durable(session, 'session.execution.started');
  try {
    const { inbox } = state.sessions[session];
    while (inbox.length > 0 && !work.stopped) {
      const item = inbox.shift();
      durable(session, 'session.inbox.delivered', { inboxID: item.id });
      await act(session, item.text);
    }
    running.delete(session);
    if (work.stopped) durable(session, 'session.execution.interrupted', { reason: 'user' });
    else durable(session, 'session.execution.succeeded');
  } catch (error) {
    running.delete(session);
    durable(session, 'session.execution.failed', { error: { type: error.type ?? 'unknown', message: error.message } });
  }
}

const info = (session) => ({
  id: session, title: 'New session', location: { directory: state.sessions[session].folder }, time: { created: 1, updated: 1 },
});

const routes = [
  ['GET', /^\/api\/health$/, () => ({ healthy: true, version: '2.2.7' })],
  ['GET', /^\/api\/session\/active$/, () => ({ data: Object.fromEntries([...running.keys()].map((id) => [id, { type: 'running' }])) })],
  ['GET', /^\/api\/model$/, () => ({ data: [{ id: 'fake', providerID: 'fake', name: 'Fake', limit: { context: 1000 } }] })],
  ['POST', /^\/api\/session$/, (_, body) => {
    const session = id('ses');
    state.sessions[session] = { folder: body.location?.directory ?? '/', log: [], inbox: [], permissions: [], forms: [] };
    durable(session, 'session.created', { title: 'New session' });
    return { data: info(session) };
  }],
  ['GET', /^\/api\/session\/(\w+)$/, (session) => ({ data: info(session) })],
  ['GET', /^\/api\/session\/(\w+)\/permission$/, (session) => ({ data: state.sessions[session].permissions })],
  ['GET', /^\/api\/session\/(\w+)\/form$/, (session) => ({ data: state.sessions[session].forms })],
  ['POST', /^\/api\/session\/(\w+)\/prompt$/, (session, body) => {
    const item = { id: body.id ?? id('msg'), text: body.text };
    state.sessions[session].inbox.push(item);
    const payload = { type: 'user', delivery: 'queue', payload: { text: item.text } };
    durable(session, 'session.inbox.enqueued', { inboxID: item.id, item: payload });
    setTimeout(() => drain(session), 1);
    return { data: { ...payload, id: item.id, sessionID: session } };
  }],
  ['POST', /^\/api\/session\/(\w+)\/interrupt$/, (session) => {
    const work = running.get(session);
    if (work) {
      work.stopped = true;
      for (const withdraw of work.questions) withdraw();
    }
    return { interrupted: work !== undefined };
  }],
  ['POST', /^\/api\/session\/(\w+)\/model$/, (session, body) => { durable(session, 'session.model.selected', { model: body.model }); }],
  ['DELETE', /^\/api\/session\/(\w+)\/inbox\/(\w+)$/, (session, _, item) => {
    const { inbox } = state.sessions[session];
    inbox.splice(0, inbox.length, ...inbox.filter((known) => known.id !== item));
    save();
  }],
  ['POST', /^\/api\/session\/\w+\/(?:permission|form)\/(\w+)\/reply$/, (question, body) => answered(question, body.reply ?? body.answer)],
  ['DELETE', /^\/api\/session\/\w+\/form\/(\w+)$/, (question) => answered(question, null)],
];

function answered(question, value) {
  const done = questions.get(question);
  if (!done) throw Object.assign(new Error('no such question'), { status: 404, _tag: 'PermissionNotFoundError' });
  done(value);
}

const server = http.createServer(async (req, res) => {
  const url = new URL(req.url, 'http://localhost');
  const basic = `Basic ${Buffer.from(`opencode:${options.password}`).toString('base64')}`;
  if (options.password && req.headers.authorization !== basic) {
    res.writeHead(401, { 'content-type': 'application/json' });
    return res.end('{"_tag":"UnauthorizedError"}');
  }
  if (url.pathname === '/api/event') {
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    res.write(`data: ${JSON.stringify({ id: 'evt_0', type: 'server.connected', data: {} })}\n\n`);
    clients.add(res);
    return res.on('close', () => clients.delete(res));
  }
  const log = /^\/api\/experimental\/session\/(\w+)\/log$/.exec(url.pathname);
  if (log && state.sessions[log[1]]) {
    const after = Number(url.searchParams.get('after') ?? -1);
    const items = state.sessions[log[1]].log.filter((event) => event.durable.seq > after);
    const end = { type: 'log.synced', aggregateID: log[1], seq: state.sessions[log[1]].log.length - 1 };
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    return res.end([...items, end].map((item) => `data: ${JSON.stringify(item)}\n\n`).join(''));
  }
  let text = '';
  for await (const piece of req) text += piece;
  const route = routes.find(([method, path]) => method === req.method && path.test(url.pathname));
  if (!route) {
    // Its web page answers every route that it does not know.
    res.writeHead(200, { 'content-type': 'text/html' });
    return res.end('<!doctype html>');
  }
  try {
    const [first, second] = route[1].exec(url.pathname).slice(1);
    if (first?.startsWith('ses') && !state.sessions[first]) {
      throw Object.assign(new Error('no such session'), { status: 404, _tag: 'SessionNotFoundError' });
    }
    const reply = route[2](first, text ? JSON.parse(text) : {}, second);
    res.writeHead(reply === undefined ? 204 : 200, { 'content-type': 'application/json' });
    res.end(reply === undefined ? undefined : JSON.stringify(reply));
  } catch (error) {
    res.writeHead(error.status ?? 500, { 'content-type': 'application/json' });
    res.end(JSON.stringify({ _tag: error._tag, message: error.message }));
  }
});
// What was asked when it was killed nobody waits for any more.
for (const session of Object.values(state.sessions)) Object.assign(session, { permissions: [], forms: [] });
server.listen(Number(options.port), '127.0.0.1', () => console.log('listening'));
