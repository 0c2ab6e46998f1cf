// The table of docs/web.md: what was measured, beside what should hold and what a page that does nothing takes.
import { readFileSync, writeFileSync } from 'node:fs';

/**
 * One line of the table.
 * @typedef {{what: string, measured: number, unit: string, target?: number, floor?: number, least?: boolean, more?: string}} Line
 */

/** @param {number[]} all */
export const median = (all) => [...all].sort((a, b) => a - b)[Math.floor(all.length / 2)] ?? NaN;

/** The value that so many in a hundred do not exceed. @param {number[]} all @param {number} percent */
export const percentile = (all, percent) => [...all].sort((a, b) => a - b)[Math.max(0, Math.ceil((all.length * percent) / 100) - 1)] ?? NaN;

const number = (/** @type {number} */ n) => (Number.isInteger(n) ? n.toLocaleString('en-US') : n.toFixed(1));
/** Whether it holds; null if nothing was asked of it. */
const holds = (/** @type {Line} */ { measured, target, least }) => (target === undefined ? null : least ? measured >= target : measured <= target);

/** The table in Markdown. @param {Line[]} lines */
export function table(lines) {
  const rows = lines.map((line) => {
    const { what, measured, unit, target, floor, least, more } = line;
    const value = (/** @type {number} */ n) => `${number(n)}${unit ? ` ${unit}` : ''}`;
    const ratio = floor && unit === 'ms' && measured > 0 ? ` (${(measured / floor).toFixed(1)}x)` : '';
    const held = holds(line);
    return `| ${what} | ${value(measured)}${more ? `, ${more}` : ''} | ${target === undefined ? '' : `${value(target)} at ${least ? 'least' : 'most'}`} | ${floor === undefined ? '' : `${value(floor)}${ratio}`} | ${held === null ? '' : held ? 'yes' : '**no**'} |`;
  });
  return ['| situation | measured | target | a page that does nothing | holds |', '| --- | --- | --- | --- | --- |', ...rows].join('\n');
}

/** Puts the text between the markers of a file. @param {string} name of the markers: `<!-- NAME: begin -->` and `<!-- NAME: end -->` */
export function put(/** @type {string} */ file, /** @type {string} */ name, /** @type {string} */ text) {
  const [begin, end] = [`<!-- ${name}: begin -->`, `<!-- ${name}: end -->`];
  const old = readFileSync(file, 'utf8');
  const [from, to] = [old.indexOf(begin), old.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`${file} lacks the markers ${begin} and ${end}`);
  writeFileSync(file, `${old.slice(0, from + begin.length)}\n${text}\n${old.slice(to)}`);
}
