// The wire types of the page: the generated types of clients/typescript, with untrusted parts typed as `any`.
import type * as wire from '../../../clients/typescript/src/types.js';

export type {
  AgentLink, Agents, Answer, Ceiling, CeilingsView, ChangeDiff, ChangedFile, ChangesView, Check, Checks, Cursor, Device, Devices, Files, Folders, Hit, Hits, Invitation, Item, KnownAgent, LinkAction, McpServer, McpServers, Me, Offer, Push, PushSettings, Question,
  Receipt, Request, RequestState, Resolver, Resumable, ResumablePage, Risk, RunInfo, Scope, Skill, SkillError, Skills, Spending, TerminalInfo, Money, PublicAccess, UsageRow, UsageSums,
} from '../../../clients/typescript/src/types.js';
export type {
  Begun as Pairing, Pairing as PairingState, Queued as QueuedPrompt, Runtime as RuntimeInfo, Session as SessionInfo,
  Viewer,
} from '../../../clients/typescript/src/types.js';

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

export type Kind = wire.Kind;
const KNOWN: Record<Kind, true> = {
  user_message_chunk: true, agent_message_chunk: true, agent_thought_chunk: true, tool_call: true,
  tool_call_update: true, plan: true, available_commands_update: true, current_mode_update: true,
  config_option_update: true, session_info_update: true, usage_update: true, run_started: true, run_status: true,
  run_ended: true, request_opened: true, request_resolved: true, surface_updated: true, hook: true,
  runtime_status: true, client_joined: true, client_left: true, error: true, raw: true, request_updated: true,
  client_served: true,
};
/** All kinds of events; the compiler checks it against the generated list. */
export const KINDS = Object.keys(KNOWN) as Kind[];
/** Whether this page knows the kind; a newer gateway may send others. */
export const isKind = (kind: string): kind is Kind => Object.hasOwn(KNOWN, kind);

/** An event. `event` is untrusted, and its kind may be unknown to this page. */
export interface Envelope extends Omit<wire.EnvelopeOf<wire.Kind>, 'kind' | 'event'> { kind: string; event: any }

/** A page of the past. */
export type Page = Omit<wire.Page, 'events'> & { events: Envelope[] };

export type SnapshotMessage = Omit<wire.Message, 'content'> & { content?: any[] };
export type SnapshotTool = wire.Tool & { [more: string]: any };
/** A session's snapshot. The agent's parts are untrusted. */
export type Snapshot = Omit<wire.Snapshot, 'messages' | 'tools' | 'latest' | 'surfaces'> & {
  messages: SnapshotMessage[];
  tools: SnapshotTool[];
  latest: Record<string, any>;
  surfaces: any[];
};

/** The phase of the connection. */
export type Phase = 'connecting' | 'catching-up' | 'live' | 'reconnecting' | 'offline' | 'stopped' | 'signed-out';

/** The parts of a cursor; null if it is malformed. */
export function parseCursor(cursor: unknown): { epoch: string; pos: number } | null {
  if (typeof cursor !== 'string') return null;
  const cut = cursor.lastIndexOf(':');
  const pos = Number(cursor.slice(cut + 1));
  return cut > 0 && Number.isSafeInteger(pos) ? { epoch: cursor.slice(0, cut), pos } : null;
}
