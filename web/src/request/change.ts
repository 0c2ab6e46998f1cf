// What an edit before "allow" changes: lines that go and lines that come. Pure.

import { diffArrays } from 'diff';

/** How many changed lines are looked for before the rest is shown as all old, all new; more would hold the page up. */
const MAX_EDITS = 400;

export interface Change {
  kind: 'same' | 'add' | 'del';
  text: string;
}

/** The lines of both texts, told apart by what became of them. */
export function changesOf(before: string, after: string): Change[] {
  const a = before.split('\n');
  const b = after.split('\n');
  const parts = diffArrays(a, b, { maxEditLength: MAX_EDITS });
  if (!parts) return [...a.map((text): Change => ({ kind: 'del', text })), ...b.map((text): Change => ({ kind: 'add', text }))];
  return parts.flatMap((part) => part.value.map((text): Change => ({ kind: part.added ? 'add' : part.removed ? 'del' : 'same', text })));
}
