// A page that speaks AG-UI as the library's own documentation does, and knows nothing of the gateway: `runAgent` with the
// whole conversation, then `runAgent` with `resume` for every interrupt. It hears of others only when it runs again; what it
// says as `text` is what its own list of messages has. `answer` answers all that is open, and `cancelled` declines.
import { randomUUID } from 'node:crypto';
import { pinned, play, saw, session, token, url } from './stage.mjs';

const { HttpAgent, buildResumeArray } = await pinned('@ag-ui/client');
const agent = new HttpAgent({
    url: `${url}/ag-ui/${session}`,
    threadId: session,
    headers: { Authorization: `Bearer ${token}` },
});
const said = new Map();
const users = new Set();

function messages() {
    for (const { id, role, content } of agent.messages) {
        if (role === 'assistant' && content && content.length > (said.get(id) ?? 0)) {
            saw({ text: content.slice(said.get(id) ?? 0) });
            said.set(id, content.length);
        }
        if (role === 'user' && !users.has(id)) {
            users.add(id);
            saw({ user: content });
        }
    }
}

async function run(parameters) {
    let end;
    await agent.runAgent(parameters, {
        onRunFinishedEvent: ({ outcome, result }) => {
            end = outcome === 'success' ? result?.stop_reason : outcome;
        },
        onCustomEvent: ({ event }) => {
            if (event.name !== 'plexus.request_resolved') return;
            const { request_id: id, resolved_by: by, ok } = event.value.event;
            saw({ resolved: id, by: by.name, allow: ok ?? null });
        },
    });
    messages();
    for (const { id, message } of agent.pendingInterrupts) saw({ asked: message, id });
    if (end && end !== 'interrupt') saw({ ended: end });
}

play({
    prompt: ({ text: content }) => {
        agent.addMessage({ id: randomUUID(), role: 'user', content });
        return run();
    },
    answer: ({ allow }) => {
        const one = allow ? { status: 'resolved', payload: { approved: true } } : { status: 'cancelled' };
        const all = Object.fromEntries(agent.pendingInterrupts.map(({ id }) => [id, one]));
        return run({ resume: buildResumeArray(agent.pendingInterrupts, all) });
    },
    quit: () => process.exit(0),
});
await run();
saw({ ready: true });
