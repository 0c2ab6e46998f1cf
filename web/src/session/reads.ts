// Consecutive reads: agents make dozens of them, and one line represents all. Pure.
//
// A call belongs to such a stretch once it has ended and only read: it did not fail, no request asked about it, and it changed nothing.

import type { Item, ToolItem } from './model.js';

/** Minimum number of calls that one line represents. */
const FOLD_AT = 3;
/** The kinds of calls that only look. */
const KINDS = new Set(['read', 'search']);

/** Consecutive calls that only read. */
export interface Stretch {
  items: ToolItem[];
  /** Whether the user opened it; undefined until that was looked up. */
  open: boolean | undefined;
}

/** Whether a call has ended and only read. */
function looked(item: ToolItem): boolean {
  const changes = Array.isArray(item.call.content) && item.call.content.some((c: any) => c?.type === 'diff');
  return KINDS.has(String(item.call.kind)) && item.call.status === 'completed' && !item.requests.length && !changes;
}

/** Whether one line represents the stretch of a call, unless the user opened it. */
export function folds(item: Item): item is ToolItem & { reads: Stretch } {
  return item.type === 'tool' && item.reads !== null && item.reads.items.length >= FOLD_AT;
}

/** Whether an item is not drawn: the line of its stretch represents it; a request is represented by its card, and after the answer by its
 *  call. */
export function absorbed(item: Item): boolean {
  if (item.type === 'request') return item.outcome === null || item.tool !== null;
  return folds(item) && item.reads.open !== true && item.reads.items[0] !== item;
}

/** The number of calls of each kind in a stretch, in the order of their first occurrence. */
export function countsOf(stretch: Stretch): [string, number][] {
  const counts = new Map<string, number>();
  for (const { call } of stretch.items) counts.set(String(call.kind), (counts.get(String(call.kind)) ?? 0) + 1);
  return [...counts];
}

/** Puts a call that changed into the stretch of its neighbours, or takes it out. `before` and `after` stand next to it. Returns the items
 *  to draw again. */
export function regroup(item: ToolItem, before: Item | undefined, after: Item | undefined): ToolItem[] {
  const looks = looked(item);
  if (looks === (item.reads !== null)) return [];
  return looks ? join(item, stretchOf(before, item), stretchOf(after, item)) : leave(item);
}

function stretchOf(neighbour: Item | undefined, item: ToolItem): Stretch | null {
  return neighbour?.type === 'tool' && neighbour.parent === item.parent ? neighbour.reads : null;
}

function join(item: ToolItem, left: Stretch | null, right: Stretch | null): ToolItem[] {
  const had = Math.max(left?.items.length ?? 0, right?.items.length ?? 0);
  const first = left?.items[0] ?? right?.items[0];
  const stretch = left ?? right ?? { items: [], open: undefined };
  if (left) left.items.push(item);
  else stretch.items.unshift(item);
  item.reads = stretch;
  if (left && right) {
    for (const other of right.items) { other.reads = left; left.items.push(other); }
    left.open = left.open || right.open;
  }
  if (stretch.items.length < FOLD_AT) return [];
  // One that was folded already needs only its line, the new call, and the one that had the line.
  return had >= FOLD_AT && !(left && right) ? [stretch.items[0] as ToolItem, item, first as ToolItem] : stretch.items;
}

function leave(item: ToolItem): ToolItem[] {
  const { items, open } = item.reads as Stretch;
  const at = items.indexOf(item);
  item.reads = null;
  for (const part of [items.slice(0, at), items.slice(at + 1)]) {
    const stretch = { items: part, open };
    for (const other of part) other.reads = stretch;
  }
  return items;
}
