// The order of cards. Pure. At first by risk, then by age, the newest first. Afterwards drawn cards keep their order: new ones are
// added below.

import { riskOf, type Request } from './wire.js';

export interface Placed {
  id: string;
}

const RANK = { danger: 0, elevated: 1, low: 2 } as const;

/** Riskiest first; of the same risk the newest first. */
function byRisk(a: Request, b: Request): number {
  return RANK[riskOf(a)] - RANK[riskOf(b)] || Date.parse(b.opened_at) - Date.parse(a.opened_at) || (a.request_id < b.request_id ? -1 : 1);
}

/** The new order with the requests that are shown now. `fresh`: nothing was drawn yet, so that all may be reordered. */
export function newOrder(before: Placed[], shown: Request[], fresh: boolean): { order: Placed[]; added: string[] } {
  const there = new Set(shown.map((request) => request.request_id));
  const known = new Set(before.map((one) => one.id));
  const added = shown.filter((request) => !known.has(request.request_id)).sort(byRisk);
  const ids = added.map((request) => request.request_id);
  if (fresh || before.length === 0) return { order: [...shown].sort(byRisk).map((request) => ({ id: request.request_id })), added: ids };
  return { order: [...before.filter((one) => there.has(one.id)), ...ids.map((id) => ({ id }))], added: ids };
}
