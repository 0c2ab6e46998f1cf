// A field for a folder of the gateway's machine: typed with completion, or browsed one level at a time.
import { css, html, nothing } from 'lit';
import { customElement, property, state } from 'lit/decorators.js';
import { PlexusElement } from '../lib/element.js';
import { list, oneLine, visible } from '../lib/text.js';
import { plexus, why } from '../plexus.js';
import { text } from '../text/en.js';
import { icon } from '../ui/icons.js';
import type { Folders } from '../wire/types.js';

const t = text.shell.newSession;
/** Pause in typing before folders are searched, ms. */
const PAUSE_MS = 120;

/** The field. Dispatches `folder` with what was typed or chosen. */
@customElement('plexus-folder-field')
export class PlexusFolderField extends PlexusElement {
  @property() value = '';
  @property({ type: Boolean }) disabled = false;
  @state() private shown: Folders | null = null;
  @state() private problem = '';
  @state() private at = -1;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** The number of the last question: replies to earlier ones are ignored. */
  #serial = 0;

  static override styles = [...[PlexusElement.styles].flat(), css`
    :host { display: flex; flex-direction: column; gap: 5px; min-width: 0; }
    label { font-weight: 550; }
    .line { display: flex; gap: 6px; }
    .line input { flex: 1; min-width: 0; font-family: var(--mono); }
    .list { border: 1px solid var(--line-strong); border-radius: var(--r-s); background: var(--bg); max-height: min(32vh, 250px); overflow: auto; overscroll-behavior: contain; }
    .one { display: flex; align-items: center; gap: 8px; min-height: 34px; padding: 0 10px; cursor: pointer; }
    .one svg { color: var(--fg-mute); flex: none; }
    .one .side { margin-left: auto; color: var(--fg-mute); font-size: var(--t-s); flex: none; }
    .one:hover { background: var(--bg-hover); }
    .one[aria-selected="true"] { background: var(--bg-active); }
    @media (pointer: coarse) { .one { min-height: 44px; } .line button { min-height: 44px; } }
  `];

  /** The text of the field. */
  get path(): string { return this.renderRoot.querySelector('input')?.value ?? this.value; }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    clearTimeout(this.#timer);
  }

  override render() {
    const admin = plexus.may('admin');
    const rows = this.#rows();
    const open = this.shown !== null;
    return html`<label for="cwd">${t.folder}</label>
      <div class="line"><input id="cwd" name="cwd" .value=${this.value} ?disabled=${this.disabled} autocomplete="off" spellcheck="false" autocapitalize="off"
          role=${admin ? 'combobox' : nothing} aria-expanded=${admin ? String(open) : nothing} aria-controls=${admin ? 'folders' : nothing} aria-autocomplete=${admin ? 'list' : nothing} aria-activedescendant=${open && this.at >= 0 ? `folder-${this.at}` : nothing} aria-describedby="cwd-hint"
          @input=${this.#typed} @keydown=${this.#key}>
        ${admin ? html`<button type="button" id="browse" ?disabled=${this.disabled} aria-expanded=${open} @click=${this.#browse}>${icon('folder', 14)}${t.browse}</button>` : nothing}</div>
      <div id="folders" class="list" role="listbox" aria-label=${t.foldersIn(visible(this.shown?.under ?? ''))} ?hidden=${!open || !rows.length}>${rows.map((row, n) => html`<div class="one" role="option" id=${`folder-${n}`} aria-selected=${n === this.at} @click=${() => this.#take(row.path)}>
        ${icon(row.up ? 'up' : 'folder', 14)}${row.up ? html`<span>${t.up}</span>` : html`<bdi class="cut">${oneLine(row.name)}</bdi>`}${row.side ? html`<span class="side">${row.side}</span>` : nothing}</div>`)}</div>
      <span id="cwd-hint" class="mute small" role="status">${this.problem || (open && !this.shown?.folders.length ? t.noFolders : open && this.shown?.more ? t.moreFolders : t.folderHint)}</span>`;
  }

  #rows(): Array<{ path: string; name: string; up?: boolean; side?: string }> {
    const shown = this.shown;
    if (!shown) return [];
    const rows = list<Folders['folders'][number]>(shown.folders).map((one) => ({ path: one.path, name: one.name, side: [one.git ? t.repository : '', one.link ? t.linked : ''].filter(Boolean).join(', ') }));
    return shown.parent ? [{ path: shown.parent, name: '', up: true }, ...rows] : rows;
  }

  override updated(): void {
    this.renderRoot.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' });
  }

  #say(path: string): void {
    this.dispatchEvent(new CustomEvent('folder', { detail: path }));
  }

  #typed = (): void => {
    this.#say(this.path);
    clearTimeout(this.#timer);
    if (plexus.may('admin')) this.#timer = setTimeout(() => void this.#look(this.path), PAUSE_MS);
  };

  #browse = (): void => {
    const path = this.path.trim();
    // After typing, the list is of the folder above: then the button goes into the one that was typed.
    if (this.shown && (path === '' || this.shown.under === (path.replace(/\/+$/, '') || '/'))) { this.shown = null; return; }
    clearTimeout(this.#timer);
    void this.#look(path && !path.endsWith('/') ? `${path}/` : path);
    this.renderRoot.querySelector('input')?.focus();
  };

  /** Lists the folders in the path up to its last `/` whose names begin with the rest. */
  async #look(path: string): Promise<void> {
    const serial = ++this.#serial;
    const cut = path.lastIndexOf('/');
    if (cut < 0 && path !== '' && path !== '~') { this.shown = null; return; }
    const under = path === '~' ? '~' : path.slice(0, cut + 1);
    const prefix = path === '~' ? '' : path.slice(cut + 1);
    try {
      const got = await plexus.http<Folders>('GET', `/v1/folders?under=${encodeURIComponent(under)}&prefix=${encodeURIComponent(prefix)}`);
      if (serial !== this.#serial) return;
      [this.shown, this.problem, this.at] = [got, '', -1];
    } catch (error) {
      if (serial === this.#serial) [this.shown, this.problem] = [null, why(error)];
    }
  }

  /** Opens a folder: it becomes the text of the field, and its folders are listed. */
  #take(path: string): void {
    this.value = path;
    const field = this.renderRoot.querySelector('input');
    if (field) { field.value = path; field.focus(); }
    this.#say(path);
    void this.#look(path.endsWith('/') ? path : `${path}/`);
  }

  #key = (event: KeyboardEvent): void => {
    const rows = this.#rows();
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      if (!this.shown) { if (plexus.may('admin')) this.#browse(); return; }
      const by = event.key === 'ArrowDown' ? 1 : -1;
      if (rows.length) this.at = this.at < 0 ? (by > 0 ? 0 : rows.length - 1) : (this.at + by + rows.length) % rows.length;
    } else if (this.shown && this.at >= 0 && (event.key === 'Enter' || event.key === 'Tab') && !event.shiftKey) {
      const row = rows[this.at];
      if (row) { event.preventDefault(); this.#take(row.path); }
    } else if (this.shown && event.key === 'Escape') {
      event.preventDefault();
      event.stopPropagation();
      this.shown = null;
    } else if (event.key === 'Enter') {
      event.preventDefault();
      (this.getRootNode() as ShadowRoot).querySelector('form')?.requestSubmit();
    }
  };
}
