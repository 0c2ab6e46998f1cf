// The nouns of the wire, as the page reads them: the generated types of clients/typescript, with what of them may be hostile left open.
import type * as wire from '../../../clients/typescript/src/types.js';

export type {
  Answer, Check, Checks, Cursor, Device, Devices, Hit, Hits, Invitation, Item, McpServer, McpServers, Me, Offer, Push, PushSettings, Question,
  Receipt, Request, RequestState, Resolver, Resumable, ResumablePage, Risk, RunInfo, Scope, Skill, SkillError, Skills,
} from '../../../clients/typescript/src/types.js';
export type {
  Begun as Pairing, Pairing as PairingState, Queued as QueuedPrompt, Runtime as RuntimeInfo, Session as SessionInfo,
  Viewer as Looker,
} from '../../../clients/typescript/src/types.js';

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** An event. Everything in `event` may be hostile, and kinds that are not known here may come. */
export interface Envelope extends Omit<wire.EnvelopeOf<wire.Kind>, 'kind' | 'event'> { kind: string; event: any }

/** A page of the past. */
export type Page = Omit<wire.Page, 'events'> & { events: Envelope[] };

export type SnapshotMessage = Omit<wire.Message, 'content'> & { content?: any[] };
export type SnapshotTool = wire.Tool & { [more: string]: any };
/** What stands for a session's past. What agents said in it may be hostile. */
export type Snapshot = Omit<wire.Snapshot, 'messages' | 'tools' | 'latest' | 'surfaces'> & {
  messages: SnapshotMessage[];
  tools: SnapshotTool[];
  latest: Record<string, any>;
  surfaces: any[];
};

/** What the page knows of its connection. */
export type Phase = 'connecting' | 'catching-up' | 'live' | 'reconnecting' | 'offline' | 'stopped' | 'signed-out';

/** A cursor's parts; null if it is none. */
export function parseCursor(cursor: unknown): { epoch: string; pos: number } | null {
  if (typeof cursor !== 'string') return null;
  const cut = cursor.lastIndexOf(':');
  const pos = Number(cursor.slice(cut + 1));
  return cut > 0 && Number.isSafeInteger(pos) ? { epoch: cursor.slice(0, cut), pos } : null;
}
