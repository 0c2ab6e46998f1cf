// The curl of this machine, for everything: the event stream of a session by `curl -N` (`Last-Event-ID` when it comes back),
// prompts, answers and cancels by `curl --data-binary @-`. The token is in a file that only this user can read (`-H @FILE`):
// in the list of processes it would be everybody's. Whoever is second with an answer hears who was first from the stream.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { choose, taken, told } from './envelopes.mjs';
import { play, saw, session, token, url } from './stage.mjs';

const dir = mkdtempSync(join(tmpdir(), 'curl-'));
process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
const headers = join(dir, 'headers');
writeFileSync(headers, `Authorization: Bearer ${token}\n`, { mode: 0o600 });
// No settings of this user's, and no proxy.
const always = ['-q', '--silent', '--show-error', '--noproxy', '*', '-H', `@${headers}`];

let stream;
let last;

/** Follows the stream until it is cut; what came of an event that was not whole is forgotten with the connection. */
function follow() {
    const resume = last === undefined ? [] : ['-H', `Last-Event-ID: ${last}`];
    const path = `${url}/v1/sessions/${session}/events`;
    const curl = spawn('curl', [...always, '--fail', '-N', '-H', 'Accept: text/event-stream', ...resume, path], {
        stdio: ['ignore', 'pipe', 'inherit'],
    });
    stream = curl;
    let rest = '';
    curl.stdout.setEncoding('utf8');
    curl.stdout.on('data', (piece) => {
        if (stream !== curl) return;
        const blocks = (rest + piece).split('\n\n');
        rest = blocks.pop();
        for (const block of blocks) event(block);
    });
    curl.on('close', (code) => {
        if (stream === curl) throw new Error(`curl ended with ${code}`);
    });
}

function event(block) {
    const fields = {};
    for (const line of block.split('\n')) {
        const [, name, value] = /^([^:]*): ?(.*)$/.exec(line) ?? [];
        if (name) fields[name] = value;
    }
    if (fields.data === undefined) return;
    told(fields.event, JSON.parse(fields.data));
    if (fields.id !== undefined) last = fields.id;
}

/** POST of JSON; the status and the answer. */
function post(path, body) {
    return new Promise((resolve, reject) => {
        const json = ['-H', 'Content-Type: application/json', '--data-binary', '@-', '-w', '\n%{http_code}'];
        const curl = spawn('curl', [...always, ...json, url + path], { stdio: ['pipe', 'pipe', 'inherit'] });
        let text = '';
        curl.stdout.setEncoding('utf8');
        curl.stdout.on('data', (piece) => (text += piece));
        curl.on('error', reject);
        curl.on('close', () => {
            const at = text.lastIndexOf('\n');
            resolve({ status: Number(text.slice(at + 1)), text: text.slice(0, at) });
        });
        curl.stdin.end(JSON.stringify(body));
    });
}

async function must(path, body) {
    const { status, text } = await post(path, body);
    if (!taken(status)) throw new Error(`${path}: ${status} ${text}`);
}

play({
    prompt: ({ text }) => must(`/v1/sessions/${session}/prompt`, { text }),
    answer: ({ allow }) => {
        const { id, answer } = choose(allow);
        return must(`/v1/requests/${id}/answer`, answer);
    },
    cancel: () => must(`/v1/sessions/${session}/cancel`, {}),
    async drop() {
        const curl = stream;
        stream = undefined;
        const gone = new Promise((done) => curl.on('exit', done));
        curl.kill('SIGKILL');
        await gone;
        saw({ dropped: true });
    },
    resume: follow,
    quit() {
        const curl = stream;
        stream = undefined;
        curl?.kill();
        process.exit(0);
    },
});
follow();
