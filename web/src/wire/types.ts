// One file: the nouns of the wire, as the gateway says them (crates/protocol/src, docs/protocol.md). Members that we do not know may always come.

export type Scope = 'watch' | 'prompt' | 'approve' | 'admin';
export type Risk = 'low' | 'elevated' | 'danger';
/** An RFC 3339 time. */
export type Time = string;
/** A place in the log, `<epoch>:<position>`; opaque but for `parseCursor`. */
export type Cursor = string;
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** Who did something. `gateway` and `elsewhere` are no devices. */
export interface Resolver { device_id: string; name: string }

export type SessionState = 'idle' | 'running' | 'waiting' | 'exited';
export type RunStatus = 'queued' | 'running' | 'awaiting_ui' | 'completed' | 'error' | 'cancelled';

export interface QueuedPrompt { run_id: string; text: string; by: Resolver }

export interface SessionInfo {
  session_id: string;
  runtime_id: string;
  dialect: string;
  native_id?: string | null;
  title: string | null;
  cwd: string;
  state: SessionState;
  run_id?: string;
  open_requests: number;
  requests?: string[];
  queue?: QueuedPrompt[];
  created_at: Time;
  prompted_at?: Time;
  updated_at: Time;
  /** Put away: not in the list unless asked for. */
  archived?: boolean;
  /** It ended with its runtime, which can be started again. */
  restartable?: boolean;
  /** What it does now, in words: a tool's title, "thinking"; null when nothing. The agent's words: show as text only. */
  doing?: string | null;
}

export interface RunInfo { run_id: string; session_id: string; status: RunStatus; started_at: Time }

export type RuntimeState = 'starting' | 'ready' | 'restarting' | 'exited';

export interface RuntimeInfo {
  runtime_id: string;
  dialect: string;
  state: RuntimeState;
  connect: { command: string[] } | { endpoint: string };
  cwd: string;
  agent?: string;
  /** What it can do, once it said so: `load`, `list`, `models` ..; more may come with its first session. */
  capabilities?: string[];
  pid?: number;
  generation: number;
  problem?: string;
  stderr_tail?: string;
  outlives?: boolean;
  /** Names the process, and no other. */
  instance?: string;
  heard_at?: Time;
  updated_at: Time;
}

export type RequestType = 'confirm' | 'prompt' | 'pick' | 'permission' | 'elicitation';
export type RequestState = 'open' | 'answered' | 'expired' | 'withdrawn' | 'orphaned';
export type Choice = 'allow_once' | 'allow_always' | 'reject_once' | 'reject_always' | 'other';

export interface Offer { id: string; label: string; kind: Choice | string }
export interface Item { id: string; label: string; detail?: string }

/** What a request is about, for a screen to draw; all text in it is safe to show. The words to read are in `display`. */
export type Subject =
  | { type: 'command'; argv?: string[]; cwd?: string }
  | { type: 'edit'; files: { path: string; new?: boolean; added?: number; removed?: number }[]; more?: number }
  | { type: 'fetch'; url: string }
  | { type: 'tool'; name: string }
  | { type: 'plan' }
  | { type: 'question'; questions: Question[] }
  | { type: 'unreadable' };

/** A question to a person. An answer gives `options` by id or label, or words of its own where `free_text` says so. */
export interface Question {
  id: string;
  header?: string;
  text: string;
  options: { id: string; label: string; description?: string }[];
  multiple: boolean;
  free_text: boolean;
  /** It may be left without an answer. */
  optional?: boolean;
  /** Bounds: of a number its value, of text its characters, of choices how many. */
  fits?: { number?: 'number' | 'integer'; least?: number; most?: number; pattern?: string; format?: string };
  /** What the agent calls what is asked for, where `id` is the gateway's. */
  field?: string;
}

/** A question of an agent. `title`, `message`, labels are the agent's words; `display` is the gateway's own, safe rendering. */
export interface Request {
  request_id: string;
  session_id: string;
  run_id: string;
  runtime_id: string;
  generation?: number;
  type: RequestType;
  state: RequestState;
  title: string;
  message?: string;
  subject?: Subject;
  display: string;
  /** `display` or `message` is cut and `digest` left out: get the request by its id before it is allowed. */
  display_truncated?: boolean;
  display_bytes?: number;
  warnings: string[];
  /** Why it is judged so, in plain words. */
  risk_reasons?: string[];
  /** How often what is asked has changed since it was asked; `changed`: it has, and is to be read again. */
  revision?: number;
  changed?: boolean;
  digest: string;
  /** The gateway's own judgement; absent from older gateways. */
  risk?: Risk;
  options: Offer[];
  items?: Item[];
  multi?: boolean;
  default_value?: string;
  multiline?: boolean;
  secret?: boolean;
  danger?: boolean;
  allow_reason: boolean;
  allow_remember: boolean;
  observe_only?: boolean;
  /** What may be changed before it is allowed. */
  editable?: { label: string; value: string };
  tool_call_id?: string;
  native?: Json;
  expires_at?: Time;
  opened_at: Time;
  receipt?: Receipt;
}

/** Exactly one of `option_id`, `ok`, `value`, `ids`, `answers`. The digest is added by `plexus.answer`. */
export interface Answer {
  option_id?: string;
  ok?: boolean;
  value?: string | null;
  ids?: string[];
  answers?: Record<string, string[]>;
  reason?: string;
  remember?: boolean;
  edited?: string;
}

export interface Receipt {
  request_id: string;
  state: RequestState;
  option_id?: string;
  ok?: boolean;
  value?: string;
  ids?: string[];
  answers?: Record<string, string[]>;
  reason?: string;
  resolved_by: Resolver;
  at: Time;
  cursor?: Cursor;
  /** Whether the one who reads this receipt decided. Means something only in the reply to one's own answer. */
  won: boolean;
}

/** An event, as it comes over the WebSocket and over HTTP. */
export interface Envelope {
  session_id: string;
  run_id: string;
  seq: number;
  cursor: Cursor;
  at: Time;
  kind: string;
  /** The canonical body: ACP's `update` for ACP's kinds. Everything in it may be hostile. */
  event: any;
  meta: { runtime_id: string; dialect: string };
  /** On merged pages: the number and the cursor of the first event are in `seq` and `cursor_first`, the last one's in `seq_last` and `cursor`. */
  seq_last?: number;
  cursor_first?: Cursor;
  /** On merged pages: how many events are in it. */
  merged?: number;
  at_last?: Time;
  /** On merged pages: parts of a long text that are missing here. */
  cut?: { before: number; after: number };
}

/** A page of the past. */
export interface Page {
  events: Envelope[];
  /** With `before`: what to give as `before` for the page before this one; absent at the beginning. */
  previous?: string;
  next: string;
  head: Cursor;
  resume: 'ok' | 'gap' | 'reset' | 'ahead';
}

export interface SnapshotMessage {
  role: 'user' | 'agent' | 'thought';
  run_id: string;
  text: string;
  /** ACP content blocks that are no text. */
  content?: any[];
  partial: boolean;
  at: Time;
  /** The place of its first event in the log. */
  position: number;
}
export interface SnapshotTool {
  tool_call_id: string;
  run_id: string;
  position: number;
  title?: string; kind?: string; status?: string; content?: any[]; rawInput?: any; rawOutput?: any; locations?: any[];
  [more: string]: any;
}
export interface Snapshot {
  session: SessionInfo;
  cursor: Cursor;
  messages: SnapshotMessage[];
  tools: SnapshotTool[];
  /** The latest body of plan, available_commands_update, current_mode_update, config_option_update, usage_update ... */
  latest: Record<string, any>;
  requests: Request[];
  surfaces: any[];
  trimmed: boolean;
  /** Whether there are older messages and tools than these; `before` is where to page back from. */
  truncated: boolean;
  before?: Cursor;
}

export interface GatewayInfo { version: string; started_at: Time; epoch: string; name?: string; public_url?: string }

export interface Me {
  device_id: string;
  name: string;
  scopes: Scope[];
  runtimes?: string[];
  sessions?: string[];
  approve_up_to?: Risk;
  /** Names of devices that may answer what this one may not, by the risk. */
  answered_on?: Partial<Record<Risk, string[]>>;
  lock_screen?: boolean;
  kind?: 'device' | 'share' | 'local';
  expires_at?: Time;
  csrf?: string;
  gateway: GatewayInfo;
}

export interface Device {
  device_id: string;
  name: string;
  kind?: 'device' | 'share' | 'local';
  scopes: Scope[];
  runtimes?: string[];
  sessions?: string[];
  approve_up_to?: Risk;
  lock_screen?: boolean;
  created_at: Time;
  last_seen_at?: Time;
  online?: boolean;
  expires_at?: Time;
  you?: boolean;
}

/** A screen that has a session in focus. */
export interface Looker { device_id: string; name: string }

export interface Pairing { pairing_id: string; code: string; url: string; qr: string; expires_at: Time }
export interface PairingState {
  pairing_id: string;
  state: 'waiting' | 'joined' | 'confirmed' | 'refused' | 'expired';
  name?: string;
  number?: number;
  device_id?: string;
  expires_at: Time;
}

export interface SearchHit { session_id: string; cursor: Cursor; at: Time; kind: string; snippet?: string; [more: string]: any }
export interface Check { name: string; state: string; detail?: string; fix?: string; [more: string]: any }

/** What the page knows of its connection. */
export type Phase = 'connecting' | 'catching-up' | 'live' | 'reconnecting' | 'offline' | 'stopped' | 'signed-out';

/** A cursor's parts; null if it is none. */
export function parseCursor(cursor: unknown): { epoch: string; pos: number } | null {
  if (typeof cursor !== 'string') return null;
  const cut = cursor.lastIndexOf(':');
  const pos = Number(cursor.slice(cut + 1));
  return cut > 0 && Number.isSafeInteger(pos) ? { epoch: cursor.slice(0, cut), pos } : null;
}
