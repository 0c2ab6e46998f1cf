// The interface through which all parts of the page use the gateway.
import type { ReadonlySignal } from './lib/signal.js';
import type {
  Answer, Envelope, Json, Me, Page, Phase, Receipt, Request, RunInfo, RuntimeInfo, Scope, SessionInfo, Snapshot, Viewer,
} from './wire/types.js';
import { gateway } from './wire/gateway.js';

/** The state of the connection. */
export interface LinkState {
  phase: Phase;
  /** The time when the phase began, ms since the epoch by this machine's clock. */
  since: number;
  /** The time when the last message of the gateway arrived, ms since the epoch by this machine's clock; 0 if never. The page shows the
   *  state of that time. */
  heardAt: number;
  /** The reason why it is not live, if known. */
  reason: string;
}

/** Updates of one followed session, at most once per animation frame, in the order of the log. */
export interface Batch {
  /** The session from the start: replaces everything shown. Comes first, and again after a gap. */
  snapshot?: Snapshot;
  /** With `snapshot`: the newest page of its past, merged. Older pages are read from `past.previous` back. */
  past?: Page;
  /** The reason why everything shown was replaced; only with a later `snapshot`. */
  reset?: string;
  /** Events after `past`, each once. */
  events: Envelope[];
  /** The session could not be read. `gone`: it does not exist (any more). Follow again to retry. */
  trouble?: { text: string; gone: boolean };
}
export type Sink = (batch: Batch) => void;

/** The outcome of an answer; errors are part of it. */
export type Outcome =
  /** The answer won. */
  | { kind: 'won'; receipt: Receipt }
  /** Another answer was first, or the request closed; `receipt` is that one's. */
  | { kind: 'late'; receipt: Receipt }
  /** Refused, and the request is still open: the gateway's `code` (`stale_digest`, `risk_too_high`, ..) and message. */
  | { kind: 'refused'; code: string; text: string }
  /** The connection failed; the answer may or may not have arrived. Read the request again. */
  | { kind: 'unknown'; text: string };

export type Route =
  | { page: 'inbox'; request?: string }
  | { page: 'home' }
  | { page: 'sessions' }
  | { page: 'new' }
  | { page: 'session'; session_id: string; at?: number }
  | { page: 'changes'; session_id: string }
  | { page: 'devices' }
  | { page: 'runtimes'; runtime_id?: string }
  | { page: 'terminals'; terminal_id?: string }
  | { page: 'usage'; session_id?: string }
  | { page: 'settings' }
  | { page: 'search'; q?: string };

export interface Plexus {
  readonly link: ReadonlySignal<LinkState>;
  /** Whether the page shows the current state: phase `live` or `catching-up`. */
  readonly live: ReadonlySignal<boolean>;
  /** This device; null until signed in. */
  readonly me: ReadonlySignal<Me | null>;
  readonly sessions: ReadonlySignal<ReadonlyMap<string, SessionInfo>>;
  /** Whether `sessions` was read at least once; before that an empty map means nothing. */
  readonly loaded: ReadonlySignal<boolean>;
  readonly runtimes: ReadonlySignal<ReadonlyMap<string, RuntimeInfo>>;
  /** The running or queued run of each session. */
  readonly runs: ReadonlySignal<ReadonlyMap<string, RunInfo>>;
  /** Open requests, and those resolved within the last minutes (with another `state` and a `receipt`). */
  readonly requests: ReadonlySignal<ReadonlyMap<string, Request>>;
  /** The viewers of each session, without this device. */
  readonly viewers: ReadonlySignal<ReadonlyMap<string, readonly Viewer[]>>;
  /** The time when each session last changed, ms by the gateway's clock; updated at most twice a second. */
  readonly news: ReadonlySignal<ReadonlyMap<string, number>>;
  /** Sessions with changes that this device has not shown. */
  readonly unread: ReadonlySignal<ReadonlySet<string>>;
  readonly route: ReadonlySignal<Route>;
  /** The time, ms by the gateway's clock; updated once a second while the page is visible. For showing ages. */
  readonly now: ReadonlySignal<number>;

  /** Whether this device has the scope (true while unknown). */
  may(scope: Scope): boolean;
  /** Follows one session over the shared connection until the returned function is called. While `rests` is true it is not read again
   *  after a gap; the sink is told so by `trouble`. */
  follow(session_id: string, sink: Sink, rests?: () => boolean): () => void;
  /** Calls `listener` for every event of every session. */
  listen(listener: (event: Envelope) => void): () => void;
  /** Calls a method of the WebSocket protocol. Throws `Refused` (with `.code`; `.status` is 0), or an `Error` without a connection. */
  call<T = any>(method: string, params?: { [name: string]: unknown }): Promise<T>;
  /** One HTTP call with the page's credentials. Throws `Refused` for a status that is not 2xx. */
  http<T = any>(method: string, path: string, body?: Json | { [name: string]: unknown }, more?: { headers?: Record<string, string>; signal?: AbortSignal }): Promise<T>;
  /** A WebSocket of the gateway, with the page's credentials. */
  socket(path: string): WebSocket;
  /** Makes a call like `http`, for responses that are not JSON (exports); returns the checked response. */
  fetch(path: string, init?: { accept?: string; signal?: AbortSignal }): Promise<Response>;
  /** Answers a request, bound to the digest of what was shown. */
  answer(request: Request, answer: Answer): Promise<Outcome>;
  /** Reads one request again, into `requests`. */
  reread(request_id: string): Promise<Request | null>;
  /** Marks a session as read on this device. */
  seen(session_id: string): void;
  go(route: Route): void;
  /** The URL fragment of a route, for links. */
  href(route: Route): string;
  /** Tries to connect now. */
  retry(): void;
}

/** The gateway that served this page. */
export const plexus: Plexus = gateway;

export { Refused, why } from './wire/http.js';
