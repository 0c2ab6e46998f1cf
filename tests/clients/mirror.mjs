// A screen for the Gemini UI mirror and the remote control of a runtime, over the sockets of `ws`: for a gateway whose runtime
// has `ui_port` and `remote_port` (any, 0 too; they stand in the gateway's gateway.json).
//
// What these protocols cannot do, this cannot: it cannot answer and cannot cancel (both are an error here: let somebody else
// do it); `asked` has the dialog's type for a title; `resolved` never knows by whom, and `allow` by the words on the button;
// `ended` is always "idle". It shows the runtime's current conversation, so the story has one session in the runtime, or
// prompts no other. The past and coming back are the gateway's extension, `?after=CURSOR`: the specification has neither.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pinned, play, saw, session, token, url } from './stage.mjs';

const { default: WebSocket } = await pinned('ws');

const headers = { Authorization: `Bearer ${token}` };
const { runtime_id: runtime } = await (await fetch(`${url}/v1/sessions/${session}`, { headers })).json();
const { ports } = JSON.parse(readFileSync(join(process.env.PLEXUS_HOME, 'gateway.json'), 'utf8'));
const { ui_port: ui, remote_port: remote } = ports[runtime];
const control = `http://127.0.0.1:${remote}`;

let socket;
let last = '';
// What the agent said: how much of it this has told, and how much there was when it attached.
let said = 0;
let past = 0;
let ready = false;

const allowed = (words) =>
    /\b(allow|yes|approve|proceed)/i.test(words) ? true : /\b(deny|no|reject|cancel)/i.test(words) ? false : null;

function told({ type, data, cursor }) {
    switch (type) {
        case 'user_message':
            saw({ user: data.text });
            break;
        case 'model_output':
            said += data.text.length;
            saw({ text: data.text });
            break;
        case 'idle':
            saw({ ended: 'idle' });
            break;
        case 'permission_dialog':
            saw({ asked: data.type, id: data.id });
            break;
        case 'permission_selection':
            saw({ resolved: data.id, by: null, allow: allowed(data.selection) });
            break;
        case 'tool_call':
        case 'tool_output':
        case 'hook':
            break;
        default:
            throw new Error(`the mirror has no ${type}`);
    }
    last = cursor;
}

/** The mirror does not say where the past ends; the history says how much of it there is. */
function caughtUp() {
    if (!ready && said >= past) {
        ready = true;
        saw({ ready: true });
    }
}

async function attach() {
    const answer = await fetch(`${control}/history`, { headers });
    if (answer.status !== 200) throw new Error(`/history: ${answer.status} ${await answer.text()}`);
    const turns = await answer.json();
    past = turns.filter(({ role }) => role === 'model').reduce((sum, { text }) => sum + text.length, 0);
    ready = false;
    const mine = new WebSocket(`ws://127.0.0.1:${ui}/?after=${encodeURIComponent(last)}`, { headers });
    socket = mine;
    mine.on('open', caughtUp);
    mine.on('message', (message) => {
        if (socket !== mine) return;
        const text = message.toString();
        if (!text.endsWith('\0')) throw new Error('a NUL ends each message');
        told(JSON.parse(text.slice(0, -1)));
        caughtUp();
    });
    mine.on('error', (error) => {
        if (socket === mine) throw error;
    });
    mine.on('close', (code, reason) => {
        if (socket === mine) throw new Error(`closed: ${code} ${reason}`);
    });
}

play({
    async prompt({ text }) {
        const body = JSON.stringify({ message: text });
        const post = { method: 'POST', headers: { ...headers, 'Content-Type': 'application/json' }, body };
        const answer = await fetch(`${control}/message`, post);
        if (answer.status !== 200) throw new Error(`/message: ${answer.status} ${await answer.text()}`);
    },
    answer() {
        throw new Error('a UI mirror cannot answer');
    },
    cancel() {
        throw new Error('a UI mirror cannot cancel');
    },
    drop() {
        const mine = socket;
        socket = undefined;
        mine.terminate();
        saw({ dropped: true });
    },
    resume: attach,
    quit: () => process.exit(0),
});
await attach();
