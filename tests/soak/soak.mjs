// The soak: everything at once against the real binary, for a while, and then an account of it. One file, as all share what is known.
//
//   node tests/soak/soak.mjs --plexus BIN [--minutes 30] [--old BIN] [--faketime LIB] [--keep]
//
// Streams, prompts, racing answers, deletes, retention, `kill -9` of the gateway and of holders, two steps of the wall clock
// by an hour (with libfaketime), and, with --old, a start on the released binary that is replaced under running agents.
// It fails if a session was served by a wrong process, an answer reached a wrong question, anything was lost, run twice, or shown
// with a gap or otherwise than the log has it, if an agent was lost or doubled, if memory or disk did not stay level, or if any of
// this was not done. Between 45 % and 85 % of the time the gateway is not killed, so that its memory can be seen to grow.
// What must hold is in `witness.mjs`, and `plants.mjs` shows that it bites. It needs Linux (/proc).
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Witness, hashed, level } from './witness.mjs';

const args = Object.fromEntries(
  process.argv.slice(2).map((word, n, all) => (word.startsWith('--') ? [word.slice(2), all[n + 1]] : [])).filter((pair) => pair[0]),
);
const MINUTES = Number(args.minutes ?? 30);
const PLEXUS = path.resolve(args.plexus ?? 'target/release/plexus');
const HERE = path.dirname(new URL(import.meta.url).pathname);
const RUNTIMES = ['one', 'two', 'three'];
const SESSIONS_WANTED = 24;
const PROMPTERS = 8;
const HOUR = 3600;
const RETAINED = 20_000_000;
const CALM = [0.45, 0.85].map((part) => part * MINUTES * 60);

const home = fs.mkdtempSync(path.join(os.tmpdir(), 'plexus-soak-'));
const clock = path.join(home, 'clock');
const state = path.join(home, 'state');
fs.mkdirSync(state, { mode: 0o700 });
fs.writeFileSync(clock, '+0s');
fs.writeFileSync(
  path.join(home, 'plexus.toml'),
  `listen = "127.0.0.1:0"\n[retention]\nmax_bytes = ${RETAINED}\n${RUNTIMES.map(
    (id) =>
      `[[runtime]]\nid = "${id}"\ndialect = "acp"\nrestart = "always"\ncommand = ${JSON.stringify([process.execPath, path.join(HERE, 'agent.mjs'), id, home])}\n`,
  ).join('')}`,
);

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const pick = (list) => list[Math.floor(Math.random() * list.length)];
const between = (low, high) => low + Math.random() * (high - low);
const started = performance.now();
const elapsed = () => (performance.now() - started) / 1000;
const note = (words) => console.log(`${elapsed().toFixed(1).padStart(7)} s  ${words}`);
const faults = [];
const known = [];
// What the released binary does wrong by itself is told, and is not what is tested here.
const fault = (words) => {
  const released = binary !== undefined && binary !== PLEXUS;
  const list = released ? known : faults;
  if (list.length < 50) note(`${released ? 'of the released binary: ' : 'FAULT  '}${words}`);
  list.push(words);
};
const count = {};
const add = (what, by = 1) => (count[what] = (count[what] ?? 0) + by);

// --- the gateway

let gateway; // the child process
let url;
let token;
let over = false; // the followers stop as well
let enough = false; // no more load
let binary; // which program serves now

async function start(program) {
  binary = program;
  const log = fs.openSync(path.join(home, 'gateway.log'), 'a');
  const faked = args.faketime
    ? { LD_PRELOAD: args.faketime, FAKETIME_TIMESTAMP_FILE: clock, FAKETIME_NO_CACHE: '1', FAKETIME_DONT_FAKE_MONOTONIC: '1' }
    : {};
  const began = performance.now();
  gateway = spawn(program, ['serve', '-c', path.join(home, 'plexus.toml')], {
    cwd: home,
    env: { ...process.env, ...faked, PLEXUS_HOME: state },
    stdio: ['ignore', log, log],
  });
  const child = gateway;
  child.on('exit', (code, signal) => {
    if (!child.meant && !over) fault(`the gateway ended by itself: ${code ?? signal}`);
  });
  for (;;) {
    try {
      const info = JSON.parse(fs.readFileSync(path.join(state, 'gateway.json'), 'utf8'));
      if (info.pid === child.pid) {
        url = info.url.replace(/\/$/, '');
        token = fs.readFileSync(path.join(state, 'token'), 'utf8').trim();
        const ready = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(2000) });
        if (ready.ok) break;
      }
    } catch {}
    if (performance.now() - began > 60_000) throw new Error('the gateway did not start within 60 s');
    await sleep(20);
  }
  add('starts');
  return performance.now() - began;
}

const kill = (child) =>
  new Promise((done) => {
    child.meant = true;
    child.once('exit', done);
    child.kill('SIGKILL');
  });

async function call(method, where, body, headers = {}, patience = 15_000) {
  const response = await fetch(url + where, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(body ? { 'content-type': 'application/json' } : {}), ...headers },
    body: body && JSON.stringify(body),
    signal: AbortSignal.timeout(patience),
  });
  const text = await response.text();
  return { status: response.status, body: text ? JSON.parse(text) : null };
}

// The same call under one key until the gateway has said what became of it.
async function insist(method, where, body, key) {
  for (let tries = 0; tries < (enough ? 50 : 500); tries += 1) {
    try {
      const answer = await call(method, where, body, { 'idempotency-key': key });
      if (![503, 507, 429].includes(answer.status)) return answer;
    } catch {}
    await sleep(200);
  }
  return null;
}

// --- what is known, and what must hold

// An instance of the agent is named after its process.
const lives = (instance) => agents().some(({ pid }) => instance.startsWith(`i${pid}x`));
const witness = new Witness({ fault, now: elapsed, lives });
const sessions = new Set();

// The agents that run, by runtime.
function agents() {
  const found = [];
  for (const pid of fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const words = fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
      if (words[3] === home && words[1]?.endsWith('agent.mjs')) found.push({ pid: Number(pid), runtime: words[2] });
    } catch {}
  }
  return found;
}

function followed(name, cursor = 'now') {
  const follower = { name, cursor, last: -1, seqs: new Map(), hash: 0, seen: 0, at: 0 };
  const event = (envelope) => {
    const position = Number(envelope.cursor.split(':')[1]);
    if (position <= follower.last) fault(`${name}: ${envelope.cursor} came after ${follower.last}`);
    follower.last = position;
    follower.seen += 1;
    follower.hash = hashed(JSON.stringify(envelope), follower.hash);
    follower.at = Date.parse(envelope.at);
    const run = `${envelope.session_id}/${envelope.run_id}`;
    const seq = follower.seqs.get(run);
    if (seq !== undefined && envelope.seq !== seq + 1) fault(`${name}: ${run} went from ${seq} to ${envelope.seq}`);
    follower.seqs.set(run, envelope.seq);
    if (envelope.kind === 'run_ended') follower.seqs.delete(run);
    if (name === 'first') judge(envelope);
  };
  (async () => {
    while (!over) {
      const abort = new AbortController();
      try {
        const headers = { authorization: `Bearer ${token}`, accept: 'text/event-stream' };
        const response = await fetch(`${url}/v1/events?after=${encodeURIComponent(follower.cursor)}`, { headers, signal: abort.signal });
        let rest = '';
        let quiet = setTimeout(() => abort.abort(), 40_000);
        const decoder = new TextDecoder();
        for await (const bytes of response.body) {
          clearTimeout(quiet);
          quiet = setTimeout(() => abort.abort(), 40_000);
          rest += decoder.decode(bytes, { stream: true });
          const parts = rest.split('\n\n');
          rest = parts.pop();
          for (const part of parts) {
            const kind = /^event: (.*)$/m.exec(part)?.[1];
            const data = /^data: (.*)$/m.exec(part)?.[1];
            if (!data) continue;
            const value = JSON.parse(data);
            if (kind === 'hello' && follower.cursor !== 'now' && value.resume !== 'ok') {
              fault(`${name}: resume is ${value.resume} at ${follower.cursor}, oldest ${value.oldest}, head ${value.head}`);
            }
            if (kind === 'hello' && follower.cursor === 'now') follower.cursor = value.head;
            if (value.cursor && value.kind) {
              event(value);
              follower.cursor = value.cursor;
            }
          }
        }
        clearTimeout(quiet);
      } catch {}
      await sleep(100);
    }
  })();
  return follower;
}

function judge(envelope) {
  const { kind, event } = envelope;
  witness.event(envelope);
  if (kind !== 'request_opened') return;
  const question = /echo (\S+)/.exec(event.display)?.[1];
  if (!question && binary !== PLEXUS) return blind(event);
  if (!question) return fault(`a question is shown without its command: ${JSON.stringify(event).slice(0, 300)}`);
  answer(event, question);
  if (Math.random() < 0.6) answer(event, question);
}

// The released binary shows some questions without their command: it is not what is tested here.
async function blind(request) {
  await insist('POST', `/v1/requests/${request.request_id}/answer`, { option_id: 'reject_once' }, request.request_id);
  witness.blind += 1;
  add('blind questions of the released binary');
}

async function answer(request, question) {
  const known = witness.question(question);
  await sleep(between(0, 400));
  const option = pick(['allow_once', 'reject_once']);
  const key = Math.random().toString(36).slice(2);
  const receipt = await insist('POST', `/v1/requests/${request.request_id}/answer`, { option_id: option, digest: request.digest }, key);
  if (!receipt) {
    known.unsure = true;
    return;
  }
  add(`answers ${receipt.status}`);
  if (receipt.status === 200) {
    if (receipt.body.option_id !== option) fault(`${question}: answered ${option}, receipt says ${receipt.body.option_id}`);
    witness.won(question, option);
  } else if (![404, 409, 410].includes(receipt.status)) {
    fault(`${question}: an answer got ${receipt.status} ${JSON.stringify(receipt.body).slice(0, 200)}`);
  }
}

// --- what goes on

async function opener() {
  while (!enough) {
    if (sessions.size < SESSIONS_WANTED) {
      try {
        const { status, body } = await call('POST', '/v1/sessions', { runtime_id: pick(RUNTIMES), title: 'soak' }, {}, 30_000);
        add(`opens ${status}`);
        if (status === 201) {
          sessions.add(body.session_id);
          witness.opened(body.session_id, body.runtime_id);
        } else if (![409, 503, 504].includes(status)) fault(`opening a session got ${status} ${JSON.stringify(body).slice(0, 200)}`);
      } catch {
        add('opens cut');
      }
    }
    await sleep(200);
  }
}

async function prompter() {
  for (let n = 0; !enough; n += 1) {
    const session = pick([...sessions]);
    if (!session) {
      await sleep(100);
      continue;
    }
    const token = `t${Math.random().toString(36).slice(2, 10)}`;
    const script = { token, chunks: Math.floor(between(1, 200)), asks: pick([0, 0, 1, 2]), ms: 1 };
    witness.asks(token, { session, chunks: script.chunks });
    const answer = await insist('POST', `/v1/sessions/${session}/prompt`, { text: JSON.stringify(script) }, token);
    witness.answered(token, answer?.status, answer?.body?.run_id, JSON.stringify(answer?.body ?? null).slice(0, 200));
    add(`prompts ${answer?.status}`);
    if (Math.random() < 0.03) {
      witness.cancels.add(session);
      await call('POST', `/v1/sessions/${session}/cancel`, {}).catch(() => {});
    }
    await sleep(between(50, 500));
  }
}

async function deleter() {
  while (!enough) {
    await sleep(between(3000, 8000));
    if (enough) return;
    const session = pick([...sessions]);
    if (!session) continue;
    sessions.delete(session);
    witness.deleted.add(session);
    const gone = await insist('DELETE', `/v1/sessions/${session}`, null, `d${session}`);
    witness.seen.delete(session);
    add(`deletes ${gone?.status}`);
    if (gone && ![204, 404, 409].includes(gone.status)) fault(`deleting ${session} got ${gone.status} ${JSON.stringify(gone.body)}`);
  }
}

// Sessions whose opening was cut short are there, too.
async function found() {
  const { body } = await call('GET', '/v1/sessions').catch(() => ({ body: null }));
  for (const { session_id: id, runtime_id: runtime } of body?.sessions ?? []) {
    if (witness.deleted.has(id) || sessions.has(id)) continue;
    sessions.add(id);
    witness.opened(id, runtime);
  }
}

async function killer() {
  while (!enough) {
    await sleep(between(15_000, 40_000));
    if (enough) return;
    const calm = elapsed() > CALM[0] && elapsed() < CALM[1];
    if (calm) continue;
    const upgrade = elapsed() > MINUTES * 6 && binary !== PLEXUS;
    if (upgrade) note('upgrade: the released binary is replaced under running agents');
    const before = agents();
    await kill(gateway);
    const ms = await start(upgrade ? PLEXUS : binary);
    add('kills of the gateway');
    if (upgrade) {
      add('upgrades');
      witness.since = elapsed();
    }
    note(`the gateway was killed; the next was ready after ${ms.toFixed(0)} ms`);
    await found();
    // Agents outlive their gateway, and nobody starts others beside them.
    await sleep(2000);
    const after = new Set(agents().map(({ pid }) => pid));
    for (const { pid, runtime } of before) {
      if (!after.has(pid) && !witness.excused(runtime, elapsed())) fault(`the agent ${pid} of ${runtime} did not outlive its gateway`);
    }
  }
}

// Agents of one runtime: never two for longer than one takes to go.
async function census() {
  const doubled = new Map();
  while (!over) {
    await sleep(3000);
    const all = agents();
    for (const id of RUNTIMES) {
      const here = all.filter(({ runtime }) => runtime === id);
      doubled.set(id, here.length > 1 ? (doubled.get(id) ?? 0) + 1 : 0);
      if (doubled.get(id) === 5) fault(`${id} has ${here.length} agents: ${here.map(({ pid }) => pid)}`);
    }
  }
}

const parentOf = (pid) => Number(fs.readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /, '').split(' ')[1]);
const commandOf = (pid) => fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').join(' ');

async function holderKiller() {
  while (!enough) {
    await sleep(between(60_000, 120_000));
    if (enough) return;
    try {
      const { body } = await call('GET', '/v1/runtimes');
      const runtime = pick(body.runtimes.filter((known) => known.pid));
      const holder = parentOf(runtime.pid);
      if (!commandOf(holder).includes('hold')) continue;
      witness.killed.push({ runtime: runtime.runtime_id, at: elapsed() });
      process.kill(holder, 'SIGKILL');
      add('kills of holders');
      note(`the holder of ${runtime.runtime_id} was killed`);
    } catch {}
  }
}

async function steps() {
  if (!args.faketime) return;
  for (const [when, offset] of [[MINUTES * 60 * 0.35, `+${HOUR}s`], [MINUTES * 60 * 0.65, '+0s']]) {
    await sleep(Math.max(0, when * 1000 - elapsed() * 1000));
    const before = followers[0].at;
    fs.writeFileSync(clock, offset);
    note(`the wall clock was stepped to ${offset}`);
    await sleep(5000);
    const moved = Math.abs(followers[0].at - before) / 1000;
    if (moved < HOUR - 600 || moved > HOUR + 600) fault(`the clock of events moved by ${moved.toFixed(0)} s`);
    else add('steps of the clock');
  }
}

const rows = []; // {at, pid, rss, disk, holders}
const bytesBelow = (dir) =>
  fs.readdirSync(dir, { withFileTypes: true }).reduce((sum, entry) => {
    try {
      const where = path.join(dir, entry.name);
      return sum + (entry.isDirectory() ? bytesBelow(where) : fs.statSync(where).blocks * 512);
    } catch {
      return sum;
    }
  }, 0);

const rssOf = (pid) => Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) * 1024;

async function meter() {
  while (!over) {
    await sleep(5000);
    try {
      const holders = Math.max(0, ...agents().map(({ pid }) => rssOf(parentOf(pid))));
      rows.push({ at: elapsed(), pid: gateway.pid, rss: rssOf(gateway.pid), disk: bytesBelow(state), holders });
    } catch {}
  }
}

let slowest = 0;
async function pinger() {
  while (!over) {
    const began = performance.now();
    const pid = gateway.pid;
    try {
      const { status } = await call('GET', '/v1/me');
      if (status === 200 && pid === gateway.pid) slowest = Math.max(slowest, performance.now() - began);
    } catch {}
    await sleep(250);
  }
}

// --- the account

await start(args.old ? path.resolve(args.old) : PLEXUS);
note(`${args.old ? 'released binary first; ' : ''}state in ${state}`);
const followers = [followed('first')];
while (followers[0].cursor === 'now') await sleep(20);
followers.push(followed('second', followers[0].cursor));
opener();
for (let n = 0; n < PROMPTERS; n += 1) prompter();
const deleting = deleter();
killer();
holderKiller();
steps();
meter();
census();
pinger();
await sleep(MINUTES * 60_000);

note('no more prompts; what is under way may finish');
enough = true;
// What is listed below is looked at one by one: nothing is deleted meanwhile.
await deleting;
const deadline = performance.now() + 120_000;
for (;;) {
  const { body } = await call('GET', '/v1/sessions').catch(() => ({ body: null }));
  const busy = body?.sessions.filter((session) => session.state === 'running' || session.state === 'waiting') ?? [];
  // A question that was opened while nobody followed is answered here.
  const { body: open } = await call('GET', '/v1/requests?state=open').catch(() => ({ body: null }));
  for (const request of open?.requests ?? []) {
    await insist('POST', `/v1/requests/${request.request_id}/answer`, { option_id: 'reject_once', digest: request.digest }, `end-${request.request_id}`);
  }
  if (body && busy.length === 0) break;
  if (performance.now() > deadline) {
    for (const session of busy) fault(`session ${session.session_id} of ${session.runtime_id} is still ${session.state} (${session.open_requests} open)`);
    break;
  }
  await sleep(500);
}
// Both followers to the end of the log: what they saw is the same.
const until = performance.now() + 30_000;
for (const follower of followers) {
  for (;;) {
    const { body } = await call('GET', `/v1/events?after=${encodeURIComponent(follower.cursor)}&limit=1`).catch(() => ({ body: null }));
    if (body?.events.length === 0) break;
    if (performance.now() > until) {
      fault(`${follower.name} did not come to the end of the log`);
      break;
    }
    await sleep(200);
  }
}
over = true;
const [first, second] = followers;
if (first.seen !== second.seen || first.hash !== second.hash) fault(`the followers saw ${first.seen} and ${second.seen} events, or others`);

// The log itself is the witness of what was lost.
let trimmed = 0;
const listed = (await call('GET', '/v1/sessions')).body.sessions;
for (const { session_id: id } of listed) {
  if (witness.deleted.has(id)) fault(`${id} was deleted and is listed`);
  const kept = [];
  for (let after = ''; ; ) {
    const { body } = await call('GET', `/v1/sessions/${id}/events?limit=1000&after=${encodeURIComponent(after)}`);
    kept.push(...body.events);
    if (body.events.length === 0 || body.next === after) break;
    after = body.next;
  }
  trimmed += witness.kept(id, kept);
}
const lost = witness.close();
if (known.length > 0) note(`faults of the released binary before the upgrade: ${known.length}`);
note(`events that retention took: ${trimmed}`);

const mib = (bytes) => `${(bytes / 1048576).toFixed(1)} MiB`;
const calm = rows.filter((row) => row.at > CALM[0] + 60 && row.at < CALM[1]).filter((row, _, all) => row.pid === all.at(-1).pid);
const warm = rows.filter((row) => row.at > 120);
for (const [what, list, slack] of [['rss', calm, 8], ['holders', calm, 4], ['disk', warm, 16]]) {
  const values = list.map((row) => row[what]);
  const { early, late, level: stays } = level(values, slack * 1048576);
  note(`${what}: ${mib(early)} early, ${mib(late)} late, at most ${mib(Math.max(0, ...rows.map((row) => row[what])))} (${values.length} measurements)`);
  if (!stays) fault(`${what} is not level`);
}
note(`slowest answer to a ping between kills: ${slowest.toFixed(0)} ms`);
note(`events seen: ${followers.map((follower) => follower.seen).join(', ')}; prompts known ${witness.prompts.size}, lost ${lost}; questions ${witness.questions.size}`);
note(JSON.stringify(count));
// A soak that did not do it has shown nothing.
const due = ['prompts 202', 'answers 200', 'answers 409', 'deletes 204', 'kills of the gateway'];
if (MINUTES >= 3) due.push('kills of holders');
if (args.old) due.push('upgrades');
if (args.faketime && MINUTES >= 3) due.push('steps of the clock');
for (const what of due) if (!count[what]) fault(`there were no ${what}`);
if (MINUTES >= 10 && trimmed === 0) fault('retention took nothing');
for (const words of ['panicked', 'unattended', 'cannot be read']) {
  const n = fs.readFileSync(path.join(home, 'gateway.log'), 'utf8').split(words).length - 1;
  if (n > 0) fault(`the gateway's log says "${words}" ${n} times`);
}
if (faults.length > 0) {
  const ended = fs.readFileSync(path.join(home, 'gateway.log'), 'utf8').slice(-4000);
  console.log(`gateway.log ends with:\n${ended}`);
}
gateway.meant = true;
for (const id of RUNTIMES) await call('DELETE', `/v1/runtimes/${id}`).catch(() => {});
await sleep(2000);
for (const { pid, runtime } of agents()) {
  fault(`the agent ${pid} of ${runtime} runs on though its runtime was deleted`);
  process.kill(pid, 'SIGKILL');
}
gateway.kill('SIGTERM');
await sleep(2000);
gateway.kill('SIGKILL');
if (!('keep' in args) && faults.length === 0) fs.rmSync(home, { recursive: true, force: true });
console.log(`${faults.length === 0 ? 'ok' : 'FAILED'}: ${faults.length} faults in ${MINUTES} minutes${faults.length ? `; everything is kept in ${home}` : ''}`);
process.exit(faults.length === 0 ? 0 : 1);
