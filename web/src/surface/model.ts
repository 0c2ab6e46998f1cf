// The model of one shown surface: the gateway's state with what the person entered over it, the values of properties, and checks. Pure.
//
// The gateway resolves actions from its own model: what is computed here is only what the person sees.
import { asText, functionOf } from './functions.js';
import { parse, type Expression } from './expression.js';
import { componentsOf, dataOf } from './fold.js';
import { absolute, allowed, change, escapeKey, get, keysOf, same } from './pointer.js';
import { matches } from './regex.js';
import { CALLS_MAX, DEPTH_MAX, DRAWN_MAX, ITEMS_MAX, STRING_MAX, type Component, type Json, type Surface } from './types.js';

/** The components that a person enters values with. */
export const INPUTS: ReadonlySet<string> = new Set(['TextField', 'CheckBox', 'ChoicePicker', 'Slider', 'DateTimeInput']);

/** A place in the tree: a component, and the list item that it stands in ('' outside of a list). */
export interface Place { id: string; scope: string }
/** A place on the way through the tree. */
export interface Visit { component: Component | null; place: Place; above: readonly string[] }

interface Budget { calls: number; chars: number }

const isObject = (value: unknown): value is Record<string, unknown> => value !== null && typeof value === 'object' && !Array.isArray(value);
const own = (value: Record<string, unknown>, key: string): unknown => (Object.hasOwn(value, key) ? value[key] : undefined);

/** Ids of the single children of a component, by property. */
const CHILDREN = ['child', 'trigger', 'content'] as const;

export class SurfaceModel {
  components: ReadonlyMap<string, Component> = new Map();
  /** The gateway's data. */
  data: Json = {};
  surface: Surface | null = null;
  /** The values that the user entered, by pointer. */
  readonly #edits = new Map<string, Json>();
  #view: Json | undefined;

  /** Takes the gateway's state. A path that changed there loses what was entered for it, unless it is `editing`. */
  take(surface: Surface, editing: string | null = null): void {
    const before = this.data;
    const other = this.surface?.surface !== surface.surface;
    this.surface = surface;
    this.components = componentsOf(surface.messages);
    this.data = dataOf(surface.messages);
    this.#view = undefined;
    if (other) { this.#edits.clear(); return; }
    for (const [pointer, value] of [...this.#edits]) {
      const now = get(this.data, pointer);
      const changed = !same(get(before, pointer), now);
      if (same(now, value) || (changed && pointer !== editing)) this.#edits.delete(pointer);
    }
  }

  /** The data with what the person entered. */
  get view(): Json {
    if (this.#view !== undefined) return this.#view;
    let view: Json = this.data;
    for (const [pointer, value] of this.#edits) {
      try { view = change(view, pointer, () => value) ?? {}; } catch { this.#edits.delete(pointer); }
    }
    return (this.#view = view);
  }

  /** Stores a value that the user entered. */
  edit(pointer: string, value: Json): void {
    if (!keysOf(pointer)?.length) return;
    if (same(get(this.data, pointer), value)) this.#edits.delete(pointer);
    else this.#edits.set(pointer, value);
    this.#view = undefined;
  }

  /** The values that the user entered, by pointer. */
  inputs(): { [pointer: string]: Json } {
    return Object.fromEntries(this.#edits);
  }

  /** Forgets what was entered and sent, unless it was changed since. */
  sent(inputs: { readonly [pointer: string]: Json }): void {
    for (const [pointer, value] of Object.entries(inputs)) {
      if (same(this.#edits.get(pointer), value)) this.#edits.delete(pointer);
    }
    this.#view = undefined;
  }

  // --- values -------------------------------------------------------------------------------------------------------------

  /** The value of a property: a literal, `{path}`, or `{call, args}`. */
  value(given: unknown, scope: string): Json | undefined {
    return this.#resolve(given, scope, { calls: CALLS_MAX, chars: STRING_MAX }, 0);
  }

  #resolve(given: unknown, scope: string, budget: Budget, depth: number): Json | undefined {
    if (given === null || typeof given !== 'object') return given as Json | undefined;
    if (depth > DEPTH_MAX) return undefined;
    if (Array.isArray(given)) return given.some((one) => typeof one === 'object' && one !== null) ? given.map((one) => this.#resolve(one, scope, budget, depth + 1) ?? null) : (given as Json[]);
    const record = given as Record<string, unknown>;
    const path = own(record, 'path');
    if (typeof path === 'string') return get(this.view, absolute(path, scope));
    const call = own(record, 'call');
    if (typeof call === 'string') return this.#call(call, own(record, 'args'), scope, budget, depth);
    return given as Json;
  }

  #call(name: string, given: unknown, scope: string, budget: Budget, depth: number): Json | undefined {
    if (--budget.calls < 0) return undefined;
    const args: Record<string, Json | undefined> = Object.create(null);
    for (const [key, value] of Object.entries(isObject(given) ? given : {})) args[key] = this.#resolve(value, scope, budget, depth + 1);
    if (name === 'formatString') return this.#format(asText(args['value']), scope, budget, depth);
    const made = functionOf(name)?.(args);
    if (typeof made === 'string') budget.chars -= made.length;
    return budget.chars < 0 ? undefined : made;
  }

  #format(text: string, scope: string, budget: Budget, depth: number): Json | undefined {
    let parts: Expression[];
    try { parts = parse(text); } catch { return undefined; }
    let out = '';
    for (const part of parts) {
      const piece = asText(this.#resolve(part, scope, budget, depth + 1));
      budget.chars -= piece.length;
      if (budget.chars < 0) return undefined;
      out += piece;
    }
    return out;
  }

  /** A property as text. */
  text(given: unknown, scope: string): string {
    return asText(this.value(given, scope));
  }

  /** A property as a number; null if it is none. */
  number(given: unknown, scope: string): number | null {
    const value = this.value(given, scope);
    const n = typeof value === 'number' ? value : typeof value === 'string' && value.trim() ? Number(value) : NaN;
    return Number.isFinite(n) ? n : null;
  }

  /** The pointer that a property is bound to; null if it is not bound. */
  pointer(given: unknown, scope: string): string | null {
    const path = isObject(given) ? own(given, 'path') : undefined;
    if (typeof path !== 'string') return null;
    const pointer = absolute(path, scope);
    return keysOf(pointer)?.length ? pointer : null;
  }

  // --- the tree -----------------------------------------------------------------------------------------------------------

  /** A component; null if there is none of that id. */
  component(id: string): Component | null {
    return this.components.get(id) ?? null;
  }

  /** The children of a `ChildList`: ids, or one component for each item of an array. `more` items are not drawn. */
  children(given: unknown, scope: string): { places: Place[]; more: number } {
    if (Array.isArray(given)) return { places: given.filter((id): id is string => typeof id === 'string').slice(0, ITEMS_MAX).map((id) => ({ id, scope })), more: 0 };
    const id = isObject(given) ? own(given, 'componentId') : undefined;
    const path = isObject(given) ? own(given, 'path') : undefined;
    if (typeof id !== 'string' || typeof path !== 'string') return { places: [], more: 0 };
    const pointer = absolute(path, scope).replace(/\/$/, '');
    const items = get(this.view, pointer);
    if (!Array.isArray(items)) return { places: [], more: 0 };
    const drawn = Math.min(items.length, ITEMS_MAX);
    return { places: Array.from({ length: drawn }, (_, n) => ({ id, scope: `${pointer}/${n}` })), more: items.length - drawn };
  }

  /** The places under a component. */
  under(component: Component, scope: string): Place[] {
    const places = this.children(component['children'], scope).places;
    for (const name of CHILDREN) if (typeof component[name] === 'string') places.push({ id: component[name], scope });
    const tabs = component['tabs'];
    for (const tab of Array.isArray(tabs) ? (tabs as unknown[]) : []) if (isObject(tab) && typeof tab['child'] === 'string') places.push({ id: tab['child'], scope });
    return places;
  }

  /** All places of the tree, in order; at most as many as are drawn, and none below itself. */
  *visits(): Generator<Visit> {
    const due: Visit[] = [];
    const push = (places: readonly Place[], above: readonly string[]) => {
      for (const place of places.slice(0, left).reverse()) due.push({ component: this.component(place.id), place, above });
      // Places that can no longer be reached are dropped, so that wide trees do not accumulate.
      if (due.length > left) due.splice(0, due.length - left);
    };
    let left = DRAWN_MAX;
    push([{ id: 'root', scope: '' }], []);
    for (; left > 0; left--) {
      const visit = due.pop();
      if (!visit) return;
      yield visit;
      const { component, place, above } = visit;
      if (component && !above.includes(place.id) && above.length < DEPTH_MAX) push(this.under(component, place.scope), [...above, place.id]);
    }
  }

  // --- checks -------------------------------------------------------------------------------------------------------------

  /** The messages of the checks of a component that do not hold. `wrongForm` is the message for `validationRegexp`. */
  failing(component: Component, scope: string, wrongForm: string): string[] {
    const found: string[] = [];
    const checks = component['checks'];
    for (const check of Array.isArray(checks) ? (checks as unknown[]).slice(0, CALLS_MAX) : []) {
      if (isObject(check) && !this.value(check['condition'], scope)) found.push(asText(check['message'] as Json | undefined) || wrongForm);
    }
    const pattern = component['validationRegexp'];
    const text = this.text(component['value'], scope);
    if (typeof pattern === 'string' && text && matches(pattern, text) === false) found.push(wrongForm);
    return found;
  }

  /** The inputs whose checks do not hold. */
  wrong(wrongForm: string): Place[] {
    const places: Place[] = [];
    for (const { component, place } of this.visits()) {
      if (component && INPUTS.has(component.component) && this.failing(component, place.scope, wrongForm).length) places.push(place);
    }
    return places;
  }
}

/** The event that a component's action sends; null if it sends none. */
export function eventOf(action: unknown): string | null {
  const event = isObject(action) ? action['event'] : undefined;
  const name = isObject(event) ? event['name'] : undefined;
  return typeof name === 'string' && name ? name : null;
}

/** The function that a component's action calls; null if it calls none. */
export function callOf(action: unknown): { call: string; args: Record<string, unknown> } | null {
  const called = isObject(action) ? action['functionCall'] : undefined;
  if (!isObject(called) || typeof called['call'] !== 'string') return null;
  return { call: called['call'], args: isObject(called['args']) ? called['args'] : {} };
}

export { allowed, escapeKey };
