// An ACP agent for the soak: `node agent.mjs RUNTIME HOME` (both are there to be seen in the list of processes). It says in every message which process and which of its sessions is speaking,
// so that a message that reached a wrong session, or an answer that reached a wrong question, can be told from the log.
//
// The prompt is JSON: {"token", "chunks", "asks", "ms"}. JSON-RPC ids of questions are used again as soon as they are free, as
// some real agents do, and a question names its tool call by identifier alone.
import readline from 'node:readline';

const instance = `i${process.pid}x${process.hrtime.bigint().toString(36)}`;
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const update = (sessionId, body) => send({ method: 'session/update', params: { sessionId, update: body } });
const say = (sessionId, text) =>
  update(sessionId, { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });

const questions = new Map(); // JSON-RPC id -> what to do with the answer
const cancelled = new Set(); // sessions whose prompt under way is to stop
let sessions = 0;
let calls = 0;

function ask(sessionId, question) {
  let id = 0;
  while (questions.has(id)) id += 1;
  const toolCallId = `call-${(calls += 1)}`;
  const card = { toolCallId, title: `echo ${question}`, kind: 'execute', rawInput: { command: `echo ${question}` } };
  update(sessionId, { sessionUpdate: 'tool_call', status: 'pending', ...card });
  const options = ['allow_once', 'reject_once'].map((kind) => ({ optionId: kind, name: kind, kind }));
  const answered = new Promise((done) => questions.set(id, done));
  send({ id, method: 'session/request_permission', params: { sessionId, toolCall: { toolCallId }, options } });
  return answered.then((outcome) => {
    const decided = outcome?.outcome === 'selected' ? outcome.optionId : 'cancelled';
    const status = decided === 'allow_once' ? 'completed' : 'failed';
    update(sessionId, { sessionUpdate: 'tool_call_update', toolCallId, status });
    say(sessionId, `[decided ${question} ${decided}]`);
  });
}

async function prompt(id, { sessionId, prompt: blocks }) {
  cancelled.delete(sessionId);
  const { token, chunks = 5, asks = 0, ms = 1 } = JSON.parse(blocks.map((block) => block.text ?? '').join(''));
  say(sessionId, `[got ${token} ${instance} ${sessionId}]`);
  for (let n = 0; n < chunks && !cancelled.has(sessionId); n += 1) {
    say(sessionId, `[${instance} ${sessionId}] chunk ${n} of ${token}: ${'x'.repeat(200)}\n`);
    if (n % 20 === 19) await sleep(ms);
  }
  await Promise.all(Array.from({ length: asks }, (_, n) => ask(sessionId, `${token}-q${n}`)));
  const stopReason = cancelled.has(sessionId) ? 'cancelled' : 'end_turn';
  if (stopReason === 'end_turn') say(sessionId, `[done ${token} ${instance} ${sessionId}]`);
  send({ id, result: { stopReason } });
}

readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params, result } = JSON.parse(line);
  if (method === undefined) {
    const answered = questions.get(id);
    questions.delete(id);
    answered?.(result?.outcome);
  } else if (method === 'initialize') {
    send({ id, result: { protocolVersion: 1, agentCapabilities: { loadSession: true }, authMethods: [] } });
  } else if (method === 'session/new') {
    send({ id, result: { sessionId: `${instance}-${(sessions += 1)}` } });
  } else if (method === 'session/load') {
    send({ id, result: {} });
  } else if (method === 'session/prompt') {
    prompt(id, params).catch((why) => send({ id, error: { code: -32603, message: String(why) } }));
  } else if (method === 'session/cancel') {
    cancelled.add(params.sessionId);
  } else if (id !== undefined) {
    send({ id, error: { code: -32601, message: `no method ${method}` } });
  }
}).on('close', () => process.exit(0));
