// The line changes of an edit before "allow". Pure.

import { diffArrays } from 'diff';

/** Maximum number of computed changes; beyond it all old and all new lines are shown, to keep the page responsive. */
const MAX_EDITS = 400;

export interface Change {
  kind: 'same' | 'add' | 'del';
  text: string;
}

/** The lines of both texts as a diff. */
export function changesOf(before: string, after: string): Change[] {
  const a = before.split('\n');
  const b = after.split('\n');
  const parts = diffArrays(a, b, { maxEditLength: MAX_EDITS });
  if (!parts) return [...a.map((text): Change => ({ kind: 'del', text })), ...b.map((text): Change => ({ kind: 'add', text }))];
  return parts.flatMap((part) => part.value.map((text): Change => ({ kind: part.added ? 'add' : part.removed ? 'del' : 'same', text })));
}
