// One file: what every part of the page may ask of the gateway, and nothing of how.
import type { ReadonlySignal } from './lib/signal.js';
import type {
  Answer, Envelope, Json, Looker, Me, Page, Phase, Receipt, Request, RunInfo, RuntimeInfo, Scope, SessionInfo, Snapshot,
} from './wire/types.js';
import { gateway } from './wire/gateway.js';

/** What is known of the connection. */
export interface LinkState {
  phase: Phase;
  /** When the phase began, ms of this clock. */
  since: number;
  /** When the gateway was last heard of, ms of this clock; 0 if never. What is shown was true then. */
  heardAt: number;
  /** Why it is not live, where the gateway said so. */
  reason: string;
}

/** News of one followed session, at most once per animation frame, in the order of the log. */
export interface Batch {
  /** The session anew: forget what was shown and begin with this. Comes first, and again after a resume that was not clean. */
  snapshot?: Snapshot;
  /** With `snapshot`: the newest of its past, merged. What is older is read from `past.previous` back. */
  past?: Page;
  /** Set with a later `snapshot`: why what was shown before is void. */
  reset?: string;
  /** What happened after `past`, each event once. */
  events: Envelope[];
  /** The session could not be read. `gone`: it is not there (any more). Follow again to try again. */
  trouble?: { text: string; gone: boolean };
}
export type Sink = (batch: Batch) => void;

/** What became of an answer. Nothing of it is thrown. */
export type Outcome =
  /** It counts. */
  | { kind: 'won'; receipt: Receipt }
  /** Somebody (or the gateway) was first; the receipt is theirs. */
  | { kind: 'late'; receipt: Receipt }
  /** Not accepted, the request is open still: `code` is the gateway's (`stale_digest`, `risk_too_high`, ..), `text` its words. */
  | { kind: 'refused'; code: string; text: string }
  /** The connection failed: it is not known whether it arrived. Ask for the request again. */
  | { kind: 'unknown'; text: string };

export type Route =
  | { page: 'inbox'; request?: string }
  | { page: 'sessions' }
  | { page: 'session'; session_id: string; at?: number }
  | { page: 'devices' }
  | { page: 'runtimes'; runtime_id?: string }
  | { page: 'search'; q?: string };

export interface Plexus {
  readonly link: ReadonlySignal<LinkState>;
  /** Whether what is on the page is true now: phase `live` or `catching-up`. */
  readonly live: ReadonlySignal<boolean>;
  /** This device; null until signed in. */
  readonly me: ReadonlySignal<Me | null>;
  readonly sessions: ReadonlySignal<ReadonlyMap<string, SessionInfo>>;
  /** Whether `sessions` has been read since the connection came up first; until then an empty map means nothing. */
  readonly loaded: ReadonlySignal<boolean>;
  readonly runtimes: ReadonlySignal<ReadonlyMap<string, RuntimeInfo>>;
  /** The runs under way or waiting, by session. */
  readonly runs: ReadonlySignal<ReadonlyMap<string, RunInfo>>;
  /** Open, and resolved within the last minutes: those have another `state` and a `receipt`. */
  readonly requests: ReadonlySignal<ReadonlyMap<string, Request>>;
  /** Other screens that have a session in focus, by session; without this one. */
  readonly lookers: ReadonlySignal<ReadonlyMap<string, readonly Looker[]>>;
  /** When each session last had news, ms of the gateway's clock; follows at most twice a second. */
  readonly news: ReadonlySignal<ReadonlyMap<string, number>>;
  /** Sessions with news that this device has not shown. */
  readonly unread: ReadonlySignal<ReadonlySet<string>>;
  readonly route: ReadonlySignal<Route>;
  /** Ticks once a second while the page is seen: read it to show an age. ms of the gateway's clock. */
  readonly now: ReadonlySignal<number>;

  /** Whether this device has the scope (true while unknown). */
  may(scope: Scope): boolean;
  /** Follows one session over the shared connection until the returned function is called. */
  follow(session_id: string, sink: Sink): () => void;
  /** Every event of every session, as it comes. */
  listen(hear: (event: Envelope) => void): () => void;
  /** A method of the WebSocket protocol. Throws `Refused` (ui: `.code`, `.status` 0) or an `Error` if there is no connection. */
  call<T = any>(method: string, params?: { [name: string]: unknown }): Promise<T>;
  /** One HTTP call to the gateway, signed in. Throws `Refused` for an answer that is not 2xx. */
  http<T = any>(method: string, path: string, body?: Json | { [name: string]: unknown }): Promise<T>;
  /** The same, for what is not JSON (exports): the response, already checked. */
  fetch(path: string, init?: { accept?: string; signal?: AbortSignal }): Promise<Response>;
  /** Answers a request, bound to the digest of what was shown. */
  answer(request: Request, answer: Answer): Promise<Outcome>;
  /** Reads one request again, into `requests`. */
  reread(request_id: string): Promise<Request | null>;
  /** Marks a session's news as seen on this device. */
  seen(session_id: string): void;
  go(route: Route): void;
  /** The address of a route, for links. */
  href(route: Route): string;
  /** Tries to connect now. */
  retry(): void;
}

/** The one gateway: the origin that served this page. */
export const plexus: Plexus = gateway;

export { Refused, why } from './wire/http.js';
