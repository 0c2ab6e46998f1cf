// The editor on this device that opens what sessions work on, by the address that it registered with the system.
import { signal } from './signal.js';

export const EDITORS = ['none', 'vscode', 'zed', 'cursor'] as const;
export type Editor = (typeof EDITORS)[number];
const KEY = 'plexus.editor';

const known = (value: string | null): Editor => EDITORS.find((one) => one === value) ?? 'none';
function stored(): Editor {
  try { return known(localStorage.getItem(KEY)); } catch { return 'none'; }
}

export const editor = signal<Editor>(stored());

export function setEditor(value: string): void {
  const one = known(value);
  editor.value = one;
  try { if (one === 'none') localStorage.removeItem(KEY); else localStorage.setItem(KEY, one); } catch { /* storage is off: it lasts as long as the page */ }
}

/** The address that opens an absolute path in the editor; empty without an editor, or for another path. */
export function editorHref(path: string, one: Editor = editor.value): string {
  if (one === 'none' || !path.startsWith('/')) return '';
  return `${one}://file${path.split('/').map(encodeURIComponent).join('/')}`;
}
