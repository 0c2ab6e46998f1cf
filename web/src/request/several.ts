// Answers to several requests at once: which are chosen, which of them an answer may go to, and what became of each. Pure.
//
// "Allow" is for what is low or elevated and was seen whole; danger, questions, and what changed or was not read are left out, each with
// the reason. The answer to each request is the one that its card would give.

import { actionsOf, type Answerer } from './actions.js';
import type { Answering, Sent } from './answering.js';
import { riskOf, type Answer, type Request } from './wire.js';

/** Answers under way at the same time: the gateway stores each before it replies. */
const PARALLEL = 6;
/** Pauses before an answer without a reply is sent again, ms; after the last one its outcome counts as not known. */
const ASK_AGAIN_MS = [1_500, 3_000, 6_000];

export type Sense = 'allow' | 'deny';

/** The reason why a request is left out. */
export type LeftOut = 'closed' | 'changed' | 'elsewhere' | 'limit' | 'danger' | 'question' | 'never_once' | 'unread' | 'no_deny';

export interface Plan {
  will: { request: Request; answer: Answer }[];
  out: { request: Request; why: LeftOut }[];
}

/** The circumstances that decide besides the requests themselves. */
export interface Circumstances {
  /** The requests as they are now, by id. */
  now: ReadonlyMap<string, Request>;
  device: Answerer;
  /** Whether all of a request was seen. */
  seen: (request: Request) => boolean;
  /** The reason of a denial; empty if none is given. */
  reason: string;
}

function judged(asked: Request, sense: Sense, { now, device, seen, reason }: Circumstances): LeftOut | Answer {
  const request = now.get(asked.request_id);
  if (!request || request.state !== 'open') return 'closed';
  if (request.digest !== asked.digest || request.revision !== asked.revision) return 'changed';
  if (request.observe_only) return 'elsewhere';
  const actions = actionsOf(request, device);
  if (sense === 'deny') {
    const action = actions.find((one) => one.key === 'd');
    if (!action) return 'no_deny';
    return request.allow_reason && reason ? { ...action.answer, reason } : { ...action.answer };
  }
  if (actions.some((one) => one.role === 'send')) return 'question';
  const action = actions.find((one) => one.role === 'allow_once');
  if (!action) return 'never_once';
  if (action.unavailable === 'risk') return 'limit';
  if (riskOf(request) === 'danger') return 'danger';
  if (!seen(request)) return 'unread';
  return { ...action.answer };
}

/** The plan of one answer to all of `asked`. `asked` is what was shown: a request that has changed since is left out. */
export function planOf(asked: readonly Request[], sense: Sense, circumstances: Circumstances): Plan {
  const plan: Plan = { will: [], out: [] };
  for (const request of asked) {
    const found = judged(request, sense, circumstances);
    if (typeof found === 'string') plan.out.push({ request, why: found });
    else plan.will.push({ request, answer: found });
  }
  return plan;
}

/** The requests that are left out, by reason. */
export function leftOut(plan: Plan): Map<LeftOut, Request[]> {
  const by = new Map<LeftOut, Request[]>();
  for (const { request, why } of plan.out) by.set(why, [...(by.get(why) ?? []), request]);
  return by;
}

/** Sends each answer under its own key, a few at a time; tells each outcome. An answer without a reply is sent again under its key. */
export async function sendAll(all: readonly Answering[], told: (answering: Answering, sent: Sent) => void, pauses: readonly number[] = ASK_AGAIN_MS): Promise<void> {
  const left = [...all];
  const one = async (): Promise<void> => {
    for (let answering = left.shift(); answering; answering = left.shift()) {
      let sent = await answering.send();
      for (const pause of pauses) {
        if (sent.is !== 'unknown') break;
        await new Promise((resolve) => setTimeout(resolve, pause));
        sent = await answering.send();
      }
      told(answering, sent);
    }
  };
  await Promise.all(Array.from({ length: Math.min(PARALLEL, all.length) }, one));
}

// --- what is chosen -----------------------------------------------------------------------------------------------------------------

/** The chosen requests. `anchor`: where a range begins. */
export interface Chosen {
  ids: ReadonlySet<string>;
  anchor: string;
}
export const NONE: Chosen = { ids: new Set(), anchor: '' };

/** Chooses a request, or no longer. */
export function toggled(chosen: Chosen, id: string): Chosen {
  const ids = new Set(chosen.ids);
  if (!ids.delete(id)) ids.add(id);
  return { ids, anchor: id };
}

/** Chooses all of `ids`; if all of them are chosen already, none of them. */
export function toggledAll(chosen: Chosen, all: readonly string[]): Chosen {
  const ids = new Set(chosen.ids);
  const every = all.length > 0 && all.every((id) => ids.has(id));
  for (const id of all) if (every) ids.delete(id); else ids.add(id);
  return { ids, anchor: all[0] ?? chosen.anchor };
}

/** Chooses everything from the anchor to `id`, in the order of the rows. */
export function ranged(chosen: Chosen, id: string, order: readonly string[]): Chosen {
  const to = order.indexOf(id);
  const from = order.indexOf(chosen.anchor);
  if (to < 0) return chosen;
  if (from < 0) return { ids: new Set([...chosen.ids, id]), anchor: id };
  return { ids: new Set([...chosen.ids, ...order.slice(Math.min(from, to), Math.max(from, to) + 1)]), anchor: chosen.anchor };
}

/** Removes the requests that are no longer open. Returns the same object if none was removed. */
export function stillChosen(chosen: Chosen, open: (id: string) => boolean): Chosen {
  const ids = [...chosen.ids].filter(open);
  return ids.length === chosen.ids.size ? chosen : { ids: new Set(ids), anchor: chosen.anchor };
}
