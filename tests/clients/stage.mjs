// What the players share: the language of ../common/cast.rs on stdin and stdout.
import { createInterface } from 'node:readline';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

export const url = process.env.PLEXUS_URL;
export const token = process.env.PLEXUS_TOKEN;
export const session = process.env.PLEXUS_SESSION;
export const exe = process.env.PLEXUS_EXE;
export const clients = process.env.PLEXUS_CLIENTS;

/** Imports a pinned package. */
export async function pinned(name) {
    const require = createRequire(`${clients}/package.json`);
    return import(pathToFileURL(require.resolve(name)).href);
}

/** Tells the story what this client saw. */
export function saw(what) {
    process.stdout.write(`${JSON.stringify(what)}\n`);
}

/** Does what the story says: `parts` has a function for each `do`. Whatever fails is said. */
export function play(parts) {
    const fail = (error) => saw({ error: String(error?.stack ?? error?.message ?? error) });
    process.on('uncaughtException', fail);
    process.on('unhandledRejection', fail);
    const lines = createInterface({ input: process.stdin });
    lines.on('line', async (line) => {
        const wish = JSON.parse(line);
        try {
            await parts[wish.do](wish);
        } catch (error) {
            fail(error);
        }
    });
    lines.on('close', () => process.exit(0));
}
