// One file: the one WebSocket. It connects, attaches to everything, comes back by cursor, and says at each moment what it knows.
import { oneLine } from '../lib/text.js';
import { text } from '../text/en.js';
import { CALL_MS, Refused } from './http.js';
import type { Cursor, Phase } from './types.js';

/** Silence after which the socket is asked for a sign of life, and how long it has to give one, ms. */
const QUIET_MS = 25_000;
const SIGN_MS = 8_000;
/** How often the silence is looked at, ms. */
const LOOK_MS = 5_000;
/** Waits between attempts to come back, ms; the last one repeats, so that a gateway that is back is noticed within seconds. */
const BACKOFF_MS = [300, 1_000, 2_000, 2_500];
/** How long a knock is waited for, ms: the first, and further ones. One that is answered later counts all the same. */
const KNOCK_MS = [4_000, 2_000];
/** How long a handshake may take, ms: as the first thing after a loss, and once the gateway has answered a knock. */
const HANDSHAKE_MS = [4_000, 20_000];
/** Between attempts while nobody sees the page, ms. */
const HIDDEN_MS = 15_000;
/** The gateway's close codes after which we do not come back as we are. */
const REVOKED = 4001;
const SCOPE = 4003;
/** What this page calls itself towards the gateway. */
const CLIENT = { name: 'plexus-web', version: '1' };

export interface LinkEvents {
  phase(phase: Phase, reason: string): void;
  /** A notification; `params` as it came. */
  notice(method: string, params: any): void;
  /** A message that is not what it should be. */
  junk(text: string): void;
  revoked(): void;
  /** Asks over HTTP who we are there, for why a handshake failed is not told to scripts. */
  knock(): Promise<Knock>;
  bearer(): string | null;
  skew(): number;
}

/** What a knock found: the gateway; nothing, or something that is not the gateway (and why, in words); or that we are signed out. */
export type Knock = { is: 'there' } | { is: 'away'; why: string } | { is: 'out' };

interface Waiting { resolve: (value: any) => void; reject: (error: unknown) => void; timer: ReturnType<typeof setTimeout> }

export class Link {
  phase: Phase = 'signed-out';
  /** The last cursor taken over; null before the first attach. */
  cursor: Cursor | null = null;
  heardAt = 0;
  reason = '';
  #wanted = false;
  #attempt = 0;
  /** Whether the gateway is asked over HTTP before the next handshake. Browsers slow down an origin whose handshakes fail, and say nothing of why. */
  #knockFirst = true;
  #knocks = 0;
  #socket: WebSocket | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #sign: ReturnType<typeof setTimeout> | undefined;
  #nextId = 1;
  #waiting = new Map<string, Waiting>();

  constructor(private readonly on: LinkEvents) {
    setInterval(() => {
      if (this.phase === 'live' && Date.now() - this.heardAt > QUIET_MS) this.probe();
    }, LOOK_MS);
    document.addEventListener('visibilitychange', () => {
      if (document.hidden || !this.#wanted) return;
      // A phone that slept may hold a socket that died without a word.
      if (this.#socket?.readyState === WebSocket.OPEN) this.probe();
      else this.retry();
    });
    window.addEventListener('online', () => { if (this.#wanted && this.phase !== 'live') this.retry(); });
    window.addEventListener('offline', () => {
      if (this.phase === 'live' || this.phase === 'catching-up') this.probe();
      else if (this.#wanted) this.#set('offline');
    });
    // A page that comes back out of the browser's cache holds a socket of before.
    window.addEventListener('pageshow', (event) => { if (event.persisted && this.#wanted) this.retry(); });
  }

  start(): void {
    this.#wanted = true;
    this.cursor = null;
    this.#attempt = 0;
    this.heardAt = 0;
    this.reason = '';
    this.#knockFirst = true;
    this.#set('connecting');
    void this.#come();
  }

  stop(phase: Phase): void {
    this.#wanted = false;
    this.#knocks += 1;
    clearTimeout(this.#timer);
    this.#drop();
    this.#set(phase);
  }

  /** Connects now rather than when it is due. */
  retry(): void {
    if (!this.#wanted) return;
    this.#attempt = 0;
    void this.#come();
  }

  call(method: string, params: unknown): Promise<any> {
    return new Promise((resolve, reject) => {
      const socket = this.#socket;
      if (!socket || socket.readyState !== WebSocket.OPEN) { reject(new Error(text.wire.notConnected)); return; }
      const id = `p${this.#nextId++}`;
      const timer = setTimeout(() => {
        this.#waiting.delete(id);
        reject(new Error(text.wire.timeout));
      }, CALL_MS);
      this.#waiting.set(id, { resolve, reject, timer });
      socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    });
  }

  /** Asks for a sign of life; without one the socket is given up. */
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
    for (const call of this.#waiting.values()) {
      clearTimeout(call.timer);
      call.reject(new Error(text.wire.notConnected));
    }
    this.#waiting.clear();
  }

  /** One attempt to come in. */
  async #come(): Promise<void> {
    clearTimeout(this.#timer);
    if (!this.#wanted) return;
    if (this.#knockFirst) {
      const turn = ++this.#knocks;
      this.#drop();
      const asked = this.on.knock();
      void asked.then((found) => {
        // Later than it was waited for, on a slow network or past something that hung: still an answer.
        if (found.is === 'there' && this.#wanted && this.phase === 'offline' && !this.#socket) this.#connect();
      });
      const late = new Promise<Knock>((resolve) => setTimeout(() => resolve({ is: 'away', why: '' }), KNOCK_MS[this.#attempt ? 1 : 0]));
      const found = await Promise.race([asked, late]);
      // Stopped, asked again, or in by an earlier knock, meanwhile.
      if (turn !== this.#knocks || !this.#wanted || this.#socket || found.is === 'out') return;
      if (found.is === 'away') {
        this.reason = found.why;
        this.#set('offline');
        this.#later();
        return;
      }
      if (this.phase === 'offline') this.#set(this.heardAt ? 'reconnecting' : 'connecting');
    }
    this.#connect();
  }

  #later(): void {
    const wait = document.hidden ? HIDDEN_MS : (BACKOFF_MS[Math.min(this.#attempt, BACKOFF_MS.length - 1)] ?? 0) * (0.8 + Math.random() * 0.4);
    this.#attempt += 1;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#come(), wait);
  }

  #connect(): void {
    clearTimeout(this.#timer);
    if (!this.#wanted) return;
    this.#drop();
    const scheme = location.protocol === 'https:' ? 'wss:' : 'ws:';
    const bearer = this.on.bearer();
    // The token goes as a subprotocol, never in the address; a browser's own device has its cookie.
    const protocols = bearer ? ['plexus.v1', `plexus.bearer.${bearer}`] : ['plexus.v1'];
    const socket = new WebSocket(`${scheme}//${location.host}/v1/ws`, protocols);
    this.#socket = socket;
    let opened = false;
    // A handshake that hangs is a failed one.
    this.#sign = setTimeout(() => this.#lost(opened), HANDSHAKE_MS[this.#knockFirst ? 1 : 0]);
    socket.onopen = () => {
      opened = true;
      this.#greet().catch((error: unknown) => this.#refused(error, socket));
    };
    socket.onmessage = (event) => this.#take(event.data);
    socket.onclose = (event) => this.#closed(event.code, event.reason, opened);
  }

  async #greet(): Promise<void> {
    await this.call('initialize', {
      protocol_version: '0',
      client: CLIENT,
      ui_capabilities: { supports_confirm: true, supports_prompt: true, supports_pick: true },
    });
    await this.call('session.attach', this.cursor ? { session_id: '*', after: this.cursor } : { session_id: '*', from: 'now' });
  }

  /** The greeting failed while the socket stands. */
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
    // The gateway answered a knock, and yet no WebSocket came of it: something on the way does not let it through.
    if (!opened && this.#knockFirst) this.reason = text.wire.noSocket;
    this.#knockFirst = !opened;
    this.#later();
    this.#set(navigator.onLine ? (this.heardAt ? 'reconnecting' : 'connecting') : 'offline');
  }

  #set(phase: Phase): void {
    this.phase = phase;
    if (phase === 'live') {
      this.#attempt = 0;
      this.#knockFirst = false;
      this.reason = '';
    }
    this.on.phase(phase, this.reason);
  }

  #take(data: unknown): void {
    if (this.#socket?.readyState === WebSocket.OPEN) clearTimeout(this.#sign);
    this.heardAt = Date.now();
    let message: unknown;
    try { message = JSON.parse(String(data)); } catch { this.on.junk(text.wire.notJson); return; }
    for (const one of Array.isArray(message) ? message : [message]) {
      try { this.#dispatch(one); } catch (error) {
        console.error(error);
        this.on.junk(oneLine((one as any)?.method));
      }
    }
  }

  #dispatch(m: any): void {
    if (!m || typeof m !== 'object') return;
    if (typeof m.method !== 'string') {
      const call = this.#waiting.get(m.id);
      if (!call) return;
      this.#waiting.delete(m.id);
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
      case 'gateway.lag': break; // it says that we fell behind and have caught up
      case 'agent.event':
        this.on.notice(m.method, p);
        if (typeof p.cursor === 'string') this.cursor = p.cursor;
        break;
      default: this.on.notice(m.method, p);
    }
  }
}
