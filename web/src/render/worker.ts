// Off the main thread: differences of long texts, colours of code. Says only data: no markup comes back.

import { diffArrays } from 'diff';

/** How long a difference may be looked for, ms; then the changed middle is shown as a whole. */
const DIFF_MS = 2_000;

export type Task = { id: number; task: 'diff'; a: string; b: string } | { id: number; task: 'highlight'; code: string; lang: string };
/** Stretches of lines: kind (0 same, 1 removed, 2 added), how many. */
export type Ops = number[];
/** Text with the class of its colour, or none. */
export type Coloured = [string | null, string][];

const lines = (text: string): string[] => {
  const all = text.split('\n');
  if (all.at(-1) === '') all.pop();
  return all;
};

function diff(a: string, b: string): Ops {
  const left = lines(a);
  const right = lines(b);
  let start = 0;
  while (start < left.length && start < right.length && left[start] === right[start]) start++;
  let end = 0;
  while (end < left.length - start && end < right.length - start && left[left.length - 1 - end] === right[right.length - 1 - end]) end++;
  const from = left.slice(start, left.length - end);
  const to = right.slice(start, right.length - end);
  const ops: Ops = [];
  const add = (kind: number, count: number) => {
    if (!count) return;
    if (ops.at(-2) === kind) ops[ops.length - 1] = (ops.at(-1) as number) + count; else ops.push(kind, count);
  };
  add(0, start);
  const found = from.length && to.length ? diffArrays(from, to, { timeout: DIFF_MS }) : undefined;
  if (found) for (const change of found) add(change.removed ? 1 : change.added ? 2 : 0, change.count ?? change.value.length);
  else { add(1, from.length); add(2, to.length); }
  add(0, end);
  return ops;
}

interface EmitterNode { scope?: string; children?: (EmitterNode | string)[] }

function flatten(node: EmitterNode, scope: string | null, into: Coloured): void {
  const own = typeof node.scope === 'string' ? (node.scope.split('.')[0] as string) : scope;
  for (const child of node.children ?? []) {
    if (typeof child !== 'string') { flatten(child, own, into); continue; }
    const last = into.at(-1);
    if (last && last[0] === own) last[1] += child; else into.push([own, child]);
  }
}

async function highlight(code: string, lang: string): Promise<Coloured | null> {
  const { languages } = await import('./languages.js');
  const name = lang.toLowerCase();
  if (!languages.getLanguage(name)) return null;
  const result = languages.highlight(code, { language: name, ignoreIllegals: true });
  const root = (result as unknown as { _emitter?: { rootNode?: EmitterNode } })._emitter?.rootNode;
  if (!root) return null;
  const out: Coloured = [];
  flatten(root, null, out);
  // The colours must not change a character of it.
  return out.map(([, text]) => text).join('') === code ? out : null;
}

self.onmessage = async (event: MessageEvent<Task>) => {
  const task = event.data;
  let value: Ops | Coloured | null = null;
  try {
    value = task.task === 'diff' ? diff(task.a, task.b) : await highlight(task.code, task.lang);
  } catch {
    value = null;
  }
  self.postMessage({ id: task.id, value });
};
