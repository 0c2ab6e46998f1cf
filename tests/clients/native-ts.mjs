// The gateway's own TypeScript client on the native WebSocket; node runs its source as it is. Over the sockets of `ws`,
// because those can be cut. `PLEXUS_VIA` is another way to the gateway, for those that want to cut it there.
import { Plexus } from '../../clients/typescript/src/index.ts';
import { pinned, play, saw, session, token, url } from './stage.mjs';

const { default: WebSocket } = await pinned('ws');
let up = true;
let socket;

/** A socket that can be cut, and stays cut until the story says so. */
class Cut extends WebSocket {
  constructor(...about) {
    if (!up) throw new Error('the network is down');
    super(...about);
    socket = this;
  }
}

const plexus = new Plexus({
  url: process.env.PLEXUS_VIA ?? url,
  token,
  name: 'native-ts',
  WebSocket: Cut,
  patience: { first: 20, longest: 200 },
});
const asked = [];
let lost = () => {};

plexus.listen((change) => {
  if (change.type === 'lost') lost();
  if (change.type === 'closed' && change.error !== null) saw({ error: String(change.error) });
});

const attachment = plexus.attach(session, { from: 'start' });

attachment.listen((heard) => {
  if (heard.type === 'live') return saw({ ready: true });
  if (heard.type !== 'event') return;
  const { kind, event } = heard.event;
  switch (kind) {
    case 'agent_message_chunk':
      if (event.content.type === 'text') saw({ text: event.content.text });
      break;
    case 'user_message_chunk':
      if (event.content.type === 'text') saw({ user: event.content.text });
      break;
    case 'request_opened':
      asked.push(event);
      saw({ asked: event.title, id: event.request_id });
      break;
    case 'request_resolved': {
      const at = asked.findIndex((request) => request.request_id === event.request_id);
      if (at >= 0) asked.splice(at, 1);
      saw({ resolved: event.request_id, by: event.resolved_by.name, allow: event.ok ?? null });
      break;
    }
    case 'run_ended':
      saw({ ended: event.stop_reason ?? event.status });
      break;
  }
});

play({
  prompt: ({ text }) => plexus.prompt(session, text),
  answer: async ({ allow }) => {
    const request = asked[0] ?? plexus.requests.open.values().next().value;
    if (request === undefined) throw new Error('nothing is asked');
    const offer = request.options.find(({ kind }) => kind === (allow ? 'allow_once' : 'reject_once'));
    await plexus.answer(request, offer === undefined ? { ok: allow } : { option_id: offer.id });
  },
  cancel: () => plexus.cancel(session),
  drop: async () => {
    const gone = new Promise((resolve) => (lost = resolve));
    up = false;
    socket.terminate();
    await gone;
    saw({ dropped: true });
  },
  resume: () => {
    up = true;
    plexus.wake();
  },
  quit: () => {
    plexus.close();
    process.exit(0);
  },
});
