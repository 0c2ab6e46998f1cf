// A player: an editor with the official TypeScript SDK over Streamable HTTP. That transport never comes back to a broken
// stream: the client starts a connection anew, and resumes its session after the last cursor it has. A connection that is
// lost without its doing is told as `dropped`, too.
import { gateway, hello, line, part } from './acp-part.mjs';
import { pinned, play, saw, session, token } from './stage.mjs';

const { client, methods } = await pinned('@agentclientprotocol/sdk');
const { createHttpStream } = await pinned('@agentclientprotocol/sdk/experimental/http-client');

const me = part();
let at;

async function attach() {
    const mine = { line: line(), gone: false };
    at = mine;
    const stream = createHttpStream(`${gateway()}/acp`, {
        headers: { Authorization: `Bearer ${token}` },
        fetch: mine.line.fetch,
    });
    const app = client({ name: 'player' })
        .onNotification(methods.client.session.update, ({ params }) => mine.gone || me.update(params))
        .onNotification('_plexus/event', (params) => params, ({ params }) => mine.gone || me.event(params))
        .onRequest(methods.client.session.requestPermission, ({ params }) => me.permission(params));
    mine.connection = app.connect(stream);
    mine.connection.closed.then(() => mine.gone || lost(mine));
    const { agent } = mine.connection;
    await agent.request(methods.agent.initialize, hello);
    const how = me.cursor ? methods.agent.session.resume : methods.agent.session.load;
    await agent.request(how, me.attach());
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
            await mine.connection.agent.request(methods.agent.session.prompt, me.prompt(text));
        } catch (error) {
            if (!mine.gone) throw error;
        }
    },
    answer: ({ allow }) => me.answer(allow),
    cancel: () => at.connection.agent.notify(methods.agent.session.cancel, { sessionId: session }),
    drop: () => lost(at),
    resume: attach,
    async quit() {
        at.gone = true;
        at.connection.close();
        // Its goodbye goes out before.
        setTimeout(() => process.exit(0), 200);
    },
});

await attach();
