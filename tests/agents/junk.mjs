// Starts an agent and puts junk between the lines that it writes: node junk.mjs PROGRAM [ARGS..]
//
// Its stdin is the agent's own, so the agent ends as it does without this. Each line of the agent passes as it came.
import { spawn } from 'node:child_process';
import readline from 'node:readline';

const JUNK = [
  'this is no JSON',
  '{"jsonrpc":"2.0","method":"session/upd',
  '[{"jsonrpc":"2.0","method":"a/batch"}]',
  '{"jsonrpc":"2.0","id":987654321,"result":{"stopReason":"end_turn"}}',
  '{"jsonrpc":"2.0","id":"no-such-call","error":{"code":-1,"message":"junk"}}',
  '{"jsonrpc":"2.0","method":"junk/notification","params":{"any":1}}',
  '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"no-such-session","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"junk"}}}}',
  Buffer.from([0xff, 0xfe, 0x00, 0x80]),
  '',
  '   ',
  'null',
  '42',
  '['.repeat(2000),
];

const [program, ...args] = process.argv.slice(2);
const agent = spawn(program, args, { stdio: ['inherit', 'pipe', 'inherit'] });
let said = 0;
readline.createInterface({ input: agent.stdout }).on('line', (line) => {
  process.stdout.write(JUNK[said % JUNK.length]);
  process.stdout.write(`\n${line}\n`);
  said += 1;
});
agent.on('exit', (code) => process.exit(code ?? 1));
agent.on('error', (why) => {
  process.stderr.write(`junk: ${why.message}\n`);
  process.exit(1);
});
