// The list of shared terminals: read when the page connects, and at intervals while it is visible.
import { signal } from '../lib/signal.js';
import { list } from '../lib/text.js';
import { plexus } from '../plexus.js';
import type { TerminalInfo } from './types.js';

/** Interval at which the list is read again, ms: terminals are started beside the gateway, which reports no changes. */
const AGAIN_MS = 15_000;

export const terminals = signal<readonly TerminalInfo[]>([]);

/** Reads the list. What was known stays if that fails. */
export async function readTerminals(): Promise<void> {
  try { terminals.value = list<TerminalInfo>((await plexus.http('GET', '/v1/terminals'))?.terminals); } catch { /* an older gateway has none */ }
}

setInterval(() => { if (plexus.live.peek() && !document.hidden) void readTerminals(); }, AGAIN_MS);
