// The order of the rows, their groups, and which of them are drawn. Pure. At first by risk, then by age, the newest first. Afterwards
// drawn rows keep their order: new ones are added below, and join their group only while nobody uses the list.

import { riskOf, type Request } from './wire.js';

/** The grouping of the rows. */
export type Grouping = 'command' | 'session' | 'none';

/** A request at its place. `group`: what it has in common with its neighbours; empty if it stands alone. */
export interface Placed {
  id: string;
  group: string;
}

/** A row: the header of a group, or a request. */
export type Entry =
  | { kind: 'group'; key: string; group: string; ids: readonly string[]; folded: boolean; nth: number; of: number }
  | { kind: 'request'; key: string; id: string; group: string; nth: number; of: number };

const RANK = { danger: 0, elevated: 1, low: 2 } as const;

/** Riskiest first; of the same risk the newest first. */
function byRisk(a: Request, b: Request): number {
  return RANK[riskOf(a)] - RANK[riskOf(b)] || Date.parse(b.opened_at) - Date.parse(a.opened_at) || (a.request_id < b.request_id ? -1 : 1);
}

/** Puts requests with the same key together, at the place of the first of them. A key that only one has makes no group. */
export function clustered(ids: readonly string[], keyOf: (id: string) => string): Placed[] {
  const buckets = new Map<string, string[]>();
  ids.forEach((id, n) => {
    const key = keyOf(id) || `\u0000${n}`;
    const bucket = buckets.get(key);
    if (bucket) bucket.push(id);
    else buckets.set(key, [id]);
  });
  return [...buckets].flatMap(([key, bucket]) => bucket.map((id) => ({ id, group: bucket.length > 1 ? key : '' })));
}

/** The circumstances of placing requests. */
export interface Placing {
  /** Whether nothing was drawn yet, so that all may be reordered. */
  fresh: boolean;
  /** Whether the list is not in use, so that new requests may join their groups. */
  settled: boolean;
  /** The common key of a request and others; empty if there is none. */
  keyOf: (request: Request) => string;
}

/** The new order with the requests that are shown now, and the new ones among them. */
export function newOrder(before: readonly Placed[], shown: readonly Request[], { fresh, settled, keyOf }: Placing): { order: Placed[]; added: string[] } {
  const by = new Map(shown.map((request) => [request.request_id, request]));
  const known = new Set(before.map((one) => one.id));
  const added = shown.filter((request) => !known.has(request.request_id)).sort(byRisk).map((request) => request.request_id);
  const key = (id: string) => keyOf(by.get(id)!);
  if (fresh || before.length === 0) return { order: clustered([...shown].sort(byRisk).map((request) => request.request_id), key), added };
  const kept = before.filter((one) => by.has(one.id));
  if (settled) return { order: clustered([...kept.map((one) => one.id), ...added], key), added };
  return { order: [...kept, ...added.map((id) => ({ id, group: '' }))], added };
}

/** The rows of an order. The requests of a folded group have none. */
export function entriesOf(order: readonly Placed[], folded: ReadonlySet<string>): Entry[] {
  const runs: { group: string; ids: string[] }[] = [];
  for (const { id, group } of order) {
    const last = runs[runs.length - 1];
    if (group && last?.group === group) last.ids.push(id);
    else runs.push({ group, ids: [id] });
  }
  const of = runs.length;
  return runs.flatMap(({ group, ids }, n): Entry[] => {
    if (!group) return ids.map((id) => ({ kind: 'request', key: id, id, group, nth: n + 1, of }));
    const head: Entry = { kind: 'group', key: `group ${group}`, group, ids, folded: folded.has(group), nth: n + 1, of };
    return head.folded ? [head] : [head, ...ids.map((id, i): Entry => ({ kind: 'request', key: id, id, group, nth: i + 1, of: ids.length }))];
  });
}

/** The beginning of each row, and at the end the end of the last one, px. */
export function offsetsOf(entries: readonly Entry[], row: number, head: number): number[] {
  const offsets = [0];
  for (const entry of entries) offsets.push(offsets[offsets.length - 1]! + (entry.kind === 'group' ? head : row));
  return offsets;
}

/** The row at a height; the last one beyond the end, -1 if there is none. */
export function indexAt(offsets: readonly number[], y: number): number {
  let low = 0;
  let high = offsets.length - 1;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (offsets[mid + 1]! > y) high = mid;
    else low = mid + 1;
  }
  return Math.min(low, offsets.length - 2);
}

/** The rows to draw, from the first to before the last: those in sight, and some beyond. */
export function rangeOf(offsets: readonly number[], top: number, height: number, margin: number): readonly [from: number, to: number] {
  if (offsets.length < 2) return [0, 0];
  return [indexAt(offsets, Math.max(0, top - margin)), indexAt(offsets, top + height + margin) + 1];
}
