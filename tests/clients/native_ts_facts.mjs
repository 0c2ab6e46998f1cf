// What the TypeScript client promises beside following, on its own against a gateway: a line of output for each thing that
// was seen to hold; the story names them.
import assert from 'node:assert/strict';

import { Plexus, PlexusError } from '../../clients/typescript/src/index.ts';
import { pinned, session, token, url } from './stage.mjs';

const said = (what) => process.stdout.write(`${what}\n`);
const until = (listen, wanted) =>
  new Promise((resolve) => {
    const end = listen((what) => {
      const found = wanted(what);
      if (found) resolve(found);
      if (found) queueMicrotask(() => end());
    });
  });

// Node's own WebSocket: nothing is injected.
const one = new Plexus({ url, token, name: 'one' });
const two = new Plexus({ url, token, name: 'two' });

assert.deepEqual((await one.runtimes()).map(({ runtime_id }) => runtime_id), ['demo']);
assert.ok((await one.sessions()).some(({ session_id }) => session_id === session));
said('lists');

// A question is seen by both; the first answer wins, the other hears who won, and that is no error.
const mine = one.attach(session, { from: 'now' });
const all = two.attach('*', { from: 'now' });
await Promise.all([mine.live, all.live]);
const opened = Promise.all(
  [one, two].map((client) => until((l) => client.requests.listen(l), (change) => change.type === 'opened' && change.request)),
);
const resolved = until((l) => two.requests.listen(l), (change) => change.type === 'resolved' && change);
const { run_id, queued } = await one.prompt(session, [{ type: 'text', text: 'ask ;; echo done' }]);
assert.equal(queued, false);
const [request, same] = await opened;
assert.equal(request.request_id, same.request_id);
assert.equal(one.requests.open.size, 1);
const won = await one.answer(request, { ok: true }, 'key-1');
assert.deepEqual([won.won, won.state, won.ok], [true, 'answered', true]);
assert.deepEqual(await one.answer(request, { ok: true }, 'key-1'), won);
const lost = await two.answer(same, { ok: false });
assert.deepEqual([lost.won, lost.ok, lost.resolved_by], [false, true, won.resolved_by]);
assert.equal((await resolved).resolution.resolved_by.name, won.resolved_by.name);
assert.deepEqual([one.requests.open.size, two.requests.open.size], [0, 0]);
said('first answer wins');

let words = '';
for await (const event of mine.events()) {
  if (event.kind === 'agent_message_chunk') words += event.event.content.text;
  if (event.kind === 'run_ended' && event.run_id === run_id) break;
}
assert.match(words, /allowed \(allow_once\).*done$/s);
said('iterates');

// History, page by page, is the log.
const past = [];
for (let after; ; ) {
  const page = await one.history(session, { limit: 3, ...(after === undefined ? {} : { after }) });
  if (page.events.length === 0) break;
  past.push(...page.events);
  after = page.next;
}
assert.throws(() => two.attach('*'), (error) => error instanceof PlexusError && error.code === 'attached');
all.detach();
// What was followed before is not heard of again: the new attachment begins where it says.
const replay = two.attach('*', { from: 'start' });
const seen = [];
replay.listen((heard) => heard.type === 'event' && heard.event.session_id === session && seen.push(heard.event.cursor));
await replay.live;
assert.deepEqual(seen, past.map(({ cursor }) => cursor));
said('history is the log');

// A request that ends for another reason than an answer has a receipt too.
const late = until((l) => one.requests.listen(l), (change) => change.type === 'opened' && change.request);
const asking = await one.prompt(session, 'ask');
const open = await late;
assert.equal(await one.cancel(session), asking.run_id);
assert.deepEqual([(await two.answer(open.request_id, { ok: true })).state], ['withdrawn']);
said('late answers');

await assert.rejects(one.prompt(session, []), (error) => error instanceof PlexusError && error.rpc === -32602);
await assert.rejects(one.answer('q_nothing', { ok: true }), { code: 'request_not_found' });
const nowhere = one.attach('s_nothing');
await assert.rejects(nowhere.live, { code: 'session_not_found' });
// A cursor of another log: a snapshot comes, then what follows it.
replay.detach();
const reset = two.attach(session, { after: 'zzzz:7' });
const heard = [];
reset.listen(({ type, ...what }) => heard.push(type === 'hello' ? what.hello.resume : type));
await reset.live;
assert.deepEqual(heard.filter((type) => type !== 'event'), ['reset', 'snapshot', 'live']);
said('snapshots');

// What opened and what ended while it was away is known once it is back.
const { default: WebSocket } = await pinned('ws');
let socket;
class Cut extends WebSocket {
  constructor(...about) {
    super(...about);
    socket = this;
  }
}
const away = new Plexus({ url, token, name: 'away', WebSocket: Cut, patience: { first: 600_000, longest: 600_000 } });
const { session_id: elsewhere } = await one.newSession({ runtime_id: 'demo' });
await one.prompt(elsewhere, 'ask ;; ask ;; hang');
const before = until((l) => away.requests.listen(l), (change) => change.type === 'opened' && change.request);
await away.attach(elsewhere).live;
const old = await before;
const cut = until((l) => away.listen(l), (change) => change.type === 'lost');
socket.terminate();
await cut;
const changes = [];
const both = until((l) => away.requests.listen(l), (change) => changes.push(change) === 2);
await two.answer(old.request_id, { ok: false });
while ((await one.sessions()).find(({ session_id }) => session_id === elsewhere).requests?.[0] === undefined);
away.wake();
await both;
const ofType = (wanted) => changes.find(({ type }) => type === wanted);
assert.equal(ofType('resolved').resolution.ok, false);
assert.equal(ofType('resolved').request.request_id, old.request_id);
assert.notEqual(ofType('opened').request.request_id, old.request_id);
assert.deepEqual([...away.requests.open.keys()], [ofType('opened').request.request_id]);
away.close();
said('away');

// A token that is no use ends it for good.
const bad = new Plexus({ url, token: 'plx_wrong', patience: { first: 5 } });
assert.equal((await until((l) => bad.listen(l), (change) => change.type === 'closed' && change)).error.code, 'unauthorized');
await assert.rejects(bad.sessions(), { code: 'unauthorized' });
const admin = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
const device = await (
  await fetch(`${url}/v1/devices`, { method: 'POST', headers: admin, body: JSON.stringify({ name: 'phone', scopes: ['watch'] }) })
).json();
const phone = new Plexus({ url, token: device.token, name: 'phone' });
await phone.attach(session).live;
await assert.rejects(phone.prompt(session, 'no'), { code: 'scope_missing' });
const closed = until((l) => phone.listen(l), (change) => change.type === 'closed' && change);
await fetch(`${url}/v1/devices/${device.device_id}`, { method: 'DELETE', headers: { authorization: admin.authorization } });
assert.equal((await closed).error.code, 'revoked');
said('revoked');

one.close();
two.close();
await assert.rejects(one.sessions(), { code: 'closed' });
said('closed');
