// What must hold in the soak, apart from how it is run: events, answers and measurements in, faults out. `plants.mjs` shows
// that each break of it is noticed.

// A run that ended badly is excused by a kill of its runtime's holder this many seconds before at most.
const EXCUSED = 90;
const BREATH = 5;

export const hashed = (text, seed = 0) => {
  let hash = (2166136261 ^ seed) >>> 0;
  for (let n = 0; n < text.length; n += 1) hash = Math.imul(hash ^ text.charCodeAt(n), 16777619) >>> 0;
  return hash;
};

export class Witness {
  // `fault(words)`; `now()` in seconds; `lives(instance)`: whether that process of an agent is alive.
  constructor({ fault, now, lives }) {
    Object.assign(this, { fault, now, lives });
    this.prompts = new Map(); // token -> what was asked, and what was seen of it
    this.endings = new Map(); // run -> {status, at}
    this.questions = new Map(); // "token-qN" -> {receipts, decided, unsure}
    this.natives = new Map(); // the agent's name of a session -> ours
    this.speakers = new Map(); // session -> the instance that spoke in it last
    this.runtimes = new Map(); // session -> runtime; instance -> runtime
    this.seen = new Map(); // session -> position -> hash
    this.deleted = new Set();
    this.cancels = new Set(); // sessions where somebody cancelled
    this.killed = []; // {runtime, at}: holders that were killed
    this.since = 0; // when the binary that is tested took over: what ended before was not its doing
    this.blind = 0; // answers to questions that the released binary showed without their command
  }

  opened(session, runtime) {
    this.runtimes.set(session, runtime);
  }

  asks(token, prompt) {
    this.prompts.set(token, { got: 0, done: 0, next: 0, at: this.now(), ...prompt });
  }

  // What a prompt got: `run` if it was taken.
  answered(token, status, run, words = '') {
    const prompt = this.prompts.get(token);
    if (run) {
      prompt.run = run;
      return;
    }
    this.prompts.delete(token);
    const gone = this.deleted.has(prompt.session);
    if (gone && (status === 404 || status === 409 || status === 410)) return;
    if (status === 409 && this.excused(this.runtimes.get(prompt.session), this.now())) return;
    if (status === 409 && words.includes('queue')) return;
    this.fault(`a prompt in ${prompt.session} got ${status} ${words}`);
  }

  question(name) {
    const known = this.questions.get(name) ?? { receipts: [], at: this.now() };
    this.questions.set(name, known);
    return known;
  }

  won(name, option) {
    const known = this.question(name);
    known.receipts.push(option);
    if (known.receipts.length > 1) this.fault(`${name} was won twice`);
    this.compare(name);
  }

  compare(name) {
    const { receipts, decided } = this.questions.get(name);
    if (receipts.length === 1 && decided && decided !== 'cancelled' && decided !== receipts[0]) {
      this.fault(`${name}: people said ${receipts[0]}, the agent heard ${decided}`);
    }
  }

  excused(runtime, at) {
    return this.killed.some((one) => one.runtime === runtime && one.at - BREATH <= at && at <= one.at + EXCUSED);
  }

  event(envelope) {
    const { kind, event, session_id: session, cursor } = envelope;
    const seen = this.seen.get(session) ?? new Map();
    this.seen.set(session, seen);
    seen.set(Number(cursor.split(':')[1]), hashed(JSON.stringify(envelope)));
    if (kind === 'run_ended') this.endings.set(envelope.run_id, { status: event.status, at: this.now() });
    if (kind === 'agent_message_chunk') this.said(session, event.content?.text ?? '');
  }

  said(session, text) {
    for (const [, instance, native] of text.matchAll(/\[(?:got \S+ |done \S+ )?(i\d+x\w+) (i\S+-\d+)\]/g)) {
      this.spoke(session, instance, native);
    }
    for (const [, token] of text.matchAll(/\[got (\S+) /g)) {
      const prompt = this.prompts.get(token);
      if (!prompt) continue;
      prompt.got += 1;
      if (prompt.got > 1) this.fault(`prompt ${token} was given to the agent ${prompt.got} times`);
      if (prompt.session !== session) this.fault(`prompt ${token} of ${prompt.session} ran in ${session}`);
    }
    for (const [, number, token] of text.matchAll(/\] chunk (\d+) of (\w+):/g)) {
      const prompt = this.prompts.get(token);
      if (!prompt) continue;
      if (Number(number) !== prompt.next) this.fault(`${token}: chunk ${number} came where ${prompt.next} was due`);
      prompt.next = Number(number) + 1;
    }
    for (const [, token] of text.matchAll(/\[done (\S+) /g)) {
      const prompt = this.prompts.get(token);
      if (prompt) prompt.done += 1;
    }
    for (const [, name, decided] of text.matchAll(/\[decided (\S+) (\S+)\]/g)) {
      const known = this.question(name);
      if (known.decided) this.fault(`${name} was decided twice: ${known.decided}, ${decided}`);
      known.decided = decided;
      this.compare(name);
    }
  }

  // A process spoke in a session: its own, or another one after its own is gone.
  spoke(session, instance, native) {
    const known = this.natives.get(native) ?? session;
    if (known !== session) this.fault(`the agent's session ${native} spoke in ${known} and in ${session}`);
    this.natives.set(native, session);
    const before = this.speakers.get(session);
    if (before !== undefined && before !== instance && this.lives(before)) {
      this.fault(`${session} is served by ${instance}, though its own process ${before} lives`);
    }
    this.speakers.set(session, instance);
    const runtime = this.runtimes.get(session);
    const served = this.runtimes.get(instance) ?? runtime;
    if (runtime !== undefined && served !== runtime) this.fault(`${instance} of ${served} spoke in ${session} of ${runtime}`);
    if (served !== undefined) this.runtimes.set(instance, served);
  }

  // A session as the log has it, from the oldest event that is kept.
  kept(session, envelopes) {
    const seen = this.seen.get(session) ?? new Map();
    const positions = envelopes.map((envelope) => Number(envelope.cursor.split(':')[1]));
    const first = positions[0] ?? Infinity;
    let trimmed = 0;
    const have = new Set(positions);
    for (const position of seen.keys()) {
      if (position < first) trimmed += 1;
      else if (!have.has(position)) this.fault(`${session}: ${position} was shown and is not in the log`);
    }
    envelopes.forEach((envelope, n) => {
      const shown = seen.get(positions[n]);
      if (shown === undefined && seen.size > 0) this.fault(`${session}: ${positions[n]} is in the log and was never shown`);
      else if (shown !== undefined && shown !== hashed(JSON.stringify(envelope))) {
        this.fault(`${session}: ${positions[n]} is not what was shown`);
      }
    });
    return trimmed;
  }

  // The account, once everything is over.
  close() {
    let lost = 0;
    for (const [token, prompt] of this.prompts) {
      if (!prompt.run || this.deleted.has(prompt.session)) continue;
      if (this.endings.get(prompt.run)?.at < this.since) continue;
      const of = `prompt ${token} (${prompt.run}) in ${prompt.session}, asked ${prompt.at.toFixed(0)} s in,`;
      const { status, at } = this.endings.get(prompt.run) ?? {};
      if (status === undefined) this.fault(`${of} never ended: ${prompt.got ? 'it began' : 'nor began'}`);
      else if (status === 'completed') {
        if (prompt.got === 1 && prompt.done === 1 && prompt.next === prompt.chunks) continue;
        this.fault(`${of} is completed with ${prompt.got} beginnings, ${prompt.done} ends, ${prompt.next}/${prompt.chunks} chunks`);
      } else if (status === 'cancelled' && this.cancels.has(prompt.session)) continue;
      else if (this.excused(this.runtimes.get(prompt.session), at)) continue;
      else this.fault(`${of} ended ${status} at ${at.toFixed(0)} s, and nobody killed its agent`);
      lost += 1;
    }
    for (const [name, { receipts, decided, unsure }] of this.questions) {
      const prompt = this.prompts.get(name.replace(/-q\d+$/, ''));
      if (!prompt?.run || this.deleted.has(prompt.session)) continue;
      const { status, at } = this.endings.get(prompt.run) ?? {};
      if (at < this.since) continue;
      if (receipts.length > 0 && (decided ?? 'cancelled') === 'cancelled' && status === 'completed') {
        this.fault(`${name}: people said ${receipts[0]}, the agent heard ${decided ?? 'nothing'}`);
      }
      const unseen = receipts.length === 0 && !unsure && decided;
      if (unseen && (decided === 'allow_once' || (decided === 'reject_once' && this.blind === 0))) {
        this.fault(`${name}: the agent heard ${decided}, which nobody said`);
      }
    }
    return lost;
  }
}

const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)] ?? 0;

// Whether a measurement stays level: the middle of its last third is at most a quarter and `slack` above that of its first.
export function level(values, slack) {
  const third = Math.floor(values.length / 3);
  const [early, late] = [median(values.slice(0, third)), median(values.slice(-third))];
  return { early, late, level: third === 0 || late <= early * 1.25 + slack };
}
