// The state of the gateway as signals. The connection updates it, the pages read it.
import { Attention } from '../lib/attention.js';
import { COOKIE_KEY, forgetEarly, isAsked, TOKEN_KEY } from '../lib/early.js';
import { later } from '../lib/later.js';
import { batch, computed, signal } from '../lib/signal.js';
import { TOKEN_SHAPE } from '../lib/signin-link.js';
import { list, str } from '../lib/text.js';
import { perFrame } from '../lib/frame.js';
import { versionIn } from '../lib/files.js';
import { keepFiles, renewFiles, version } from '../lib/shell.js';
import { text } from '../text/en.js';
import { Follower, type Opening } from './follow.js';
import { Http, Refused, why } from './http.js';
import { Link, openSocket, type Reachability } from './link.js';
import { merged, counts, placed } from './merge.js';
import { href, parseRoute } from './route.js';
import type { LinkState, Outcome, Plexus, Route } from '../plexus.js';
import { ME, OPEN_REQUESTS, openingOf, sessionsFrom } from './paths.js';
import type {
  Envelope, Me, Page, Receipt, Request, RunInfo, RuntimeInfo, Scope, SessionInfo, Snapshot, Viewer,
} from './types.js';

/** Time that a resolved request stays in `requests`, ms. */
const KEEP_RESOLVED_MS = 5 * 60_000;
/** Interval at which readers of `news` are notified, ms. */
const NEWS_MS = 500;
/** Timeout of one reachability check, ms. Long, for slow networks: further checks follow meanwhile. */
const CHECK_MS = 12_000;
/** Pause before lists that could not be read are requested again, ms. */
const AGAIN_MS = 2_000;
/** Maximum number of sessions with a read mark on this device; the oldest marks are dropped first. */
const MAX_MARKS = 2_000;
const MARKS_KEY = 'plexus.seen';
/** Kinds that do not mark a session as unread: viewers, derived values, and runtime states (every start attaches all sessions again). */
const NO_NEWS = new Set(['runtime_status', 'client_joined', 'client_left', 'usage_update', 'available_commands_update', 'config_option_update', 'hook', 'surface_updated']);

const msOf = (at: unknown): number => (typeof at === 'string' ? Date.parse(at) : NaN);

/** A map whose readers are notified once a frame, however often it changes. */
function signalMap<V>() {
  const current = new Map<string, V>();
  const view = signal<ReadonlyMap<string, V>>(new Map());
  const publish = perFrame(() => { view.value = new Map(current); });
  return {
    view,
    get: (id: string) => current.get(id),
    keys: () => [...current.keys()],
    values: () => [...current.values()],
    set(id: string, value: V) { current.set(id, value); publish(); },
    delete(id: string) { if (current.delete(id)) publish(); },
    clear() { current.clear(); view.value = new Map(); },
    /** Publishes now what would be published with the next frame. */
    flush() { view.value = new Map(current); },
  };
}

const http = new Http();
const me = signal<Me | null>(null);
const link = signal<LinkState>({ phase: 'signed-out', since: Date.now(), heardAt: 0, reason: '' });
const loaded = signal(false);
const now = signal(Date.now());
const sessions = signalMap<SessionInfo>();
const runtimes = signalMap<RuntimeInfo>();
const runs = signalMap<RunInfo>();
const requests = signalMap<Request>();
const viewers = signalMap<readonly Viewer[]>();
const route = signal<Route>(parseRoute(location.hash));
/** The reason of being signed out, for the sign-in page. */
export const signedOutBecause = signal('');
/** An error that belongs to no part of the page. */
export const globalError = signal<{ text: string; at: number } | null>(null);
/** Whether the page must be reloaded: the gateway serves another version, or a file is missing. */
export const outdated = signal<'' | 'updated' | 'missing'>('');
window.addEventListener('vite:preloadError', () => { outdated.value ||= 'missing'; });

// --- unread sessions ---------------------------------------------------------------------------------------------------------

const newsAt = new Map<string, number>();
const news = signal<ReadonlyMap<string, number>>(new Map());
const marks = signal<ReadonlyMap<string, number>>(readMarks());
let newsTimer: ReturnType<typeof setTimeout> | undefined;

function recordNews(id: string, at: number): void {
  if (Number.isNaN(at) || (newsAt.get(id) ?? 0) >= at) return;
  newsAt.set(id, at);
  newsTimer ??= setTimeout(() => { newsTimer = undefined; news.value = new Map(newsAt); }, NEWS_MS);
}

function readMarks(): Map<string, number> {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(MARKS_KEY) ?? '[]');
    return new Map(list<[string, number]>(kept).filter((one) => Array.isArray(one) && typeof one[0] === 'string' && typeof one[1] === 'number'));
  } catch { return new Map(); }
}

function keepMarks(next: Map<string, number>): void {
  const kept = [...next].sort((a, b) => b[1] - a[1]).slice(0, MAX_MARKS);
  marks.value = new Map(kept);
  try { localStorage.setItem(MARKS_KEY, JSON.stringify(kept)); } catch { /* storage is off: marks live as long as the page */ }
}

// Another tab of this browser marked a session as read.
window.addEventListener('storage', (event) => { if (event.key === MARKS_KEY) marks.value = readMarks(); });

const unread = computed(() => {
  const fresh = new Set<string>();
  for (const [id, at] of news.value) {
    if ((marks.value.get(id) ?? at) < at && sessions.view.value.has(id)) fresh.add(id);
  }
  return fresh;
});

/** Marks sessions that this device did not know as read. */
function markNewSessions(): void {
  const next = new Map(marks.peek());
  let grew = false;
  for (const s of sessions.values()) {
    if (next.has(s.session_id)) continue;
    next.set(s.session_id, msOf(s.updated_at) || 0);
    grew = true;
  }
  if (grew) keepMarks(next);
}

// --- messages of the gateway --------------------------------------------------------------------------------------------------

/** Deleted sessions: late messages about them are ignored. Identifiers are never reused. */
const deleted = new Set<string>();

function dropSession(id: string): void {
  deleted.add(id);
  sessions.delete(id);
  for (const follower of followers) if (follower.session_id === id) follower.gone();
}

function applySession(s: SessionInfo, live = false): void {
  if (typeof s?.session_id !== 'string' || deleted.has(s.session_id)) return;
  const old = sessions.get(s.session_id);
  const at = msOf(s.updated_at);
  if (!counts(live, old && msOf(old.updated_at), at)) return;
  // Whole: what an update does not have, such as a queue, the session has no longer.
  sessions.set(s.session_id, s);
  const back = live && old !== undefined && at < msOf(old.updated_at);
  recordNews(s.session_id, back ? placed(at, Math.max(0, ...newsAt.values())) : at);
  if (!old && loaded.peek()) keepMarks(new Map(marks.peek()).set(s.session_id, marks.peek().get(s.session_id) ?? 0));
}

function applyRuntime(r: RuntimeInfo): void {
  if (typeof r?.runtime_id === 'string') runtimes.set(r.runtime_id, r);
}

function applyRequest(r: Request): void {
  if (typeof r?.request_id !== 'string') return;
  const known = requests.get(r.request_id);
  const next = merged(known, { ...r, state: r.state ?? 'open' });
  if (next) requests.set(r.request_id, next);
}

function applyResolved(p: Partial<Receipt> & { request_id?: unknown }): void {
  const id = str(p.request_id);
  const known = requests.get(id);
  if (!known || known.state !== 'open') return;
  const receipt = { resolved_by: { device_id: '', name: '' }, at: new Date(gatewayNow()).toISOString(), won: false, state: 'answered', ...p } as Receipt;
  requests.set(id, { ...known, state: receipt.state, receipt });
}

const listeners = new Set<(event: Envelope) => void>();
const followers = new Set<Follower>();

function applyEvent(e: Envelope): void {
  // Another branch is no news of the conversation.
  if (!NO_NEWS.has(e.kind) && !e.event?._meta?.plexus?.project) recordNews(e.session_id, msOf(e.at));
  if (e.kind === 'request_opened') applyRequest({ session_id: e.session_id, run_id: e.run_id, runtime_id: e.meta?.runtime_id, ...e.event });
  else if (e.kind === 'request_updated') applyRequest({ session_id: e.session_id, run_id: e.run_id, runtime_id: e.meta?.runtime_id, ...(e.event?.request ?? e.event) });
  else if (e.kind === 'request_resolved') applyResolved(e.event?.receipt ?? e.event ?? {});
  for (const follower of followers) if (follower.session_id === e.session_id) follower.take(e);
  for (const listener of listeners) {
    try { listener(e); } catch (error) { console.error(error); }
  }
}

/** Applies the whole state of a hello or a gateway snapshot. */
function applyState(p: any): void {
  for (const s of list<SessionInfo>(p.sessions)) applySession(s);
  if (Array.isArray(p.runs)) {
    runs.clear();
    for (const r of list<RunInfo>(p.runs)) if (typeof r?.session_id === 'string') runs.set(r.session_id, r);
  }
  if (Array.isArray(p.requests)) {
    const open = new Set<string>();
    for (const r of list<Request>(p.requests)) { open.add(r?.request_id); applyRequest(r); }
    // A known open request that is no longer listed ended while the page was disconnected.
    for (const r of requests.values()) if (r.state === 'open' && !open.has(r.request_id)) void reread(r.request_id);
  }
}

/** Reads all sessions, page by page. */
async function readSessions(): Promise<{ sessions: SessionInfo[] }> {
  const all: SessionInfo[] = [];
  for (let cursor = ''; ;) {
    const page = await http.json('GET', sessionsFrom(cursor));
    all.push(...list<SessionInfo>(page?.sessions));
    cursor = str(page?.next);
    if (!cursor) return { sessions: all };
  }
}

async function readLists(): Promise<void> {
  const before = new Set(sessions.keys());
  try {
    const [all, programs] = await Promise.all([
      readSessions(),
      http.json('GET', '/v1/runtimes').catch((error: unknown) => {
        // A device that may see one session only may not see its runtime.
        if (error instanceof Refused) return null;
        throw error;
      }),
    ]);
    batch(() => {
      const there = new Set(list<SessionInfo>(all?.sessions).map((s) => s.session_id));
      for (const s of list<SessionInfo>(all?.sessions)) applySession(s);
      for (const id of before) if (!there.has(id)) dropSession(id);
      const running = new Set(list<RuntimeInfo>(programs?.runtimes).map((r) => r.runtime_id));
      for (const r of list<RuntimeInfo>(programs?.runtimes)) applyRuntime(r);
      for (const id of runtimes.keys()) if (!running.has(id)) runtimes.delete(id);
      markNewSessions();
      // Readers that see that the lists are loaded see them completely.
      sessions.flush();
      runtimes.flush();
      loaded.value = true;
    });
  } catch (error) {
    if (error instanceof Refused && error.ours) globalError.value = { text: error.message, at: Date.now() };
    // Otherwise the connection is down, which is shown, and the next hello reads the lists again; or only this call failed.
    setTimeout(() => { if (!loaded.peek() && socket.phase === 'live') void readLists(); }, AGAIN_MS);
  }
}

/** Compares this page's version with the gateway's: an updated gateway serves another page, and this one may not understand it. */
async function readVersion(): Promise<void> {
  try {
    const response = await fetch('/', { cache: 'no-cache', credentials: 'same-origin', redirect: 'error' });
    const there = response.ok ? versionIn(await response.text()) : '';
    if (version && there && version !== there) outdated.value = 'updated';
    await (outdated.peek() ? renewFiles() : keepFiles());
  } catch { /* the next hello tries again */ }
}

async function readMe(): Promise<void> {
  try {
    const got = await http.json<Me>('GET', ME);
    applyMe(got);
  } catch { /* hello had the most of it */ }
}

/** Whether the device was read since the last hello. */
let meRead = false;

function applyMe(got: Me): void {
  meRead = true;
  http.credentials = { ...http.credentials, csrf: got.csrf ?? http.credentials.csrf };
  me.value = got;
}

/** Checks over HTTP whether the gateway is reachable and knows this browser. Only the gateway's own 401 means that it does not. */
async function checkReachable(): Promise<Reachability> {
  try {
    const got = await http.json<Me>('GET', ME, undefined, { patience: CHECK_MS });
    if (typeof got?.device_id !== 'string') return { is: 'unreachable', why: text.wire.onTheWay(200) };
    applyMe(got);
    return { is: 'reachable' };
  } catch (error) {
    if (!(error instanceof Refused)) return { is: 'unreachable', why: '' };
    if (error.ours && error.status === 401) return { is: 'signed-out' };
    return { is: 'unreachable', why: why(error) };
  }
}

// --- what was asked for before the code was there ----------------------------------------------------------------------------------

/** Time that the first connection waits for the end of what was read before it, ms; then the session is read again. */
const OPENING_MS = 4_000;
/** The session that the page was opened with, while it is read; until the connection stands. */
let opening: { session_id: string; read: Promise<Opening> } | null = null;

async function readOpening(session_id: string): Promise<Opening> {
  const paths = openingOf(session_id);
  // The snapshot brings the latest states (plan, mode, commands); messages, runs and answers come with the page.
  const [snapshot, past] = await Promise.all([http.json<Snapshot>('GET', paths.snapshot), http.json<Page>('GET', paths.past)]);
  if (snapshot?.session) applySession(snapshot.session);
  // Its name is drawn together with its rows.
  sessions.flush();
  return { snapshot, past };
}

/** Takes what the first script asked for. It is shown before the connection stands, which brings it up to date. */
function takeFirst(): void {
  const at = route.peek();
  if (at.page === 'session' && isAsked(openingOf(at.session_id).past)) {
    opening = { session_id: at.session_id, read: readOpening(at.session_id) };
    opening.read.catch(() => { /* whoever follows the session is told */ });
  }
  const first = async (path: string, apply: (got: any) => void) => {
    if (!isAsked(path)) return;
    const got = await http.json('GET', path).catch(() => null);
    // A part of a list would be drawn in another order than the whole. After the connection stands, what it told is newer.
    if (got && !got.next && socket.cursor === null) batch(() => apply(got));
  };
  void first(OPEN_REQUESTS, (got) => { for (const r of list<Request>(got.requests)) applyRequest(r); requests.flush(); });
  void first(sessionsFrom(''), (got) => { for (const s of list<SessionInfo>(got.sessions)) applySession(s); sessions.flush(); });
}

/** The cursor at which the connection begins: after the events that were read of the session that the page was opened with. */
async function begin(): Promise<string | null> {
  const late = new Promise<null>((resolve) => setTimeout(() => resolve(null), OPENING_MS));
  const read = opening?.read.then(({ past }) => past.next ?? null, () => null);
  return Promise.race([read ?? null, late]);
}

function hello(p: any): void {
  opening = null;
  const fresh = socket.cursor === null || p.resume !== 'ok';
  if (p.you?.device_id && !me.peek()) {
    me.value = { kind: p.you.device_id === 'd_local' ? 'local' : 'device', gateway: { version: '', started_at: '', epoch: str(p.epoch) }, ...p.you };
  }
  viewers.clear();
  applyState(p);
  // At first the check before the connection has just read it.
  if (!meRead) void readMe();
  meRead = false;
  void readLists();
  later(() => void readVersion());
  for (const follower of followers) if (fresh || !(follower.loaded || follower.opening)) follower.again(p.resume === 'reset' ? text.wire.otherHistory : text.wire.hole);
  lastPresence = '';
  sendPresence();
}

function notice(method: string, p: any): void {
  switch (method) {
    case 'gateway.hello': hello(p); break;
    case 'gateway.snapshot': applyState(p); break;
    case 'agent.event': applyEvent(p as Envelope); break;
    case 'session.updated': if (p.session) applySession(p.session, true); break;
    case 'session.deleted': dropSession(str(p.session_id)); break;
    case 'runtime.updated': if (p.runtime) applyRuntime(p.runtime); break;
    case 'runtime.removed': runtimes.delete(str(p.runtime_id)); break;
    case 'run.status': {
      const id = str(p.session_id);
      if (['completed', 'error', 'cancelled'].includes(p.status)) {
        if (runs.get(id)?.run_id === p.run_id) runs.delete(id);
      } else if (p.status !== 'queued') {
        const known = runs.get(id);
        runs.set(id, { started_at: known?.run_id === p.run_id ? known!.started_at : new Date(gatewayNow()).toISOString(), ...p });
      }
      break;
    }
    case 'ui.confirm.request': case 'ui.prompt.request': case 'ui.pick.request': applyRequest(p); break;
    case 'ui.request.resolved': applyResolved(p); break;
    case 'presence.changed': {
      const mine = me.peek()?.device_id;
      const others = list<Viewer>(p.lookers).filter((one) => one?.device_id !== mine);
      if (others.length) viewers.set(str(p.session_id), others); else viewers.delete(str(p.session_id));
      break;
    }
    default: break; // run.context repeats events
  }
}

const socket = new Link({
  phase(phase, reason) {
    const old = link.peek();
    link.value = { phase, reason, heardAt: socket_heardAt(), since: old.phase === phase ? old.since : Date.now() };
  },
  notice,
  malformed(what) { globalError.value = { text: what, at: Date.now() }; },
  revoked() { signOut(text.wire.revoked); },
  checkReachable,
  bearer: () => http.credentials.bearer,
  skew: () => http.skew,
  begin,
});
function socket_heardAt(): number { return socket?.heardAt ?? 0; }
http.onUnauthorized = () => { if (link.peek().phase !== 'signed-out') signOut(text.wire.notAccepted); };

const gatewayNow = () => Date.now() + http.skew;

setInterval(() => {
  if (document.hidden) return;
  now.value = gatewayNow();
  for (const r of requests.values()) {
    if (r.state !== 'open' && gatewayNow() - msOf(r.receipt?.at ?? r.opened_at) > KEEP_RESOLVED_MS) requests.delete(r.request_id);
  }
}, 1_000);

// --- presence: reports which session is focused on this screen ------------------------------------------------------------------------

const attention = new Attention();
let lastPresence = '';
let presenceKnown = true;
function sendPresence(): void {
  if (!presenceKnown || socket.phase === 'signed-out') return;
  const at = route.peek();
  const focused = !document.hidden && document.hasFocus() && attention.here;
  const params = { session_id: at.page === 'session' ? at.session_id : null, focused };
  const key = JSON.stringify(params);
  if (key === lastPresence) return;
  lastPresence = key;
  socket.call('presence.update', params).catch((error: unknown) => {
    if (error instanceof Refused && error.rpc === -32601) presenceKnown = false;
    else lastPresence = '';
  });
}
for (const what of ['pointerdown', 'pointermove', 'keydown', 'wheel', 'touchstart', 'focus', 'pageshow']) {
  window.addEventListener(what, () => { if (attention.touch()) sendPresence(); }, { capture: true, passive: true });
}
setInterval(sendPresence, 5_000);
for (const what of ['focus', 'blur', 'pageshow', 'pagehide']) window.addEventListener(what, sendPresence);
document.addEventListener('visibilitychange', sendPresence);
window.addEventListener('hashchange', () => {
  const next = parseRoute(location.hash);
  if (next) route.value = next;
  sendPresence();
});

// --- signing in and out -----------------------------------------------------------------------------------------------------

/** Signs in with a bearer token: a share link's, or a pasted one. Only for this tab. */
export function enterWithBearer(token: string): void {
  forgetEarly();
  http.credentials = { bearer: token, csrf: null };
  try { sessionStorage.setItem(TOKEN_KEY, token); } catch { /* storage is off: it lasts as long as the page */ }
  enter();
}

/** Signs in with the browser's cookie. */
export function enterWithCookie(csrf: string | null): void {
  http.credentials = { bearer: null, csrf };
  try { localStorage.setItem(COOKIE_KEY, '1'); } catch { /* storage is off: every visit asks the gateway */ }
  enter();
}

function enter(): void {
  signedOutBecause.value = '';
  me.value = null;
  socket.start();
}

/** Clears all state. Removing the device is up to the caller. */
export function signOut(reason: string): void {
  forgetEarly();
  http.credentials = { bearer: null, csrf: null };
  try { sessionStorage.removeItem(TOKEN_KEY); localStorage.removeItem(COOKIE_KEY); } catch { /* nothing was stored */ }
  batch(() => {
    for (const follower of followers) follower.stop();
    followers.clear();
    deleted.clear();
    for (const map of [sessions, runtimes, runs, requests, viewers]) map.clear();
    newsAt.clear();
    news.value = new Map();
    me.value = null;
    loaded.value = false;
    signedOutBecause.value = reason;
    socket.stop('signed-out');
  });
}

/** Signs in with the token of this tab or the cookie of this browser; false if it has neither. The gateway may still refuse it. */
export function resume(): boolean {
  let kept: string | null = null;
  try { kept = sessionStorage.getItem(TOKEN_KEY); } catch { /* storage is off */ }
  if (kept && TOKEN_SHAPE.test(kept)) { enterWithBearer(kept); return true; }
  try { if (localStorage.getItem(COOKIE_KEY) === null) return false; } catch { return false; }
  takeFirst();
  enterWithCookie(null);
  return true;
}

/** The device of this browser's cookie, if there is one. Throws if the gateway cannot be reached. */
export async function currentDevice(): Promise<Me | null> {
  try { if (localStorage.getItem(COOKIE_KEY) === null) return null; } catch { /* storage is off: ask the gateway */ }
  try {
    const got = await http.json<Me>('GET', ME, undefined, { anonymous: true });
    return got?.csrf ? got : null;
  } catch (error) {
    if (error instanceof Refused && error.ours && error.status === 401) return null;
    throw error;
  }
}

export { http as wire };

// --- the interface of the pages ----------------------------------------------------------------------------------------------------

async function reread(id: string): Promise<Request | null> {
  try {
    const got = await http.json('GET', `/v1/requests/${encodeURIComponent(id)}`);
    const r: Request | undefined = got?.request ?? got;
    if (!r?.request_id) return null;
    applyRequest(r);
    return requests.get(id) ?? r;
  } catch (error) {
    if (error instanceof Refused && error.status === 404) requests.delete(id);
    return null;
  }
}

async function answer(request: Request, given: object): Promise<Outcome> {
  const path = `/v1/requests/${encodeURIComponent(request.request_id)}/answer`;
  // A second attempt uses the same key, so that an answer that arrived is not given twice.
  const headers = { 'Idempotency-Key': crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}` };
  for (let attempt = 0; ; attempt += 1) {
    try {
      const receipt = await http.json<Receipt>('POST', path, { ...given, ...(request.digest ? { digest: request.digest } : {}) }, { headers });
      applyResolved(receipt);
      return receipt.won === false ? { kind: 'late', receipt } : { kind: 'won', receipt };
    } catch (error) {
      if (error instanceof Refused) {
        const p = error.problem;
        if (p['state'] && p['state'] !== 'open' && p['resolved_by']) {
          applyResolved(p as any);
          return { kind: 'late', receipt: p as unknown as Receipt };
        }
        if (error.status < 500) {
          void reread(request.request_id);
          return { kind: 'refused', code: error.code, text: error.message };
        }
      }
      if (attempt > 0) return { kind: 'unknown', text: why(error) };
    }
  }
}

export const gateway: Plexus = {
  link,
  live: computed(() => link.value.phase === 'live' || link.value.phase === 'catching-up'),
  me,
  sessions: sessions.view,
  loaded,
  runtimes: runtimes.view,
  runs: runs.view,
  requests: requests.view,
  viewers: viewers.view,
  news,
  unread,
  route,
  now,
  may(scope: Scope) {
    const scopes = me.value?.scopes;
    return !scopes || scopes.includes(scope) || scopes.includes('admin');
  },
  socket: (path) => openSocket(path, http.credentials.bearer),
  follow(session_id, sink, rests) {
    const first = socket.cursor === null && opening?.session_id === session_id ? opening.read : null;
    let early = first;
    const follower = new Follower(session_id, sink, async (id) => {
      const read = early;
      early = null;
      return read ? read.catch(() => readOpening(id)) : readOpening(id);
    }, rests);
    followers.add(follower);
    // Before hello there may be a gap between the snapshot and the live events; then `hello` loads the session.
    if (socket.phase === 'live' || socket.phase === 'catching-up') void follower.load();
    // Unless the connection will begin where what is read ends.
    else if (first) void follower.load(undefined, true);
    return () => { follower.stop(); followers.delete(follower); };
  },
  listen(listener) {
    listeners.add(listener);
    return () => listeners.delete(listener);
  },
  call: (method, params = {}) => socket.call(method, params),
  http: (method, path, body, more) => http.json(method, path, body, more),
  fetch: (path, init = {}) => http.fetch(path, init),
  answer,
  reread,
  seen(session_id) {
    const at = Math.max(newsAt.get(session_id) ?? 0, msOf(sessions.get(session_id)?.updated_at) || 0);
    if ((marks.peek().get(session_id) ?? -1) < at) keepMarks(new Map(marks.peek()).set(session_id, at));
  },
  go(to) { location.hash = href(to).slice(1); },
  href,
  retry() { if (link.peek().phase === 'stopped') location.reload(); else socket.retry(); },
};
