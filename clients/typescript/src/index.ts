// A client of the gateway's native WebSocket protocol, which reconnects by itself and resumes by cursor.
//
// An attachment gets its events in order, without gaps and repeats, however often the connection is lost: it keeps the cursor of
// the last delivered event and resumes after it. If the log cannot be resumed there (`gap`, `reset`, `ahead`), a snapshot replaces
// the missing part.

import type {
  Accepted,
  Answer,
  ContentBlock,
  Cursor,
  Envelope,
  Hello,
  History,
  Initialized,
  Lag,
  Live,
  Receipt,
  Request,
  Resolution,
  Runtime,
  Session,
  SessionNew,
  Sessions,
  Snapshots,
} from './types.ts';

export type * from './types.ts';

/** An event of any kind; `switch (event.kind)` narrows `event.event`. */
export type Event = Envelope;

/** Close codes after which the client does not reconnect: the token is revoked, or lacks the scope. */
const FINAL: { readonly [code: number]: string } = { 4001: 'revoked', 4003: 'scope_missing' };

/** Timeouts and pauses, in milliseconds. */
export interface Patience {
  /** Limit of the first pause before reconnecting; it doubles. The pause is a random part of the limit. */
  first: number;
  /** Limit of the longest pause. */
  longest: number;
  /** Timeout of connecting and `initialize`. */
  connect: number;
  /** Silence after which the connection is probed; after as much silence again it counts as lost. */
  quiet: number;
}

const PATIENCE: Patience = { first: 200, longest: 10_000, connect: 20_000, quiet: 45_000 };

/** The part of the platform's `WebSocket` that is used. */
export interface Socket {
  send(text: string): void;
  close(code?: number): void;
  addEventListener(type: 'open' | 'error', listener: () => void): void;
  addEventListener(type: 'message', listener: (event: { data: unknown }) => void): void;
  addEventListener(type: 'close', listener: (event: { code: number; reason: string }) => void): void;
}

export interface Options {
  /** The gateway's URL: `http://127.0.0.1:7420`. In its own page: `location.origin`. */
  url: string;
  /** The token of an enrolled device. */
  token: string;
  /** The client's name in `initialize`. */
  name?: string;
  /** Replaces the global `WebSocket`, which Node has since version 22; the class of the package `ws` works. */
  WebSocket?: new (url: string, protocols: string[]) => Socket;
  patience?: Partial<Patience>;
}

/** An error with a stable `code`; do not depend on the message. */
export class PlexusError extends Error {
  /** The gateway's code, or `lost` (sent, outcome unknown), `closed`, `unauthorized`, `revoked`, `scope_missing`. */
  readonly code: string;
  /** The JSON-RPC code, if the gateway replied. */
  readonly rpc: number | undefined;
  /** The `data` of the gateway's error. */
  readonly data: { readonly [member: string]: unknown };

  constructor(code: string, message: string, rpc?: number, data: { [member: string]: unknown } = {}) {
    super(message);
    this.name = 'PlexusError';
    this.code = code;
    this.rpc = rpc;
    this.data = data;
  }
}

/** A message of an attachment. */
export type AttachmentMessage =
  | { type: 'hello'; hello: Hello }
  | { type: 'snapshot'; snapshot: Snapshots }
  | { type: 'event'; event: Event }
  | { type: 'live'; live: Live }
  | { type: 'lag'; lag: Lag };

/** A change of the connection, of a session or of a runtime. */
export type Change =
  | { type: 'open'; initialized: Initialized }
  | { type: 'lost'; code: number; reason: string; pause: number }
  | { type: 'closed'; error: PlexusError | null }
  | { type: 'session'; session: Session }
  | { type: 'session_deleted'; session_id: string }
  | { type: 'runtime'; runtime: Runtime }
  | { type: 'runtime_removed'; runtime_id: string };

/** `resolution` is null if the request ended while the client was disconnected and the log no longer has the event. */
export type RequestChange =
  | { type: 'opened'; request: Request }
  | { type: 'resolved'; request: Request; resolution: Resolution | null };

type Listener<T> = (what: T) => void;

/** Listeners. An error of one is reported as uncaught; the others are still called. */
class Listeners<T> {
  #all = new Set<Listener<T>>();

  add(listener: Listener<T>): () => void {
    const own: Listener<T> = (what) => listener(what);
    this.#all.add(own);
    return () => void this.#all.delete(own);
  }

  get size(): number {
    return this.#all.size;
  }

  notify(what: T): void {
    for (const listener of [...this.#all]) {
      try {
        listener(what);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}

/** The open requests of all attached sessions. */
export class Requests {
  /** By `request_id`, in order of arrival. */
  readonly open: ReadonlyMap<string, Request>;
  #open = new Map<string, Request>();
  #listeners = new Listeners<RequestChange>();

  constructor() {
    this.open = this.#open;
  }

  /** Calls `listener` once for each request that opens or ends; the returned function removes it. */
  listen(listener: Listener<RequestChange>): () => void {
    return this.#listeners.add(listener);
  }

  /** @internal */
  opened(request: Request): void {
    if (this.#open.has(request.request_id)) return;
    this.#open.set(request.request_id, request);
    this.#listeners.notify({ type: 'opened', request });
  }

  /** @internal */
  resolved(id: string, resolution: Resolution | null): void {
    const request = this.#open.get(id);
    if (request === undefined) return;
    this.#open.delete(id);
    this.#listeners.notify({ type: 'resolved', request, resolution });
  }
}

/** Where an attachment begins: at the oldest stored event, now, or after a cursor. */
export interface AttachOptions {
  from?: 'start' | 'now';
  after?: Cursor;
  /** `native` adds the runtime's own message to each event. */
  projection?: 'canonical' | 'native';
}

/** A followed session, or all sessions (`*`), until it is detached. */
export class Attachment {
  readonly session_id: string;
  /** Resolves once all earlier events were delivered; rejects if the gateway refuses the attachment. */
  readonly live: Promise<void>;
  #options: AttachOptions;
  #cursor: Cursor | undefined;
  /** The connection of the last hello; messages of earlier connections are ignored. */
  #helloConnection = 0;
  #replaying = true;
  /** Requests that are open here but not in the last hello: the replay may have their resolution. */
  #doubtful = new Set<string>();
  #listeners = new Listeners<AttachmentMessage>();
  /** Messages before the first listener; null once there was one. */
  #waiting: AttachmentMessage[] | null = [];
  #ends = new Set<(error: PlexusError | null) => void>();
  #over: { error: PlexusError | null } | null = null;
  #wentLive!: () => void;
  #failed!: (error: PlexusError) => void;
  #requests: Requests;
  #leave: () => void;

  /** @internal */
  constructor(session_id: string, begin: AttachOptions, requests: Requests, leave: (attachment: Attachment) => void) {
    this.session_id = session_id;
    this.#options = begin;
    this.#cursor = begin.after;
    this.#requests = requests;
    this.#leave = () => leave(this);
    this.live = new Promise((resolve, reject) => {
      this.#wentLive = resolve;
      this.#failed = reject;
    });
    // Callers that do not await `live` get the error from the iterators and from `closed`.
    this.live.catch(() => {});
  }

  /** All events up to here were delivered. Store it to resume here later. */
  get cursor(): Cursor | undefined {
    return this.#cursor;
  }

  /** Calls `listener` for all messages, in order; earlier ones are delivered to the first listener at once. The returned function
   *  removes it. */
  listen(listener: Listener<AttachmentMessage>): () => void {
    const end = this.#listeners.add(listener);
    const waiting = this.#waiting ?? [];
    this.#waiting = null;
    for (const message of waiting) this.#listeners.notify(message);
    return end;
  }

  /** The events, until it is detached. Events that are not consumed stay in memory. Leaving the loop does not detach. */
  async *events(): AsyncGenerator<Event, void, undefined> {
    for await (const message of this) {
      if (message.type === 'event') yield message.event;
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<AttachmentMessage, void, undefined> {
    const queue: AttachmentMessage[] = [];
    let wake = (): void => {};
    const unlisten = this.listen((message) => {
      queue.push(message);
      wake();
    });
    const ended = (): void => wake();
    this.#ends.add(ended);
    try {
      for (;;) {
        for (let message = queue.shift(); message !== undefined; message = queue.shift()) yield message;
        if (this.#over !== null) {
          if (this.#over.error !== null) throw this.#over.error;
          return;
        }
        await new Promise<void>((resolve) => (wake = resolve));
      }
    } finally {
      unlisten();
      this.#ends.delete(ended);
    }
  }

  /** Detaches. No further messages are delivered. */
  detach(): void {
    this.end(null);
    this.#leave();
  }

  /** @internal The parameters of `session.attach`. */
  params(): { [member: string]: unknown } {
    const { from, projection } = this.#options;
    const place = this.#cursor !== undefined ? { after: this.#cursor } : { from: from ?? 'start' };
    return { session_id: this.session_id, ...place, ...(projection === undefined ? {} : { projection }) };
  }

  /** @internal */
  get over(): boolean {
    return this.#over !== null;
  }

  /** @internal */
  end(error: PlexusError | null): void {
    if (this.#over !== null) return;
    this.#over = { error };
    this.#failed(error ?? new PlexusError('closed', 'it was detached before it went live'));
    for (const ended of [...this.#ends]) ended(error);
  }

  /** @internal */
  receive(message: AttachmentMessage, connection: number): void {
    if (this.#over !== null) return;
    if (message.type === 'hello') {
      this.#helloConnection = connection;
      this.#replaying = true;
      this.#onHello(message.hello);
    } else if (this.#helloConnection !== connection) {
      return;
    }
    if (message.type === 'event') {
      if (this.#isDelivered(message.event.cursor)) return;
      this.#cursor = message.event.cursor;
      this.#deliver(message);
      this.#trackRequest(message.event);
      return;
    }
    if (message.type === 'snapshot') this.#cursor = message.snapshot.cursor;
    if (message.type === 'live') {
      this.#cursor = message.live.head;
      this.#replaying = false;
    }
    this.#deliver(message);
    if (message.type === 'live') {
      for (const id of this.#doubtful) this.#requests.resolved(id, null);
      this.#doubtful.clear();
      this.#wentLive();
    }
  }

  #deliver(message: AttachmentMessage): void {
    if (this.#waiting !== null) this.#waiting.push(message);
    else this.#listeners.notify(message);
  }

  /** Whether an event was delivered already. The gateway sends each once; a proxy may not. */
  #isDelivered(cursor: Cursor): boolean {
    const [epoch, position] = cursor.split(':');
    const [known, delivered] = this.#cursor?.split(':') ?? [];
    return epoch === known && Number(position) <= Number(delivered);
  }

  #onHello(hello: Hello): void {
    this.#doubtful.clear();
    const open = new Set(hello.requests.map((request) => request.request_id));
    for (const [id, request] of this.#requests.open) {
      if ((this.session_id === '*' || request.session_id === this.session_id) && !open.has(id)) this.#doubtful.add(id);
    }
    for (const request of hello.requests) this.#requests.opened(request);
  }

  #trackRequest(event: Event): void {
    if (event.kind === 'request_opened' && !this.#replaying) {
      // During a replay the open requests come with the hello.
      this.#requests.opened(event.event);
    } else if (event.kind === 'request_resolved') {
      this.#doubtful.delete(event.event.request_id);
      this.#requests.resolved(event.event.request_id, event.event);
    }
  }
}

interface Pending {
  resolve(result: unknown): void;
  reject(error: PlexusError): void;
}

interface Message {
  id?: unknown;
  method?: unknown;
  params?: unknown;
  result?: unknown;
  error?: { code: number; message: string; data?: { [member: string]: unknown } };
}

/** One WebSocket connection. */
class Connection {
  readonly number: number;
  readonly socket: Socket;
  readonly waiting = new Map<string, Pending>();
  lastMessageAt = Date.now();
  #next = 0;

  constructor(number: number, socket: Socket) {
    this.number = number;
    this.socket = socket;
  }

  /** Sends a request. Rejects with `lost` if the connection is lost before the reply. */
  request(method: string, params: object): Promise<unknown> {
    const id = `c${++this.#next}`;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    });
  }

  answered(message: Message): void {
    if (typeof message.id !== 'string') return;
    const waiting = this.waiting.get(message.id);
    if (waiting === undefined) return;
    this.waiting.delete(message.id);
    const { error } = message;
    if (error === undefined) return waiting.resolve(message.result);
    const data = error.data ?? {};
    const code = typeof data['code'] === 'string' ? data['code'] : 'rpc_error';
    waiting.reject(new PlexusError(code, error.message, error.code, data));
  }

  lost(error: PlexusError): void {
    for (const waiting of this.waiting.values()) waiting.reject(error);
    this.waiting.clear();
  }
}

/** A client. Connects at once, and reconnects until it is closed or its token is refused. */
export class Plexus {
  /** The open requests of all attached sessions. */
  readonly requests = new Requests();
  #options: Options;
  #patience: Patience;
  #attachments = new Map<string, Attachment>();
  /** Pending detaches: attaching the same session again waits for them, so that old messages are not taken for new. */
  #detaching = new Map<string, Promise<unknown>>();
  #listeners = new Listeners<Change>();
  #connection: Connection | null = null;
  #ready: Connection | null = null;
  #connections = 0;
  #pause: number;
  #wake: () => void = () => {};
  #whenReady = new Set<Pending>();
  #closed: { error: PlexusError | null } | null = null;

  constructor(options: Options) {
    this.#options = options;
    this.#patience = { ...PATIENCE, ...options.patience };
    this.#pause = this.#patience.first;
    void this.#run();
  }

  /** Whether it is connected and initialized. */
  get connected(): boolean {
    return this.#ready !== null;
  }

  /** Calls `listener` for changes of the connection, sessions and runtimes; the returned function removes it. */
  listen(listener: Listener<Change>): () => void {
    return this.#listeners.add(listener);
  }

  /** Reconnects now instead of after the pause: for when the network is back, or the page is shown. */
  wake(): void {
    this.#wake();
  }

  /** Closes the client. Pending calls reject with `closed`. */
  close(): void {
    this.#close(null);
  }

  runtimes(): Promise<Runtime[]> {
    return this.#callRepeatedly<{ runtimes: Runtime[] }>('runtime.list', {}).then(({ runtimes }) => runtimes);
  }

  sessions(): Promise<Session[]> {
    return this.#sessions();
  }

  async #sessions(): Promise<Session[]> {
    // A session that changes meanwhile comes twice.
    const all = new Map<string, Session>();
    for (let cursor: string | undefined; ;) {
      const page: Sessions = await this.#callRepeatedly('session.list', cursor === undefined ? {} : { cursor });
      for (const session of page.sessions) all.set(session.session_id, session);
      cursor = page.next;
      if (cursor === undefined) return [...all.values()];
    }
  }

  /** Opens a session. */
  newSession(session: SessionNew): Promise<Session> {
    return this.call<Session>('session.new', session);
  }

  /** Attaches to a session, or to all with `*`. Throws if it is attached already. */
  attach(session_id: string, begin: AttachOptions = {}): Attachment {
    if (this.#closed !== null) throw this.#closed.error ?? new PlexusError('closed', 'the client is closed');
    if (this.#attachments.has(session_id)) throw new PlexusError('attached', `${session_id} is followed already`);
    const attachment = new Attachment(session_id, begin, this.requests, (gone) => this.#detach(gone));
    this.#attachments.set(session_id, attachment);
    if (this.#ready !== null) void this.#attach(this.#ready, attachment);
    return attachment;
  }

  /**
   * A page of a session's events: continue with `after: page.next` until `events` is empty, or with `before: page.previous` until
   * there is none. With `merge` the chunks of a message, and the updates of a tool call, are one event each.
   */
  history(session_id: string, page: { after?: Cursor; before?: Cursor; limit?: number; merge?: boolean; max_bytes?: number } = {}): Promise<History> {
    return this.#callRepeatedly<History>('session.history', { session_id, ...page });
  }

  /** Sends a prompt, once: if the connection is lost before the reply, it rejects with `lost`, and the events show the outcome. */
  prompt(session_id: string, prompt: string | ContentBlock[]): Promise<Accepted> {
    const what = typeof prompt === 'string' ? { text: prompt } : { content: prompt };
    return this.call<Accepted>('run.start', { session_id, ...what });
  }

  /** Cancels the current run, or the one named. */
  async cancel(session_id: string, run_id?: string): Promise<string> {
    const params = run_id === undefined ? { session_id } : { session_id, run_id };
    return (await this.call<{ run_id: string }>('run.cancel', params)).run_id;
  }

  /**
   * Answers a request. If the request itself is passed, its digest is sent, and the answer counts only for what it shows. A receipt
   * of another answer (`won` false) or of a closed request (`state`) is no error. Sent again under the same key until there is a
   * reply, so that no answer is given twice.
   */
  async answer(request: Request | string, answer: Answer, key: string = random()): Promise<Receipt> {
    const asked = typeof request === 'string' ? { request_id: request } : { request_id: request.request_id, digest: request.digest };
    try {
      return await this.#callRepeatedly<Receipt>('ui.request.answer', { ...asked, ...answer, idempotency_key: key });
    } catch (error) {
      if (error instanceof PlexusError && (error.rpc === -32010 || error.rpc === -32012) && 'resolved_by' in error.data) {
        // The error's data has the receipt's members beside the code.
        const { code: _, ...receipt } = error.data;
        return receipt as unknown as Receipt;
      }
      throw error;
    }
  }

  /** Calls any method; methods that the gateway does not know go to the session's runtime. Waits for the connection; sent once. */
  async call<T = unknown>(method: string, params: object = {}): Promise<T> {
    const connection = await this.#whenConnected();
    return (await connection.request(method, params)) as T;
  }

  /** As `call`, for methods that may be repeated. */
  async #callRepeatedly<T>(method: string, params: object): Promise<T> {
    for (;;) {
      try {
        return await this.call<T>(method, params);
      } catch (error) {
        if (!(error instanceof PlexusError) || error.code !== 'lost') throw error;
      }
    }
  }

  #whenConnected(): Promise<Connection> {
    if (this.#closed !== null) {
      return Promise.reject(this.#closed.error ?? new PlexusError('closed', 'the client is closed'));
    }
    if (this.#ready !== null) return Promise.resolve(this.#ready);
    return new Promise((resolve, reject) => {
      const waiting: Pending = { resolve: (connection) => resolve(connection as Connection), reject };
      this.#whenReady.add(waiting);
    });
  }

  #detach(attachment: Attachment): void {
    const name = attachment.session_id;
    if (this.#attachments.get(name) !== attachment) return;
    this.#attachments.delete(name);
    const connection = this.#ready;
    if (connection === null) return;
    const left = connection.request('session.detach', { session_id: name }).catch(() => {});
    this.#detaching.set(name, left);
    void left.then(() => {
      if (this.#detaching.get(name) === left) this.#detaching.delete(name);
    });
  }

  async #attach(connection: Connection, attachment: Attachment): Promise<void> {
    await this.#detaching.get(attachment.session_id);
    if (attachment.over || this.#ready !== connection) return;
    try {
      await connection.request('session.attach', attachment.params());
    } catch (error) {
      if (!(error instanceof PlexusError) || error.code === 'lost' || error.code === 'closed') return;
      if (this.#attachments.get(attachment.session_id) === attachment) this.#attachments.delete(attachment.session_id);
      attachment.end(error);
    }
  }

  #close(error: PlexusError | null): void {
    if (this.#closed !== null) return;
    this.#closed = { error };
    const why = error ?? new PlexusError('closed', 'the client was closed');
    const connection = this.#connection;
    this.#connection = this.#ready = null;
    connection?.lost(why);
    if (connection !== null) closeSocket(connection.socket);
    for (const waiting of [...this.#whenReady]) waiting.reject(why);
    this.#whenReady.clear();
    for (const attachment of [...this.#attachments.values()]) attachment.end(error);
    this.#attachments.clear();
    this.#wake();
    this.#listeners.notify({ type: 'closed', error });
  }

  /** Connects, and reconnects until closed. */
  async #run(): Promise<void> {
    // Lets the caller add listeners and attachments first.
    await Promise.resolve();
    while (this.#closed === null) {
      const { code, reason, opened } = await this.#connectOnce();
      if (this.#closed !== null) return;
      const final = FINAL[code];
      if (final !== undefined) return this.#close(new PlexusError(final, reason || `closed with code ${code}`));
      if (!opened && (await this.#unauthorized())) {
        return this.#close(new PlexusError('unauthorized', 'the gateway does not know this token'));
      }
      if (this.#closed !== null) return;
      const pause = Math.round(Math.random() * this.#pause);
      this.#pause = Math.min(this.#pause * 2, this.#patience.longest);
      this.#listeners.notify({ type: 'lost', code, reason, pause });
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, pause);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
        if (this.#closed !== null) this.#wake();
      });
      this.#wake = () => {};
    }
  }

  /** Opens one connection; resolves when it is lost. */
  #connectOnce(): Promise<{ code: number; reason: string; opened: boolean }> {
    return new Promise((resolve) => {
      let socket: Socket;
      try {
        socket = this.#openSocket();
      } catch (error) {
        const never = error instanceof PlexusError || (error instanceof Error && error.name === 'SyntaxError');
        if (never) this.#close(error instanceof PlexusError ? error : new PlexusError('bad_options', String(error)));
        return resolve({ code: 1006, reason: String(error), opened: false });
      }
      const connection = new Connection(++this.#connections, socket);
      this.#connection = connection;
      let opened = false;
      let over = false;
      const end = (code: number, reason: string): void => {
        if (over) return;
        over = true;
        clearTimeout(slow);
        clearInterval(watch);
        if (this.#connection === connection) this.#connection = this.#ready = null;
        connection.lost(new PlexusError('lost', `the connection was lost: ${reason || code}`));
        closeSocket(socket);
        resolve({ code, reason, opened });
      };
      const slow = setTimeout(() => end(1006, 'the gateway does not answer'), this.#patience.connect);
      let asked = false;
      const watch = setInterval(() => {
        if (this.#ready !== connection || Date.now() - connection.lastMessageAt < this.#patience.quiet) return void (asked = false);
        // WebSocket pings are not visible to scripts: probe with a request.
        if (asked) return end(1006, 'nothing was message any more');
        asked = true;
        connection.request('session.list', { limit: 0 }).catch(() => {});
      }, this.#patience.quiet);
      socket.addEventListener('open', () => {
        opened = true;
        const ui = { supports_confirm: true, supports_prompt: true, supports_pick: true };
        const client = { name: this.#options.name ?? 'plexus-client', version: '0.1.0' };
        connection.request('initialize', { protocol_version: '0', client, ui_capabilities: ui }).then(
          (initialized) => {
            clearTimeout(slow);
            if (over || this.#closed !== null) return;
            this.#open(connection, initialized as Initialized);
          },
          (error: unknown) => end(1006, String(error)),
        );
      });
      socket.addEventListener('message', ({ data }) => {
        // Ignores late frames of a connection that counts as lost.
        if (over || this.#connection !== connection || typeof data !== 'string') return;
        connection.lastMessageAt = Date.now();
        this.#message(connection, data);
      });
      socket.addEventListener('error', () => {
        // The close event that follows has the code; some implementations send none after a failed handshake.
        setTimeout(() => end(1006, 'the connection failed'), opened ? this.#patience.first : 0);
      });
      socket.addEventListener('close', ({ code, reason }) => end(code, String(reason)));
    });
  }

  #openSocket(): Socket {
    const { url, token } = this.#options;
    const WebSocket = this.#options.WebSocket ?? (globalThis as { WebSocket?: new (url: string, protocols: string[]) => Socket }).WebSocket;
    if (WebSocket === undefined) {
      throw new PlexusError('no_websocket', 'there is no global WebSocket: give one in the options, or use Node 22');
    }
    const address = `${url.replace(/^http/, 'ws').replace(/\/+$/, '')}/v1/ws`;
    return new WebSocket(address, ['plexus.v1', `plexus.bearer.${token}`]);
  }

  /** Checks the token over HTTP: a failed handshake does not tell scripts why. */
  async #unauthorized(): Promise<boolean> {
    try {
      const { url, token } = this.#options;
      const headers = { authorization: `Bearer ${token}` };
      const reply = await fetch(`${url.replace(/^ws/, 'http').replace(/\/+$/, '')}/v1/me`, { headers });
      await reply.body?.cancel();
      return reply.status === 401;
    } catch {
      return false;
    }
  }

  #open(connection: Connection, initialized: Initialized): void {
    this.#ready = connection;
    this.#detaching.clear();
    this.#listeners.notify({ type: 'open', initialized });
    for (const attachment of [...this.#attachments.values()]) void this.#attach(connection, attachment);
    const waiting = [...this.#whenReady];
    this.#whenReady.clear();
    for (const one of waiting) one.resolve(connection);
  }

  #message(connection: Connection, text: string): void {
    let message: Message;
    try {
      message = JSON.parse(text) as Message;
    } catch {
      return;
    }
    if (typeof message.method !== 'string') return connection.answered(message);
    const params = message.params as { session_id: string };
    switch (message.method) {
      case 'agent.event': {
        const event = params as unknown as Event;
        this.#pause = this.#patience.first;
        return this.#dispatch(connection, event.session_id, { type: 'event', event });
      }
      case 'gateway.hello':
        return this.#dispatch(connection, params.session_id, { type: 'hello', hello: params as Hello });
      case 'gateway.snapshot':
        return this.#dispatch(connection, params.session_id, { type: 'snapshot', snapshot: params as Snapshots });
      case 'gateway.live':
        this.#pause = this.#patience.first;
        return this.#dispatch(connection, params.session_id, { type: 'live', live: params as Live });
      case 'gateway.lag':
        return this.#dispatch(connection, params.session_id, { type: 'lag', lag: params as Lag });
      case 'session.updated':
        return this.#listeners.notify({ type: 'session', session: (params as unknown as { session: Session }).session });
      case 'runtime.updated':
        return this.#listeners.notify({ type: 'runtime', runtime: (params as unknown as { runtime: Runtime }).runtime });
      case 'session.deleted':
        return this.#listeners.notify({ type: 'session_deleted', session_id: params.session_id });
      case 'runtime.removed':
        return this.#listeners.notify({ type: 'runtime_removed', runtime_id: (params as unknown as { runtime_id: string }).runtime_id });
      default:
      // `run.status`, `ui.*.request` and others repeat events.
    }
  }

  #dispatch(connection: Connection, session_id: string, message: AttachmentMessage): void {
    const attachment = this.#attachments.get(session_id) ?? this.#attachments.get('*');
    // No attachment: detached meanwhile.
    attachment?.receive(message, connection.number);
  }
}

function closeSocket(socket: Socket): void {
  try {
    socket.close();
  } catch {
    // It was never open.
  }
}

/** A random key; `randomUUID` exists only in secure contexts. */
function random(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
