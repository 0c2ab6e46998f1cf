// What is on the wire. Made by `scripts/web build` from what the gateway says of itself (`plexus schema`): not to be edited.
// Members that are not here may come at any time, and are let be.

/** An accepted prompt. */
export interface Accepted {
  /** The number of runs before it. */
  ahead: number;
  /**
   * The end of the run, if the prompt was sent before under the same key and its run has ended. The run's last event is stored by
   * then.
   */
  ended?: Ended;
  /** `true` if the prompt is queued. */
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

/** The result of a press on a surface. */
export interface Acted {
  /** Always true; a refusal is an error. */
  accepted: boolean;
  /** The request that was answered. */
  request_id?: RequestId;
  /** The surface's revision after the press. */
  rev: number;
  /** The run whose prompt reports the press to the agent. */
  run_id?: RunId;
}

/** An agent with a terminal of its own. */
export interface AgentLink {
  /** The name for `plexus link`. */
  agent: string;
  /** The problem, or the alternative to linking. */
  detail?: string;
  /** The reason why the agent's version is not linked. */
  gate?: string;
  /** The time of the last message from the agent's terminals; absent if there was none since the gateway started. */
  heard_at?: Timestamp;
  /** The changes that linking makes; absent if the agent cannot be linked, or is linked. */
  link?: LinkOffer;
  /** Other settings that prevent the gateway from seeing the agent's sessions. */
  notices: string[];
  /** The path of the program; absent if it is not on PATH. */
  path?: string;
  /** The program. */
  program: string;
  /** The part of the agent's sessions that the gateway sees. */
  seen: string;
  /** The state of the link. */
  state: LinkStanding;
  /** The displayed name. */
  title: string;
  /** The changes that unlinking makes; absent if the files have no entries of the gateway. */
  unlink?: LinkOffer;
  /** The version that the program prints. */
  version?: string;
}

/** The agents with terminals of their own. */
export interface AgentLinks {
  agents: AgentLink[];
}

/** The agents, in the order of the presets. */
export interface Agents {
  /** The agents. */
  agents: KnownAgent[];
}

/**
 * A client's answer to a request. Exactly one of `option_id`, `ok`, `value`, `ids`, `answers` is given (`value: null`, `ids: []` and
 * `answers: {}` mean "cancelled").
 */
export interface Answer {
  /** The answer to each question. */
  answers?: Record<string, string[]> | null;
  /** The digest of the displayed request; a stale one is refused. */
  digest?: string | null;
  /** The text to use instead of the request's `editable.value`; only with an option that allows it once. */
  edited?: string | null;
  /** The ids of the picked items. */
  ids?: string[] | null;
  /** Yes or no. */
  ok?: boolean | null;
  /** The id of the chosen option. */
  option_id?: string | null;
  /** A reason for the agent to read. */
  reason?: string | null;
  /** `true` to remember the choice. */
  remember?: boolean | null;
  /** The text; `null` means "cancelled". */
  value?: string | null;
}

/** An answer: exactly one of `option_id`, `ok`, `value`, `ids`. */
export type AnswerParams = Said & {
  /** A repeated key returns the same receipt. */
  idempotency_key?: string | null;
  request_id: string;
};

/** The kind of answerer. */
export type AnsweredBy = 'person' | 'rule' | 'agent';

/** Names of devices by the risk that they may answer. */
export interface AnsweredOn {
  danger?: string[];
  elevated?: string[];
}

/** A question by a surface, in the form that its agent gets. */
export interface AskView {
  /** The pressed component with its context and inputs; null if the user declined. */
  answer?: Json;
  /** The request. */
  ask_id: RequestId;
  /** The author of the answer. */
  by?: string;
  /** `open`, `answered`, `expired`, `withdrawn` or `orphaned`. */
  state: RequestState;
}

/** The subscription, and its start: after a cursor, or from the `start` or `now`; from the start if neither is given. */
export interface AttachParams {
  /** A cursor, or `now`. */
  after?: string | null;
  /** From the oldest stored event, or only new events */
  from?: 'start' | 'now';
  /** `native` adds the runtime's own message to each event. */
  projection?: Projection;
  /** A session, or `*` for all. */
  session_id: string;
}

/** The result of `session.attach`. */
export interface Attached {
  attached: boolean;
  /** Events follow after this cursor. */
  cursor: Cursor;
  head: Cursor;
  resume: Resume;
  /** The subscription: a session, or `*`. */
  session_id: string;
}

/** A started pairing. */
export interface Begun {
  /** The code to type on the device. */
  code: string;
  expires_at: Timestamp;
  pairing_id: string;
  /** The address as a QR code, in SVG. */
  qr: string;
  /** The address to open instead of typing the code. */
  url: string;
}

/** The run to cancel; the current one if absent. */
export interface CancelParams {
  /** The reason, for users and for runtimes that accept one. */
  reason?: string | null;
  run_id?: RunId | null;
  session_id?: SessionId | null;
}

/** The run to cancel; the current one if absent. */
export interface CancelRun {
  /** The reason, for users and for runtimes that accept one. */
  reason?: string | null;
  /** The run. */
  run_id?: RunId | null;
}

/** The result of `run.cancel`. */
export interface Cancelled {
  ok: boolean;
  run_id: RunId;
  /** `running` for a run that ends when its runtime reports it; `cancelled` for a queued one, which has ended. */
  status: RunStatus;
}

/** The capabilities of a runtime: on the wire a list of names. Unknown names, from a later version, are skipped when read. */
export type Capabilities = Capability[];

/** One thing that some runtimes can do. */
export type Capability = 'load' | 'resume' | 'list' | 'fork' | 'close' | 'delete' | 'logout' | 'cancel' | 'requests' | 'reasons' | 'edits' | 'modes' | 'models' | 'images' | 'audio' | 'embedded_context' | 'mcp_http' | 'mcp_sse' | 'mcp_list' | 'skills_list' | 'permission_preflight_events' | 'context_inspect' | 'run_diagnostics' | 'shell_exec' | 'shell_tasks' | 'shell_detach' | 'tasks' | 'tool_call' | 'theme_set';

/** A limit of spending. Each figure is a limit of its own: the first that is reached counts. Without figures there is no ceiling. */
export interface Ceiling {
  /** The maximum amounts of money, at most one of each currency. Only reports of agents in the same currency count. */
  costs?: Money[];
  /** The maximum number of tokens read and written. */
  tokens?: number | null;
}

/** The subject of a ceiling. */
export type CeilingOf = 'day' | 'session';

/** Changed ceilings. An absent one is as configured; one without figures is no ceiling. */
export interface CeilingSettings {
  /** The ceiling of what all sessions spend in a day. */
  day?: Ceiling | null;
  /** The ceiling of what each session spends. */
  session?: Ceiling | null;
  /** The ceilings of single sessions, in place of `session`; at most 1000. */
  sessions?: Record<string, Ceiling>;
}

/** The ceilings in the form that administrators see. */
export interface CeilingsView {
  /** The spending when a user last allowed today to continue: the ceiling counts from there again. */
  allowed: Spending;
  /** The ceilings in the configuration file. */
  configured: ConfiguredCeilings;
  /** The effective ceiling of a day. */
  day: Ceiling;
  /** The time when the day ends. */
  day_ends: Timestamp;
  /** The effective ceiling of each session. */
  session: Ceiling;
  /** The ceilings set by `PUT`; they take precedence over the configuration. */
  set: CeilingSettings;
  /** The spending of today, by the clock of the gateway's machine. */
  today: Spending;
}

/** The kind of comparison of a file. */
export type ChangeCompared = 'text' | 'binary' | 'large' | 'link' | 'unreadable';

/** The diff of a file. */
export interface ChangeDiff {
  /** The kind of comparison of the file. */
  compared: ChangeCompared;
  /** A unified diff with three lines of context; empty if the file is not compared. */
  diff: string;
  /** A digest of the change; it differs once the file changes again. */
  digest: string;
  /** The path before it was renamed. */
  from?: string;
  /** The hunks that `diff` has. */
  hunks: ChangeHunk[];
  /** The path. */
  path: string;
  /** The reason why there is no diff. */
  reason?: string;
  /** The change of the file. */
  status: ChangeStatus;
  /** `true` if hunks were left out at the end. */
  truncated: boolean;
}

/** The lines of a hunk. */
export interface ChangeHunk {
  /** The number, from 0. */
  index: number;
  /** The number of lines after the change. */
  new_lines: number;
  /** The first line after the change. */
  new_start: number;
  /** The number of lines before the change. */
  old_lines: number;
  /** The first line before the change. */
  old_start: number;
}

/** The change of a file. */
export type ChangeStatus = 'added' | 'modified' | 'deleted' | 'renamed';

/** The author of a change, as far as the time of the change shows. */
export type ChangedBy = 'session' | 'others' | 'both';

/** A file that changed. */
export interface ChangedFile {
  /** The number of added lines; absent if the lines are not compared. */
  added?: number;
  /** The author of the change. */
  by: ChangedBy;
  /** The kind of comparison of the file. */
  compared: ChangeCompared;
  /** A digest of the change; it differs once the file changes again. */
  digest: string;
  /** The path before it was renamed. */
  from?: string;
  /** The path below the session's folder; a name that is not UTF-8 as git quotes it. */
  path: string;
  /** The reason why there is no diff. */
  reason?: string;
  /** The number of removed lines; absent if the lines are not compared. */
  removed?: number;
  /** The runs in which the file changed. */
  runs: RunId[];
  /** The change of the file. */
  status: ChangeStatus;
}

/** A run, and the number of files that changed in it. */
export interface ChangedRun {
  /** The time when the run began. */
  at: Timestamp;
  /** The number of paths that changed in the run; a renamed file has two. */
  files: number;
  /** `true` if the start was recorded after the run had begun: some of its changes may count as those of others. */
  late?: boolean;
  /** The first 120 characters of its prompt; empty if the prompt was sent elsewhere. */
  prompt: string;
  /** The run. */
  run_id: RunId;
}

/** The state that files are compared with. */
export interface ChangesBase {
  /** The time of the scan of the folder: before the first prompt, unless the note `baseline_late` is present. */
  at: Timestamp;
}

/** A note about a part that was left out of a response. */
export interface ChangesNote {
  /** A stable code. */
  code: string;
  /** The note, for users. */
  text: string;
}

/** Comments on changed lines. */
export interface ChangesReview {
  /** The comments, at most 200, with at most 64 KiB of text. */
  comments: LineComment[];
  /** The beginning of the prompt. */
  text?: string | null;
}

/** The source of a list of changes. */
export type ChangesSource = 'git' | 'none';

/** The changed files since the first prompt of a session. */
export interface ChangesView {
  /** The state that files are compared with; absent before the first prompt. */
  base?: ChangesBase;
  /** The files, by path, at most 2,000. */
  files: ChangedFile[];
  /** The number of changed files that are not listed. */
  left_off: number;
  /** The parts that were left out, with the reason. */
  notes: ChangesNote[];
  /** A digest of all other members. */
  rev: string;
  /** The session's folder. */
  root: string;
  /** The runs whose changes are known, oldest first. */
  runs: ChangedRun[];
  /** The session. */
  session_id: SessionId;
  /** The source of the changes; `none` if no changes are known. */
  source: ChangesSource;
}

/** A check and its result. */
export interface Check {
  /** The result in words. */
  detail: string;
  /** The fix. */
  fix?: string;
  /** The subject of the check. */
  name: string;
  /** The severity of the result. */
  state: Verdict;
}

/** The checks and their results. */
export interface Checks {
  checks: Check[];
}

/** The meaning of an option, so that clients can draw it (ACP `PermissionOptionKind`). */
export type Choice = 'allow_once' | 'allow_always' | 'reject_once' | 'reject_always' | 'other';

/** A piece of a message. */
export interface Chunk {
  /** The metadata: `plexus.by` is the author of a user's message. */
  _meta?: JsonObject | null;
  content: Content;
  messageId?: string | null;
  sessionUpdate: string;
  [member: string]: unknown;
}

/** A file or terminal call that an agent made to its client, and the outcome: the body of `client_served`. */
export interface ClientServed {
  /** The client that served the call. */
  by: Resolver;
  /** The size of the client's response, in bytes. */
  bytes?: number;
  /** The client's error code. */
  code?: number;
  /** The command line. */
  command?: string;
  /** The client's error message. */
  message?: string;
  /** ACP's method name. */
  method: string;
  /** The file's path. */
  path?: string;
  /** `done` or `failed`. */
  status: string;
  /** The terminal, by the client's own id. */
  terminal_id?: string;
}

/** A one-time code. */
export interface Code {
  /** The secret; valid for one device. */
  code: string;
  /** The time when the code expires. */
  expires_at: Timestamp;
}

/** The ceilings of the configuration file. */
export interface ConfiguredCeilings {
  /** The ceiling of what all sessions spend in a day. */
  day: Ceiling;
  /** The ceiling of what each session spends. */
  session: Ceiling;
}

/** The confirmation of a pairing. */
export interface Confirm {
  /** The number that both sides display. */
  number: number;
}

/** The connection of the gateway to a runtime. */
export type Connect = {
  /** A program to start, which communicates over its stdin and stdout: the program, then its arguments. */
  command: string[];
} | {
  /** A running endpoint to connect to: `ws://…`, `unix:…`, `http://…`. */
  endpoint: string;
};

/** A part of a message: ACP's content block. */
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

/** An ACP content block, sent unchanged. */
export interface ContentBlock {
  type: string;
  [member: string]: unknown;
}

/** The end of the result of `session.history`. */
export type CountedEnd = PageEnd & {
  events_sent: number;
};

/** A place in the log: keep it, and give it back as it is. */
export type Cursor = string;

/** The missing parts of an item that has, with `merge`, only some parts of a long text. */
export interface Cut {
  /** The number of missing parts after this one. */
  after: number;
  /** The number of missing parts before this one. */
  before: number;
}

/** The result of `session.detach`. */
export interface Detached {
  /** `true` if the session was followed. */
  detached: boolean;
}

/** A device without its secrets. */
export type Device = Grant & {
  /** The time when the device was enrolled. */
  created_at: Timestamp;
  /** The identifier. */
  device_id: DeviceId;
  /** The time when the device expires. */
  expires_at?: Timestamp;
  /** The kind of device. */
  kind: DeviceKind;
  /** The time when the device last authenticated. */
  last_seen_at?: Timestamp;
  /** `true` if this is the local administrator, which cannot be revoked. */
  local: boolean;
  /** `true` if this is a browser of this user on this machine, whose enrolment ends 30 days after its last use. */
  local_browser: boolean;
  /** The name. */
  name: string;
  /** `true` if the device has an open stream, socket or long poll. */
  online: boolean;
  /** `true` if this is the calling device. */
  you: boolean;
};

/** An enrolled client installation: `d_` and 26 characters. */
export type DeviceId = string;

/** The kind of a device. */
export type DeviceKind = 'device' | 'share' | 'local' | 'agent';

/** The enrolled devices. */
export interface Devices {
  devices: Device[];
}

/** A side of a diff. */
export type DiffSide = 'new' | 'old';

/** The result of a call. */
export interface Drawn {
  /** The revision now. */
  rev: number;
  /** The surface. */
  surface: string;
}

/** Changes to a session; absent members stay unchanged. */
export interface EditSession {
  /** `true` if the session is archived. */
  archived?: boolean | null;
  /** The new title; the agent no longer changes it. */
  title?: string | null;
}

/** The part of a request that may be edited before it is allowed. */
export interface Editable {
  /** The name of the part ("Command"). */
  label: string;
  /** The agent's text, unchanged; for an edit field beside `display` only. */
  value: string;
}

/** The end of a run. */
export interface Ended {
  /** The reason why the run failed or never began, shortened. */
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
  /** With `merge`: the time of the last merged event, if there are several. */
  at_last?: Timestamp;
  cursor: Cursor;
  /** With `merge`: the cursor of the first merged event; `cursor` is that of the last. */
  cursor_first?: Cursor;
  cut?: Cut;
  /** The canonical body; its shape depends on the kind. */
  event: Bodies[K];
  kind: K;
  /** With `merge`: the number of merged events, for kinds that can be merged. */
  merged?: number;
  meta: Meta;
  /** The runtime's own message, with the projection `native`. */
  native?: Json;
  run_id: RunId;
  /** The event's number within the run, from 0 without a gap. */
  seq: number;
  /** With `merge`: the number of the last merged event. */
  seq_last?: number;
  session_id: SessionId;
}

/** An event. */
export type Envelope = { [K in Kind]: EnvelopeOf<K> }[Kind];

/** The body of `error`. */
export type ErrorBody = {
  /** A stable error code. */
  code: string;
  /** The error message. */
  message: string;
} & { [member: string]: unknown };

/** A JSON-RPC error. `data.code` is stable, and the same as over HTTP. */
export interface Failure {
  code: number;
  data: FailureData;
  message: string;
}

/** The `data` of a JSON-RPC error: `code`, and the members that the problem has over HTTP. */
export type FailureData = ProblemMembers & {
  code: string;
};

/** The ticket of a device that joined. */
export interface Fetch {
  /** The ticket. */
  ticket: string;
  /** Seconds to wait for the outcome, 60 at most. */
  wait?: number | null;
}

/** A file of a session's folder. */
export interface FileMatch {
  /** The path below the session's folder. It may contain any characters: escape control characters for display. */
  path: string;
}

/** Files of a session's folder. */
export interface Files {
  /** The files whose paths match, best first. */
  files: FileMatch[];
  /** `true` if the folder has more files than were visited. */
  truncated: boolean;
}

/**
 * Bounds of an answer to a `Question`: the value of a number, the length of a text in characters, the number of choices; and the
 * format of a text.
 */
export interface Fits {
  /** `email`, `uri`, `date` or `date-time` (JSON Schema's `format`); the gateway does not check other formats. */
  format?: string;
  /** The minimum. */
  least?: number;
  /** The maximum. */
  most?: number;
  /** `number` or `integer`; text, if absent. */
  number?: NumberSort;
  /**
   * A regular expression that must match somewhere in the text (JSON Schema's `pattern`). The gateway does not check a pattern that is
   * longer than 1 KiB or that it cannot compile. It is the agent's raw text: escape it for display.
   */
  pattern?: string;
}

/** The session on the client's screen, and whether the screen has the focus. */
export interface Focus {
  /** `true` if the screen has the focus: a hidden page and a locked phone do not. */
  focused: boolean;
  /** The displayed session; `null` for a page without one. */
  session_id?: SessionId | null;
}

/** A folder of the machine. */
export interface FolderEntry {
  /** `true` if the folder has a git repository. */
  git: boolean;
  /** `true` if the folder is a symbolic link to a folder. */
  link: boolean;
  /** The name, which may contain any characters. */
  name: string;
  /** The path. */
  path: string;
}

/** Folders. */
export interface Folders {
  /** The folders in the folder, by name, at most 500. A name that is not UTF-8 is left out. */
  folders: FolderEntry[];
  /** `true` if there are more. */
  more: boolean;
  /** The parent of the folder. */
  parent?: string;
  /** The recently used folders of sessions that the caller may see, newest first, at most 20. */
  recent: RecentFolder[];
  /** The folder whose folders are listed; absent for a device that may not see them. */
  under?: string;
}

/** The gateway. */
export interface GatewayInfo {
  /** The epoch of the log. */
  epoch: string;
  /** The machine's name. */
  name: string;
  /** The origin by which other machines reach the gateway. */
  public_url?: string;
  started_at: Timestamp;
  version: string;
}

/** The rights of a device. */
export interface Grant {
  /** The maximum risk of a request that the device may answer; any if absent. */
  approve_up_to?: Risk;
  /** `true` if the device may answer from a notification, without opening the request. */
  lock_screen?: boolean;
  /** If present, the device is limited to these runtimes. */
  runtimes?: RuntimeId[];
  /** The scopes. */
  scopes: Scope[];
  /** If present, the device is limited to these sessions. */
  sessions?: SessionId[];
}

/** The first message to a subscriber. */
export interface Hello {
  epoch: string;
  head: Cursor;
  oldest: Cursor;
  /** The open requests; long texts in them are cut. */
  requests: Request[];
  resume: Resume;
  runs: RunInfo[];
  /** The subscription: a session, or `*`; absent in a stream over HTTP. */
  session_id: string;
  /** The most recently updated sessions, at most 500. */
  sessions: Session[];
  /** The number of further sessions. */
  sessions_omitted?: number;
  you: You;
}

/** The result of `session.history`: the events, written one by one, then the end. */
export type History = CountedEnd & {
  events: Envelope[];
};

/** A page of events; the first 500 by default. */
export interface HistoryParams {
  /** The cursor after which the page begins. */
  after?: string | null;
  /** A cursor: the newest events before it, in the order of the log; `now` or an empty string for the newest of all. */
  before?: string | null;
  /** The maximum number of events, at most 5000. */
  limit?: number | null;
  /** The approximate maximum size of the events, in bytes, up to 256 KiB. */
  max_bytes?: number | null;
  /** With `merge`: the approximate size to which each member of a tool call is shortened, in bytes, at least 1 KiB. */
  max_output?: number | null;
  /** `true` if events are merged into items. */
  merge?: boolean;
  session_id: SessionId;
}

/** A passage that a search found. */
export interface Hit {
  /** The event at which the passage ends. */
  cursor: Cursor;
  /** The role of the author. */
  role: string;
  /** The session of the passage. */
  session_id: SessionId;
  /** The passage around the match; matches stand between U+0002 and U+0003. */
  snippet: string;
}

/** The result of a search. */
export interface Hits {
  /** The best passages. */
  hits: Hit[];
}

/** The gateway of a pairing. */
export interface Host {
  /** The machine's name. */
  name: string;
  version: string;
}

/** The identity of a device. */
export type Identity = Grant & {
  device_id: DeviceId;
  /** The time when the device expires. */
  expires_at?: Timestamp;
  kind: DeviceKind;
  name: string;
};

/** The client's name and capabilities. */
export interface Initialize {
  ui_capabilities?: UiCapabilities;
  /** `0` if the connection speaks only the UI protocol of that version. */
  ui_protocol?: string | null;
  [member: string]: unknown;
}

/** The result of `initialize`. */
export interface Initialized {
  protocol_version: string;
  server: Server;
  server_capabilities: Record<string, boolean>;
  you: You;
}

/** A prompt in the UI protocol. */
export type Input = {
  /** The text. */
  text: string;
  type: 'text';
} | {
  /** ACP content blocks. */
  parts: ContentBlock[];
  type: 'parts';
};

/** The pairing that a device would join. */
export type Invitation = Grant & {
  expires_at: Timestamp;
  gateway: Host;
  /** The device's name, if the computer set one. */
  name?: string;
};

/** One item of a pick. */
export interface Item {
  /** A longer description. */
  detail?: string;
  /** The runtime's own id of the item. */
  id: string;
  /** The name. */
  label: string;
}

/** Any JSON, as it came. */
export type Json = unknown;

/** Any JSON object, as it came. */
export type JsonObject = { [member: string]: unknown };

/** A patch that restores an undone change. */
export interface KeptPatch {
  /** The time when the change was undone. */
  at: Timestamp;
  /** The device that undid the change. */
  by: Resolver;
  /** The identifier. */
  patch_id: string;
  /** The file. */
  path: string;
}

/** What sort of event. */
export type Kind = 'user_message_chunk' | 'agent_message_chunk' | 'agent_thought_chunk' | 'tool_call' | 'tool_call_update' | 'plan' | 'available_commands_update' | 'current_mode_update' | 'config_option_update' | 'session_info_update' | 'usage_update' | 'run_started' | 'run_status' | 'run_ended' | 'request_opened' | 'request_resolved' | 'surface_updated' | 'hook' | 'runtime_status' | 'client_joined' | 'client_left' | 'error' | 'raw' | 'request_updated' | 'client_served';

/** An agent that has a preset. */
export interface KnownAgent {
  /** A description in one line. */
  about: string;
  /** The agent's dialect. */
  dialect: string;
  /** The command that installs the agent; absent for a built-in one. */
  install?: string;
  /** `true` if its program was found. */
  installed: boolean;
  /** The variable of the gateway's environment with the agent's credentials. Without one the agent uses its own login. */
  key?: string;
  /** The name of its preset. */
  name: string;
  /** The path at which its program was found. */
  path?: string;
  /** The runtime that runs the agent, if one is ready or starting. */
  runtime_id?: RuntimeId;
}

/** A notification that the client fell behind and caught up: no event was lost. */
export interface Lag {
  /** The number of log positions by which the client was behind. */
  behind: number;
  head: Cursor;
  /** The followed name: a session, or `*`. */
  session_id: string;
}

/** A comment on lines of a changed file. */
export interface LineComment {
  /** The last line; the first if absent. */
  end_line?: number | null;
  /** The first line, from 1. */
  line: number;
  /** The file, by its path in the list. */
  path: string;
  /** The side of the diff that the lines belong to. */
  side: DiffSide;
  /** The comment. */
  text: string;
}

/** The action on a link. */
export type LinkAction = 'link' | 'unlink';

/** A file that linking or unlinking changes. */
export interface LinkFile {
  /** The change of the file: `add`, `edit` or `delete`. */
  action: string;
  /** The path of the copy of a deleted file, which is retained because a user edited the file. */
  copy?: string;
  /** The change as a unified diff. */
  diff: string;
  /** For a removal: `true` if the file is afterwards byte for byte as it was before linking. */
  exact?: boolean;
  /** The target of the file, if it is a symbolic link. */
  leads_to?: string;
  /** The path of the file. */
  path: string;
}

/** A possible change of an agent's files. */
export interface LinkOffer {
  /** The identity of exactly these changes; a client sends it back to make them. */
  digest: string;
  /** The files that change. */
  files: LinkFile[];
}

/** The state of an agent's link. */
export type LinkStanding = 'not_needed' | 'not_linked' | 'linked' | 'out_of_date' | 'damaged' | 'unknown';

/** A change that a user has seen and confirms. */
export interface LinkWish {
  /** The action to carry out. */
  action: LinkAction;
  /** The digest of the displayed changes. */
  digest: string;
}

/** A worktree, and the sessions that work in it. */
export type ListedWorktree = WorktreeView & {
  /** The sessions that work in the worktree: neither ended nor archived. */
  sessions: SessionId[];
};

/** Worktrees. */
export interface ListedWorktrees {
  /** The worktrees, newest first. */
  worktrees: ListedWorktree[];
}

/** A page of a listing. */
export interface Listing {
  /** The `next` of the previous page. */
  cursor?: string | null;
  /** The maximum number of sessions on the page, up to 1000. */
  limit?: number | null;
}

/** The end of the replay: all later events are new. */
export interface Live {
  head: Cursor;
  /** The followed name: a session, or `*`. */
  session_id: string;
}

/** A line of the runtime's stderr, or of the gateway about the runtime. */
export interface LogLine {
  /** The time when the gateway read the line. */
  at: Timestamp;
  /** The writer of the line. */
  by: LogSource;
  /** The line, safe to display. */
  text: string;
}

/** The writer of a line. */
export type LogSource = 'runtime' | 'gateway';

/** The latest stderr lines of a runtime. */
export interface Logs {
  lines: LogLine[];
}

/** A short code to look up. */
export interface Look {
  /** The code. */
  code: string;
}

/** The result of `presence.update`. */
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
  /** The number of tools. */
  tools?: number;
  transport: McpTransport;
}

/** The MCP servers of an agent. */
export interface McpServers {
  servers: McpServer[];
  /** `true` if there are more. */
  truncated: boolean;
}

/** The place where an MCP server is configured. */
export type McpSource = 'project' | 'global';

/** The state of an MCP server. */
export type McpState = 'connecting' | 'disabled' | 'ready' | 'error';

/** The connection of an agent to an MCP server. */
export type McpTransport = 'stdio' | 'http';

/** The caller. */
export type Me = Identity & {
  /** For a device with a risk limit: the devices that may answer requests above its limit, as far as it may know them. */
  answered_on?: AnsweredOn;
  /** The required value of `Plexus-CSRF` for every request of a page except GET and HEAD. */
  csrf?: string;
  gateway: GatewayInfo;
};

/** One message. The first one of a truncated snapshot may be the end of a longer message. */
export interface Message {
  /** The time when the message began. */
  at: Timestamp;
  /** The content that is not text: ACP content blocks. */
  content?: JsonObject[];
  /** `true` if this is the end of a message that began before the snapshot's window. */
  continued?: boolean;
  /** The parent tool call, if a subagent wrote the message. */
  parent_tool_call_id?: string;
  /** `true` if the message is unfinished, or was cut off. */
  partial: boolean;
  /** The position of the message's first event. */
  position: number;
  /** Whose words */
  role: 'user' | 'agent' | 'thought';
  /** The run of the message. */
  run_id: RunId;
  /** The text. */
  text: string;
}

/** The origin of an event. */
export interface Meta {
  dialect: string;
  runtime_id: RuntimeId;
}

/** An amount of money in the currency that the agent reported. Amounts of different currencies are never added or converted. */
export interface Money {
  /** The amount. */
  amount: number;
  /** The currency by ISO 4217: three capital letters. */
  currency: string;
}

/** A session's identifier inside its runtime: opaque text that the gateway never interprets. */
export type NativeId = string;

/** A question by a surface: by an existing one, or by a new one with `components`. */
export interface NewAsk {
  /** The components of a new surface. */
  components?: JsonObject[] | null;
  /** The data model of a new surface. */
  data?: JsonObject | null;
  /** The question, for the headline of the request. */
  question?: string | null;
  /** The buttons that answer, by their ids. */
  submit: string[];
  /** The surface; `ask` if absent. */
  surface?: string | null;
  /** The title of a new surface. */
  title?: string | null;
}

/** The grant of the device that redeems the code. */
export interface NewCode {
  /** The maximum risk of a request that the device may answer; any if absent. */
  approve_up_to?: Risk | null;
  /** `true` if the device may answer from a notification. */
  lock_screen?: boolean;
  /** If present, limits the device to these runtimes. */
  runtimes?: RuntimeId[] | null;
  /** The scopes: `watch`, `prompt`, `approve`, `admin`. */
  scopes: Scope[];
  /** If present, limits the device to these sessions. */
  sessions?: SessionId[] | null;
  /** The lifetime of the code in seconds, at most 120. */
  ttl?: number | null;
}

/** A device to enrol. */
export interface NewDevice {
  /** The maximum risk of a request that the device may answer; any if absent. */
  approve_up_to?: Risk | null;
  /** `true` if the device may answer from a notification. */
  lock_screen?: boolean;
  /** The device's name. */
  name: string;
  /** If present, limits the device to these runtimes. */
  runtimes?: RuntimeId[] | null;
  /** The scopes: `watch`, `prompt`, `approve`, `admin`. */
  scopes: Scope[];
  /** If present, limits the device to these sessions. */
  sessions?: SessionId[] | null;
}

/** The changes to a device. */
export interface NewName {
  /** `true` if the device may answer from a notification. */
  lock_screen?: boolean | null;
  /** The new name. */
  name?: string | null;
}

/** The grant of the device that joins. */
export interface NewPairing {
  /** The maximum risk of a request that the device may answer; any if absent. */
  approve_up_to?: Risk | null;
  /** `true` if the device may answer from a notification. */
  lock_screen?: boolean;
  /** The device's name; if absent, the one that it reports. */
  name?: string | null;
  /** If present, limits the device to these runtimes. */
  runtimes?: RuntimeId[] | null;
  /** The scopes: `watch`, `prompt`, `approve`, `admin`. */
  scopes: Scope[];
}

/** A prompt: `text` or `content`. */
export interface NewPrompt {
  /** ACP content blocks. */
  content?: ContentBlock[] | null;
  /** The prompt as plain text. */
  text?: string | null;
}

/** A proxy on this machine. */
export interface NewProxy {
  /** The origin at which the proxy serves the gateway, without a path: `https://machine.tailnet.ts.net`. */
  public_url: string;
}

/** A session to open: in the runtime `runtime_id`, or in an agent to `start`. */
export interface NewSession {
  /** The session's working folder; the runtime's if absent. */
  cwd?: string | null;
  /** The mode in which the agent begins: the identifier of one that it offers. Needs `approve`, as it decides when the agent asks. */
  mode?: string | null;
  /** The model with which the agent begins: the identifier of one that it offers. */
  model?: string | null;
  /** The runtime's identifier of a conversation to resume. */
  native_id?: NativeId | null;
  /** The session's runtime. */
  runtime_id?: RuntimeId | null;
  /**
   * The agent to start, in place of `runtime_id`; the response is sent when it is ready and the session open. An agent that runs
   * already is used. Starting one needs `admin`.
   */
  start?: StartRuntime | null;
  /** The session's title. */
  title?: string | null;
  /** A new git branch and worktree for the session, made from the repository of `cwd`. Needs `admin`. */
  worktree?: NewWorktree | null;
}

/** A link to a session. */
export interface NewShare {
  /** The lifetime in hours; a day if absent, at most 30 days. */
  hours?: number | null;
}

/** A surface to create: of `components`, or of one page, `html` with `text`. */
export interface NewSurface {
  /** The actions that the page may send. */
  actions?: string[] | null;
  /** The catalogue of its components; Plexus's own if absent. */
  catalog?: string | null;
  /** The components, as in A2UI 0.9; one has the id `root`. */
  components?: JsonObject[] | null;
  /** The data model. */
  data?: JsonObject | null;
  /** The page's height in pixels. */
  height?: number | null;
  /** A page of its own, in place of components. */
  html?: string | null;
  /** `true` if the surface is pinned; unchanged if absent. */
  pin?: boolean | null;
  /** The name in the session: 1 to 64 of `A-Z a-z 0-9 _ . -`. A surface of that name is replaced. */
  surface: string;
  /** The text that is displayed where no page can be drawn. */
  text?: string | null;
  /** The title. */
  title?: string | null;
}

/** A TLS listener to add. */
export interface NewTlsListener {
  /** The address to listen on: `0.0.0.0:7443`, or one address of this machine. Port 0 selects a free one. */
  listen: string;
}

/** A device and its token, which is returned only once; or `csrf` if the token is a cookie. */
export type NewToken = Identity & {
  created_at: Timestamp;
  /** The required value of `Plexus-CSRF` for every request of a page except GET and HEAD. */
  csrf?: string;
  token?: string;
};

/** A worktree to make for a session. */
export interface NewWorktree {
  /** The start of the branch: a branch, tag or commit; the checked-out commit of the session's folder if absent. */
  base?: string | null;
  /** The branch to make. */
  branch: string;
}

/** A notification that the client's response to a request was not accepted. */
export interface NotTaken {
  error: Failure;
  request_id: RequestId;
}

/** The params of a method without parameters; given ones are ignored. */
export type Nothing = { [member: string]: unknown };

/** The type of a numeric answer. */
export type NumberSort = 'number' | 'integer';

/** A session; the only one that is followed if absent. Other members are passed to its runtime. */
export interface OfSession {
  session_id?: SessionId | null;
}

/** One of the options that the runtime offers. */
export interface Offer {
  /** `true` if an option that allows from now on ends with the session, as the runtime's protocol defines it. */
  for_session?: boolean;
  /** The runtime's own id of the option. */
  id: string;
  /** The meaning of the option. */
  kind: Choice;
  /** The text of the button. */
  label: string;
}

/** A page of events. With a `resume` other than `ok`, a snapshot replaces the lost events; continue from `next`. */
export type Page = PageEnd & {
  events: Envelope[];
};

/** The members after the events of a page. */
export interface PageEnd {
  head: Cursor;
  /** The `after` of the next page. */
  next: string;
  /** The number of sessions without a snapshot here, because there are too many. */
  omitted?: number;
  /** The `before` of the page before this one; absent at the beginning. */
  previous?: string;
  resume: Resume;
  snapshot?: Snapshot;
  snapshots?: Snapshot[];
}

/** A one-time code to exchange. */
export interface Pair {
  /** The identifier that the page stores. A browser on this machine that signs in again with it replaces its former device. */
  browser?: string | null;
  /** The code. */
  code: string;
  /** `true` if the device is a page of this gateway, which gets a cookie instead of a token. */
  cookie?: boolean;
  /** The name of the device. */
  name: string;
}

/** A pairing from the computer's view. */
export interface Pairing {
  /** The device that was enrolled. */
  device_id?: DeviceId;
  /** The time when the pairing expires. */
  expires_at: Timestamp;
  /** The name of the device. */
  name?: string;
  /** The number that the phone displays. */
  number?: number;
  /** The identifier. */
  pairing_id: string;
  /** The state. */
  state: PairingState;
}

/** The state of a pairing. */
export type PairingState = 'waiting' | 'joined' | 'confirmed' | 'refused' | 'expired';

/** The state of a pairing on which the computer has not decided yet. */
export interface Patience {
  /** The state: `waiting`. */
  state: PairingState;
}

/** A pinned surface, without its content. */
export interface PinnedSurface {
  /** The time of the last change. */
  at: Timestamp;
  /** The open request that is answered on it. */
  request_id?: string;
  /** The revision. */
  rev: number;
  /** The session. */
  session_id: SessionId;
  /** The name in the session. */
  surface: string;
  /** The title. */
  title?: string;
}

/** The pinned surfaces of all sessions. */
export interface PinnedSurfaces {
  /** The pinned surfaces without their content, by session and name. */
  surfaces: PinnedSurface[];
}

/** The agent's whole plan. */
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

/** A notification of the changed viewers of a session. */
export interface PresenceNote {
  lookers: Viewer[];
  session_id: SessionId;
}

/** An error, as RFC 9457 defines it. `code` is stable. */
export type ProblemDetails = ProblemMembers & {
  code: string;
  detail: string;
  status: number;
  title: string;
  type: string;
};

/** Further members of a problem, by its `code`. */
export type ProblemMembers = Partial<Receipt> & {
  /** `over_limit`: the account that is full. */
  account?: string;
  /** `risk_too_high`: the maximum risk that the device may answer. */
  approve_up_to?: Risk;
  /** `risk_too_high`: names of devices that may answer, as far as the calling device may know them. */
  devices?: string[];
  /** For an invalid answer: the agent's field. */
  field?: string;
  /** AG-UI: the interrupt. */
  interruptId?: string;
  /** `too_large`, `prompt_too_large`, `over_limit`: the limit, in bytes. */
  limit?: number;
  /** `resume_partial`: the interrupts without an answer. */
  missing?: string[];
  /** For a cursor that cannot be resumed from: the oldest one that can. */
  oldest?: Cursor;
  /** `bad_body`: the place in the body. */
  path?: string;
  /** For a cursor that cannot be resumed from: the verdict. */
  resume?: Resume;
  /** `stale_surface`: the current revision of the surface. */
  rev?: number;
  /** `risk_too_high`: the request's risk. */
  risk?: Risk;
  /** `risk_too_high`: the reasons for the risk. */
  risk_reasons?: string[];
  /** `runtime_refused`: the runtime's error code. */
  runtime_code?: number;
  /** `runtime_refused`: the runtime's error data. */
  runtime_data?: Json;
  /** `scope_missing`: the missing scope. */
  scope?: Scope;
  /** `runtime_not_started`: the end of what the program wrote to stderr. */
  stderr?: string;
  /** `worktree_unsaved`: the changes that would be lost. */
  unsaved?: WorktreeLosses;
};

/** The project of a session: the git repository that its folder lies in, else the folder itself. */
export interface Project {
  /** The branch that is checked out, safe to display; absent if none is, and outside of repositories. */
  branch?: string;
  /** The project's name: the last part of `root`, safe to display. */
  name: string;
  /**
   * The folder that all sessions of the project have in common: a repository's main working tree (of a bare repository,
   * the repository), else the session's folder.
   */
  root: string;
  /** The linked worktree that contains the session's folder, by the name of the worktree's folder, safe to display; absent elsewhere. */
  worktree?: string;
}

/** The parts of an event that a subscriber gets. */
export type Projection = 'canonical' | 'native';

/** The addresses at which other machines reach the gateway. */
export interface PublicAccess {
  /** The origin at which a proxy on this machine serves the gateway, if one was added. */
  proxy?: string;
  /** The origin of links. */
  public_url?: string;
  /** The TLS listener, if there is one. */
  tls?: TlsListenerView;
}

/** The subscription of a device to notifications, and its choices. */
export interface Push {
  /** `true` if the device was subscribed, and the subscription ended against its choice: it may subscribe again by itself. */
  lapsed: boolean;
  /** The `applicationServerKey`, in base64url. */
  public_key: string;
  settings: PushSettings;
  subscribed: boolean;
}

/** The changes to a device's choices; absent members stay unchanged. */
export interface PushChoice {
  /** `true` to get notifications of runs that complete. */
  ends?: boolean | null;
  /** `true` to get notifications of runs that fail. */
  failures?: boolean | null;
  /** Minutes without an event in a run after which to get a notification; 0 for never. */
  no_progress_minutes?: number | null;
  /** The quiet hours; `null` for none. */
  quiet?: QuietHours | null;
  /** `true` to get notifications of requests that open. */
  requests?: boolean | null;
}

/** The quiet hours of a device, as it set them. */
export interface PushQuiet {
  from: string;
  offset_minutes: number;
  to: string;
  /** The owner's time zone by its IANA name; rows of earlier releases have only the offset. */
  zone?: string;
}

/** The choices of a device. */
export type PushSettings = TargetWants & {
  quiet: PushQuiet | null;
};

/** The result of a test notification that was accepted. */
export interface PushTried {
  /** The push service's status. */
  status: number;
}

/** The body of a test, which is empty. */
export type PushTry = Record<string, never>;

/** A question to a user. */
export interface Question {
  /** The agent's name of the field, where `id` is the gateway's own name. */
  field?: string;
  /** The bounds of the free text, of the number or of the number of choices. */
  fits?: Fits;
  /** `true` if free text is an answer. */
  free_text: boolean;
  /** A heading of one or two words. */
  header?: string;
  /** The id that an answer refers to. */
  id: string;
  /** `true` if several options may be chosen. */
  multiple: boolean;
  /** `true` if the question may be left unanswered. */
  optional?: boolean;
  /** The answers to choose from. */
  options: QuestionOption[];
  /** The field that carries the free text, where one text answers all questions. */
  own?: string;
  /** The question. */
  text: string;
}

/** One option of a `Question`. */
export interface QuestionOption {
  /** A longer description. */
  description?: string;
  /** The id that an answer refers to. */
  id: string;
  /** The displayed name; an answer may give it in place of the id. */
  label: string;
}

/** A prompt in the queue. */
export interface Queued {
  /** The device that prompted. */
  by: Resolver;
  /**
   * The ceiling for which the prompt waits, if one is reached: it starts when a user allows to continue, or when the ceiling is
   * raised.
   */
  ceiling?: CeilingOf;
  /** The run that it will start. */
  run_id: RunId;
  /** The text, shortened. */
  text: string;
}

/** Hours in which a device gets no notifications. */
export interface QuietHours {
  /** The beginning: `22:00` */
  from: string;
  /** Number of minutes that the device's clock is ahead of UTC: `-new Date().getTimezoneOffset()`. */
  offset_minutes: number;
  /** The end: `07:00`; before `from` it is on the next day. */
  to: string;
  /**
   * The device's time zone, by its IANA name (`Intl.DateTimeFormat().resolvedOptions().timeZone`): with it the hours are the
   * same on its clock all year, and `offset_minutes` does not count.
   */
  zone?: string | null;
}

/** A frame that no dialect understood: the body of `raw`. */
export interface RawBody {
  /** The frame, if it is JSON of reasonable depth. */
  message?: Json;
  /** The reason why the frame was not understood. */
  reason: string;
  /** The frame as text, if it is not. */
  text?: string;
}

/** The result of the readiness check. */
export interface Ready {
  /** Always true: the log accepts writes. */
  ready: boolean;
}

/** The durable record of a request's outcome. */
export interface Receipt {
  /** The kind of answerer: a user, a rule or the agent. Absent if nobody answered, or if it was not recorded. */
  answered_by?: AnsweredBy;
  /** The answer to each question. */
  answers?: Record<string, string[]>;
  /** The time of the answer. */
  at: Timestamp;
  /** The position of the `request_resolved` event in the log. */
  cursor?: Cursor;
  /** The edited text that was allowed, unchanged. */
  edited?: string;
  /** The text `edited`, safe to display. */
  edited_display?: string;
  /** Warnings about `edited`. */
  edited_warnings?: string[];
  /** The ids of the picked items. */
  ids?: string[];
  /** `true` if the choice lets the agent proceed. */
  ok?: boolean;
  /** The option chosen. */
  option_id?: string;
  /** The reason of the answer. */
  reason?: string;
  /** The request. */
  request_id: RequestId;
  /** The client or rule that decided. */
  resolved_by: Resolver;
  /** The final state. */
  state: RequestState;
  /** The text of the answer (never for a secret prompt). */
  value?: string;
  /** `true` if the reader of this receipt made the decision. */
  won: boolean;
}

/** A recently used folder of a session. */
export interface RecentFolder {
  /** `true` if the folder has a git repository. */
  git: boolean;
  /** The last part of the folder's path. */
  name: string;
  /** The path. */
  path: string;
  /** The time when a session in the folder last changed. */
  used_at: Timestamp;
}

/** A change to restore. */
export interface RedoChange {
  /** `true` to restore although a run is in progress. */
  during_run?: boolean;
  /** The identifier of the undone changes. */
  patch_id: string;
}

/** A worktree to remove. */
export interface RemoveWorktree {
  /** `true` if its branch is deleted, too; the branch remains if absent. */
  delete_branch?: boolean;
  /** The `digest` of the displayed losses; without it, a worktree with losses is not removed. */
  lost?: string | null;
  /** The folder, as listed. */
  path: string;
}

/**
 * A question from a runtime to users, in the form that clients see.
 *
 * `title` and `message` are the agent's text, unchanged; `display` is the gateway's own rendering of the exact question, with every
 * deceptive character made visible.
 */
export interface Request {
  /** `true` if the dialect can transmit a reason. */
  allow_reason: boolean;
  /** `true` if the dialect can transmit "remember this". */
  allow_remember: boolean;
  /** `true` if the question has changed, so that a user has to read it again. */
  changed?: boolean;
  /** `true` if the runtime calls the action dangerous. */
  danger?: boolean;
  /** The runtime's own `danger_level`, unchanged (UI protocol: `normal` or `danger`); the gateway's judgement is `risk`. */
  danger_level?: string;
  /** The initial text of a prompt. */
  default_value?: string;
  /**
   * SHA-256 (hex) of the canonical request: it ties an answer to the displayed question. Empty if `display` is cut, since the whole
   * question was not displayed.
   */
  digest?: string;
  /** The exact question, safe to display. */
  display: string;
  /** The length of the whole `display` in bytes, if it is cut. */
  display_bytes?: number;
  /** `true` if `display` or `message` is cut here; the whole request can be fetched by its id. */
  display_truncated?: boolean;
  /** The part that may be edited before it is allowed: an answer that allows it once may contain `edited`. */
  editable?: Editable;
  /** The time when the request expires. */
  expires_at?: Timestamp;
  /** The number of the runtime's start; an answer never reaches another one. */
  generation: number;
  /** The items to pick from. */
  items?: Item[];
  /** The agent's text. */
  message?: string;
  /** `true` if several items may be picked. */
  multi?: boolean;
  /** `true` if a prompt accepts several lines. */
  multiline?: boolean;
  /** The runtime's message, unchanged. */
  native?: Json;
  /** `true` if the request is read-only here: its runtime accepts the answer only elsewhere. */
  observe_only?: boolean;
  /** The time when the request was opened. */
  opened_at: Timestamp;
  /** The options to choose from. */
  options: Offer[];
  /** The outcome. */
  receipt?: Receipt;
  /** The identifier. */
  request_id: RequestId;
  /** The number of changes of the question since it was asked. */
  revision: number;
  /** The harm that an approval could do. */
  risk: Risk;
  /** The reasons for the risk. */
  risk_reasons: string[];
  /** The run of the request. */
  run_id: RunId;
  /** The runtime that asks. */
  runtime_id: RuntimeId;
  /** `true` if the typed text is secret. */
  secret?: boolean;
  /** The session of the request. */
  session_id: SessionId;
  /** The request's state. */
  state: RequestState;
  /** The subject, for a screen to draw. */
  subject: Subject;
  /** The agent's headline. */
  title: string;
  /** The tool call that waits for the answer. */
  tool_call_id?: string;
  /** The kind of question. */
  type: RequestType;
  /** Warnings to read before answering. */
  warnings: string[];
}

/** A question from a runtime to users: `q_` and 26 characters, unguessable (130 bits). */
export type RequestId = string;

/** The state of a request. It leaves `Open` once, and never returns to it. */
export type RequestState = 'open' | 'answered' | 'expired' | 'withdrawn' | 'orphaned';

/** The type of a request; it decides which answers are valid. */
export type RequestType = 'confirm' | 'prompt' | 'pick' | 'permission' | 'elicitation';

/** A page of requests, newest first. */
export interface Requests {
  /** The `before` of the next page; absent if there is none. */
  next?: string;
  /** The requests; long texts in them are cut. */
  requests: Request[];
}

/** The outcome of a request: the body of `request_resolved`. */
export interface Resolution {
  /** The kind of answerer: a user, a rule or the agent. */
  answered_by?: AnsweredBy;
  /** The answer to each question. */
  answers?: Record<string, string[]>;
  /** The time of the answer. */
  at: Timestamp;
  /** The edited text that was allowed in place of the requested one, unchanged. */
  edited?: string;
  /** The text `edited`, safe to display. */
  edited_display?: string;
  /** Warnings about `edited`. */
  edited_warnings?: string[];
  /** The ids of the picked items. */
  ids?: string[];
  /** `true` if the choice lets the agent go ahead. */
  ok?: boolean;
  /** The option chosen. */
  option_id?: string;
  /** The reason of the answer. */
  reason?: string;
  /** The request. */
  request_id: RequestId;
  /** The client or rule that decided. */
  resolved_by: Resolver;
  /** The session of the request. */
  session_id: SessionId;
  /** The final state. */
  state: RequestState;
  /** The text of the answer (never for a secret prompt). */
  value?: string;
}

/** The device that decided. */
export interface Resolver {
  /** The device, or `gateway` for the gateway's own decision. */
  device_id: DeviceId;
  /** The device's name. */
  name: string;
}

/** The run to repeat; if absent, the current one, else the last. */
export interface RestartParams {
  idempotency_key?: string | null;
  run_id?: RunId | null;
  session_id?: SessionId | null;
}

/** The reaction to an exit of a runtime that was not stopped. */
export type RestartPolicy = 'never' | 'on-failure' | 'always';

/** The run to repeat; if absent, the current run, else the last one. */
export interface RestartRun {
  /** The run. */
  run_id?: RunId | null;
}

/** A conversation that a runtime could resume. Members that the runtime does not report are null. */
export interface Resumable {
  /** The folder. */
  cwd: string | null;
  /** The runtime's identifier: the `native_id` of a session to open. */
  native_id: NativeId;
  /** The session of the gateway in which the conversation is open already. */
  session_id?: SessionId;
  /** The title or its beginning. */
  title: string | null;
  /** The time of the conversation's last change. */
  updated_at: Timestamp | null;
}

/** A page of a runtime's resumable conversations, in the runtime's order. A conversation that changes meanwhile may be listed twice. */
export interface ResumablePage {
  /** The start of the next page, to be given as `cursor`; absent if this is the last. */
  next?: string;
  /** The conversations of the page. */
  resumable: Resumable[];
}

/** The verdict on a cursor: whether reading can resume there. */
export type Resume = 'ok' | 'gap' | 'reset' | 'ahead';

/** An answer to one interrupt. */
export interface ResumeEntry {
  /** The interrupt: a request. */
  interruptId: string;
  /** The answer, as the interrupt's `responseSchema` describes it. */
  payload?: JsonObject;
  /** `resolved` with a payload, or `cancelled`. */
  status: ResumeStatus;
}

/** The client's decision on an interrupt. */
export type ResumeStatus = 'resolved' | 'cancelled';

/** The number of devices that were revoked. */
export interface RevokedDevices {
  revoked: number;
}

/** The harm that an approval could do, as judged by the gateway from the request alone. */
export type Risk = 'low' | 'elevated' | 'danger';

/** A run. */
export interface Run {
  /** The run. */
  run_id: RunId;
}

/** AG-UI's `RunAgentInput`. */
export interface RunAgentInput {
  /** The client's context, which is not passed to agents; the response reports that once. */
  context?: JsonObject[];
  /** `plexus`: `{cursor, follow, cancel, partial}`. */
  forwardedProps?: JsonObject;
  /** The client's copy of the conversation. The users' messages at its end that the session does not have are the prompt. */
  messages: JsonObject[];
  /** Answers to all open interrupts. */
  resume?: ResumeEntry[] | null;
  /** The client's id of this run; returned unchanged. A repeated POST starts nothing and decides nothing. */
  runId: string;
  /** The state as sent by the gateway; any other state is not passed to agents, and the response reports that. */
  state?: JsonObject;
  /** The client's id of the conversation; returned unchanged and not used. */
  threadId: string;
  /** The client's tools, which are not passed to agents; the response reports that once. */
  tools?: JsonObject[];
}

/** The state of a run: the body of `run_started`, `run_status` and `run_ended`. */
export interface RunBody {
  /** The device that prompted or cancels. */
  by?: Resolver;
  /** `true` if the run is being cancelled. */
  cancelling?: boolean;
  /** The idempotency key of the prompt. */
  key?: string;
  /** The reason why the run failed or is being cancelled. */
  message?: string;
  /** The run. */
  run_id: RunId;
  /** The run's status. */
  status: RunStatus;
  /** The agent's own stop reason. */
  stop_reason?: string;
  /** The spending of the run, as far as the agent reported it; absent before the end of the run. */
  usage?: Spending;
}

/** The part of the model's context that is left. */
export interface RunContext {
  context_left_percent: number;
  run_id: RunId;
  session_id: SessionId;
}

/** The work that follows one prompt: `r_` and 26 characters, minted by the gateway. */
export type RunId = string;

/** A run in the form that clients see. */
export interface RunInfo {
  /** The run. */
  run_id: RunId;
  /** The conversation. */
  session_id: SessionId;
  /** The time when the run began. */
  started_at: Timestamp;
  /** The run's status. */
  status: RunStatus;
}

/** The status of a run (the UI protocol's `run.status`, and `queued`). */
export type RunStatus = 'queued' | 'running' | 'awaiting_ui' | 'completed' | 'error' | 'cancelled';

/** The state of a run, in the UI protocol. */
export interface RunStatusNote {
  message?: string;
  run_id: RunId;
  session_id: SessionId;
  status: RunStatus;
}

/** A runtime in the form that clients see. */
export interface Runtime {
  /** The first action that the runtime took without asking, in a session in which it has never asked and no user has allowed it to act. */
  acted_unasked?: string;
  /** The agent's own name and version, once reported. */
  agent?: string;
  /** The runtime's capabilities, once reported; its first session may add more. */
  capabilities?: Capabilities;
  /** The program and its arguments, or the endpoint. */
  connect: Connect;
  /** The folder of the runtime. */
  cwd: string;
  /** The runtime's dialect. */
  dialect: string;
  /** `true` if the runtime's commands run in `cwd`, regardless of the session's folder. */
  fixed_folder?: boolean;
  /** The number of starts; 0 for a process of an earlier gateway until its number is known. */
  generation: number;
  /**
   * The time when the runtime last sent anything; published with a delay of a few seconds at most. A long silence is normal in agents
   * that retry.
   */
  heard_at?: Timestamp;
  /** A random name of this process, made for each start. Absent for endpoints, and before the first start. */
  instance?: string;
  /** `true` if the runtime outlives the gateway. */
  outlives?: boolean;
  /** The process id, while the process runs. */
  pid?: number;
  /** The reason why the runtime is not ready. */
  problem?: string;
  /** The reviewer of its own that the runtime asks instead of users ("Codex's reviewer"). */
  reviewer?: string;
  /** The name. */
  runtime_id: RuntimeId;
  /** The runtime's state. */
  state: RuntimeState;
  /** The end of the runtime's output on stderr. */
  stderr_tail?: string;
  /** The time of the runtime's last change. */
  updated_at: Timestamp;
}

/** The exit of a runtime's process. */
export interface RuntimeExit {
  /** The exit code. */
  code?: number;
  /** The cause, as far as the gateway knows it: "stopped by NAME", "cannot start: …", "took no orders for 10 s". */
  reason?: string;
  /** The signal that killed the process (`SIGKILL` …). */
  signal?: string;
  /** The end of the runtime's output on stderr. */
  stderr_tail?: string;
  /** `true` if the stop of the runtime was requested; absent unless the status is `exited`. */
  stopped?: boolean;
}

/** A notification of a runtime that was stopped for good. */
export interface RuntimeGone {
  runtime_id: RuntimeId;
}

/** An attached agent program or endpoint, named by its user (`gemini`) or after its preset (`gemini-2`). */
export type RuntimeId = string;

/** A notification of a changed runtime. */
export interface RuntimeNote {
  runtime: Runtime;
}

/** The state of a runtime. */
export type RuntimeState = 'starting' | 'ready' | 'restarting' | 'exited';

/** A change of a runtime's state: the body of `runtime_status`. */
export type RuntimeStatus = RuntimeExit & {
  /** The number of the runtime's start. */
  generation?: number;
  /** The cause, as text. */
  message?: string;
  /** `true` if the runtime resumes an earlier conversation. */
  resumed?: boolean;
  /** The runtime. */
  runtime_id: RuntimeId;
  /** The status: `attached`, `reattached`, `lost`, `exited`, `stuck`, or `unasked` if the agent acts without asking. */
  status: string;
};

/** Runtimes. */
export interface Runtimes {
  /** The runtimes that the caller may see. */
  runtimes: Runtime[];
}

/** An answer in the UI protocol; unknown members are ignored. */
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

/** A permission of a device. */
export type Scope = 'watch' | 'prompt' | 'approve' | 'admin' | 'type' | 'ui';

/** The client tools that the gateway serves to an ACP agent, inside the session's folder. None by default. */
export interface Serve {
  /** Reads files (`fs/read_text_file`), and writes them (`fs/write_text_file`) after an approval. */
  fs?: boolean;
  /** Runs commands (`terminal/*`) after an approval. */
  terminal?: boolean;
}

/** The server's name and version. */
export interface Server {
  name: string;
  version: string;
}

/** A session in the form that clients see. */
export interface Session {
  /** `true` if the session is archived: stored and searchable, but left out of default lists. */
  archived: boolean;
  /** The time when the session was opened. */
  created_at: Timestamp;
  /** The session's working directory. */
  cwd: string;
  /** The dialect of that runtime. */
  dialect: string;
  /** The current activity: the title of the running tool (the agent's text), or `thinking`, `writing`, `working`; null between runs. */
  doing: string | null;
  /** The beginning of a user's latest message. */
  last_user_message?: string;
  /** `true` if the session is in a terminal of its own, which is open on this machine: its user can continue there at any time. */
  linked?: boolean;
  /** The number of messages of users and of the agent; absent in sessions stored before messages were counted. */
  message_count?: number;
  /** The runtime's own id of the session. */
  native_id: NativeId | null;
  /** The number of open requests. */
  open_requests: number;
  /** The project of the folder; absent while it is not known yet. A session that has ended keeps its last one. */
  project?: Project;
  /** The time when a run last began; absent until the first run. */
  prompted_at?: Timestamp;
  /** Queued prompts, next one first. */
  queue?: Queued[];
  /** The open requests. */
  requests?: RequestId[];
  /** `true` if the session ended with its runtime and resumes when the runtime is restarted. */
  restartable?: boolean;
  /** The current run. */
  run_id?: RunId;
  /** The runtime. */
  runtime_id: RuntimeId;
  /** The conversation. */
  session_id: SessionId;
  /** The session's state. */
  state: SessionState;
  /** The session's title. */
  title: string | null;
  /** The time when the conversation last changed; starts and exits of its runtime do not count. */
  updated_at: Timestamp;
}

/** A session to archive or to restore. */
export interface SessionArchive {
  /** `false` to restore the session; `true` if absent. */
  archived?: boolean | null;
  session_id?: SessionId | null;
}

/** A notification of a deleted session. */
export interface SessionGone {
  session_id: SessionId;
}

/** One conversation in a runtime: `s_` and 26 characters, minted by the gateway. */
export type SessionId = string;

/** A session to open, or with `native_id` to resume. */
export interface SessionNew {
  cwd?: string | null;
  native_id?: string | null;
  runtime_id: RuntimeId;
  title?: string | null;
}

/** A notification of a changed session. */
export interface SessionNote {
  session: Session;
}

/** A new title for a session. */
export interface SessionRename {
  session_id?: SessionId | null;
  title: string;
}

/** The state of a session. */
export type SessionState = 'idle' | 'running' | 'waiting' | 'exited';

/** A page of sessions, most recently updated first. */
export interface Sessions {
  /** The `cursor` of the next page; absent on the last. */
  next?: string;
  /** The sessions. */
  sessions: Session[];
}

/** A link to one session. It allows watching until it expires or is revoked like a device. */
export interface Share {
  device_id: DeviceId;
  expires_at: Timestamp;
  token: string;
  url: string;
}

/** A browser to sign in with the token of the request. */
export interface SignIn {
  /** The identifier that the page stores. A browser on this machine that signs in again with it replaces its former device. */
  browser?: string | null;
  cookie: true;
  /** The browser's name; the name of the token's device if absent. */
  name?: string | null;
}

/** A skill of an agent. */
export interface Skill {
  description: string;
  dir: string;
  id: string;
  /** The time when the skill's file last changed, in milliseconds since the Unix epoch; 0 if unknown. */
  mtime_ms: number;
  name: string;
  path: string;
  scope: SkillScope;
}

/** A skill that could not be read, with the reason. */
export interface SkillError {
  message: string;
  path: string;
}

/** The scope of a skill. */
export type SkillScope = 'user' | 'repo';

/** The skills of an agent. */
export interface Skills {
  errors: SkillError[];
  skills: Skill[];
  /** `true` if there are more. */
  truncated: boolean;
}

/**
 * The view of a session for a client that joins late: the newest messages and tool calls, the latest values of everything else, and the
 * cursor at which the view is exact. The messages and tools are those from `before` on.
 */
export interface Snapshot {
  /** The cursor from which to page back to older ones; absent unless `truncated`. */
  before?: Cursor;
  /** The last position that the snapshot covers; reading on after it misses and repeats nothing. */
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
  /**
   * The agent's surfaces, each with its revision: at the cursor or later. A change that a surface contains already is not applied
   * again, so that the events after the cursor lead to the same state.
   */
  surfaces: JsonObject[];
  /**
   * `true` if `surfaces` is empty because they are large, which is possible when several sessions are requested at once: then `GET
   * /v1/sessions/{id}/surfaces` returns them. Absent otherwise.
   */
  surfaces_omitted?: boolean;
  /** The newest tool calls, in order, each with its latest state. */
  tools: Tool[];
  /** `true` if retention has removed older events. */
  trimmed: boolean;
  /** `true` if the log has older messages and tools than these. */
  truncated: boolean;
}

/** Snapshots in place of events that cannot be replayed; events follow after `cursor`. */
export interface Snapshots {
  cursor: Cursor;
  /** The number of sessions without a snapshot here, because there are too many. */
  omitted?: number;
  /** The subscription: a session, or `*`; absent in a stream over HTTP. */
  session_id: string;
  snapshots: Snapshot[];
}

/** Tokens and money spent: by a step, a run, a session, or since some time. A figure that was not reported is absent. */
export interface Spending {
  /** The part of `input_tokens` that came from the model's cache. */
  cached_read_tokens?: number;
  /** The part of `input_tokens` that was stored in the model's cache. */
  cached_write_tokens?: number;
  /** The cost, as the agent reported it: an amount for each currency. */
  costs?: Money[];
  /** Tokens that the model read, including those from its cache. */
  input_tokens?: number;
  /** Tokens that the model wrote, including its reasoning. */
  output_tokens?: number;
  /** The part of `output_tokens` that was reasoning. */
  reasoning_tokens?: number;
}

/** A prompt: `text`, ACP's `content` blocks, or the UI protocol's `input`. */
export interface StartRun {
  content?: ContentBlock[] | null;
  /** Further members of `run.start`, passed unchanged to a runtime of the UI protocol. */
  extra_members?: JsonObject | null;
  idempotency_key?: string | null;
  input?: Input | null;
  /** Metadata, passed to the runtime unchanged. */
  meta?: JsonObject | null;
  session_id?: SessionId | null;
  text?: string | null;
  /** The context of the user: the UI protocol's `UiContextSnapshot`. */
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
  /** The runtime's dialect. */
  dialect?: string | null;
  /** Variables to set. */
  env?: Record<string, string>;
  /** The runtime's name; made from the program's if absent. */
  id?: RuntimeId | null;
  /** `true` if a program outlives the gateway; true if absent. */
  outlive?: boolean | null;
  /** Variables to pass through from the gateway's own environment. */
  pass_env?: string[];
  /** A preset's name, in place of `dialect` and `command`. */
  preset?: string | null;
  /** The address at which a Gemini UI accepts prompts, besides its mirror. */
  remote?: string | null;
  /** `never`, `on-failure` or `always`. */
  restart?: RestartPolicy | null;
  /** The password or token of an endpoint. It is never returned. */
  secret?: string | null;
  /** The client tools that the gateway offers an ACP agent: `{fs, terminal}`. */
  serve?: Serve | null;
  /** `_meta` to send with every ACP `session/new`. */
  session_meta?: JsonObject | null;
  /** `true` if its agents get the tools to draw surfaces; true if absent. */
  ui?: boolean | null;
}

/**
 * The subject of a request, so that a screen can draw it and group similar requests. The text to read before an answer is
 * `Request::display`(super::Request::display). All text here is sanitized like `display`.
 */
export type Subject = {
  /** The shell line as one element, or the program and its arguments. Left out above `ABOUT_MAX` bytes. */
  argv?: string[];
  /** The folder in which it runs: the session's, or the one in a field of the command. Absent if no folder is known. */
  cwd?: string | null;
  /** The other folder that the agent's text names, if it contradicts `cwd`. */
  stated_cwd?: string | null;
  type: 'command';
} | {
  /** The files, `ABOUT_FILES` at most. */
  files: Touched[];
  /** The number of files beyond `files`. */
  more?: number;
  type: 'edit';
} | {
  type: 'fetch';
  /** The address, cut to `ABOUT_MAX` bytes. */
  url: string;
} | {
  /** The name, cut to `ABOUT_MAX` bytes; the arguments are in `display`. */
  name: string;
  type: 'tool';
} | {
  type: 'plan';
} | {
  /** The questions, in order. */
  questions: Question[];
  type: 'question';
} | {
  type: 'unreadable';
};

/** A subscription in the form of a browser's `PushSubscription.toJSON()`. */
export interface Subscribe {
  /** The address to push to: `https`, at a known push service. */
  endpoint: string;
  /** The time when the subscription expires, if the browser reports it; the service reports it too. */
  expirationTime?: number | null;
  keys: SubscribeKeys;
}

/** A subscription's keys, in base64url. */
export interface SubscribeKeys {
  auth: string;
  p256dh: string;
}

/** A press on a surface. */
export interface SurfaceAction {
  /** The component. */
  component: string;
  /** The event. */
  event: string;
  /** The inputs that the user changed, by the JSON Pointer that each is bound to. */
  inputs?: JsonObject;
  /** The list item, if the component is in a template. */
  instance?: string | null;
  /** The selected row of a table, or path of a file tree. */
  item?: Json | null;
  /** The revision that the screen displays. */
  rev: number;
}

/** The params of a call that asks a question by a surface. */
export interface SurfaceAsk {
  /** The question. */
  ask: NewAsk;
  /** The idempotency key: the same call under the same key asks once. */
  idempotency_key?: string | null;
  session_id?: SessionId | null;
}

/** The params of a call that changes a surface. */
export interface SurfaceChanges {
  /** The idempotency key: the same call under the same key draws once. */
  idempotency_key?: string | null;
  session_id?: SessionId | null;
  /** The surface. */
  surface: string;
  /** The changes. */
  update: SurfaceUpdate;
}

/** The params of a call that removes a surface. */
export interface SurfaceClose {
  session_id?: SessionId | null;
  /** The surface. */
  surface: string;
}

/** The params of a press on a surface. */
export type SurfacePress = SurfaceAction & {
  session_id?: SessionId | null;
  /** The surface. */
  surface: string;
};

/** The params of a call that creates a surface. */
export interface SurfaceShow {
  /** The idempotency key: the same call under the same key draws once. */
  idempotency_key?: string | null;
  session_id?: SessionId | null;
  /** The surface. */
  show: NewSurface;
}

/** The changes of a surface. */
export interface SurfaceUpdate {
  /** Components that are new or replace those of the same id. */
  components?: JsonObject[];
  /** Changes of the data model, in order: `path` with `value`, with `append`, or with neither to remove it. */
  data?: JsonObject[];
  /** The required current revision of the surface. */
  expect_rev?: number | null;
  /** `true` if the surface is pinned; given alone. */
  pinned?: boolean | null;
  /** A new title. */
  title?: string | null;
}

/** The params of a call that waits for the answer to a question. */
export interface SurfaceWait {
  /** The question. */
  ask_id: RequestId;
  session_id?: SessionId | null;
  /** Seconds to wait, up to 45; none if absent. */
  wait_s?: number | null;
}

/** The surfaces of a session. */
export interface Surfaces {
  /** The surfaces, each as the A2UI messages that create it, with its revision. */
  surfaces: JsonObject[];
}

/** The kinds of news that a target has chosen. */
export interface TargetWants {
  /** `true` for runs that complete. */
  ends: boolean;
  /** `true` for runs that fail. */
  failures: boolean;
  /** Minutes without an event in a run after which it is news; 0 for never. */
  no_progress_minutes?: number;
  /** `true` for requests that open. */
  requests: boolean;
}

/** The end of a program: an exit code, a signal, or unknown. */
export interface TerminalExit {
  /** The exit code. */
  code?: number;
  /** The signal that ended it. */
  signal?: number;
}

/** A shared terminal: `t_` and 8 characters, minted where it is started. */
export type TerminalId = string;

/** The description of a shared terminal. All text in it is safe to print. */
export interface TerminalInfo {
  /** The number of screens that show it now; each window or page is one. */
  attached: number;
  /** The program and its arguments. */
  command: string[];
  /** The folder in which it was started. */
  cwd: string;
  /** The end of the program; absent while it runs. */
  exited?: TerminalExit;
  /** The program's process id. */
  pid: number;
  /** The size. */
  size: TerminalSize;
  /** The time when it was started. */
  started_at: Timestamp;
  /** The identifier. */
  terminal_id: TerminalId;
  /** The title that the program set; empty if it set none. */
  title: string;
}

/** The size of a terminal. */
export interface TerminalSize {
  /** The number of columns. */
  cols: number;
  /** The number of lines. */
  rows: number;
}

/** Shared terminals, the oldest first. */
export interface Terminals {
  /** The terminals that the caller may see. */
  terminals: TerminalInfo[];
}

/** The ticket of a phone that joined. */
export interface Ticket {
  /** The time when the pairing expires. */
  expires_at: Timestamp;
  /** The number that the computer displays too. */
  number: number;
  /** The secret with which the phone requests the outcome. */
  ticket: string;
}

/**
 * A wall-clock instant in milliseconds since the Unix epoch; formatted as RFC 3339 in UTC (`2026-11-21T09:30:00.125Z`).
 *
 * Only for display: order comes from `Position`(super::Position), deadlines from a monotonic clock.
 */
export type Timestamp = string;

/** The TLS listener. */
export interface TlsListenerView {
  /** The address of the listener. */
  address: string;
  /** `true` if the configuration defines the listener, so that it cannot be removed. */
  configured: boolean;
  /** The names of the listener's certificate. */
  names: string[];
  /** The origins of the listener, of which the network may allow only some. */
  origins: string[];
}

/** One tool call in its latest state. */
export interface Tool {
  /** The parent tool call, if a subagent made the call. */
  parent_tool_call_id?: string | null;
  /** The position of the tool call's first event. */
  position: number;
  /** The run of the tool call. */
  run_id: RunId;
  /** The runtime's identifier. */
  tool_call_id: string;
  [member: string]: unknown;
}

/** A tool call, or an update of one. */
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
  /** The number of added lines, if counted. */
  added?: number;
  /** `true` if the whole file is overwritten. */
  new?: boolean;
  /** The path, cut to `ABOUT_MAX` bytes. */
  path: string;
  /** The number of removed lines, if counted. */
  removed?: number;
}

/** The capabilities of a client. */
export interface UiCapabilities {
  /** `true` if the client can display confirmations; such clients get requests first. */
  supports_confirm?: boolean;
  [member: string]: unknown;
}

/** A change to undo. */
export interface UndoChange {
  /** The digest in the list: nothing is undone if the file has changed meanwhile. */
  digest: string;
  /** `true` to undo although a run is in progress. */
  during_run?: boolean;
  /** The number of a hunk; the whole file if absent. */
  hunk?: number | null;
  /** The file, by its path in the list. */
  path: string;
}

/** A change that was undone. */
export interface UndoneChange {
  /** The patch; empty for a file that is not compared by lines. */
  patch: string;
  /** The identifier of the patch that restores the change. */
  patch_id: string;
  /** The file. */
  path: string;
}

/** The result of an undo. */
export interface UndoneChanges {
  /** The undone changes, newest first; at most 200. */
  undone: KeptPatch[];
}

/** The body of an event of one of ACP's kinds: ACP's `update` object. */
export interface Update {
  sessionUpdate: string;
  [member: string]: unknown;
}

/** The subject of a sum: one row for each. */
export type UsageBy = 'day' | 'runtime' | 'project' | 'session' | 'run';

/** A sum, with the names of its subject. */
export interface UsageRow {
  /** The time of the last report, to a quarter of an hour. */
  at: Timestamp;
  /** The day. */
  day?: string;
  /** The project's root folder. */
  project?: string;
  /** The run. */
  run_id?: RunId;
  /** The runtime. */
  runtime_id?: RuntimeId;
  /** The session. */
  session_id?: SessionId;
  /** The session's title. */
  title?: string;
  /** The sum of the row. */
  usage: Spending;
}

/** The spending of the sessions that the caller may see. */
export interface UsageSums {
  /** The subject of each row. */
  by: UsageBy;
  /** The first day. */
  from: string;
  /** The time since which spending is recorded: nothing before it is counted. */
  known_since: Timestamp;
  /** The rows: days in their order, runs newest first, others by the number of tokens. */
  rows: UsageRow[];
  /** The last day. */
  to: string;
  /** The sum of all rows, including those that are left out. */
  total: Spending;
  /** `true` if rows were left out by `limit`. */
  truncated: boolean;
  /** The offset of the days: minutes ahead of UTC. */
  utc_offset: number;
}

/** The severity of a check's result. */
export type Verdict = 'ok' | 'warn' | 'fail';

/** A device that views a session. */
export interface Viewer {
  /** The device. */
  device_id: DeviceId;
  /** The device's name. */
  name: string;
}

/** The content that exists only in a worktree. */
export interface WorktreeLosses {
  /** The number of commits of the branch that are on no other branch, remote or tag. They are lost only with the branch. */
  ahead: number;
  /** The number of changed and new files that are not committed; ignored files are not counted. */
  changed: number;
  /** The first lines of the newest of these commits, at most 20. */
  commits: string[];
  /** A digest of this state, including the content of each file. A removal with it as `lost` loses exactly this. */
  digest: string;
  /** The names of the first of them, at most 20. */
  files: string[];
}

/** The current state of a worktree. */
export interface WorktreeView {
  /** The branch that was made with the worktree. */
  branch: string;
  /** The time when the worktree was made. */
  made_at: Timestamp;
  /** `true` if the worktree's folder no longer exists. */
  missing: boolean;
  /** The folder. */
  path: string;
  /** The reason why the state cannot be determined. */
  problem?: string;
  /** The repository's main folder. */
  root: string;
  /** The changed files, and the commits that are on no other branch: a removal loses them. */
  unsaved?: WorktreeLosses;
}

/** The client's device. */
export interface You {
  approve_up_to?: Risk;
  device_id: DeviceId;
  name: string;
  scopes: Scope[];
}

/** What clients call over the WebSocket: what each takes and gives. */
export interface Methods {
  /** Introduces the client; must come first */
  'initialize': { params: Initialize; result: Initialized };
  /** Runtimes */
  'runtime.list': { params: Nothing; result: Runtimes };
  /** Sessions */
  'session.list': { params: Listing; result: Sessions };
  /** Opens a session */
  'session.new': { params: SessionNew; result: Session };
  /** Sets the title of a session; the agent's own title no longer changes it */
  'session.rename': { params: SessionRename; result: Session };
  /** Archives a session, or restores it with `archived` false */
  'session.archive': { params: SessionArchive; result: Session };
  /** Follows a session, or all with `*`: sends `gateway.hello`, a snapshot if necessary, the events after the cursor, `gateway.live`, then new events */
  'session.attach': { params: AttachParams; result: Attached };
  /** Ends it */
  'session.detach': { params: AttachParams; result: Detached };
  /** Events, one page at a time */
  'session.history': { params: HistoryParams; result: History };
  /** Sends a prompt; queued while another run is active */
  'run.start': { params: StartRun; result: Accepted };
  /** Cancels a run; its open requests are withdrawn first */
  'run.cancel': { params: CancelParams; result: Cancelled };
  /** Sends the prompt of a run again: of the current run, which is cancelled first, of the named run, or of the last one */
  'run.restart': { params: RestartParams; result: Accepted };
  /** Answers a request; the first answer wins, a later one is error -32010 with the winner's receipt in `data` */
  'ui.request.answer': { params: AnswerParams; result: Receipt };
  /** The surfaces that a session's agent draws */
  'ui.surface.list': { params: OfSession; result: Surfaces };
  /** Shows a surface, or replaces the one of its name */
  'ui.surface.show': { params: SurfaceShow; result: Drawn };
  /** Changes a part of a surface, or pins it */
  'ui.surface.update': { params: SurfaceChanges; result: Drawn };
  /** Takes a surface down */
  'ui.surface.close': { params: SurfaceClose; result: Drawn };
  /** Asks by a surface: a request that users answer on it, or like any other */
  'ui.surface.ask': { params: SurfaceAsk; result: AskView };
  /** What became of a question by a surface */
  'ui.surface.wait': { params: SurfaceWait; result: AskView };
  /** Presses something on a surface: the agent gets it as a prompt; the first press of what a screen shows wins */
  'ui.surface.action': { params: SurfacePress; result: Acted };
  /** Reports which session your screen displays and whether a user is looking at it, until the connection ends. Only a focused screen suppresses notifications */
  'presence.update': { params: Focus; result: Looking };
  /** Calls the method of the session's runtime */
  'model.list': { params: OfSession & { [member: string]: unknown }; result: JsonObject };
  /** Calls the method of the session's runtime */
  'model.set': { params: OfSession & { [member: string]: unknown }; result: JsonObject };
  /** Calls the method of the session's runtime */
  'mcp.list': { params: OfSession & { [member: string]: unknown }; result: JsonObject };
  /** Calls the method of the session's runtime */
  'skills.list': { params: OfSession & { [member: string]: unknown }; result: JsonObject };
  /** Notifies the session's runtime */
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
  /** A request was closed; sent to all clients, also to those whose answer arrived too late */
  'ui.request.resolved': Resolution;
  /** Who is looking at a session that you follow, including you */
  'presence.changed': PresenceNote;
  /** The state of a session changed */
  'session.updated': SessionNote;
  /** The state of a runtime changed */
  'runtime.updated': RuntimeNote;
  /** A session was deleted with all its data */
  'session.deleted': SessionGone;
  /** A runtime was stopped permanently */
  'runtime.removed': RuntimeGone;
  /** The first message after every attach */
  'gateway.hello': Hello;
  /** Sent instead of events that can no longer be replayed, unless `resume` is `ok` */
  'gateway.snapshot': Snapshots;
  /** All events up to here were sent */
  'gateway.live': Live;
  /** You fell behind and have caught up; nothing was lost */
  'gateway.lag': Lag;
  /** Your response to a `ui.*.request` was not accepted */
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
