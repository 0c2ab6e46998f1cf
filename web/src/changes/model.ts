// The state of the page of a session's changes: the list, the rows of a file, and the comments that are not sent yet. No document.
import { unifiedLines } from '../surface/unified.js';

export type Side = 'old' | 'new';
/** One line of a hunk. `mate`: the line that it replaces or is replaced by, if its words can be compared. */
export interface Row { kind: 'same' | 'add' | 'del'; a: number; b: number; text: string; mate?: string }
export interface Hunk { index: number; heading: string; rows: Row[] }
/** A comment that was not sent yet. Its lines are of one side of one version of the file. */
export interface Comment { id: string; path: string; side: Side; line: number; end: number; text: string; digest: string }

/** The hunks of a unified diff of one file. */
export function hunksOf(diff: string): Hunk[] {
  const hunks: Hunk[] = [];
  for (const line of unifiedLines(diff)) {
    if (line.kind === 'hunk') hunks.push({ index: hunks.length, heading: line.text, rows: [] });
    else if (line.kind !== 'head') hunks.at(-1)?.rows.push({ kind: line.kind, a: line.a, b: line.b, text: line.text });
  }
  for (const { rows } of hunks) pair(rows);
  return hunks;
}

/** Pairs removed lines with as many added ones after them: each replaces another. */
function pair(rows: Row[]): void {
  for (let from = 0; from < rows.length;) {
    let added = from;
    while (rows[added]?.kind === 'del') added++;
    let end = added;
    while (rows[end]?.kind === 'add') end++;
    if (added - from === end - added) {
      for (let n = 0; n < added - from; n++) {
        const [gone, come] = [rows[from + n] as Row, rows[added + n] as Row];
        gone.mate = come.text;
        come.mate = gone.text;
      }
    }
    from = Math.max(end, from + 1);
  }
}

/** The rows side by side: old and new. */
export function sides(rows: readonly Row[]): [Row | null, Row | null][] {
  const out: [Row | null, Row | null][] = [];
  for (let at = 0; at < rows.length;) {
    const row = rows[at] as Row;
    if (row.kind === 'same') { out.push([row, row]); at++; continue; }
    const gone: Row[] = [];
    const come: Row[] = [];
    while (rows[at]?.kind === 'del') gone.push(rows[at++] as Row);
    while (rows[at]?.kind === 'add') come.push(rows[at++] as Row);
    for (let n = 0; n < Math.max(gone.length, come.length); n++) out.push([gone[n] ?? null, come[n] ?? null]);
  }
  return out;
}

/** The place at which a row can be commented: the new side, or for a removed line the old one. */
export const placeOf = (row: Row): { side: Side; line: number } => (row.kind === 'del' ? { side: 'old', line: row.a } : { side: 'new', line: row.b });

// --- data stored on this device

/** Maximum number of sessions with stored comments and marks; the oldest are dropped. */
const SESSIONS_MAX = 50;
/** Maximum number of comments of one review, and their maximum length; the gateway's own limits. */
export const COMMENTS_MAX = 200;
export const COMMENT_CHARS = 10_000;
/** Maximum number of marks of one session. */
const VIEWED_MAX = 3_000;
const COMMENTS_KEY = 'plexus.review';
const VIEWED_KEY = 'plexus.viewed';

type Kept<T> = [session: string, value: T][];
function read<T>(key: string): Kept<T> {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(key) ?? '[]');
    return Array.isArray(value) ? value.filter((one): one is [string, T] => Array.isArray(one) && typeof one[0] === 'string') : [];
  } catch { return []; }
}
function write<T>(key: string, session: string, value: T | null): void {
  const others = read<T>(key).filter(([id]) => id !== session).slice(0, SESSIONS_MAX - 1);
  try { localStorage.setItem(key, JSON.stringify(value === null ? others : [[session, value], ...others])); } catch { /* storage is off: they last as long as the page */ }
}

const isComment = (one: unknown): one is Comment => {
  const c = one as Comment | null;
  return typeof c === 'object' && c !== null && [c.id, c.path, c.text, c.digest].every((part) => typeof part === 'string') && [c.line, c.end].every(Number.isSafeInteger) && (c.side === 'old' || c.side === 'new');
};
export function keptComments(session: string): Comment[] {
  const found: unknown = read<Comment[]>(COMMENTS_KEY).find(([id]) => id === session)?.[1];
  return Array.isArray(found) ? found.filter(isComment).slice(0, COMMENTS_MAX) : [];
}
export const keepComments = (session: string, all: readonly Comment[]): void => write(COMMENTS_KEY, session, all.length ? all : null);

/** The versions of files that were marked as viewed: by path, the digest. */
export function keptViewed(session: string): Map<string, string> {
  const found: unknown = read<[string, string][]>(VIEWED_KEY).find(([id]) => id === session)?.[1];
  return new Map(Array.isArray(found) ? found.filter((one): one is [string, string] => Array.isArray(one) && typeof one[0] === 'string' && typeof one[1] === 'string') : []);
}
export const keepViewed = (session: string, all: ReadonlyMap<string, string>): void => write(VIEWED_KEY, session, all.size ? [...all].slice(-VIEWED_MAX) : null);

const WIDE_KEY = 'plexus.changes.sides';
export function sideBySide(): boolean {
  try { return localStorage.getItem(WIDE_KEY) === '1'; } catch { return false; }
}
export function setSideBySide(on: boolean): void {
  try { if (on) localStorage.setItem(WIDE_KEY, '1'); else localStorage.removeItem(WIDE_KEY); } catch { /* storage is off: as long as the page */ }
}

/** The review that the gateway turns into one prompt. */
export function reviewOf(comments: readonly Comment[], text: string): { comments: { path: string; side: Side; line: number; end_line?: number; text: string }[]; text?: string } {
  const sent = comments.map(({ path, side, line, end, text: words }) => ({ path, side, line, ...(end > line ? { end_line: end } : {}), text: words }));
  return { comments: sent, ...(text.trim() ? { text: text.trim() } : {}) };
}
