#!/usr/bin/env node
// A runtime of the UI protocol that follows its specification and knows nothing else: no extension of any product. Node built-ins only.
//
// The prompt of the specification's examples gets the messages of the examples. Any other prompt is a JSON array of steps:
// ["event", AgentEvent, more params?], ["notify", method, params], ["ask", method, params], ["skip", n], ["params"]. A result becomes a text.
import { createInterface } from 'node:readline';

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const answers = new Map();
let runs = 122;
let asked = 8;
let run = null;

const event = (body, more) => send({ method: 'agent.event', params: { run_id: run.id, seq: run.seq++, event: body, ...more } });
const status = (word, more) => send({ method: 'run.status', params: { run_id: run.id, status: word, ...more } });
const ask = (method, params) => new Promise((resolve) => {
  const id = String(++asked);
  answers.set(id, resolve);
  send({ id, method, params: { run_id: run.id, ...params } });
});

const EXAMPLE = [
  ['event', { type: 'reasoning', content: '...', timestamp: 1730000000000 }],
  ['ask', 'ui.confirm.request', { title: 'Run command?', message: 'rg -n "AgentEvent" -S packages' }],
  ['event', { type: 'final', content: 'done' }],
];

async function steps(all, start) {
  for (const [what, ...rest] of all) {
    if (what === 'event') event(...rest);
    else if (what === 'notify') send({ method: rest[0], params: { run_id: run.id, ...rest[1] } });
    else if (what === 'skip') run.seq += rest[0];
    else if (what === 'params') event({ type: 'text', content: JSON.stringify(start) });
    else if (what === 'ask') event({ type: 'text', content: JSON.stringify(await ask(...rest)) });
  }
  status('completed');
  run = null;
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params, result, error } = JSON.parse(line);
  if (method === undefined) return answers.get(id)?.(result ?? error);
  if (method === 'initialize') return send({ id, result: { protocol_version: '0', server: { name: 'codelia-runtime', version: '0.0.0' } } });
  if (method === 'run.start') {
    if (run) return send({ id, error: { code: -32001, message: 'runtime busy' } });
    run = { id: `run_${++runs}`, seq: 0 };
    send({ id, result: { run_id: run.id } });
    const { text } = params.input;
    return void steps(text === 'List TypeScript files' ? EXAMPLE : JSON.parse(text), params);
  }
  if (method === 'run.cancel') return send({ id, error: { code: -32002, message: 'run not found' } });
  if (id !== undefined) send({ id, error: { code: -32601, message: 'method not found' } });
});
