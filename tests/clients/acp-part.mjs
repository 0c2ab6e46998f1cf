// What a player of ACP over HTTP keeps and shows, whichever library carries its messages. Text, questions and ends are
// told in the order of the log: a library may hand over what came in one read in any order.
//
// A prompt of this client's own is not told back to it (`user` is for others' and for the past); who decided, and the ends
// of others' runs, come as `_plexus/event`, which it asks for in `initialize`.
import { readFileSync } from 'node:fs';
import { saw, session } from './stage.mjs';

/** What `initialize` says. */
export const hello = {
    protocolVersion: 1,
    clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, _meta: { plexus: { events: true } } },
    clientInfo: { name: 'player', version: '1' },
};

/** Where the gateway is now: it may have come back somewhere else. */
export function gateway() {
    return JSON.parse(readFileSync(`${process.env.PLEXUS_HOME}/gateway.json`, 'utf8')).url.replace(/\/$/, '');
}

/** A `fetch` that can be cut: what is open breaks, and nothing goes out any more, not even a goodbye. */
export function line() {
    const end = new AbortController();
    return {
        cut: () => end.abort(),
        fetch: (to, init = {}) => {
            const signals = [end.signal, ...(init.signal ? [init.signal] : [])];
            return fetch(to, { ...init, signal: AbortSignal.any(signals) });
        },
    };
}

/** What the client knows of its session. */
export function part() {
    /** Questions that wait, oldest first: what answers each. */
    const open = new Map();
    /** Questions ever shown, and which of their options allow. */
    const asked = new Map();
    let cursor;
    let waiting = [];
    let tick;

    const place = (of) => Number(of.split(':')[1]);
    function tell(at, what) {
        waiting.push({ at: place(at), what });
        tick ??= new Promise((done) => {
            setImmediate(() => {
                tick = undefined;
                const now = waiting.sort((one, other) => one.at - other.at);
                waiting = [];
                for (const { what } of now) saw(what);
                done();
            });
        });
        if (!cursor || place(at) > place(cursor)) cursor = at;
    }

    return {
        /** Where to come back from. */
        get cursor() {
            return cursor;
        },
        /** All that came is told. */
        async settled() {
            await new Promise(setImmediate);
            await tick;
        },
        /** `session/update`. */
        update({ update, _meta }) {
            const at = _meta?.plexus?.cursor;
            if (!at) throw new Error(`an update without a cursor: ${JSON.stringify(update)}`);
            const text = update.content?.text;
            if (update.sessionUpdate === 'agent_message_chunk') tell(at, { text });
            else if (update.sessionUpdate === 'user_message_chunk') tell(at, { user: text });
            else if (!cursor || place(at) > place(cursor)) cursor = at;
        },
        /** `_plexus/event`. */
        event({ kind, cursor: at, event }) {
            if (kind === 'run_ended') tell(at, { ended: event.stop_reason ?? event.status });
            else if (kind === 'request_resolved') {
                open.delete(event.request_id);
                const allow = event.state === 'answered' ? (event.ok ?? null) : null;
                tell(at, { resolved: event.request_id, by: event.resolved_by?.name ?? null, allow });
            } else if (!cursor || place(at) > place(cursor)) cursor = at;
        },
        /** `session/request_permission`; its answer, once there is one. */
        permission({ options, _meta }) {
            const { request_id: id, cursor: at, title } = _meta.plexus;
            if (!asked.has(id)) tell(at, { asked: title, id });
            asked.set(id, options);
            return new Promise((answer) => {
                open.set(id, (allow) => {
                    open.delete(id);
                    const { optionId } = options.find((option) => option.kind.startsWith(allow ? 'allow' : 'reject'));
                    answer({ outcome: { outcome: 'selected', optionId } });
                });
            });
        },
        /** Answers the oldest question. */
        answer(allow) {
            const [choose] = open.values();
            if (!choose) throw new Error('nothing was asked');
            choose(allow);
        },
        /** The line is cut: its questions will be asked again. */
        left() {
            open.clear();
        },
        /** The params of a prompt. */
        prompt: (text) => ({ sessionId: session, prompt: [{ type: 'text', text }] }),
        /** The params that attach: the past whole, or what came since. */
        attach: () => ({
            sessionId: session,
            cwd: '/',
            mcpServers: [],
            ...(cursor ? { _meta: { plexus: { after: cursor } } } : {}),
        }),
    };
}
