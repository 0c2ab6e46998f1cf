// Reads that follow one another: agents make dozens of them, and one line stands for all. Pure.
//
// A call belongs to such a stretch once it is over and only looked at something: nothing failed, nobody was asked, nothing changed.

import type { Item, ToolItem } from './model.js';

/** From this many on, one line stands for them. */
const FOLD_AT = 3;
/** The kinds of calls that only look. */
const KINDS = new Set(['read', 'search']);

/** Calls that only looked, one after the other. */
export interface Stretch {
  items: ToolItem[];
  /** Whether a person opened it; undefined until somebody looked that up. */
  open: boolean | undefined;
}

/** Whether a call is over and only looked at something. */
function looked(item: ToolItem): boolean {
  const changes = Array.isArray(item.call.content) && item.call.content.some((c: any) => c?.type === 'diff');
  return KINDS.has(String(item.call.kind)) && item.call.status === 'completed' && !item.requests.length && !changes;
}

/** Whether one line stands for the stretch of a call, unless a person opened it. */
export function folds(item: Item): item is ToolItem & { reads: Stretch } {
  return item.type === 'tool' && item.reads !== null && item.reads.items.length >= FOLD_AT;
}

/** Whether nothing is drawn for an item: the line of its stretch stands for it, or for a request its card, and once it is answered its call. */
export function absorbed(item: Item): boolean {
  if (item.type === 'request') return item.outcome === null || item.tool !== null;
  return folds(item) && item.reads.open !== true && item.reads.items[0] !== item;
}

/** How many calls of each kind a stretch has, in the order in which they came first. */
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
