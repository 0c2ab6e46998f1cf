// A player: acp-http-client, an ACP client from before the RFD on HTTP transports. It knows one path and one stream; so it
// names its connection in the path. Its stream comes back by itself only from a proper end, so after a cut the client
// starts a connection anew and resumes its session after the last cursor it has.
//
// It shows no `$/cancel_request` to its program: who else answered, it has from `_plexus/event`.
import { pathToFileURL } from 'node:url';
import { gateway, hello, line, part } from './acp-part.mjs';
import { clients, play, saw, session, token } from './stage.mjs';

// It exports to `import` alone, which cannot be asked to look in another folder.
const { AcpHttpClient } = await import(pathToFileURL(`${clients}/node_modules/acp-http-client/dist/index.js`).href);

const me = part();
let at;
let count = 0;

async function attach() {
    const mine = { line: line(), gone: false };
    at = mine;
    mine.client = new AcpHttpClient({
        baseUrl: gateway(),
        token,
        fetch: mine.line.fetch,
        transport: { path: `/acp?connection=player-${process.pid}-${++count}` },
        client: {
            sessionUpdate: async (params) => mine.gone || me.update(params),
            requestPermission: (params) => me.permission(params),
            extNotification: async (method, params) => {
                if (method === '_plexus/event' && !mine.gone) me.event(params);
            },
        },
    });
    mine.client.closed.then(() => mine.gone || lost(mine));
    await mine.client.initialize(hello);
    if (me.cursor) await mine.client.unstableResumeSession(me.attach());
    else await mine.client.loadSession(me.attach());
    await me.settled();
    saw({ ready: true });
}

async function lost(mine) {
    mine.gone = true;
    mine.line.cut();
    await me.settled();
    me.left();
    saw({ dropped: true });
}

play({
    async prompt({ text }) {
        const mine = at;
        try {
            await mine.client.prompt(me.prompt(text));
        } catch (error) {
            if (!mine.gone) throw error;
        }
    },
    answer: ({ allow }) => me.answer(allow),
    cancel: () => at.client.cancel({ sessionId: session }),
    drop: () => lost(at),
    resume: attach,
    async quit() {
        at.gone = true;
        await at.client.disconnect();
        process.exit(0);
    },
});

await attach();
