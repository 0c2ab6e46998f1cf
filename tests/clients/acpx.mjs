// A player: the real `acpx` command, whose agent is `plexus bridge acp`. It does what its command line can do:
// - It joins the session by `sessions new --resume-session`, prompts with `prompt`, cancels with `cancel`.
// - It never shows the past (it resumes without it), nor what others prompt: between its own prompts it shows nothing.
// - Without a terminal it answers each question at once, by its mode: here `--approve-all`, or `--deny-all` if PLEXUS_ACPX
//   says so. `answer` with the other choice is an error; whoever else answers must be faster, and it is not told who won.
// - `drop` kills its queue owner, the process that holds the bridge; `resume` lets the next prompt start another one. What
//   was said in between it never shows.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { clients, exe, play, saw, session } from './stage.mjs';

const mode = process.env.PLEXUS_ACPX ?? '--approve-all';
const home = mkdtempSync(join(tmpdir(), 'plexus-acpx-'));
const asked = new Map();
let cut = 0;

/** Runs acpx; `heard` gets each line of JSON that it prints. */
function acpx(args, heard) {
    const how = ['--agent', `${exe} bridge acp`, '--cwd', home, '--format', 'json', '--json-strict', '--ttl', '60', mode];
    const child = spawn(process.execPath, [`${clients}/node_modules/acpx/dist/cli.js`, ...how, ...args], {
        cwd: home,
        env: { ...process.env, HOME: home },
        stdio: ['ignore', 'pipe', 'pipe'],
    });
    let words = '';
    child.stderr.on('data', (more) => (words += more));
    const lines = createInterface({ input: child.stdout });
    const said = [];
    lines.on('line', (line) => {
        const message = JSON.parse(line);
        said.push(message);
        heard?.(message);
    });
    return new Promise((resolve, reject) => {
        child.on('error', reject);
        child.on('close', (code) =>
            code === 0 ? resolve(said) : reject(new Error(`acpx ${args[0]} exited with ${code}: ${words} ${JSON.stringify(said.at(-1))}`)),
        );
    });
}

/** What passes between acpx and the bridge while it prompts. */
function passed({ id, method, params, result }) {
    const update = params?.update;
    if (update?.sessionUpdate === 'agent_message_chunk') saw({ text: update.content.text });
    if (update?.sessionUpdate === 'user_message_chunk') saw({ user: update.content.text });
    if (method === 'session/request_permission') {
        asked.set(id, params.options);
        saw({ asked: params._meta.plexus.title, id });
    }
    if (asked.has(id) && result?.outcome) {
        const option = asked.get(id).find(({ optionId }) => optionId === result.outcome.optionId);
        asked.delete(id);
        saw({ resolved: id, by: null, allow: option?.kind.startsWith('allow') ?? null });
    }
    if (result?.stopReason) saw({ ended: result.stopReason });
}

/** The process that holds the bridge, if there is one. */
async function owner() {
    const [status] = await acpx(['status']);
    return status.status === 'alive' ? status.pid : undefined;
}

await acpx(['sessions', 'new', '--resume-session', session]);
saw({ ready: true });

play({
    async prompt({ text }) {
        const before = cut;
        saw({ user: text });
        try {
            await acpx(['prompt', text], passed);
        } catch (error) {
            if (cut === before) throw error;
        }
    },
    answer({ allow }) {
        if (allow !== (mode === '--approve-all')) throw new Error(`acpx answers by its mode, ${mode}`);
    },
    cancel: () => acpx(['cancel']),
    async drop() {
        cut += 1;
        const pid = await owner();
        if (pid) process.kill(pid, 'SIGKILL');
        saw({ dropped: true });
    },
    resume: () => saw({ ready: true }),
    async quit() {
        await acpx(['sessions', 'close']);
        rmSync(home, { recursive: true, force: true });
        process.exit(0);
    },
});
