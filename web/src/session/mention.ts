// `@` in a prompt: the file that is being named, and the format of its path. Pure.

export interface Mention {
  /** The index of the `@`. */
  from: number;
  /** The end of the word, which is the caret. */
  to: number;
  /** The text after the `@`, without the backslashes before blanks. */
  query: string;
}

/** Maximum length of a word that counts as the name of a file, in characters. */
const QUERY_MAX = 200;

/** The mention that ends at the caret; null if there is none. An `@` within a word (an address) is none. */
export function mentionAt(text: string, caret: number): Mention | null {
  const before = text.slice(Math.max(0, caret - QUERY_MAX - 1), caret);
  const found = /(?:^|[\s([{"'`])@((?:\\.|[^\s\\@])*)$/.exec(before);
  if (!found) return null;
  const typed = found[1] ?? '';
  return { from: caret - typed.length - 1, to: caret, query: typed.replace(/\\(.)/g, '$1') };
}

/** The text with the mention replaced by a path, and where the caret is then. Blanks are escaped as in a shell. `shown` is the path
 *  with control characters made visible: those never become part of a prompt. */
export function mentioned(text: string, at: Mention, shown: string): { text: string; caret: number } {
  const words = `@${shown.replace(/([\s\\])/g, '\\$1')}`;
  const after = text.slice(at.to);
  const space = /^\s/.test(after) ? '' : ' ';
  return { text: text.slice(0, at.from) + words + space + after, caret: at.from + words.length + 1 };
}
