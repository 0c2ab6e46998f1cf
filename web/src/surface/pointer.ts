// JSON Pointers into a surface's data. Data is never changed in place: what did not change keeps its identity, so that views can tell.
import type { Json } from './types.js';

/** Keys that would reach the prototype of an object. */
const FORBIDDEN: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);
const INDEX = /^(?:0|[1-9]\d{0,8})$/;
/** Maximum distance beyond its end at which an array may be written, so that one message cannot make a huge array. */
const GAP_MAX = 1_000;

/** Whether a key or id may be used. */
export const allowed = (key: string): boolean => !FORBIDDEN.has(key);

/** The keys of a pointer; null if one of them is forbidden or has a `~` that is neither `~0` nor `~1`. Empty keys are left out, as A2UI's own model does: `/` is the whole. */
export function keysOf(pointer: string): string[] | null {
  if (/~(?![01])/.test(pointer)) return null;
  const keys = pointer.split('/').filter((key) => key !== '').map((key) => key.replace(/~([01])/g, (_, n) => (n === '1' ? '/' : '~')));
  return keys.every(allowed) ? keys : null;
}

/** A key as a part of a pointer. */
export const escapeKey = (key: string): string => key.replaceAll('~', '~0').replaceAll('/', '~1');

/** The absolute form of a path that may be relative to `scope`. */
export function absolute(path: string, scope: string): string {
  if (path.startsWith('/')) return path;
  if (path === '' || path === '.') return scope || '/';
  return `${scope === '/' ? '' : scope.replace(/\/$/, '')}/${path}`;
}

/** The value at a pointer; undefined if there is none. */
export function get(data: Json | undefined, pointer: string): Json | undefined {
  const keys = keysOf(pointer);
  if (!keys) return undefined;
  let at: Json | undefined = data;
  for (const key of keys) {
    if (Array.isArray(at)) at = INDEX.test(key) ? at[Number(key)] : undefined;
    else if (at !== null && typeof at === 'object') at = Object.hasOwn(at, key) ? at[key] : undefined;
    else return undefined;
  }
  return at;
}

/** A writer could not follow the pointer. */
export class BadPointer extends Error {}

/** `data` with `change` applied to the value at a pointer; undefined removes it (in an array: leaves null). */
export function change(data: Json | undefined, pointer: string, to: (old: Json | undefined) => Json | undefined): Json | undefined {
  const keys = keysOf(pointer);
  if (!keys) throw new BadPointer(pointer);
  return into(data, keys, 0, to);
}

function into(at: Json | undefined, keys: readonly string[], n: number, to: (old: Json | undefined) => Json | undefined): Json | undefined {
  const key = keys[n];
  if (key === undefined) return to(at);
  // A missing value becomes a container, as its key needs it.
  const box: Json = at ?? (INDEX.test(key) && n > 0 ? [] : {});
  if (typeof box !== 'object' || box === null) throw new BadPointer(keys.join('/'));
  if (Array.isArray(box)) {
    const index = Number(key);
    if (!INDEX.test(key) || index > box.length + GAP_MAX) throw new BadPointer(keys.join('/'));
    const made = into(box[index], keys, n + 1, to);
    if (made === box[index] && index < box.length) return box;
    const copy = box.slice();
    while (copy.length < index) copy.push(null);
    copy[index] = made ?? null;
    return copy;
  }
  const old = Object.hasOwn(box, key) ? box[key] : undefined;
  const made = into(old, keys, n + 1, to);
  if (made === undefined) {
    if (old === undefined) return at;
    const { [key]: _gone, ...rest } = box;
    return rest;
  }
  return made === old ? box : { ...box, [key]: made };
}

/** Whether two values are the same JSON. */
export function same(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) return Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((one, n) => same(one, b[n]));
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && same(a[key], b[key]));
}
