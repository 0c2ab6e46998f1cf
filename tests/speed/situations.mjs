// What the page is measured with: sessions of many sizes, open requests, a folder with many changed files. All of it is real: the gateway's
// own, told by the demo agent.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { api, goesOn, newSession, output, play, prompt, says, script, tool } from '../web/session_kit.mjs';

/** What making one may take, ms. */
const LONG_MS = 600_000;
/** The agents of scripts/speed; one may have 256 requests open. */
const AGENTS = ['demo', 'demo-2', 'demo-3', 'demo-4', 'demo-5'];
/** Calls to the gateway at a time. */
const AT_ONCE = 8;

/** Does `work` for each number below `count`, a few at a time. */
async function each(/** @type {number} */ count, /** @type {(n: number) => Promise<unknown>} */ work) {
  let next = 0;
  await Promise.all(Array.from({ length: AT_ONCE }, async () => { while (next < count) await work(next++); }));
}

/** A session like those that people have: words, code, output, edits. */
function work(/** @type {number} */ events) {
  const updates = [];
  for (let n = 0; updates.length < events; n++) {
    updates.push(says(`Step ${n}: I look at \`file_${n}.rs\`.`), goesOn(' And then **more**.'));
    if (n % 5 === 0) updates.push(goesOn('\n\n```rust\nfn main() {\n    println!("x");\n}\n```\n'));
    updates.push(tool({ title: `cargo check ${n}`, kind: 'execute', content: output(`ok ${n}\nline two\n`) }));
    if (n % 3 === 0) updates.push(tool({ title: `Edit file_${n}.rs`, kind: 'edit', content: [{ type: 'diff', path: `file_${n}.rs`, oldText: 'a\nb\n', newText: `a\nb ${n}\n` }] }));
  }
  return updates.slice(0, events);
}

/** A session that was worked in, of this many events. */
export async function worked(/** @type {number} */ events) {
  const id = await newSession();
  if (events > 600) await play(id, `flood ${events - 600}`, LONG_MS);
  await play(id, script(work(Math.min(600, events))), LONG_MS);
  return id;
}

/** Until nothing runs in a session. */
export async function ended(/** @type {string} */ id, /** @type {number} */ patience) {
  for (const until = Date.now() + patience; ;) {
    const { state, queue } = await api('GET', `/v1/sessions/${id}`);
    if (state === 'idle' && !queue?.length) return;
    if (Date.now() > until) throw new Error(`the run of ${id} does not end`);
    await new Promise((resolve) => { setTimeout(resolve, 250); });
  }
}

/** Until there are this many sessions. */
export async function sessions(/** @type {number} */ count) {
  const there = await counted();
  await each(Math.max(0, count - there), async () => { await prompt(await newSession(), 'echo Nothing to do here.'); });
}

async function counted() {
  let all = 0;
  for (let cursor = ''; ;) {
    const page = await api('GET', `/v1/sessions?archived=all&cursor=${encodeURIComponent(cursor)}`);
    all += page.sessions.length;
    cursor = page.next ?? '';
    if (!cursor) return all;
  }
}

/** Until there are this many open requests, each of a session of its own, of several agents; returns how many there are. */
export async function requests(/** @type {number} */ count) {
  const open = async () => (await api('GET', '/v1/requests?state=open')).requests.length;
  const there = await open();
  await each(Math.max(0, count - there), async (n) => { const { session_id } = await api('POST', '/v1/sessions', { runtime_id: AGENTS[n % AGENTS.length] }); await prompt(session_id, `ask ${['cargo test -p part', 'git push origin topic', 'rm -rf build/part'][n % 3]}-${there + n}`); });
  const until = Date.now() + LONG_MS;
  while (await open() < count) {
    if (Date.now() > until) throw new Error(`there are no ${count} open requests`);
    await new Promise((resolve) => { setTimeout(resolve, 200); });
  }
  return open();
}

/** A session in a repository of which this many files have changed since its first prompt. */
export async function changed(/** @type {string} */ dir, /** @type {number} */ count) {
  const root = join(dir, 'changed');
  const each = (/** @type {(n: number) => string} */ text) => {
    for (let n = 0; n < count; n++) {
      mkdirSync(join(root, `part-${n % 40}`), { recursive: true });
      writeFileSync(join(root, `part-${n % 40}`, `file-${n}.txt`), text(n));
    }
  };
  const lines = (/** @type {number} */ n, /** @type {string} */ word) => Array.from({ length: 30 }, (_, line) => `line ${line} of ${n}${line === 15 ? ` ${word}` : ''}`).join('\n');
  each((n) => lines(n, 'before'));
  const git = (/** @type {string[]} */ ...args) => execFileSync('git', ['-C', root, '-c', 'user.name=speed', '-c', 'user.email=speed@localhost', ...args], { stdio: 'ignore' });
  git('init', '-q');
  git('add', '.');
  git('commit', '-qm', 'before');
  const { session_id: id } = await api('POST', '/v1/sessions', { runtime_id: 'demo', cwd: root });
  await play(id, 'echo I change them all.', LONG_MS);
  each((n) => lines(n, 'after'));
  await play(id, 'echo Done.', LONG_MS);
  return id;
}
