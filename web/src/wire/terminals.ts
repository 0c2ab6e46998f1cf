// Which shared terminals there are: asked when the page connects, and now and then while it is looked at.
import { signal } from '../lib/signal.js';
import { list } from '../lib/text.js';
import { plexus } from '../plexus.js';
import type { TerminalInfo } from './types.js';

/** How often the list is read again, ms: terminals are started beside the gateway, which tells nobody. */
const AGAIN_MS = 15_000;

export const terminals = signal<readonly TerminalInfo[]>([]);

/** Reads the list. What was known stays if that fails. */
export async function readTerminals(): Promise<void> {
  try { terminals.value = list<TerminalInfo>((await plexus.http('GET', '/v1/terminals'))?.terminals); } catch { /* an older gateway has none */ }
}

setInterval(() => { if (plexus.live.peek() && !document.hidden) void readTerminals(); }, AGAIN_MS);
