// The time since the last event of a session's run.
import { html, nothing, type TemplateResult } from 'lit';
import { plexus } from '../plexus.js';
import { text } from '../text/en.js';
import type { SessionInfo } from '../wire/types.js';

const MINUTE_MS = 60_000;
/** Minutes without an event after which a run is said to make no progress: as the gateway notifies devices that chose nothing else. */
const SILENT_MINUTES = 10;

/** The minutes for which a run has made no progress; 0 if it makes some, or waits for an answer. */
export function silentMinutes(s: Pick<SessionInfo, 'session_id' | 'state' | 'updated_at'>): number {
  if (s.state !== 'running' || !plexus.live.value) return 0;
  const at = plexus.news.value.get(s.session_id) ?? Date.parse(s.updated_at);
  const minutes = Math.floor((plexus.now.value - at) / MINUTE_MS);
  return minutes >= SILENT_MINUTES ? minutes : 0;
}

/** A warning about the silence, beside the session's state. */
export function silence(s: SessionInfo): TemplateResult | typeof nothing {
  const minutes = silentMinutes(s);
  return minutes ? html`<span class="chip warn silent">${text.shell.sessions.silent(minutes)}</span>` : nothing;
}
