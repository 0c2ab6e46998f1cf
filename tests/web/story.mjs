// The main story of the page, in any engine and by any hand: sign in, a new session, its stream and its diff, a request that is allowed, one
// that somebody else answers first, a reload, the gateway killed and started again, the network gone and back.
//
//   node tests/web/story.mjs ENGINE MANNER     engines.mjs and hands.mjs say which there are
//   PLEXUS_BIN     the program; it runs on a port of its own
//   PLEXUS_DIR     an empty folder for it; its runtimes may be left running there if this is killed
//   PLEXUS_SHOTS   a directory for pictures; none are taken if not set
//   and what kit.mjs and engines.mjs read
//
// Prints a line `ok ...` for each step; the first failure ends it with exit code 1.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { open } from './engines.mjs';
import { person } from './hands.mjs';
import { caller, DESK, need, ok, until } from './kit.mjs';
import { relay } from './relay.mjs';

const [engine = 'chromium', manner = 'pointer'] = process.argv.slice(2);
const exe = resolve(need('PLEXUS_BIN'));
const dir = resolve(need('PLEXUS_DIR'));
const shots = process.env.PLEXUS_SHOTS;
if (shots) mkdirSync(shots, { recursive: true });

// --- the gateway, which is killed and started again ------------------------------------------------------------------------------------------

const [home, work] = [join(dir, 'home'), join(dir, 'work')];

/** Starts the gateway; on the port that it had, if it had one. */
async function gateway(port = 0) {
  const config = join(dir, 'plexus.toml');
  writeFileSync(config, `listen = "127.0.0.1:${port}"\n[[runtime]]\nid = "demo"\ndialect = "acp"\ncommand = ${JSON.stringify([exe, 'agent', 'demo'])}\n`);
  const child = spawn(exe, ['serve', '-c', config], { cwd: dir, stdio: ['ignore', 'ignore', openSync(join(dir, 'stderr'), 'a')], env: { ...process.env, PLEXUS_HOME: home, HOME: work, NO_COLOR: '1', CODEX_HOME: join(dir, 'codex') } });
  const url = await until('the gateway', async () => {
    assert.equal(child.exitCode, null, `the gateway ended: ${readFileSync(join(dir, 'stderr'), 'utf8')}`);
    try {
      const { pid, url: at } = JSON.parse(readFileSync(join(home, 'gateway.json'), 'utf8'));
      return pid === child.pid && (await fetch(`${at.replace(/\/$/, '')}/healthz`)).ok && at.replace(/\/$/, '');
    } catch { return null; }
  });
  const ended = new Promise((done) => { child.once('exit', done); });
  return { url, port: Number(new URL(url).port), kill: async () => { child.kill('SIGKILL'); await ended; } };
}

// --- what is pressed -------------------------------------------------------------------------------------------------------------------------

const SESSIONS = { css: 'header.rail a[href="#/sessions"]', role: 'link', name: 'Sessions' };
const NEW = { css: 'plexus-sessions #new, #new', role: 'button', name: 'New session' };
const FIRST_PROMPT = { css: '#say', role: 'textbox', name: 'What is to be done?' };
const TITLE = { css: 'input[name="title"]', role: 'textbox', name: /^Title/ };
const START = { css: '#start', role: 'button', name: 'Start' };
const PROMPT = { css: 'textarea#prompt', role: 'textbox', name: 'Message to the agent' };
const SEND = { css: '#send', role: 'button', name: /^(?:Send|Queue)/ };
const ALLOW = { css: 'button.answer[data-key="a"]', ready: '.actions[data-arming="false"] button.answer[data-key="a"]', role: 'button', name: /^Allow once/, key: ' ' };
const CHANGES = { css: 'a#changes', role: 'link', name: 'Changes of the files' };
/** Longer than a card that has just appeared ignores presses, ms: whoever does not see it must not be faster. */
const ARMED_MS = 650;

mkdirSync(work, { recursive: true });
for (const args of [['init', '-q'], ['-c', 'user.name=A', '-c', 'user.email=a@example.org', 'commit', '-q', '--allow-empty', '-m', 'first']]) execFileSync('git', args, { cwd: work, env: { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_SYSTEM: '/dev/null' } });
let server = await gateway();
const api = caller(server.url, () => readFileSync(join(home, 'token'), 'utf8').trim());
const door = await relay(server.url);
const began = Date.now();
let failed = false;
/** @type {import('./engines.mjs').Screen | undefined} */
let screen;
let step = 0;
/** A step is done. */
async function done(/** @type {string} */ what) {
  step += 1;
  if (shots) await screen?.shoot(join(shots, `story-${engine}-${manner}-${String(step).padStart(2, '0')}.png`));
  ok(`${what} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
}
try {
  screen = await open(engine, DESK);
  const me = person(manner, screen);
  /** What the page itself complained of since the last look; a page that is loaded anew is watched anew. */
  const watch = () => /** @type {import('./engines.mjs').Screen} */ (screen).run(() => {
    const seen = /** @type {any} */ (window).plexusSeen ??= [];
    if (!/** @type {any} */ (window).plexusWatched) {
      /** @type {any} */ (window).plexusWatched = true;
      addEventListener('error', (event) => seen.push(String(event.error?.stack ?? event.message)));
      addEventListener('unhandledrejection', (event) => seen.push(`not handled: ${event.reason?.stack ?? event.reason}`));
      document.addEventListener('securitypolicyviolation', (event) => seen.push(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`));
    }
    return seen.splice(0);
  });
  const quiet = async () => assert.deepEqual(await watch(), [], 'the page complains');
  const request = async () => (await until('an open request', async () => (await api('GET', '/v1/requests?state=open')).requests[0]));
  const prompts = async (/** @type {string} */ text) => { await me.writes(PROMPT, text); await me.press(manner === 'keyboard' ? { ...PROMPT, key: 'Enter' } : SEND); };
  const armed = () => new Promise((go) => { setTimeout(go, ARMED_MS); });
  await done(`${engine} is open`);

  // --- sign in ---
  const { code } = await api('POST', '/v1/codes', { scopes: ['watch', 'prompt', 'approve', 'admin'], ttl: 120 });
  await screen.go(`${door.base}/#code=${code}`);
  await me.sees('No pending requests');
  await quiet();
  assert.ok(!(await screen.run(() => location.href)).includes(code), 'the code stays in the address');
  await done('sign in: by a link, whose code leaves the address');

  // --- a new session, its stream, its diff ---
  await me.press(SESSIONS);
  await me.press(NEW);
  await me.writes(FIRST_PROMPT, 'stream 12 ;; diff ;; echo the-end-of-it');
  await me.writes(TITLE, 'The story');
  await me.press(START);
  await me.sees('The story');
  await me.sees('chunk-0012');
  await me.sees('demo.txt');
  await me.sees('the-end-of-it');
  const { session_id } = await until('the session', async () => (await api('GET', '/v1/sessions')).sessions[0]);
  const idle = () => until('the end of the run', async () => (await api('GET', `/v1/sessions/${session_id}`)).state === 'idle');
  await idle();
  await done('session: a new one, whose stream and diff appear');

  // --- a request that is allowed, and what changed meanwhile ---
  await prompts('ask make deploy');
  const first = await request();
  // The list comes once the folder was looked at for the run.
  await api('GET', `/v1/sessions/${session_id}/changes`);
  writeFileSync(join(work, 'deployed.txt'), 'a line of the deployment\n');
  await me.sees('make deploy');
  await armed();
  await me.press(ALLOW);
  await me.hears(/Allowed once · you/);
  await me.hears('allowed (allow_once): make deploy');
  const { receipt } = await api('GET', `/v1/requests/${first.request_id}`);
  assert.equal(receipt.option_id, 'allow_once');
  await idle();
  await done('request: allowed, and it is said by whom');
  await me.press(CHANGES);
  await me.sees('deployed.txt');
  await me.sees('a line of the deployment');
  await done('changes: the file that changed during the run');
  await screen.run(() => history.back());
  await me.sees('allowed (allow_once): make deploy');

  // --- somebody else is faster: the answer is on its way while theirs is taken ---
  const other = await api('POST', '/v1/devices', { name: 'Kitchen tablet', scopes: ['watch', 'approve'] });
  await prompts('ask make release');
  const second = await request();
  await me.sees('make release');
  await armed();
  const letGo = door.hold(/\/v1\/requests\/[^/]+\/answer$/);
  await me.press(ALLOW);
  await until('the answer on its way', async () => letGo.held > 0);
  const theirs = await fetch(`${server.url}/v1/requests/${second.request_id}/answer`, { method: 'POST', headers: { Authorization: `Bearer ${other.token}`, 'Content-Type': 'application/json' }, body: JSON.stringify({ option_id: 'reject_once', digest: second.digest }) });
  assert.equal(theirs.status, 200, await theirs.text());
  letGo.go();
  await me.hears(/Denied · Kitchen tablet/);
  await me.hears('Your answer came too late and was not used.');
  await me.sees('rejected (reject_once): make release');
  await quiet();
  await done('race: lost, and it is said to whom');

  // --- a reload ---
  await idle();
  await screen.reload();
  await me.sees('rejected (reject_once): make release');
  await me.sees('Live', '.link');
  await quiet();
  await done('reload: the same, still signed in');

  // --- the gateway is killed, and comes back ---
  await server.kill();
  await me.hears('Last updated at');
  await me.sees('rejected (reject_once): make release');
  await done('gateway: killed; the page says how old it is, and keeps what it shows');
  server = await gateway(server.port);
  await me.hears('Connected again.');
  await prompts('echo after-the-restart');
  await me.sees('after-the-restart');
  await idle();
  await done('gateway: back; the session goes on');

  // --- no network: left open, and opened anew ---
  await until('a page that the service worker has', () => /** @type {import('./engines.mjs').Screen} */ (screen).run(() => Boolean(navigator.serviceWorker.controller)));
  door.turn('cut');
  await me.hears('Last updated at');
  await api('POST', `/v1/sessions/${session_id}/prompt`, { text: 'echo while-you-were-away' });
  await idle();
  await screen.reload();
  await me.hears(/offline/i);
  await done('offline: the page opens without a network, and says so');
  door.turn('through');
  await me.sees('while-you-were-away');
  await me.sees('Live', '.link');
  await me.hears('Connected again.');
  await quiet();
  await done('offline: back, with what was missed');
  console.log(`story ${engine} ${manner}: ${((Date.now() - began) / 1000).toFixed(1)} s`);
} catch (error) {
  failed = true;
  console.error(`not ok ${engine} ${manner}\n`, error);
  if (shots) await screen?.shoot(join(shots, `story-${engine}-${manner}-failure.png`)).catch(() => {});
} finally {
  await screen?.close();
  door.close();
  // The agent outlives the gateway: it is ended first.
  await api('DELETE', '/v1/runtimes/demo').catch(() => {});
  await server.kill();
}
process.exit(failed ? 1 : 0);
