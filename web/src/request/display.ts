// Cuts the gateway's `display` into lines to draw. Pure. Nothing is left out or changed: the pieces joined are the display.

/** A display with more lines or characters than this is long: it must be opened and read to its end before "allow" works. */
const LONG_LINES = 16;
const LONG_CHARS = 1_600;
/** The part of a long display that is shown before it is opened. */
const PREVIEW_LINES = 8;
const PREVIEW_CHARS = 800;
/** Maximum length of a drawn line, in characters; the rest is drawn as marked continuation lines, so that one line cannot freeze the
 *  page. */
const PIECE_CHARS = 2_000;
/** Lines of one block; the browser skips drawing blocks that are out of sight. */
const BLOCK_LINES = 100;

export type LineKind = 'plain' | 'head' | 'hunk' | 'same' | 'add' | 'del' | 'where';

/** A run of text; `mark` is one character that the gateway made visible. */
export interface Part {
  text: string;
  mark: boolean;
}

/** One drawn line. */
export interface Line {
  kind: LineKind;
  parts: Part[];
  /** Whether it continues the line before, without a line break. */
  goesOn: boolean;
  /** Whether a line break follows. */
  ends: boolean;
}

export interface Size {
  lines: number;
  chars: number;
  long: boolean;
}

export function sizeOf(display: string): Size {
  let lines = 1;
  for (let at = display.indexOf('\n'); at >= 0; at = display.indexOf('\n', at + 1)) lines += 1;
  return { lines, chars: display.length, long: lines > LONG_LINES || display.length > LONG_CHARS };
}

/** The part of a long display that is shown before it is opened. */
export function previewOf(display: string): string {
  const lines = display.split('\n', PREVIEW_LINES).join('\n');
  return lines.length > PREVIEW_CHARS ? lines.slice(0, PREVIEW_CHARS) : lines;
}

/** Whether all lines look like the gateway's rendering of edits: a header, then diff hunks. */
function isEdits(lines: string[]): boolean {
  if (!/^(edit|write) ./.test(lines[0] ?? '')) return false;
  return lines.length > 1 && lines.slice(1).every((line) => /^([-+ \\]|@@ |edit .|write .)/.test(line));
}

/** The kind of a line of an edit, by its first character. */
function editKind(line: string): LineKind {
  switch (line[0]) {
    case '+': return 'add';
    case '-': return 'del';
    case ' ': return 'same';
    case '@': return 'hunk';
    case '\\': return 'where';
    default: return 'head';
  }
}

const MARK = /\\u\{[0-9a-f]{1,6}\}/g;

/** Splits a text at the characters that the gateway escaped. */
export function partsOf(text: string): Part[] {
  const parts: Part[] = [];
  let from = 0;
  for (const found of text.matchAll(MARK)) {
    if (found.index > from) parts.push({ text: text.slice(from, found.index), mark: false });
    parts.push({ text: found[0], mark: true });
    from = found.index + found[0].length;
  }
  if (from < text.length || parts.length === 0) parts.push({ text: text.slice(from), mark: false });
  return parts;
}

/** A position to cut at, not within a surrogate pair or one of the gateway's escapes. */
function cutAt(text: string, from: number): number {
  let end = Math.min(text.length, from + PIECE_CHARS);
  if (end === text.length) return end;
  const open = text.lastIndexOf('\\u{', end);
  if (open > from && open > end - 10 && !text.slice(open, end).includes('}')) end = open;
  const code = text.charCodeAt(end - 1);
  if (code >= 0xd800 && code <= 0xdbff) end -= 1;
  return end;
}

/** The lines of a display, in blocks. `edit`: whether it is an edit; if unknown, the lines are checked. Only colours depend on it. */
export function blocksOf(display: string, edit?: boolean): Line[][] {
  const lines = display.split('\n');
  const edits = edit ?? isEdits(lines);
  const blocks: Line[][] = [[]];
  lines.forEach((line, n) => {
    let kind: LineKind = 'plain';
    if (edits) kind = editKind(line);
    else if (n > 0 && n === lines.length - 1 && line.startsWith('in ')) kind = 'where';
    let from = 0;
    do {
      const end = cutAt(line, from);
      let block = blocks[blocks.length - 1]!;
      if (block.length >= BLOCK_LINES) blocks.push((block = []));
      block.push({ kind, parts: partsOf(line.slice(from, end)), goesOn: from > 0, ends: end === line.length && n < lines.length - 1 });
      from = end;
    } while (from < line.length);
  });
  return blocks;
}
