// What a push says, and the notification that is made of it. Pure.

import { oneLine } from '../lib/text.js';
import { text } from '../text/en.js';

const t = text.notify;

/** What may be done from a notification. */
export type Action = 'allow_once' | 'deny';

/** What the gateway sends, encrypted: what is asked, never secrets. */
export interface Payload {
  kind: 'request' | 'ended' | 'failed' | 'withdrawn' | 'test';
  tag: string;
  title: string;
  body: string;
  session_id?: string;
  request_id?: string;
  digest?: string;
  risk?: 'low' | 'elevated' | 'danger';
  actions?: Action[];
  by?: string;
}

/** What a notification of ours remembers. */
export interface Kept {
  kind: Payload['kind'] | 'news' | 'outcome';
  session_id?: string;
  request_id?: string;
  digest?: string;
  risk?: string;
}

/** A notification to show. */
export interface Shape {
  title: string;
  options: NotificationOptions & { data: Kept; renotify?: boolean; actions?: { action: Action; title: string }[]; timestamp?: number };
}

const ICONS = { icon: '/icon-192.png', badge: '/icon-badge.png' };
const KINDS = ['request', 'ended', 'failed', 'withdrawn', 'test'];
/** Longest text that a notification shows, in characters; systems cut at less. */
const BODY_CHARS = 300;

/** How the line of the gateway begins that has the reasons. */
const WHY = ' Why: ';
/** Characters that are left to what is asked, at least. */
const ASKED_CHARS = 100;

const TITLES: Record<Action, string> = { allow_once: t.allowOnce, deny: t.deny };

/** Reads what came; null for what is none of ours. */
export function parsePayload(data: unknown): Payload | null {
  if (typeof data !== 'object' || data === null) return null;
  const p = data as Partial<Payload>;
  if (typeof p.kind !== 'string' || !KINDS.includes(p.kind) || typeof p.tag !== 'string' || typeof p.title !== 'string') return null;
  return { ...p, kind: p.kind, tag: p.tag, title: p.title, body: typeof p.body === 'string' ? p.body : '' };
}

/** The beginning; of a question with reasons for its risk those as well, and what is asked is cut. */
function cut(words: string, risk?: string): string {
  if (words.length <= BODY_CHARS) return words;
  const at = risk === 'elevated' || risk === 'danger' ? words.lastIndexOf(WHY) : -1;
  const why = at < 0 ? '' : words.slice(at, at + BODY_CHARS - ASKED_CHARS);
  return `${words.slice(0, BODY_CHARS - 1 - why.length)}…${why}`;
}

/**
 * The notification for a push. `shown` is what stands under the same tag now: the same question again makes no noise, another one
 * does; what was answered elsewhere replaces the question silently.
 */
export function shapeOf(payload: Payload | null, shown: Kept | null): Shape {
  if (!payload) return { title: t.news, options: { ...ICONS, body: t.newsBody, tag: 'news', data: { kind: 'news' } } };
  const { kind, tag, session_id, request_id, digest, risk } = payload;
  const data: Kept = { kind, session_id, request_id, digest, risk };
  const options: Shape['options'] = { ...ICONS, tag, body: cut(oneLine(payload.body), risk), data };
  const title = oneLine(payload.title);
  if (kind === 'withdrawn') return { title, options: { ...options, silent: true, renotify: false } };
  if (kind === 'request') {
    const again = shown?.kind === 'request' && shown.digest === digest;
    const offered = (payload.actions ?? []).filter((one) => one in TITLES && !(risk === 'danger' && one === 'allow_once'));
    return {
      title,
      options: { ...options, requireInteraction: true, renotify: shown !== null && !again, silent: again ? true : undefined, actions: offered.map((action) => ({ action, title: TITLES[action] })) },
    };
  }
  return { title, options: { ...options, renotify: shown !== null } };
}

/** Where a click on a notification leads. */
export function hashOf(kept: Kept): string {
  if (kept.request_id) return `#/r/${encodeURIComponent(kept.request_id)}`;
  if (kept.session_id) return `#/s/${encodeURIComponent(kept.session_id)}`;
  return '#/inbox';
}

/** What became of an answer that was given from a notification. */
export interface Done {
  title: string;
  body: string;
  /** Whether somebody has to look: the answer did not count. */
  look: boolean;
}

/** What to say of the gateway's reply to an answer. */
export function doneOf(action: Action, status: number, body: unknown): Done {
  const said = (typeof body === 'object' && body !== null ? body : {}) as { code?: string; ok?: boolean; state?: string; detail?: string; won?: boolean; resolved_by?: { name?: string } };
  const request = text.request;
  if (status >= 200 && status < 300 && said.won !== false) return { title: action === 'allow_once' ? t.allowed : t.denied, body: '', look: false };
  if (said.state && said.resolved_by) {
    const who = oneLine(said.resolved_by.name);
    const words = (request as unknown as Record<string, unknown>)[said.state];
    const what = said.state === 'answered' ? `${said.ok ? request.allowed : said.ok === false ? request.denied : request.answered}${who ? request.by(who) : ''}` : typeof words === 'string' ? words : request.gone;
    return { title: what, body: request.late, look: false };
  }
  if (status === 401) return { title: t.notAnswered, body: t.signedOut, look: true };
  const known = said.code ? (request.refusals as Record<string, string>)[said.code] : undefined;
  return { title: t.notAnswered, body: `${known ?? oneLine(said.detail ?? status)} ${t.tapToLook}`, look: true };
}
