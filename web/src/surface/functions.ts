// The functions of A2UI's basic catalogue. They only compute: `openUrl` is no value, it is an action of a press.
import { matches } from './regex.js';
import type { Json } from './types.js';

type Args = { readonly [name: string]: Json | undefined };
type Fn = (args: Args) => Json | undefined;

const LOCALE = 'en-US';
/** Digits after the point that Intl allows. */
const DECIMALS_MAX = 20;
/** Maximum length of a pattern of a date, in characters. */
const FORMAT_MAX = 200;
const EMAIL = /^[a-zA-Z0-9._%+-]{1,128}@[a-zA-Z0-9.-]{1,255}\.[a-zA-Z]{2,63}$/;

const number = (value: Json | undefined): number => (value === undefined ? NaN : Number(value));
const bound = (value: Json | undefined): number | null => { const n = number(value); return Number.isNaN(n) ? null : n; };

/** A value as text: objects as JSON, nothing as nothing. */
export function asText(value: Json | undefined): string {
  if (value === null || value === undefined) return '';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

function digits(value: Json | undefined): Intl.NumberFormatOptions {
  const n = bound(value);
  if (n === null) return {};
  const fixed = Math.max(0, Math.min(DECIMALS_MAX, Math.trunc(n)));
  return { minimumFractionDigits: fixed, maximumFractionDigits: fixed };
}

const formats = new Map<string, Intl.NumberFormat>();
function formatted(value: Json | undefined, options: Intl.NumberFormatOptions): string {
  const n = number(value);
  if (Number.isNaN(n)) return '';
  const key = JSON.stringify(options);
  let format = formats.get(key);
  try {
    format ??= new Intl.NumberFormat(LOCALE, options);
    if (formats.size < 100) formats.set(key, format);
    return format.format(n);
  } catch {
    // The currency is none.
    return n.toFixed(options.minimumFractionDigits ?? 2);
  }
}

const two = (n: number): string => String(n).padStart(2, '0');
const word = (date: Date, options: Intl.DateTimeFormatOptions): string => date.toLocaleDateString(LOCALE, options);

/** One field of a TR35 pattern; null if it is not known. */
function field(date: Date, token: string): string | null {
  const long = token.length;
  switch (token[0]) {
    case 'y': return long === 2 ? two(date.getFullYear() % 100) : String(date.getFullYear()).padStart(long, '0');
    case 'M': case 'L': return long === 1 ? String(date.getMonth() + 1) : long === 2 ? two(date.getMonth() + 1) : word(date, { month: long === 3 ? 'short' : 'long' });
    case 'd': return long === 1 ? String(date.getDate()) : two(date.getDate());
    case 'E': return word(date, { weekday: long <= 3 ? 'short' : 'long' });
    case 'h': return long === 1 ? String(date.getHours() % 12 || 12) : two(date.getHours() % 12 || 12);
    case 'H': return long === 1 ? String(date.getHours()) : two(date.getHours());
    case 'm': return long === 1 ? String(date.getMinutes()) : two(date.getMinutes());
    case 's': return long === 1 ? String(date.getSeconds()) : two(date.getSeconds());
    case 'S': return String(date.getMilliseconds()).padStart(3, '0').padEnd(long, '0').slice(0, long);
    case 'a': return date.getHours() < 12 ? 'AM' : 'PM';
    default: return null;
  }
}

/** A date in the form of a TR35 pattern, by this machine's clock; ISO 8601 if the pattern is not understood. */
export function formatDate(value: Json | undefined, format: string): string {
  if (!value) return '';
  const date = new Date(typeof value === 'number' ? value : asText(value));
  if (Number.isNaN(date.getTime())) return '';
  if (format === 'ISO' || !format || format.length > FORMAT_MAX) return date.toISOString();
  let out = '';
  for (const [part, quoted] of format.matchAll(/'((?:''|[^'])*)'|([A-Za-z])\2*|[^A-Za-z']+|'/g)) {
    if (quoted !== undefined) { out += quoted ? quoted.replaceAll("''", "'") : "'"; continue; }
    if (!/^[A-Za-z]/.test(part)) { out += part; continue; }
    const made = field(date, part);
    if (made === null) return date.toISOString();
    out += made;
  }
  return out;
}

const plurals = new Intl.PluralRules(LOCALE);
const CALLS: ReadonlyMap<string, Fn> = new Map<string, Fn>([
  ['required', ({ value }) => value !== undefined && value !== null && value !== '' && !(Array.isArray(value) && !value.length)],
  // A pattern that cannot be matched here is left to the gateway, which checks again.
  ['regex', ({ value, pattern }) => value !== undefined && pattern !== undefined && (matches(asText(pattern), asText(value)) ?? true)],
  ['length', ({ value, min, max }) => {
    if (value === undefined) return false;
    const size = typeof value === 'string' || Array.isArray(value) ? value.length : 0;
    return size >= (bound(min) ?? 0) && size <= (bound(max) ?? Infinity);
  }],
  ['numeric', ({ value, min, max }) => {
    const n = number(value);
    return !Number.isNaN(n) && n >= (bound(min) ?? -Infinity) && n <= (bound(max) ?? Infinity);
  }],
  ['email', ({ value }) => value !== undefined && EMAIL.test(asText(value))],
  ['formatNumber', ({ value, decimals, grouping }) => formatted(value, { ...digits(decimals), useGrouping: grouping !== false })],
  ['formatCurrency', ({ value, currency, decimals, grouping }) => formatted(value, { style: 'currency', currency: asText(currency), ...digits(decimals), useGrouping: grouping !== false })],
  ['formatDate', ({ value, format }) => formatDate(value, asText(format))],
  ['pluralize', (args) => {
    const n = number(args['value']);
    return Number.isNaN(n) ? undefined : asText(args[plurals.select(n)] ?? args['other']);
  }],
  ['and', ({ values }) => Array.isArray(values) && values.every(Boolean)],
  ['or', ({ values }) => Array.isArray(values) && values.some(Boolean)],
  ['not', ({ value }) => !value],
]);

/** The function of a name; undefined if there is none that computes. `formatString` needs the data, and is not here. */
export const functionOf = (name: string): Fn | undefined => CALLS.get(name);
/** The names of all functions, with those that need more than their arguments. */
export const FUNCTIONS: readonly string[] = [...CALLS.keys(), 'formatString', 'openUrl'];
