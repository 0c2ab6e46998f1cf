// Calls to the render worker: one for the page, started on first use.

import url from './worker.js?worker&url';
import type { Ops } from './compare.js';
import type { Coloured, Task } from './worker.js';

/** Maximum length of highlighted code, in characters. */
export const COLOUR_MAX = 20_000;
/** Cached highlighted blocks, so that scrolling back does not highlight them again. */
const REMEMBERED = 200;

let worker: Worker | null = null;
let next = 1;
const waiting = new Map<number, (value: unknown) => void>();

/** The worker script's URL as a Trusted Types script URL; must be of this origin. */
function trusted(address: string): string {
  const full = new URL(address, location.href);
  if (full.origin !== location.origin) throw new Error('not this origin');
  const types = (globalThis as { trustedTypes?: { createPolicy(name: string, rules: object): { createScriptURL(u: string): unknown } } }).trustedTypes;
  return (types ? types.createPolicy('plexus-worker', { createScriptURL: (u: string) => u }).createScriptURL(full.href) : full.href) as string;
}

function ask<T>(task: Omit<Task & { task: 'diff' }, 'id'> | Omit<Task & { task: 'highlight' }, 'id'>): Promise<T | null> {
  if (!worker) {
    worker = new Worker(trusted(url), { type: 'module', name: 'plexus-render' });
    worker.onmessage = (event: MessageEvent<{ id: number; value: unknown }>) => {
      waiting.get(event.data.id)?.(event.data.value);
      waiting.delete(event.data.id);
    };
    worker.onerror = () => {
      for (const done of waiting.values()) done(null);
      waiting.clear();
    };
  }
  const id = next++;
  return new Promise((resolve) => {
    waiting.set(id, resolve as (value: unknown) => void);
    worker?.postMessage({ ...task, id });
  });
}

/** The line diff of two texts; null if it could not be computed. */
export const diffOps = (a: string, b: string): Promise<Ops | null> => ask<Ops>({ task: 'diff', a, b });

const colours = new Map<string, Promise<Coloured | null>>();

/** Highlighted code; null for an unknown language or too long code. */
export function coloured(code: string, lang: string): Promise<Coloured | null> {
  if (!lang || code.length > COLOUR_MAX || !/^[\w+#-]{1,32}$/.test(lang)) return Promise.resolve(null);
  const key = `${lang}\n${code}`;
  const known = colours.get(key);
  if (known) return known;
  const made = ask<Coloured>({ task: 'highlight', code, lang });
  colours.set(key, made);
  if (colours.size > REMEMBERED) colours.delete(colours.keys().next().value as string);
  return made;
}
