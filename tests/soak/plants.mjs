// Plants every break that the soak is there to notice in a history that is right, and looks for the fault: `node plants.mjs`.
import assert from 'node:assert/strict';
import { Witness, level } from './witness.mjs';

const I = 'i7x1';
const J = 'i8x2';

function history(break_ = () => {}, { lives = () => true, runtime = 'one' } = {}) {
  const faults = [];
  let clock = 100;
  const witness = new Witness({ fault: (words) => faults.push(words), now: () => clock, lives });
  let position = 0;
  const all = [];
  const event = (kind, event, run = 'r', session = 's') => {
    const envelope = { cursor: `e:${(position += 1)}`, session_id: session, run_id: run, kind, event };
    all.push(envelope);
    return envelope;
  };
  const say = (text, session) => event('agent_message_chunk', { content: { text } }, 'r', session);
  witness.opened('s', runtime);
  witness.opened('other', 'two');
  witness.asks('t', { session: 's', chunks: 2 });
  const events = [
    say(`[got t ${I} ${I}-1]`),
    say(`[${I} ${I}-1] chunk 0 of t: x`),
    say(`[${I} ${I}-1] chunk 1 of t: x`),
    say('[decided t-q0 allow_once]'),
    say(`[done t ${I} ${I}-1]`),
    event('run_ended', { status: 'completed' }),
  ];
  const plan = { events, log: events.map((one) => structuredClone(one)), receipts: [['t-q0', 'allow_once']], say, event, witness };
  break_(plan);
  for (const one of plan.events) witness.event(one);
  witness.answered('t', plan.status ?? 202, plan.status ? undefined : 'r', 'runtime_gone');
  for (const [name, option] of plan.receipts) witness.won(name, option);
  clock += 1;
  witness.kept('s', plan.log);
  witness.close();
  return faults.join('; ');
}

const drop = (list, n) => list.splice(n, 1);
const noticed = (words, break_, options) => assert.match(history(break_, options), words);

assert.equal(history(), '', 'nothing is wrong with what is right');
noticed(/never ended: nor began/, (it) => ((it.events = []), (it.log = []), (it.receipts = [])));
noticed(/never ended: it began/, (it) => (drop(it.events, 5), drop(it.log, 5)));
noticed(/given to the agent 2 times/, (it) => it.events.push(it.say(`[got t ${I} ${I}-1]`)));
noticed(/chunk 1 came where 0 was due/, (it) => drop(it.events, 1));
noticed(/chunk 1 came where 2 was due/, (it) => it.events.splice(3, 0, it.say(`[${I} ${I}-1] chunk 1 of t: x`)));
noticed(/completed with 1 beginnings, 1 ends, 1\/2/, (it) => drop(it.events, 2));
noticed(/completed with 0 beginnings/, (it) => drop(it.events, 0));
noticed(/completed with 1 beginnings, 0 ends/, (it) => drop(it.events, 4));
noticed(/ended error .* nobody killed/, (it) => (it.events[5].event.status = 'error'));
noticed(/ended cancelled .* nobody killed/, (it) => (it.events[5].event.status = 'cancelled'));
noticed(/prompt t of s ran in other/, (it) => (it.events[0].session_id = 'other'));
noticed(/spoke in s and in other/, (it) => it.events.push(it.say(`[${I} ${I}-1] chunk 2 of u: x`, 'other')));
noticed(/served by i8x2, though its own process i7x1 lives/, (it) => it.events.push(it.say(`[${J} ${I}-1] chunk 0 of u: x`)));
noticed(/i7x1 of one spoke in other of two/, (it) => it.events.push(it.say(`[${I} ${I}-2] chunk 0 of u: x`, 'other')));
noticed(/people said reject_once, the agent heard allow_once/, (it) => (it.receipts[0][1] = 'reject_once'));
noticed(/won twice/, (it) => it.receipts.push(['t-q0', 'allow_once']));
noticed(/decided twice/, (it) => it.events.splice(4, 0, it.say('[decided t-q0 allow_once]')));
noticed(/heard allow_once, which nobody said/, (it) => (it.receipts = []));
noticed(/people said allow_once, the agent heard nothing/, (it) => drop(it.events, 3));
noticed(/people said allow_once, the agent heard cancelled/, (it) => (it.events[3].event.content.text = '[decided t-q0 cancelled]'));
noticed(/2 was shown and is not in the log/, (it) => drop(it.log, 1));
noticed(/7 is in the log and was never shown/, (it) => it.log.push(it.say('x')));
noticed(/3 is not what was shown/, (it) => (it.log[2].event.content.text = 'y'));
noticed(/a prompt in s got 409/, (it) => ((it.status = 409), (it.receipts = [])));
noticed(/a prompt in s got undefined/, (it) => ((it.status = 'undefined'), (it.receipts = [])));

// What the soak does itself is excused, and nothing else.
const excused = (break_, options) => assert.equal(history(break_, options), '');
const ended = (it, status) => [it.events, it.log].forEach((list) => (list[5].event.status = status));
const killed = (it) => (it.witness.killed.push({ runtime: 'one', at: 90 }), ended(it, 'error'));
excused(killed);
noticed(/nobody killed/, killed, { runtime: 'two' });
excused((it) => (it.witness.cancels.add('s'), ended(it, 'cancelled')));
excused((it) => it.events.push(it.say(`[${J} ${I}-1] chunk 0 of u: x`)) && (it.log = structuredClone(it.events)), { lives: () => false });
excused((it) => (drop(it.log, 0), drop(it.log, 0))); // retention

const row = (from, to) => Array.from({ length: 90 }, (_, n) => from + ((to - from) * n) / 89 + (n % 7));
assert.equal(level(row(100, 100), 8).level, true);
assert.equal(level(row(100, 200), 8).level, false);
assert.equal(level([...row(100, 100), 500, 500], 8).level, true, 'a peak is no trend');
console.log('every break that was planted was noticed');
