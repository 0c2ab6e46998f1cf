// The line diff of two texts. Pure; it runs in the render worker, and for short texts in the page.

import { diffArrays } from 'diff';

/** Time limit of a diff, ms; then the changed middle is shown as replaced. */
const DIFF_MS = 2_000;
/** Minimum number of lines, of both texts together, from which the texts are split at lines that occur once in both. */
const ANCHORED = 2_000;

/** Pairs of kind (0 same, 1 removed, 2 added) and number of lines. */
export type Ops = number[];

const lines = (text: string): string[] => {
  const all = text.split('\n');
  if (all.at(-1) === '') all.pop();
  return all;
};

/** Index pairs of lines that occur once in both texts, increasing in both: they split a long diff into short ones. */
function anchors(a: string[], b: string[]): [number, number][] {
  const seen = new Map<string, { a: number; b: number }>();
  const place = (line: string, side: 'a' | 'b', n: number) => {
    const at = seen.get(line) ?? { a: -1, b: -1 };
    at[side] = at[side] === -1 ? n : -2;
    seen.set(line, at);
  };
  a.forEach((line, n) => place(line, 'a', n));
  b.forEach((line, n) => place(line, 'b', n));
  const pairs = [...seen.values()].filter((at) => at.a >= 0 && at.b >= 0).sort((x, y) => x.a - y.a);
  // The longest increasing subsequence of the indices in b: the last pair of each length, and each pair's predecessor.
  const ends: number[] = [];
  const before: number[] = [];
  pairs.forEach((pair, n) => {
    let low = 0;
    let high = ends.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if ((pairs[ends[mid] as number] as { b: number }).b < pair.b) low = mid + 1; else high = mid;
    }
    before[n] = low ? (ends[low - 1] as number) : -1;
    ends[low] = n;
  });
  const out: [number, number][] = [];
  for (let n = ends.at(-1) ?? -1; n >= 0; n = before[n] as number) out.push([(pairs[n] as { a: number }).a, (pairs[n] as { b: number }).b]);
  return out.reverse();
}

/** The lines of two texts that are the same, removed and added. */
export function compared(a: string, b: string): Ops {
  const left = lines(a);
  const right = lines(b);
  const until = Date.now() + DIFF_MS;
  const ops: Ops = [];
  const add = (kind: number, count: number) => {
    if (!count) return;
    if (ops.at(-2) === kind) ops[ops.length - 1] = (ops.at(-1) as number) + count; else ops.push(kind, count);
  };
  const between = (fromA: number, toA: number, fromB: number, toB: number) => {
    let start = 0;
    while (fromA + start < toA && fromB + start < toB && left[fromA + start] === right[fromB + start]) start++;
    let end = 0;
    while (toA - end > fromA + start && toB - end > fromB + start && left[toA - end - 1] === right[toB - end - 1]) end++;
    const gone = left.slice(fromA + start, toA - end);
    const come = right.slice(fromB + start, toB - end);
    add(0, start);
    const time = until - Date.now();
    const found = gone.length && come.length && time > 0 ? diffArrays(gone, come, { timeout: time }) : undefined;
    if (found) for (const change of found) add(change.removed ? 1 : change.added ? 2 : 0, change.count ?? change.value.length);
    else { add(1, gone.length); add(2, come.length); }
    add(0, end);
  };
  let atA = 0;
  let atB = 0;
  // Short texts are compared as a whole.
  for (const [nextA, nextB] of left.length + right.length > ANCHORED ? anchors(left, right) : []) {
    between(atA, nextA, atB, nextB);
    add(0, 1);
    atA = nextA + 1;
    atB = nextB + 1;
  }
  between(atA, left.length, atB, right.length);
  return ops;
}
