// A tree of files: folders open and close, files show what became of them.
import { css, html, nothing, type PropertyValues } from 'lit';
import { PlexusElement } from '../lib/element.js';
import { oneLine } from '../render/visible.js';
import { text as words } from '../text/en.js';
import { icon } from '../ui/icons.js';
import type { Drawing } from './scene.js';
import { DEPTH_MAX } from './types.js';

const t = words.surface;

/** Maximum number of files that are drawn. */
const FILES_MAX = 2_000;
/** A tree of at most this many files is open at first. */
const OPEN_FILES = 60;
const MARKS: Readonly<Record<string, string>> = { added: 'A', modified: 'M', deleted: 'D', renamed: 'R', same: '' };

interface File { path: string; name: string; status: string; note: string }
interface Folder { name: string; path: string; folders: Map<string, Folder>; files: File[]; count: number }

const folder = (name: string, path: string): Folder => ({ name, path, folders: new Map(), files: [], count: 0 });

/** The tree of the entries. */
export function treeOf(entries: readonly unknown[]): { root: Folder; more: number } {
  const root = folder('', '');
  for (const one of entries.slice(0, FILES_MAX)) {
    const entry = one as Record<string, unknown> | null;
    if (entry === null || typeof entry !== 'object' || typeof entry['path'] !== 'string') continue;
    const path = entry['path'];
    const parts = path.split('/').filter((part) => part && part !== '.');
    const name = parts.pop() ?? path;
    let at = root;
    at.count++;
    for (const part of parts.slice(0, DEPTH_MAX)) {
      let next = at.folders.get(part);
      if (!next) { next = folder(part, `${at.path}/${part}`); at.folders.set(part, next); }
      at = next;
      at.count++;
    }
    at.files.push({ path, name, status: typeof entry['status'] === 'string' && Object.hasOwn(MARKS, entry['status']) ? entry['status'] : 'same', note: typeof entry['note'] === 'string' ? entry['note'].slice(0, 200) : '' });
  }
  return { root, more: Math.max(0, entries.length - FILES_MAX) };
}

/** A folder that holds only another one is one line with it. */
function joined(at: Folder): { folder: Folder; label: string } {
  let label = at.name;
  let end = at;
  while (end.folders.size === 1 && !end.files.length) {
    end = end.folders.values().next().value as Folder;
    label += `/${end.name}`;
  }
  return { folder: end, label };
}

/** `<plexus-surface-files .entries>`; dispatches `file-select` with the path. */
export class PlexusSurfaceFiles extends PlexusElement {
  static override properties = { entries: { attribute: false }, label: { attribute: false }, selects: { attribute: false }, locked: { attribute: false } };
  static override styles = [...[PlexusElement.styles].flat(), css`
    :host { display: block; min-inline-size: 0; }
    .tree { border: 1px solid var(--line); border-radius: var(--r-s); background: var(--bg-raised); padding: 4px; max-block-size: 420px; overflow: auto; }
    ul ul { padding-inline-start: 15px; border-inline-start: 1px solid var(--line); margin-inline-start: 12px; }
    .line { display: flex; align-items: center; gap: 7px; inline-size: 100%; min-block-size: 28px; padding: 2px 8px; justify-content: flex-start; text-align: start; border: 0; background: none; font: inherit; font-weight: 400; white-space: normal; user-select: text; min-inline-size: 0; }
    button.line:hover { background: var(--bg-hover); }
    .name { overflow-wrap: anywhere; min-inline-size: 0; }
    .folder > button .name { font-weight: 550; }
    .mono { font-family: var(--mono); font-size: var(--t-s); }
    svg { flex: none; color: var(--fg-mute); }
    .turn { transition: transform var(--quick); }
    .turn.open { transform: rotate(90deg); }
    .note { flex: 0 1 auto; padding: 0; border: 0; background: none; color: var(--fg-mute); font-size: var(--t-s); overflow-wrap: anywhere; }
    .mark { margin-inline-start: auto; flex: none; inline-size: 20px; text-align: center; font: 650 var(--t-xs)/18px var(--mono); border-radius: 4px; }
    .added .mark { color: var(--ok); background: var(--ok-wash); } .modified .mark { color: var(--warn); background: var(--warn-wash); }
    .deleted .mark { color: var(--danger); background: var(--danger-wash); } .renamed .mark { color: var(--info); background: var(--info-wash); }
    .deleted .name { text-decoration: line-through; color: var(--fg-soft); }
    .count { margin-inline-start: auto; color: var(--fg-mute); font-size: var(--t-s); flex: none; }
    .none { padding: 6px 8px; color: var(--fg-mute); }
    @media (pointer: coarse) { .line { min-block-size: 40px; } }
  `];
  declare entries: readonly unknown[];
  declare label: string;
  declare selects: boolean;
  declare locked: string;
  #tree = treeOf([]);
  #turned = new Map<string, boolean>();

  constructor() {
    super();
    this.entries = [];
    this.label = '';
    this.selects = false;
    this.locked = '';
  }

  protected override willUpdate(changed: PropertyValues): void {
    if (changed.has('entries')) this.#tree = treeOf(this.entries);
  }

  override render() {
    const { root, more } = this.#tree;
    return html`<div class="tree" role="group" aria-label=${this.label} tabindex="0">${root.count ? html`<ul>${this.#inside(root)}</ul>` : html`<p class="none">${t.noFiles}</p>`}
      ${more ? html`<p class="none">${t.moreFiles(more)}</p>` : nothing}</div>`;
  }

  #inside(at: Folder): Drawing {
    return html`${[...at.folders.values()].map((one) => this.#folder(one))}${at.files.map((file) => this.#file(file))}`;
  }

  #folder(given: Folder): Drawing {
    const { folder: at, label } = joined(given);
    const open = this.#turned.get(at.path) ?? this.#tree.root.count <= OPEN_FILES;
    return html`<li class="folder"><button type="button" class="line" aria-expanded=${open ? 'true' : 'false'} @click=${() => { this.#turned.set(at.path, !open); this.requestUpdate(); }}>
      <span class=${open ? 'turn open' : 'turn'}>${icon('forward', 12)}</span>${icon('folder', 14)}<bdi class="name mono">${oneLine(label)}</bdi><span class="count">${at.count}</span></button>
      ${open ? html`<ul>${this.#inside(at)}</ul>` : nothing}</li>`;
  }

  #file(file: File): Drawing {
    const mark = MARKS[file.status] ?? '';
    const inside = html`${icon('file', 14)}<bdi class="name mono">${oneLine(file.name)}</bdi>${file.note ? html`<span class="note">${file.note}</span>` : nothing}
      ${mark ? html`<span class="mark" title=${t.status[file.status] ?? ''}><span aria-hidden="true">${mark}</span><span class="sr">${t.status[file.status] ?? ''}</span></span>` : nothing}`;
    const select = () => { if (!this.locked) this.dispatchEvent(new CustomEvent('file-select', { detail: file.path })); };
    return html`<li class=${file.status}>${this.selects
      ? html`<button type="button" class="line" aria-disabled=${this.locked ? 'true' : nothing} title=${this.locked || nothing} @click=${select}>${inside}</button>` : html`<span class="line">${inside}</span>`}</li>`;
  }
}
customElements.define('plexus-surface-files', PlexusSurfaceFiles);
