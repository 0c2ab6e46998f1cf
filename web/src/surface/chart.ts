// A chart as SVG, with its numbers in words for screen readers and as a table for everybody.
import { css, html, nothing, svg, type PropertyValues, type TemplateResult } from 'lit';
import { PlexusElement } from '../lib/element.js';
import { text as words } from '../text/en.js';
import { numberOf, pointsOf, short, thinned, ticks, type Point, type Series } from './plot.js';
import { asText } from './functions.js';
import type { Json } from './types.js';

const t = words.surface;

type Kind = 'bar' | 'line' | 'scatter' | 'sparkline';
const KINDS: ReadonlySet<unknown> = new Set(['bar', 'line', 'scatter', 'sparkline']);
/** Heights, px. */
const HIGH = { usual: 220, narrow: 180, sparkline: 44 } as const;
/** Width below which a chart is lower, px. */
const NARROW = 420;
/** Width before the first measurement, px. */
const FIRST = 480;
/** About the width of a character of a label, px. */
const CHAR = 6.6;
/** Maximum number of points that have a mark of their own on a line. */
const MARKS_MAX = 40;
/** Maximum number of bars. */
const BARS_MAX = 600;
/** Maximum number of points of a scatter chart. */
const DOTS_MAX = 3_000;
/** Maximum number of rows of the table of the numbers. */
const LISTED_MAX = 500;
/** Distinct looks of series. */
const LOOKS = 6;

interface Plot { left: number; right: number; top: number; bottom: number; x: (n: number) => number; y: (n: number) => number; yTicks: number[] }

export class PlexusSurfaceChart extends PlexusElement {
  static override properties = {
    kind: { attribute: false }, series: { attribute: false }, labels: { attribute: false }, heading: { attribute: false }, unit: { attribute: false }, least: { attribute: false }, most: { attribute: false },
    width: { state: true }, listed: { state: true },
  };
  static override styles = [...[PlexusElement.styles].flat(), css`
    :host { display: block; min-inline-size: 0; }
    figure { min-inline-size: 0; }
    figcaption { font-weight: 600; margin-block-end: 6px; overflow-wrap: anywhere; }
    .plot { overflow: hidden; }
    svg { display: block; max-inline-size: 100%; }
    text { fill: var(--fg-mute); font: 11px var(--sans); font-variant-numeric: tabular-nums; }
    .grid { stroke: var(--line); } .axis { stroke: var(--line-strong); }
    .s0 { --c: var(--accent); } .s1 { --c: light-dark(#b45309, #f0b45c); } .s2 { --c: light-dark(#0f766e, #4fd1c5); }
    .s3 { --c: light-dark(#be185d, #f687b3); } .s4 { --c: light-dark(#0b5cad, #79b8ff); } .s5 { --c: light-dark(#4d7c0f, #a3d65c); }
    .line { fill: none; stroke: var(--c); stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
    .s1.line { stroke-dasharray: 6 4; } .s2.line { stroke-dasharray: 2 4; } .s3.line { stroke-dasharray: 10 4 2 4; } .s4.line { stroke-dasharray: 12 4; } .s5.line { stroke-dasharray: 1 5; }
    .mark { fill: var(--bg-raised); stroke: var(--c); stroke-width: 1.8; }
    .dot { fill: var(--c); fill-opacity: 0.75; }
    .bar { fill: var(--c); } .bar:hover, .dot:hover { fill-opacity: 0.6; }
    .area { fill: var(--c); fill-opacity: 0.12; }
    .keys { display: flex; flex-wrap: wrap; gap: 2px 14px; margin-block-start: 6px; font-size: var(--t-s); color: var(--fg-soft); }
    .keys li { display: inline-flex; align-items: center; gap: 6px; min-inline-size: 0; overflow-wrap: anywhere; }
    .keys svg { flex: none; }
    .spark { display: flex; align-items: center; gap: 10px; }
    .spark .plot { flex: 1 1 0; min-inline-size: 0; } .spark .now { font-weight: 600; font-variant-numeric: tabular-nums; white-space: nowrap; }
    details { margin-block-start: 4px; font-size: var(--t-s); color: var(--fg-soft); }
    summary { cursor: pointer; inline-size: max-content; min-block-size: 24px; }
    .box { overflow: auto; max-block-size: 260px; border: 1px solid var(--line); border-radius: var(--r-s); }
    table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
    th, td { padding: 3px 10px; border-block-end: 1px solid var(--line); text-align: end; white-space: nowrap; }
    th:first-child, td:first-child { text-align: start; }
    .none { color: var(--fg-mute); }
  `];
  declare kind: unknown;
  declare series: readonly Series[];
  declare labels: readonly Json[];
  declare heading: string;
  declare unit: string;
  declare least: unknown;
  declare most: unknown;
  declare private width: number;
  declare private listed: boolean;
  #sizes = new ResizeObserver(([entry]) => { if (entry) this.width = Math.max(120, Math.floor(entry.contentRect.width)); });
  #points: (Point | null)[][] = [];

  constructor() {
    super();
    this.kind = 'line';
    this.series = [];
    this.labels = [];
    this.heading = '';
    this.unit = '';
    this.least = undefined;
    this.most = undefined;
    this.width = FIRST;
    this.listed = false;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.#sizes.observe(this);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#sizes.disconnect();
  }

  protected override willUpdate(changed: PropertyValues): void {
    if (changed.has('series') || changed.has('kind')) this.#points = this.series.map((one) => pointsOf(this.#kind === 'scatter' ? one : { ...one, x: null }));
  }

  get #kind(): Kind {
    return KINDS.has(this.kind) ? (this.kind as Kind) : 'line';
  }

  override render() {
    const all = this.#points.flat().filter((point) => point !== null);
    const name = t.chart[this.#kind] ?? '';
    const said = t.chartOf(name, this.heading, all.length ? this.series.map((one, n) => this.#said(one, n)).join(' ') : t.noValues);
    if (!all.length) return html`<figure>${this.heading ? html`<figcaption>${this.heading}</figcaption>` : nothing}<p class="none">${t.noValues}</p></figure>`;
    if (this.#kind === 'sparkline') return this.#sparkline(said);
    const high = this.width < NARROW ? HIGH.narrow : HIGH.usual;
    const plot = this.#plot(all, high);
    const body = this.#kind === 'bar' ? this.#bars(plot) : this.#kind === 'scatter' ? this.#dots(plot) : this.#lines(plot);
    return html`<figure>${this.heading ? html`<figcaption>${this.heading}</figcaption>` : nothing}
      <div class="plot"><svg role="img" aria-label=${said} width=${this.width} height=${high} viewBox=${`0 0 ${this.width} ${high}`}>${this.#axes(plot, high)}${body}</svg></div>
      ${this.series.length > 1 || this.series[0]?.label ? html`<ul class="keys">${this.series.map((one, n) => html`<li>${this.#key(n)}<span>${one.label || t.series(n + 1)}</span></li>`)}</ul>` : nothing}
      ${this.#table()}</figure>`;
  }

  #with(n: number): string {
    return `${short(n)}${this.unit ? `${/^\w/.test(this.unit) ? '\u00a0' : ''}${this.unit}` : ''}`;
  }

  #said(series: Series, n: number): string {
    const values = (this.#points[n] ?? []).filter((point) => point !== null).map((point) => point.y);
    if (!values.length) return `${series.label || t.series(n + 1)}: ${t.noValues}`;
    const [least, most] = range(values);
    return t.seriesOf(series.label || t.series(n + 1), values.length, this.#with(least), this.#with(most), this.#with(values.at(-1) as number));
  }

  #plot(all: readonly Point[], high: number): Plot {
    let [low, top] = range(all.map((point) => point.y));
    if (this.#kind === 'bar') { low = Math.min(0, low); top = Math.max(0, top); }
    const least = numberOf(this.least as Json) ?? low;
    const most = Math.max(numberOf(this.most as Json) ?? top, least);
    const yTicks = ticks(least, most === least ? least + (Math.abs(least) || 1) : most, high < HIGH.usual ? 4 : 5);
    const from = numberOf(this.least as Json) ?? yTicks[0] ?? 0;
    const to = numberOf(this.most as Json) ?? yTicks.at(-1) ?? 1;
    const shown = yTicks.filter((tick) => tick >= from && tick <= to);
    const left = Math.min(this.width / 3, 10 + Math.max(...shown.map((tick) => this.#with(tick).length), 1) * CHAR);
    const right = this.width - 10;
    const bottom = high - 22;
    const [x0, x1] = this.#kind === 'scatter' ? range(all.map((point) => point.x)) : this.#kind === 'bar' ? [-0.5, Math.max(...this.#points.map((points) => points.length)) - 0.5] : [0, Math.max(1, Math.max(...this.#points.map((points) => points.length)) - 1)];
    return {
      left, right, top: 8, bottom, yTicks: shown,
      x: (n) => left + ((n - x0) / (x1 - x0 || 1)) * (right - left),
      y: (n) => bottom - ((Math.max(from, Math.min(to, n)) - from) / (to - from || 1)) * (bottom - 8),
    };
  }

  #axes(plot: Plot, high: number): TemplateResult {
    const rows = plot.yTicks.map((tick) => svg`<line class="grid" x1=${plot.left} x2=${plot.right} y1=${plot.y(tick)} y2=${plot.y(tick)}></line><text x=${plot.left - 6} y=${plot.y(tick) + 4} text-anchor="end">${this.#with(tick)}</text>`);
    const base = this.#kind === 'bar' ? plot.y(0) : plot.bottom;
    return svg`${rows}<line class="axis" x1=${plot.left} x2=${plot.right} y1=${base} y2=${base}></line>${this.#below(plot, high)}` as TemplateResult;
  }

  /** The labels under the chart, as many as fit. */
  #below(plot: Plot, high: number): unknown {
    if (this.#kind === 'scatter') {
      const [x0, x1] = range(this.#points.flat().filter((point) => point !== null).map((point) => point.x));
      return ticks(x0, x1, Math.max(2, Math.floor((plot.right - plot.left) / 60))).filter((tick) => tick >= x0 && tick <= x1)
        .map((tick) => svg`<text x=${plot.x(tick)} y=${high - 6} text-anchor="middle">${short(tick)}</text>`);
    }
    const count = Math.max(...this.#points.map((points) => points.length));
    const names = Array.from({ length: count }, (_, n) => asText(this.labels[n]).slice(0, 40) || (this.labels.length ? '' : String(n + 1)));
    const most = Math.min(14, Math.max(1, ...names.slice(0, 1_000).map((name) => name.length)));
    const each = Math.max(1, Math.ceil(count / Math.max(1, Math.floor((plot.right - plot.left) / (most * CHAR + 14)))));
    return names.map((name, n) => {
      if (n % each) return nothing;
      const shown = name.length > most ? `${name.slice(0, most - 1)}…` : name;
      const half = (shown.length * CHAR) / 2;
      // The outermost labels stay within the picture.
      const at = Math.max(half, Math.min(this.width - half - 1, plot.x(n)));
      return svg`<text x=${at} y=${high - 6} text-anchor="middle">${shown}</text>`;
    });
  }

  #title(n: number, at: number, y: number): unknown {
    const label = asText(this.labels[at]).slice(0, 80) || String(at + 1);
    return svg`<title>${`${this.series[n]?.label || t.series(n + 1)}, ${label}: ${this.#with(y)}`}</title>`;
  }

  #bars(plot: Plot): unknown {
    const count = Math.max(...this.#points.map((points) => points.length));
    const slot = Math.abs(plot.x(1) - plot.x(0)) || plot.right - plot.left;
    const each = Math.max(1, Math.min(48, (slot * 0.76) / this.#points.length));
    const zero = plot.y(0);
    const bars: unknown[] = [];
    for (let n = 0; n < count && bars.length < BARS_MAX; n++) {
      this.#points.forEach((points, s) => {
        const point = points[n];
        if (!point) return;
        const top = Math.min(zero, plot.y(point.y));
        const x = plot.x(n) + (s - this.#points.length / 2) * each;
        bars.push(svg`<rect class=${`bar s${s % LOOKS}`} x=${x + 0.5} y=${top} width=${Math.max(0.5, each - 1)} height=${Math.max(1, Math.abs(plot.y(point.y) - zero))} rx=${each > 6 ? 2 : 0}>${this.#title(s, n, point.y)}</rect>`);
      });
    }
    return bars;
  }

  #lines(plot: Plot): unknown {
    return this.#points.map((points, s) => {
      const shown = thinned(points, Math.max(40, this.width * 2));
      const marks = points.length <= MARKS_MAX ? points.map((point, n) => (point ? svg`<circle class=${`mark s${s % LOOKS}`} cx=${plot.x(point.x)} cy=${plot.y(point.y)} r="3">${this.#title(s, n, point.y)}</circle>` : nothing)) : nothing;
      return svg`<path class=${`line s${s % LOOKS}`} d=${path(shown, plot)}></path>${marks}`;
    });
  }

  #dots(plot: Plot): unknown {
    return this.#points.map((points, s) => points.slice(0, DOTS_MAX).map((point, n) => (point ? this.#dot(plot.x(point.x), plot.y(point.y), s, svg`<title>${`${this.series[s]?.label || t.series(s + 1)} ${n + 1}: ${short(point.x)}, ${this.#with(point.y)}`}</title>`) : nothing)));
  }

  /** A point in the shape of its series: colour is not all that tells series apart. */
  #dot(x: number, y: number, s: number, title: unknown): unknown {
    const look = `dot s${s % LOOKS}`;
    switch (s % 3) {
      case 1: return svg`<rect class=${look} x=${x - 4} y=${y - 4} width="8" height="8">${title}</rect>`;
      case 2: return svg`<path class=${look} d=${`M${x} ${y - 5}l5 9h-10Z`}>${title}</path>`;
      default: return svg`<circle class=${look} cx=${x} cy=${y} r="4">${title}</circle>`;
    }
  }

  #key(n: number): TemplateResult {
    const look = `s${n % LOOKS}`;
    const mark = this.#kind === 'bar' ? svg`<rect class=${`bar ${look}`} x="3" y="2" width="10" height="8" rx="2"></rect>` : this.#kind === 'scatter' ? this.#dot(8, 6, n, nothing) : svg`<path class=${`line ${look}`} d="M0 6h18"></path>`;
    return html`<svg width="18" height="12" viewBox="0 0 18 12" aria-hidden="true">${mark}</svg>`;
  }

  #sparkline(said: string): TemplateResult {
    const high = HIGH.sparkline;
    const wide = Math.max(60, this.width - 90);
    const points = (this.#points[0] ?? []);
    const values = points.filter((point) => point !== null).map((point) => point.y);
    const [low, top] = range(values);
    const from = numberOf(this.least as Json) ?? low;
    const to = numberOf(this.most as Json) ?? top;
    const plot: Plot = {
      left: 3, right: wide - 3, top: 3, bottom: high - 3, yTicks: [],
      x: (n) => 3 + (n / Math.max(1, points.length - 1)) * (wide - 6),
      y: (n) => high - 4 - ((Math.max(from, Math.min(to, n)) - from) / (to - from || 1)) * (high - 8),
    };
    const last = points.findLast((point) => point !== null);
    const line = path(thinned(points, wide), plot);
    return html`<figure>${this.heading ? html`<figcaption>${this.heading}</figcaption>` : nothing}
      <div class="spark"><div class="plot"><svg role="img" aria-label=${said} width=${wide} height=${high} viewBox=${`0 0 ${wide} ${high}`}><path class="line s0" d=${line}></path>
        ${last ? svg`<circle class="dot s0" cx=${plot.x(last.x)} cy=${plot.y(last.y)} r="3.5"></circle>` : nothing}</svg></div>${last ? html`<span class="now">${this.#with(last.y)}</span>` : nothing}</div></figure>`;
  }

  #table(): TemplateResult {
    const count = Math.max(...this.series.map((one) => one.values.length));
    const scatter = this.#kind === 'scatter';
    const rows = () => Array.from({ length: Math.min(count, LISTED_MAX) }, (_, n) => html`<tr><th scope="row">${asText(this.labels[n]).slice(0, 80) || String(n + 1)}</th>${this.series.map((one) => html`${scatter ? html`<td>${asText(one.x?.[n]).slice(0, 40)}</td>` : nothing}<td>${asText(one.values[n]).slice(0, 40)}</td>`)}</tr>`);
    const toggled = (event: Event) => { this.listed = (event.target as HTMLDetailsElement).open; };
    return html`<details @toggle=${toggled}><summary>${t.data}</summary>${this.listed ? html`<div class="box" tabindex="0" role="region" aria-label=${t.data}><table><thead><tr><td></td>${this.series.map((one, n) => html`${scatter ? html`<th scope="col">x</th>` : nothing}<th scope="col">${one.label || t.series(n + 1)}${this.unit ? ` (${this.unit})` : ''}</th>`)}</tr></thead>
      <tbody>${rows()}</tbody></table></div>${count > LISTED_MAX ? html`<p>${t.dataCut(LISTED_MAX)}</p>` : nothing}` : nothing}</details>`;
  }
}

/** The least and the greatest of some numbers; there may be more than a call may have arguments. */
function range(values: readonly number[]): [number, number] {
  return values.reduce<[number, number]>(([low, top], value) => [Math.min(low, value), Math.max(top, value)], [values[0] ?? 0, values[0] ?? 0]);
}

function path(points: readonly (Point | null)[], plot: Plot): string {
  let out = '';
  let up = true;
  for (const point of points) {
    if (!point) { up = true; continue; }
    out += `${up ? 'M' : 'L'}${plot.x(point.x).toFixed(1)} ${plot.y(point.y).toFixed(1)}`;
    up = false;
  }
  return out;
}
customElements.define('plexus-surface-chart', PlexusSurfaceChart);
