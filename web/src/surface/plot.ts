// The numbers of a chart: scales, ticks, and fewer points where there are more than pixels. Pure.
import type { Json } from './types.js';

export interface Series { label: string; values: readonly Json[]; x: readonly Json[] | null }
export interface Point { x: number; y: number }

/** Maximum number of points of a series. */
export const POINTS_MAX = 10_000;

export const numberOf = (value: Json | undefined): number | null => (typeof value === 'number' && Number.isFinite(value) ? value : null);

/** The points of a series, with null where a value is missing. */
export function pointsOf(series: Series): (Point | null)[] {
  return series.values.slice(0, POINTS_MAX).map((value, n) => {
    const y = numberOf(value);
    const x = series.x ? numberOf(series.x[n]) : n;
    return y === null || x === null ? null : { x, y };
  });
}

/** Round values from `least` to `most`, about `count` of them, and the range that they span. */
export function ticks(least: number, most: number, count: number): number[] {
  const span = most - least || Math.abs(most) || 1;
  const rough = span / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10);
  if (!Number.isFinite(step) || step <= 0) return [least];
  const out: number[] = [];
  for (let n = Math.floor(least / step); n <= Math.ceil(most / step + 1e-9) && out.length < 50; n++) out.push(Number((n * step).toPrecision(12)));
  return out;
}

/** At most `room` points: of each stretch the lowest and the highest, so that no peak is lost. Gaps stay. */
export function thinned(points: readonly (Point | null)[], room: number): (Point | null)[] {
  if (points.length <= room || room < 4) return [...points];
  const each = Math.ceil(points.length / (room / 2));
  const out: (Point | null)[] = [];
  for (let from = 0; from < points.length; from += each) {
    let low: Point | null = null;
    let high: Point | null = null;
    for (let n = from; n < Math.min(points.length, from + each); n++) {
      const point = points[n];
      if (!point) continue;
      if (!low || point.y < low.y) low = point;
      if (!high || point.y > high.y) high = point;
    }
    if (!low || !high) out.push(null);
    else out.push(...(low === high ? [low] : low.x < high.x ? [low, high] : [high, low]));
  }
  return out;
}

/** A number for people: short, with thousands as k, M, G. */
export function short(n: number): string {
  const size = Math.abs(n);
  for (const [unit, name] of [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e4, 'k']] as const) {
    if (size >= unit) return `${Number((n / (name === 'k' ? 1e3 : unit)).toPrecision(3)).toLocaleString('en')}${name}`;
  }
  if (size > 0 && size < 1e-4) return n.toExponential(1);
  return Number(n.toPrecision(4)).toLocaleString('en', { maximumFractionDigits: 6 });
}
