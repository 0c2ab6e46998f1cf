// One file on purpose, though long: the page is four files served as they stand, and one module is one thing to read and to hash.
// @ts-check
//
// The page at `/`: sessions, one of them live, and an inbox of every open request.
//
// What keeps it safe:
// - Text reaches the page through `textContent` and text nodes alone; no markup is ever parsed, no `href` is made from agent text.
// - What an agent wrote sits in a bordered, labelled block. The gateway's own facts sit outside it.
// - The token lives in this tab's sessionStorage and travels in a header or the WebSocket's subprotocol, never in a URL.
// - The gateway is the origin that served this page. No address is ever read from the URL.
// - An answer carries the digest of what was shown, and a card that has just appeared or moved takes no click.

/** @typedef {Record<string, any>} Json any JSON object from the wire; each use checks what it reads */
/** @typedef {'connecting'|'catching-up'|'live'|'reconnecting'|'offline'|'stopped'} Phase what the page knows of its connection */

/** How long a card must have stood still before it takes an answer, ms. Shorter, and a tap meant for something else lands on it. */
const ARMING_MS = 400;
/** How often the place of open cards is looked at, ms. */
const WATCH_MS = 100;
/** How long a resolved card stays in place, ms. */
const KEEP_RESOLVED_MS = 20_000;
/** Cards shown at once; the rest are counted and come up as these are answered. */
const MAX_CARDS = 20;
/** Feed items in the DOM; older ones wait behind "Show earlier". */
const MAX_SHOWN = 500;
/** How many more "Show earlier" brings. */
const EARLIER_STEP = 250;
/** Feed items kept in memory; the oldest go first and the feed says so. */
const MAX_KEPT = 20_000;
/** Characters of one text shown before a "Show all" button, so that one huge message cannot freeze the page. */
const MAX_TEXT = 60_000;
/** Lines and characters of a request shown before it must be unfolded; allowing needs it unfolded. */
const MAX_DISPLAY_LINES = 40;
const MAX_DISPLAY_CHARS = 4_000;
/** Lines on either side up to which two texts are compared line by line; beyond it the changed middle is shown whole. */
const MAX_DIFF_LINES = 600;
/** How long an HTTP call or an RPC may take, ms. */
const CALL_MS = 20_000;
/** Silence after which the socket is asked for a sign of life, and how long it has to give one, ms. */
const QUIET_MS = 25_000;
const SIGN_MS = 8_000;
/** Waits between attempts to come back, ms; the last one repeats. */
const BACKOFF_MS = [300, 1_000, 2_000, 4_000, 8_000, 15_000];
/** What this page calls itself towards the gateway. */
const CLIENT = { name: 'plexus-page', version: '1' };

const TOKEN_KEY = 'plexus.token';
/** RFC 9110 token characters: the only ones that may stand in a WebSocket subprotocol. */
const TOKEN_SHAPE = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{8,1024}$/;
const CODE_SHAPE = /^[A-Za-z0-9_-]{4,256}$/;

// --- the code in the fragment: out of the address bar before anything else runs ---------------------------------------------

const pairingCode = (() => {
  const match = /^#code=(.*)$/.exec(location.hash);
  if (!match) return null;
  history.replaceState(null, '', location.pathname);
  return CODE_SHAPE.test(match[1]) ? match[1] : '';
})();

// --- small tools ------------------------------------------------------------------------------------------------------------

/**
 * The element with this id; the page's own markup holds it.
 * @param {string} id
 * @returns {any}
 */
function $(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page lacks #${id}`);
  return found;
}

/**
 * A new element. Strings become text nodes, never markup.
 * @param {string} tag @param {string} [className] @param {...(string|Node|null|undefined)} children
 * @returns {any}
 */
function h(tag, className, ...children) {
  const el = document.createElement(tag);
  if (className) el.className = className;
  for (const child of children) if (child !== null && child !== undefined) el.append(child);
  return el;
}

/** @param {string} label @param {() => void} act @param {string} [className] */
function button(label, act, className) {
  const el = h('button', className, label);
  el.type = 'button';
  el.addEventListener('click', act);
  return el;
}

/** @param {any} v @returns {string} */
const str = (v) => (typeof v === 'string' ? v : v === null || v === undefined ? '' : typeof v === 'object' ? JSON.stringify(v, null, 2) : String(v));
/** @param {any} v @returns {any[]} */
const list = (v) => (Array.isArray(v) ? v : []);

/** Characters that draw nothing or turn the text around them, shown as `\u{..}`: for one-line fields and for code.
 * @param {string} text */
const visible = (text) =>
  text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu,
    (c) => `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`);
/** Running text: line breaks and isolates are left alone, what overrides the reading order or draws nothing is shown.
 * @param {string} text */
const readable = (text) => text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202d\u202e]/g, (c) => visible(c));
/** The same as `visible`, on one line. @param {any} v */
const oneLine = (v) => visible(str(v).replace(/[\n\t]+/g, ' ')).trim();

/** How far this clock is behind the gateway's, ms; from the Date header. */
let clockSkew = 0;
/** @param {any} at an RFC 3339 time */
const msOf = (at) => (typeof at === 'string' ? Date.parse(at) : NaN);
const gatewayNow = () => Date.now() + clockSkew;

/** @param {number} ms @returns {string} */
function span(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 172_800) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86_400)} d`;
}
/** @param {any} at */
function ago(at) {
  const t = msOf(at);
  if (Number.isNaN(t)) return '';
  const d = gatewayNow() - t;
  return d < 5_000 ? 'just now' : `${span(d)} ago`;
}

/** @param {any} cursor @returns {{epoch: string, pos: number}|null} */
function parseCursor(cursor) {
  if (typeof cursor !== 'string') return null;
  const cut = cursor.lastIndexOf(':');
  const pos = Number(cursor.slice(cut + 1));
  return cut > 0 && Number.isSafeInteger(pos) ? { epoch: cursor.slice(0, cut), pos } : null;
}

/** Says something to a screen reader. @param {string} text @param {boolean} [now] */
function announce(text, now) {
  $(now ? 'announce-now' : 'announce').textContent = text;
}

/** A labelled block around something an agent (or a user) wrote.
 * @param {string} who @param {string} kind @param {...Node} body */
function quote(who, kind, ...body) {
  return h('div', `quote ${kind}`, h('span', 'who', who), ...body);
}

/** Untrusted text, whole, in its own direction. @param {string} text @param {string} [more] */
function said(text, more) {
  return h('div', `said${more ? ` ${more}` : ''}`, text);
}

/** Text that may be huge: the first part, and a button for the rest. @param {string} text @param {string} [more] */
function longSaid(text, more) {
  if (text.length <= MAX_TEXT) return said(text, more);
  const body = said(text.slice(0, MAX_TEXT), more);
  const rest = button(`Show all (${text.length.toLocaleString()} characters)`, () => { body.textContent = text; rest.remove(); }, 'small');
  return h('div', '', body, rest);
}

/** Something folded. @param {string|Node} summary @param {() => Node} body built when first opened @param {boolean} [open] */
function folded(summary, body, open) {
  const el = h('details', '', h('summary', '', summary));
  const fill = () => { if (el.childNodes.length === 1) el.append(body()); };
  if (open) { el.open = true; fill(); }
  el.addEventListener('toggle', fill);
  return el;
}

// --- the gateway over HTTP --------------------------------------------------------------------------------------------------

/** A refusal by the gateway. */
class Refused extends Error {
  /** @param {number} status @param {Json} problem */
  constructor(status, problem) {
    super(oneLine(problem.detail || problem.title || `the gateway answered ${status}`));
    this.status = status;
    this.problem = problem;
  }
}

/** @type {string|null} */
let token = null;
let deviceId = '';
/** @type {string[]|null} null while unknown */
let scopes = null;
/** @param {string} scope */
const may = (scope) => scopes === null || scopes.includes(scope) || scopes.includes('admin');

/**
 * One call. Throws `Refused` for an answer that is not 2xx, and whatever `fetch` throws when there is none.
 * @param {string} method @param {string} path @param {Json} [body] @returns {Promise<any>}
 */
async function http(method, path, body) {
  /** @type {Record<string, string>} */
  const headers = { Accept: 'application/json' };
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body) headers['Content-Type'] = 'application/json';
  const response = await fetch(path, {
    method, headers, body: body ? JSON.stringify(body) : undefined,
    cache: 'no-store', credentials: 'omit', redirect: 'error', referrerPolicy: 'no-referrer', signal: AbortSignal.timeout(CALL_MS),
  });
  const date = Date.parse(response.headers.get('Date') ?? '');
  // The header counts whole seconds: a small difference is no skew.
  if (!Number.isNaN(date)) clockSkew = Math.abs(date - Date.now()) > 3_000 ? date - Date.now() : 0;
  const text = await response.text();
  /** @type {any} */
  let value = null;
  try { value = text ? JSON.parse(text) : null; } catch { value = null; }
  if (!response.ok) {
    const problem = value && typeof value === 'object' ? value : {};
    if (response.status === 401 && token && path !== '/v1/pair') signOut('The gateway no longer accepts this sign-in.');
    throw new Refused(response.status, problem);
  }
  return value;
}

/** @param {unknown} error @returns {string} */
function why(error) {
  if (error instanceof Refused) return error.message;
  if (error instanceof Error && error.name === 'TimeoutError') return 'the gateway did not answer in time';
  return 'the gateway could not be reached';
}

// --- signing in -------------------------------------------------------------------------------------------------------------

/** A name for the list of devices. */
function deviceName() {
  const ua = navigator.userAgent;
  const browser = /Firefox/.test(ua) ? 'Firefox' : /Edg\//.test(ua) ? 'Edge' : /Chrom/.test(ua) ? 'Chrome' : /Safari/.test(ua) ? 'Safari' : 'Browser';
  const system = /Android/.test(ua) ? 'Android' : /iPhone|iPad/.test(ua) ? 'iOS' : /Mac OS/.test(ua) ? 'macOS' : /Windows/.test(ua) ? 'Windows' : /Linux/.test(ua) ? 'Linux' : '';
  return system ? `${browser} on ${system}` : browser;
}

/** @param {string} value */
function keepToken(value) {
  token = value;
  try { sessionStorage.setItem(TOKEN_KEY, value); } catch { /* storage is off: the token lives as long as the page */ }
}

/** @param {string} [reason] */
function signOut(reason) {
  token = null;
  scopes = null;
  try { sessionStorage.removeItem(TOKEN_KEY); } catch { /* nothing was stored */ }
  link.stop();
  for (const card of cards.values()) card.el.remove();
  cards.clear();
  sessions.clear();
  drafts.clear();
  $('prompt').value = '';
  closeSession();
  renderSessions();
  renderInbox();
  announce('');
  $('app').hidden = true;
  $('signin').hidden = false;
  $('signin-note').textContent = reason ?? '';
  document.title = 'Plexus';
  $('signin-token').focus();
}

function enter() {
  $('signin').hidden = true;
  $('app').hidden = false;
  $('signin-note').textContent = '';
  route();
  link.start();
}

/** @param {string} code */
async function pair(code) {
  $('signin').hidden = false;
  const note = $('signin-note');
  if (!code) { note.textContent = 'The link holds no usable code. Run “plexus open” again.'; return; }
  note.classList.add('plain');
  note.textContent = 'Signing in…';
  try {
    const got = await http('POST', '/v1/pair', { code, name: deviceName() });
    if (typeof got?.token !== 'string' || !TOKEN_SHAPE.test(got.token)) throw new Refused(200, { detail: 'the gateway sent no usable token' });
    deviceId = str(got.device_id);
    keepToken(got.token);
    enter();
  } catch (error) {
    note.textContent = error instanceof Refused
      ? `That code was not accepted: ${error.message}. A code works once and for a short time; run “plexus open” again.`
      : `Signing in failed: ${why(error)}.`;
  } finally {
    note.classList.remove('plain');
  }
}

$('signin-form').addEventListener('submit', async (/** @type {Event} */ event) => {
  event.preventDefault();
  const input = $('signin-token');
  const note = $('signin-note');
  const value = input.value.trim();
  if (!TOKEN_SHAPE.test(value)) { note.textContent = 'That does not look like a token.'; return; }
  $('signin-go').disabled = true;
  token = value;
  try {
    await http('GET', '/v1/sessions');
    input.value = '';
    keepToken(value);
    enter();
  } catch (error) {
    token = null;
    note.textContent = error instanceof Refused && error.status === 401 ? 'The gateway does not know this token.' : `Signing in failed: ${why(error)}.`;
  } finally {
    $('signin-go').disabled = false;
  }
});
$('signout').addEventListener('click', () => signOut('Signed out of this tab.'));

// --- the live connection ----------------------------------------------------------------------------------------------------

/** Refusal of an RPC. */
class RpcError extends Error {
  /** @param {Json} error */
  constructor(error) {
    super(oneLine(error.message) || 'refused');
    this.code = error.code;
    this.data = error.data;
  }
}

/** The one WebSocket: connects, attaches to everything, comes back by cursor, and says at each moment what it knows. */
const link = {
  /** @type {WebSocket|null} */
  socket: null,
  /** @type {Phase} */
  phase: 'connecting',
  wanted: false,
  /** The last cursor taken over; null before the first attach. @type {string|null} */
  cursor: null,
  attempt: 0,
  heardAt: 0,
  lostAt: 0,
  /** @type {ReturnType<typeof setTimeout>|undefined} */
  timer: undefined,
  /** @type {ReturnType<typeof setTimeout>|undefined} */
  signTimer: undefined,
  nextId: 1,
  /** @type {Map<string, {resolve: (v: any) => void, reject: (e: any) => void, timer: any}>} */
  waiting: new Map(),
  reason: '',

  start() {
    this.wanted = true;
    this.cursor = null;
    this.attempt = 0;
    this.heardAt = 0;
    this.lostAt = 0;
    this.phase = 'connecting';
    this.connect();
  },

  stop() {
    this.wanted = false;
    clearTimeout(this.timer);
    this.drop();
  },

  drop() {
    clearTimeout(this.signTimer);
    const socket = this.socket;
    this.socket = null;
    if (socket) { socket.onopen = socket.onmessage = socket.onclose = null; socket.close(); }
    for (const call of this.waiting.values()) { clearTimeout(call.timer); call.reject(new Error('connection lost')); }
    this.waiting.clear();
  },

  connect() {
    clearTimeout(this.timer);
    if (!this.wanted || !token) return;
    this.drop();
    const scheme = location.protocol === 'https:' ? 'wss:' : 'ws:';
    const socket = new WebSocket(`${scheme}//${location.host}/v1/ws`, ['plexus.v1', `plexus.bearer.${token}`]);
    this.socket = socket;
    let opened = false;
    // A handshake that hangs is a failed one.
    this.signTimer = setTimeout(() => this.lost('no answer', opened), CALL_MS);
    socket.onopen = () => { opened = true; this.greet().catch((error) => this.refused(error, socket)); };
    socket.onmessage = (event) => this.take(event.data);
    socket.onclose = (event) => this.closed(event.code, event.reason, opened);
    renderPhase();
  },

  async greet() {
    this.set(this.cursor ? 'reconnecting' : 'connecting');
    const got = await this.call('initialize', {
      protocol_version: '0', client: CLIENT,
      ui_capabilities: { supports_confirm: true, supports_prompt: true, supports_pick: true },
    });
    if (got?.server) $('phase').title = oneLine(`${got.server.name ?? ''} ${got.server.version ?? ''}`);
    await this.call('session.attach', this.cursor ? { session_id: '*', after: this.cursor } : { session_id: '*', from: 'now' });
  },

  /** The greeting failed while the socket stands. @param {any} error @param {WebSocket} socket */
  refused(error, socket) {
    if (this.socket !== socket) return;
    if (error instanceof RpcError) { this.reason = `The gateway refused: ${error.message}`; this.cursor = null; }
    this.lost('refused', true);
  },

  /** @param {number} code @param {string} reason @param {boolean} opened */
  closed(code, reason, opened) {
    if (code === 4001) { signOut('This sign-in was revoked.'); return; }
    if (code === 4003) {
      this.wanted = false;
      this.drop();
      this.reason = `This device may not follow the gateway's news${reason ? `: ${oneLine(reason)}` : ''}.`;
      this.lostAt ||= Date.now();
      this.set('stopped');
      return;
    }
    this.lost(reason, opened);
  },

  /** @param {string} _reason @param {boolean} opened */
  lost(_reason, opened) {
    this.drop();
    if (!this.wanted) return;
    this.lostAt ||= Date.now();
    // A refused handshake looks like any other failure from here; an HTTP call tells a bad token from a gateway that is away.
    if (!opened) http('GET', '/v1/sessions').catch(() => {});
    const wait = BACKOFF_MS[Math.min(this.attempt, BACKOFF_MS.length - 1)] * (0.75 + Math.random() / 2);
    this.attempt += 1;
    this.timer = setTimeout(() => this.connect(), wait);
    this.set(navigator.onLine ? 'reconnecting' : 'offline');
  },

  /** @param {Phase} phase */
  set(phase) {
    this.phase = phase;
    if (phase === 'live') { this.lostAt = 0; this.attempt = 0; this.reason = ''; }
    renderPhase();
  },

  /** @param {string} method @param {Json} params @returns {Promise<any>} */
  call(method, params) {
    return new Promise((resolve, reject) => {
      const socket = this.socket;
      if (!socket || socket.readyState !== WebSocket.OPEN) { reject(new Error('not connected')); return; }
      const id = `p${this.nextId++}`;
      const timer = setTimeout(() => { this.waiting.delete(id); reject(new Error('no answer in time')); }, CALL_MS);
      this.waiting.set(id, { resolve, reject, timer });
      socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    });
  },

  /** Asks for a sign of life; without one the socket is given up. */
  probe() {
    if (!this.socket || this.socket.readyState !== WebSocket.OPEN) return;
    clearTimeout(this.signTimer);
    this.signTimer = setTimeout(() => this.lost('silent', true), SIGN_MS);
    this.call('runtime.list', {}).catch(() => {});
  },

  /** @param {any} data */
  take(data) {
    if (this.socket?.readyState === WebSocket.OPEN) clearTimeout(this.signTimer);
    this.heardAt = Date.now();
    /** @type {any} */
    let message;
    try { message = JSON.parse(data); } catch { notice('The gateway sent something that is not JSON; it was set aside.'); return; }
    for (const one of Array.isArray(message) ? message : [message]) {
      try { this.dispatch(one); } catch (error) {
        console.error(error);
        notice(`A message could not be shown (${oneLine(one?.method)}). Reload the page to be sure of what you see.`);
      }
    }
  },

  /** @param {any} m */
  dispatch(m) {
    if (!m || typeof m !== 'object') return;
    if (typeof m.method !== 'string') {
      const call = this.waiting.get(m.id);
      if (!call) return;
      this.waiting.delete(m.id);
      clearTimeout(call.timer);
      if (m.error) call.reject(new RpcError(m.error)); else call.resolve(m.result);
      return;
    }
    const p = m.params ?? {};
    switch (m.method) {
      case 'gateway.hello': this.hello(p); break;
      case 'gateway.snapshot': this.cursor = typeof p.cursor === 'string' ? p.cursor : this.cursor; takeState(p); break;
      case 'gateway.live':
        if (typeof p.head === 'string') this.cursor = p.head;
        this.set('live');
        break;
      case 'gateway.lag': if (this.phase === 'live') this.set('catching-up'); break;
      case 'agent.event':
        if (typeof p.cursor === 'string') this.cursor = p.cursor;
        takeEvent(p);
        break;
      case 'session.updated': if (p.session) takeSession(p.session); break;
      case 'runtime.updated': break; // read anew whenever the panel for a new session opens
      case 'ui.confirm.request': case 'ui.prompt.request': case 'ui.pick.request': takeRequest(p); break;
      case 'ui.request.resolved': takeResolved(p); break;
      default: break; // run.status and run.context repeat what events and sessions say
    }
  },

  /** @param {Json} p */
  hello(p) {
    if (Array.isArray(p.you?.scopes)) scopes = p.you.scopes.map(str);
    if (p.you?.device_id) deviceId = str(p.you.device_id);
    const fresh = this.cursor === null || p.resume !== 'ok';
    if (fresh && typeof p.head === 'string') this.cursor = p.head;
    this.set('catching-up');
    takeState(p);
    loadSessions();
    // A resume that was not clean leaves a hole between what is shown and what comes: the open session is read anew.
    if (openId && (fresh || !feed.loaded)) loadSession(openId);
    renderComposer();
  },
};

/** The whole state as hello and the gateway's snapshot tell it. @param {Json} p */
function takeState(p) {
  for (const s of list(p.sessions)) takeSession(s);
  if (Array.isArray(p.requests)) {
    const open = new Set();
    for (const r of p.requests) { open.add(r?.request_id); takeRequest(r); }
    for (const [id, card] of cards) if (card.status !== 'closed' && !open.has(id)) card.vanished();
    for (const card of cards.values()) if (card.status === 'sent') card.reopen('Connection came back: your earlier answer did not arrive.');
  }
}

setInterval(() => {
  if (link.phase === 'live' && Date.now() - link.heardAt > QUIET_MS) { link.heardAt = Date.now(); link.probe(); }
}, 5_000);
document.addEventListener('visibilitychange', () => {
  if (document.hidden) return;
  rearmAll();
  tick();
  // A phone that slept may hold a socket that died without a word.
  if (link.socket?.readyState === WebSocket.OPEN) link.probe(); else if (link.wanted) { link.attempt = 0; link.connect(); }
});
addEventListener('focus', () => rearmAll());
addEventListener('online', () => { if (link.wanted && link.phase !== 'live') { link.attempt = 0; link.connect(); } });
addEventListener('offline', () => { if (link.phase === 'live') link.probe(); else renderPhase(); });
$('retry').addEventListener('click', () => {
  if (link.phase === 'stopped') { location.reload(); return; }
  link.attempt = 0;
  link.connect();
});

let lastPhase = '';
function renderPhase() {
  const words = { connecting: 'Connecting…', 'catching-up': 'Catching up…', live: 'Live', reconnecting: 'Reconnecting…', offline: 'Offline', stopped: 'Not following' };
  const phase = link.phase;
  const live = phase === 'live';
  const label = $('phase');
  label.dataset.phase = phase;
  if (label.textContent !== words[phase]) label.textContent = words[phase];
  $('app').dataset.live = String(live || phase === 'catching-up');
  const bar = $('stale');
  const show = !live && phase !== 'catching-up' && (link.lostAt > 0);
  bar.hidden = !show;
  if (show) {
    const when = link.heardAt ? `What you see was true at ${new Date(link.heardAt).toLocaleTimeString()}.` : 'Nothing has been heard from the gateway yet.';
    const text = phase === 'stopped' ? link.reason
      : phase === 'offline' ? `Offline. ${when}` : `Reconnecting… ${when}${link.reason ? ` ${link.reason}` : ''}`;
    if ($('stale-text').textContent !== text) $('stale-text').textContent = text;
    $('retry').textContent = phase === 'stopped' ? 'Reload' : 'Try now';
  }
  if (phase !== lastPhase) {
    lastPhase = phase;
    for (const card of cards.values()) card.refresh();
    renderComposer();
    renderSessionsEmpty();
  }
}

/** Something went wrong that belongs nowhere else. @param {string} text */
function notice(text) {
  const note = $(openId ? 'composer-note' : 'new-note');
  note.textContent = text;
  announce(text);
}

// --- sessions ---------------------------------------------------------------------------------------------------------------

/** @type {Map<string, Json>} */
const sessions = new Map();
/** @type {Map<string, any>} */
const rows = new Map();
/** When each session was last heard of, ms. @type {Map<string, number>} */
const newsAt = new Map();
let sessionsLoaded = false;
let sessionsProblem = '';

/** @param {Json} s */
function takeSession(s) {
  const id = s?.session_id;
  if (typeof id !== 'string') return;
  const old = sessions.get(id);
  // A page fetched before an update must not undo it.
  if (old && msOf(s.updated_at) < msOf(old.updated_at)) return;
  if (s.state === 'deleted' || s.deleted === true) sessions.delete(id); else sessions.set(id, { ...old, ...s });
  const at = msOf(s.updated_at);
  if (!Number.isNaN(at)) newsAt.set(id, Math.max(newsAt.get(id) ?? 0, at));
  renderSessionsSoon();
}

async function loadSessions() {
  const before = new Set(sessions.keys());
  try {
    const got = await http('GET', '/v1/sessions');
    const now = new Set(list(got?.sessions).map((s) => s.session_id));
    for (const s of list(got?.sessions)) takeSession(s);
    for (const id of before) if (!now.has(id)) sessions.delete(id);
    sessionsLoaded = true;
    sessionsProblem = '';
  } catch (error) {
    sessionsProblem = `The list could not be read: ${why(error)}.`;
  }
  renderSessionsSoon();
}

let sessionsDue = false;
function renderSessionsSoon() {
  if (sessionsDue) return;
  sessionsDue = true;
  requestAnimationFrame(() => { sessionsDue = false; renderSessions(); });
}

/** @param {Json} s */
const titleOf = (s) => oneLine(s.title) || 'Untitled session';
/** @param {Json} s */
const stateOf = (s) => (oneLine(s.state) || 'unknown');

function renderSessions() {
  const group = (/** @type {Json} */ s) => (s.state === 'exited' ? 1 : 0);
  const all = [...sessions.values()].sort((a, b) =>
    group(a) - group(b) || (msOf(b.updated_at) || 0) - (msOf(a.updated_at) || 0) || (a.session_id < b.session_id ? -1 : 1));
  const box = $('sessions');
  const focused = document.activeElement;
  for (const [id, row] of rows) if (!sessions.has(id)) { row.li.remove(); rows.delete(id); }
  let previous = null;
  for (const s of all) {
    let row = rows.get(s.session_id);
    if (!row) {
      const a = h('a', 'row');
      a.href = `#/s/${encodeURIComponent(s.session_id)}`;
      row = { li: h('li', '', a), a, title: h('bdi', 'title'), state: h('span', 'state'), sub: h('span', 'sub'), age: h('span', 'age'), asks: h('span', 'asks') };
      a.append(row.title, row.state, row.sub, row.age, row.asks);
      rows.set(s.session_id, row);
    }
    row.title.textContent = titleOf(s);
    row.sub.textContent = [oneLine(s.runtime_id), oneLine(s.dialect)].filter(Boolean).join(' · ');
    row.state.textContent = stateOf(s);
    row.state.dataset.state = stateOf(s);
    const asks = [...cards.values()].filter((c) => c.status !== 'closed' && c.req.session_id === s.session_id).length;
    row.asks.hidden = asks === 0;
    row.asks.textContent = asks === 1 ? '1 open request' : `${asks} open requests`;
    if (s.session_id === openId) row.a.setAttribute('aria-current', 'page'); else row.a.removeAttribute('aria-current');
    renderAge(s.session_id);
    const wanted = previous ? previous.nextSibling : box.firstChild;
    if (wanted !== row.li) box.insertBefore(row.li, wanted);
    previous = row.li;
  }
  if (focused instanceof HTMLElement && focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
  renderSessionsEmpty();
  renderSessionHead();
}

function renderSessionsEmpty() {
  const box = $('sessions-empty');
  box.hidden = sessions.size > 0 && !sessionsProblem;
  if (box.hidden) return;
  if (sessionsProblem) box.replaceChildren(h('p', 'note', sessionsProblem));
  else if (!sessionsLoaded) box.replaceChildren(h('p', '', link.phase === 'reconnecting' || link.phase === 'offline' ? 'No connection yet.' : 'Loading…'));
  else box.replaceChildren(h('p', '', 'No sessions yet.'), h('p', 'fine', 'Press “New session”, or in a terminal:'), h('code', 'command', 'plexus run demo'));
}

/** @param {string} id */
function renderAge(id) {
  const row = rows.get(id);
  const at = newsAt.get(id);
  if (!row) return;
  const d = at ? gatewayNow() - at : NaN;
  const text = Number.isNaN(d) ? '' : d < 5_000 ? 'now' : span(d);
  if (row.age.textContent !== text) row.age.textContent = text;
}

$('new-toggle').addEventListener('click', () => {
  const panel = $('new-panel');
  panel.hidden = !panel.hidden;
  $('new-toggle').setAttribute('aria-expanded', String(!panel.hidden));
  if (!panel.hidden) loadRuntimes();
});

async function loadRuntimes() {
  const box = $('new-runtimes');
  const note = $('new-note');
  note.textContent = '';
  if (!box.firstChild) box.append(h('li', 'fine', 'Loading…'));
  try {
    const got = await http('GET', '/v1/runtimes');
    const all = list(got?.runtimes);
    box.replaceChildren();
    if (all.length === 0) box.append(h('li', 'fine', 'No runtime is attached. In a terminal: ', h('code', '', 'plexus run demo')));
    for (const r of all) {
      const id = str(r.runtime_id ?? r.id);
      const facts = [oneLine(r.dialect), oneLine(r.state ?? r.status)].filter(Boolean).join(' · ');
      const b = button('', () => newSession(id), '');
      b.append(h('strong', '', oneLine(id)), facts ? h('span', 'fine', ` ${facts}`) : '');
      b.dataset.runtime = id;
      if (!may('prompt')) { b.disabled = true; b.title = 'This device may only watch.'; }
      box.append(h('li', '', b));
    }
  } catch (error) {
    box.replaceChildren();
    note.textContent = `The runtimes could not be read: ${why(error)}.`;
  }
}

let startingSession = false;
/** @param {string} runtimeId */
async function newSession(runtimeId) {
  if (startingSession) return;
  startingSession = true;
  const note = $('new-note');
  note.classList.add('plain');
  note.textContent = `Starting a session on ${oneLine(runtimeId)}…`;
  const cwd = $('new-cwd').value.trim();
  try {
    const got = await http('POST', '/v1/sessions', cwd ? { runtime_id: runtimeId, cwd } : { runtime_id: runtimeId });
    const s = got?.session ?? got;
    takeSession(s);
    note.textContent = '';
    $('new-panel').hidden = true;
    $('new-toggle').setAttribute('aria-expanded', 'false');
    location.hash = `#/s/${encodeURIComponent(s.session_id)}`;
    wantPromptFocus = true;
  } catch (error) {
    note.textContent = error instanceof Refused ? `No session was started: ${error.message}`
      : `${why(error)}: it is not known whether a session was started. The list will show it if so.`;
  } finally {
    note.classList.remove('plain');
    startingSession = false;
  }
}

// --- which view ---------------------------------------------------------------------------------------------------------------

/** @type {string|null} */
let openId = null;
let wantPromptFocus = false;
/** Unsent prompts by session. @type {Map<string, string>} */
const drafts = new Map();

function route() {
  const match = /^#\/s\/([^/?#]{1,200})$/.exec(location.hash);
  let id = null;
  try { id = match ? decodeURIComponent(match[1]) : null; } catch { id = null; }
  if (id) openSession(id); else closeSession();
}
addEventListener('hashchange', () => { if (token) route(); });

/** @param {string} id */
function openSession(id) {
  if (openId === id) return;
  if (openId) drafts.set(openId, $('prompt').value);
  openId = id;
  $('app').dataset.view = 'session';
  $('session').hidden = false;
  $('view-empty').hidden = true;
  $('prompt').value = drafts.get(id) ?? '';
  $('composer-note').textContent = '';
  feed.clear();
  feed.say('Loading…');
  renderSessions();
  renderInbox();
  renderComposer();
  // Before hello the snapshot could end before the live part begins; hello loads it then.
  if (link.phase === 'live' || link.phase === 'catching-up') loadSession(id);
  if (wantPromptFocus && matchMedia('(pointer: fine)').matches) $('prompt').focus();
  wantPromptFocus = false;
}

function closeSession() {
  if (openId) drafts.set(openId, $('prompt').value);
  openId = null;
  $('app').dataset.view = 'list';
  $('session').hidden = true;
  $('view-empty').hidden = false;
  feed.clear();
  renderSessions();
  renderInbox();
}

function renderSessionHead() {
  if (!openId) return;
  const s = sessions.get(openId) ?? {};
  $('session-title').replaceChildren(h('bdi', '', titleOf(s)));
  $('session-sub').textContent = [oneLine(s.runtime_id), oneLine(s.dialect), oneLine(s.cwd)].filter(Boolean).join(' · ');
  $('session-state').textContent = stateOf(s);
  $('session-state').dataset.state = stateOf(s);
  const busy = s.state === 'running' || s.state === 'waiting';
  if ($('cancel').hidden === busy) $('cancel').hidden = !busy;
}

// --- the feed -----------------------------------------------------------------------------------------------------------------

/**
 * @typedef {Object} Item one thing in the feed
 * @property {string} kind
 * @property {string} run
 * @property {string} [text] all of a message's text
 * @property {Json} [data]
 * @property {HTMLElement|null} el its element while it is in the DOM
 * @property {Text} [node] the text node that grows
 * @property {() => HTMLElement} build
 */

class Feed {
  constructor() {
    this.box = $('feed');
    this.ol = $('items');
    /** @type {Item[]} */
    this.items = [];
    this.from = 0;
    this.cap = MAX_SHOWN;
    this.dropped = 0;
    /** @type {Map<string, Item>} */
    this.tools = new Map();
    this.following = true;
    this.loaded = false;
    this.epoch = '';
    this.pos = -1;
    /** Events that came while the snapshot was on its way; null when none is. @type {Json[]|null} */
    this.held = null;
    this.scrollDue = false;
    this.box.addEventListener('scroll', () => {
      this.following = this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight < 40;
      $('jump').hidden = this.following;
    }, { passive: true });
    $('jump').addEventListener('click', () => this.toEnd(true));
    $('earlier').addEventListener('click', () => this.earlier());
    // The inbox or the keyboard takes room from the feed: stay at the end if that is where the reader was.
    new ResizeObserver(() => this.settle()).observe(this.box);
  }

  clear() {
    this.items = [];
    this.from = 0;
    this.cap = MAX_SHOWN;
    this.dropped = 0;
    this.tools.clear();
    this.ol.replaceChildren();
    this.following = true;
    this.loaded = false;
    this.pos = -1;
    this.held = null;
    $('jump').hidden = true;
    $('earlier').hidden = true;
    this.say('');
  }

  /** @param {string} text */
  say(text) {
    $('feed-note').textContent = text;
    $('feed-note').hidden = text === '';
  }

  /** @param {Item} item */
  push(item) {
    if (this.items.length === 0) this.say('');
    this.items.push(item);
    item.el = item.build();
    this.ol.append(item.el);
    if (this.items.length > MAX_KEPT) {
      const gone = this.items.splice(0, this.items.length - MAX_KEPT);
      this.dropped += gone.length;
      for (const old of gone) { old.el?.remove(); if (old.data?.toolKey) this.tools.delete(old.data.toolKey); }
      this.from = Math.max(0, this.from - gone.length);
    }
    while (this.items.length - this.from > this.cap) {
      const old = this.items[this.from++];
      old.el?.remove();
      old.el = null;
      old.node = undefined;
    }
    this.renderEarlier();
    this.settle();
  }

  renderEarlier() {
    const b = $('earlier');
    b.hidden = this.from === 0 && this.dropped === 0;
    b.disabled = this.from === 0;
    b.textContent = this.from > 0 ? `Show earlier (${this.from.toLocaleString()} more)` : 'Older items are no longer held by this page: reopen the session to read them.';
  }

  earlier() {
    const height = this.box.scrollHeight;
    const start = Math.max(0, this.from - EARLIER_STEP);
    const part = document.createDocumentFragment();
    for (const item of this.items.slice(start, this.from)) { item.el = item.build(); part.append(item.el); }
    this.cap += this.from - start;
    this.from = start;
    this.ol.prepend(part);
    this.box.scrollTop += this.box.scrollHeight - height;
    this.renderEarlier();
  }

  settle() {
    if (this.scrollDue) return;
    this.scrollDue = true;
    requestAnimationFrame(() => {
      this.scrollDue = false;
      if (this.following) this.box.scrollTop = this.box.scrollHeight;
    });
  }

  /** @param {boolean} [focus] */
  toEnd(focus) {
    this.following = true;
    $('jump').hidden = true;
    this.settle();
    if (focus) this.box.focus({ preventScroll: true });
  }

  last() { return this.items[this.items.length - 1]; }

  /** Draws an item anew after its data changed. @param {Item} item */
  redraw(item) {
    if (!item.el) return;
    const open = [...item.el.querySelectorAll('details')].map((d) => d.open);
    const fresh = item.build();
    item.el.replaceWith(fresh);
    item.el = fresh;
    fresh.querySelectorAll('details').forEach((d, i) => { if (open[i]) d.open = true; });
    this.settle();
  }

  /** Text of a user, an agent or its thoughts: joins the message before it where that is the same one.
   * @param {string} role @param {string} run @param {string} text @param {string} messageId */
  chunk(role, run, text, messageId) {
    const last = this.last();
    if (last && last.kind === role && last.run === run && (!messageId || !last.data?.messageId || last.data.messageId === messageId)) {
      const before = (last.text ?? '').length;
      last.text = (last.text ?? '') + text;
      if (last.node && before + text.length <= MAX_TEXT) last.node.appendData(readable(text));
      else if (last.node && before <= MAX_TEXT) this.redraw(last);
      this.settle();
      return;
    }
    this.push(messageItem(role, run, text, messageId));
  }
}

/** @param {string} role @param {string} run @param {string} text @param {string} messageId @returns {Item} */
function messageItem(role, run, text, messageId) {
  /** @type {Item} */
  const item = { kind: role, run, text, data: { messageId }, el: null, build: () => {
    const all = item.text ?? '';
    item.node = undefined;
    if (role === 'thought') {
      const body = said(readable(all));
      const d = h('details', '', h('summary', '', 'Thought'), quote('agent, thinking', 'plain', body));
      item.node = body.firstChild ?? body.appendChild(document.createTextNode(''));
      return h('li', 'item msg msg-thought', d);
    }
    const body = said(readable(all.slice(0, MAX_TEXT)));
    item.node = body.firstChild ?? body.appendChild(document.createTextNode(''));
    const block = quote(role === 'user' ? 'prompt' : 'agent', role === 'user' ? 'user' : 'agent', body);
    if (all.length > MAX_TEXT) {
      item.node = undefined;
      block.append(button('Show this message whole', (() => { body.textContent = readable(item.text ?? ''); }), 'small'));
    }
    return h('li', `item msg msg-${role}`, block);
  } };
  return item;
}

/** A plain text of a content block; what is not text is named, not fetched. @param {any} c @returns {string} */
function contentText(c) {
  if (typeof c === 'string') return c;
  if (Array.isArray(c)) return c.map(contentText).join('');
  if (!c || typeof c !== 'object') return '';
  switch (c.type) {
    case 'text': return str(c.text);
    case 'image': case 'audio': return `[${c.type} ${str(c.mimeType ?? c.mime_type)}, ${Math.ceil(str(c.data).length * 0.75 / 1024)} KiB]`;
    case 'resource_link': return `[link ${str(c.name)} ${str(c.uri)}]`;
    case 'resource': return typeof c.resource?.text === 'string' ? c.resource.text : `[resource ${str(c.resource?.uri)}]`;
    default: return typeof c.text === 'string' ? c.text : JSON.stringify(c);
  }
}

/** @param {string} text @param {boolean} [bad] @returns {Item} */
function sepItem(text, bad) {
  return { kind: 'sep', run: '', el: null, build: () => h('li', `item sep${bad ? ' bad' : ''}`, h('bdi', '', text)) };
}

/** One line of ours, then perhaps a quoted text. @param {string} kind @param {string} line @param {string} [quoted] @param {boolean} [bad] @returns {Item} */
function lineItem(kind, line, quoted, bad) {
  return { kind, run: '', el: null, build: () => {
    const li = h('li', `item line-item${bad ? ' bad' : ''}`, line);
    if (quoted) li.append(quote('as the runtime said it', 'plain', longSaid(visible(quoted), 'mono')));
    return li;
  } };
}

/** @param {string} kind @param {string} summary @param {any} value @returns {Item} */
function foldedItem(kind, summary, value) {
  /** @type {Item} */
  const item = { kind, run: '', el: null, data: { value }, build: () => h('li', 'item line-item',
    folded(summary, () => quote('as it came', 'plain', longSaid(visible(str(item.data?.value)), 'mono')))) };
  return item;
}

/** The lines of a change. @param {string} before @param {string} after @returns {Array<[' '|'-'|'+'|'…', string]>} */
function diffLines(before, after) {
  const a = before === '' ? [] : before.replace(/\n$/, '').split('\n');
  const b = after === '' ? [] : after.replace(/\n$/, '').split('\n');
  let top = 0;
  while (top < a.length && top < b.length && a[top] === b[top]) top += 1;
  let end = 0;
  while (end < a.length - top && end < b.length - top && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const x = a.slice(top, a.length - end);
  const y = b.slice(top, b.length - end);
  /** @type {Array<[' '|'-'|'+'|'…', string]>} */
  const out = [];
  const lead = Math.max(0, top - 3);
  if (lead > 0) out.push(['…', `${lead} lines as before`]);
  for (const l of a.slice(lead, top)) out.push([' ', l]);
  if (x.length > MAX_DIFF_LINES || y.length > MAX_DIFF_LINES) {
    for (const l of x) out.push(['-', l]);
    for (const l of y) out.push(['+', l]);
  } else {
    // Longest common subsequence, from the ends.
    const width = y.length + 1;
    const table = new Uint16Array((x.length + 1) * width);
    for (let i = x.length - 1; i >= 0; i -= 1) {
      for (let j = y.length - 1; j >= 0; j -= 1) {
        table[i * width + j] = x[i] === y[j] ? table[(i + 1) * width + j + 1] + 1 : Math.max(table[(i + 1) * width + j], table[i * width + j + 1]);
      }
    }
    let i = 0, j = 0;
    while (i < x.length || j < y.length) {
      if (i < x.length && j < y.length && x[i] === y[j]) { out.push([' ', x[i]]); i += 1; j += 1; }
      else if (i < x.length && (j >= y.length || table[(i + 1) * width + j] >= table[i * width + j + 1])) { out.push(['-', x[i]]); i += 1; }
      else { out.push(['+', y[j]]); j += 1; }
    }
  }
  const tail = a.slice(a.length - end);
  for (const l of tail.slice(0, 3)) out.push([' ', l]);
  if (tail.length > 3) out.push(['…', `${tail.length - 3} lines as before`]);
  return out;
}

/** @param {Json} d */
function diffBlock(d) {
  const box = h('div', 'diff', h('div', 'path', oneLine(d.path)));
  const lines = diffLines(str(d.oldText ?? d.old_text), str(d.newText ?? d.new_text));
  const draw = (/** @type {typeof lines} */ some) => {
    for (const [mark, text] of some) {
      box.append(h('div', `l ${mark === '+' ? 'add' : mark === '-' ? 'del' : mark === '…' ? 'skipped' : ''}`, `${mark} ${visible(text)}`));
    }
  };
  draw(lines.slice(0, 400));
  if (lines.length > 400) {
    const more = button(`Show all ${lines.length} lines`, () => { more.remove(); draw(lines.slice(400)); }, 'small');
    box.append(more);
  }
  return box;
}

const TOOL_MARK = /** @type {Record<string, string>} */ ({ pending: '○', in_progress: '◔', completed: '✓', failed: '✗' });

/** @param {string} run @param {Json} data @returns {Item} */
function toolItem(run, data) {
  /** @type {Item} */
  const item = { kind: 'tool', run, el: null, data, build: () => {
    const t = item.data ?? {};
    const status = oneLine(t.status) || 'pending';
    const state = h('span', '', `${TOOL_MARK[status] ?? '·'} ${status.replaceAll('_', ' ')}`);
    state.dataset.status = status;
    const box = h('div', 'tool', h('div', 'tool-head', h('span', '', 'Tool'), t.kind ? h('span', '', oneLine(t.kind)) : null, state),
      quote('agent', 'agent', said(oneLine(t.title) || '(no title)', 'mono title')));
    const blocks = list(t.content);
    const diffs = blocks.filter((c) => c?.type === 'diff');
    const others = blocks.filter((c) => c?.type !== 'diff').map((c) => (c?.type === 'terminal' ? `[terminal ${str(c.terminalId ?? c.terminal_id)}]` : contentText(c?.content ?? c))).filter(Boolean);
    for (const d of diffs) box.append(diffBlock(d));
    if (others.length) box.append(folded('Output', () => quote('tool output', 'plain', longSaid(visible(others.join('\n')), 'mono')), status === 'failed'));
    if (t.raw_input !== undefined && t.raw_input !== null) box.append(folded('Input', () => quote('as the agent gave it', 'plain', longSaid(visible(str(t.raw_input)), 'mono'))));
    if (!blocks.length && t.raw_output !== undefined && t.raw_output !== null) box.append(folded('Raw output', () => quote('as it came', 'plain', longSaid(visible(str(t.raw_output)), 'mono'))));
    return h('li', 'item', box);
  } };
  return item;
}

/** A tool call in our one spelling; absent fields stay absent so that an update changes only what it names. @param {Json} e @returns {Json} */
function toolFields(e) {
  /** @type {Json} */
  const out = {};
  const pick = (/** @type {string} */ to, /** @type {any[]} */ ...from) => { const v = from.find((x) => x !== undefined && x !== null); if (v !== undefined) out[to] = v; };
  pick('title', e.title); pick('kind', e.tool_kind, /^tool_call/.test(str(e.kind)) ? undefined : e.kind); pick('status', e.status); pick('content', e.content);
  pick('raw_input', e.rawInput, e.raw_input); pick('raw_output', e.rawOutput, e.raw_output);
  return out;
}

/** @param {string} run @param {Json} e */
function takeTool(run, e) {
  const key = `${run}/${str(e.toolCallId ?? e.tool_call_id)}`;
  const known = feed.tools.get(key);
  if (known) { known.data = { ...known.data, ...toolFields(e) }; feed.redraw(known); return; }
  const item = toolItem(run, { ...toolFields(e), toolKey: key });
  feed.tools.set(key, item);
  feed.push(item);
}

/** @param {string} run @param {any} plan */
function takePlan(run, plan) {
  const entries = list(plan?.entries ?? plan);
  const known = feed.items.findLast((i) => i.kind === 'plan' && i.run === run);
  if (known) { known.data = { entries }; feed.redraw(known); return; }
  /** @type {Item} */
  const item = { kind: 'plan', run, el: null, data: { entries }, build: () => {
    const ul = h('ul', 'plan');
    for (const e of list(item.data?.entries)) ul.append(h('li', '', h('span', '', oneLine(e?.status).replaceAll('_', ' ')), said(oneLine(e?.content))));
    return h('li', 'item', quote('agent, its plan', 'agent', ul));
  } };
  feed.push(item);
}

/** One event of the open session. @param {Json} p */
function showEvent(p) {
  const e = p.event && typeof p.event === 'object' ? p.event : {};
  const run = str(p.run_id);
  const msgId = str(e.messageId ?? e.message_id);
  switch (p.kind) {
    case 'user_message_chunk': feed.chunk('user', run, contentText(e.content), msgId); break;
    case 'agent_message_chunk': feed.chunk('agent', run, contentText(e.content), msgId); break;
    case 'agent_thought_chunk': feed.chunk('thought', run, contentText(e.content), msgId); break;
    case 'tool_call': case 'tool_call_update': takeTool(run, e); break;
    case 'plan': takePlan(run, e); break;
    case 'run_started': feed.push(sepItem('run started')); break;
    case 'run_status': {
      const status = oneLine(e.status ?? e.state);
      const text = oneLine(e.message) || (status === 'awaiting_ui' ? 'waiting for an answer' : status.replaceAll('_', ' '));
      if (feed.last()?.kind === 'run_status') { feed.items.pop()?.el?.remove(); }
      if (text) feed.push({ ...sepItem(text), kind: 'run_status' });
      break;
    }
    case 'run_ended': {
      const stop = oneLine(e.stop_reason ?? e.stopReason ?? e.reason);
      const status = oneLine(e.status ?? e.state ?? e.outcome);
      const error = oneLine(typeof e.error === 'object' && e.error ? e.error.message ?? e.error : e.error);
      const bad = Boolean(error) || /error|fail|exit|crash/.test(status + stop);
      const cancelled = /cancel/.test(status + stop);
      const word = cancelled ? 'cancelled' : bad ? 'failed' : 'finished';
      const rest = [stop, status, error].filter((w, i, all) => w && all.indexOf(w) === i && !['completed', 'finished', 'end_turn', 'cancelled', 'ok', word].includes(w));
      feed.push(sepItem([word, ...rest].join(' · '), bad && !cancelled));
      break;
    }
    case 'request_opened': feed.push(lineItem('request', 'Asked: ', str(e.title ?? e.request?.title ?? e.display))); break;
    case 'request_resolved': feed.push(lineItem('request', `Request: ${outcomeOf(e, cards.get(str(e.request_id))?.req ?? e.request ?? {}).text}`)); break;
    case 'runtime_status': {
      const state = oneLine(e.state ?? e.status);
      const facts = [e.code !== undefined && e.code !== null ? `code ${oneLine(e.code)}` : '', e.signal ? `signal ${oneLine(e.signal)}` : '', oneLine(e.message)].filter(Boolean);
      const tail = Array.isArray(e.stderr_tail) ? e.stderr_tail.map(str).join('\n') : str(e.stderr_tail);
      feed.push(lineItem('runtime', `Runtime ${state || 'changed'}${facts.length ? ` · ${facts.join(' · ')}` : ''}`, tail, /exit|crash|fail|stuck/.test(state)));
      break;
    }
    case 'error': feed.push(lineItem('error', 'Error', str(e.message ?? e.detail ?? e), true)); break;
    case 'raw': feed.push(foldedItem('raw', 'Something no dialect knows, kept as it came', e)); break;
    case 'client_joined': case 'client_left':
      feed.push(lineItem('client', `${oneLine(e.name ?? e.client?.name ?? e.device_id) || 'A client'} ${p.kind === 'client_joined' ? 'joined' : 'left'}`));
      break;
    default: {
      const kind = `fold:${oneLine(p.kind)}`;
      const last = feed.last();
      // Figures that repeat (usage, say) replace one another rather than fill the feed.
      if (last && last.kind === kind && /_update$/.test(kind)) { last.data = { value: e }; feed.redraw(last); } else feed.push(foldedItem(kind, oneLine(p.kind).replaceAll('_', ' ') || 'event', e));
    }
  }
}

/** @param {Json} p an event of any session */
function takeEvent(p) {
  const id = str(p.session_id);
  const at = msOf(p.at);
  if (id && !Number.isNaN(at)) { newsAt.set(id, Math.max(newsAt.get(id) ?? 0, at)); renderAge(id); }
  if (id !== openId) return;
  if (feed.held) { feed.held.push(p); return; }
  if (!feed.loaded) return; // its snapshot is still to be read and will hold this event
  place(p);
}

/** Shows an event unless what is on the page holds it already. @param {Json} p */
function place(p) {
  const c = parseCursor(p.cursor);
  if (c) {
    feed.epoch ||= c.epoch;
    // Another epoch: the gateway's history is not the one shown. Read it anew.
    if (c.epoch !== feed.epoch) { if (openId) loadSession(openId); return; }
    if (c.pos <= feed.pos) return;
    feed.pos = c.pos;
  }
  showEvent(p);
}

let loadSerial = 0;
/** Reads a session whole and goes on from where that ends. @param {string} id */
async function loadSession(id) {
  const serial = ++loadSerial;
  feed.held = [];
  try {
    const got = await http('GET', `/v1/sessions/${encodeURIComponent(id)}/snapshot`);
    if (serial !== loadSerial || openId !== id) return;
    const held = feed.held ?? [];
    feed.clear();
    const c = parseCursor(got?.cursor);
    feed.epoch = c?.epoch ?? '';
    feed.pos = c?.pos ?? -1;
    feed.loaded = true;
    if (got?.session) takeSession(got.session);
    for (const r of list(got?.requests)) if (!r.state || r.state === 'open') takeRequest(r);
    /** @type {Array<{position: number, show: () => void}>} */
    const parts = [];
    for (const m of list(got?.messages)) {
      parts.push({ position: Number(m.position) || 0, show: () => {
        const role = m.role === 'user' || m.role === 'thought' ? m.role : 'agent';
        feed.push(messageItem(role, str(m.run_id), typeof m.text === 'string' ? m.text : contentText(m.content), str(m.message_id)));
      } });
    }
    for (const t of list(got?.tools)) parts.push({ position: Number(t.position) || 0, show: () => takeTool(str(t.run_id), t) });
    const plan = got?.plan;
    if (plan && list(plan.entries ?? plan).length) parts.push({ position: Number(plan.position) || Infinity, show: () => takePlan(str(plan.run_id), plan) });
    parts.sort((a, b) => a.position - b.position);
    for (const part of parts) part.show();
    if (parts.length === 0 && held.length === 0) feed.say(may('prompt') ? 'Nothing has been said yet. Send a prompt below.' : 'Nothing has been said yet.');
    for (const p of held) place(p);
    feed.settle();
  } catch (error) {
    if (serial !== loadSerial || openId !== id) return;
    feed.held = null;
    const gone = error instanceof Refused && error.status === 404;
    if (feed.loaded) { feed.loaded = false; }
    feed.clear();
    feed.say(gone ? 'This session is not on the gateway (any more).' : `The session could not be read: ${why(error)}.`);
    if (!gone) $('feed-note').append(' ', button('Try again', () => { feed.say('Loading…'); loadSession(id); }, 'small'));
  }
}

const feed = new Feed();

// --- prompts and cancel -------------------------------------------------------------------------------------------------------

let sending = false;
async function sendPrompt() {
  const box = $('prompt');
  const id = openId;
  const text = box.value;
  const note = $('composer-note');
  if (!id || sending || text.trim() === '' || $('send').getAttribute('aria-disabled') === 'true') return;
  sending = true;
  note.textContent = '';
  renderComposer();
  try {
    const got = await http('POST', `/v1/sessions/${encodeURIComponent(id)}/prompt`, { text });
    drafts.delete(id);
    if (openId === id) {
      if (box.value === text) box.value = '';
      feed.toEnd();
      const ahead = typeof got?.queued === 'number' ? got.queued : got?.queued === true ? 1 : 0;
      if (ahead > 0) plainNote('Queued: it starts when the run before it has ended.');
    }
  } catch (error) {
    if (openId === id) {
      note.classList.remove('plain');
      note.textContent = error instanceof Refused ? `Not sent: ${error.message}`
        : `${why(error)}: it is not known whether the prompt arrived. Look above before you send it again.`;
    }
  } finally {
    sending = false;
    renderComposer();
  }
}

/** @param {string} text */
function plainNote(text) {
  const note = $('composer-note');
  note.classList.add('plain');
  note.textContent = text;
  setTimeout(() => { if (note.textContent === text) { note.textContent = ''; note.classList.remove('plain'); } }, 6_000);
}

function renderComposer() {
  const able = may('prompt');
  const send = $('send');
  send.setAttribute('aria-disabled', String(sending || !able || link.phase === 'offline' || link.phase === 'reconnecting' || link.phase === 'stopped'));
  send.textContent = sending ? 'Sending…' : 'Send';
  $('prompt').disabled = !able;
  $('prompt').placeholder = able ? 'Prompt for the agent' : 'This device may watch, not prompt';
}
$('send').addEventListener('click', sendPrompt);
$('prompt').addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
  if (event.key !== 'Enter' || event.isComposing || event.shiftKey) return;
  // A phone's keyboard has no Shift+Enter: there Enter is a new line, and the button sends.
  if (!event.ctrlKey && !event.metaKey && !matchMedia('(pointer: fine)').matches) return;
  event.preventDefault();
  sendPrompt();
});
$('cancel').addEventListener('click', async () => {
  const id = openId;
  const b = $('cancel');
  if (!id || b.getAttribute('aria-disabled') === 'true') return;
  b.setAttribute('aria-disabled', 'true');
  try {
    await http('POST', `/v1/sessions/${encodeURIComponent(id)}/cancel`, {});
    plainNote('Asked to cancel.');
  } catch (error) {
    $('composer-note').classList.remove('plain');
    $('composer-note').textContent = `Cancel: ${why(error)}.`;
  } finally {
    b.removeAttribute('aria-disabled');
  }
});

// --- requests -----------------------------------------------------------------------------------------------------------------

/** What our own words call an option, by its kind; the runtime's label stands below, quoted. */
const VERBS = /** @type {Record<string, [string, 'allow'|'deny']>} */ ({
  allow_once: ['Allow once', 'allow'], allow_always: ['Allow always', 'allow'], allow: ['Allow', 'allow'],
  reject_once: ['Deny', 'deny'], reject_always: ['Deny always', 'deny'], reject: ['Deny', 'deny'], deny: ['Deny', 'deny'],
});

/**
 * What became of a request, in words, and only what is known.
 * @param {Json} r a receipt or resolved notice @param {Json} req
 * @returns {{text: string, sense: string, state: string, at: any}}
 */
function outcomeOf(r, req) {
  const by = r.resolved_by ?? {};
  const name = oneLine(by.name) || oneLine(by.device_id);
  const who = name ? ` by ${by.device_id && by.device_id === deviceId ? `you (${name})` : name}` : '';
  const state = oneLine(r.state) || 'resolved';
  let text = '', sense = '';
  if (state === 'answered') {
    const option = list(req.options).find((o) => o?.id === r.option_id);
    const verb = VERBS[str(option?.kind)];
    if (verb) { sense = verb[1]; text = `${({ 'Allow once': 'Allowed once', 'Allow always': 'Allowed always', Allow: 'Allowed', 'Deny always': 'Denied always', Deny: 'Denied' })[verb[0]]}${who}`; }
    else if (option) text = `Answered “${oneLine(option.label)}”${who}`;
    else if (typeof r.ok === 'boolean') { sense = r.ok ? 'allow' : 'deny'; text = `${r.ok ? 'Allowed' : 'Denied'}${who}`; }
    else text = `Answered${who}`;
    if (verb?.[0] === 'Allow once') text = `Allowed${who}`;
  } else if (state === 'expired') text = 'Expired: nobody decided';
  else if (state === 'withdrawn') text = `Withdrawn${who || ': the run was cancelled or ended'}`;
  else if (state === 'orphaned') text = 'Orphaned: its runtime is gone, so it can no longer be answered';
  else text = `${state}${who}`;
  return { text, sense, state, at: r.at };
}

/** @type {Map<string, Card>} by request_id, oldest first */
const cards = new Map();

/** One request in the inbox. */
class Card {
  /** @param {Json} req */
  constructor(req) {
    this.req = req;
    /** @type {'open'|'sending'|'sent'|'closed'} `sent`: the connection went while an answer was under way */
    this.status = 'open';
    this.stillSince = performance.now();
    this.top = NaN;
    this.left = NaN;
    this.unfolded = false;
    this.closedAt = 0;
    /** @type {any} */
    this.outcomeAt = null;
    /** @type {HTMLElement} */
    this.el = h('li', 'card');
    this.el.tabIndex = -1;
    this.draw();
  }

  draw() {
    const req = this.req;
    const s = sessions.get(req.session_id) ?? {};
    this.el.dataset.status = this.status;
    this.el.dataset.request = str(req.request_id);
    const head = h('div', 'card-head', h('span', 'chip', oneLine(req.runtime_id ?? s.runtime_id) || 'runtime unknown'));
    const link_ = h('a', '', 'session “', h('bdi', '', titleOf(s)), '”');
    link_.href = `#/s/${encodeURIComponent(str(req.session_id))}`;
    this.when = h('span', 'when fine');
    head.append(this.when, link_);
    const cwd = oneLine(req.cwd ?? s.cwd);
    if (cwd) head.append(h('span', 'cwd', cwd));
    this.el.setAttribute('aria-label', `Request from ${oneLine(req.runtime_id)}`);

    const display = typeof req.display === 'string' ? req.display : str(req.display);
    const lines = display.split('\n');
    const long = !this.unfolded && (lines.length > MAX_DISPLAY_LINES || display.length > MAX_DISPLAY_CHARS);
    const block = quote('the agent asks', 'agent', said(oneLine(req.title) || '(no title)', 'title'));
    if (req.message && str(req.message) !== display) block.append(said(visible(str(req.message))));
    if (display && display !== str(req.title)) block.append(said(long ? lines.slice(0, MAX_DISPLAY_LINES).join('\n').slice(0, MAX_DISPLAY_CHARS) : display, 'mono'));
    if (long) {
      block.append(button(`Show all of it (${lines.length.toLocaleString()} lines, ${display.length.toLocaleString()} characters)`, () => {
        this.unfolded = true;
        this.draw();
        this.rearm();
        this.el.focus({ preventScroll: true });
      }, 'small'));
    }
    this.mustUnfold = long;
    const parts = [head, block];
    const warnings = list(req.warnings);
    if (warnings.length) {
      const ul = h('ul', '');
      for (const w of warnings) ul.append(h('li', '', oneLine(typeof w === 'object' && w ? w.message ?? w.text ?? w : w)));
      parts.push(h('div', 'warnings', h('strong', '', 'Plexus warns'), ul));
    }
    this.controls = h('div', 'controls');
    this.note = h('p', 'card-note');
    this.note.setAttribute('role', 'status');
    this.drawControls();
    this.el.replaceChildren(...parts, this.controls);
    this.refresh();
  }

  drawControls() {
    const req = this.req;
    /** @type {HTMLElement[]} */
    const fields = [];
    /** Below the buttons, so that a phone shows the buttons first. @type {HTMLElement[]} */
    const extras = [];
    const id = `c${str(req.request_id).replace(/[^A-Za-z0-9_-]/g, '_')}`;
    const options = list(req.options);
    const items = list(req.items);
    const actions = h('div', 'actions');
    this.actions = actions;
    /** @type {any} */
    let value = null;
    if (req.observe_only) {
      fields.push(h('p', 'fine', 'It can only be watched here. Answer it where the agent runs.'));
    } else if (options.length) {
      for (const o of options) {
        const verb = VERBS[str(o?.kind)];
        const label = oneLine(o?.label);
        const words = verb ? verb[0] : `“${label}”`;
        const under = verb ? (label && label.toLowerCase() !== verb[0].toLowerCase() ? `“${label}”` : '') : oneLine(o?.kind).replaceAll('_', ' ');
        this.addAction(words, under, verb?.[1] ?? '', () => ({ option_id: o.id }));
      }
    } else if (req.type === 'confirm' || req.type === 'permission') {
      const yes = oneLine(req.confirm_label), no = oneLine(req.cancel_label);
      this.addAction('Allow', yes && yes.toLowerCase() !== 'allow' ? `“${yes}”` : '', 'allow', () => ({ ok: true }));
      this.addAction('Deny', no && no.toLowerCase() !== 'deny' ? `“${no}”` : '', 'deny', () => ({ ok: false }));
    } else if (items.length) {
      const set = h('fieldset', '', h('legend', 'fine', req.multi ? 'Choose any' : 'Choose one'));
      /** @type {Array<[HTMLInputElement, any]>} */
      const picks = [];
      for (const it of items) {
        const input = h('input', '');
        input.type = req.multi ? 'checkbox' : 'radio';
        input.name = id;
        picks.push([input, it?.id]);
        set.append(h('label', 'line', input, h('span', '', h('bdi', '', oneLine(it?.label ?? it?.id)), it?.detail ? h('span', 'fine', ' ', h('bdi', '', oneLine(it.detail))) : null)));
      }
      fields.push(set);
      this.addAction('Send choice', '', 'allow', () => {
        const ids = picks.filter(([input]) => input.checked).map(([, itemId]) => itemId);
        if (!ids.length) { this.say('Nothing is chosen.', true); return null; }
        return { ids };
      });
      this.addAction('Choose nothing', '', 'deny', () => ({ ids: [] }));
    } else if (req.type === 'prompt') {
      value = h(req.multiline && !req.secret ? 'textarea' : 'input', '');
      if (value.tagName === 'INPUT') value.type = req.secret ? 'password' : 'text';
      value.autocomplete = 'off';
      value.spellcheck = false;
      value.value = str(req.default_value);
      value.id = `${id}-value`;
      const label = h('label', 'fine', req.secret ? 'Your answer (hidden as you type; it goes to the agent)' : 'Your answer');
      label.htmlFor = value.id;
      value.addEventListener('keydown', noEnter);
      fields.push(label, value);
      this.addAction('Send answer', '', 'allow', () => ({ value: value.value }));
      this.addAction('Give no answer', '', 'deny', () => ({ value: null }));
    } else {
      fields.push(h('p', 'fine', 'This page cannot answer a request of this kind. In a terminal: ', h('code', '', `plexus answer ${oneLine(req.request_id)}`)));
    }
    if (req.allow_reason) {
      this.reason = h('input', '');
      this.reason.type = 'text';
      this.reason.autocomplete = 'off';
      this.reason.maxLength = 2000;
      this.reason.id = `${id}-reason`;
      this.reason.placeholder = 'Reason (optional, the agent reads it)';
      this.reason.setAttribute('aria-label', 'Reason (optional, the agent reads it)');
      this.reason.addEventListener('keydown', noEnter);
      extras.push(this.reason);
    }
    if (req.allow_remember) {
      this.remember = h('input', '');
      this.remember.type = 'checkbox';
      extras.push(h('label', 'line', this.remember, 'Remember this answer'));
    }
    this.controls.replaceChildren(...fields, actions, this.note, ...extras);
  }

  /** @param {string} words @param {string} under @param {string} sense @param {() => Json|null} answer */
  addAction(words, under, sense, answer) {
    const b = h('button', '', h('strong', '', words), under ? h('small', '', under) : null);
    b.type = 'button';
    b.dataset.sense = sense;
    b.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== 'Enter' || sense === 'deny') return;
      event.preventDefault();
      this.say('Enter never allows. Press Space, or click.');
    });
    b.addEventListener('click', () => this.press(sense, answer));
    this.actions.append(b);
  }

  /** @param {string} text @param {boolean} [bad] */
  say(text, bad) {
    this.note.textContent = text;
    this.note.classList.toggle('bad', Boolean(bad));
  }

  /** Why no answer can be given now; empty when one can. @param {string} sense */
  hindrance(sense) {
    if (this.status === 'sending') return 'Your answer is on its way.';
    if (this.status === 'sent') return 'The connection was lost while your answer was on its way. It is not known yet whether it arrived.';
    if (!may('approve')) return 'This device may watch, not answer.';
    if (link.phase !== 'live' && link.phase !== 'catching-up') return 'Not connected: no answer can be given now.';
    if (this.mustUnfold && sense !== 'deny') return 'Show all of it before you allow it.';
    return '';
  }

  refresh() {
    this.el.dataset.status = this.status;
    if (this.status === 'closed') return;
    const general = this.hindrance('deny');
    for (const b of this.actions.children) b.setAttribute('aria-disabled', String(this.hindrance(b.dataset.sense) !== ''));
    if (general) this.say(general);
    else if (this.mustUnfold) this.say('Show all of it before you allow it.');
    else if (!this.note.classList.contains('bad')) this.say('');
    this.age();
  }

  age() {
    if (this.status === 'closed') {
      if (this.ageText) this.ageText.textContent = ago(this.outcomeAt) || 'just now';
      return;
    }
    const until = msOf(this.req.expires_at) - gatewayNow();
    const asked = ago(this.req.opened_at);
    this.when.textContent = [asked ? `asked ${asked}` : '', Number.isNaN(until) ? '' : until > 0 ? `expires in ${span(until)}` : 'expiring'].filter(Boolean).join(' · ');
  }

  /** Looks where the buttons are; a move starts the arming delay again. Scrolling by the reader is not a move. */
  watch() {
    if (this.status === 'closed' || !this.el.isConnected) return;
    const rect = this.actions.getBoundingClientRect();
    const top = Math.round(rect.top + $('inbox-body').scrollTop), left = Math.round(rect.left);
    if (top !== this.top || left !== this.left) {
      this.top = top;
      this.left = left;
      this.rearm();
    }
    const arming = String(!this.ready());
    if (this.actions.dataset.arming !== arming) this.actions.dataset.arming = arming;
  }
  rearm() { this.stillSince = performance.now(); this.actions.dataset.arming = 'true'; }
  ready() { return performance.now() - this.stillSince >= ARMING_MS; }

  /** @param {string} sense @param {() => Json|null} answer */
  press(sense, answer) {
    const no = this.hindrance(sense);
    if (no) { this.say(no, true); return; }
    this.watch();
    if (!this.ready()) { this.say('This has only just appeared or moved: look, then press again.'); return; }
    const body = answer();
    if (body) this.send(body);
  }

  /** @param {Json} body */
  async send(body) {
    const reason = this.reason?.value.trim();
    if (reason) body.reason = reason;
    if (this.remember?.checked) body.remember = true;
    this.status = 'sending';
    this.refresh();
    this.say('Sending…');
    try {
      const receipt = await link.call('ui.request.answer', { request_id: this.req.request_id, ...body, digest: this.req.digest });
      const got = receipt?.receipt ?? receipt ?? { state: 'answered' };
      // Only the reply to our own answer knows whether it won; a notice to everybody does not.
      this.close(got, got.won === false);
    } catch (error) {
      if (this.isClosed()) {
        // Everybody's notice came before our refusal: the card names the winner already.
        if (error instanceof RpcError && error.code === -32010) this.tellLate();
        return;
      }
      if (!(error instanceof RpcError)) {
        this.status = 'sent';
        this.refresh();
        // With the line still up the answer may simply be late: ask what is known.
        if (link.phase === 'live') this.vanished(true);
        return;
      }
      const winner = error.data?.winner ?? error.data?.receipt ?? error.data;
      if (error.code === -32010 && winner && typeof winner === 'object') { this.close(winner, true); return; }
      this.status = 'open';
      this.say(`Not accepted: ${error.message}`, true);
      this.refresh();
      this.say(`Not accepted: ${error.message}`, true);
      this.reread();
    }
  }

  isClosed() { return this.status === 'closed'; }

  /** Reads the request again: what is shown may no longer be what is asked. */
  async reread() {
    try {
      const got = await http('GET', `/v1/requests/${encodeURIComponent(this.req.request_id)}`);
      const r = got?.request ?? got;
      if (r?.state && r.state !== 'open') this.close(r.receipt ?? r, false); else if (r?.request_id) this.update(r);
    } catch { /* the gateway's next word decides */ }
  }

  /** @param {Json} req */
  update(req) {
    if (this.status === 'closed') return;
    const changed = req.digest !== this.req.digest;
    this.req = { ...this.req, ...req };
    if (!changed) { this.age(); return; }
    this.unfolded = false;
    this.status = 'open';
    this.draw();
    this.rearm();
    this.say('This request has changed since you saw it: read it again.', true);
  }

  /** The gateway no longer lists it (or an answer got no reply): find out what became of it. @param {boolean} [maybeOpen] */
  async vanished(maybeOpen) {
    try {
      const got = await http('GET', `/v1/requests/${encodeURIComponent(this.req.request_id)}`);
      const r = got?.request ?? got;
      if (!r?.state || r.state === 'open') { if (maybeOpen) this.reopen('Your answer did not arrive.'); return; }
      this.close(r.receipt ?? r, false);
    } catch (error) {
      if (error instanceof Refused) this.close({ state: 'No longer open' }, false);
    }
  }

  /** @param {string} text */
  reopen(text) {
    if (this.status === 'closed') return;
    this.status = 'open';
    this.rearm();
    this.refresh();
    this.say(text, true);
  }

  /** Turns the card into what became of it, in place and at the same height. @param {Json} r @param {boolean} late */
  close(r, late) {
    if (this.status === 'closed') return;
    const out = outcomeOf(r, this.req);
    const had = this.el.contains(document.activeElement);
    const height = this.controls.offsetHeight;
    this.status = 'closed';
    this.closedAt = Date.now();
    this.outcomeAt = out.at ?? new Date(gatewayNow()).toISOString();
    this.ageText = h('span', '', ago(this.outcomeAt) || 'just now');
    const line = h('p', 'outcome', h('bdi', '', out.text), ', ', this.ageText);
    line.dataset.sense = out.sense;
    if (height) this.controls.style.minHeight = `${height}px`;
    this.controls.replaceChildren(line);
    if (late) this.tellLate();
    this.el.dataset.status = 'closed';
    this.when.textContent = '';
    if (had) this.el.focus({ preventScroll: true });
    announce(`${out.text}.${late ? ' Your answer came later and was not used.' : ''}`);
    renderInbox();
    renderSessionsSoon();
  }

  tellLate() {
    const line = this.controls.querySelector('.outcome');
    if (line && !line.querySelector('small')) line.append(h('small', '', 'Your answer came later and was not used.'));
  }

  /** Whether the reader is done with it. */
  spent() {
    return this.status === 'closed' && Date.now() - this.closedAt > KEEP_RESOLVED_MS && !this.el.matches(':hover') && !this.el.contains(document.activeElement);
  }
}

/** @param {Json} req */
function takeRequest(req) {
  const id = req?.request_id;
  if (typeof id !== 'string') return;
  const known = cards.get(id);
  if (known) { known.update(req); return; }
  if (req.state && req.state !== 'open') return;
  const card = new Card(req);
  cards.set(id, card);
  renderInbox();
  renderSessionsSoon();
  const s = sessions.get(req.session_id) ?? {};
  announce(`New request from ${oneLine(req.runtime_id)}, session ${titleOf(s)}. ${openCount()} open.`, true);
}

/** @param {Json} p */
function takeResolved(p) {
  cards.get(str(p.request_id))?.close(p, false);
}

const openCount = () => [...cards.values()].filter((c) => c.status !== 'closed').length;

function renderInbox() {
  const all = [...cards.values()].sort((a, b) => (msOf(a.req.opened_at) || 0) - (msOf(b.req.opened_at) || 0));
  const open = openCount();
  const box = $('cards');
  const shown = all.slice(0, MAX_CARDS);
  /** @type {Element|null} */
  let previous = null;
  for (const card of shown) {
    /** @type {Node|null} */
    const wanted = previous ? previous.nextSibling : box.firstChild;
    if (wanted !== card.el) box.insertBefore(card.el, wanted);
    previous = card.el;
  }
  for (const card of all.slice(MAX_CARDS)) card.el.remove();
  const more = all.length - shown.length;
  $('cards-more').hidden = more === 0;
  $('cards-more').textContent = `${more} more waiting; they come up as these are answered.`;
  $('inbox').dataset.empty = String(all.length === 0);
  $('inbox').dataset.open = String(open);
  $('inbox-title').textContent = open === 0 ? 'No open requests' : open === 1 ? '1 open request' : `${open} open requests`;
  document.title = open ? `(${open}) Plexus` : 'Plexus';
  for (const card of all) card.watch();
}

$('inbox-toggle').addEventListener('click', () => {
  if (cards.size === 0) return;
  const body = $('inbox-body');
  const fold = body.dataset.folded !== 'true';
  body.dataset.folded = String(fold);
  $('inbox-toggle').setAttribute('aria-expanded', String(!fold));
  rearmAll();
});

function rearmAll() { for (const card of cards.values()) if (card.status !== 'closed') card.rearm(); }

/** Enter in a field of a card does nothing: an answer is a press of a button. @param {KeyboardEvent} event */
function noEnter(event) {
  if (event.key === 'Enter' && event.target instanceof HTMLInputElement) event.preventDefault();
}

setInterval(() => { if (!document.hidden && cards.size) for (const card of cards.values()) card.watch(); }, WATCH_MS);

function tick() {
  if (document.hidden) return;
  for (const id of rows.keys()) renderAge(id);
  let gone = false;
  for (const [id, card] of cards) {
    if (card.spent()) { card.el.remove(); cards.delete(id); gone = true; } else card.age();
  }
  if (gone) renderInbox();
}
setInterval(tick, 1_000);

document.querySelector('[data-skip]')?.addEventListener('click', (event) => {
  event.preventDefault();
  (openId ? $('feed') : $('sessions').querySelector('a') ?? $('new-toggle')).focus();
});

// --- begin --------------------------------------------------------------------------------------------------------------------

{
  let stored = null;
  try { stored = sessionStorage.getItem(TOKEN_KEY); } catch { stored = null; }
  if (pairingCode !== null) pair(pairingCode);
  else if (stored && TOKEN_SHAPE.test(stored)) { token = stored; enter(); }
  else { $('signin').hidden = false; $('signin-token').focus(); }
}
