// Records what an ACP agent says, as a transcript for ../transcripts: `{"dir":"in|out","line":".."}` a line.
//
//   node record.mjs OUT.ndjson SETUP.json
//
// SETUP.json: {"command": [..], "env": {..}, "cwd": "..", "auth": "method" or null, "paths": {"/real/path": "/home/user", ..}}.
// It plays the scenes below; `env` is all of the agent's environment besides PATH. Exits when the last scene is over.
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [out, setupFile] = process.argv.slice(2);
const setup = JSON.parse(readFileSync(setupFile, 'utf8'));
const agent = spawn(setup.command[0], setup.command.slice(1), {
  cwd: setup.cwd, env: { PATH: process.env.PATH, ...setup.env }, stdio: ['pipe', 'pipe', 'inherit'], detached: true,
});
const lines = [];
const replaced = (line) => Object.entries(setup.paths ?? {}).reduce((text, [from, to]) => text.replaceAll(from, to), line);
const note = (dir, line) => lines.push(JSON.stringify({ dir, line: replaced(line) }));
const send = (message) => {
  const line = JSON.stringify({ jsonrpc: '2.0', ...message });
  note('in', line);
  agent.stdin.write(`${line}\n`);
};

let next = 0;
const waiting = new Map();
const call = (method, params) => new Promise((resolve, reject) => {
  const id = next++;
  waiting.set(id, { resolve, reject });
  send({ id, method, params });
});

// What the scene under way does with a permission request and with each chunk of text.
let scene = {};
createInterface({ input: agent.stdout }).on('line', (line) => {
  note('out', line);
  const message = JSON.parse(line);
  if (message.method === undefined) {
    const waits = waiting.get(message.id);
    waiting.delete(message.id);
    if (message.error) waits?.reject(new Error(JSON.stringify(message.error)));
    else waits?.resolve(message.result);
  } else if (message.method === 'session/request_permission') {
    const { options } = message.params;
    const chosen = options.find((option) => option.kind === scene.choose);
    if (scene.cancel === 'asked') {
      send({ method: 'session/cancel', params: { sessionId: message.params.sessionId } });
      send({ id: message.id, result: { outcome: { outcome: 'cancelled' } } });
    } else {
      send({ id: message.id, result: { outcome: { outcome: 'selected', optionId: chosen.optionId } } });
    }
  } else if (message.id !== undefined) {
    send({ id: message.id, error: { code: -32601, message: 'not served here' } });
  } else if (message.params?.update?.sessionUpdate === 'agent_message_chunk' && scene.cancel === 'streams') {
    scene.cancel = null;
    send({ method: 'session/cancel', params: { sessionId: message.params.sessionId } });
  }
});
agent.on('exit', (code, signal) => {
  if (waiting.size > 0) {
    console.error(`the agent ended (${code ?? signal}) with ${waiting.size} calls open`);
    writeFileSync(out, `${lines.join('\n')}\n`);
    process.exit(1);
  }
});

await call('initialize', {
  protocolVersion: 1,
  clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
  clientInfo: { name: 'plexus', version: '0.1.0' },
});
if (setup.auth) await call('authenticate', { methodId: setup.auth });
const { sessionId } = await call('session/new', { cwd: setup.cwd, mcpServers: [] });
const scenes = [
  ['long 50 2', {}],
  ['think 3', {}],
  ['shell touch x', { choose: 'allow_once' }],
  ['shell touch y', { choose: 'reject_once' }],
  [`write ${setup.cwd}/note.txt some words`, { choose: 'allow_once' }],
  ['shell2 touch a | touch b', { choose: 'allow_once' }],
  ['shell touch z', { cancel: 'asked' }],
  ['long 500 5', { cancel: 'streams' }],
  ['text', {}],
];
for (const [script, how] of scenes) {
  scene = how;
  const prompt = [{ type: 'text', text: `FAKE:${script}` }];
  const result = await call('session/prompt', { sessionId, prompt });
  console.error(`${script}: ${JSON.stringify(result)}`);
}
writeFileSync(out, `${lines.join('\n')}\n`);
waiting.clear();
try { process.kill(-agent.pid, 'SIGKILL'); } catch { /* it has ended */ }
process.exit(0);
