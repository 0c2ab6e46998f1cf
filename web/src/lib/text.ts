/** Characters that are invisible or reorder the text around them. */
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu;
const HIDDEN_IN_PROSE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202d\u202e]/g;

/** Escapes invisible and reordering characters as `\u{..}`: for one-line fields and code. */
export const visible = (text: string): string => text.replace(HIDDEN, (c) => `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`);
/** For running text: keeps line breaks and isolates, escapes overrides and invisible characters. */
export const readable = (text: string): string => text.replace(HIDDEN_IN_PROSE, (c) => visible(c));
/** Any value as text. */
export const str = (v: unknown): string =>
  typeof v === 'string' ? v : v === null || v === undefined ? '' : typeof v === 'object' ? JSON.stringify(v, null, 2) : String(v);
/** Makes any value visible like `visible`, on one line. */
export const oneLine = (v: unknown): string => visible(str(v).replace(/[\n\t]+/g, ' ')).trim();
/** Any value as a list. */
export const list = <T = any>(v: unknown): T[] => (Array.isArray(v) ? (v as T[]) : []);
