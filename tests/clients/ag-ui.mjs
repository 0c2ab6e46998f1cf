// A page that speaks AG-UI: `HttpAgent` of @ag-ui/client, with its own schemas, its verifier and its fold behind it. It
// keeps one POST open (`follow`), and each thing that it does is another POST that takes the place of the one before, from
// the cursor that it kept. A snapshot has messages and state, no runs: of a run that was over before it came, it knows only
// that none is under way (`ended` is "idle").
import { randomUUID } from 'node:crypto';
import { pinned, play, saw, session, token, url } from './stage.mjs';

const { HttpAgent } = await pinned('@ag-ui/client');
const agent = new HttpAgent({
    url: `${url}/ag-ui/${session}`,
    threadId: session,
    headers: { Authorization: `Bearer ${token}` },
});

/** Where it stands in the log. */
let cursor;
/** Which POST counts. */
let turn = 0;
let running = Promise.resolve();
let told = false;
/** Whether a prompt was shown whose run's end was not. */
let unended = false;
/** How much of each message was said to the story, by its id. */
const said = new Map();
/** People's messages that are being streamed. */
const users = new Map();
/** Questions that are open, oldest first. */
const open = new Map();
const asked = new Set();

function text(id, whole) {
    const had = said.get(id) ?? 0;
    if (whole.length > had) {
        saw({ text: whole.slice(had) });
        said.set(id, whole.length);
    }
}

function ask(request) {
    open.set(request.request_id, request);
    if (!asked.has(request.request_id)) {
        asked.add(request.request_id);
        saw({ asked: request.title, id: request.request_id });
    }
}

function resolved({ request_id: id, resolved_by: by, ok }) {
    open.delete(id);
    saw({ resolved: id, by: by?.name ?? null, allow: ok ?? null });
}

function ended(how) {
    unended = false;
    saw({ ended: how });
}

function take(event, started) {
    switch (event.type) {
        case 'MESSAGES_SNAPSHOT':
            for (const message of event.messages) {
                if (message.role === 'assistant' && message.content) text(message.id, message.content);
                if (message.role === 'user' && !said.has(message.id)) {
                    said.set(message.id, message.content.length);
                    unended = true;
                    saw({ user: message.content });
                }
            }
            break;
        case 'STATE_SNAPSHOT':
            open.clear();
            for (const request of Object.values(event.snapshot.requests)) ask(request);
            if (!told && unended && !event.snapshot.run && !event.snapshot.queue.length) ended('idle');
            if (!told) saw({ ready: true });
            told = true;
            started();
            break;
        case 'STATE_DELTA':
            for (const { op, path, value } of event.delta) {
                if (op === 'add' && path.startsWith('/requests/')) ask(value);
            }
            break;
        case 'TEXT_MESSAGE_START':
            if (event.role === 'user') users.set(event.messageId, '');
            break;
        case 'TEXT_MESSAGE_CONTENT':
            if (users.has(event.messageId)) {
                users.set(event.messageId, users.get(event.messageId) + event.delta);
            } else {
                text(event.messageId, ' '.repeat(said.get(event.messageId) ?? 0) + event.delta);
            }
            break;
        case 'TEXT_MESSAGE_END':
            if (users.has(event.messageId)) {
                const whole = users.get(event.messageId);
                users.delete(event.messageId);
                said.set(event.messageId, whole.length);
                unended = true;
                saw({ user: whole });
            }
            break;
        case 'CUSTOM':
            if (event.name === 'plexus.request_resolved') resolved(event.value.event);
            if (event.name === 'plexus.run_ended') ended(event.value.event.stop_reason ?? event.value.event.status);
            break;
    }
    cursor = event.metadata?.plexus?.cursor ?? cursor;
}

/** Takes the place of the POST that is open; comes back once the new one has shown its snapshots. */
async function post(plexus = {}, resume) {
    const mine = ++turn;
    agent.abortRun();
    await running;
    agent.pendingInterrupts = agent.pendingInterrupts.filter(({ id }) => resume?.some((entry) => entry.interruptId === id));
    users.clear();
    await new Promise((started, failed) => {
        const parameters = {
            runId: randomUUID(),
            forwardedProps: { plexus: { follow: true, ...(cursor && { cursor }), ...plexus } },
            ...(resume && { resume }),
        };
        const subscriber = {
            onEvent: ({ event }) => {
                if (mine === turn && event.code !== 'abort') take(event, started);
            },
            onRunFailed: ({ error }) => {
                if (mine === turn) failed(error);
                return { stopPropagation: true };
            },
        };
        running = agent.runAgent(parameters, subscriber).catch((error) => {
            if (mine === turn) failed(error);
        });
        running.then(() => {
            if (mine === turn) saw({ error: 'the stream ended by itself' });
        });
    });
}

function answer(request, allow) {
    const interruptId = request.request_id;
    const payload = () => {
        if (request.type === 'prompt') return { value: request.default_value ?? 'yes' };
        if (request.type === 'pick') return { ids: [request.items[0].id] };
        const kinds = allow ? ['allow_once', 'allow_always'] : ['reject_once', 'reject_always'];
        const option = kinds.map((kind) => request.options.find((offer) => offer.kind === kind)).find(Boolean);
        return option ? { optionId: option.id } : { approved: allow };
    };
    const form = request.type === 'prompt' || request.type === 'pick';
    return form && !allow ? { interruptId, status: 'cancelled' } : { interruptId, status: 'resolved', payload: payload() };
}

/** One thing at a time: what is under way has been taken before the next begins. */
let line = Promise.resolve();
function inLine(work) {
    return (wish) => {
        line = line.catch(() => {}).then(() => work(wish));
        return line;
    };
}

play({
    prompt: inLine(({ text: content }) => {
        agent.messages.push({ id: randomUUID(), role: 'user', content });
        return post();
    }),
    answer: inLine(({ allow }) => {
        const [oldest] = open.values();
        if (!oldest) throw new Error('no question is open');
        return post({ partial: true }, [answer(oldest, allow)]);
    }),
    cancel: inLine(() => post({ cancel: true })),
    drop: inLine(async () => {
        turn += 1;
        agent.abortRun();
        await running;
        saw({ dropped: true });
    }),
    resume: inLine(() => {
        told = false;
        return post();
    }),
    quit: () => process.exit(0),
});
await inLine(() => post())();
