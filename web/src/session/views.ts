// The views of a session's items. Elements are created directly, as the list creates and drops thousands of them.
//
// An agent's text stands in a block of its own, with a label of the page. None of it is markup.

import { render } from 'lit';
import { outcomeOf } from '../request/outcome.js';
import { text as words } from '../text/en.js';
import { icon, type Icon } from '../ui/icons.js';
import { diffView } from '../render/diffview.js';
import { codeBlock, markdown, safeUrl } from '../render/markdown.js';
import { button, copy, h, morph } from '../render/dom.js';
import { outputView } from '../render/output.js';
import { short } from '../surface/plot.js';
import { longLine } from '../render/lines.js';
import { segments } from '../render/segment.js';
import { cut, oneLine, readable, visible, visibleOutput } from '../render/visible.js';
import { absorbed, countsOf, folds, type Stretch } from './reads.js';
import { depthOf, finished, itemMarkdown, parentItem, type FoldedItem, type Item, type LineItem, type MessageItem, type PlanItem, type RequestItem, type Row, type SurfaceItem, type ToolItem } from './model.js';
import type { Money } from '../wire/types.js';

const w = words.session;

/** Maximum length of a user's message or a thought that is shown at first, in characters. */
const TEXT_SHOWN = 6_000;
/** Maximum length of JSON that is shown, in characters. */
const JSON_SHOWN = 20_000;
/** Output longer than this, in characters, is redrawn at most twice a second. */
const OUTPUT_CALM = 65_536;
const CALM_MS = 500;
/** Maximum number of lines of a diff that is open at first. */
const DIFF_OPEN_LINES = 60;
/** Maximum size of a picture or sound that is shown, in characters of base64. */
const MEDIA_MAX = 24_000_000;

/** Calls under calls that are indented; deeper ones stand at the same margin. */
const DEPTH_SHOWN = 4;

const IMAGES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif']);
const SOUNDS = new Set(['audio/mpeg', 'audio/mp3', 'audio/wav', 'audio/x-wav', 'audio/ogg', 'audio/webm', 'audio/mp4', 'audio/aac', 'audio/flac']);

/** The parts of the page that the views need. */
export interface Host {
  /** Whether a foldable item is open; undefined if it was never toggled. */
  opened(key: string): boolean | undefined;
  open(key: string, open: boolean): void;
  /** Redraws an item. */
  again(item: Item): void;
  me(): string | undefined;
  time(at: string): string;
  span(ms: number): string;
  link(item: Item): string;
  /** Loads what a page left out of a tool call. */
  whole(item: ToolItem): void;
  /** The view of a surface: its element, or a note that it has a place of its own; null if its state is not known. */
  surface(id: string): { title: string; el: HTMLElement | null; show: () => void } | null;
}

const str = (v: unknown): string => (typeof v === 'string' ? v : v === null || v === undefined ? '' : typeof v === 'object' ? json(v) : String(v));
const list = (v: unknown): any[] => (Array.isArray(v) ? v : []);
function json(v: unknown): string {
  try { return JSON.stringify(v, null, 2) ?? ''; } catch { return String(v); }
}
function glyph(name: Icon, size = 14): HTMLElement {
  const el = h('span', 'glyph');
  render(icon(name, size), el);
  return el;
}
const TOOL_ICONS: Record<string, Icon> = {
  read: 'file', edit: 'pencil', delete: 'trash', move: 'forward', search: 'search', execute: 'terminal', think: 'think', fetch: 'download', switch_mode: 'auto',
};

/** Creates the element of a row. */
export function makeRow(row: Row, host: Host): HTMLElement {
  const el = h('div', `row ${row.item.type}`);
  el.setAttribute('role', 'article');
  el.tabIndex = -1;
  el.dataset.key = row.key;
  updateRow(row, el, host);
  return el;
}

/** Redraws the element of a row. */
export function updateRow(row: Row, el: HTMLElement, host: Host): void {
  const item = row.item;
  el.dataset.at = String(item.key);
  const depth = depthOf(item);
  if (depth) el.dataset.depth = String(Math.min(depth, DEPTH_SHOWN));
  switch (item.type) {
    case 'agent': agent(item, row.part, el, host); break;
    case 'user': user(item, el, host); break;
    case 'thought': thought(item, el, host); break;
    case 'tool': readOrTool(item, el, host); break;
    case 'plan': el.replaceChildren(planList(item.entries, item)); break;
    case 'request': request(item, el, host); break;
    case 'line': line(item, el, host); break;
    case 'surface': surface(item, el, host); break;
    case 'folded': foldedItem(item, el, host); break;
  }
}

/** The estimated height of a row, px. */
export function guessRow(row: Row, width: number): number {
  const item = row.item;
  const perLine = Math.max(24, width / 7.4);
  const lines = (text: string) => Math.max(1, Math.ceil(Math.min(text.length, 20_000) / perLine));
  switch (item.type) {
    case 'agent': {
      const part = item.parts[row.part];
      if (!part || part.kind === 'block') return 60;
      const breaks = part.segment.text.length < 20_000 ? part.segment.text.split('\n').length : 200;
      return 14 + Math.max(lines(part.segment.text), breaks) * 21 + (part.segment.kind === 'code' ? 40 : 0);
    }
    case 'user': return 56 + Math.min(lines(item.text), 40) * 21;
    case 'tool': return absorbed(item) ? 0 : 46;
    case 'plan': return 50 + item.entries.length * 26;
    case 'surface': return 240;
    case 'request': return absorbed(item) ? 0 : 34;
    case 'thought': case 'line': case 'folded': return 34;
  }
}

// --- messages -----------------------------------------------------------------------------------------------------------

function who(label: string, item: Item, host: Host, tools: Node[] = []): HTMLElement {
  const at = h('a', 'at', host.time(item.at));
  at.href = host.link(item);
  at.title = w.copyLink;
  const copyButton = button(w.copyMessage, () => void copy(itemMarkdown(item), copyButton, words.common.copied, w.notCopied), 'quiet hover');
  return h('div', 'who', h('span', 'name', label), within(item), at, h('span', 'fill'), ...tools, copyButton);
}

/** Names the call that an item stands under. */
function within(item: Item): HTMLElement | null {
  const parent = parentItem(item);
  return parent && h('bdi', 'within', w.within(oneLine(cut(toolTitle(parent), 80))));
}

function agent(item: MessageItem, n: number, el: HTMLElement, host: Host): void {
  const part = item.parts[n];
  el.classList.toggle('first', n === 0);
  el.classList.toggle('goes-on', part?.kind === 'text' && part.segment.goesOn);
  const last = n === item.parts.length - 1;
  el.classList.toggle('open', last && item.partial);
  if (n === 0 && !el.querySelector(':scope > .who')) el.prepend(who(w.agent, item, host));
  let body = el.querySelector<HTMLElement>(':scope > .prose');
  if (!body) { body = h('div', 'prose quoted'); el.append(body); }
  if (!part) return;
  if (part.kind === 'block') {
    if (!body.childElementCount) body.append(block(part.block));
    return;
  }
  if (part.segment.kind === 'code') {
    const growing = last && item.partial;
    // Growing code gets new text, not a new block.
    const code = growing ? body.querySelector('figure.code code') : null;
    if (code && body.childElementCount === 1) code.textContent = visible(part.segment.text.replace(/\n$/, ''));
    else body.replaceChildren(codeBlock(part.segment.text, part.segment.goesOn ? '' : part.segment.lang, growing));
  } else morph(body, markdown(part.segment.text));
}

function long(text: string, className: string, host: Host, key: string): HTMLElement {
  const el = h('div', className);
  el.dir = 'auto';
  const whole = host.opened(`${key}/all`) === true;
  el.textContent = readable(whole ? text : cut(text, TEXT_SHOWN));
  if (text.length <= TEXT_SHOWN || whole) return el;
  const more = button(w.showAll(text.length), () => {
    host.open(`${key}/all`, true);
    if (text.length > 65_536) el.replaceWith(longLine(text)); else el.textContent = readable(text);
    more.remove();
  }, 'quiet more');
  return h('div', '', el, more);
}

function user(item: MessageItem, el: HTMLElement, host: Host): void {
  const name = item.by && item.by.device_id !== host.me() ? w.by(oneLine(str(item.by.name || item.by.device_id)).slice(0, 80)) : '';
  const blocks = item.parts.filter((part) => part.kind === 'block').map((part) => block((part as { block: unknown }).block));
  const label = who(w.you, item, host);
  if (name) label.querySelector('.name')?.after(h('span', 'by', name));
  const text = item.text.trim() ? long(item.text.replace(/\n+$/, ''), 'said', host, String(item.key)) : null;
  el.replaceChildren(h('div', 'bubble', label, text, ...blocks));
}

function thought(item: MessageItem, el: HTMLElement, host: Host): void {
  const key = String(item.key);
  const open = host.opened(key) === true;
  const preview = oneLine(item.text.slice(-240).replace(/[*_`#]+/g, ''));
  const head = foldHead(open, () => { host.open(key, !open); host.again(item); }, [glyph('think'), h('span', 'name', item.partial ? w.thinking : w.thought), within(item), open ? null : h('span', 'preview', preview)]);
  const parts: Node[] = [head];
  if (open) {
    const body = h('div', 'prose quoted');
    const shown = host.opened(`${key}/all`) ? item.text : cut(item.text, TEXT_SHOWN * 2);
    for (const segment of segments(shown)) body.append(segment.kind === 'code' ? codeBlock(segment.text, segment.lang) : markdown(segment.text));
    if (shown.length < item.text.length) body.append(button(w.showAll(item.text.length), () => { host.open(`${key}/all`, true); host.again(item); }, 'quiet more'));
    parts.push(body);
  }
  el.replaceChildren(...parts);
}

function foldHead(open: boolean, act: () => void, children: (Node | null)[]): HTMLElement {
  const head = button('', act, 'fold-head');
  head.setAttribute('aria-expanded', String(open));
  head.append(h('span', `turn${open ? ' open' : ''}`), ...children.filter((c): c is Node => c !== null));
  return head;
}

/** An ACP content block that is no plain text. */
function block(content: any): HTMLElement {
  const type = str(content?.type);
  if (type === 'text') return h('div', 'said', readable(str(content.text)));
  if (type === 'image' || type === 'audio') return media(type, str(content.mimeType ?? content.mime_type).toLowerCase(), content.data);
  if (type === 'resource_link') return chip('link', str(content.title || content.name) || w.link, str(content.uri));
  if (type === 'resource') {
    const resource = content.resource ?? {};
    const label = chip('file', w.resource, str(resource.uri));
    if (typeof resource.text === 'string') return h('div', '', label, codeBlock(resource.text, ''));
    const mime = str(resource.mimeType).toLowerCase();
    if (typeof resource.blob === 'string' && (IMAGES.has(mime) || SOUNDS.has(mime))) return h('div', '', label, media(IMAGES.has(mime) ? 'image' : 'audio', mime, resource.blob));
    return label;
  }
  return h('div', '', h('div', 'mute', w.raw), rawBlock(content));
}

function chip(name: Icon, label: string, uri: string): HTMLElement {
  const url = safeUrl(uri);
  const shown = oneLine(cut(uri, 300));
  const el = h('div', 'link-chip', glyph(name), h('span', 'name', oneLine(cut(label, 200))));
  if (url) {
    const a = h('a', 'mono', shown);
    a.href = url.href;
    a.rel = 'noopener noreferrer nofollow';
    a.target = '_blank';
    a.referrerPolicy = 'no-referrer';
    el.append(a);
  } else el.append(h('span', 'mono mute', shown));
  return el;
}

function media(type: string, mime: string, data: unknown): HTMLElement {
  const known = type === 'image' ? IMAGES : SOUNDS;
  const label = type === 'image' ? w.image : w.audio;
  if (typeof data !== 'string' || data.length > MEDIA_MAX || !known.has(mime) || !/^[A-Za-z0-9+/=_\s-]*$/.test(data)) return h('div', 'mute', w.notShown(`${label} ${oneLine(mime).slice(0, 60)}`));
  const address = blobUrl(data, mime);
  if (!address) return h('div', 'mute', w.notShown(label));
  const el = type === 'image' ? h('img') : h('audio');
  el.src = address;
  if (el instanceof HTMLImageElement) { el.alt = label; el.decoding = 'async'; } else { el.controls = true; el.preload = 'metadata'; }
  return h('div', 'media', el);
}

/** Cached pictures and sounds, so that scrolling back does not decode them again; the oldest are released. */
const blobs = new Map<string, string>();
const BLOBS_MAX = 40;
function blobUrl(data: string, mime: string): string | null {
  const key = `${mime}:${data.length}:${data.slice(0, 64)}:${data.slice(-64)}`;
  const known = blobs.get(key);
  if (known) return known;
  try {
    const bytes = Uint8Array.from(atob(data.replace(/\s/g, '').replace(/-/g, '+').replace(/_/g, '/')), (c) => c.charCodeAt(0));
    const url = URL.createObjectURL(new Blob([bytes], { type: mime }));
    blobs.set(key, url);
    if (blobs.size > BLOBS_MAX) {
      const [first, old] = blobs.entries().next().value as [string, string];
      blobs.delete(first);
      setTimeout(() => URL.revokeObjectURL(old), 10_000);
    }
    return url;
  } catch {
    return null;
  }
}

// --- tools -------------------------------------------------------------------------------------------------------------------

interface Drawn { signature: unknown[]; at: number; timer?: ReturnType<typeof setTimeout> }
const drawn = new WeakMap<HTMLElement, Drawn>();

function diffs(item: ToolItem): any[] {
  return list(item.call.content).filter((c) => c?.type === 'diff');
}
function roughLines(a: string, b: string): number {
  return Math.abs(a.length - b.length) + Math.min(a.length, b.length) > 40_000 ? Infinity : Math.max(a.split('\n').length, b.split('\n').length);
}

/** Whether a tool's card is open by default: small changes and failures are. */
function openByItself(item: ToolItem): boolean {
  if (item.call.status === 'failed') return true;
  const changes = diffs(item);
  return changes.length > 0 && changes.length <= 2 && changes.every((d) => roughLines(str(d.oldText), str(d.newText)) <= DIFF_OPEN_LINES);
}

export function toolTitle(item: ToolItem): string {
  return oneLine(cut(str(item.call.title), 400)) || w.untitledTool;
}

/** Shows or hides the calls that the line of a stretch represents. */
function openStretch(stretch: Stretch, open: boolean, host: Host): void {
  stretch.open = open;
  // The stretch may be another one once more of the session is loaded: each call remembers it.
  for (const item of stretch.items) { host.open(`${item.key}/reads`, open); host.again(item); }
}

/** Shows a call by itself, if a line represents it. */
export function reveal(item: Item, host: Host): void {
  if (folds(item) && !item.reads.open) openStretch(item.reads, true, host);
}

function readOrTool(item: ToolItem, el: HTMLElement, host: Host): void {
  const stretch = folds(item) ? item.reads : null;
  if (stretch && stretch.open === undefined) stretch.open = stretch.items.some(({ key }) => host.opened(`${key}/reads`) === true);
  el.hidden = absorbed(item);
  const head = stretch?.items[0] === item ? readsHead(stretch, host) : null;
  if (stretch && !stretch.open) {
    drawn.delete(el);
    el.replaceChildren(...(head ? [head] : []));
    return;
  }
  tool(item, el, host);
  el.querySelector(':scope > .reads')?.remove();
  if (head) el.prepend(head);
}

/** The line that represents calls that only read. */
function readsHead(stretch: Stretch, host: Host): HTMLElement {
  const open = stretch.open === true;
  const counts = countsOf(stretch).map(([kind, n]) => w.looked(w.kinds[kind] ?? '', n)).join(', ');
  const what = stretch.items.slice(-6).reverse().map((item) => cut(toolTitle(item), 80)).join(' · ');
  const head = foldHead(open, () => openStretch(stretch, !open, host), [glyph('file'), h('span', 'kind', counts), within(stretch.items[0] as ToolItem), open ? null : h('bdi', 'title mute', what)]);
  head.classList.add('reads');
  return head;
}

function tool(item: ToolItem, el: HTMLElement, host: Host): void {
  const key = String(item.key);
  const status = str(item.call.status) || 'pending';
  const kind = str(item.call.kind);
  const open = host.opened(key) ?? openByItself(item);
  const title = toolTitle(item);
  const state = h('span', `state ${['pending', 'in_progress', 'completed', 'failed', 'cancelled'].includes(status) ? status : 'other'}`);
  state.setAttribute('role', 'img');
  state.setAttribute('aria-label', w.tool[status] ?? oneLine(status));
  state.title = w.tool[status] ?? oneLine(status);
  if (status === 'completed') state.append(glyph('check', 12));
  else if (status === 'failed' || status === 'cancelled') state.append(glyph('close', 12));
  const kindName = w.kinds[kind] ?? w.kinds.other ?? '';
  const head = foldHead(open, () => { host.open(key, !open); host.again(item); }, [
    glyph(TOOL_ICONS[kind] ?? 'heart'),
    h('span', 'kind', kindName),
    h('bdi', `title${kind === 'execute' ? ' mono' : ''}`, title),
    within(item),
    counts(item),
    allowed(item, host),
    state,
  ]);
  const signature = [open, item.call.content, item.call.rawOutput, item.call.rawInput, item.call.locations, item.output.length, item.leftOut, finished(status)];
  const was = drawn.get(el);
  const body = el.querySelector<HTMLElement>(':scope > .card > .tool-body');
  const same = was && was.signature.every((v, i) => v === signature[i]);
  const size = item.output.length + list(item.call.content).reduce((sum: number, c) => sum + (typeof c?.content?.text === 'string' ? c.content.text.length : 0), 0);
  const busy = was && body && open && !finished(status) && size > OUTPUT_CALM && Date.now() - was.at < CALM_MS;
  if (same || busy) {
    el.querySelector(':scope > .card > .fold-head')?.replaceWith(head);
    if (busy && !same && was && !was.timer) was.timer = setTimeout(() => { delete was.timer; host.again(item); }, CALM_MS);
    return;
  }
  drawn.set(el, { signature, at: Date.now() });
  const card = h('div', `card ${status}`, head);
  if (open) card.append(toolBody(item, host));
  // Growing output follows its end, unless it was scrolled up.
  const places = [...el.querySelectorAll('.output > .lines')].map((box) => (box.scrollHeight - box.clientHeight - box.scrollTop < 8 ? Infinity : box.scrollTop));
  el.replaceChildren(card);
  if (open && (places.length || !finished(status))) {
    card.querySelectorAll('.output > .lines').forEach((box, n) => { box.scrollTop = Math.min(places[n] ?? Infinity, box.scrollHeight); });
  }
}

function counts(item: ToolItem): HTMLElement | null {
  const places = list(item.call.locations);
  if (places.length === 1 && !str(item.call.title).includes(str(places[0]?.path))) return h('span', 'meta mono', oneLine(cut(str(places[0]?.path), 160)));
  return null;
}

function allowed(item: ToolItem, host: Host): HTMLElement | null {
  const last = item.requests[item.requests.length - 1];
  if (!last?.outcome) return null;
  const result = outcomeOf(last.outcome, last.request, host.me());
  return h('span', `chip ${result.sense === 'allow' ? 'ok' : result.sense === 'deny' ? 'danger' : ''}`, result.text);
}

function toolBody(item: ToolItem, host: Host): HTMLElement {
  const body = h('div', 'tool-body');
  const call = item.call;
  const title = toolTitle(item);
  const input = call.rawInput;
  const command = str(input && typeof input === 'object' ? (Array.isArray(input.command) ? input.command.map((part: unknown) => JSON.stringify(part)).join(' ') : input.command) : '');
  const places = list(call.locations).slice(0, 50);
  if (places.length) body.append(h('div', 'places', ...places.map((p) => h('code', '', oneLine(cut(str(p?.path), 300)) + (typeof p?.line === 'number' ? `:${p.line}` : '')))));
  if (command && !str(call.title).includes(command)) body.append(h('pre', 'command', h('span', 'dollar', '$ '), visible(cut(command, JSON_SHOWN))));
  for (const { outcome, request } of item.requests) {
    const { reason, edited } = outcome ? outcomeOf(outcome, request, host.me()) : { reason: '', edited: '' };
    if (edited) body.append(h('p', 'reason', `${words.request.editedTo} `, h('code', '', edited)));
    if (reason) body.append(h('p', 'reason', words.request.because(readable(reason))));
  }
  let hasOutput = false;
  for (const content of list(call.content)) {
    if (content?.type === 'diff' && item.leftOut && !content.oldText && !content.newText) {
      body.append(h('div', 'path', glyph('file'), h('code', '', oneLine(cut(str(content.path), 400)))));
      hasOutput = true;
    } else if (content?.type === 'diff') { body.append(diff(content)); hasOutput = true; } else if (content?.type === 'content') {
      const inner = content.content;
      if (inner?.type === 'text') { if (str(inner.text)) { body.append(toolText(str(inner.text), title)); hasOutput = true; } } else { body.append(block(inner)); hasOutput = true; }
    } else if (content?.type === 'terminal') {
      // Its output comes in `_meta` or as the result.
    } else { body.append(rawBlock(content)); hasOutput = true; }
  }
  if (item.output) {
    if (item.outputCut) body.append(h('p', 'mute', w.outputCut));
    body.append(outputView(item.output, w.outputOf(title)));
    hasOutput = true;
  }
  if (!hasOutput && call.rawOutput !== undefined && call.rawOutput !== null) {
    const raw = call.rawOutput;
    const text = typeof raw === 'string' ? raw : [raw.stdout, raw.stderr, raw.output, raw.formatted_output].filter((part) => typeof part === 'string' && part).join('\n');
    body.append(text ? outputView(text, w.outputOf(title)) : rawBlock(raw));
    hasOutput = true;
  }
  if (item.leftOut) body.append(button(w.loadRest(item.leftOut), () => { host.open(String(item.key), true); host.whole(item); }, 'quiet more'));
  else if (!hasOutput && finished(call.status)) body.append(h('p', 'mute', w.noOutput));
  const hasInput = input && typeof input === 'object' && Object.keys(input).some((name) => name !== 'command' || !command);
  if (hasInput) body.append(fold(host, `${item.key}/input`, w.input, () => rawBlock(input)));
  return body;
}

/** The text of a tool: program output, unless it is fenced Markdown. */
function toolText(text: string, title: string): HTMLElement {
  if (/^\s*(`{3,}|~{3,})/.test(text) && text.length < 200_000 && !text.includes('\u001b')) {
    const parts = segments(text);
    if (parts.length === 1 && parts[0]?.kind === 'code') return outputView(parts[0].text.replace(/\n$/, ''), w.outputOf(title));
    const body = h('div', 'prose quoted');
    for (const part of parts.slice(0, 40)) body.append(part.kind === 'code' ? codeBlock(part.text, part.lang) : markdown(part.text));
    if (parts.length <= 40) return body;
  }
  return outputView(text, w.outputOf(title));
}

function diff(content: any): HTMLElement {
  const path = oneLine(cut(str(content.path), 400));
  const view = diffView(str(content.oldText), str(content.newText), w.changesOf(path), undefined, Number(content._meta?.plexus?.lines_before) || 0);
  return h('div', 'change', h('div', 'path', glyph('file'), h('code', '', path)), h('div', 'diff-slot', view));
}

function fold(host: Host, key: string, label: string, make: () => Node): HTMLElement {
  const el = h('div', 'fold');
  const draw = () => {
    const open = host.opened(key) === true;
    el.replaceChildren(foldHead(open, () => { host.open(key, !open); draw(); }, [h('span', 'name', label)]), ...(open ? [make()] : []));
  };
  draw();
  return el;
}

function rawBlock(value: unknown): HTMLElement {
  const text = typeof value === 'string' ? value : json(value);
  if (text.length > JSON_SHOWN) return longLine(text);
  const pre = h('pre', 'raw', visibleOutput(text));
  pre.tabIndex = 0;
  return pre;
}

// --- the rest ----------------------------------------------------------------------------------------------------------------

/** A plan's entries. */
export function planList(entries: any[], _item?: PlanItem): HTMLElement {
  const done = entries.filter((e) => e?.status === 'completed').length;
  const items = entries.slice(0, 500).map((entry) => {
    const status = str(entry?.status);
    const li = h('li', status === 'completed' || status === 'in_progress' ? status : 'pending', h('span', 'box', status === 'completed' ? glyph('check', 12) : null), h('span', 'sr', `${w.entry[status] ?? w.entry.pending ?? ''}: `), h('bdi', '', readable(cut(str(entry?.content), 2_000))));
    return li;
  });
  return h('div', 'plan-card', h('div', 'who', glyph('log'), h('span', 'name', w.plan), h('span', 'at', w.planDone(done, entries.length))), h('ol', '', ...items));
}

function request(item: RequestItem, el: HTMLElement, host: Host): void {
  el.hidden = absorbed(item);
  if (el.hidden) { el.replaceChildren(); return; }
  const result = outcomeOf(item.outcome, item.request, host.me());
  const open = host.opened(String(item.key)) === true;
  const head = foldHead(open, () => { host.open(String(item.key), !open); host.again(item); }, [
    glyph(result.sense === 'allow' ? 'check' : result.sense === 'deny' ? 'close' : 'lock'),
    h('span', `name ${result.sense}`, result.text),
    h('bdi', 'preview mono', oneLine(cut(str((item.request.type === 'prompt' && item.request.title) || item.request.display || item.request.title), 240))),
    h('span', 'at', host.time(str(item.outcome.at ?? item.at))),
  ]);
  const parts: Node[] = [head];
  if (open) {
    if (result.reason) parts.push(h('p', 'reason', readable(result.reason)));
    const pre = h('pre', 'raw', visible(cut(str(item.request.display), JSON_SHOWN)));
    pre.tabIndex = 0;
    parts.push(pre);
  }
  el.replaceChildren(...parts);
}

/** The usage of a run, for its end: tokens and money, as far as the agent reported them. */
function spent(usage: { input_tokens?: unknown; output_tokens?: unknown; costs?: unknown } | undefined): string {
  const count = (n: unknown) => (typeof n === 'number' && Number.isFinite(n) ? n : 0);
  const tokens = count(usage?.input_tokens) + count(usage?.output_tokens);
  const costs = (Array.isArray(usage?.costs) ? (usage.costs as Array<Partial<Money>>) : []).map((cost) => `${count(cost?.amount).toFixed(count(cost?.amount) < 0.995 ? 4 : 2)} ${oneLine(str(cost?.currency))}`);
  return [tokens ? w.spentTokens(short(tokens)) : '', ...costs].filter(Boolean).map((words) => ` · ${words}`).join('');
}

function line(item: LineItem, el: HTMLElement, host: Host): void {
  const body = item.body ?? {};
  const at = h('span', 'at', host.time(item.at));
  el.className = `row line ${item.line}`;
  switch (item.line) {
    case 'end': {
      const status = str(body.status);
      const took = item.took === undefined ? '' : host.span(item.took);
      const reason = w.stopReasons[str(body.stop_reason)] ?? '';
      el.classList.add(status === 'error' ? 'bad' : 'calm');
      el.replaceChildren(h('span', 'rule'), h('span', 'label', (w.end[status] ?? ((t: string) => `${oneLine(status)} ${t}`))(took) + (reason ? `: ${reason}` : '') + spent(body.usage)), h('span', 'rule'));
      if (str(body.message)) el.append(h('p', 'message', readable(cut(str(body.message), 4_000))));
      break;
    }
    case 'error': {
      el.replaceChildren(h('div', 'note danger', h('span', 'strong', `${w.error}${body.code ? ` ${oneLine(cut(str(body.code), 80))}` : ''}`), h('p', 'said', readable(cut(str(body.message ?? body.detail ?? body), 4_000)))));
      break;
    }
    case 'runtime': {
      const status = str(body.status);
      const bad = status === 'exited' || status === 'stuck';
      const label = h('span', 'label', w.runtime[status] ?? `${w.runtime.attached}: ${oneLine(status)}`);
      const detail = status === 'attached' ? '' : oneLine(cut(str(body.message), 400));
      if (bad) {
        el.replaceChildren(h('div', 'note warn', label, detail ? h('p', 'said', detail) : null, str(body.stderr_tail) ? rawBlock(str(body.stderr_tail)) : null));
      } else el.replaceChildren(label, detail ? h('span', 'mute', detail) : '', at);
      break;
    }
    case 'mode': el.replaceChildren(h('span', 'label', w.modeNow(oneLine(str(body.name)))), at); break;
    case 'option': el.replaceChildren(h('span', 'label', w.optionNow(oneLine(str(body.option)), oneLine(str(body.name)))), at); break;
    case 'title': el.replaceChildren(h('span', 'label', w.titleNow(oneLine(cut(str(body.title), 200)))), at); break;
    case 'status': el.replaceChildren(h('span', 'label', w.stopping(oneLine(str(body.by?.name)))), at); break;
    case 'client': {
      const name = oneLine(cut(str(body.name ?? body.client?.name ?? body.device_id), 80)) || w.someone;
      el.replaceChildren(h('span', 'label', body.left ? w.left(name) : w.joined(name)), at);
      break;
    }
  }
}

function surface(item: SurfaceItem, el: HTMLElement, host: Host): void {
  const shown = host.surface(item.id);
  if (!shown) { foldedItem({ ...item, type: 'folded', kind: 'surface_updated' }, el, host); return; }
  if (shown.el) {
    if (shown.el.parentElement !== el || el.childElementCount !== 1) el.replaceChildren(shown.el);
    return;
  }
  el.replaceChildren(h('div', 'moved', glyph('pencil'), h('bdi', 'name', shown.title), h('span', 'mute', words.surface.pinnedAway), button(words.surface.show, shown.show, 'quiet')));
}

function foldedItem(item: FoldedItem, el: HTMLElement, host: Host): void {
  const key = String(item.key);
  const open = host.opened(key) === true;
  const hook = item.kind === 'hook' ? str(item.body?.type) : '';
  const known = item.kind === 'raw' ? w.raw : hook ? w.hook : item.kind === 'surface_updated' ? w.surface : oneLine(item.kind.replaceAll('_', ' '));
  const head = foldHead(open, () => { host.open(key, !open); host.again(item); }, [glyph('info'), h('span', 'name', known), open ? null : h('span', 'preview mono', oneLine(cut(hook || (typeof item.body === 'string' ? item.body : shortJson(item.body)), 200)))]);
  el.replaceChildren(head, ...(open ? [rawBlock(item.body)] : []));
}
function shortJson(v: unknown): string {
  try { return (JSON.stringify(v) ?? '').slice(0, 200); } catch { return ''; }
}

/** The text that "find" searches. */
export function searchable(item: Item): string {
  switch (item.type) {
    case 'user': case 'agent': case 'thought': return item.text;
    case 'tool': return `${str(item.call.title)}\n${list(item.call.content).map((c) => str(c?.content?.text ?? c?.newText)).join('\n')}\n${item.output}`;
    case 'plan': return item.entries.map((e) => str(e?.content)).join('\n');
    case 'request': return absorbed(item) ? '' : str(item.request.display);
    case 'line': return str(item.body?.message);
    case 'surface': case 'folded': return '';
  }
}
