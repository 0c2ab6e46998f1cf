// A player: an editor with the official TypeScript SDK over the stdio of `plexus bridge acp`, as if that were its agent. It
// says that it takes `_plexus/event`, by which it hears who decided and how runs of others end; what it prompts itself it
// draws itself. `drop` kills the bridge; `resume` starts another one and comes back with the cursor that it kept.
import { spawn } from 'node:child_process';
import { Readable, Writable } from 'node:stream';
import { exe, pinned, play, saw, session } from './stage.mjs';

const { client, methods, ndJsonStream } = await pinned('@agentclientprotocol/sdk');

/** What a client keeps over a cut. */
let cursor;
/** What it was asked and nobody has answered, oldest first: how to answer each. */
const open = new Map();
const asked = new Set();
let line;

function at(place) {
    if (place) cursor = place;
}

function update({ params: { update, _meta } }) {
    const text = update.content?.text;
    if (update.sessionUpdate === 'agent_message_chunk') saw({ text });
    if (update.sessionUpdate === 'user_message_chunk') saw({ user: text });
    at(_meta?.plexus?.cursor);
}

function happened({ params: { kind, event, cursor: place } }) {
    if (kind === 'run_ended') saw({ ended: event.stop_reason ?? event.status });
    if (kind === 'request_resolved') {
        open.delete(event.request_id);
        const allow = event.state === 'answered' ? (event.ok ?? null) : null;
        saw({ resolved: event.request_id, by: event.resolved_by?.name ?? null, allow });
    }
    at(place);
}

function permission({ params, signal }) {
    const { request_id: id, title } = params._meta.plexus;
    if (!asked.has(id)) saw({ asked: title, id });
    asked.add(id);
    return new Promise((resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
        open.set(id, (allow) => {
            const fits = (option) => option.kind.startsWith(allow ? 'allow' : 'reject');
            resolve({ outcome: { outcome: 'selected', optionId: params.options.find(fits).optionId } });
        });
    });
}

/** Starts a bridge and comes into the session: all of the past the first time, and what came since from then on. */
async function attach() {
    const child = spawn(exe, ['bridge', 'acp'], { stdio: ['pipe', 'pipe', 'inherit'] });
    // What is written to a bridge that was killed is lost, and that is all.
    child.stdin.on('error', () => {});
    const mine = { child };
    line = mine;
    const here = (part) => (context) => (line === mine ? part(context) : undefined);
    const app = client({ name: 'player' })
        .onNotification(methods.client.session.update, here(update))
        .onNotification('_plexus/event', (params) => params, here(happened))
        .onRequest(methods.client.session.requestPermission, permission);
    mine.connection = app.connect(ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)));
    mine.connection.closed.then(() => line !== mine || saw({ error: 'the bridge ended' }));
    mine.agent = mine.connection.agent;
    const hello = await mine.agent.request(methods.agent.initialize, {
        protocolVersion: 1,
        clientInfo: { name: 'player', version: '1' },
        clientCapabilities: { _meta: { plexus: { events: true } } },
    });
    if (!hello.agentCapabilities.loadSession) throw new Error('it cannot load sessions');
    const where = { sessionId: session, cwd: process.cwd(), mcpServers: [] };
    if (cursor === undefined) {
        await mine.agent.request(methods.agent.session.load, where);
    } else {
        await mine.agent.request(methods.agent.session.resume, { ...where, _meta: { plexus: { after: cursor } } });
    }
    saw({ ready: true });
}

play({
    async prompt({ text }) {
        const mine = line;
        saw({ user: text });
        const prompt = [{ type: 'text', text }];
        try {
            await mine.agent.request(methods.agent.session.prompt, { sessionId: session, prompt });
        } catch (error) {
            // Of a bridge that was killed nothing is heard; of a run that failed its end is.
            if (line === mine && error.data?.code !== 'run_failed') throw error;
        }
    },
    answer({ allow }) {
        const [id] = open.keys();
        const choose = open.get(id);
        open.delete(id);
        choose(allow);
    },
    cancel: () => line.agent.notify(methods.agent.session.cancel, { sessionId: session }),
    async drop() {
        const { child } = line;
        line = undefined;
        open.clear();
        const gone = new Promise((resolve) => child.once('exit', resolve));
        child.kill('SIGKILL');
        await gone;
        saw({ dropped: true });
    },
    resume: attach,
    quit() {
        line?.child.once('exit', (code) => process.exit(code));
        line?.child.stdin.end();
    },
});

await attach();
