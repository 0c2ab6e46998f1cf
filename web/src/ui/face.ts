// The mark of an agent: its first letter on a colour of its own. The same agent has the same mark on every page.

import { css, html, type TemplateResult } from 'lit';
import { oneLine } from '../lib/text.js';

/** Colours of well-known agents, by the beginning of the runtime's name. */
const KNOWN: readonly (readonly [string, number])[] = [['gemini', 0], ['claude', 1], ['opencode', 2], ['codex', 3], ['copilot', 4], ['qwen', 5], ['grok', 6], ['cursor', 7]];
const HUES = 8;

function hueOf(id: string): number {
  const known = KNOWN.find(([name]) => id.startsWith(name));
  if (known) return known[1];
  let sum = 0;
  for (const char of id) sum = (sum * 31 + (char.codePointAt(0) ?? 0)) % 65_521;
  return sum % HUES;
}

/** The mark of a runtime. Screen readers hear its name. */
export function face(runtime_id: string): TemplateResult {
  const name = oneLine(runtime_id);
  const letter = /[\p{L}\p{N}]/u.exec(name)?.[0].toUpperCase() ?? '?';
  return html`<span class="face" role="img" aria-label=${name} title=${name} data-hue=${hueOf(runtime_id.toLowerCase())}>${letter}</span>`;
}

/** White on each colour has a contrast of at least 4.5:1, in both themes. */
export const faceStyles = css`
  .face { inline-size: 20px; block-size: 20px; border-radius: 6px; display: inline-grid; place-items: center; flex: none; color: #fff; font: 700 0.6875rem/1 var(--sans); user-select: none; background: #5b6270; }
  .face[data-hue='0'] { background: #2f6ae0; }
  .face[data-hue='1'] { background: #b4532f; }
  .face[data-hue='3'] { background: #0b7a5c; }
  .face[data-hue='4'] { background: #7c3aed; }
  .face[data-hue='5'] { background: #0e7490; }
  .face[data-hue='6'] { background: #be2a6b; }
  .face[data-hue='7'] { background: #8a5a00; }
`;
