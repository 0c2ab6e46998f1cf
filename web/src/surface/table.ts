// A table of up to 10,000 rows: sorted, filtered, and only the visible rows are in the document.
import { css, html, nothing, type PropertyValues } from 'lit';
import { PlexusElement } from '../lib/element.js';
import { readable } from '../render/visible.js';
import { text as words } from '../text/en.js';
import { icon } from '../ui/icons.js';
import type { Drawing } from './scene.js';
import { ROWS_MAX, type Json } from './types.js';

const t = words.surface;

/** The height of a row, px. */
const ROW_PX = 32;
/** Rows drawn above and below the visible ones. */
const MARGIN = 12;
/** Up to this many rows all are drawn, so that find-in-page and selection work. */
const WHOLE = 60;
/** Rows seen at once. */
const SEEN = 12;
/** Maximum number of columns. */
const COLUMNS_MAX = 40;
/** Widths of columns, in characters. */
const WIDTH = { least: 5, most: 36 } as const;
/** Rows that decide how wide a column is. */
const SAMPLE = 200;
/** Maximum length of the text of a cell, in characters. */
const CELL_MAX = 500;

type Format = 'text' | 'number' | 'bytes' | 'percent' | 'duration' | 'datetime';
interface Column { key: string; label: string; align: 'start' | 'center' | 'end'; format: Format }
type Cells = Record<string, Json>;

const FORMATS: ReadonlySet<unknown> = new Set(['text', 'number', 'bytes', 'percent', 'duration', 'datetime']);
const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** The columns of a table. */
export function columnsOf(given: unknown): Column[] {
  const out: Column[] = [];
  for (const one of Array.isArray(given) ? (given as unknown[]).slice(0, COLUMNS_MAX) : []) {
    const column = one as Record<string, unknown> | null;
    if (column === null || typeof column !== 'object' || typeof column['key'] !== 'string') continue;
    const format = (FORMATS.has(column['format']) ? column['format'] : 'text') as Format;
    const align = ['start', 'center', 'end'].includes(column['align'] as string) ? column['align'] : ['text', 'datetime'].includes(format) ? 'start' : 'end';
    out.push({ key: column['key'], label: typeof column['label'] === 'string' ? column['label'].slice(0, 100) : column['key'], format, align: align as Column['align'] });
  }
  return out;
}

/** A duration in seconds, as its two largest units. */
function duration(seconds: number): string {
  const s = Math.abs(seconds);
  const sign = seconds < 0 ? '−' : '';
  if (s < 1) return `${sign}${Math.round(s * 1000)} ms`;
  if (s < 60) return `${sign}${Number(s.toFixed(s < 10 ? 2 : 1))} s`;
  const [big, small, from] = s < 3_600 ? ['min', 's', 60] as const : s < 86_400 ? ['h', 'min', 3_600] as const : ['d', 'h', 86_400] as const;
  const rest = Math.floor((s % from) / (from === 60 ? 1 : from === 3_600 ? 60 : 3_600));
  return `${sign}${Math.floor(s / from)} ${big}${rest ? ` ${rest} ${small}` : ''}`;
}

// Made once: a format takes longer to make than to use.
const digits = (most: number): Intl.NumberFormat => new Intl.NumberFormat('en', { maximumFractionDigits: most });
const EXACT = digits(6);
const TENTHS = digits(1);
const WHOLES = digits(0);

const two = (n: number): string => (n < 10 ? `0${n}` : String(n));
/** A moment by this machine's clock; null if it is none. */
function moment(value: Json): string | null {
  // A date without a time is a day, whatever the zone.
  if (typeof value === 'string' && /^\d{4}-\d\d-\d\d$/.test(value)) return value;
  const date = new Date(value as string | number);
  return Number.isNaN(date.getTime()) ? null : `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

/** A cell as text. */
export function cellText(value: Json | undefined, format: Format): string {
  if (value === null || value === undefined) return '';
  if (format === 'datetime') return (typeof value === 'object' ? null : moment(value)) ?? String(value).slice(0, CELL_MAX);
  if (typeof value === 'number' && Number.isFinite(value)) {
    switch (format) {
      case 'number': return EXACT.format(value);
      case 'percent': return `${TENTHS.format(value * 100)} %`;
      case 'duration': return duration(value);
      case 'bytes': {
        let n = value;
        let unit = 0;
        while (Math.abs(n) >= 1024 && unit < UNITS.length - 1) { n /= 1024; unit++; }
        return `${(n < 10 && unit ? TENTHS : WHOLES).format(n)} ${UNITS[unit]}`;
      }
      default: return String(value);
    }
  }
  return typeof value === 'object' ? JSON.stringify(value).slice(0, CELL_MAX) : typeof value === 'boolean' ? (value ? '✓' : '–') : String(value).slice(0, CELL_MAX);
}

const cellOf = (row: Json | undefined, key: string): Json | undefined => (row !== null && typeof row === 'object' && !Array.isArray(row) && Object.hasOwn(row, key) ? (row as Cells)[key] : undefined);

/** The order of two cells: numbers by size, texts without case, nothing last. */
function compare(a: Json | undefined, b: Json | undefined): number {
  const empty = Number(a === null || a === undefined) - Number(b === null || b === undefined);
  if (empty) return empty;
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  const x = typeof a === 'string' ? a : JSON.stringify(a) ?? '';
  const y = typeof b === 'string' ? b : JSON.stringify(b) ?? '';
  return x < y ? -1 : x > y ? 1 : 0;
}

/** The indices of the rows that hold `wanted`, in order. */
export function orderOf(rows: readonly Json[], columns: readonly Column[], sort: { key: string; descending: boolean } | null, wanted: string, texts: (n: number) => string): number[] {
  const needle = wanted.trim().toLowerCase();
  const out: number[] = [];
  for (let n = 0; n < rows.length; n++) if (!needle || texts(n).includes(needle)) out.push(n);
  if (!sort || !columns.some((column) => column.key === sort.key)) return out;
  const cells = rows.map((row) => { const cell = cellOf(row, sort.key); return typeof cell === 'string' ? cell.toLowerCase() : cell; });
  const sign = sort.descending ? -1 : 1;
  return out.sort((a, b) => {
    const missing = Number(cells[a] == null) - Number(cells[b] == null);
    return missing || sign * compare(cells[a], cells[b]) || a - b;
  });
}

/** `<plexus-surface-table .columns .rows>`; dispatches `row-select` with the index of the row as it was given. */
export class PlexusSurfaceTable extends PlexusElement {
  static override properties = {
    columns: { attribute: false }, rows: { attribute: false }, sort: { attribute: false }, filterable: { attribute: false }, label: { attribute: false }, selects: { attribute: false }, locked: { attribute: false },
    chosen: { state: true }, wanted: { state: true }, from: { state: true },
  };
  static override styles = [...[PlexusElement.styles].flat(), css`
    :host { display: block; min-inline-size: 0; }
    .head { display: flex; align-items: center; gap: 10px; flex-wrap: wrap; margin-block-end: 6px; }
    .head h4 { font-size: var(--t-m); font-weight: 600; }
    .head input { flex: 0 1 220px; min-inline-size: 120px; }
    .head .count { margin-inline-start: auto; color: var(--fg-mute); font-size: var(--t-s); }
    .box { overflow: auto; border: 1px solid var(--line); border-radius: var(--r-s); background: var(--bg-raised); }
    table { border-collapse: separate; border-spacing: 0; table-layout: fixed; min-inline-size: 100%; inline-size: 0; font-variant-numeric: tabular-nums; }
    th { position: sticky; inset-block-start: 0; z-index: 1; background: var(--bg-sunken); border-block-end: 1px solid var(--line); padding: 0; text-align: start; font-weight: 600; }
    th button { inline-size: 100%; min-block-size: ${ROW_PX}px; padding: 0 10px; border: 0; border-radius: 0; background: none; font: 600 var(--t-s)/1.2 var(--sans); color: var(--fg-soft); justify-content: inherit; text-align: inherit; overflow: hidden; }
    th button > span { overflow: hidden; text-overflow: ellipsis; min-inline-size: 0; }
    th button svg { flex: none; }
    th button:focus-visible { outline-offset: -2px; }
    td { block-size: ${ROW_PX}px; padding: 0 10px; border-block-end: 1px solid var(--line); overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
    tr:last-child td { border-block-end: 0; }
    td.start, th.start { text-align: start; } td.end, th.end { text-align: end; } td.center, th.center { text-align: center; }
    th.start button { justify-content: flex-start; } th.end button { justify-content: flex-end; } th.center button { justify-content: center; }
    .pick { min-block-size: 24px; padding: 0; border: 0; background: none; color: var(--accent); font: inherit; font-weight: 550; max-inline-size: 100%; overflow: hidden; text-overflow: ellipsis; display: inline-block; }
    .pick:hover { text-decoration: underline; background: none; }
    tbody tr.row:hover td { background: var(--bg-hover); }
    .space td { padding: 0; border: 0; }
    .none { padding: 12px; color: var(--fg-mute); }
    .hint { color: var(--fg-mute); font-size: var(--t-s); margin-block-start: 4px; }
  `];
  declare columns: unknown;
  declare rows: readonly Json[];
  declare sort: unknown;
  declare filterable: boolean;
  declare label: string;
  declare selects: boolean;
  declare locked: string;
  /** The order that the user chose; undefined until then. */
  declare private chosen: { key: string; descending: boolean } | null | undefined;
  declare private wanted: string;
  /** The first drawn row. */
  declare private from: number;
  #columns: Column[] = [];
  #order: number[] = [];
  #texts: string[] = [];
  #widths: number[] = [];

  constructor() {
    super();
    this.columns = [];
    this.rows = [];
    this.sort = undefined;
    this.filterable = false;
    this.label = '';
    this.selects = false;
    this.locked = '';
    this.chosen = undefined;
    this.wanted = '';
    this.from = 0;
  }

  get #sort(): { key: string; descending: boolean } | null {
    if (this.chosen !== undefined) return this.chosen;
    const given = this.sort as Record<string, unknown> | null | undefined;
    return given && typeof given === 'object' && typeof given['key'] === 'string' ? { key: given['key'], descending: given['descending'] === true } : null;
  }

  protected override willUpdate(changed: PropertyValues): void {
    if (changed.has('columns')) this.#columns = columnsOf(this.columns);
    if (changed.has('rows') || changed.has('columns')) {
      this.#texts = [];
      this.#widths = this.#columns.map((column) => Math.min(WIDTH.most, this.rows.slice(0, SAMPLE).reduce<number>((most, row) => Math.max(most, cellText(cellOf(row, column.key), column.format).length), Math.max(WIDTH.least, column.label.length + 2))));
    }
    if (changed.has('from') && changed.size === 1) return;
    this.#order = orderOf(this.#rows, this.#columns, this.#sort, this.wanted, (n) => this.#textOf(n));
  }

  get #rows(): readonly Json[] {
    return this.rows.length > ROWS_MAX ? this.rows.slice(0, ROWS_MAX) : this.rows;
  }

  /** A row as text, for the filter. */
  #textOf(n: number): string {
    return (this.#texts[n] ??= this.#columns.map((column) => cellText(cellOf(this.rows[n], column.key), column.format)).join('\u0000').toLowerCase());
  }

  #scrolled = (event: Event): void => {
    const from = Math.max(0, Math.floor((event.target as HTMLElement).scrollTop / ROW_PX) - MARGIN);
    // Not for each line: rows are drawn ahead.
    if (Math.abs(from - this.from) >= MARGIN / 2 || from === 0) this.from = from;
  };

  #turn(column: Column): void {
    const now = this.#sort;
    this.chosen = now?.key !== column.key ? { key: column.key, descending: false } : now.descending ? null : { key: column.key, descending: true };
  }

  override render() {
    const count = this.#order.length;
    const whole = count <= WHOLE;
    const from = whole ? 0 : Math.min(this.from, Math.max(0, count - SEEN));
    const to = whole ? count : Math.min(count, from + SEEN + 2 * MARGIN + 2);
    const name = this.label || t.table;
    const space = (rows: number) => (rows > 0 ? html`<tr class="space" aria-hidden="true"><td colspan=${this.#columns.length} .style=${`block-size: ${rows * ROW_PX}px`}></td></tr>` : nothing);
    const shown = Array.from({ length: to - from }, (_, n) => this.#row(from + n));
    return html`
      ${this.label || this.filterable ? html`<div class="head">${this.label ? html`<span class="strong" id="name">${this.label}</span>` : nothing}
        ${this.filterable ? html`<input type="search" aria-label=${t.filter} placeholder=${t.filter} .value=${this.wanted} @input=${(event: Event) => { this.wanted = (event.target as HTMLInputElement).value.slice(0, 200); this.#top(); }}>` : nothing}
        <span class="count" role="status">${t.rows(count, this.#rows.length)}</span></div>` : nothing}
      <div class="box" tabindex="0" role="region" aria-label=${name} .style=${`max-block-size: ${(SEEN + 1) * ROW_PX + 2}px`} @scroll=${this.#scrolled}>
        <table aria-label=${name} aria-rowcount=${this.#rows.length + 1} aria-colcount=${this.#columns.length} .style=${`inline-size: ${this.#widths.reduce((sum, width) => sum + width, 0) + 3 * this.#widths.length}ch`}>
          <colgroup>${this.#widths.map((width) => html`<col .style=${`inline-size: ${width + 3}ch`}>`)}</colgroup>
          <thead><tr aria-rowindex="1">${this.#columns.map((column) => this.#heading(column))}</tr></thead>
          <tbody>${space(from)}${shown}${space(count - to)}</tbody>
        </table>
        ${count ? nothing : html`<p class="none">${t.noRows}</p>`}
      </div>
      ${this.rows.length > ROWS_MAX ? html`<p class="hint">${t.rowsCut(ROWS_MAX)}</p>` : nothing}`;
  }

  #top(): void {
    this.from = 0;
    const box = this.renderRoot.querySelector<HTMLElement>('.box');
    if (box) box.scrollTop = 0;
  }

  #heading(column: Column): Drawing {
    const now = this.#sort;
    const by = now?.key === column.key ? (now.descending ? 'descending' : 'ascending') : 'none';
    return html`<th class=${column.align} scope="col" aria-sort=${by}><button type="button" title=${t.sortBy(column.label)} @click=${() => this.#turn(column)}><span>${column.label}</span>${by === 'none' ? nothing : icon(by === 'ascending' ? 'up' : 'down', 12)}</button></th>`;
  }

  #row(at: number): Drawing {
    const index = this.#order[at] as number;
    const row = this.rows[index];
    return html`<tr class="row" aria-rowindex=${at + 2}>${this.#columns.map((column, n) => {
      const shown = readable(cellText(cellOf(row, column.key), column.format));
      return html`<td class=${column.align} title=${shown.length > 20 ? shown : nothing}>${n === 0 && this.selects
        ? html`<button type="button" class="pick" aria-disabled=${this.locked ? 'true' : nothing} title=${this.locked || nothing} @click=${() => this.#select(index)}>${shown || t.selectRow(index + 1)}</button>` : shown}</td>`;
    })}</tr>`;
  }

  #select(index: number): void {
    if (!this.locked) this.dispatchEvent(new CustomEvent('row-select', { detail: index }));
  }
}
customElements.define('plexus-surface-table', PlexusSurfaceTable);
