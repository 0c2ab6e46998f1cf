// The `eventsource` package, with a fetch that sends the token in the header, as its manual says to; prompts, answers and
// cancels by fetch. A cut fails the body under the library; coming back, with its Last-Event-ID, is the library's own, in the
// time that the stream's `retry` says, once the story lets the network be there again.
import { choose, kinds, taken, told } from './envelopes.mjs';
import { pinned, play, saw, session, token, url } from './stage.mjs';

const { EventSource } = await pinned('eventsource');

const authorization = { Authorization: `Bearer ${token}` };
let cutter = new AbortController();
let up = Promise.resolve();
let lift = () => {};

const source = new EventSource(`${url}/v1/sessions/${session}/events`, {
    async fetch(input, init) {
        await up;
        cutter = new AbortController();
        const signal = AbortSignal.any([init.signal, cutter.signal]);
        return fetch(input, { ...init, signal, headers: { ...init.headers, ...authorization } });
    },
});
for (const kind of kinds) source.addEventListener(kind, ({ data }) => told(kind, JSON.parse(data)));
source.addEventListener('error', ({ code, message }) => {
    if (code !== undefined) saw({ error: `${code} ${message}` });
});

async function post(path, body) {
    const headers = { ...authorization, 'Content-Type': 'application/json' };
    const answer = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
    if (!taken(answer.status)) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
}

play({
    prompt: ({ text }) => post(`/v1/sessions/${session}/prompt`, { text }),
    answer: ({ allow }) => {
        const { id, answer } = choose(allow);
        return post(`/v1/requests/${id}/answer`, answer);
    },
    cancel: () => post(`/v1/sessions/${session}/cancel`, {}),
    async drop() {
        up = new Promise((done) => (lift = done));
        const cut = new Promise((done) => source.addEventListener('error', done, { once: true }));
        cutter.abort(new Error('the story cut the connection'));
        await cut;
        saw({ dropped: true });
    },
    resume: () => lift(),
    quit: () => process.exit(0),
});
