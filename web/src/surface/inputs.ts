// The views of components that a person presses or enters values with.
import { html, nothing } from 'lit';
import { live } from 'lit/directives/live.js';
import { safeUrl } from '../render/markdown.js';
import { cut, oneLine, visible } from '../render/visible.js';
import { text as words } from '../text/en.js';
import { icon } from '../ui/icons.js';
import { callOf, eventOf, type Place } from './model.js';
import { below, described, draw, iconIn, spoken, textIn, type Draw, type Drawing, type Scene } from './scene.js';
import { ITEMS_MAX, type Component, type Json } from './types.js';

const t = words.surface;

/** Maximum length of the value of a text field that can be edited here, in characters. */
const FIELD_MAX = 100_000;
/** Labels of fields in which people might type a secret. */
const SECRET = /pass\s*-?_?(?:word|phrase|code|wd)|\bpwd?\b|\bpin\b|secret|token|api[\s_-]*key|private[\s_-]*key|credential|\bcvv\b|\bcvc\b|card[\s_-]*number|seed[\s_-]*phrase|kennwort|passwort/i;

/** Whether a text field asks for a secret, as far as its form and label tell. */
export function isSecret(component: Component, label: string, pointer: string | null): boolean {
  return component['variant'] === 'obscured' || SECRET.test(label) || SECRET.test((pointer ?? '').replaceAll('/', ' '));
}

const button: Draw = (component, place, scene, way) => {
  const child = component['child'];
  const inside: Place | null = typeof child === 'string' ? { id: child, scope: place.scope } : null;
  const content = inside ? draw(scene, inside, { ...below(way), flat: true }) : nothing;
  if (way.flat) return content;
  const text = inside ? textIn(scene.model, inside) : '';
  const label = spoken(component, place, scene) || (text ? '' : (inside && iconIn(scene.model, inside)) || place.id.slice(0, 64));
  const variant = component['variant'] === 'primary' ? 'primary' : component['variant'] === 'borderless' ? 'ghost' : '';
  const called = callOf(component['action']);
  if (called?.call === 'openUrl' && !way.press) return link(scene.model.text(called.args['url'], place.scope), content, variant, label);
  const event = eventOf(component['action']);
  const failing = scene.model.failing(component, place.scope, t.wrongForm);
  const locked = way.press ? '' : event ? scene.locked(place.id) : t.doesNothing;
  const off = Boolean(failing.length || locked);
  const press = () => { if (off) return; if (way.press) way.press(); else if (event) scene.act(place, event); };
  const uid = scene.uid(place);
  const why = failing[0] ?? locked;
  return html`<span class="pressed"><button type="button" class=${`press ${variant}`} aria-disabled=${off ? 'true' : nothing} aria-label=${label || nothing} aria-haspopup=${way.press ? 'dialog' : nothing}
    aria-describedby=${failing.length ? `${uid}-w` : nothing} title=${why || nothing} @click=${press}>${content}</button>
    ${failing.length ? html`<span class="hint" id=${`${uid}-w`}>${failing[0]}</span>` : nothing}</span>`;
};

/** A button that leads away: a link, with its address beside it. */
function link(address: string, content: Drawing, variant: string, label: string): Drawing {
  const url = safeUrl(address);
  const shown = oneLine(address.slice(0, 300));
  if (!url) return html`<span class="pressed"><button type="button" class=${`press ${variant}`} aria-disabled="true" aria-label=${label || nothing} title=${t.noAddress}>${content}</button><span class="hint">${t.noAddress} <span class="dead">${shown}</span></span></span>`;
  return html`<span class="pressed"><a class=${`btn press ${variant}`} href=${url.href} target="_blank" rel="noopener noreferrer nofollow" referrerpolicy="no-referrer" aria-label=${label || nothing}>${content} ${icon('share', 14)}</a>
    <span class="hint address">${t.opens(oneLine(url.href.slice(0, 300)))}</span></span>`;
}

/** The common properties of all fields. */
interface Field { uid: string; label: string; pointer: string | null; off: boolean; failing: string[]; note: string }

function fieldOf(component: Component, place: Place, scene: Scene): Field {
  const pointer = scene.model.pointer(component['value'], place.scope);
  const label = scene.model.text(component['label'], place.scope).slice(0, 400) || spoken(component, place, scene) || t.field;
  return {
    uid: scene.uid(place), label, pointer,
    off: pointer === null || scene.fixed,
    failing: scene.touched(place) ? scene.model.failing(component, place.scope, t.wrongForm) : [],
    note: described(component, place, scene),
  };
}

const about = (field: Field): string | typeof nothing => [field.note ? `${field.uid}-n` : '', field.failing.length ? `${field.uid}-w` : ''].filter(Boolean).join(' ') || nothing;
const notes = (field: Field): Drawing => html`${field.note ? html`<span class="hint" id=${`${field.uid}-n`}>${field.note}</span>` : nothing}
  ${field.failing.length ? html`<span class="wrong" id=${`${field.uid}-w`}>${field.failing.map((message) => html`<span>${message}</span>`)}</span>` : nothing}`;
/** In a button a field is only its value. */
const flat = (value: string): Drawing => html`<span class="said">${value}</span>`;

const textField: Draw = (component, place, scene, way) => {
  const value = scene.model.text(component['value'], place.scope);
  if (way.flat) return flat(component['variant'] === 'obscured' ? '' : value);
  // A field with more text than a person could edit would only be slow.
  if (value.length > FIELD_MAX) return html`<p class="text body">${visible(cut(value, 2_000))} ${words.session.restOfLine(value.length - 2_000)}</p>`;
  const field = fieldOf(component, place, scene);
  const variant = component['variant'];
  const { pointer } = field;
  const enter = (event: Event) => { if (pointer !== null) scene.edit(place, pointer, (event.target as HTMLInputElement).value); };
  const focus = () => scene.editing(place, pointer);
  const blur = () => scene.editing(place, null);
  const secret = isSecret(component, field.label, pointer);
  const input = variant === 'longText'
    ? html`<textarea id=${field.uid} rows="3" maxlength=${FIELD_MAX} .value=${live(value)} ?readonly=${field.off} aria-invalid=${field.failing.length ? 'true' : nothing} aria-describedby=${about(field)} autocomplete="off" @input=${enter} @focus=${focus} @blur=${blur}></textarea>`
    : html`<input id=${field.uid} type=${variant === 'obscured' ? 'password' : 'text'} inputmode=${variant === 'number' ? 'decimal' : nothing} maxlength=${FIELD_MAX} .value=${live(value)} ?readonly=${field.off}
        aria-invalid=${field.failing.length ? 'true' : nothing} aria-describedby=${secret ? `${field.uid}-s ${about(field) === nothing ? '' : String(about(field))}`.trim() : about(field)}
        autocomplete=${variant === 'obscured' ? 'new-password' : 'off'} @input=${enter} @focus=${focus} @blur=${blur}>`;
  return html`<div class="field"><label for=${field.uid}>${field.label}</label>${input}${notes(field)}
    ${secret ? html`<p class="secret" id=${`${field.uid}-s`}>${icon('warn', 14)}<span>${t.secret}</span></p>` : nothing}</div>`;
};

const checkBox: Draw = (component, place, scene, way) => {
  const checked = scene.model.value(component['value'], place.scope) === true;
  const field = fieldOf(component, place, scene);
  if (way.flat) return flat(`${checked ? '☑' : '☐'} ${field.label}`);
  const { pointer } = field;
  return html`<div class="field"><label class="check"><input type="checkbox" id=${field.uid} .checked=${live(checked)} ?disabled=${field.off} aria-invalid=${field.failing.length ? 'true' : nothing} aria-describedby=${about(field)}
    @change=${(event: Event) => { if (pointer !== null) scene.edit(place, pointer, (event.target as HTMLInputElement).checked); }}><span>${field.label}</span></label>${notes(field)}</div>`;
};

interface Choice { label: string; value: string }
function choicesOf(component: Component, place: Place, scene: Scene): Choice[] {
  const given = component['options'];
  const found: Choice[] = [];
  for (const one of Array.isArray(given) ? (given as unknown[]).slice(0, ITEMS_MAX) : []) {
    const option = one as Record<string, unknown> | null;
    if (option && typeof option === 'object' && typeof option['value'] === 'string') found.push({ value: option['value'], label: scene.model.text(option['label'], place.scope).slice(0, 400) || option['value'] });
  }
  return found;
}

const choicePicker: Draw = (component, place, scene, way) => {
  const value = scene.model.value(component['value'], place.scope);
  const picked = Array.isArray(value) ? value.map(String) : typeof value === 'string' && value ? [value] : [];
  const all = choicesOf(component, place, scene);
  if (way.flat) return flat(all.filter((one) => picked.includes(one.value)).map((one) => one.label).join(', '));
  const field = fieldOf(component, place, scene);
  const { pointer } = field;
  const several = component['variant'] === 'multipleSelection';
  const chips = component['displayStyle'] === 'chips';
  const wanted = scene.kept(place, '');
  const shown = all.filter((one) => one.label.toLowerCase().includes(wanted.toLowerCase()));
  const pick = (choice: Choice, on: boolean) => {
    if (pointer === null) return;
    const next: Json = several ? all.filter((one) => (one === choice ? on : picked.includes(one.value))).map((one) => one.value) : [choice.value];
    scene.edit(place, pointer, next);
  };
  const filter = component['filterable'] === true
    ? html`<input type="search" class="narrow" aria-label=${t.filterChoices} placeholder=${t.filterChoices} .value=${live(wanted)} @input=${(event: Event) => scene.keep(place, (event.target as HTMLInputElement).value.slice(0, 100))}>` : nothing;
  return html`<fieldset class="field" aria-describedby=${about(field)}><legend>${field.label === t.field ? t.choose : field.label}</legend>${filter}
    <div class=${chips ? 'choices chips' : 'choices'}>${shown.map((choice) => html`<label class=${chips ? 'pick' : 'check'}><input type=${several ? 'checkbox' : 'radio'} name=${field.uid} .checked=${live(picked.includes(choice.value))} ?disabled=${field.off}
      @change=${(event: Event) => pick(choice, (event.target as HTMLInputElement).checked)}><span>${choice.label}</span></label>`)}
    ${shown.length ? nothing : html`<span class="hint">${t.noChoices}</span>`}</div>${notes(field)}</fieldset>`;
};

const slider: Draw = (component, place, scene, way) => {
  const least = typeof component['min'] === 'number' ? component['min'] : 0;
  const most = typeof component['max'] === 'number' ? Math.max(component['max'], least) : least + 100;
  const value = Math.min(most, Math.max(least, scene.model.number(component['value'], place.scope) ?? least));
  if (way.flat) return flat(String(value));
  const field = fieldOf(component, place, scene);
  const { pointer } = field;
  const whole = Number.isInteger(least) && Number.isInteger(most) && most - least >= 2;
  const enter = (event: Event) => { if (pointer !== null) scene.edit(place, pointer, Number((event.target as HTMLInputElement).value)); };
  return html`<div class="field"><div class="between"><label for=${field.uid}>${field.label}</label><output for=${field.uid}>${value.toLocaleString('en')}</output></div>
    <input type="range" id=${field.uid} min=${least} max=${most} step=${whole ? 1 : (most - least) / 100 || 1} .value=${live(String(value))} ?disabled=${field.off} aria-describedby=${about(field)}
      .style=${`--at: ${most > least ? ((value - least) / (most - least)) * 100 : 0}%`} @input=${enter} @focus=${() => scene.editing(place, pointer)} @blur=${() => scene.editing(place, null)}>
    <div class="between ends" aria-hidden="true"><span>${least.toLocaleString('en')}</span><span>${most.toLocaleString('en')}</span></div>${notes(field)}</div>`;
};

type Form = 'date' | 'time' | 'datetime-local';
/** A date or time as the browser's fields take it: without a zone, to the minute. */
export function localForm(value: string, form: Form): string {
  const date = /\d{4}-\d\d-\d\d/.exec(value)?.[0] ?? '';
  const time = /(?:^|T|\s)(\d\d:\d\d)/.exec(value)?.[1] ?? '';
  if (form === 'date') return date;
  if (form === 'time') return time;
  return date && time ? `${date}T${time}` : date ? `${date}T00:00` : '';
}

const dateTime: Draw = (component, place, scene, way) => {
  const value = scene.model.text(component['value'], place.scope).slice(0, 64);
  if (way.flat) return flat(value);
  const field = fieldOf(component, place, scene);
  const { pointer } = field;
  const withTime = component['enableTime'] === true;
  const form: Form = !withTime ? 'date' : component['enableDate'] === true ? 'datetime-local' : 'time';
  const bound = (name: 'min' | 'max') => localForm(scene.model.text(component[name], place.scope).slice(0, 64), form) || nothing;
  return html`<div class="field"><label for=${field.uid}>${field.label}</label><input type=${form} class="short" id=${field.uid} min=${bound('min')} max=${bound('max')} .value=${live(localForm(value, form))} ?readonly=${field.off}
    aria-invalid=${field.failing.length ? 'true' : nothing} aria-describedby=${about(field)} @focus=${() => scene.editing(place, pointer)} @blur=${() => scene.editing(place, null)}
    @input=${(event: Event) => { if (pointer !== null && !field.off) scene.edit(place, pointer, (event.target as HTMLInputElement).value); }}>${notes(field)}</div>`;
};

export const inputs: Record<string, Draw> = { Button: button, TextField: textField, CheckBox: checkBox, ChoicePicker: choicePicker, Slider: slider, DateTimeInput: dateTime };
