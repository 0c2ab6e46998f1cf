// A view of a unified diff: its lines with their numbers, files and places as headings.
import { text as words } from '../text/en.js';
import { h } from '../render/dom.js';
import { Lines, LINE_SHOWN } from '../render/lines.js';
import { cut, visible } from '../render/visible.js';

type Kind = 'add' | 'del' | 'same' | 'hunk' | 'head';
export interface DiffLine { kind: Kind; text: string; a: number; b: number }

const HUNK = /^@@+ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

/** The lines of a unified diff. Text that is no diff comes as unchanged lines. */
export function unifiedLines(text: string): DiffLine[] {
  const all = text.split('\n');
  if (all.at(-1) === '') all.pop();
  const out: DiffLine[] = [];
  let a = 0;
  let b = 0;
  // Lines of the hunk that are still to come: a removed line may begin with `--`.
  let gone = 0;
  let come = 0;
  for (const line of all) {
    const hunk = gone <= 0 && come <= 0 ? HUNK.exec(line) : null;
    if (hunk) {
      a = Number(hunk[1]);
      b = Number(hunk[3]);
      gone = Number(hunk[2] ?? 1);
      come = Number(hunk[4] ?? 1);
      out.push({ kind: 'hunk', text: line, a: 0, b: 0 });
    } else if (line.startsWith('\\')) out.push({ kind: 'head', text: line, a: 0, b: 0 });
    else if (gone <= 0 && come <= 0 && /^(?:diff |index |--- |\+\+\+ |old mode|new mode|new file|deleted file|similarity|rename |copy |Binary )/.test(line)) out.push({ kind: 'head', text: line, a: 0, b: 0 });
    else if (line.startsWith('+')) { out.push({ kind: 'add', text: line.slice(1), a: 0, b: b++ }); come--; }
    else if (line.startsWith('-')) { out.push({ kind: 'del', text: line.slice(1), a: a++, b: 0 }); gone--; }
    else { out.push({ kind: 'same', text: line.replace(/^ /, ''), a: a++, b: b++ }); gone--; come--; }
  }
  return out;
}

/** A view of a unified diff. `named`: its only file is named beside it, so the lines that name it are left out. */
export function unifiedView(text: string, label: string, named: boolean): HTMLElement {
  const all = unifiedLines(text);
  const begin = all.findIndex((row) => row.kind !== 'head');
  const single = named && !all.slice(Math.max(0, begin)).some((row) => row.kind === 'head' && row.text.startsWith('--- '));
  const rows = single ? all.slice(Math.max(0, begin)) : all;
  const added = rows.filter((row) => row.kind === 'add').length;
  const removed = rows.filter((row) => row.kind === 'del').length;
  const lines = new Lines(label, () => rows.length, (n) => draw(rows[n] as DiffLine));
  return h('div', 'diff', h('div', 'diff-tools', h('span', 'diff-status', words.session.changed(added, removed))), lines.el);
}

function draw({ kind, text, a, b }: DiffLine): HTMLElement {
  const shown = visible(cut(text, LINE_SHOWN)) + (text.length > LINE_SHOWN ? ` ${words.session.restOfLine(text.length - LINE_SHOWN)}` : '');
  if (kind === 'hunk' || kind === 'head') return h('div', `line ${kind}`, shown || ' ');
  const number = (n: number) => h('span', 'no', n > 0 ? String(n) : '');
  return h('div', `line ${kind}`, number(a), number(b), h('span', 'sign', kind === 'add' ? '+' : kind === 'del' ? '−' : ' '), shown);
}
