// Push payloads, and the notifications made of them. Pure.

import { answers } from '../../../clients/typescript/src/answers.js';
import { oneLine } from '../lib/text.js';
import { notify as t } from '../text/notify.js';
import { outcomes } from '../text/outcomes.js';

/** An answer that a notification offers. */
export type Action = 'allow_once' | 'deny';

/** The decrypted payload of a push; it never has secrets. */
export interface Payload {
  kind: 'request' | 'ended' | 'failed' | 'no_progress' | 'withdrawn' | 'test';
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

/** The `data` of a notification. */
export interface NotificationData {
  kind: Payload['kind'] | 'news' | 'outcome';
  session_id?: string;
  request_id?: string;
  digest?: string;
  risk?: string;
}

/** A notification to show. */
export interface Shape {
  title: string;
  options: NotificationOptions & { data: NotificationData; renotify?: boolean; actions?: { action: Action; title: string }[]; timestamp?: number };
}

const ICONS = { icon: '/icon-192.png', badge: '/icon-badge.png' };
const KINDS = ['request', 'ended', 'failed', 'no_progress', 'withdrawn', 'test'];
/** Maximum length of a text in a notification, in characters; systems cut earlier. */
const BODY_CHARS = 300;

/** The beginning of the reasons in the gateway's text. */
const WHY = ' Why: ';
/** Characters of a cut text that the request itself keeps, at least. */
const REQUEST_CHARS = 100;

const TITLES: Record<Action, string> = { allow_once: answers.roles.allow_once.verb, deny: answers.roles.deny.verb };

/** Reads a payload; null if it is malformed. */
export function parsePayload(data: unknown): Payload | null {
  if (typeof data !== 'object' || data === null) return null;
  const p = data as Partial<Payload>;
  if (typeof p.kind !== 'string' || !KINDS.includes(p.kind) || typeof p.tag !== 'string' || typeof p.title !== 'string') return null;
  return { ...p, kind: p.kind, tag: p.tag, title: p.title, body: typeof p.body === 'string' ? p.body : '' };
}

/** Cuts a text; the reasons for a risk at its end are data. */
function cut(words: string, risk?: string): string {
  if (words.length <= BODY_CHARS) return words;
  const at = risk === 'elevated' || risk === 'danger' ? words.lastIndexOf(WHY) : -1;
  const why = at < 0 ? '' : words.slice(at, at + BODY_CHARS - REQUEST_CHARS);
  return `${words.slice(0, BODY_CHARS - 1 - why.length)}…${why}`;
}

/**
 * The notification for a push. `shown` is the current one with the same tag: the same request again is silent, another one is not.
 * A withdrawn request replaces its notification silently.
 */
export function shapeOf(payload: Payload | null, shown: NotificationData | null): Shape {
  if (!payload) return { title: t.news, options: { ...ICONS, body: t.newsBody, tag: 'news', data: { kind: 'news' } } };
  const { kind, tag, session_id, request_id, digest, risk } = payload;
  const data: NotificationData = { kind, session_id, request_id, digest, risk };
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

/** The fragment that a click on a notification opens. */
export function hashOf(data: NotificationData): string {
  if (data.request_id) return `#/r/${encodeURIComponent(data.request_id)}`;
  if (data.session_id) return `#/s/${encodeURIComponent(data.session_id)}`;
  return '#/inbox';
}

/** The outcome of an answer from a notification. */
export interface Done {
  title: string;
  body: string;
  /** Whether a person has to look: the answer did not count. */
  look: boolean;
}

/** The outcome for the gateway's reply to an answer. */
export function doneOf(action: Action, status: number, body: unknown): Done {
  const reply = (typeof body === 'object' && body !== null ? body : {}) as { code?: string; ok?: boolean; state?: string; detail?: string; won?: boolean; resolved_by?: { name?: string } };
  if (status >= 200 && status < 300 && reply.won !== false) return { title: t.fromHere(answers.roles[action].outcome), body: '', look: false };
  if (reply.state && reply.resolved_by) {
    const who = oneLine(reply.resolved_by.name);
    const words = (outcomes as unknown as Record<string, unknown>)[reply.state];
    const what = reply.state === 'answered' ? `${answers.roles[reply.ok ? 'allow_once' : reply.ok === false ? 'deny' : 'send'].outcome}${who ? outcomes.by(who) : ''}` : typeof words === 'string' ? words : outcomes.gone;
    return { title: what, body: outcomes.late, look: false };
  }
  if (status === 401) return { title: t.notAnswered, body: t.signedOut, look: true };
  const known = reply.code ? (outcomes.refusals as Record<string, string>)[reply.code] : undefined;
  return { title: t.notAnswered, body: `${known ?? oneLine(reply.detail ?? status)} ${t.tapToLook}`, look: true };
}
