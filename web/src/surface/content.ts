// The views of components that show something.
import { html, nothing } from 'lit';
import { guard } from 'lit/directives/guard.js';
import { codeBlock, markdown, safeUrl } from '../render/markdown.js';
import { h } from '../render/dom.js';
import { segments } from '../render/segment.js';
import { cut, oneLine, readable } from '../render/visible.js';
import { text as words } from '../text/en.js';
import { icon } from '../ui/icons.js';
import { symbol } from './icons.js';
import { eventOf } from './model.js';
import { described, spoken, type Draw, type Drawing } from './scene.js';
import { unifiedView } from './unified.js';
import { diffView } from '../render/diffview.js';
import { SHOWN_MAX, STRING_MAX, type Json } from './types.js';
import './chart.js';
import './files.js';
import './html.js';
import './table.js';
import './terminal.js';

const t = words.surface;

/** Maximum length of Markdown that is formatted, in characters; a longer text is shown unformatted. */
const MARKDOWN_MAX = 100_000;
/** Maximum number of blocks of Markdown. */
const BLOCKS_MAX = 400;
/** Text that might be Markdown. */
const MARKED = /[*_`#[\]|~<>\\]|^\s*(?:[-+]|\d+[.)])\s|\n|https?:\/\//;
/** Maximum number of lines of code with numbers. */
const NUMBERED_MAX = 12_000;

/** Markdown as elements; its headings come below the surface's own, with no level left out. */
export function prose(source: string): HTMLElement {
  const el = h('div', 'prose');
  if (source.length > MARKDOWN_MAX) { el.append(h('p', 'plain', shownText(source))); return el; }
  for (const part of segments(source).slice(0, BLOCKS_MAX)) el.append(part.kind === 'code' ? codeBlock(part.text, part.lang) : markdown(part.text));
  const headings = [...el.querySelectorAll('h1,h2,h3,h4,h5,h6')];
  const levels = [...new Set(headings.map((heading) => heading.localName))].sort();
  let before = 2;
  for (const heading of headings) {
    before = Math.min(levels.indexOf(heading.localName) + 3, before + 1);
    heading.setAttribute('role', 'heading');
    heading.setAttribute('aria-level', String(before));
  }
  return el;
}

/** A text as it is shown: a very long one is cut, the fold of the frame has more of it. */
const shownText = (value: string): string => (value.length > SHOWN_MAX ? `${readable(cut(value, SHOWN_MAX))} ${words.session.restOfLine(value.length - SHOWN_MAX)}` : readable(value));

const VARIANTS: ReadonlySet<string> = new Set(['h1', 'h2', 'h3', 'h4', 'h5', 'caption', 'body']);

const text: Draw = (component, place, scene, way) => {
  const value = scene.model.text(component['text'], place.scope);
  const given = component['variant'];
  const variant = typeof given === 'string' && VARIANTS.has(given) ? given : 'body';
  const heading = /^h\d$/.test(variant);
  if (way.flat) return html`<span class=${`text ${variant}`} dir="auto">${shownText(value)}</span>`;
  if (heading) return html`<div class=${`text ${variant}`} role="heading" aria-level="3" dir="auto">${shownText(value)}</div>`;
  if (value.length > SHOWN_MAX || !MARKED.test(value)) return html`<p class=${`text ${variant}`} dir="auto">${shownText(value)}</p>`;
  return html`<div class=${`text ${variant}`}>${guard([value], () => prose(value))}</div>`;
};

const marked: Draw = (component, place, scene, way) => {
  const value = scene.model.text(component['text'], place.scope);
  return way.flat ? html`<span class="text body">${shownText(value)}</span>` : html`<div class="markdown">${guard([value], () => prose(value))}</div>`;
};

const iconView: Draw = (component, place, scene) => {
  const given = component['name'];
  const name = given !== null && typeof given === 'object' && 'svgPath' in given ? given : scene.model.value(given, place.scope);
  return html`<span class="icon">${symbol(name, spoken(component, place, scene))}</span>`;
};

// --- pictures, videos, sounds --------------------------------------------------------------------------------------------------

const KINDS = {
  picture: /^data:image\/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=\s]*$/i,
  video: /^data:video\/(?:mp4|webm|ogg);base64,[A-Za-z0-9+/=\s]*$/i,
  sound: /^data:audio\/(?:mpeg|mp3|wav|x-wav|ogg|webm|mp4|aac|flac);base64,[A-Za-z0-9+/=\s]*$/i,
} as const;

/** The address, if it is data that may be shown. */
const dataOf = (address: string, kind: keyof typeof KINDS): string | null => (address.length <= STRING_MAX * 4 && KINDS[kind].test(address) ? address : null);

/** A resource outside of the surface is not loaded: its address would reveal that this page was read. */
function elsewhere(address: string, what: string, note: string): Drawing {
  if (!address) return nothing;
  if (/^data:/i.test(address)) return html`<p class="problem">${t.notShown(what)}</p>`;
  const url = safeUrl(address);
  const shown = oneLine(address.slice(0, 300));
  return html`<div class="elsewhere">${icon('link', 14)}<span class="grow"><span class="soft">${t.notLoaded(what)}</span> ${url ? html`<a href=${url.href} target="_blank" rel="noopener noreferrer nofollow" referrerpolicy="no-referrer">${shown}</a>` : html`<span class="dead">${shown}</span>`}
    ${note ? html`<span class="hint">${note}</span>` : nothing}</span></div>`;
}

const FITS: ReadonlySet<string> = new Set(['contain', 'cover', 'fill', 'none', 'scaleDown']);
const SIZES: ReadonlySet<string> = new Set(['icon', 'avatar', 'smallFeature', 'mediumFeature', 'largeFeature', 'header']);

const image: Draw = (component, place, scene, way) => {
  const address = scene.model.text(component['url'], place.scope);
  const label = (scene.model.text(component['description'], place.scope) || spoken(component, place, scene)).slice(0, 400);
  const fit = typeof component['fit'] === 'string' && FITS.has(component['fit']) ? component['fit'] : 'contain';
  const size = typeof component['variant'] === 'string' && SIZES.has(component['variant']) ? component['variant'] : 'mediumFeature';
  const data = dataOf(address, 'picture');
  if (data) return html`<img class=${`image ${size} fit-${fit}`} src=${data} alt=${label || t.picture} decoding="async">`;
  return way.flat ? html`<span class="text body">${label || t.picture}</span>` : elsewhere(address, t.picture, label);
};

const video: Draw = (component, place, scene, way) => {
  const address = scene.model.text(component['url'], place.scope);
  const label = spoken(component, place, scene) || t.video;
  if (way.flat) return html`<span class="text body">${label}</span>`;
  const data = dataOf(address, 'video');
  return data ? html`<video class="video" controls preload="metadata" src=${data} aria-label=${label}></video>` : elsewhere(address, t.video, described(component, place, scene));
};

const audio: Draw = (component, place, scene, way) => {
  const address = scene.model.text(component['url'], place.scope);
  const label = (scene.model.text(component['description'], place.scope) || spoken(component, place, scene)).slice(0, 400);
  if (way.flat) return html`<span class="text body">${label || t.sound}</span>`;
  const data = dataOf(address, 'sound');
  return data ? html`<div class="sound">${label ? html`<span class="soft">${label}</span>` : nothing}<audio controls preload="metadata" src=${data} aria-label=${label || t.sound}></audio></div>` : elsewhere(address, t.sound, label);
};

// --- code, changes, output -----------------------------------------------------------------------------------------------------

const code: Draw = (component, place, scene, way) => {
  const value = scene.model.text(component['code'], place.scope);
  if (way.flat) return html`<code>${value.slice(0, 200)}</code>`;
  const language = typeof component['language'] === 'string' ? component['language'] : '';
  const start = component['startLine'];
  return html`<div class="code-box">${guard([value, language, start], () => numbered(codeBlock(value, language), value, start))}</div>`;
};

/** Puts the numbers of the lines beside a code block. */
function numbered(block: HTMLElement, value: string, start: unknown): HTMLElement {
  const pre = block.querySelector('pre');
  pre?.setAttribute('role', 'group');
  pre?.setAttribute('aria-label', t.code);
  if (typeof start !== 'number' || !Number.isSafeInteger(start) || start < 0 || value.length > NUMBERED_MAX) return block;
  const lines = value.replace(/\n$/, '').split('\n').length;
  const numbers = h('div', 'numbers', Array.from({ length: lines }, (_, n) => String(start + n)).join('\n'));
  numbers.setAttribute('aria-hidden', 'true');
  const both = h('div', 'numbered');
  pre?.replaceWith(both);
  both.append(numbers);
  if (pre) both.append(pre);
  return block;
}

const diff: Draw = (component, place, scene, way) => {
  const path = scene.model.text(component['path'], place.scope).slice(0, 400);
  const given = component['diff'];
  if (way.flat) return html`<span class="text body">${path || t.diff}</span>`;
  const head = path ? html`<div class="path">${icon('file', 14)}<code>${oneLine(path)}</code></div>` : nothing;
  if (given !== undefined) {
    const value = scene.model.text(given, place.scope);
    return html`<div class="changes">${head}${value.trim() ? guard([value, path], () => unifiedView(value, words.session.changesOf(oneLine(path) || t.diff), path !== '')) : html`<p class="hint">${t.noDiff}</p>`}</div>`;
  }
  const before = scene.model.text(component['old'], place.scope);
  const after = scene.model.text(component['new'], place.scope);
  return html`<div class="changes">${head}${guard([before, after, path], () => diffView(before, after, words.session.changesOf(oneLine(path) || t.diff)))}</div>`;
};

const terminal: Draw = (component, place, scene, way) => {
  const value = scene.model.text(component['text'], place.scope);
  if (way.flat) return html`<code>${value.slice(0, 200)}</code>`;
  return html`<plexus-surface-terminal .text=${value} .rows=${typeof component['rows'] === 'number' ? component['rows'] : 0} .label=${spoken(component, place, scene) || t.terminal}></plexus-surface-terminal>`;
};

// --- data -----------------------------------------------------------------------------------------------------------------------

const progress: Draw = (component, place, scene) => {
  const value = scene.model.number(component['value'], place.scope);
  const label = scene.model.text(component['label'], place.scope).slice(0, 400);
  const state = scene.model.text(component['state'], place.scope);
  const known = Object.hasOwn(t.states, state) ? state : value === 1 ? 'done' : 'running';
  const part = value === null ? null : Math.max(0, Math.min(1, value));
  const said = part === null ? '' : `${Math.round(part * 100)} %`;
  const mark = known === 'done' ? icon('check', 14) : known === 'failed' ? icon('danger', 14) : known === 'waiting' ? icon('clock', 14) : nothing;
  return html`<div class=${`progress ${known}`}><div class="between"><span class="cut">${label || t.progress}</span><span class="nums soft">${mark} ${known === 'running' ? said : `${t.states[known] ?? ''}${said && known !== 'done' ? ` · ${said}` : ''}`}</span></div>
    <div class=${part === null && known === 'running' ? 'bar moving' : 'bar'} role="progressbar" aria-label=${label || t.progress} aria-valuemin="0" aria-valuemax="100" aria-valuenow=${part === null ? nothing : Math.round(part * 100)}
      aria-valuetext=${`${t.states[known] ?? ''} ${said}`.trim()}><i .style=${part === null ? (known === 'running' ? '' : 'inline-size: 0') : `inline-size: ${part * 100}%`}></i></div></div>`;
};

/** The items of a property that is an array, or is bound to one. Given arrays are data, in which nothing is resolved. */
function listOf(given: unknown, scope: string, resolve: (given: unknown, scope: string) => Json | undefined): Json[] {
  if (Array.isArray(given)) return given as Json[];
  const value = resolve(given, scope);
  return Array.isArray(value) ? value : NONE;
}
/** The same empty array each time, so that views see that nothing changed. */
const NONE: Json[] = [];

const table: Draw = (component, place, scene, way) => {
  const rows = listOf(component['rows'], place.scope, (given, scope) => scene.model.value(given, scope));
  const label = scene.model.text(component['label'], place.scope).slice(0, 200);
  if (way.flat) return html`<span class="text body">${label || t.table}</span>`;
  const event = eventOf(component['onSelect']);
  return html`<plexus-surface-table .columns=${component['columns']} .rows=${rows} .sort=${component['sort']} .filterable=${component['filterable'] === true} .label=${label} .selects=${event !== null} .locked=${scene.locked(place.id)}
    @row-select=${(e: CustomEvent<number>) => { if (event !== null) scene.act(place, event, e.detail); }}></plexus-surface-table>`;
};

const files: Draw = (component, place, scene, way) => {
  if (way.flat) return html`<span class="text body">${t.files}</span>`;
  const event = eventOf(component['onSelect']);
  return html`<plexus-surface-files .entries=${listOf(component['entries'], place.scope, (given, scope) => scene.model.value(given, scope))} .label=${spoken(component, place, scene) || t.files} .selects=${event !== null} .locked=${scene.locked(place.id)}
    @file-select=${(e: CustomEvent<string>) => { if (event !== null) scene.act(place, event, e.detail); }}></plexus-surface-files>`;
};

const chart: Draw = (component, place, scene, way) => {
  const title = scene.model.text(component['title'], place.scope).slice(0, 200);
  if (way.flat) return html`<span class="text body">${title}</span>`;
  const value = (given: unknown, scope: string) => scene.model.value(given, scope);
  const given = component['series'];
  const series = (Array.isArray(given) ? (given as unknown[]).slice(0, SERIES_MAX) : []).flatMap((one) => {
    if (one === null || typeof one !== 'object') return [];
    const { label, values, x } = one as Record<string, unknown>;
    return [{ label: scene.model.text(label, place.scope).slice(0, 100), values: listOf(values, place.scope, value), x: x === undefined ? null : listOf(x, place.scope, value) }];
  });
  const labels = listOf(component['labels'], place.scope, value);
  // A new list each time: the chart is drawn again only if what is in it changed.
  return html`<div class="chart">${guard([component, title, labels, ...series.flatMap((one) => [one.label, one.values, one.x])], () => html`<plexus-surface-chart .kind=${component['kind']} .series=${series} .labels=${labels} .heading=${title}
    .unit=${typeof component['unit'] === 'string' ? component['unit'].slice(0, 20) : ''} .least=${component['min']} .most=${component['max']}></plexus-surface-chart>`)}</div>`;
};
/** Maximum number of series of a chart. */
const SERIES_MAX = 12;

const page: Draw = (component, place, scene, way) => {
  const said = typeof component['text'] === 'string' ? component['text'] : '';
  if (way.flat) return html`<span class="text body">${readable(said)}</span>`;
  const actions = Array.isArray(component['actions']) ? (component['actions'] as unknown[]).filter((one): one is string => typeof one === 'string') : [];
  return html`<plexus-surface-html .source=${typeof component['html'] === 'string' ? component['html'] : ''} .said=${said} .actions=${actions} .agent=${scene.agent} .tall=${typeof component['height'] === 'number' ? component['height'] : 0}
    .locked=${scene.locked(place.id)} .key=${`${scene.session} ${scene.model.surface?.surface ?? ''} ${place.id}`} @page-action=${(e: CustomEvent<string>) => scene.act(place, e.detail)}></plexus-surface-html>`;
};


export const content: Record<string, Draw> = {
  Text: text, Markdown: marked, Icon: iconView, Image: image, Video: video, AudioPlayer: audio, Code: code, Diff: diff, Terminal: terminal, Progress: progress, Table: table, FileTree: files, Chart: chart, Html: page,
};
