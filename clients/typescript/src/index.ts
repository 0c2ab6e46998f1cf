// A client of the gateway's native WebSocket, in one file because it is one state: a connection that comes back with its
// cursors for ever.
//
// What an attachment hears is in order, without a gap and without a repeat, however often the connection is cut: it keeps the
// cursor of the last event it gave out and goes on after it. Where the log cannot go on (`gap`, `reset`, `ahead`), a snapshot
// comes in place of what is missing.

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

/** After these the token is no use as it is: revoked, or without the scope. */
const FINAL: { readonly [code: number]: string } = { 4001: 'revoked', 4003: 'scope_missing' };

/** Milliseconds. */
export interface Patience {
  /** The first pause before coming back, at most; it doubles. The pause itself is a random part of it. */
  first: number;
  /** The longest pause. */
  longest: number;
  /** How long connecting and saying hello may take. */
  connect: number;
  /** How long nothing may be heard before the gateway is asked for a sign of life, and again until it is taken for gone. */
  quiet: number;
}

const PATIENCE: Patience = { first: 200, longest: 10_000, connect: 20_000, quiet: 45_000 };

/** What is used of the platform's `WebSocket`. */
export interface Socket {
  send(text: string): void;
  close(code?: number): void;
  addEventListener(type: 'open' | 'error', listener: () => void): void;
  addEventListener(type: 'message', listener: (event: { data: unknown }) => void): void;
  addEventListener(type: 'close', listener: (event: { code: number; reason: string }) => void): void;
}

export interface Options {
  /** Where the gateway is: `http://127.0.0.1:7420`. In its own page: `location.origin`. */
  url: string;
  /** The token of an enrolled device. */
  token: string;
  /** How this client calls itself. */
  name?: string;
  /** In place of the global `WebSocket`, which Node has from version 22 on; the class of the package `ws` will do. */
  WebSocket?: new (url: string, protocols: string[]) => Socket;
  patience?: Partial<Patience>;
}

/** Something was not done. `code` is stable: act on it, never on the words. */
export class PlexusError extends Error {
  /** As the gateway names it, or `lost` (sent, but what became of it is not known), `closed`, `unauthorized`, `revoked`, `scope_missing`. */
  readonly code: string;
  /** The JSON-RPC code, where the gateway answered. */
  readonly rpc: number | undefined;
  /** What the gateway said beside it. */
  readonly data: { readonly [member: string]: unknown };

  constructor(code: string, message: string, rpc?: number, data: { [member: string]: unknown } = {}) {
    super(message);
    this.name = 'PlexusError';
    this.code = code;
    this.rpc = rpc;
    this.data = data;
  }
}

/** What an attachment hears. */
export type Heard =
  | { type: 'hello'; hello: Hello }
  | { type: 'snapshot'; snapshot: Snapshots }
  | { type: 'event'; event: Event }
  | { type: 'live'; live: Live }
  | { type: 'lag'; lag: Lag };

/** What happens to the connection, and beside the attachments. */
export type Change =
  | { type: 'open'; initialized: Initialized }
  | { type: 'lost'; code: number; reason: string; pause: number }
  | { type: 'closed'; error: PlexusError | null }
  | { type: 'session'; session: Session }
  | { type: 'session_deleted'; session_id: string }
  | { type: 'runtime'; runtime: Runtime }
  | { type: 'runtime_removed'; runtime_id: string };

/** `resolution` is null where the request ended while nobody here was listening and the log no longer says how. */
export type RequestChange =
  | { type: 'opened'; request: Request }
  | { type: 'resolved'; request: Request; resolution: Resolution | null };

type Listener<T> = (what: T) => void;

/** Listeners. One that throws is reported as an uncaught error, and does not keep the others from hearing. */
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

  tell(what: T): void {
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

/** The requests that are open, in whatever is attached. */
export class Requests {
  /** By `request_id`, in the order they came. */
  readonly open: ReadonlyMap<string, Request>;
  #open = new Map<string, Request>();
  #listeners = new Listeners<RequestChange>();

  constructor() {
    this.open = this.#open;
  }

  /** Hears of every request that opens or ends, once each; returns what ends the listening. */
  listen(listener: Listener<RequestChange>): () => void {
    return this.#listeners.add(listener);
  }

  /** @internal */
  opened(request: Request): void {
    if (this.#open.has(request.request_id)) return;
    this.#open.set(request.request_id, request);
    this.#listeners.tell({ type: 'opened', request });
  }

  /** @internal */
  resolved(id: string, resolution: Resolution | null): void {
    const request = this.#open.get(id);
    if (request === undefined) return;
    this.#open.delete(id);
    this.#listeners.tell({ type: 'resolved', request, resolution });
  }
}

/** Where an attachment begins: the oldest event kept, what comes from now on, or after a cursor. */
export interface Begin {
  from?: 'start' | 'now';
  after?: Cursor;
  /** `native` brings what the runtime itself said along with each event. */
  projection?: 'canonical' | 'native';
}

/** A session that is followed, or all (`*`), until it is detached. */
export class Attachment {
  readonly session_id: string;
  /** Resolves when everything from before is told; rejects if the gateway will not have it attached. */
  readonly live: Promise<void>;
  #begin: Begin;
  #cursor: Cursor | undefined;
  /** Which connection it was greeted on: what an older one says is late, and not heard. */
  #greeted = 0;
  #replaying = true;
  /** Open here, but not so by the last greeting: whoever ended them, the replay says, or nobody does. */
  #doubtful = new Set<string>();
  #listeners = new Listeners<Heard>();
  /** What came before the first listener waits for it. */
  #waiting: Heard[] | null = [];
  #ends = new Set<(error: PlexusError | null) => void>();
  #over: { error: PlexusError | null } | null = null;
  #wentLive!: () => void;
  #failed!: (error: PlexusError) => void;
  #requests: Requests;
  #leave: () => void;

  /** @internal */
  constructor(session_id: string, begin: Begin, requests: Requests, leave: (attachment: Attachment) => void) {
    this.session_id = session_id;
    this.#begin = begin;
    this.#cursor = begin.after;
    this.#requests = requests;
    this.#leave = () => leave(this);
    this.live = new Promise((resolve, reject) => {
      this.#wentLive = resolve;
      this.#failed = reject;
    });
    // Whoever does not ask hears of it from the iterators and from `closed`.
    this.live.catch(() => {});
  }

  /** Everything up to here was told. Keep it to go on from here another time. */
  get cursor(): Cursor | undefined {
    return this.#cursor;
  }

  /** Hears everything, in order; what came before the first listener is told at once. Returns what ends the listening. */
  listen(listener: Listener<Heard>): () => void {
    const end = this.#listeners.add(listener);
    const waiting = this.#waiting ?? [];
    this.#waiting = null;
    for (const heard of waiting) this.#listeners.tell(heard);
    return end;
  }

  /** The events, until it is detached. What is not taken yet is kept in memory. Leaving the loop does not detach. */
  async *events(): AsyncGenerator<Event, void, undefined> {
    for await (const heard of this) {
      if (heard.type === 'event') yield heard.event;
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Heard, void, undefined> {
    const queue: Heard[] = [];
    let wake = (): void => {};
    const unlisten = this.listen((heard) => {
      queue.push(heard);
      wake();
    });
    const ended = (): void => wake();
    this.#ends.add(ended);
    try {
      for (;;) {
        for (let heard = queue.shift(); heard !== undefined; heard = queue.shift()) yield heard;
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

  /** Ends it. Nothing more is heard, also of what is on its way. */
  detach(): void {
    this.end(null);
    this.#leave();
  }

  /** @internal What to attach with. */
  params(): { [member: string]: unknown } {
    const { from, projection } = this.#begin;
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
  hear(heard: Heard, connection: number): void {
    if (this.#over !== null) return;
    if (heard.type === 'hello') {
      this.#greeted = connection;
      this.#replaying = true;
      this.#greet(heard.hello);
    } else if (this.#greeted !== connection) {
      return;
    }
    if (heard.type === 'event') {
      if (this.#told(heard.event.cursor)) return;
      this.#cursor = heard.event.cursor;
      this.#tell(heard);
      this.#asked(heard.event);
      return;
    }
    if (heard.type === 'snapshot') this.#cursor = heard.snapshot.cursor;
    if (heard.type === 'live') {
      this.#cursor = heard.live.head;
      this.#replaying = false;
    }
    this.#tell(heard);
    if (heard.type === 'live') {
      for (const id of this.#doubtful) this.#requests.resolved(id, null);
      this.#doubtful.clear();
      this.#wentLive();
    }
  }

  #tell(heard: Heard): void {
    if (this.#waiting !== null) this.#waiting.push(heard);
    else this.#listeners.tell(heard);
  }

  /** Whether this was told already. The gateway says everything once; a proxy in between might not. */
  #told(cursor: Cursor): boolean {
    const [epoch, position] = cursor.split(':');
    const [known, upto] = this.#cursor?.split(':') ?? [];
    return epoch === known && Number(position) <= Number(upto);
  }

  #greet(hello: Hello): void {
    this.#doubtful.clear();
    const open = new Set(hello.requests.map((request) => request.request_id));
    for (const [id, request] of this.#requests.open) {
      if ((this.session_id === '*' || request.session_id === this.session_id) && !open.has(id)) this.#doubtful.add(id);
    }
    for (const request of hello.requests) this.#requests.opened(request);
  }

  #asked(event: Event): void {
    if (event.kind === 'request_opened' && !this.#replaying) {
      // What a replay shows as opened and is still open was in the greeting.
      this.#requests.opened(event.event);
    } else if (event.kind === 'request_resolved') {
      this.#doubtful.delete(event.event.request_id);
      this.#requests.resolved(event.event.request_id, event.event);
    }
  }
}

interface Waiting {
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

/** One life of the connection. */
class Line {
  readonly number: number;
  readonly socket: Socket;
  readonly waiting = new Map<string, Waiting>();
  heardAt = Date.now();
  #next = 0;

  constructor(number: number, socket: Socket) {
    this.number = number;
    this.socket = socket;
  }

  /** Sends a request. Rejects with `lost` if the connection is lost before it is answered. */
  ask(method: string, params: object): Promise<unknown> {
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

/** A client. It connects at once, and comes back by itself until it is closed or its token is no use any more. */
export class Plexus {
  /** The questions that are open in whatever is attached. */
  readonly requests = new Requests();
  #options: Options;
  #patience: Patience;
  #attachments = new Map<string, Attachment>();
  /** Detaches on their way: who attaches the same again waits for them, so that nothing of before is taken for new. */
  #leaving = new Map<string, Promise<unknown>>();
  #listeners = new Listeners<Change>();
  #line: Line | null = null;
  #ready: Line | null = null;
  #lines = 0;
  #pause: number;
  #wake: () => void = () => {};
  #whenReady = new Set<Waiting>();
  #closed: { error: PlexusError | null } | null = null;

  constructor(options: Options) {
    this.#options = options;
    this.#patience = { ...PATIENCE, ...options.patience };
    this.#pause = this.#patience.first;
    void this.#live();
  }

  /** Whether it is connected and has said hello. */
  get connected(): boolean {
    return this.#ready !== null;
  }

  /** Hears of the connection, of sessions and of runtimes; returns what ends the listening. */
  listen(listener: Listener<Change>): () => void {
    return this.#listeners.add(listener);
  }

  /** Comes back now, if it waits to: the network is there again, or the page is shown. */
  wake(): void {
    this.#wake();
  }

  /** Ends everything. What was asked and not answered is rejected with `closed`. */
  close(): void {
    this.#close(null);
  }

  runtimes(): Promise<Runtime[]> {
    return this.#again<{ runtimes: Runtime[] }>('runtime.list', {}).then(({ runtimes }) => runtimes);
  }

  sessions(): Promise<Session[]> {
    return this.#sessions();
  }

  async #sessions(): Promise<Session[]> {
    // What had news meanwhile comes twice.
    const all = new Map<string, Session>();
    for (let cursor: string | undefined; ;) {
      const page: Sessions = await this.#again('session.list', cursor === undefined ? {} : { cursor });
      for (const session of page.sessions) all.set(session.session_id, session);
      cursor = page.next;
      if (cursor === undefined) return [...all.values()];
    }
  }

  /** Opens a session. */
  newSession(session: SessionNew): Promise<Session> {
    return this.call<Session>('session.new', session);
  }

  /** Follows a session, or all with `*`. Throws if it is followed already. */
  attach(session_id: string, begin: Begin = {}): Attachment {
    if (this.#closed !== null) throw this.#closed.error ?? new PlexusError('closed', 'the client is closed');
    if (this.#attachments.has(session_id)) throw new PlexusError('attached', `${session_id} is followed already`);
    const attachment = new Attachment(session_id, begin, this.requests, (gone) => this.#detach(gone));
    this.#attachments.set(session_id, attachment);
    if (this.#ready !== null) void this.#attach(this.#ready, attachment);
    return attachment;
  }

  /**
   * Events of a session, a page at a time: go on with `after: page.next` until `events` is empty, or with `before: page.previous`
   * until there is none. With `merge` the chunks of a message, and the updates of a tool call, are one event each.
   */
  history(session_id: string, page: { after?: Cursor; before?: Cursor; limit?: number; merge?: boolean; max_bytes?: number } = {}): Promise<History> {
    return this.#again<History>('session.history', { session_id, ...page });
  }

  /** Prompts. Sent once: if the connection is lost before the answer, it rejects with `lost`, and the events tell. */
  prompt(session_id: string, prompt: string | ContentBlock[]): Promise<Accepted> {
    const what = typeof prompt === 'string' ? { text: prompt } : { content: prompt };
    return this.call<Accepted>('run.start', { session_id, ...what });
  }

  /** Stops the run under way, or the one named. */
  async cancel(session_id: string, run_id?: string): Promise<string> {
    const params = run_id === undefined ? { session_id } : { session_id, run_id };
    return (await this.call<{ run_id: string }>('run.cancel', params)).run_id;
  }

  /**
   * Answers a request. Give the request itself, and the answer counts only for what it shows. The receipt says who won:
   * that somebody else did (`won` false), or that it is no longer open (`state`), is no error. Asked again under the same
   * key until it is answered, so an answer is never given twice.
   */
  async answer(request: Request | string, answer: Answer, key: string = random()): Promise<Receipt> {
    const asked = typeof request === 'string' ? { request_id: request } : { request_id: request.request_id, digest: request.digest };
    try {
      return await this.#again<Receipt>('ui.request.answer', { ...asked, ...answer, idempotency_key: key });
    } catch (error) {
      if (error instanceof PlexusError && (error.rpc === -32010 || error.rpc === -32012) && 'resolved_by' in error.data) {
        // The members of the receipt stand beside the problem's code.
        const { code: _, ...receipt } = error.data;
        return receipt as unknown as Receipt;
      }
      throw error;
    }
  }

  /** Any method; those the gateway does not know go to the session's runtime. Waits for the connection, is sent once. */
  async call<T = unknown>(method: string, params: object = {}): Promise<T> {
    const line = await this.#connection();
    return (await line.ask(method, params)) as T;
  }

  /** As `call`, for what may be asked twice. */
  async #again<T>(method: string, params: object): Promise<T> {
    for (;;) {
      try {
        return await this.call<T>(method, params);
      } catch (error) {
        if (!(error instanceof PlexusError) || error.code !== 'lost') throw error;
      }
    }
  }

  #connection(): Promise<Line> {
    if (this.#closed !== null) {
      return Promise.reject(this.#closed.error ?? new PlexusError('closed', 'the client is closed'));
    }
    if (this.#ready !== null) return Promise.resolve(this.#ready);
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { resolve: (line) => resolve(line as Line), reject };
      this.#whenReady.add(waiting);
    });
  }

  #detach(attachment: Attachment): void {
    const name = attachment.session_id;
    if (this.#attachments.get(name) !== attachment) return;
    this.#attachments.delete(name);
    const line = this.#ready;
    if (line === null) return;
    const left = line.ask('session.detach', { session_id: name }).catch(() => {});
    this.#leaving.set(name, left);
    void left.then(() => {
      if (this.#leaving.get(name) === left) this.#leaving.delete(name);
    });
  }

  async #attach(line: Line, attachment: Attachment): Promise<void> {
    await this.#leaving.get(attachment.session_id);
    if (attachment.over || this.#ready !== line) return;
    try {
      await line.ask('session.attach', attachment.params());
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
    const line = this.#line;
    this.#line = this.#ready = null;
    line?.lost(why);
    if (line !== null) hangUp(line.socket);
    for (const waiting of [...this.#whenReady]) waiting.reject(why);
    this.#whenReady.clear();
    for (const attachment of [...this.#attachments.values()]) attachment.end(error);
    this.#attachments.clear();
    this.#wake();
    this.#listeners.tell({ type: 'closed', error });
  }

  /** One connection after the other. */
  async #live(): Promise<void> {
    // What is listened to and attached in the same breath as the client is made comes first.
    await Promise.resolve();
    while (this.#closed === null) {
      const { code, reason, opened } = await this.#once();
      if (this.#closed !== null) return;
      const final = FINAL[code];
      if (final !== undefined) return this.#close(new PlexusError(final, reason || `closed with code ${code}`));
      if (!opened && (await this.#unauthorized())) {
        return this.#close(new PlexusError('unauthorized', 'the gateway does not know this token'));
      }
      if (this.#closed !== null) return;
      const pause = Math.round(Math.random() * this.#pause);
      this.#pause = Math.min(this.#pause * 2, this.#patience.longest);
      this.#listeners.tell({ type: 'lost', code, reason, pause });
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

  /** One life of the connection; resolves when it is lost. */
  #once(): Promise<{ code: number; reason: string; opened: boolean }> {
    return new Promise((resolve) => {
      let socket: Socket;
      try {
        socket = this.#dial();
      } catch (error) {
        const never = error instanceof PlexusError || (error instanceof Error && error.name === 'SyntaxError');
        if (never) this.#close(error instanceof PlexusError ? error : new PlexusError('bad_options', String(error)));
        return resolve({ code: 1006, reason: String(error), opened: false });
      }
      const line = new Line(++this.#lines, socket);
      this.#line = line;
      let opened = false;
      let over = false;
      const end = (code: number, reason: string): void => {
        if (over) return;
        over = true;
        clearTimeout(slow);
        clearInterval(watch);
        if (this.#line === line) this.#line = this.#ready = null;
        line.lost(new PlexusError('lost', `the connection was lost: ${reason || code}`));
        hangUp(socket);
        resolve({ code, reason, opened });
      };
      const slow = setTimeout(() => end(1006, 'the gateway does not answer'), this.#patience.connect);
      let asked = false;
      const watch = setInterval(() => {
        if (this.#ready !== line || Date.now() - line.heardAt < this.#patience.quiet) return void (asked = false);
        // Its pings are not shown to us; so it is asked something.
        if (asked) return end(1006, 'nothing was heard any more');
        asked = true;
        line.ask('session.list', { limit: 0 }).catch(() => {});
      }, this.#patience.quiet);
      socket.addEventListener('open', () => {
        opened = true;
        const ui = { supports_confirm: true, supports_prompt: true, supports_pick: true };
        const client = { name: this.#options.name ?? 'plexus-client', version: '0.1.0' };
        line.ask('initialize', { protocol_version: '0', client, ui_capabilities: ui }).then(
          (initialized) => {
            clearTimeout(slow);
            if (over || this.#closed !== null) return;
            this.#open(line, initialized as Initialized);
          },
          (error: unknown) => end(1006, String(error)),
        );
      });
      socket.addEventListener('message', ({ data }) => {
        // Late frames of a connection that was given up are not heard.
        if (over || this.#line !== line || typeof data !== 'string') return;
        line.heardAt = Date.now();
        this.#message(line, data);
      });
      socket.addEventListener('error', () => {
        // The close that follows has the code; not every WebSocket says it of a handshake that failed.
        setTimeout(() => end(1006, 'the connection failed'), opened ? this.#patience.first : 0);
      });
      socket.addEventListener('close', ({ code, reason }) => end(code, String(reason)));
    });
  }

  #dial(): Socket {
    const { url, token } = this.#options;
    const WebSocket = this.#options.WebSocket ?? (globalThis as { WebSocket?: new (url: string, protocols: string[]) => Socket }).WebSocket;
    if (WebSocket === undefined) {
      throw new PlexusError('no_websocket', 'there is no global WebSocket: give one in the options, or use Node 22');
    }
    const address = `${url.replace(/^http/, 'ws').replace(/\/+$/, '')}/v1/ws`;
    return new WebSocket(address, ['plexus.v1', `plexus.bearer.${token}`]);
  }

  /** A handshake that fails says nothing to a WebSocket; the same token over HTTP does. */
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

  #open(line: Line, initialized: Initialized): void {
    this.#ready = line;
    this.#leaving.clear();
    this.#listeners.tell({ type: 'open', initialized });
    for (const attachment of [...this.#attachments.values()]) void this.#attach(line, attachment);
    const waiting = [...this.#whenReady];
    this.#whenReady.clear();
    for (const one of waiting) one.resolve(line);
  }

  #message(line: Line, text: string): void {
    let message: Message;
    try {
      message = JSON.parse(text) as Message;
    } catch {
      return;
    }
    if (typeof message.method !== 'string') return line.answered(message);
    const params = message.params as { session_id: string };
    switch (message.method) {
      case 'agent.event': {
        const event = params as unknown as Event;
        this.#pause = this.#patience.first;
        return this.#hear(line, event.session_id, { type: 'event', event });
      }
      case 'gateway.hello':
        return this.#hear(line, params.session_id, { type: 'hello', hello: params as Hello });
      case 'gateway.snapshot':
        return this.#hear(line, params.session_id, { type: 'snapshot', snapshot: params as Snapshots });
      case 'gateway.live':
        this.#pause = this.#patience.first;
        return this.#hear(line, params.session_id, { type: 'live', live: params as Live });
      case 'gateway.lag':
        return this.#hear(line, params.session_id, { type: 'lag', lag: params as Lag });
      case 'session.updated':
        return this.#listeners.tell({ type: 'session', session: (params as unknown as { session: Session }).session });
      case 'runtime.updated':
        return this.#listeners.tell({ type: 'runtime', runtime: (params as unknown as { runtime: Runtime }).runtime });
      case 'session.deleted':
        return this.#listeners.tell({ type: 'session_deleted', session_id: params.session_id });
      case 'runtime.removed':
        return this.#listeners.tell({ type: 'runtime_removed', runtime_id: (params as unknown as { runtime_id: string }).runtime_id });
      default:
      // `run.status`, `ui.*.request` and the like say again what the events say.
    }
  }

  #hear(line: Line, session_id: string, heard: Heard): void {
    const attachment = this.#attachments.get(session_id) ?? this.#attachments.get('*');
    // Detached meanwhile: late.
    attachment?.hear(heard, line.number);
  }
}

function hangUp(socket: Socket): void {
  try {
    socket.close();
  } catch {
    // It never opened.
  }
}

/** Not `randomUUID`: browsers have that on secure pages alone. */
function random(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
