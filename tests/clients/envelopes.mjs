// What the players of the event stream share: an envelope, as the story wants to hear of it, and the questions that wait.
import { saw } from './stage.mjs';

/** Questions that wait for an answer, oldest first. */
export const asked = new Map();

function ask(request) {
    if (asked.has(request.request_id)) return;
    asked.set(request.request_id, request);
    saw({ asked: request.title, id: request.request_id });
}

/** Tells the story of one event of the stream. `name` is the event's, `data` what it carries, parsed. */
export function told(name, data) {
    const body = data.event;
    switch (name) {
        case 'hello':
            if (data.resume !== 'ok') throw new Error(`the cursor is no good: ${data.resume}`);
            break;
        case 'live':
            // Nothing that came before is left to come.
            saw({ ready: true });
            break;
        case 'agent_message_chunk':
            if (body.content?.type === 'text') saw({ text: body.content.text });
            break;
        case 'user_message_chunk':
            if (body.content?.type === 'text') saw({ user: body.content.text });
            break;
        case 'request_opened':
            ask(body);
            break;
        case 'request_resolved':
            asked.delete(body.request_id);
            saw({ resolved: body.request_id, by: body.resolved_by?.name ?? null, allow: body.ok ?? null });
            break;
        case 'run_ended':
            saw({ ended: body.stop_reason ?? body.status });
            break;
        default:
    }
}

/** The oldest question that waits, and the option of it that says yes, or no. */
export function choose(allow) {
    const [request] = asked.values();
    if (!request) throw new Error('nothing is asked');
    const kinds = allow ? ['allow_once', 'allow_always'] : ['reject_once', 'reject_always'];
    const option = kinds.map((kind) => request.options.find((option) => option.kind === kind)).find(Boolean);
    if (!option) throw new Error(`no such option: ${JSON.stringify(request.options)}`);
    return { id: request.request_id, answer: { option_id: option.id, digest: request.digest } };
}

/** Whether a status says that it was done, or that somebody else was first, which the stream tells. */
export const taken = (status) => status < 300 || status === 409 || status === 410;

/** Every kind of event that is told of. */
export const kinds = [
    'hello', 'live', 'agent_message_chunk', 'user_message_chunk', 'request_opened', 'request_resolved', 'run_ended',
];
