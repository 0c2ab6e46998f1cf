// The nouns of the gateway as they are on the wire. `GET /asyncapi.json` describes the same, member by member; members that
// are not here may come at any time, and are let be.

export type Scope = 'watch' | 'prompt' | 'approve' | 'admin';
export type SessionState = 'idle' | 'running' | 'waiting' | 'exited';
export type RunStatus = 'queued' | 'running' | 'awaiting_ui' | 'completed' | 'error' | 'cancelled';
export type RequestType = 'confirm' | 'prompt' | 'pick' | 'permission' | 'elicitation';
export type RequestState = 'open' | 'answered' | 'expired' | 'withdrawn' | 'orphaned';
/** What became of a cursor: everything after it follows, or a snapshot stands for what was lost. */
export type Resume = 'ok' | 'gap' | 'reset' | 'ahead';
/** `<epoch>:<position>`. Opaque: keep it, give it back. */
export type Cursor = string;

/** Who did something: a device, the gateway, or somebody who used the agent itself (`elsewhere`). */
export interface Resolver {
  device_id: string;
  name: string;
}

export interface Runtime {
  runtime_id: string;
  dialect: string;
  state: 'starting' | 'ready' | 'restarting' | 'exited';
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
  heard_at?: string;
  updated_at: string;
}

export interface Session {
  session_id: string;
  runtime_id: string;
  dialect: string;
  native_id: string | null;
  title: string | null;
  cwd: string;
  state: SessionState;
  run_id?: string;
  open_requests: number;
  requests?: string[];
  queue?: { run_id: string; text: string; by: Resolver }[];
  created_at: string;
  updated_at: string;
  /** It ended with its runtime, which can be started again: then it goes on. */
  restartable?: boolean;
}

export interface Run {
  run_id: string;
  session_id: string;
  status: RunStatus;
  started_at: string;
}

export interface Offer {
  id: string;
  label: string;
  kind: 'allow_once' | 'allow_always' | 'reject_once' | 'reject_always' | 'other';
}

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

/** A question from a runtime to people. Show `display`: it is the gateway's own rendering of exactly what is asked. */
export interface Request {
  request_id: string;
  session_id: string;
  run_id: string;
  runtime_id: string;
  generation: number;
  type: RequestType;
  state: RequestState;
  title: string;
  message?: string;
  subject: Subject;
  display: string;
  /** `display` or `message` is cut and `digest` left out: get the request by its id before it is allowed. */
  display_truncated?: boolean;
  display_bytes?: number;
  warnings: string[];
  /** Why it is judged so, in plain words. */
  risk_reasons: string[];
  /** How often what is asked has changed since it was asked; `changed`: it has, and is to be read again. */
  revision: number;
  changed?: boolean;
  digest?: string;
  options: Offer[];
  items?: { id: string; label: string; detail?: string }[];
  multi?: boolean;
  default_value?: string;
  multiline?: boolean;
  secret?: boolean;
  danger?: boolean;
  /** The gateway's own judgement of how much harm a yes could do. */
  risk: 'low' | 'elevated' | 'danger';
  allow_reason: boolean;
  allow_remember: boolean;
  /** Only for looking at: it is answered where it came up. */
  observe_only?: boolean;
  tool_call_id?: string;
  native?: unknown;
  expires_at?: string;
  opened_at: string;
  receipt?: Receipt;
}

/** Exactly one of `option_id`, `ok`, `value`, `ids`, `answers`. */
export interface Answer {
  option_id?: string;
  ok?: boolean;
  value?: string | null;
  ids?: string[];
  /** To each question of a `subject` of type `question`, by its id. */
  answers?: Record<string, string[]>;
  reason?: string;
  remember?: boolean;
  digest?: string;
}

/** How a request ended, as everybody is told. */
export interface Resolution {
  request_id: string;
  session_id?: string;
  state: RequestState;
  option_id?: string;
  ok?: boolean;
  value?: string;
  ids?: string[];
  answers?: Record<string, string[]>;
  reason?: string;
  resolved_by: Resolver;
  at: string;
}

/** What became of an answer, and who won. */
export interface Receipt extends Resolution {
  cursor?: Cursor;
  won: boolean;
}

/** ACP's content blocks. */
export type ContentBlock =
  | { type: 'text'; text: string; annotations?: unknown }
  | { type: 'image'; data: string; mimeType: string; uri?: string }
  | { type: 'audio'; data: string; mimeType: string }
  | { type: 'resource_link'; uri: string; name: string; mimeType?: string; title?: string; description?: string }
  | { type: 'resource'; resource: { uri: string; mimeType?: string; text?: string; blob?: string } };

export interface Chunk {
  sessionUpdate: string;
  content: ContentBlock;
  messageId?: string | null;
  _meta?: { plexus?: { by?: Resolver }; [member: string]: unknown };
}

export interface ToolCall {
  sessionUpdate: string;
  toolCallId: string;
  title?: string;
  kind?: string;
  status?: 'pending' | 'in_progress' | 'completed' | 'failed';
  content?: unknown[];
  locations?: { path: string; line?: number | null }[];
  rawInput?: unknown;
  rawOutput?: unknown;
  _meta?: { [member: string]: unknown };
}

export interface Plan {
  sessionUpdate: string;
  entries: { content: string; priority: string; status: string }[];
}

export interface RunBody {
  run_id: string;
  status: RunStatus;
  by?: Resolver;
  stop_reason?: string;
  message?: string;
  cancelling?: boolean;
}

export interface RuntimeStatus {
  status: 'attached' | 'reattached' | 'exited' | 'restarting' | 'stuck' | (string & {});
  runtime_id?: string;
  generation?: number;
  message?: string;
  code?: number | null;
  signal?: string | null;
  stderr_tail?: string;
}

interface Open {
  [member: string]: unknown;
}

/** The canonical body of each kind of event. */
export interface Bodies {
  user_message_chunk: Chunk;
  agent_message_chunk: Chunk;
  agent_thought_chunk: Chunk;
  tool_call: ToolCall;
  tool_call_update: ToolCall;
  plan: Plan;
  available_commands_update: Open & { availableCommands: { name: string; description: string }[] };
  current_mode_update: Open & { currentModeId: string };
  config_option_update: Open;
  session_info_update: Open & { title?: string | null };
  usage_update: Open;
  run_started: RunBody;
  run_status: RunBody;
  run_ended: RunBody;
  request_opened: Request;
  request_updated: Request;
  request_resolved: Resolution;
  surface_updated: Open;
  hook: Open;
  runtime_status: RuntimeStatus;
  client_joined: Open;
  client_left: Open;
  client_served: Open & {
    method: string;
    by: Resolver;
    status: 'done' | 'failed';
    path?: string;
    command?: string;
    terminal_id?: string;
    bytes?: number;
    code?: number;
    message?: string;
  };
  error: Open & { code?: string; message?: string };
  raw: Open & { reason?: string; message?: unknown; text?: string };
}

export type Kind = keyof Bodies;

/** An event: `seq` counts within its run from 0 without a gap; `native` only with the projection `native`. */
export interface EventOf<K extends Kind> {
  session_id: string;
  run_id: string;
  seq: number;
  cursor: Cursor;
  at: string;
  kind: K;
  event: Bodies[K];
  meta: { runtime_id: string; dialect: string };
  native?: unknown;
  /** With `merge`: the last event's number and the first one's cursor; `seq` is the first one's, `cursor` the last one's. */
  seq_last?: number;
  cursor_first?: Cursor;
  /** With `merge`: how many events are in it, and when the last was. */
  merged?: number;
  at_last?: string;
  /** With `merge`: parts of a long text that are missing here. */
  cut?: { before: number; after: number };
}

/** An event of any kind; `switch (event.kind)` narrows `event.event`. */
export type Event = { [K in Kind]: EventOf<K> }[Kind];

export interface Snapshot {
  session: Session;
  cursor: Cursor;
  messages: {
    role: 'user' | 'agent' | 'thought';
    run_id: string;
    text: string;
    content?: ContentBlock[];
    partial: boolean;
    /** Whether it began before what the snapshot has. */
    continued?: boolean;
    at: string;
    position: number;
  }[];
  tools: ({ tool_call_id: string; run_id: string; position: number } & Omit<Partial<ToolCall>, 'toolCallId'>)[];
  latest: { [K in Kind]?: Bodies[K] };
  requests: Request[];
  surfaces: unknown[];
  /** Whether retention has removed what came before. */
  trimmed: boolean;
  /** Whether there are older messages and tools than these; `before` is where to page back from. */
  truncated: boolean;
  before?: Cursor;
}

export interface You {
  device_id: string;
  name: string;
  scopes: Scope[];
}

/** The first thing that every attach hears. */
export interface Hello {
  session_id: string;
  resume: Resume;
  epoch: string;
  oldest: Cursor;
  head: Cursor;
  sessions: Session[];
  runs: Run[];
  requests: Request[];
  you: You;
}

/** In place of events that are no longer kept: exact at `cursor`, from where events go on. */
export interface Snapshots {
  session_id: string;
  cursor: Cursor;
  snapshots: Snapshot[];
}

export interface Live {
  session_id: string;
  head: Cursor;
}

export interface Lag {
  session_id: string;
  head: Cursor;
  behind: number;
}

export interface Accepted {
  run_id: string;
  queued: boolean;
  ahead: number;
}

export interface NewSession {
  runtime_id: string;
  cwd?: string;
  title?: string;
  native_id?: string;
}

export interface HistoryPage {
  events: Event[];
  events_sent: number;
  /** With `before`: what to give as `before` for the page before this one; absent at the beginning. */
  previous?: Cursor;
  next: Cursor;
  head: Cursor;
}

export interface Initialized {
  protocol_version: string;
  server: { name: string; version: string };
  server_capabilities: { [name: string]: boolean };
  you: You;
}
