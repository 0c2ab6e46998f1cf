// A surface as plain text: what there is to read, in order.
import { visible } from '../render/visible.js';
import type { SurfaceModel } from './model.js';
import { asText } from './functions.js';

/** Maximum length of the text, in characters. */
const LONG = 50_000;
/** Maximum length of the text of one property, in characters. */
const PART = 5_000;
/** The properties that are read, in order. */
const READ = ['title', 'label', 'text', 'value', 'code', 'diff', 'old', 'new', 'description', 'url', 'path', 'state', 'kind'] as const;
/** Properties whose items are data. */
const DATA = ['rows', 'entries', 'series', 'options', 'labels'] as const;

/** A surface as text, a component a line. */
export function plain(model: SurfaceModel): string {
  const lines: string[] = [];
  let size = 0;
  for (const { component, place, above } of model.visits()) {
    if (!component) continue;
    const parts: string[] = [];
    const secret = component['variant'] === 'obscured';
    for (const name of READ) if (component[name] !== undefined && !(secret && name === 'value')) parts.push(model.text(component[name], place.scope).slice(0, PART));
    for (const name of DATA) if (component[name] !== undefined) parts.push(asText(model.value(component[name], place.scope)).slice(0, PART));
    const said = parts.filter(Boolean).join(' · ');
    if (!said) continue;
    const line = `${'  '.repeat(above.length)}${component.component}: ${visible(said)}`;
    size += line.length;
    if (size > LONG) { lines.push('…'); break; }
    lines.push(line);
  }
  return lines.join('\n');
}
