// The parts of the surface that the views of components need.
import { html, nothing, type TemplateResult } from 'lit';
import { text as words } from '../text/en.js';
import type { Place, SurfaceModel } from './model.js';
import { iconWords } from './icons.js';
import { DEPTH_MAX, type Component, type Json } from './types.js';

const t = words.surface;

export type Drawing = TemplateResult | typeof nothing;

/** The way from the root to a component. */
export interface Way {
  /** The ids above it: none is drawn below itself. */
  above: readonly string[];
  /** Within a button: nothing in it can be pressed or changed. */
  flat: boolean;
  /** The effect of a press in place of the component's own action. */
  press?: (() => void) | undefined;
}

/** The surface around the components. */
export interface Scene {
  readonly model: SurfaceModel;
  readonly agent: string;
  readonly session: string;
  /** Whether fields cannot be changed. */
  readonly fixed: boolean;
  /** Components that may still be drawn. */
  left: number;
  /** The reason why a component cannot be pressed now; empty if it can. */
  locked(id: string): string;
  /** Sends an event of a component. */
  act(place: Place, event: string, item?: number | string): void;
  /** The person entered a value. */
  edit(place: Place, pointer: string, value: Json): void;
  /** The field at a place has the focus, or lost it. */
  editing(place: Place, pointer: string | null): void;
  /** Whether the messages of the checks of a place are shown. */
  touched(place: Place): boolean;
  /** Something small that a place remembers, such as the chosen tab. */
  kept<T>(place: Place, first: T): T;
  keep(place: Place, value: unknown): void;
  /** An id for references between elements. */
  uid(place: Place): string;
  openModal(place: Place, content: Place, label: string): void;
  draw: Record<string, (component: Component, place: Place, scene: Scene, way: Way) => Drawing>;
}

export type Draw = Scene['draw'][string];

/** A place as a key. */
export const keyOf = (place: Place): string => `${place.id}@${place.scope}`;

/** Draws the component at a place. */
export function draw(scene: Scene, place: Place, way: Way): Drawing {
  scene.left--;
  if (scene.left < 0) return scene.left === -1 ? problem(t.tooMany) : nothing;
  if (way.above.includes(place.id)) return problem(t.circle(place.id.slice(0, 64)));
  if (way.above.length >= DEPTH_MAX) return problem(t.tooDeep);
  const component = scene.model.component(place.id);
  if (!component) return problem(t.missing(place.id.slice(0, 64)));
  const view = Object.hasOwn(scene.draw, component.component) ? scene.draw[component.component] : undefined;
  return view ? view(component, place, scene, { ...way, above: [...way.above, place.id] }) : unknown(component);
}

/** The way to the children of a component. */
export const below = (way: Way): Way => ({ above: way.above, flat: way.flat });

const problem = (message: string): Drawing => html`<p class="problem">${message}</p>`;

/** Maximum length of a component's JSON that is shown, in characters. */
const JSON_SHOWN = 20_000;
function unknown(component: Component): Drawing {
  return html`<details class="unknown"><summary>${t.unknown(component.component.slice(0, 64))}</summary><pre class="raw" tabindex="0">${JSON.stringify(component, null, 2).slice(0, JSON_SHOWN)}</pre></details>`;
}

/** The label that an agent gave for screen readers. */
export function spoken(component: Component, place: Place, scene: Scene): string {
  return accessibility(component, 'label', place, scene);
}
/** The description that an agent gave for screen readers. */
export function described(component: Component, place: Place, scene: Scene): string {
  return accessibility(component, 'description', place, scene);
}
function accessibility(component: Component, what: 'label' | 'description', place: Place, scene: Scene): string {
  const given = component['accessibility'];
  return given !== null && typeof given === 'object' ? scene.model.text((given as Record<string, unknown>)[what], place.scope).slice(0, 400) : '';
}

/** The text in a component, for labels. */
export function textIn(model: SurfaceModel, place: Place, above: readonly string[] = []): string {
  const component = model.component(place.id);
  if (!component || above.includes(place.id) || above.length > 8) return '';
  if (component.component === 'Icon') return '';
  const ownText = ['text', 'label', 'title'].map((name) => model.text(component[name], place.scope)).find((found) => found) ?? '';
  return [ownText, ...model.under(component, place.scope).slice(0, 20).map((one) => textIn(model, one, [...above, place.id]))].filter(Boolean).join(' ').slice(0, 200);
}

/** The name of the first icon in a component, in words. */
export function iconIn(model: SurfaceModel, place: Place, above: readonly string[] = []): string {
  const component = model.component(place.id);
  if (!component || above.includes(place.id) || above.length > 8) return '';
  if (component.component === 'Icon') return iconWords(model.text(component['name'], place.scope)).slice(0, 40);
  return model.under(component, place.scope).slice(0, 20).map((one) => iconIn(model, one, [...above, place.id])).find((found) => found) ?? '';
}
