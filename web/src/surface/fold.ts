// The fold of changes into the latest state of a surface. Pure: the same changes give the gateway's own compact state.
import { allowed, change } from './pointer.js';
import { TITLE_MAX, type Ask, type Change, type Component, type Json, type Message, type Surface } from './types.js';

const NAME = /^[A-Za-z0-9_.-]{1,64}$/;
const VERSION = 'v0.9';

const object = (value: unknown): Record<string, unknown> | null => (value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as Record<string, unknown>) : null);

/** The outcome of a change. `gap`: changes before it are missing, so the state has to be read again. */
export type Folded = { is: 'new'; surface: Surface } | { is: 'old' } | { is: 'gap' } | { is: 'malformed' };

/** The name of the surface that an event is about; null if it names none. */
export function surfaceOf(body: unknown): string | null {
  const name = object(body)?.['surface'];
  return typeof name === 'string' && NAME.test(name) && allowed(name) ? name : null;
}

/** The components of messages, by id, in the order in which each was first named. */
export function componentsOf(messages: readonly Message[], known: ReadonlyMap<string, Component> = new Map()): Map<string, Component> {
  const all = new Map(known);
  for (const message of messages) {
    const list = message?.updateComponents?.components;
    for (const one of Array.isArray(list) ? (list as unknown[]) : []) {
      const component = object(one);
      const id = component?.['id'];
      if (component && typeof id === 'string' && allowed(id) && typeof component['component'] === 'string') all.set(id, component as unknown as Component);
    }
  }
  return all;
}

/** The data of messages, beginning with `data`. A message that cannot be applied is left out. */
export function dataOf(messages: readonly Message[], data: Json = {}): Json {
  let at: Json = data;
  for (const message of messages) {
    const update = message?.updateDataModel;
    if (!object(update) || !update) continue;
    const path = typeof update.path === 'string' ? update.path : '/';
    const more = update.append;
    try {
      at = change(at, path, (old) => (Array.isArray(more) ? [...(Array.isArray(old) ? old : []), ...more] : update.value)) ?? {};
    } catch { /* the pointer leads through a value: the gateway would not have sent it */ }
  }
  return at;
}

const askOf = (ask: unknown): Ask | null => {
  const given = object(ask);
  if (!given || typeof given['request_id'] !== 'string') return null;
  const submit = Array.isArray(given['submit']) ? given['submit'].filter((id): id is string => typeof id === 'string') : [];
  return { request_id: given['request_id'], submit };
};

/** A surface in its compact form, its members in the gateway's order. */
function compact(from: Omit<Surface, 'messages'>, create: Message['createSurface'], components: ReadonlyMap<string, Component>, data: Json): Surface {
  const surfaceId = from.surface;
  const messages: Message[] = [{ version: VERSION, createSurface: create ?? { surfaceId } }];
  if (components.size) messages.push({ version: VERSION, updateComponents: { surfaceId, components: [...components.values()] } });
  if (object(data) === null || Object.keys(data as object).length) messages.push({ version: VERSION, updateDataModel: { surfaceId, path: '/', value: data } });
  const { surface, rev, title, pinned, at, ask, closed } = from;
  return {
    surface, rev,
    ...(typeof title === 'string' ? { title: title.slice(0, TITLE_MAX) } : {}),
    ...(typeof pinned === 'boolean' ? { pinned } : {}),
    ...(typeof at === 'string' ? { at } : {}),
    ...(ask ? { ask } : {}),
    ...(closed ? { closed } : {}),
    messages,
  };
}

const createdBy = (messages: readonly Message[]) => messages.findLast((message) => object(message?.createSurface))?.createSurface;

/** Applies a change to the state of its surface; `at` is the time of its event. */
export function fold(known: Surface | undefined, body: unknown, at?: string): Folded {
  const name = surfaceOf(body);
  const given = object(body) as Change | null;
  if (!name || !given || !Number.isSafeInteger(given.rev)) return { is: 'malformed' };
  if (!Array.isArray(given.messages)) return { is: 'malformed' };
  const messages = given.messages;
  if (known && given.rev <= known.rev) return { is: 'old' };
  if (given.base === undefined) {
    const whole = { ...given, surface: name, rev: given.rev, at: given.at ?? at, ask: askOf(given.ask) };
    return { is: 'new', surface: compact(whole, createdBy(messages), componentsOf(messages), dataOf(messages)) };
  }
  if (!known || given.base !== known.rev) return { is: 'gap' };
  const next: Omit<Surface, 'messages'> = {
    surface: name,
    rev: given.rev,
    title: given.title ?? known.title,
    pinned: given.pinned ?? known.pinned,
    at: given.at ?? at ?? known.at,
    ask: given.ask === undefined ? known.ask : askOf(given.ask),
    closed: given.closed === true,
  };
  // A closed surface is shown as it last was.
  if (next.closed) return { is: 'new', surface: { ...compact({ ...next, pinned: false, ask: null }, createdBy(known.messages), componentsOf(known.messages), dataOf(known.messages)) } };
  const begun = messages.findLastIndex((message) => object(message?.createSurface));
  // Within a change, `createSurface` begins anew.
  const kept = begun < 0 ? known.messages : [];
  return {
    is: 'new',
    surface: compact(next, createdBy(messages) ?? createdBy(known.messages), componentsOf(messages.slice(Math.max(0, begun)), componentsOf(kept)), dataOf(messages.slice(Math.max(0, begun)), dataOf(kept))),
  };
}
