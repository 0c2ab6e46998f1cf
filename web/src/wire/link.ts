// The WebSocket connection: connects, attaches to all sessions, reconnects by cursor, and reports its phase.
import { oneLine } from '../lib/text.js';
import { text } from '../text/en.js';
import { CALL_MS } from '../lib/early.js';
import { Refused } from './http.js';
import type { Cursor, Phase } from './types.js';

/** Silence after which the socket is probed, and how long a probe may take, ms. */
const QUIET_MS = 25_000;
const SIGN_MS = 8_000;
/** Interval of the checks for silence, ms. */
const LOOK_MS = 5_000;
/** Pauses between attempts to reconnect, ms; the last one repeats, so that the gateway is found again within seconds. */
const BACKOFF_MS = [300, 1_000, 2_000, 2_500];
/** Time that the result of a reachability check is awaited, ms: of the first, and of further ones. A later reply counts, too. */
const CHECK_MS = [4_000, 2_000];
/** Timeout of a handshake, ms: directly after a loss, and after a successful reachability check. */
const HANDSHAKE_MS = [4_000, 20_000];
/** Pause between attempts while the page is hidden, ms. */
const HIDDEN_MS = 15_000;
/** Close codes after which the page does not reconnect with the same credentials. */
const REVOKED = 4001;
const SCOPE = 4003;
/** The client name that the gateway sees. */
const CLIENT = { name: 'plexus-web', version: '1' };

export interface LinkEvents {
  phase(phase: Phase, reason: string): void;
  /** A notification, with its unchecked `params`. */
  notice(method: string, params: any): void;
  /** A malformed message. */
  malformed(text: string): void;
  revoked(): void;
  /** Checks over HTTP whether the gateway is reachable: scripts do not get the reason why a handshake failed. */
  checkReachable(): Promise<Reachability>;
  bearer(): string | null;
  skew(): number;
  /** The cursor of what was read before the first connection, which continues there; null if nothing was. */
  begin(): Promise<Cursor | null>;
}

/** The result of a reachability check. `unreachable`: no reply, or not the gateway's; `why` is for people. */
export type Reachability = { is: 'reachable' } | { is: 'unreachable'; why: string } | { is: 'signed-out' };

interface PendingCall { resolve: (value: any) => void; reject: (error: unknown) => void; timer: ReturnType<typeof setTimeout> }

/** Opens a WebSocket of the gateway. The token is sent as a subprotocol, never in the URL; a browser's own device uses its cookie. */
export function openSocket(path: string, bearer: string | null): WebSocket {
  const scheme = location.protocol === 'https:' ? 'wss:' : 'ws:';
  return new WebSocket(`${scheme}//${location.host}${path}`, bearer ? ['plexus.v1', `plexus.bearer.${bearer}`] : ['plexus.v1']);
}

export class Link {
  phase: Phase = 'signed-out';
  /** The cursor of the last message applied; null before the first attach. */
  cursor: Cursor | null = null;
  heardAt = 0;
  reason = '';
  #wanted = false;
  #attempt = 0;
  /** Whether reachability is checked over HTTP before the next handshake: browsers delay handshakes with an origin after failures. */
  #checkFirst = true;
  #checks = 0;
  #socket: WebSocket | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #sign: ReturnType<typeof setTimeout> | undefined;
  #nextId = 1;
  /** Whether the cursor of what was read before was asked for: once, since a gateway that refuses it would refuse it again. */
  #begun = false;
  #pending = new Map<string, PendingCall>();

  constructor(private readonly on: LinkEvents) {
    setInterval(() => {
      if (this.phase === 'live' && Date.now() - this.heardAt > QUIET_MS) this.probe();
    }, LOOK_MS);
    document.addEventListener('visibilitychange', () => {
      if (document.hidden || !this.#wanted) return;
      // After a phone slept, the socket may be dead without a close event.
      if (this.#socket?.readyState === WebSocket.OPEN) this.probe();
      else this.retry();
    });
    window.addEventListener('online', () => { if (this.#wanted && this.phase !== 'live') this.retry(); });
    window.addEventListener('offline', () => {
      if (this.phase === 'live' || this.phase === 'catching-up') this.probe();
      else if (this.#wanted) this.#set('offline');
    });
    // A page restored from the browser's back/forward cache has an old socket.
    window.addEventListener('pageshow', (event) => { if (event.persisted && this.#wanted) this.retry(); });
  }

  start(): void {
    this.#wanted = true;
    this.cursor = null;
    this.#attempt = 0;
    this.heardAt = 0;
    this.reason = '';
    this.#checkFirst = true;
    this.#set('connecting');
    void this.#attemptConnect();
  }

  stop(phase: Phase): void {
    this.#wanted = false;
    this.#checks += 1;
    clearTimeout(this.#timer);
    this.#drop();
    this.#set(phase);
  }

  /** Reconnects now, without the pause. */
  retry(): void {
    if (!this.#wanted) return;
    this.#attempt = 0;
    void this.#attemptConnect();
  }

  call(method: string, params: unknown): Promise<any> {
    return new Promise((resolve, reject) => {
      const socket = this.#socket;
      if (!socket || socket.readyState !== WebSocket.OPEN) { reject(new Error(text.wire.notConnected)); return; }
      const id = `p${this.#nextId++}`;
      const timer = setTimeout(() => {
        this.#pending.delete(id);
        reject(new Error(text.wire.timeout));
      }, CALL_MS);
      this.#pending.set(id, { resolve, reject, timer });
      socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    });
  }

  /** Probes the socket; without a reply it is closed. */
  probe(): void {
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    clearTimeout(this.#sign);
    this.#sign = setTimeout(() => this.#lost(true), SIGN_MS);
    this.call('runtime.list', {}).catch(() => {});
  }

  #drop(): void {
    clearTimeout(this.#sign);
    const socket = this.#socket;
    this.#socket = null;
    if (socket) {
      socket.onopen = socket.onmessage = socket.onclose = null;
      socket.close();
    }
    for (const call of this.#pending.values()) {
      clearTimeout(call.timer);
      call.reject(new Error(text.wire.notConnected));
    }
    this.#pending.clear();
  }

  /** One attempt to connect. */
  async #attemptConnect(): Promise<void> {
    clearTimeout(this.#timer);
    if (!this.#wanted) return;
    if (this.#checkFirst) {
      const turn = ++this.#checks;
      this.#drop();
      const check = this.on.checkReachable();
      void check.then((found) => {
        // A late reply counts, too.
        if (found.is === 'reachable' && this.#wanted && this.phase === 'offline' && !this.#socket) this.#connect();
      });
      const late = new Promise<Reachability>((resolve) => setTimeout(() => resolve({ is: 'unreachable', why: '' }), CHECK_MS[this.#attempt ? 1 : 0]));
      const found = await Promise.race([check, late]);
      // Stopped, checked again, or connected by an earlier check meanwhile.
      if (turn !== this.#checks || !this.#wanted || this.#socket || found.is === 'signed-out') return;
      if (found.is === 'unreachable') {
        this.reason = found.why;
        this.#set('offline');
        this.#scheduleAttempt();
        return;
      }
      if (this.phase === 'offline') this.#set(this.heardAt ? 'reconnecting' : 'connecting');
    }
    this.#connect();
  }

  #scheduleAttempt(): void {
    const wait = document.hidden ? HIDDEN_MS : (BACKOFF_MS[Math.min(this.#attempt, BACKOFF_MS.length - 1)] ?? 0) * (0.8 + Math.random() * 0.4);
    this.#attempt += 1;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#attemptConnect(), wait);
  }

  #connect(): void {
    clearTimeout(this.#timer);
    if (!this.#wanted) return;
    this.#drop();
    const socket = openSocket('/v1/ws', this.on.bearer());
    this.#socket = socket;
    let opened = false;
    // A hanging handshake counts as failed.
    this.#sign = setTimeout(() => this.#lost(opened), HANDSHAKE_MS[this.#checkFirst ? 1 : 0]);
    socket.onopen = () => {
      opened = true;
      this.#greet().catch((error: unknown) => this.#refused(error, socket));
    };
    socket.onmessage = (event) => this.#take(event.data);
    socket.onclose = (event) => this.#closed(event.code, event.reason, opened);
  }

  async #greet(): Promise<void> {
    const socket = this.#socket;
    await this.call('initialize', {
      protocol_version: '0',
      client: CLIENT,
      ui_capabilities: { supports_confirm: true, supports_prompt: true, supports_pick: true },
    });
    if (this.cursor === null && !this.#begun) {
      this.#begun = true;
      const cursor = await this.on.begin();
      if (this.#socket !== socket) return;
      this.cursor = cursor;
    }
    await this.call('session.attach', this.cursor ? { session_id: '*', after: this.cursor } : { session_id: '*', from: 'now' });
  }

  /** `initialize` or `session.attach` failed while the socket is open. */
  #refused(error: unknown, socket: WebSocket): void {
    if (this.#socket !== socket) return;
    if (error instanceof Refused) {
      this.reason = text.wire.gatewayRefused(error.message);
      this.cursor = null;
    }
    this.#lost(true);
  }

  #closed(code: number, reason: string, opened: boolean): void {
    if (code === REVOKED) { this.on.revoked(); return; }
    if (code === SCOPE) {
      this.reason = text.wire.mayNotFollow(oneLine(reason));
      this.stop('stopped');
      return;
    }
    this.#lost(opened);
  }

  #lost(opened: boolean): void {
    this.#drop();
    if (!this.#wanted) return;
    // The gateway is reachable over HTTP, but the handshake failed: something on the way blocks WebSockets.
    if (!opened && this.#checkFirst) this.reason = text.wire.noSocket;
    this.#checkFirst = !opened;
    this.#scheduleAttempt();
    this.#set(navigator.onLine ? (this.heardAt ? 'reconnecting' : 'connecting') : 'offline');
  }

  #set(phase: Phase): void {
    this.phase = phase;
    if (phase === 'live') {
      this.#attempt = 0;
      this.#checkFirst = false;
      this.reason = '';
    }
    this.on.phase(phase, this.reason);
  }

  #take(data: unknown): void {
    if (this.#socket?.readyState === WebSocket.OPEN) clearTimeout(this.#sign);
    this.heardAt = Date.now();
    let message: unknown;
    try { message = JSON.parse(String(data)); } catch { this.on.malformed(text.wire.notJson); return; }
    for (const one of Array.isArray(message) ? message : [message]) {
      try { this.#dispatch(one); } catch (error) {
        console.error(error);
        this.on.malformed(oneLine((one as any)?.method));
      }
    }
  }

  #dispatch(m: any): void {
    if (!m || typeof m !== 'object') return;
    if (typeof m.method !== 'string') {
      const call = this.#pending.get(m.id);
      if (!call) return;
      this.#pending.delete(m.id);
      clearTimeout(call.timer);
      if (m.error) call.reject(new Refused(0, { ...m.error.data, message: m.error.message }, Number(m.error.code) || 0));
      else call.resolve(m.result);
      return;
    }
    const p = m.params ?? {};
    switch (m.method) {
      case 'gateway.hello':
        this.on.notice(m.method, p);
        if ((this.cursor === null || p.resume !== 'ok') && typeof p.head === 'string') this.cursor = p.head;
        this.#set('catching-up');
        break;
      case 'gateway.snapshot':
        if (typeof p.cursor === 'string') this.cursor = p.cursor;
        this.on.notice(m.method, p);
        break;
      case 'gateway.live':
        if (typeof p.head === 'string') this.cursor = p.head;
        this.#set('live');
        break;
      case 'gateway.lag': break; // reports that the page fell behind and has caught up
      case 'agent.event':
        this.on.notice(m.method, p);
        if (typeof p.cursor === 'string') this.cursor = p.cursor;
        break;
      default: this.on.notice(m.method, p);
    }
  }
}
