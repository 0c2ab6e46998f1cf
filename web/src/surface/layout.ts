// The views of components that hold others.
import { html, nothing } from 'lit';
import { repeat } from 'lit/directives/repeat.js';
import { text as words } from '../text/en.js';
import type { Place } from './model.js';
import { below, draw, iconIn, keyOf, spoken, textIn, type Draw, type Drawing, type Scene, type Way } from './scene.js';
import type { Component } from './types.js';

const t = words.surface;

const JUSTIFY: ReadonlySet<string> = new Set(['center', 'end', 'spaceAround', 'spaceBetween', 'spaceEvenly', 'start', 'stretch']);
const ALIGN: ReadonlySet<string> = new Set(['start', 'center', 'end', 'stretch']);
/** Components that need room: a row of them wraps where it is narrow. */
const WIDE: ReadonlySet<string> = new Set(['Button', 'Card', 'ChoicePicker', 'Chart', 'CheckBox', 'Code', 'Column', 'DateTimeInput', 'Diff', 'FileTree', 'Image', 'List', 'Markdown', 'Slider', 'Table', 'Tabs', 'Terminal', 'TextField', 'Video']);
/** A row of more than this wraps where it is narrow, whatever is in it. */
const ROW_MAX = 5;
/** A row of more than this wraps everywhere. */
const LINE_MAX = 12;
/** Greatest weight of a child. */
const WEIGHT_MAX = 100;

const chosen = (value: unknown, among: ReadonlySet<string>, otherwise: string): string => (typeof value === 'string' && among.has(value) ? value : otherwise);

/** The value of `style` that gives a child its share of the room. Set as a property: the page's policy forbids style attributes. */
function share(component: Component | null): string {
  const weight = component?.['weight'];
  return typeof weight === 'number' && weight > 0 ? `flex: ${Math.min(weight, WEIGHT_MAX)} 1 0` : '';
}

/** The children at some places, each in its cell. They are drawn at once, one after the other, and none after there were too many. */
function cells({ places, more }: { places: readonly Place[]; more: number }, scene: Scene, way: Way, cell: (one: Place, inside: Drawing) => Drawing): Drawing {
  const made: { key: string; view: Drawing }[] = [];
  for (const one of places) {
    if (scene.left < 0) break;
    made.push({ key: `${made.length} ${keyOf(one)}`, view: cell(one, draw(scene, one, below(way))) });
  }
  return html`${repeat(made, ({ key }) => key, ({ view }) => view)}${more ? html`<p class="problem">${t.moreItems(more)}</p>` : nothing}`;
}

/** Whether a row wraps: always, where it is narrow, or never. */
function wrapping(component: Component, place: Place, scene: Scene): string {
  const { places } = scene.model.children(component['children'], place.scope);
  if (places.length > LINE_MAX) return 'wraps always';
  const wide = places.filter((one) => WIDE.has(scene.model.component(one.id)?.component ?? '')).length;
  return wide > 1 || places.length > ROW_MAX ? 'wraps' : '';
}

function box(kind: string, component: Component, place: Place, scene: Scene, way: Way): Drawing {
  const label = spoken(component, place, scene);
  const names = `${kind} j-${chosen(component['justify'], JUSTIFY, 'start')} a-${chosen(component['align'], ALIGN, 'stretch')}`;
  return html`<div class=${names} role=${label && !way.flat ? 'group' : nothing} aria-label=${label && !way.flat ? label : nothing}>${cells(scene.model.children(component['children'], place.scope), scene, way, (one, inside) => html`<div class="cell" .style=${share(scene.model.component(one.id))}>${inside}</div>`)}</div>`;
}

const row: Draw = (component, place, scene, way) => box(`flex-row ${wrapping(component, place, scene)}`, component, place, scene, way);
const column: Draw = (component, place, scene, way) => box('flex-column', component, place, scene, way);

const list: Draw = (component, place, scene, way) => {
  const found = scene.model.children(component['children'], place.scope);
  const across = component['direction'] === 'horizontal';
  const align = `a-${chosen(component['align'], ALIGN, 'stretch')}`;
  const label = spoken(component, place, scene);
  const items = cells({ places: found.places, more: 0 }, scene, way, (_, inside) => html`<div class="cell" role=${way.flat ? nothing : 'listitem'}>${inside}</div>`);
  // What scrolls sideways can be scrolled by the keyboard.
  return html`<div class=${`items ${across ? 'across' : 'down'} ${align}`} role=${way.flat || !found.places.length ? nothing : 'list'} aria-label=${label || nothing} tabindex=${across && !way.flat ? 0 : nothing}>${items}</div>
    ${found.more ? html`<p class="problem">${t.moreItems(found.more)}</p>` : nothing}`;
};

const card: Draw = (component, place, scene, way) => {
  const child = component['child'];
  return html`<div class="sheet">${typeof child === 'string' ? draw(scene, { id: child, scope: place.scope }, below(way)) : nothing}</div>`;
};

interface Tab { title: string; child: string }
function tabsOf(component: Component, place: Place, scene: Scene): Tab[] {
  const given = component['tabs'];
  const found: Tab[] = [];
  for (const one of Array.isArray(given) ? (given as unknown[]).slice(0, 50) : []) {
    const tab = one as Record<string, unknown> | null;
    if (tab && typeof tab === 'object' && typeof tab['child'] === 'string') found.push({ title: scene.model.text(tab['title'], place.scope).slice(0, 100) || t.tab(found.length + 1), child: tab['child'] });
  }
  return found;
}

const tabs: Draw = (component, place, scene, way) => {
  const all = tabsOf(component, place, scene);
  const now = Math.min(scene.kept(place, 0), all.length - 1);
  const open = all[now];
  if (!open) return nothing;
  if (way.flat) return html`${draw(scene, { id: open.child, scope: place.scope }, below(way))}`;
  const uid = scene.uid(place);
  const turn = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, Home: -now, End: all.length - 1 - now }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const to = (now + step + all.length) % all.length;
    scene.keep(place, to);
    (event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>('[role="tab"]')[to]?.focus();
  };
  return html`<div class="tabs">
    <div class="tab-list" role="tablist" aria-label=${spoken(component, place, scene) || nothing} @keydown=${turn}>${all.map((tab, n) => html`<button type="button" role="tab" id=${`${uid}-t${n}`}
      aria-selected=${n === now ? 'true' : 'false'} aria-controls=${n === now ? `${uid}-p` : nothing} tabindex=${n === now ? 0 : -1} @click=${() => scene.keep(place, n)}>${tab.title}</button>`)}</div>
    <div class="tab-panel" role="tabpanel" id=${`${uid}-p`} aria-labelledby=${`${uid}-t${now}`}>${draw(scene, { id: open.child, scope: place.scope }, below(way))}</div>
  </div>`;
};

const INTERACTIVE: ReadonlySet<string> = new Set(['Button', 'TextField', 'CheckBox', 'ChoicePicker', 'Slider', 'DateTimeInput', 'Tabs', 'Modal', 'Table', 'FileTree', 'Code', 'Diff', 'Terminal', 'Html', 'Chart', 'Video', 'AudioPlayer']);
/** Whether something in a component can be pressed by itself. */
function pressable(scene: Scene, place: Place, above: readonly string[] = []): boolean {
  const component = scene.model.component(place.id);
  if (!component || above.includes(place.id) || above.length > 8) return false;
  return INTERACTIVE.has(component.component) || scene.model.under(component, place.scope).slice(0, 50).some((one) => pressable(scene, one, [...above, place.id]));
}

const modal: Draw = (component, place, scene, way) => {
  const { trigger, content } = component as { trigger?: unknown; content?: unknown };
  if (typeof trigger !== 'string' || typeof content !== 'string') return nothing;
  const opener: Place = { id: trigger, scope: place.scope };
  if (way.flat) return draw(scene, opener, below(way));
  const label = textIn(scene.model, opener) || iconIn(scene.model, opener) || t.dialog;
  const open = () => scene.openModal(place, { id: content, scope: place.scope }, label);
  // Opening is all that a trigger does: its own action would tell the agent of each look.
  if (scene.model.component(trigger)?.component === 'Button') return draw(scene, opener, { ...below(way), press: open });
  if (pressable(scene, opener)) return html`<div @click=${open}>${draw(scene, opener, below(way))}</div>`;
  return html`<button type="button" class="bare" aria-haspopup="dialog" @click=${open}>${draw(scene, opener, { ...below(way), flat: true })}</button>`;
};

const divider: Draw = (component) => html`<div class=${component['axis'] === 'vertical' ? 'rule upright' : 'rule'} role="presentation"></div>`;

export const layout: Record<string, Draw> = { Row: row, Column: column, List: list, Card: card, Tabs: tabs, Modal: modal, Divider: divider };
