import { CALL, CALL_MS, takeEarly } from '../lib/early.js';
import { oneLine } from '../lib/text.js';
import { skewFrom } from '../lib/time.js';
import { text } from '../text/en.js';

/** An error reply, over HTTP or the WebSocket. */
export class Refused extends Error {
  /** The problem's stable code; empty if it has none. */
  readonly code: string;
  constructor(
    /** The HTTP status; 0 over the WebSocket. */
    readonly status: number,
    /** The problem document. */
    readonly problem: { [name: string]: any },
    /** The JSON-RPC code; 0 over HTTP. */
    readonly rpc = 0,
    /** Whether the gateway itself replied, not a proxy or portal on the way. */
    readonly ours = true,
  ) {
    super(oneLine(problem['detail'] || problem['message'] || problem['title'] || text.wire.refused(status)));
    this.code = oneLine(problem['code'] ?? '');
  }
}

/** The text for people about a failed call. */
export function why(error: unknown): string {
  if (error instanceof Refused) return error.ours ? error.message : text.wire.onTheWay(error.status);
  if (error instanceof Error && error.name === 'TimeoutError') return text.wire.timeout;
  return text.wire.unreachable;
}

/** The credentials for the gateway: a bearer token for share links and pasted tokens, else the browser's cookie. */
export interface Credentials { bearer: string | null; csrf: string | null }

export class Http {
  credentials: Credentials = { bearer: null, csrf: null };
  /** The time by which this clock is behind the gateway's, ms; from the Date header, see {@link skewFrom}. */
  skew = 0;
  /** Called when the gateway replies 401. */
  onUnauthorized: () => void = () => {};

  async fetch(path: string, init: { method?: string; accept?: string; body?: unknown; signal?: AbortSignal; headers?: Record<string, string>; anonymous?: boolean; patience?: number } = {}): Promise<Response> {
    const method = init.method ?? 'GET';
    const headers: Record<string, string> = { Accept: init.accept ?? 'application/json', ...init.headers };
    const { bearer, csrf } = this.credentials;
    if (!init.anonymous) {
      if (bearer) headers['Authorization'] = `Bearer ${bearer}`;
      else if (csrf && method !== 'GET' && method !== 'HEAD') headers['Plexus-CSRF'] = csrf;
    }
    if (init.body !== undefined) headers['Content-Type'] = 'application/json';
    const early = method === 'GET' && !bearer && init.signal === undefined ? takeEarly(path) : undefined;
    const sent = early?.sent ?? Date.now();
    const response = await (early?.reply ?? fetch(path, {
      ...CALL,
      method,
      headers,
      body: init.body === undefined ? undefined : JSON.stringify(init.body),
      credentials: bearer ? 'omit' : 'same-origin',
      signal: init.signal ?? AbortSignal.timeout(init.patience ?? CALL_MS),
    }));
    const date = Date.parse(response.headers.get('Date') ?? '');
    if (!Number.isNaN(date)) this.skew = skewFrom(this.skew, date, sent, Date.now());
    if (!response.ok) {
      let problem: any = null;
      try { problem = JSON.parse(await response.text()); } catch { /* no problem document: only the status is known */ }
      if (typeof problem !== 'object' || problem === null || Array.isArray(problem)) problem = {};
      const ours = (response.headers.get('Content-Type') ?? '').startsWith('application/problem+json') && typeof problem.code === 'string';
      if (response.status === 401 && ours && !init.anonymous) this.onUnauthorized();
      throw new Refused(response.status, problem, 0, ours);
    }
    return response;
  }

  async json<T = any>(method: string, path: string, body?: unknown, more: { headers?: Record<string, string>; anonymous?: boolean; patience?: number; signal?: AbortSignal } = {}): Promise<T> {
    const response = await this.fetch(path, { method, body, ...more });
    const got = await response.text();
    try { return (got ? JSON.parse(got) : null) as T; } catch { throw new Refused(response.status, { detail: text.wire.notJson }, 0, false); }
  }
}
