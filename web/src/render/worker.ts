// The render worker: computes line diffs and syntax highlighting. Returns data, never markup.

import { compared, type Ops } from './compare.js';

export type Task = { id: number; task: 'diff'; a: string; b: string } | { id: number; task: 'highlight'; code: string; lang: string };
/** Pieces of text with their highlight class, or null. */
export type Coloured = [string | null, string][];

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
  // Highlighting must not change the text.
  return out.map(([, text]) => text).join('') === code ? out : null;
}

self.onmessage = async (event: MessageEvent<Task>) => {
  const task = event.data;
  let value: Ops | Coloured | null = null;
  try {
    value = task.task === 'diff' ? compared(task.a, task.b) : await highlight(task.code, task.lang);
  } catch {
    value = null;
  }
  self.postMessage({ id: task.id, value });
};
