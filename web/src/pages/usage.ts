// The usage of agents: sums, bars by day, and a table that can be sorted. Loaded when it is opened.
import { css, html, nothing, type PropertyValues, type TemplateResult } from 'lit';
import { customElement, property, state } from 'lit/decorators.js';
import { PlexusElement } from '../lib/element.js';
import { oneLine } from '../lib/text.js';
import { plexus, why } from '../plexus.js';
import '../surface/chart.js';
import { short } from '../surface/plot.js';
import { text } from '../text/en.js';
import { usageWords as t } from '../text/usage.js';
import { icon } from '../ui/icons.js';
import { empty, pageStyles } from '../ui/parts.js';
import { announce } from '../ui/say.js';
import './ceilings.js';
import type { Money, Spending, UsageRow, UsageSums } from '../wire/types.js';

/** Days that can be chosen. */
const SPANS = [1, 7, 30] as const;
/** Maximum number of rows of a table. */
const ROWS = 200;
const DAY_MS = 86_400_000;
/** Step of the time zone's offset that the gateway accepts, minutes. */
const OFFSET_STEP = 15;

type By = 'runtime' | 'project' | 'session' | 'run';
type Column = 'name' | 'read' | 'cached' | 'written' | 'cost';

const pad = (n: number): string => String(n).padStart(2, '0');
const dayOf = (at: Date): string => `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`;
/** The days from one to another, at most as many as the longest choice. */
function days(from: string, to: string): string[] {
  const out: string[] = [];
  for (let at = Date.parse(from); at <= Date.parse(to) && out.length < 62; at += DAY_MS) out.push(new Date(at).toISOString().slice(0, 10));
  return out;
}
const tokensOf = (one: Spending): number => (one.input_tokens ?? 0) + (one.output_tokens ?? 0);
const tells = (one: Spending): boolean => one.input_tokens != null || one.output_tokens != null;
const money = ({ amount, currency }: Money): string => `${amount.toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: amount < 0.995 ? 4 : 2 })} ${oneLine(currency)}`;
const costOf = (one: Spending): string => (one.costs ?? []).map(money).join(' + ');
const costIn = (one: Spending, currency: string): number | undefined => one.costs?.find((cost) => cost.currency === currency)?.amount;

@customElement('plexus-usage')
export class PlexusUsage extends PlexusElement {
  @property() session = '';
  @state() private span: number = 7;
  @state() private by: By = 'runtime';
  @state() private measure = '';
  @state() private sort: { column: Column; down: boolean } = { column: 'read', down: true };
  @state() private perDay: UsageSums | null = null;
  @state() private sums: UsageSums | null = null;
  @state() private problem = '';
  #asked = '';
  #serial = 0;

  static override styles = [...[PlexusElement.styles].flat(), pageStyles, css`
    .choices { display: flex; flex-wrap: wrap; gap: 6px; }
    .choices button[aria-pressed="true"] { background: var(--bg-active); border-color: var(--line-strong); font-weight: 600; }
    .only { display: flex; flex-wrap: wrap; align-items: center; gap: 4px 12px; margin-bottom: var(--s3); color: var(--fg-soft); }
    .sums { display: grid; grid-template-columns: repeat(auto-fit, minmax(130px, 1fr)); gap: 1px; margin: 0 0 var(--s5); background: var(--bg-raised); border: 1px solid var(--line); border-radius: var(--r-m); overflow: hidden; }
    .sums > div { padding: 12px 16px; min-width: 0; box-shadow: 1px 0 0 var(--line), 0 1px 0 var(--line); }
    /* In two columns, the last of an odd number has the row. */
    @media (max-width: 599px) { .sums { grid-template-columns: repeat(2, minmax(0, 1fr)); } .sums > div:last-child:nth-child(odd) { grid-column: 1 / -1; } }
    dt { color: var(--fg-mute); font-size: var(--t-s); }
    dd { margin: 0; font-size: var(--t-xl, 20px); font-weight: 620; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
    dd.small { font-size: var(--t-l); }
    section { margin-bottom: var(--s5); }
    section > header { display: flex; flex-wrap: wrap; align-items: center; gap: 6px var(--s3); margin-bottom: var(--s2); min-height: 0; }
    section h2 { font-size: var(--t-m); flex: 1 1 auto; }
    .chart { border: 1px solid var(--line); border-radius: var(--r-m); background: var(--bg-raised); padding: 12px; min-height: 258px; }
    .box { position: relative; overflow-x: auto; border: 1px solid var(--line); border-radius: var(--r-m); background: var(--bg-raised); }
    table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
    th, td { padding: 0 10px; height: 40px; text-align: end; white-space: nowrap; border-bottom: 1px solid var(--line); font-weight: 450; }
    thead th { padding: 0; color: var(--fg-mute); font-size: var(--t-s); height: 36px; }
    thead button { width: 100%; min-height: 36px; padding: 0 10px; border: 0; background: none; border-radius: 0; justify-content: flex-end; gap: 4px; font-size: var(--t-s); font-weight: 550; color: inherit; }
    th:first-child, td:first-child, thead th:first-child button { text-align: start; justify-content: flex-start; }
    tbody th { max-width: 320px; min-width: 130px; overflow: hidden; text-overflow: ellipsis; }
    tbody tr:last-child > * { border-bottom: 0; }
    tbody th a { color: var(--fg); font-weight: 550; }
    tbody th .more { display: block; overflow: hidden; text-overflow: ellipsis; color: var(--fg-mute); font-size: var(--t-s); }
    .untold { color: var(--fg-mute); }
    .foot { color: var(--fg-mute); font-size: var(--t-s); max-width: 70ch; }
    plexus-ceilings { display: block; margin-bottom: var(--s5); }
    .foot p + p { margin-top: 4px; }
    .tells { display: grid; grid-template-columns: auto 1fr; gap: 6px 16px; text-align: start; max-width: 620px; margin: var(--s3) auto 0; font-size: var(--t-s); }
    .tells dt { font-weight: 600; color: var(--fg); } .tells dd { font-size: var(--t-s); font-weight: 450; color: var(--fg-soft); }
    @media (pointer: coarse) { .choices button, thead button { min-height: 44px; } th, td { height: 48px; } tbody th a { display: inline-block; padding: 12px 0; } tbody th a:has(+ .more) { padding: 8px 0 0; } }
    @media (max-width: 599px) { th, td, thead button { padding-left: 7px; padding-right: 7px; } tbody th { max-width: 46vw; } th:nth-child(3), td:nth-child(3) { display: none; } .tells { grid-template-columns: 1fr; gap: 0; } .tells dd { margin-bottom: 8px; } }
  `];

  protected override willUpdate(changed: PropertyValues<this>): void {
    if (changed.has('session') && this.by !== 'run' && this.session) this.by = 'run';
    if (changed.has('session') && !this.session && this.by === 'run') this.by = 'runtime';
  }

  override updated(): void {
    const wanted = `${this.session} ${this.span} ${this.by}`;
    if (wanted !== this.#asked) { this.#asked = wanted; void this.#read(); }
  }

  override render() {
    const sums = this.sums;
    return html`<div class="page"><header><h1 tabindex="-1">${t.title}</h1>
        <div class="choices" role="group" aria-label=${t.spansLabel}>${SPANS.map((n) => html`<button class="compact" aria-pressed=${this.span === n} @click=${() => { this.span = n; }}>${t.spans[n]}</button>`)}</div></header>
      ${this.session ? html`<div class="only"><bdi class="cut">${t.only(oneLine(plexus.sessions.value.get(this.session)?.title) || text.common.untitled)}</bdi><a href=${plexus.href({ page: 'usage' })}>${t.all}</a></div>` : nothing}
      ${this.problem ? html`<p class="note danger" role="alert">${this.problem} <button class="compact" @click=${() => void this.#read()}>${text.common.retry}</button></p>` : nothing}
      ${!sums || !this.perDay ? (this.problem ? nothing : html`<p class="mute">${text.common.loading}</p>`) : sums.rows.length === 0 ? this.#none() : html`${this.#sums(sums.total)}${this.#days(this.perDay)}${this.#table(sums)}`}
      ${plexus.may('admin') && !this.session ? html`<plexus-ceilings></plexus-ceilings>` : nothing}
      ${sums ? this.#foot(sums) : nothing}</div>`;
  }

  #none(): TemplateResult {
    return empty('usage', t.none, t.noneText, html`<dl class="tells">${t.tells.map(([agent, what]) => html`<dt>${agent}</dt><dd>${what}</dd>`)}</dl>`);
  }

  #sums(total: Spending): TemplateResult {
    const one = (name: string, count: number | null | undefined) => (count == null ? nothing : html`<div><dt>${name}</dt><dd title=${t.exact(count)}>${short(count)}</dd></div>`);
    const costs = total.costs ?? [];
    return html`<dl class="sums" aria-label=${t.sums}>${one(t.read, total.input_tokens)}${one(t.cached, total.cached_read_tokens)}${one(t.written, total.output_tokens)}${one(t.reasoning, total.reasoning_tokens)}
      ${costs.length ? html`<div><dt>${t.cost}</dt>${costs.map((cost) => html`<dd class=${costs.length > 1 ? 'small' : ''}>${money(cost)}</dd>`)}</div>` : nothing}</dl>`;
  }

  #days(perDay: UsageSums): TemplateResult {
    const currencies = (perDay.total.costs ?? []).map((cost) => cost.currency);
    const measures = [...(tells(perDay.total) ? [''] : []), ...currencies];
    const measure = measures.includes(this.measure) ? this.measure : (measures[0] ?? '');
    const known = new Map(perDay.rows.map((row) => [row.day, row.usage]));
    const labels = days(perDay.from, perDay.to);
    const values = labels.map((day) => { const one = known.get(day); return !one ? 0 : measure ? (costIn(one, measure) ?? 0) : tokensOf(one); });
    const name = measure ? `${t.cost} (${oneLine(measure)})` : t.tokens;
    return html`<section aria-labelledby="days"><header><h2 id="days">${t.perDay}</h2>
        ${measures.length > 1 ? html`<div class="choices" role="group" aria-label=${t.measures}>${measures.map((one) => html`<button class="compact" aria-pressed=${one === measure} @click=${() => { this.measure = one; }}>${one ? `${t.cost} (${oneLine(one)})` : t.tokens}</button>`)}</div>` : nothing}</header>
      <div class="chart"><plexus-surface-chart .kind=${'bar'} .series=${[{ label: name, values, x: null }]} .labels=${labels.map((day) => day.slice(5))} .unit=${measure} .least=${0}></plexus-surface-chart></div></section>`;
  }

  #table(sums: UsageSums): TemplateResult {
    const tables: readonly By[] = this.session ? ['run'] : ['runtime', 'project', 'session'];
    const columns: ReadonlyArray<readonly [Column, string]> = [['name', t.names[this.by] ?? ''], ['read', t.read], ['cached', t.cached], ['written', t.written], ['cost', t.cost]];
    const heading = t.tables[this.by] ?? '';
    return html`<section><header><h2>${heading}</h2>
        ${tables.length > 1 ? html`<div class="choices" role="group" aria-label=${t.tableLabel}>${tables.map((one) => html`<button class="compact" aria-pressed=${one === this.by} @click=${() => { this.by = one; }}>${t.names[one]}</button>`)}</div>` : nothing}</header>
      <div class="box" tabindex="0" role="region" aria-label=${heading}><table aria-label=${heading}>
        <thead><tr>${columns.map(([column, name]) => html`<th scope="col" aria-sort=${this.sort.column !== column ? 'none' : this.sort.down ? 'descending' : 'ascending'}><button title=${t.sortBy(name)} @click=${() => this.#turn(column)}>${name}${this.sort.column === column ? icon(this.sort.down ? 'down' : 'up', 12) : nothing}</button></th>`)}</tr></thead>
        <tbody>${this.#sorted(sums.rows).map((row) => this.#row(row))}</tbody></table></div>
      ${sums.truncated ? html`<p class="foot">${t.truncated(sums.rows.length)}</p>` : nothing}</section>`;
  }

  #turn(column: Column): void {
    const down = this.sort.column === column ? !this.sort.down : column !== 'name';
    this.sort = { column, down };
  }

  #sorted(rows: readonly UsageRow[]): UsageRow[] {
    const { column, down } = this.sort;
    const cost = (row: UsageRow) => Math.max(-1, ...(row.usage.costs ?? []).map((one) => one.amount));
    const key = (row: UsageRow): number => ({ read: row.usage.input_tokens, cached: row.usage.cached_read_tokens, written: row.usage.output_tokens, cost: cost(row), name: 0 })[column] ?? -1;
    const order = (a: UsageRow, b: UsageRow) => (column === 'name' ? this.#name(a).localeCompare(this.#name(b)) : key(a) - key(b));
    return [...rows].sort((a, b) => (down ? -order(a, b) : order(a, b)));
  }

  /** The subject of a row, in words. */
  #name(row: UsageRow): string {
    switch (this.by) {
      case 'runtime': return oneLine(row.runtime_id);
      case 'project': return oneLine(row.project);
      case 'session': return oneLine(row.title) || text.common.untitled;
      case 'run': return new Date(row.at).toLocaleString('en', { dateStyle: 'medium', timeStyle: 'short' });
    }
  }

  #row(row: UsageRow): TemplateResult {
    const name = this.#name(row);
    const more = this.by === 'session' ? [oneLine(row.runtime_id), oneLine(row.project)].filter(Boolean).join(' · ') : '';
    const link = this.by === 'session' && row.session_id;
    const told = (count: number | null | undefined) => (count == null ? html`<td class="untold"><span aria-hidden="true">–</span><span class="sr">${t.notTold}</span></td>` : html`<td title=${t.exact(count)}>${short(count)}</td>`);
    const cost = costOf(row.usage);
    return html`<tr><th scope="row" title=${name}>${link ? html`<a href=${plexus.href({ page: 'session', session_id: link })}><bdi>${name}</bdi></a>` : html`<bdi>${name}</bdi>`}${more ? html`<bdi class="more">${more}</bdi>` : nothing}</th>
      ${told(row.usage.input_tokens)}${told(row.usage.cached_read_tokens)}${told(row.usage.output_tokens)}
      ${cost ? html`<td>${cost}</td>` : html`<td class="untold"><span aria-hidden="true">–</span><span class="sr">${t.notTold}</span></td>`}</tr>`;
  }

  #foot(sums: UsageSums): TemplateResult {
    const since = dayOf(new Date(sums.known_since));
    return html`<div class="foot"><p>${t.meaning}</p>${since > sums.from ? html`<p>${t.since(since)}</p>` : nothing}</div>`;
  }

  async #read(): Promise<void> {
    const serial = ++this.#serial;
    const now = new Date();
    const from = dayOf(new Date(now.getFullYear(), now.getMonth(), now.getDate() - this.span + 1));
    // No clock is between two steps; towards UTC, as one that is cannot be told.
    const offset = Math.trunc(-now.getTimezoneOffset() / OFFSET_STEP) * OFFSET_STEP;
    const query = (by: string, limit: number) => `/v1/usage?${new URLSearchParams({ by, from, to: dayOf(now), utc_offset: String(offset), limit: String(limit), ...(this.session ? { session_id: this.session } : {}) })}`;
    this.problem = '';
    try {
      const [perDay, sums] = await Promise.all([plexus.http<UsageSums>('GET', query('day', 100)), plexus.http<UsageSums>('GET', query(this.by, ROWS))]);
      if (serial !== this.#serial) return;
      [this.perDay, this.sums] = [perDay, sums];
      announce(sums.rows.length ? t.loaded(short(tokensOf(sums.total)), costOf(sums.total)) : t.none);
    } catch (error) {
      if (serial === this.#serial) this.problem = t.failed(why(error));
    }
  }
}

declare global { interface HTMLElementTagNameMap { 'plexus-usage': PlexusUsage } }
