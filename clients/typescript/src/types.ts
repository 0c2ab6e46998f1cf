// What is on the wire. Made by `scripts/web build` from what the gateway says of itself (`plexus schema`): not to be edited.
// Members that are not here may come at any time, and are let be.

/** An accepted prompt. */
export interface Accepted {
  /** The number of runs before it. */
  ahead: number;
  /**
   * How the run ended, if the prompt was sent before under the same key and its run is over. The run's last event is
   * stored by then.
   */
  ended?: Ended;
  /** Whether the prompt is queued. */
  queued: boolean;
  /** The run of the prompt. */
  run_id: RunId;
}

/** A JSON-RPC message of ACP: a request, a notification or a response. */
export interface AcpMessage {
  error?: JsonObject | null;
  id?: Json | null;
  /** `2.0` */
  jsonrpc: string;
  method?: string | null;
  params?: JsonObject | null;
  result?: Json | null;
}

/**
 * What a client says to a request. Exactly one of `option_id`, `ok`, `value`, `ids`, `answers` is given (`value: null`,
 * `ids: []` and `answers: {}` mean "cancelled").
 */
export interface Answer {
  /** What is said to each of the questions. */
  answers?: Record<string, string[]> | null;
  /** The digest of what the client showed; a stale one is refused. */
  digest?: string | null;
  /** What is to be done instead of the request's `editable.value`; only with a yes for this once. */
  edited?: string | null;
  /** What was picked. */
  ids?: string[] | null;
  /** Yes or no. */
  ok?: boolean | null;
  /** One of the request's options. */
  option_id?: string | null;
  /** Why, for the agent to read. */
  reason?: string | null;
  /** Whether to remember the choice. */
  remember?: boolean | null;
  /** Text; given as `null` it means "cancelled". */
  value?: string | null;
}

/** An answer: exactly one of `option_id`, `ok`, `value`, `ids`. */
export type AnswerParams = Said & {
  /** The same key brings the same receipt again. */
  idempotency_key?: string | null;
  request_id: string;
};

/** Names of devices by the risk that they may answer. */
export interface AnsweredOn {
  danger?: string[];
  elevated?: string[];
}

/** What to follow, and from where: after a cursor, or from the `start` or `now`; from the start if neither is given. */
export interface AttachParams {
  /** A cursor, or `now`. */
  after?: string | null;
  /** From the oldest event kept, or only what comes */
  from?: 'start' | 'now';
  /** `native` brings what the runtime itself said along with each event. */
  projection?: Projection;
  /** A session, or `*` for all. */
  session_id: string;
}

/** The answer to `session.attach`. */
export interface Attached {
  attached: boolean;
  /** Events go on after this. */
  cursor: Cursor;
  head: Cursor;
  resume: Resume;
  /** What is followed: a session, or `*`. */
  session_id: string;
}

/** A pairing that has begun. */
export interface Begun {
  /** What the device types. */
  code: string;
  expires_at: Timestamp;
  pairing_id: string;
  /** The same as a picture, in SVG. */
  qr: string;
  /** What the device opens in place of typing. */
  url: string;
}

/** The run to stop: the one under way if none is named. */
export interface CancelParams {
  /** Why, for people and for runtimes that take a reason. */
  reason?: string | null;
  run_id?: RunId | null;
  session_id?: SessionId | null;
}

/** Which run to stop; the one under way if absent. */
export interface CancelRun {
  /** Why, for people and for runtimes that take a reason. */
  reason?: string | null;
  /** The run. */
  run_id?: RunId | null;
}

/** The answer to `run.cancel`. */
export interface Cancelled {
  ok: boolean;
  run_id: RunId;
  /** `running`, of a run that ends when its runtime says so; `cancelled`, of one that waited, and is over. */
  status: RunStatus;
}

/** What a runtime can do: on the wire a list of names. Names that a later version added are left out when it is read. */
export type Capabilities = Capability[];

/** One thing that some runtimes can do. */
export type Capability = 'load' | 'resume' | 'list' | 'fork' | 'close' | 'delete' | 'logout' | 'cancel' | 'requests' | 'reasons' | 'edits' | 'modes' | 'models' | 'images' | 'audio' | 'embedded_context' | 'mcp_http' | 'mcp_sse' | 'mcp_list' | 'skills_list' | 'permission_preflight_events' | 'context_inspect' | 'run_diagnostics' | 'shell_exec' | 'shell_tasks' | 'shell_detach' | 'tasks' | 'tool_call' | 'theme_set';

/** What was looked at, and what was found. */
export interface Check {
  /** What was found. */
  detail: string;
  /** What to do. */
  fix?: string;
  /** What was looked at. */
  name: string;
  /** How bad it is. */
  state: Verdict;
}

/** What works and what does not. */
export interface Checks {
  checks: Check[];
}

/** What an option means, so that clients can draw it (ACP `PermissionOptionKind`). */
export type Choice = 'allow_once' | 'allow_always' | 'reject_once' | 'reject_always' | 'other';

/** A piece of what somebody said. */
export interface Chunk {
  /** `plexus.by` is who said it, of a message of a person. */
  _meta?: JsonObject | null;
  content: Content;
  messageId?: string | null;
  sessionUpdate: string;
  [member: string]: unknown;
}

/** A file or a terminal that an agent asked its client for, and what came of it: the body of `client_served`. */
export interface ClientServed {
  /** The client that served it. */
  by: Resolver;
  /** How many bytes the client answered with. */
  bytes?: number;
  /** The client's error code. */
  code?: number;
  /** The command line. */
  command?: string;
  /** The client's error, in words. */
  message?: string;
  /** ACP's method. */
  method: string;
  /** The file. */
  path?: string;
  /** `done` or `failed`. */
  status: string;
  /** The terminal, by the client's own name for it. */
  terminal_id?: string;
}

/** A one-time code. */
export interface Code {
  /** The secret; good for one device. */
  code: string;
  /** When it stops working. */
  expires_at: Timestamp;
}

/** A yes. */
export interface Confirm {
  /** The number that both sides show. */
  number: number;
}

/** How to reach a runtime. */
export type Connect = {
  /** Start this program and talk over its stdin and stdout: program, then arguments. */
  command: string[];
} | {
  /** Connect to a running endpoint: `ws://…`, `unix:…`, `http://…`. */
  endpoint: string;
};

/** A part of what somebody said: ACP's content block. */
export type Content = {
  text: string;
  type: 'text';
  [member: string]: unknown;
} | {
  data: string;
  mimeType: string;
  type: 'image';
  uri?: string | null;
  [member: string]: unknown;
} | {
  data: string;
  mimeType: string;
  type: 'audio';
  [member: string]: unknown;
} | {
  description?: string | null;
  mimeType?: string | null;
  name: string;
  title?: string | null;
  type: 'resource_link';
  uri: string;
  [member: string]: unknown;
} | {
  resource: JsonObject;
  type: 'resource';
  [member: string]: unknown;
};

/** One of ACP's content blocks; what is sent is the block as it came. */
export interface ContentBlock {
  type: string;
  [member: string]: unknown;
}

/** The end of the answer to `session.history`. */
export type CountedEnd = PageEnd & {
  events_sent: number;
};

/** A place in the log: keep it, and give it back as it is. */
export type Cursor = string;

/** With `merge`: the text of the event in it is longer than a part, and this is not all of it. */
export interface Cut {
  /** Parts of the last event's text that are missing after it. */
  after: number;
  /** Parts of the first event's text that are missing before it. */
  before: number;
}

/** The answer to `session.detach`. */
export interface Detached {
  /** Whether it was followed. */
  detached: boolean;
}

/** A device as clients see it: nothing secret. */
export type Device = Grant & {
  /** When it was enrolled. */
  created_at: Timestamp;
  /** Its identifier. */
  device_id: DeviceId;
  /** When it ends by itself. */
  expires_at?: Timestamp;
  /** What sort it is. */
  kind: DeviceKind;
  /** When it last proved itself. */
  last_seen_at?: Timestamp;
  /** Whether it is this machine's own administrator, who cannot be revoked. */
  local: boolean;
  /** Its name. */
  name: string;
  /** Whether it has something open. */
  online: boolean;
  /** Whether it is the one that asks. */
  you: boolean;
};

/** An enrolled client installation: `d_` and 26 characters. */
export type DeviceId = string;

/** What sort of device. */
export type DeviceKind = 'device' | 'share' | 'local';

/** The enrolled devices. */
export interface Devices {
  devices: Device[];
}

/** What to change of a session; what is absent stays. */
export interface EditSession {
  /** Whether it is put away. */
  archived?: boolean | null;
  /** Its title from now on; the agent's own changes it no more. */
  title?: string | null;
}

/** What of a request may be changed before it is allowed. */
export interface Editable {
  /** What it is ("Command"). */
  label: string;
  /** As the agent wants it, untouched: show it only in a place to edit, beside `display`. */
  value: string;
}

/** How a run ended. */
export interface Ended {
  /** Why the run failed or never began, shortened. */
  message?: string;
  /** `completed`, `error` or `cancelled`. */
  status: RunStatus;
  /** The agent's own stop reason, shortened. */
  stop_reason?: string;
}

/** The `event` of each `kind`. */
export interface Bodies {
  user_message_chunk: Chunk;
  agent_message_chunk: Chunk;
  agent_thought_chunk: Chunk;
  tool_call: ToolCall;
  tool_call_update: ToolCall;
  plan: Plan;
  available_commands_update: Update;
  current_mode_update: Update;
  config_option_update: Update;
  session_info_update: Update;
  usage_update: Update;
  run_started: RunBody;
  run_status: RunBody;
  run_ended: RunBody;
  request_opened: Request;
  request_resolved: Resolution;
  surface_updated: JsonObject;
  hook: JsonObject;
  runtime_status: RuntimeStatus;
  client_joined: JsonObject;
  client_left: JsonObject;
  error: ErrorBody;
  raw: RawBody;
  request_updated: Request;
  client_served: ClientServed;
}

/** An `Envelope` of this `kind`. */
export interface EnvelopeOf<K extends Kind> {
  at: Timestamp;
  /** With `merge`: when the last event in it was, where they are several. */
  at_last?: Timestamp;
  cursor: Cursor;
  /** With `merge`: the cursor of the first event in it; `cursor` is that of the last. */
  cursor_first?: Cursor;
  cut?: Cut;
  /** The canonical body, by its kind. */
  event: Bodies[K];
  kind: K;
  /** With `merge`: how many events are in it, where it is of a kind that can be merged. */
  merged?: number;
  meta: Meta;
  /** What the runtime itself said, with the projection `native`. */
  native?: Json;
  run_id: RunId;
  /** Its number within the run, from 0 without a gap. */
  seq: number;
  /** With `merge`: the number of the last event in it. */
  seq_last?: number;
  session_id: SessionId;
}

/** An event. */
export type Envelope = { [K in Kind]: EnvelopeOf<K> }[Kind];

/** Something went wrong: the body of `error`. */
export type ErrorBody = {
  /** What, stable. */
  code: string;
  /** What happened this time, in words. */
  message: string;
} & { [member: string]: unknown };

/** A JSON-RPC error. `data.code` is stable, and the same as over HTTP. */
export interface Failure {
  code: number;
  data: FailureData;
  message: string;
}

/** What a JSON-RPC error says beside its words: `code`, and the members that the problem has over HTTP. */
export type FailureData = ProblemMembers & {
  code: string;
};

/** A ticket, to hear what came of it. */
export interface Fetch {
  /** The ticket. */
  ticket: string;
  /** Seconds to wait for it, 60 at most. */
  wait?: number | null;
}

/**
 * Bounds of an answer to a `Question`: of a number its value, of text its characters, of choices how many; and the form of
 * a text.
 */
export interface Fits {
  /** `email`, `uri`, `date` or `date-time` (JSON Schema's `format`); others are left to the agent. */
  format?: string;
  /** The least that fits. */
  least?: number;
  /** The most that fits. */
  most?: number;
  /** `number` or `integer`; text, if absent. */
  number?: NumberSort;
  /**
   * A regular expression that a text has to match somewhere (JSON Schema's `pattern`). One that is longer than
   * 1 KiB or that the gateway cannot read is left to the agent. As the agent wrote it: escape it where it is shown.
   */
  pattern?: string;
}

/** What the client's screen shows, and whether somebody looks at it. */
export interface Focus {
  /** Whether the screen has the focus: a hidden page and a locked phone do not. */
  focused: boolean;
  /** The session that it shows; `null` where it shows none in particular. */
  session_id?: SessionId | null;
}

/** The gateway that answers. */
export interface GatewayInfo {
  /** The life of its log. */
  epoch: string;
  /** What people call the machine. */
  name: string;
  /** Where other machines reach it. */
  public_url?: string;
  started_at: Timestamp;
  version: string;
}

/** What a device was granted. */
export interface Grant {
  /** The highest risk of a request that it may answer; any, if absent. */
  approve_up_to?: Risk;
  /** Whether it may answer from a notification, without opening the request. */
  lock_screen?: boolean;
  /** Only with these runtimes, if given. */
  runtimes?: RuntimeId[];
  /** What it may do. */
  scopes: Scope[];
  /** Only with these sessions, if given. */
  sessions?: SessionId[];
}

/** The first thing that a subscriber hears. */
export interface Hello {
  epoch: string;
  head: Cursor;
  oldest: Cursor;
  /** The requests that are open; what is long of them is cut. */
  requests: Request[];
  resume: Resume;
  runs: RunInfo[];
  /** As it was attached: a session, or `*`; absent of a stream over HTTP. */
  session_id: string;
  /** Those with the latest news, 500 at most. */
  sessions: Session[];
  /** How many sessions are not among them. */
  sessions_omitted?: number;
  you: You;
}

/** The answer to `session.history`: its events are written one by one, then its end. */
export type History = CountedEnd & {
  events: Envelope[];
};

/** Which events: 500 from the oldest kept, unless it says otherwise. */
export interface HistoryParams {
  /** A cursor. */
  after?: string | null;
  /** A cursor: the newest before it, in the order of the log; `now` or nothing in it for the newest of all. */
  before?: string | null;
  /** At most 5000. */
  limit?: number | null;
  /** At most so many bytes of events, about; 256 KiB at most. */
  max_bytes?: number | null;
  /** Whether what belongs together comes as one item. */
  merge?: boolean;
  session_id: SessionId;
}

/** A passage found. */
export interface Hit {
  /** The event where it ends. */
  cursor: Cursor;
  /** Whose words. */
  role: string;
  /** The session it is in. */
  session_id: SessionId;
  /** The passage around the match; matches stand between U+0002 and U+0003. */
  snippet: string;
}

/** Passages found. */
export interface Hits {
  /** The best of them. */
  hits: Hit[];
}

/** The gateway that invites. */
export interface Host {
  /** What people call the machine. */
  name: string;
  version: string;
}

/** Who a device is. */
export type Identity = Grant & {
  device_id: DeviceId;
  /** When it ends by itself. */
  expires_at?: Timestamp;
  kind: DeviceKind;
  name: string;
};

/** Who the client is, and what it can show. */
export interface Initialize {
  ui_capabilities?: UiCapabilities;
  /** `0`: this connection speaks the UI protocol of that version to the letter, and nothing else. */
  ui_protocol?: string | null;
  [member: string]: unknown;
}

/** The answer to `initialize`. */
export interface Initialized {
  protocol_version: string;
  server: Server;
  server_capabilities: Record<string, boolean>;
  you: You;
}

/** The UI protocol's way to say it. */
export type Input = {
  /** The text. */
  text: string;
  type: 'text';
} | {
  /** ACP content blocks. */
  parts: ContentBlock[];
  type: 'parts';
};

/** What a device would join. */
export type Invitation = Grant & {
  expires_at: Timestamp;
  gateway: Host;
  /** What it is to be called, if the computer said so. */
  name?: string;
};

/** One of the things that a pick offers. */
export interface Item {
  /** More about it. */
  detail?: string;
  /** The runtime's own identifier for it. */
  id: string;
  /** Its name. */
  label: string;
}

/** Any JSON, as it came. */
export type Json = unknown;

/** Any JSON object, as it came. */
export type JsonObject = { [member: string]: unknown };

/** What sort of event. */
export type Kind = 'user_message_chunk' | 'agent_message_chunk' | 'agent_thought_chunk' | 'tool_call' | 'tool_call_update' | 'plan' | 'available_commands_update' | 'current_mode_update' | 'config_option_update' | 'session_info_update' | 'usage_update' | 'run_started' | 'run_status' | 'run_ended' | 'request_opened' | 'request_resolved' | 'surface_updated' | 'hook' | 'runtime_status' | 'client_joined' | 'client_left' | 'error' | 'raw' | 'request_updated' | 'client_served';

/** The client fell behind, and caught up: nothing was lost. */
export interface Lag {
  /** By how many places of the log. */
  behind: number;
  head: Cursor;
  /** What is followed: a session, or `*`. */
  session_id: string;
}

/** How many at most. */
export interface Listing {
  /** `next` of the page before. */
  cursor?: string | null;
  /** Sessions at most; 1000 at most. */
  limit?: number | null;
}

/** Everything up to here was told; what follows is new. */
export interface Live {
  head: Cursor;
  /** What is followed: a session, or `*`. */
  session_id: string;
}

/** A line of the runtime's stderr, or of the gateway about the runtime. */
export interface LogLine {
  /** When the gateway read it. */
  at: Timestamp;
  /** Who wrote it. */
  by: LogSource;
  /** The line, safe to show. */
  text: string;
}

/** Who wrote a line. */
export type LogSource = 'runtime' | 'gateway';

/** What a runtime wrote to stderr of late. */
export interface Logs {
  lines: LogLine[];
}

/** A short code to look at. */
export interface Look {
  /** The code. */
  code: string;
}

/** The answer to `presence.update`. */
export interface Looking {
  focused: boolean;
}

/** An MCP server of an agent. */
export interface McpServer {
  enabled: boolean;
  id: string;
  last_connected_at?: string;
  last_error?: string;
  source?: McpSource;
  state: McpState;
  /** How many tools it has. */
  tools?: number;
  transport: McpTransport;
}

/** The MCP servers of an agent, as it tells them. */
export interface McpServers {
  servers: McpServer[];
  /** Whether there are more. */
  truncated: boolean;
}

/** Where an MCP server is configured. */
export type McpSource = 'project' | 'global';

/** Where an MCP server stands. */
export type McpState = 'connecting' | 'disabled' | 'ready' | 'error';

/** How an agent reaches an MCP server. */
export type McpTransport = 'stdio' | 'http';

/** Who asks. */
export type Me = Identity & {
  /** Where this device has a limit: those that may answer what it may not, as far as it may know them. */
  answered_on?: AnsweredOn;
  /** What a page sends as `Plexus-CSRF` with every request but GET and HEAD. */
  csrf?: string;
  gateway: GatewayInfo;
};

/** One message. The first one of a truncated snapshot may be the end of a longer message. */
export interface Message {
  /** When it began. */
  at: Timestamp;
  /** The content that is not text: ACP content blocks. */
  content?: JsonObject[];
  /** Whether this is the end of a message that began before the snapshot's window. */
  continued?: boolean;
  /** Whether it is unfinished, or was cut off. */
  partial: boolean;
  /** The position of its first event. */
  position: number;
  /** Whose words */
  role: 'user' | 'agent' | 'thought';
  /** The run it belongs to. */
  run_id: RunId;
  /** The text. */
  text: string;
}

/** Where an event comes from. */
export interface Meta {
  dialect: string;
  runtime_id: RuntimeId;
}

/** A session's identifier inside its runtime: opaque text that the gateway never interprets. */
export type NativeId = string;

/** What the device that redeems the code may do. */
export interface NewCode {
  /** The highest risk that it may answer; any, if absent. */
  approve_up_to?: Risk | null;
  /** Whether it may answer from a notification. */
  lock_screen?: boolean;
  /** Only with these runtimes. */
  runtimes?: RuntimeId[] | null;
  /** What it may do: `watch`, `prompt`, `approve`, `admin`. */
  scopes: Scope[];
  /** Only with these sessions. */
  sessions?: SessionId[] | null;
  /** Its life in seconds, at most 120. */
  ttl?: number | null;
}

/** A device to enrol. */
export interface NewDevice {
  /** The highest risk that it may answer; any, if absent. */
  approve_up_to?: Risk | null;
  /** Whether it may answer from a notification. */
  lock_screen?: boolean;
  /** Its name. */
  name: string;
  /** Only with these runtimes. */
  runtimes?: RuntimeId[] | null;
  /** What it may do: `watch`, `prompt`, `approve`, `admin`. */
  scopes: Scope[];
  /** Only with these sessions. */
  sessions?: SessionId[] | null;
}

/** What is to be otherwise. */
export interface NewName {
  /** Whether it may answer from a notification. */
  lock_screen?: boolean | null;
  /** Another name. */
  name?: string | null;
}

/** What a device that joins may do. */
export interface NewPairing {
  /** The highest risk that it may answer; any, if absent. */
  approve_up_to?: Risk | null;
  /** Whether it may answer from a notification. */
  lock_screen?: boolean;
  /** What it is to be called; as it says itself, if absent. */
  name?: string | null;
  /** Only with these runtimes. */
  runtimes?: RuntimeId[] | null;
  /** `watch`, `prompt`, `approve`, `admin`. */
  scopes: Scope[];
}

/** What to say to the agent: `text`, or `content`. */
export interface NewPrompt {
  /** ACP content blocks. */
  content?: ContentBlock[] | null;
  /** The prompt as plain text. */
  text?: string | null;
}

/** A session to open. */
export interface NewSession {
  /** The folder it works in; the runtime's own if absent. */
  cwd?: string | null;
  /** The runtime's own identifier, to take up a session that the runtime knows. */
  native_id?: NativeId | null;
  /** The runtime it lives in. */
  runtime_id: RuntimeId;
  /** Its title. */
  title?: string | null;
}

/** A link to a session. */
export interface NewShare {
  /** Its life in hours: a day, if absent; thirty at most. */
  hours?: number | null;
}

/** A device, and its token, which is shown this once; or `csrf`, where its token is a cookie. */
export type NewToken = Identity & {
  created_at: Timestamp;
  /** What a page sends as `Plexus-CSRF` with every request but GET and HEAD. */
  csrf?: string;
  token?: string;
};

/** The client's response to a question was not taken. */
export interface NotTaken {
  error: Failure;
  request_id: RequestId;
}

/** No parameters: whatever comes is not looked at. */
export type Nothing = { [member: string]: unknown };

/** What sort of number an answer has to be. */
export type NumberSort = 'number' | 'integer';

/** A session; the one that is followed, if it is one, where absent. What else there is goes to its runtime. */
export interface OfSession {
  session_id?: SessionId | null;
}

/** One of the answers that the runtime offers. */
export interface Offer {
  /** The runtime's own identifier for it. */
  id: string;
  /** What it means. */
  kind: Choice;
  /** What to write on the button. */
  label: string;
}

/** A page of events. With a `resume` other than `ok`, a snapshot comes in place of what was lost; read on from `next`. */
export type Page = PageEnd & {
  events: Envelope[];
};

/** What stands after the events of a page. */
export interface PageEnd {
  head: Cursor;
  /** To be given as `after` for what comes after this page. */
  next: string;
  /** Sessions without a snapshot here, because they are too many. */
  omitted?: number;
  /** To be given as `before` for the page before this one; absent at the beginning. */
  previous?: string;
  resume: Resume;
  snapshot?: Snapshot;
  snapshots?: Snapshot[];
}

/** A one-time code to exchange. */
export interface Pair {
  /** The code. */
  code: string;
  /** Whether it is a page of this gateway, which gets a cookie in place of a token. */
  cookie?: boolean;
  /** What to call the device. */
  name: string;
}

/** A pairing, for the computer. */
export interface Pairing {
  /** The device that came of it. */
  device_id?: DeviceId;
  /** When it is too late. */
  expires_at: Timestamp;
  /** What the device will be called. */
  name?: string;
  /** What the phone shows. */
  number?: number;
  /** Its identifier. */
  pairing_id: string;
  /** Where it stands. */
  state: PairingState;
}

/** Where a pairing stands. */
export type PairingState = 'waiting' | 'joined' | 'confirmed' | 'refused' | 'expired';

/** That the computer has said nothing yet. */
export interface Patience {
  /** `waiting`. */
  state: PairingState;
}

/** The agent's plan, whole. */
export interface Plan {
  entries: PlanEntry[];
  sessionUpdate: string;
  [member: string]: unknown;
}

/** A step of a plan. */
export interface PlanEntry {
  content: string;
  priority?: string | null;
  status?: string | null;
  [member: string]: unknown;
}

/** Who looks at a session now. */
export interface PresenceNote {
  lookers: Viewer[];
  session_id: SessionId;
}

/** RFC 9457: why something was not done. `code` is stable. */
export type ProblemDetails = ProblemMembers & {
  code: string;
  detail: string;
  status: number;
  title: string;
  type: string;
};

/** What else a problem says, by its `code`. */
export type ProblemMembers = Partial<Receipt> & {
  /** `over_limit`: whose account is full. */
  account?: string;
  /** `risk_too_high`: the highest that the device may answer. */
  approve_up_to?: Risk;
  /** `risk_too_high`: names of devices that may answer it, as far as this one may know them. */
  devices?: string[];
  /** Of an answer that does not fit: which of the agent's fields. */
  field?: string;
  /** AG-UI: the interrupt. */
  interruptId?: string;
  /** `too_large`, `prompt_too_large`, `over_limit`: how many bytes there may be. */
  limit?: number;
  /** `resume_partial`: the interrupts that were left out. */
  missing?: string[];
  /** Of a cursor that cannot be resumed from: the oldest one that can. */
  oldest?: Cursor;
  /** `bad_body`: where. */
  path?: string;
  /** Of a cursor that cannot be resumed from: what became of it. */
  resume?: Resume;
  /** `risk_too_high`: which. */
  risk?: Risk;
  /** `risk_too_high`: why the risk is what it is, in words. */
  risk_reasons?: string[];
  /** `runtime_refused`: the runtime's own code. */
  runtime_code?: number;
  /** `runtime_refused`: what the runtime said beside it. */
  runtime_data?: Json;
  /** `scope_missing`: which. */
  scope?: Scope;
};

/** What of an event a subscriber gets. */
export type Projection = 'canonical' | 'native';

/** What a device subscribes to notifications with, and what it chose. */
export interface Push {
  /** It was subscribed, and that came to nothing without its wish: it may subscribe anew by itself. */
  lapsed: boolean;
  /** The `applicationServerKey`, in base64url. */
  public_key: string;
  settings: PushSettings;
  subscribed: boolean;
}

/** What to change of a device's choices; what is left out stays. */
export interface PushChoice {
  /** Whether to hear of runs that complete. */
  ends?: boolean | null;
  /** Whether to hear of runs that fail. */
  failures?: boolean | null;
  /** When not to be disturbed; `null`: never. */
  quiet?: QuietHours | null;
  /** Whether to hear of requests that open. */
  requests?: boolean | null;
}

/** Quiet hours as a device says them. */
export interface PushQuiet {
  from: string;
  offset_minutes: number;
  to: string;
  /** Its owner's time zone, by its IANA name; rows of earlier releases have the offset alone. */
  zone?: string;
}

/** What a device chose. */
export type PushSettings = TargetWants & {
  quiet: PushQuiet | null;
};

/** A notification was taken. */
export interface PushTried {
  /** The push service's status. */
  status: number;
}

/** Nothing needs to be said to try it. */
export type PushTry = Record<string, never>;

/** A question to a person. */
export interface Question {
  /** What the agent calls what is asked for, where `id` is the gateway's own name. */
  field?: string;
  /** What words of one's own, or how many choices, fit. */
  fits?: Fits;
  /** Whether words of one's own are an answer. */
  free_text: boolean;
  /** A word or two for it. */
  header?: string;
  /** By which an answer names it. */
  id: string;
  /** Whether several may be chosen. */
  multiple: boolean;
  /** Whether it may be left without an answer. */
  optional?: boolean;
  /** The answers to choose from. */
  options: QuestionOption[];
  /** The member in which words of one's own stand, where one text answers all questions. */
  own?: string;
  /** The question. */
  text: string;
}

/** One of the answers to a `Question`. */
export interface QuestionOption {
  /** More about it. */
  description?: string;
  /** By which an answer names it. */
  id: string;
  /** Its name; an answer may give this in place of the id. */
  label: string;
}

/** A prompt that waits for its turn. */
export interface Queued {
  /** Who asked. */
  by: Resolver;
  /** The run it will be. */
  run_id: RunId;
  /** Its text, shortened. */
  text: string;
}

/** Hours in which a device is not disturbed. */
export interface QuietHours {
  /** `22:00` */
  from: string;
  /** Minutes that the device's clock is ahead of UTC: `-new Date().getTimezoneOffset()`. */
  offset_minutes: number;
  /** `07:00`; before `from` it is the next day's. */
  to: string;
  /**
   * The device's time zone, by its IANA name (`Intl.DateTimeFormat().resolvedOptions().timeZone`): with it the hours are the
   * same on its clock all year, and `offset_minutes` does not count.
   */
  zone?: string | null;
}

/** A frame that no dialect understood: the body of `raw`. */
export interface RawBody {
  /** The frame, where it is JSON of reasonable depth. */
  message?: Json;
  /** Why it was not understood. */
  reason: string;
  /** The frame as text, where it is not. */
  text?: string;
}

/** Whether the log takes writes. */
export interface Ready {
  /** Where it ends. */
  head: Cursor;
  /** It does. */
  ready: boolean;
}

/** The durable record of what became of a request, and who won. */
export interface Receipt {
  /** What was said to each question. */
  answers?: Record<string, string[]>;
  /** When it was answered. */
  at: Timestamp;
  /** The place of the `request_resolved` event in the log. */
  cursor?: Cursor;
  /** What was allowed in place of what was asked, exactly. */
  edited?: string;
  /** The same, safe to show. */
  edited_display?: string;
  /** What a person should know of it. */
  edited_warnings?: string[];
  /** What was picked. */
  ids?: string[];
  /** Whether the choice lets the agent go ahead. */
  ok?: boolean;
  /** The option chosen. */
  option_id?: string;
  /** Why, in the words of whoever answered. */
  reason?: string;
  /** The request. */
  request_id: RequestId;
  /** Who decided. */
  resolved_by: Resolver;
  /** How it ended. */
  state: RequestState;
  /** The text given (never for a secret prompt). */
  value?: string;
  /** Whether the reader of this receipt is the one who decided. */
  won: boolean;
}

/**
 * A question from a runtime to people, as every client sees it.
 *
 * `title` and `message` are the agent's words, untouched; `display` is the gateway's own rendering of exactly what is
 * asked, with every deceptive character made visible.
 */
export interface Request {
  /** Whether the runtime's dialect can carry a reason. */
  allow_reason: boolean;
  /** Whether the runtime's dialect can carry "remember this". */
  allow_remember: boolean;
  /** Whether it has: whoever read it before has to read it again. */
  changed?: boolean;
  /** Whether the runtime calls it dangerous. */
  danger?: boolean;
  /** What a prompt starts with. */
  default_value?: string;
  /**
   * SHA-256 (hex) of the canonical request: what is shown is what is decided. Empty where `display` is cut: who has
   * not read all of it has nothing to show for it.
   */
  digest?: string;
  /** What is asked, safe to show. */
  display: string;
  /** How long the whole `display` is, in bytes, where it is cut. */
  display_bytes?: number;
  /** Whether `display` or `message` is cut here; the whole request is had by its identifier. */
  display_truncated?: boolean;
  /** What of it may be changed before it is allowed: an answer that allows it once may bring `edited`. */
  editable?: Editable;
  /** When it closes by itself. */
  expires_at?: Timestamp;
  /** Which start of the runtime asks; an answer never reaches another. */
  generation: number;
  /** The things to pick from. */
  items?: Item[];
  /** The agent's text. */
  message?: string;
  /** Whether several may be picked. */
  multi?: boolean;
  /** Whether a prompt takes several lines. */
  multiline?: boolean;
  /** What the runtime sent, untouched. */
  native?: Json;
  /** Whether it can only be watched here: its runtime takes the answer elsewhere alone. */
  observe_only?: boolean;
  /** When it was asked. */
  opened_at: Timestamp;
  /** The answers offered. */
  options: Offer[];
  /** What became of it. */
  receipt?: Receipt;
  /** Its identifier. */
  request_id: RequestId;
  /** How often what is asked has changed since it was asked. */
  revision: number;
  /** How much harm a yes could do. */
  risk: Risk;
  /** Why it is judged so, in plain words. */
  risk_reasons: string[];
  /** The run it came up in. */
  run_id: RunId;
  /** The runtime that asks. */
  runtime_id: RuntimeId;
  /** Whether what is typed must not be shown. */
  secret?: boolean;
  /** The conversation it came up in. */
  session_id: SessionId;
  /** Where it stands. */
  state: RequestState;
  /** What it is about, for a screen to draw. */
  subject: Subject;
  /** The agent's headline. */
  title: string;
  /** The tool call that waits for it. */
  tool_call_id?: string;
  /** What sort of question. */
  type: RequestType;
  /** What a person should know before answering. */
  warnings: string[];
}

/** A question from a runtime to people: `q_` and 26 characters, unguessable (130 bits). */
export type RequestId = string;

/** Where a request stands. It leaves `Open` once, and never comes back. */
export type RequestState = 'open' | 'answered' | 'expired' | 'withdrawn' | 'orphaned';

/** What sort of question a request is; it decides which answers fit. */
export type RequestType = 'confirm' | 'prompt' | 'pick' | 'permission' | 'elicitation';

/** A page of requests, newest first. */
export interface Requests {
  /** The `before` of the next page; absent if there is none. */
  next?: string;
  /** The requests; what is long of them is cut. */
  requests: Request[];
}

/** How a request ended, the same for everybody: the body of `request_resolved`. */
export interface Resolution {
  /** What was said to each question. */
  answers?: Record<string, string[]>;
  /** When it was answered. */
  at: Timestamp;
  /** What was allowed in place of what was asked, exactly. */
  edited?: string;
  /** The same, safe to show. */
  edited_display?: string;
  /** What a person should know of it. */
  edited_warnings?: string[];
  /** What was picked. */
  ids?: string[];
  /** Whether the choice lets the agent go ahead. */
  ok?: boolean;
  /** The option chosen. */
  option_id?: string;
  /** Why, in the words of whoever answered. */
  reason?: string;
  /** The request. */
  request_id: RequestId;
  /** Who decided. */
  resolved_by: Resolver;
  /** The session it came up in. */
  session_id: SessionId;
  /** How it ended. */
  state: RequestState;
  /** The text given (never for a secret prompt). */
  value?: string;
}

/** Who decided. */
export interface Resolver {
  /** The device, or `gateway` for a decision of the gateway's own. */
  device_id: DeviceId;
  /** Its name. */
  name: string;
}

/** The run to begin again: the one under way, or else the last, if none is named. */
export interface RestartParams {
  idempotency_key?: string | null;
  run_id?: RunId | null;
  session_id?: SessionId | null;
}

/** What to do when a runtime dies by itself. */
export type RestartPolicy = 'never' | 'on-failure' | 'always';

/** Which run to begin again; the one under way, or else the last, if absent. */
export interface RestartRun {
  /** The run. */
  run_id?: RunId | null;
}

/** A conversation that a runtime could resume. Members that the runtime does not report are null. */
export interface Resumable {
  /** Its folder. */
  cwd: string | null;
  /** The runtime's identifier: the `native_id` of a session to open. */
  native_id: NativeId;
  /** The session of the gateway in which it is open already. */
  session_id?: SessionId;
  /** Its title or its beginning. */
  title: string | null;
  /** When it last changed. */
  updated_at: Timestamp | null;
}

/** A page of a runtime's resumable conversations, in the runtime's order. A conversation that changes meanwhile may come twice. */
export interface ResumablePage {
  /** Where the next page begins, to be given as `cursor`; absent if this is the last. */
  next?: string;
  /** The conversations of the page. */
  resumable: Resumable[];
}

/** What can be promised to a reader that comes with a cursor. */
export type Resume = 'ok' | 'gap' | 'reset' | 'ahead';

/** An answer to one interrupt. */
export interface ResumeEntry {
  /** The interrupt: a request. */
  interruptId: string;
  /** As the interrupt's `responseSchema` says. */
  payload?: JsonObject;
  /** `resolved` with a payload, or `cancelled`. */
  status: ResumeStatus;
}

/** What became of an interrupt, in the client's words. */
export type ResumeStatus = 'resolved' | 'cancelled';

/** How much harm a yes could do, by the gateway's own judgement of what is asked. */
export type Risk = 'low' | 'elevated' | 'danger';

/** A run. */
export interface Run {
  /** Its name. */
  run_id: RunId;
}

/** What a client sends to run: AG-UI's `RunAgentInput`. */
export interface RunAgentInput {
  /** Not carried: said so once. */
  context?: JsonObject[];
  /** `plexus`: `{cursor, follow, cancel, partial}`. */
  forwardedProps?: JsonObject;
  /** The conversation as the client has it. People's messages at its end that the session does not have are the prompt. */
  messages: JsonObject[];
  /** Answers to interrupts, all that are open. */
  resume?: ResumeEntry[] | null;
  /** The client's own name for this run; said back. The same POST again starts and decides nothing. */
  runId: string;
  /** What the gateway said; anything else is not carried, and said so. */
  state?: JsonObject;
  /** The client's own name for the conversation; said back, and not looked at. */
  threadId: string;
  /** Not carried: said so once. */
  tools?: JsonObject[];
}

/** How a run stands: the body of `run_started`, `run_status` and `run_ended`. */
export interface RunBody {
  /** Who prompted, or who cancels. */
  by?: Resolver;
  /** Whether it is being cancelled. */
  cancelling?: boolean;
  /** The idempotency key of the prompt. */
  key?: string;
  /** Why, where it failed or is being cancelled. */
  message?: string;
  /** The run. */
  run_id: RunId;
  /** Where it stands. */
  status: RunStatus;
  /** The agent's own word for how it ended. */
  stop_reason?: string;
}

/** How much of the model's context is left. */
export interface RunContext {
  context_left_percent: number;
  run_id: RunId;
  session_id: SessionId;
}

/** One stretch of work, from a prompt to its end: `r_` and 26 characters, minted by the gateway. */
export type RunId = string;

/** A run as clients see it. */
export interface RunInfo {
  /** The run. */
  run_id: RunId;
  /** Its conversation. */
  session_id: SessionId;
  /** When it began. */
  started_at: Timestamp;
  /** Where it stands. */
  status: RunStatus;
}

/** Where a run stands (the UI protocol's `run.status`, and `queued`). */
export type RunStatus = 'queued' | 'running' | 'awaiting_ui' | 'completed' | 'error' | 'cancelled';

/** How a run stands, in the words of the UI protocol. */
export interface RunStatusNote {
  message?: string;
  run_id: RunId;
  session_id: SessionId;
  status: RunStatus;
}

/** A runtime as clients see it. */
export interface Runtime {
  /** The agent's own name and version, once it said them. */
  agent?: string;
  /** What it can do, once it said so; more may come with its first session. */
  capabilities?: Capabilities;
  /** The program and its arguments, or the endpoint. */
  connect: Connect;
  /** The folder it runs in. */
  cwd: string;
  /** The dialect it speaks. */
  dialect: string;
  /** Counts its starts; 0 while a process that an earlier gateway left has not said which one it is. */
  generation: number;
  /** When it last said anything: shown a few seconds late at most. A long silence is normal in agents that retry. */
  heard_at?: Timestamp;
  /** Names the process, and no other: random, made for each start. None for endpoints, and before it was started. */
  instance?: string;
  /** Whether it outlives the gateway. */
  outlives?: boolean;
  /** The process, while it lives. */
  pid?: number;
  /** Why it is not ready, in words. */
  problem?: string;
  /** Its name. */
  runtime_id: RuntimeId;
  /** Where it stands. */
  state: RuntimeState;
  /** The end of what it wrote to stderr. */
  stderr_tail?: string;
  /** When it last changed. */
  updated_at: Timestamp;
}

/** How a runtime's process ended. */
export interface RuntimeExit {
  /** Its exit code. */
  code?: number;
  /** What the gateway knows of the cause: "stopped by NAME", "cannot start: …", "took no orders for 10 s". */
  reason?: string;
  /** The signal that killed it (`SIGKILL` …). */
  signal?: string;
  /** The end of what it wrote to stderr. */
  stderr_tail?: string;
  /** Whether it was asked to stop; absent of statuses other than `exited`. */
  stopped?: boolean;
}

/** A runtime was stopped for good. */
export interface RuntimeGone {
  runtime_id: RuntimeId;
}

/** An attached agent program or endpoint, named by its user (`gemini`) or after its preset (`gemini-2`). */
export type RuntimeId = string;

/** A runtime stands differently. */
export interface RuntimeNote {
  runtime: Runtime;
}

/** Where a runtime stands. */
export type RuntimeState = 'starting' | 'ready' | 'restarting' | 'exited';

/** What happened to the runtime: the body of `runtime_status`. */
export type RuntimeStatus = RuntimeExit & {
  /** Which start of the runtime. */
  generation?: number;
  /** Why, in words. */
  message?: string;
  /** Whether it goes on with an earlier conversation. */
  resumed?: boolean;
  /** The runtime. */
  runtime_id: RuntimeId;
  /** `attached`, `reattached`, `lost`, `exited` or `stuck`. */
  status: string;
};

/** Runtimes. */
export interface Runtimes {
  /** Those that the caller may see. */
  runtimes: Runtime[];
}

/** An answer as UI clients give it: members of theirs that we do not know are none of our business. */
export interface Said {
  answers?: Record<string, string[]> | null;
  digest?: string | null;
  edited?: string | null;
  ids?: string[] | null;
  ok?: boolean | null;
  option_id?: string | null;
  reason?: string | null;
  remember?: boolean | null;
  value?: string | null;
}

/** What a device may do. */
export type Scope = 'watch' | 'prompt' | 'approve' | 'admin';

/** What the gateway does for an ACP agent that asks its client, inside the session's folder. Nothing, unless set. */
export interface Serve {
  /** Reads files (`fs/read_text_file`), and writes them (`fs/write_text_file`) when people say so. */
  fs?: boolean;
  /** Runs commands (`terminal/*`) when people say so. */
  terminal?: boolean;
}

/** The program that answers. */
export interface Server {
  name: string;
  version: string;
}

/** A session as clients see it. */
export interface Session {
  /** Whether it was put away: kept and searchable, out of the way in lists. */
  archived: boolean;
  /** When it was opened. */
  created_at: Timestamp;
  /** The folder it works in. */
  cwd: string;
  /** The dialect of that runtime. */
  dialect: string;
  /**
   * What it does now: the title of the tool that runs, or `thinking`, `writing`, `working`; null between runs. The
   * agent's words.
   */
  doing: string | null;
  /** The beginning of what a person said last. */
  last_user_message?: string;
  /** How many messages were exchanged, of people and of the agent; absent of sessions from before they were counted. */
  message_count?: number;
  /** The runtime's own identifier for it. */
  native_id: NativeId | null;
  /** How many requests wait for people. */
  open_requests: number;
  /** When a run last began in it, whoever began it; absent until one has. */
  prompted_at?: Timestamp;
  /** Prompts that wait for their turn, first one next. */
  queue?: Queued[];
  /** Which ones. */
  requests?: RequestId[];
  /** Whether it ended with its runtime, which can be started again: then it goes on. */
  restartable?: boolean;
  /** The run under way. */
  run_id?: RunId;
  /** Its runtime. */
  runtime_id: RuntimeId;
  /** The conversation. */
  session_id: SessionId;
  /** Where it stands. */
  state: SessionState;
  /** Its title. */
  title: string | null;
  /** When something last happened in the conversation: not, that its runtime went or came back. */
  updated_at: Timestamp;
}

/** A session to put away, or to take back. */
export interface SessionArchive {
  /** False takes it back; true if absent. */
  archived?: boolean | null;
  session_id?: SessionId | null;
}

/** A session was forgotten. */
export interface SessionGone {
  session_id: SessionId;
}

/** One conversation in a runtime: `s_` and 26 characters, minted by the gateway. */
export type SessionId = string;

/** A session to open, or with `native_id` to take up. */
export interface SessionNew {
  cwd?: string | null;
  native_id?: string | null;
  runtime_id: RuntimeId;
  title?: string | null;
}

/** A session stands differently. */
export interface SessionNote {
  session: Session;
}

/** Another title for a session. */
export interface SessionRename {
  session_id?: SessionId | null;
  title: string;
}

/** Where a session stands. */
export type SessionState = 'idle' | 'running' | 'waiting' | 'exited';

/** A page of sessions, those with the latest news first. */
export interface Sessions {
  /** What to give as `cursor` for the sessions after these; absent where there are none. */
  next?: string;
  /** The sessions. */
  sessions: Session[];
}

/** A link to one session. Whoever has it may watch until it expires, or is revoked like a device. */
export interface Share {
  device_id: DeviceId;
  expires_at: Timestamp;
  token: string;
  url: string;
}

/** A browser to sign in by the token that came with the request. */
export interface SignIn {
  cookie: true;
  /** What to call it; as the token's device, if absent. */
  name?: string | null;
}

/** A skill of an agent. */
export interface Skill {
  description: string;
  dir: string;
  id: string;
  /** When its file last changed; 0 where the agent does not say. */
  mtime_ms: number;
  name: string;
  path: string;
  scope: SkillScope;
}

/** A skill that could not be read, and why. */
export interface SkillError {
  message: string;
  path: string;
}

/** Whose skill it is. */
export type SkillScope = 'user' | 'repo';

/** The skills of an agent, as it tells them. */
export interface Skills {
  errors: SkillError[];
  skills: Skill[];
  /** Whether there are more. */
  truncated: boolean;
}

/**
 * What a client that joins late must see of a session: the newest messages and tool calls, the latest of everything else,
 * and the cursor at which this is exact. The messages and tools are those from `before` on.
 */
export interface Snapshot {
  /** Where to page back from for older ones; absent unless `truncated`. */
  before?: Cursor;
  /** The snapshot covers the log up to here; reading on after it misses and repeats nothing. */
  cursor: Cursor;
  latest: {
    plan?: Plan;
    available_commands_update?: Update;
    current_mode_update?: Update;
    config_option_update?: Update;
    session_info_update?: Update;
    usage_update?: Update;
    runtime_status?: RuntimeStatus;
  };
  /** The newest messages, in order; an unfinished one has its text so far. */
  messages: Message[];
  /** The open requests; long ones are cut. */
  requests: Request[];
  /** The session. */
  session: Session;
  /** The latest state of each of the agent's surfaces. */
  surfaces: JsonObject[];
  /** The newest tool calls, in order, each with its latest state. */
  tools: Tool[];
  /** Whether retention has removed older events. */
  trimmed: boolean;
  /** Whether the log has older messages and tools than these. */
  truncated: boolean;
}

/** What stands for the events that cannot be replayed any more; events go on after `cursor`. */
export interface Snapshots {
  cursor: Cursor;
  /** Sessions without a snapshot here, because they are too many. */
  omitted?: number;
  /** As it was attached: a session, or `*`; absent of a stream over HTTP. */
  session_id: string;
  snapshots: Snapshot[];
}

/** What to say to the agent: `text`, ACP's `content` blocks, or the UI protocol's `input`. */
export interface StartRun {
  content?: ContentBlock[] | null;
  idempotency_key?: string | null;
  input?: Input | null;
  /** For the runtime, as it is. */
  meta?: JsonObject | null;
  session_id?: SessionId | null;
  text?: string | null;
  /** Where the user works: the UI protocol's `UiContextSnapshot`. */
  ui_context?: JsonObject | null;
}

/** A runtime to start: a `preset`, or a `dialect` with a `command` or an endpoint to `connect` to. */
export interface StartRuntime {
  /** The ACP authentication method to use without asking. */
  auth_method?: string | null;
  /** The program and its arguments. */
  command?: string[] | null;
  /** An endpoint: `ws://…`, `unix:…`, `http://…`. */
  connect?: string | null;
  /** The folder to run in, absolute. */
  cwd?: string | null;
  /** The dialect that the runtime speaks. */
  dialect?: string | null;
  /** Variables to set. */
  env?: Record<string, string>;
  /** Its name; made from the program's if absent. */
  id?: RuntimeId | null;
  /** Whether a program outlives the gateway. It does, unless this says no. */
  outlive?: boolean | null;
  /** Variables to pass through from the gateway's own environment. */
  pass_env?: string[];
  /** A preset's name, in place of `dialect` and `command`. */
  preset?: string | null;
  /** Where a Gemini UI takes prompts, beside the mirror that is connected to. */
  remote?: string | null;
  /** `never`, `on-failure` or `always`. */
  restart?: RestartPolicy | null;
  /** What an endpoint wants to be told before it talks: a password or a token. Never shown again. */
  secret?: string | null;
  /** What the gateway does for an ACP agent: `{fs, terminal}`. */
  serve?: Serve | null;
  /** `_meta` to send with every ACP `session/new`. */
  session_meta?: JsonObject | null;
}

/**
 * What a request is about, so that a screen can draw it and group what is alike. The words to read before an answer are
 * in `Request::display`(super::Request::display). All text here is safe to show, by the rules of `display`.
 */
export type Subject = {
  /** The line for a shell, or the program and its arguments one by one. Left out above `ABOUT_MAX` bytes. */
  argv?: string[];
  /** The folder, where the runtime names one. */
  cwd?: string | null;
  type: 'command';
} | {
  /** The files, `ABOUT_FILES` at most. */
  files: Touched[];
  /** How many more there are. */
  more?: number;
  type: 'edit';
} | {
  type: 'fetch';
  /** The address, cut to `ABOUT_MAX` bytes. */
  url: string;
} | {
  /** Its name, cut to `ABOUT_MAX` bytes; the arguments are in `display`. */
  name: string;
  type: 'tool';
} | {
  type: 'plan';
} | {
  /** Them, in order. */
  questions: Question[];
  type: 'question';
} | {
  type: 'unreadable';
};

/** A subscription, as a browser's `PushSubscription.toJSON()` gives it. */
export interface Subscribe {
  /** Where to push to: `https`, at a known push service. */
  endpoint: string;
  /** When it ends, if the browser says so; we learn it from the service. */
  expirationTime?: number | null;
  keys: SubscribeKeys;
}

/** A subscription's keys, in base64url. */
export interface SubscribeKeys {
  auth: string;
  p256dh: string;
}

/** The kinds of news that a place wants. */
export interface TargetWants {
  /** Runs that complete. */
  ends: boolean;
  /** Runs that fail. */
  failures: boolean;
  /** Requests that open. */
  requests: boolean;
}

/** A phone that joined, for the phone. */
export interface Ticket {
  /** When it is too late. */
  expires_at: Timestamp;
  /** What the computer shows, too. */
  number: number;
  /** Its secret, to hear what comes of it. */
  ticket: string;
}

/**
 * A wall-clock instant in milliseconds since the Unix epoch; shown as RFC 3339 in UTC (`2026-11-21T09:30:00.125Z`).
 *
 * Only for people to read: order comes from `Position`(super::Position), deadlines from a monotonic clock.
 */
export type Timestamp = string;

/** One tool call in its latest state. */
export interface Tool {
  /** The position of its first event. */
  position: number;
  /** The run it belongs to. */
  run_id: RunId;
  /** The runtime's identifier. */
  tool_call_id: string;
  [member: string]: unknown;
}

/** A tool call, or news of one. */
export interface ToolCall {
  _meta?: JsonObject | null;
  content?: JsonObject[] | null;
  kind?: string | null;
  locations?: JsonObject[] | null;
  sessionUpdate: string;
  /** `pending`, `in_progress`, `completed` or `failed`. */
  status?: string | null;
  title?: string | null;
  toolCallId: string;
  [member: string]: unknown;
}

/** A file that is to be changed. */
export interface Touched {
  /** Lines that come, where they were counted. */
  added?: number;
  /** Whether it is written whole, whatever it held. */
  new?: boolean;
  /** Its path, cut to `ABOUT_MAX` bytes. */
  path: string;
  /** Lines that go, where they were counted. */
  removed?: number;
}

/** What the client can show. */
export interface UiCapabilities {
  /** Whether it can show a confirmation: such clients hear of questions first. */
  supports_confirm?: boolean;
  [member: string]: unknown;
}

/** The body of an event of ACP's kinds: ACP's own `update` object. */
export interface Update {
  sessionUpdate: string;
  [member: string]: unknown;
}

/** How bad it is. */
export type Verdict = 'ok' | 'warn' | 'fail';

/** Somebody who looks at a session. */
export interface Viewer {
  /** The device. */
  device_id: DeviceId;
  /** Its name. */
  name: string;
}

/** Who the client is. */
export interface You {
  approve_up_to?: Risk;
  device_id: DeviceId;
  name: string;
  scopes: Scope[];
}

/** What clients call over the WebSocket: what each takes and gives. */
export interface Methods {
  /** Says hello; comes first */
  'initialize': { params: Initialize; result: Initialized };
  /** Runtimes */
  'runtime.list': { params: Nothing; result: Runtimes };
  /** Sessions */
  'session.list': { params: Listing; result: Sessions };
  /** Opens a session */
  'session.new': { params: SessionNew; result: Session };
  /** Gives a session a title, which the agent's own changes no more */
  'session.rename': { params: SessionRename; result: Session };
  /** Puts a session away, or with `archived` false takes it back */
  'session.archive': { params: SessionArchive; result: Session };
  /** Follows a session, or all with `*`: `gateway.hello`, a snapshot if need be, what came after the cursor, `gateway.live`, and what comes */
  'session.attach': { params: AttachParams; result: Attached };
  /** Ends it */
  'session.detach': { params: AttachParams; result: Detached };
  /** Events, a page at a time */
  'session.history': { params: HistoryParams; result: History };
  /** Prompts; queued while another run is under way */
  'run.start': { params: StartRun; result: Accepted };
  /** Stops a run; its open requests are withdrawn first */
  'run.cancel': { params: CancelParams; result: Cancelled };
  /** Sends the prompt of a run once more: of the one under way, which is cancelled first, of the one named, or of the last */
  'run.restart': { params: RestartParams; result: Accepted };
  /** Answers a request; the first answer wins, a later one is error -32010 with the winner's receipt in `data` */
  'ui.request.answer': { params: AnswerParams; result: Receipt };
  /** Says what your screen shows and whether somebody looks at it; gone with the connection. Only a focused screen keeps notifications off */
  'presence.update': { params: Focus; result: Looking };
  /** Asks the session's runtime */
  'model.list': { params: OfSession & { [member: string]: unknown }; result: JsonObject };
  /** Asks the session's runtime */
  'model.set': { params: OfSession & { [member: string]: unknown }; result: JsonObject };
  /** Asks the session's runtime */
  'mcp.list': { params: OfSession & { [member: string]: unknown }; result: JsonObject };
  /** Asks the session's runtime */
  'skills.list': { params: OfSession & { [member: string]: unknown }; result: JsonObject };
  /** Tells the session's runtime */
  'ui.context.update': { params: OfSession & { [member: string]: unknown }; result: JsonObject };
}

/** What the gateway notifies clients of. */
export interface Notifications {
  /** An event */
  'agent.event': Envelope;
  /** Follows `run_started`, `run_status` and `run_ended` */
  'run.status': RunStatusNote;
  /** Follows `usage_update` */
  'run.context': RunContext;
  /** A request ended: everybody hears how, losers included */
  'ui.request.resolved': Resolution;
  /** Who looks at a session that you follow, you included */
  'presence.changed': PresenceNote;
  /** A session stands differently */
  'session.updated': SessionNote;
  /** A runtime stands differently */
  'runtime.updated': RuntimeNote;
  /** A session was forgotten, bytes and all */
  'session.deleted': SessionGone;
  /** A runtime was stopped for good */
  'runtime.removed': RuntimeGone;
  /** The first thing that every attach hears */
  'gateway.hello': Hello;
  /** In place of what can no longer be replayed, unless `resume` is `ok` */
  'gateway.snapshot': Snapshots;
  /** Everything up to here was told */
  'gateway.live': Live;
  /** You fell behind and have caught up; nothing was lost */
  'gateway.lag': Lag;
  /** Your response to a `ui.*.request` was not taken */
  'gateway.error': NotTaken;
}

/** What the gateway asks clients; each is answered with an `Answer`. */
export interface Questions {
  /** A question: answer by a JSON-RPC response with this id, or by `ui.request.answer` */
  'ui.confirm.request': Request & {
    message: string;
    danger_level: 'normal' | 'danger';
  };
  /** A question: answer by a JSON-RPC response with this id, or by `ui.request.answer` */
  'ui.prompt.request': Request & {
    message: string;
    danger_level: 'normal' | 'danger';
  };
  /** A question: answer by a JSON-RPC response with this id, or by `ui.request.answer` */
  'ui.pick.request': Request & {
    message: string;
    danger_level: 'normal' | 'danger';
  };
}
