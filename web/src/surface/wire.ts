// The gateway's side of surfaces: reading them, and sending what a person did.
import { plexus, why } from '../plexus.js';
import { list } from '../lib/text.js';
import { surfaceOf } from './fold.js';
import type { Action, Surface } from './types.js';

/** The surfaces of a session. */
export async function readSurfaces(session_id: string): Promise<Surface[]> {
  const got = await plexus.http<{ surfaces?: unknown }>('GET', `/v1/sessions/${encodeURIComponent(session_id)}/surfaces`);
  return list<Surface>(got?.surfaces).filter((one) => surfaceOf(one) !== null && Number.isSafeInteger(one.rev));
}

/** The pinned surfaces of all sessions, without what is on them. */
export async function readPinned(): Promise<unknown> {
  return (await plexus.http<{ surfaces?: unknown }>('GET', '/v1/surfaces'))?.surfaces;
}

/** Sends what a person did. Throws an error whose message is for people. */
export async function sendAction(session_id: string, action: Action): Promise<{ rev: number }> {
  try {
    return await plexus.call<{ accepted: true; rev: number }>('ui.surface.action', { session_id, ...action });
  } catch (error) {
    throw new Error(error instanceof Error && error.message ? error.message : why(error));
  }
}
