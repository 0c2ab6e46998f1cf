// Sends one answer under one idempotency key until its outcome is known. After a lost connection the same key brings the same
// receipt, whatever happened meanwhile.

import { text } from '../text/en.js';
import { oneLine } from '../lib/text.js';
import type { Answer, Receipt, Request } from './wire.js';

const t = text.request;

/** The outcome of sending an answer. `unknown`: no reply came, so it may or may not have arrived. */
export type Sent =
  | { is: 'won'; receipt: Receipt }
  | { is: 'lost'; receipt: Receipt }
  | { is: 'closed'; receipt: Receipt | null; words: string }
  | { is: 'refused'; code: string; words: string }
  | { is: 'unknown' };

/** A reply of the gateway. */
export interface Reply {
  status: number;
  body: unknown;
}

/** Sends an answer; throws only if no reply came. */
export type Post = (request_id: string, answer: Answer, key: string) => Promise<Reply>;

/** A random key of 128 bits; `randomUUID` exists only in secure contexts. */
export function freshKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `web-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

const isReceipt = (body: unknown): body is Receipt =>
  typeof body === 'object' && body !== null && 'resolved_by' in body && 'state' in body;

/** The outcome that a reply means. Pure. A proxy's own reply counts as `unknown`. */
export function outcomeOfReply({ status, body }: Reply): Sent {
  if (status >= 200 && status < 300) return isReceipt(body) ? (body.won === false ? { is: 'lost', receipt: body } : { is: 'won', receipt: body }) : { is: 'unknown' };
  const problem = (typeof body === 'object' && body !== null ? body : {}) as { code?: string; detail?: string; title?: string };
  const code = typeof problem.code === 'string' ? problem.code : '';
  if (status === 409 && code === 'already_resolved' && isReceipt(body)) return { is: 'lost', receipt: body };
  if (status === 410) return { is: 'closed', receipt: isReceipt(body) ? body : null, words: oneLine(problem.detail) || t.gone };
  if (!code) return { is: 'unknown' };
  return { is: 'refused', code, words: t.refusals[code] ?? t.refused(oneLine(problem.detail ?? problem.title) || String(status)) };
}

/** One answer with its key. `send` may be called again after `unknown`. */
export class Answering {
  readonly key = freshKey();
  readonly answer: Answer;

  constructor(
    readonly request: Request,
    answer: Answer,
    private readonly post: Post,
  ) {
    // A request that is shown in part has no digest; it can only be denied.
    this.answer = request.digest ? { ...answer, digest: request.digest } : answer;
  }

  async send(): Promise<Sent> {
    try {
      return outcomeOfReply(await this.post(this.request.request_id, this.answer, this.key));
    } catch {
      return { is: 'unknown' };
    }
  }
}
