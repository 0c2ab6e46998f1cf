// An ACP agent with a past: `node past.mjs N [PAGE]` keeps N conversations (c0, c1, ..) and lists PAGE of them at a time, the
// newest first. It opens any of them again, tells what was said in it, and answers a prompt by its name. Every third has no
// title; the title of `c1` is hostile. With PAST_MUTE set it never answers `session/list`.
import { createInterface } from 'node:readline';

const count = Number(process.argv[2] ?? 3);
const page = Number(process.argv[3] ?? count);
const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const NEWEST = Date.parse('2026-11-20T12:00:00Z');
const WORDS = ['Parser for dates', 'Flaky login test', 'Release notes', 'Upgrade the linter', 'Slow start on Windows', 'A page for settings'];
const HOSTILE = '\u001b]0;owned\u0007<img src=x onerror=alert(1)>\u202Etxt.exe';
const title = (n) => (n === 1 ? HOSTILE : n % 3 === 2 ? undefined : `${WORDS[n % WORDS.length]} ${n}`);
const kept = (n) => ({
  sessionId: `c${n}`, cwd: process.cwd(), title: title(n), updatedAt: new Date(NEWEST - n * 3_600_000).toISOString(),
});
const say = (sessionId, sessionUpdate, text) =>
  send({ method: 'session/update', params: { sessionId, update: { sessionUpdate, content: { type: 'text', text } } } });

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  switch (method) {
    case 'initialize':
      return send({ id, result: { protocolVersion: 1, agentCapabilities: { loadSession: true, sessionCapabilities: { list: {} } } } });
    case 'session/new':
      return send({ id, result: { sessionId: 'new' } });
    case 'session/list': {
      if (process.env.PAST_MUTE) return undefined;
      const from = Number(params.cursor ?? 0);
      const to = Math.min(from + page, count);
      const sessions = Array.from({ length: to - from }, (_, n) => kept(from + n));
      return send({ id, result: { sessions, ...(to < count ? { nextCursor: String(to) } : {}) } });
    }
    case 'session/load':
      say(params.sessionId, 'user_message_chunk', `What is ${params.sessionId}?`);
      say(params.sessionId, 'agent_message_chunk', `That was ${params.sessionId}.`);
      return send({ id, result: {} });
    case 'session/prompt':
      say(params.sessionId, 'agent_message_chunk', `Still ${params.sessionId}.`);
      return send({ id, result: { stopReason: 'end_turn' } });
    default:
      return id === undefined ? undefined : send({ id, error: { code: -32601, message: method } });
  }
});
