// An ACP agent that gives all its questions the same JSON-RPC id, one after the other, as ids may be used again once they are
// answered. `node same_id.mjs LOG`: writes each answer to LOG as `QUESTION OPTION`. A prompt `ask` asks twice; any other ends.
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const log = process.argv[2];
const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const options = [
  { optionId: 'yes', name: 'Yes', kind: 'allow_once' },
  { optionId: 'no', name: 'No', kind: 'reject_once' },
];
let sessions = 0;
let asking = null; // { sessionId, prompt, question }

const ask = () => send({
  id: 5,
  method: 'session/request_permission',
  params: {
    sessionId: asking.sessionId, options,
    toolCall: { toolCallId: `q${asking.question}`, title: `touch q${asking.question}`, kind: 'execute', rawInput: { command: `touch q${asking.question}` } },
  },
});

createInterface({ input: process.stdin }).on('line', (line) => {
  const message = JSON.parse(line);
  switch (message.method) {
    case 'initialize':
      return send({ id: message.id, result: { protocolVersion: 1, agentCapabilities: {} } });
    case 'session/new':
      return send({ id: message.id, result: { sessionId: `n${++sessions}` } });
    case 'session/prompt':
      if (message.params.prompt[0].text !== 'ask') return send({ id: message.id, result: { stopReason: 'end_turn' } });
      asking = { sessionId: message.params.sessionId, prompt: message.id, question: 1 };
      return ask();
    case undefined: {
      if (message.id !== 5 || !asking) return undefined;
      const { outcome } = message.result;
      appendFileSync(log, `q${asking.question} ${outcome.optionId ?? outcome.outcome}\n`);
      asking.question += 1;
      if (asking.question === 2) return ask();
      send({ id: asking.prompt, result: { stopReason: 'end_turn' } });
      asking = null;
      return undefined;
    }
    default:
      return undefined;
  }
});
