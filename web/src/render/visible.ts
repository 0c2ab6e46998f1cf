// Makes invisible and reordering characters visible, as the gateway's display form does.

/** Letters and marks that are invisible in spite of their category, and variation selectors. */
const BLANK = '\\u115f\\u1160\\u3164\\uffa0\\u034f\\u2800\\ufe00-\\ufe0f\\u17b4\\u17b5\\u{e0100}-\\u{e01ef}';
const DECEPTIVE = new RegExp(`(?! )[\\p{Cc}\\p{Cf}\\p{Zs}\\p{Zl}\\p{Zp}\\p{Co}\\p{Cn}\\p{Cs}${BLANK}]`, 'gu');
/** Overrides of the reading order, and controls. */
const OVERRIDES = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a\u202b\u202d\u202e\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;
/** For program output: line breaks, joiners and variation selectors (emoji) are kept. */
const OUTPUT = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

const escaped = (c: string) => `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`;

/** For code, commands, paths and labels: every deceptive character as `\u{..}`; line breaks and tabs stay. */
export function visible(text: string): string {
  return text.replace(DECEPTIVE, (c) => (c === '\n' || c === '\t' ? c : escaped(c)));
}

/** Makes a text visible like `visible`, on one line. */
export function oneLine(text: string): string {
  return visible(text.replace(/[\n\t]+/g, ' ')).trim();
}

/** Makes a program's output visible. */
export function visibleOutput(text: string): string {
  return text.replace(OUTPUT, (c) => (c === '\n' || c === '\t' ? c : escaped(c)));
}

/** Makes running text readable: keeps scripts, emoji and isolates, and escapes overrides of the reading order. */
export function readable(text: string): string {
  return text.replace(OVERRIDES, escaped);
}

/** Cuts `text` to at most `most` UTF-16 units, never within a character. */
export function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  const high = text.charCodeAt(most - 1);
  return text.slice(0, high >= 0xd800 && high < 0xdc00 ? most - 1 : most);
}
