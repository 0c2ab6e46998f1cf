// The part of "New session" that other pages need, without its form, which is loaded when it is opened.
import { plexus } from '../plexus.js';
import type { RuntimeInfo } from '../wire/types.js';

/** Opens the form as a dialog. */
export const newSession = (): void => { dispatchEvent(new CustomEvent('plexus-new-session')); };

/** Whether sessions of the runtime begin in their own terminals only. */
const begunThere = (r: RuntimeInfo): boolean => 'endpoint' in r.connect && r.connect.endpoint.startsWith('link:');
/** The runtimes that take new sessions, or soon will; last the one of Codex's terminals. */
export const startable = (): RuntimeInfo[] => {
  const order = (r: RuntimeInfo) => Number(r.state !== 'ready') + 2 * Number(r.runtime_id === 'codex-terminal');
  return [...plexus.runtimes.value.values()].filter((r) => !begunThere(r) && r.state !== 'exited').sort((a, b) => order(a) - order(b) || (a.runtime_id < b.runtime_id ? -1 : 1));
};
/** Whether a session needs an agent to be started first, and this device may start it. */
export const noAgents = (): boolean => plexus.may('admin') && plexus.may('prompt') && startable().length === 0;
