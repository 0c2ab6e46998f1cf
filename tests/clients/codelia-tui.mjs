#!/usr/bin/env node
// Codelia's own terminal UI in a terminal of its own (tmux), with `plexus bridge codelia` as its runtime.
//
// From the screen, as a person reads it: that a question's panel is there before a key answers it, that the UI is running
// before it is told to cancel, that a prompt stands in the composer before Enter. Keys: `y`, `n`, Enter, Esc, Ctrl+C.
// From the lines between the terminal UI and the bridge (this file stands between them, too): `text`, byte for byte; `user`,
// `asked`, `resolved` and `ended`. The protocol has no end of a question: `resolved` is read from an event that the bridge
// tells who says `supports_gateway_events`, as this file does in the terminal UI's name (`plexus.request_resolved`), `ready`
// likewise (`plexus.live`); the terminal UI draws them in its debug view only.
// Runs of the past show their end as `final` if they completed, else not at all; the end is the protocol's word for it
// (completed, cancelled, error), for it has no stop reason. Questions come one at a time: one that waits behind another is
// `asked` when it is shown. `drop` cuts the connections of the bridge, which go through a door of this player's.
import { spawn, spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { clients, exe, play, saw, session } from './stage.mjs';

const LOOK_MS = 40;
const PATIENCE_MS = 30_000;
const AGAIN_MS = 2_000;

if (process.env.CODELIA_BETWEEN) between();
else await player();

/** The terminal UI's runtime: the bridge, each line told to the player. It ends with either of them. */
function between() {
    const [player, terminal, ...args] = JSON.parse(process.env.CODELIA_BETWEEN);
    const told = net.connect(player);
    const bridge = spawn(exe, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    const tell = (from, line) => told.write(`${JSON.stringify({ from, line })}\n`);
    createInterface({ input: process.stdin }).on('line', (line) => {
        tell('ui', line);
        const message = JSON.parse(line);
        if (message.method === 'initialize') message.params.ui_capabilities.supports_gateway_events = true;
        bridge.stdin.write(`${message.method === 'initialize' ? JSON.stringify(message) : line}\n`);
    });
    createInterface({ input: bridge.stdout }).on('line', (line) => {
        tell('bridge', line);
        process.stdout.write(`${line}\n`);
    });
    process.stdin.on('end', () => bridge.stdin.end());
    bridge.on('exit', (code) => process.exit(code ?? 1));
    // A player that was killed leaves nothing behind. The terminal's end is this one's, too: another does it.
    told.on('close', () => {
        const script = 'tmux -S "$1" kill-server; rm -rf "$2"';
        const args = ['-c', script, 'sh', terminal, path.dirname(player)];
        spawn('sh', args, { detached: true, stdio: 'ignore' }).unref();
    });
    told.on('error', () => {});
}

async function player() {
    const dir = mkdtempSync(path.join(tmpdir(), 'codelia-tui-'));
    const terminal = path.join(dir, 'tmux');
    const tmux = (...args) =>
        spawnSync('tmux', ['-S', terminal, '-f', '/dev/null', ...args], { encoding: 'utf8' }).stdout ?? '';
    process.on('exit', () => {
        tmux('kill-server');
        rmSync(dir, { recursive: true, force: true });
    });
    const screen = () => tmux('capture-pane', '-p', '-t', 'tui');
    const key = (...keys) => tmux('send-keys', '-t', 'tui', ...keys);
    const look = async (what, there, patience = PATIENCE_MS) => {
        const deadline = Date.now() + patience;
        while (!there()) {
            if (Date.now() > deadline) throw new Error(`${what} did not come; the screen:\n${screen()}`);
            await new Promise((done) => setTimeout(done, LOOK_MS));
        }
    };

    // The door: what `drop` shuts. The gateway may come back at another address.
    const open = new Set();
    let shut = false;
    const gateway = () => JSON.parse(readFileSync(path.join(process.env.PLEXUS_HOME, 'gateway.json'), 'utf8'));
    // What the bridge finds: the door. A gateway that was started again proves itself anew. The process that stands in it must
    // live, or nobody would knock.
    const tell = () => {
        const running = { ...gateway(), url: `http://127.0.0.1:${door.address().port}`, pid: process.pid };
        writeFileSync(path.join(dir, 'gateway.json'), JSON.stringify(running), { mode: 0o600 });
    };
    const door = net.createServer((inner) => {
        if (shut) return inner.destroy();
        tell();
        const { hostname, port } = new URL(gateway().url);
        const outer = net.connect(Number(port), hostname);
        for (const [one, other] of [[inner, outer], [outer, inner]]) {
            open.add(one);
            one.on('error', () => {});
            one.on('close', () => {
                open.delete(one);
                other.destroy();
            });
        }
        // The gateway answers to its own name alone: requests (all without a body) are told to it under that.
        const names = [`127.0.0.1:${door.address().port}`, `${hostname}:${port}`];
        inner.on('data', (said) => {
            const request = said.subarray(0, 4).toString() === 'GET ';
            outer.write(request ? said.toString('latin1').replace(...names) : said, 'latin1');
        });
        outer.pipe(inner);
    });
    await new Promise((done) => door.listen(0, '127.0.0.1', done));
    tell();
    copyFileSync(path.join(process.env.PLEXUS_HOME, 'token'), path.join(dir, 'token'));

    let panel = null; // { id, title, word } as it stands, by what was said
    let started = 0; // prompts that the gateway took, or refused
    const starts = new Set(); // the identifiers of those under way
    const over = new Set(); // questions that found their end
    let past = true;
    const runs = new Map(); // what was said in a run: { text, piece, closed, ended }
    const of = (run) => runs.get(run) ?? runs.set(run, { text: '', piece: '', closed: false, ended: false }).get(run);
    const end = (run, how) => {
        if (!of(run).ended) saw({ ended: how });
        of(run).ended = true;
    };
    const happened = (run, event) => {
        const said = of(run);
        if (event.type === 'text') {
            saw({ text: event.content });
            said.text = said.closed ? event.content : said.text + event.content;
            [said.piece, said.closed] = [event.content, false];
        } else if (event.type === 'final') {
            // A runtime's own final may hold words that no text told.
            const last = event.content.trim();
            if (last && said.text.trim() !== last && said.piece.trim() !== last) {
                const rest = !said.closed && said.text && event.content.startsWith(said.text);
                saw({ text: rest ? event.content.slice(said.text.length) : event.content });
            }
            if (past) end(run, 'completed');
        } else if (event.type === 'hidden_user_message') saw({ user: event.content });
        else if (event.type === 'plexus.live') {
            past = false;
            saw({ ready: true });
        } else if (event.type === 'plexus.request_resolved') {
            const { request_id: resolved, ok, resolved_by: by } = event.event;
            over.add(resolved);
            saw({ resolved, by: by?.name ?? null, allow: ok ?? null });
        } else if (event.tool !== 'plexus') said.closed = true;
    };
    const heard = ({ from, line }) => {
        const { id, method, params, result } = JSON.parse(line);
        if (from === 'ui') {
            if (method === 'run.start') starts.add(id);
            if (method === undefined && id === panel?.id) panel = null;
        } else if (method === 'agent.event') happened(params.run_id, params.event);
        else if (method === 'run.status' && ['completed', 'cancelled', 'error'].includes(params.status)) {
            end(params.run_id, params.status);
        } else if (method?.startsWith('ui.')) {
            panel = { id, method, params, word: id.startsWith('plexus_word_') };
            if (!panel.word) saw({ asked: params.title, id });
        } else if (method === undefined) {
            if (!starts.delete(id)) return; // lists that it asks for by itself, which not every runtime has
            started += 1;
            if (result === undefined) saw({ error: line });
        }
    };
    const ear = path.join(dir, 'ear');
    const hears = net.createServer((socket) => createInterface({ input: socket }).on('line', (line) => heard(JSON.parse(line))));
    await new Promise((done) => hears.listen(ear, done));

    const here = (text) => screen().replaceAll(/\s+/g, '').includes(text.replaceAll(/\s+/g, ''));
    // The title stands in what was said before, too: with the line under it, it is the panel.
    const shown = () => {
        if (!panel) return false;
        const { method, params } = panel;
        const first = params.message?.split('\n').find((line) => line.trim()) ?? '';
        if (method === 'ui.pick.request') return here(`${params.title} > ${params.items[0].label}`);
        if (method === 'ui.prompt.request') return here(`${params.title} ${first || 'Enter to submit'}`);
        return here(`${params.title} ${first ? `Command: ${first.slice(0, 40)}` : '> 1.'}`);
    };
    // One thing after the other, as a person does it.
    let last = Promise.resolve();
    const inTurn = (part) => (wish) => {
        last = last.catch(() => {}).then(() => part(wish));
        return last;
    };
    /** Closes the word on a question that somebody else answered, if one stands. */
    const dismiss = async () => {
        // That it was answered is told a line before its word is.
        await look('the word on a question that is over', () => !panel || panel.word || !over.has(panel.id));
        while (panel?.word) {
            const { id } = panel;
            await look('the word on an answered question', shown);
            // A key that comes in the moment a panel is drawn is lost now and then: a person presses it again.
            for (let tries = 0; panel?.id === id; tries += 1) {
                if (shown()) key('Enter');
                const gone = () => panel?.id !== id;
                await look('the end of that word', gone, AGAIN_MS).catch((error) => {
                    if (tries * AGAIN_MS > PATIENCE_MS) throw error;
                });
            }
        }
    };

    const env = {
        CODELIA_RUNTIME_CMD: process.execPath,
        CODELIA_RUNTIME_ARGS: `'${fileURLToPath(import.meta.url)}'`,
        CODELIA_BETWEEN: JSON.stringify([ear, terminal, 'bridge', 'codelia', '--session', session]),
        PLEXUS_EXE: exe,
        PLEXUS_HOME: dir,
    };
    const program = path.join(clients, 'node_modules/@codelia/tui-linux-x64/bin/codelia-tui');
    const given = Object.entries(env).flatMap(([variable, value]) => ['-e', `${variable}=${value}`]);
    tmux('new-session', '-d', '-s', 'tui', '-x', '110', '-y', '40', ...given, program);

    const parts = {
        async prompt({ text }) {
            await dismiss();
            const before = started;
            key('-l', text);
            await look('the prompt in the composer', () => here(text.slice(-30)));
            key('Enter');
            // While a run is on, the terminal UI keeps it in a queue of its own.
            await look('the prompt on its way', () => started > before || here('Queued prompts'));
        },
        async note() {
            await dismiss();
        },
        async answer({ allow }) {
            for (;;) {
                await look('a question', () => panel && !over.has(panel.id) && shown());
                if (!panel.word) break;
                await dismiss();
            }
            const { id, method, params } = panel;
            if (method === 'ui.confirm.request') key(allow ? 'y' : 'n');
            else if (!allow) key('Escape');
            else {
                if (method === 'ui.prompt.request' && !params.default_value) key('-l', 'yes');
                key('Enter');
            }
            await look('the answer', () => panel?.id !== id);
        },
        async cancel() {
            await look('a run', () => /● *(running|awaiting)/.test(screen()) || (panel && shown()));
            key('C-c');
            await look('the cancel', () => here('Cancel requested'));
        },
        drop() {
            shut = true;
            for (const socket of open) socket.destroy();
            saw({ dropped: true });
        },
        resume() {
            shut = false;
        },
        quit() {
            process.exit(0);
        },
    };
    play(Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, inTurn(part)])));
}
