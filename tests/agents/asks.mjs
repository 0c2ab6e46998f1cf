// An ACP agent that asks for several permissions at once. A prompt is JSON: `{"ask": ["COMMAND", ..], "again": true}`; with `again`, a command is
// asked for anew once it was answered. Each answer is said as `COMMAND: OPTION`; the run ends with the last, or when it is cancelled. `ASKS_LABELS`,
// in JSON, gives options other labels: `{"ID": "TEXT", ..}`.
import { createInterface } from 'node:readline';

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const update = (sessionId, of) => send({ method: 'session/update', params: { sessionId, update: of } });
const labels = { allow_always: 'Always', allow_once: 'Yes', reject_once: 'No', ...JSON.parse(process.env.ASKS_LABELS ?? '{}') };
const options = Object.entries(labels).map(([id, name]) => ({ optionId: id, name, kind: id }));
/** The open questions by the id of their message, and the runs by the id of their prompt. */
const open = new Map();
const runs = new Map();
let serial = 0;

function asked(prompt, sessionId, command, what) {
  const id = `ask-${serial += 1}`;
  open.set(id, { prompt, sessionId, command, what });
  const toolCall = { toolCallId: id, title: command, kind: 'execute', status: 'pending', rawInput: { command } };
  update(sessionId, { sessionUpdate: 'tool_call', ...toolCall });
  send({ id, method: 'session/request_permission', params: { sessionId, options, toolCall } });
}

function end(prompt, stopReason) {
  if (runs.delete(prompt)) send({ id: prompt, result: { stopReason } });
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const message = JSON.parse(line);
  switch (message.method) {
    case 'initialize':
      return send({ id: message.id, result: { protocolVersion: 1, agentCapabilities: {} } });
    case 'session/new':
      return send({ id: message.id, result: { sessionId: `n${serial += 1}` } });
    case 'session/prompt': {
      const { sessionId, prompt } = message.params;
      runs.set(message.id, sessionId);
      let what;
      try { what = JSON.parse(prompt[0].text); } catch { return end(message.id, 'end_turn'); }
      for (const command of what.ask) asked(message.id, sessionId, command, what);
      return undefined;
    }
    case 'session/cancel':
      for (const [prompt, sessionId] of runs) if (sessionId === message.params.sessionId) end(prompt, 'cancelled');
      return undefined;
    case undefined: {
      const one = open.get(message.id);
      if (!one) return undefined;
      open.delete(message.id);
      const { outcome } = message.result ?? {};
      update(one.sessionId, { sessionUpdate: 'tool_call_update', toolCallId: message.id, status: outcome?.optionId?.startsWith('allow') ? 'completed' : 'failed' });
      update(one.sessionId, { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: `${one.command}: ${outcome?.optionId ?? outcome?.outcome}\n` } });
      if (one.what.again && runs.has(one.prompt)) asked(one.prompt, one.sessionId, one.command, one.what);
      if (![...open.values()].some((other) => other.prompt === one.prompt)) end(one.prompt, 'end_turn');
      return undefined;
    }
    default:
      return undefined;
  }
});
