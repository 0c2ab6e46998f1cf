#!/usr/bin/env node
// A scripted runtime of the UI protocol, as ill-mannered as the real one. Node built-ins only; one file, no options.
//
// Its manners: `initialize` and `run.cancel` without params crash it; bad JSON and batches get no reply; the last
// `initialize` wins, and one without `supports_confirm` turns every confirm into a no; `run.start` while a run is on, and
// for 40 ms after it, is -32001; a cancel with a question open says ok and then hangs until the answer, and a yes still
// runs the command; it never ends at the end of stdin, and it has a child (as with a server of tools).
//
// A prompt is steps joined by ` ;; `: `say TEXT`, `run COMMAND` (a confirm first), `tool NAME` (a client's tool), `pick`
// (before `run.start` is answered), `prompt`, `hole`, `twice`, `hang`.
// Every line that it gets, and all that it does, goes to the file CODELIA_LOG, a JSON object a line.
// CODELIA_TELLS=1: it tells its MCP servers and skills. CODELIA_STUBBORN=1: it ignores SIGTERM, too.
import { execSync, spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const BUSY_MS = 40;
const log = (entry) => appendFileSync(process.env.CODELIA_LOG, `${JSON.stringify(entry)}\n`);
const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const reply = (id, result) => send({ id, result });
const fail = (id, code, message) => send({ id, error: { code, message } });
const notify = (method, params) => send({ method, params });

let capabilities = {};
let run = null; // { id, seq, cancelled }
let runs = 0;
let busyUntil = 0;
let asked = 0;
let session = null;
const answers = new Map();

const child = spawn('sleep', ['3600'], { stdio: 'ignore' });
log({ pid: process.pid, child: child.pid });
if (process.env.CODELIA_STUBBORN) process.on('SIGTERM', () => log({ ignored: 'SIGTERM' }));
setInterval(() => {}, 1 << 30);

const event = (body) => notify('agent.event', { run_id: run.id, seq: run.seq++, event: body });
const status = (word, message) => notify('run.status', { run_id: run.id, status: word, message });
const ask = (method, params) =>
  new Promise((resolve) => {
    const id = `ui_${++asked}`;
    answers.set(id, resolve);
    send({ id, method, params });
  });

function end(word) {
  status(word);
  run = null;
  busyUntil = Date.now() + BUSY_MS;
}

async function confirm(command) {
  const tool_call_id = `call_${asked + 1}`;
  event({ type: 'tool_call', tool: 'bash', args: { command }, tool_call_id });
  event({ type: 'permission.ready', tool: 'bash', tool_call_id });
  status('awaiting_ui');
  const answer = capabilities.supports_confirm
    ? await ask('ui.confirm.request', {
        run_id: run.id,
        title: 'Run command?',
        message: 'something harmless',
        allow_remember: true,
        allow_reason: true,
      })
    : { ok: false };
  const done = (result, is_error) => event({ type: 'tool_result', tool: 'bash', tool_call_id, result, is_error });
  if (answer.ok === true) {
    if (answer.remember) log({ rule: command });
    // Whatever became of the run meanwhile.
    execSync(command);
    log({ ran: command });
    done('ran', false);
    return true;
  }
  done('denied', true);
  if (answer.reason) event({ type: 'text', content: `because ${answer.reason}` });
  return Boolean(answer.reason);
}

async function steps(words) {
  for (const step of words) {
    const [verb, ...rest] = step.split(' ');
    const text = rest.join(' ');
    if (run.cancelled) break;
    if (verb === 'say') event({ type: 'text', content: text });
    else if (verb === 'run' && !(await confirm(text))) break;
    else if (verb === 'prompt') {
      const { value } = await ask('ui.prompt.request', { run_id: run.id, title: 'Say', message: 'what?' });
      event({ type: 'text', content: `value ${JSON.stringify(value)}` });
    } else if (verb === 'tool') {
      const answer = await ask('client.tool.call', { run_id: run.id, name: text, arguments: {}, raw_arguments: '{}' });
      event({ type: 'text', content: `tool ${JSON.stringify(answer)}` });
    } else if (verb === 'hole') run.seq += 2;
    else if (verb === 'twice') {
      event({ type: 'text', content: 'once ' });
      run.seq -= 1;
      event({ type: 'text', content: 'once ' });
    } else if (verb === 'hang') {
      const hanging = run;
      await new Promise((resolve) => (hanging.wake = resolve));
    }
  }
  if (!run.cancelled) event({ type: 'final', content: 'over' });
  end(run.cancelled ? 'cancelled' : 'completed');
}

async function start(id, params) {
  if (run || Date.now() < busyUntil) return fail(id, -32001, 'runtime busy');
  if (params.session_id && params.session_id !== 'past' && params.session_id !== session) {
    return fail(id, -32004, 'session not found');
  }
  session = params.session_id ?? session ?? 'fresh';
  run = { id: `run_${++runs}`, seq: 0, cancelled: false };
  const words = params.input.text.split(' ;; ');
  if (words[0] === 'pick') {
    const items = [{ id: 'full', label: 'Full access' }, { id: 'ask', label: 'Ask' }];
    const { ids } = await ask('ui.pick.request', { title: 'Approval mode', items });
    log({ picked: ids });
    words.shift();
  }
  reply(id, { run_id: run.id, session_log_path: '/nowhere' });
  status('running');
  steps(words);
}

const methods = {
  initialize(id, params) {
    // As the real one does: no params, no process.
    capabilities = params.ui_capabilities ?? {};
    const server_capabilities = process.env.CODELIA_TELLS
      ? { supports_run_cancel: true, supports_ui_requests: true, supports_mcp_list: true, supports_skills_list: true }
      : undefined;
    reply(id, { protocol_version: '0', server: { name: 'codelia-runtime', version: '0.1.0' }, server_capabilities });
  },
  'run.start': start,
  'run.cancel'(id, params) {
    if (run?.id !== params.run_id) return fail(id, -32002, 'run not found');
    run.cancelled = true;
    reply(id, { ok: true });
    run.wake?.();
  },
  'session.list'(id) {
    reply(id, { sessions: [{ session_id: 'past', updated_at: '2026-01-01T00:00:00Z' }] });
  },
  'session.history'(id, params) {
    const told = params.session_id === 'past' ? ['hidden_user_message', 'text'] : [];
    told.forEach((type, n) => {
      const seq = type === 'text' ? n : -1;
      notify('agent.event', { run_id: 'old', seq, event: { type, content: `past ${type}` } });
    });
    reply(id, { runs: told.length ? 1 : 0, events_sent: told.length });
  },
  'shell.exec'(id, params) {
    execSync(params.command);
    log({ ran: params.command });
    reply(id, { exit_code: 0 });
  },
  'mcp.list': (id) => reply(id, {
    servers: [
      { id: 'github', transport: 'http', source: 'global', enabled: true, state: 'ready', tools: 26 },
      { id: 'files', transport: 'stdio', source: 'project', enabled: true, state: 'error', last_error: 'spawn mcp-files ENOENT' },
      { id: 'old', transport: 'stdio', enabled: false, state: 'disabled' },
      { id: '<img src=x onerror=alert(1)>\u202Etxt', transport: 'stdio', enabled: true, state: 'connecting' },
    ],
  }),
  'skills.list': (id, params) => reply(id, {
    skills: [
      { id: 's1', name: 'release-notes', description: 'Writes the release notes from what was merged since the last tag.', path: `${params.cwd}/skills/release-notes/SKILL.md`, dir: `${params.cwd}/skills/release-notes`, scope: 'repo', mtime_ms: 1 },
      { id: 's2', name: 'review', description: 'Reads a change as a reviewer would.', path: '/home/me/skills/review/SKILL.md', dir: '/home/me/skills/review', scope: 'user', mtime_ms: 2 },
    ],
    errors: [{ path: '/home/me/skills/broken/SKILL.md', message: 'no front matter' }],
    truncated: false,
  }),
  'model.list': (id) => reply(id, { provider: 'none', models: ['one'], current: 'one' }),
  'model.set': (id, params) => reply(id, { provider: 'none', name: params.name, source: params.scope }),
};

createInterface({ input: process.stdin }).on('line', (line) => {
  let message;
  try {
    message = JSON.parse(line);
  } catch (why) {
    return console.error(`invalid json: ${why}`);
  }
  if (Array.isArray(message)) return console.error('a batch: ignored');
  log({ got: message });
  if (message.method === undefined) {
    const resolve = answers.get(message.id);
    answers.delete(message.id);
    // An error counts as a no.
    return resolve?.(message.result ?? { ok: false });
  }
  if (message.id === undefined) return; // Notifications: taken in silence.
  const method = methods[message.method];
  if (!method) return fail(message.id, -32601, `method not found: ${message.method}`);
  method(message.id, message.params);
});
