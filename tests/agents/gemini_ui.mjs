// A Gemini CLI terminal UI without the terminal: its UI mirror (--ui-port) and its remote control
// (GEMINI_CLI_REMOTE_PORT), to the letter of their specifications, with a scripted model. Node built-ins only.
//
// Prints {"ready":{"ui":PORT,"remote":PORT}} on stdout. Each line on stdin is a command, done in order, and answered with
// one line: what a person at the UI does (type, select), and what may go wrong (unregister, mirror, framing, send).
import http from 'node:http';
import crypto from 'node:crypto';
import readline from 'node:readline';

const flag = process.argv.indexOf('--ui-port');
const uiPort = flag < 0 ? undefined : Number(process.argv[flag + 1]);
const remotePort = process.env.GEMINI_CLI_REMOTE_PORT;

// === the mirror: UiMirrorService ===

let mirror;
const clients = new Set();
// How messages lie in WebSocket frames: one in each; two in one; one in two.
let framing = 'whole';
let kept = '';

function frame(text) {
  const payload = Buffer.from(text, 'utf8');
  const head = payload.length < 126 ? [0x81, payload.length] : [0x81, 126, payload.length >> 8, payload.length & 255];
  return Buffer.concat([Buffer.from(head), payload]);
}

function sendText(text) {
  for (const socket of clients) socket.write(frame(text));
}

function broadcast(type, data) {
  const text = JSON.stringify({ type, data }) + '\0';
  if (framing === 'merged') {
    kept += text;
    // Two at a time; an end never waits.
    if (kept.split('\0').length > 2 || type === 'idle') {
      sendText(kept);
      kept = '';
    }
  } else if (framing === 'halves') {
    const at = Math.floor(text.length / 2);
    sendText(text.slice(0, at));
    sendText(text.slice(at));
  } else {
    sendText(text);
  }
}

function startMirror(port) {
  mirror = http.createServer((_, response) => response.writeHead(426).end());
  mirror.on('upgrade', (request, socket) => {
    const key = request.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
    const accept = crypto.createHash('sha1').update(key).digest('base64');
    socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
        `Sec-WebSocket-Accept: ${accept}\r\n\r\n`,
    );
    clients.add(socket);
    const gone = () => clients.delete(socket);
    socket.on('close', gone).on('error', gone);
    // A client says nothing but goodbye.
    socket.on('data', (bytes) => (bytes[0] & 15) === 8 && socket.end(Buffer.from([0x88, 0])));
  });
  return new Promise((done) => mirror.listen(port, '127.0.0.1', () => done(mirror.address().port)));
}

async function stopMirror() {
  for (const socket of clients) socket.destroy();
  clients.clear();
  await new Promise((done) => mirror.close(done));
}

// === the UI: what a person or the remote control submits, and a scripted model ===

const history = [];
const queue = [];
const dialogs = new Map();
let busy = false;
let held;
let calls = 0;

function model(text) {
  const last = history.at(-1);
  if (last?.role === 'model') last.text += text;
  else history.push({ role: 'model', text });
  broadcast('model_output', { text });
}

async function submit(text) {
  if (busy) return void queue.push(text);
  busy = true;
  history.push({ role: 'user', text });
  broadcast('user_message', { text });
  const [word, ...rest] = text.split(' ');
  if (word === 'run') {
    const callId = `call_${++calls}`;
    broadcast('tool_call', { callId, name: 'run_shell_command', args: { command: rest.join(' ') } });
    const id = `req_${calls}`;
    broadcast('permission_dialog', { id, type: 'command_run', options: ['Allow', 'Deny', 'Always Allow'] });
    const selection = await new Promise((done) => dialogs.set(id, done));
    broadcast('permission_selection', { id, selection });
    if (selection !== 'Deny') broadcast('tool_output', { callId, output: 'done ' });
    model(`They chose ${selection}.`);
  } else if (word === 'hook') {
    broadcast('hook', { hookName: 'on_session_start', eventName: 'hook_start' });
    broadcast('hook', { hookName: 'on_session_start', eventName: 'hook_end', success: true });
  } else if (word === 'hold') {
    model('one ');
    await new Promise((done) => (held = done));
    model('two ');
    model('three');
  } else {
    model('You said: ');
    for (const part of text.split(/(?<= )/)) model(part);
  }
  busy = false;
  broadcast('idle', {});
  if (queue.length > 0) submit(queue.shift());
}

// === the remote control: TuiRemoteBridge and startRemoteServer ===

let registered = !process.argv.includes('--unregistered');

function startRemote(port) {
  const server = http.createServer(async (request, response) => {
    const reply = (status, body) =>
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
    const url = new URL(request.url, 'http://localhost');
    let body = '';
    for await (const piece of request) body += piece;
    if (!registered) return reply(503, { error: 'the TUI bridge is not registered' });
    if (request.method === 'POST' && url.pathname === '/message') {
      let message;
      try {
        ({ message } = JSON.parse(body));
      } catch {}
      if (typeof message !== 'string') return reply(400, { error: 'message must be a string' });
      submit(message);
      return reply(200, {});
    }
    if (request.method === 'GET' && url.pathname === '/history') {
      const limit = Number(url.searchParams.get('limit') ?? 0);
      return reply(200, limit > 0 ? history.slice(-limit) : history);
    }
    reply(404, {});
  });
  return new Promise((done) => server.listen(port, '127.0.0.1', () => done(server.address().port)));
}

// === the test's hand ===

const ui = uiPort === undefined ? undefined : await startMirror(uiPort);
const remote = remotePort === undefined ? undefined : await startRemote(Number(remotePort));
console.log(JSON.stringify({ ready: { ui, remote } }));

const commands = {
  type: ({ text }) => void submit(text),
  select({ id, selection }) {
    dialogs.get(id)(selection);
    dialogs.delete(id);
  },
  go: () => held(),
  register: ({ on }) => void (registered = on),
  mirror: ({ on }) => (on ? startMirror(ui).then(() => {}) : stopMirror()),
  framing: ({ how }) => void (framing = how),
  send: ({ text }) => sendText(text),
  watched: () => ({ clients: clients.size }),
};
for await (const line of readline.createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  const done = await commands[command.do](command);
  console.log(JSON.stringify({ done: done ?? true }));
}
// The test is over.
process.exit(0);
