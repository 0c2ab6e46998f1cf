// A diff view of two texts: inline, or side by side where there is room; unchanged lines are folded.

import { diffWordsWithSpace } from 'diff';
import { text as words } from '../text/en.js';
import { button, h } from './dom.js';
import { compared } from './compare.js';
import { Lines, LINE_SHOWN } from './lines.js';
import { diffOps } from './off.js';
import { cut, visible } from './visible.js';

/** Unchanged lines kept around a change. */
const CONTEXT = 3;
/** Fewer unchanged lines than this are not worth folding. */
const FOLD_LEAST = 8;
/** The longest line whose words are compared, in characters. */
const WORDS_MAX = 400;
/** Cached diffs, so that scrolling back does not compute them again. */
const REMEMBERED = 50;
/** Texts of at most this many characters and lines, together, are compared before anything is drawn, so that nothing moves afterwards. */
const AT_ONCE = { chars: 8_000, lines: 400 };
/** Minimum width for two columns, px. */
const SIDES_PX = 720;

type Row =
  | { kind: 'same'; a: number; b: number }
  | { kind: 'del'; a: number; mate: number }
  | { kind: 'add'; b: number; mate: number }
  | { kind: 'pair'; a: number; b: number }
  | { kind: 'fold'; a: number; b: number; count: number };

/** Numbers of added and removed lines. */
export interface Counts { added: number; removed: number }

const split = (text: string): string[] => {
  const all = text.split('\n');
  if (all.at(-1) === '') all.pop();
  return all;
};

const known = new Map<string, Promise<number[] | null>>();
function ops(a: string, b: string): Promise<number[] | null> {
  if (a.length + b.length > 200_000) return diffOps(a, b);
  const key = `${a.length}:${a}${b}`;
  const had = known.get(key);
  if (had) return had;
  const made = diffOps(a, b);
  known.set(key, made);
  if (known.size > REMEMBERED) known.delete(known.keys().next().value as string);
  return made;
}

/** A view of the changes from `oldText` to `newText`, which begin after `before` lines. `counted` is called with the numbers of changed lines. */
export function diffView(oldText: string, newText: string, label: string, counted?: (counts: Counts) => void, before = 0): HTMLElement {
  const left = split(oldText);
  const right = split(newText);
  let found: number[] = [];
  const opened = new Set<number>();
  let rows: Row[] = [];
  let sides = false;
  const longest = Math.min(400, Math.max(20, ...sample(left), ...sample(right)));
  const lines = new Lines(label, () => rows.length, (n) => draw(rows[n] as Row));
  const toggle = button(words.session.sideBySide, () => { sides = !sides; toggle.textContent = sides ? words.session.inline : words.session.sideBySide; build(); }, 'quiet');
  // Before its room is known: a button that went afterwards would move what is below.
  toggle.hidden = innerWidth < SIDES_PX;
  const status = h('span', 'diff-status', words.session.comparing);
  const box = h('div', 'diff', h('div', 'diff-tools', status, toggle), lines.el);
  box.style.setProperty('--longest', `${longest + 8}ch`);
  const room = new ResizeObserver(() => {
    if (!box.isConnected) return;
    toggle.hidden = box.clientWidth < SIDES_PX;
    if (toggle.hidden && sides) toggle.click();
  });
  room.observe(box);
  const show = (got: number[] | null): void => {
    found = got ?? [1, left.length, 2, right.length];
    const counts = { added: 0, removed: 0 };
    for (let i = 0; i < found.length; i += 2) {
      if (found[i] === 1) counts.removed += found[i + 1] as number;
      if (found[i] === 2) counts.added += found[i + 1] as number;
    }
    status.textContent = counts.added + counts.removed ? words.session.changed(counts.added, counts.removed) : words.session.unchanged;
    counted?.(counts);
    build();
  };
  if (oldText.length + newText.length <= AT_ONCE.chars && left.length + right.length <= AT_ONCE.lines) show(compared(oldText, newText));
  else void ops(oldText, newText).then(show);

  function build(): void {
    rows = [];
    let a = 0;
    let b = 0;
    for (let i = 0; i < found.length; i += 2) {
      const kind = found[i] as number;
      const count = found[i + 1] as number;
      if (kind === 0) {
        const head = i === 0 ? 0 : CONTEXT;
        const tail = i + 2 >= found.length ? 0 : CONTEXT;
        const hidden = count - head - tail;
        if (hidden >= FOLD_LEAST && !opened.has(a)) {
          for (let n = 0; n < head; n++) rows.push({ kind: 'same', a: a + n, b: b + n });
          rows.push({ kind: 'fold', a, b, count: hidden });
          for (let n = count - tail; n < count; n++) rows.push({ kind: 'same', a: a + n, b: b + n });
        } else for (let n = 0; n < count; n++) rows.push({ kind: 'same', a: a + n, b: b + n });
        a += count;
        b += count;
        continue;
      }
      // Adjacent removed and added lines: the n-th of one is compared with the n-th of the other.
      let gone = kind === 1 ? count : 0;
      let come = kind === 2 ? count : 0;
      const next = found[i + 2];
      if (next !== undefined && next !== 0 && next !== kind) {
        if (next === 1) gone = found[i + 3] as number; else come = found[i + 3] as number;
        i += 2;
      }
      if (sides) {
        for (let n = 0; n < Math.max(gone, come); n++) rows.push({ kind: 'pair', a: n < gone ? a + n : -1, b: n < come ? b + n : -1 });
      } else {
        const mates = gone === come;
        for (let n = 0; n < gone; n++) rows.push({ kind: 'del', a: a + n, mate: mates ? b + n : -1 });
        for (let n = 0; n < come; n++) rows.push({ kind: 'add', b: b + n, mate: mates ? a + n : -1 });
      }
      a += gone;
      b += come;
    }
    box.classList.toggle('sides', sides);
    lines.changed();
  }

  function draw(row: Row): HTMLElement {
    switch (row.kind) {
      case 'fold':
        return h('div', 'line fold', button(words.session.hiddenLines(row.count), () => { opened.add(row.a); build(); }, 'quiet'));
      case 'same':
        return sides
          ? h('div', 'line', half(before + row.a + 1, '', [left[row.a] ?? '']), half(before + row.b + 1, '', [right[row.b] ?? '']))
          : h('div', 'line', number(before + row.a + 1), number(before + row.b + 1), h('span', 'sign', ' '), plain(left[row.a] ?? ''));
      case 'pair': {
        const [old, now] = row.a >= 0 && row.b >= 0 ? compare(left[row.a] ?? '', right[row.b] ?? '') : [[left[row.a] ?? ''], [right[row.b] ?? '']];
        return h('div', 'line', half(row.a >= 0 ? before + row.a + 1 : 0, row.a >= 0 ? 'del' : 'none', old), half(row.b >= 0 ? before + row.b + 1 : 0, row.b >= 0 ? 'add' : 'none', now));
      }
      case 'del': {
        const text = left[row.a] ?? '';
        return h('div', 'line del', number(before + row.a + 1), number(0), h('span', 'sign', '−'), ...(row.mate >= 0 ? compare(text, right[row.mate] ?? '')[0] : [plain(text)]));
      }
      case 'add': {
        const text = right[row.b] ?? '';
        return h('div', 'line add', number(0), number(before + row.b + 1), h('span', 'sign', '+'), ...(row.mate >= 0 ? compare(left[row.mate] ?? '', text)[1] : [plain(text)]));
      }
    }
  }

  function half(n: number, kind: string, text: (Node | string)[]): HTMLElement {
    const shown = text.map((part) => (typeof part === 'string' ? plain(part) : part));
    return h('span', `half ${kind}`, number(kind === 'none' ? 0 : n), h('span', 'sign', kind === 'del' ? '−' : kind === 'add' ? '+' : ' '), ...(kind === 'none' ? [] : shown));
  }
  return box;
}

const sample = (lines: string[]): number[] => [lines.slice(0, 2_000).reduce((most, line) => Math.max(most, line.length), 0)];
const number = (n: number) => h('span', 'no', n > 0 ? String(n) : '');
const plain = (text: string): Node => {
  const shown = visible(cut(text, LINE_SHOWN));
  return document.createTextNode(text.length > LINE_SHOWN ? `${shown} ${words.session.restOfLine(text.length - LINE_SHOWN)}` : shown);
};

/** Two lines with the different words marked; without marks if they have little in common or are long. */
export function compare(a: string, b: string): [Node[], Node[]] {
  if (a.length > WORDS_MAX || b.length > WORDS_MAX) return [[plain(a)], [plain(b)]];
  const left: Node[] = [];
  const right: Node[] = [];
  let same = 0;
  for (const part of diffWordsWithSpace(a, b)) {
    const text = visible(part.value);
    if (part.added) right.push(h('mark', '', text));
    else if (part.removed) left.push(h('mark', '', text));
    else { left.push(document.createTextNode(text)); right.push(document.createTextNode(text)); same += part.value.trim().length; }
  }
  // Lines with little in common are shown without marks.
  if (same * 4 < Math.max(a.trim().length, b.trim().length)) return [[plain(a)], [plain(b)]];
  return [left, right];
}
