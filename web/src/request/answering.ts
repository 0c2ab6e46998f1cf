// One answer on its way: sent under one key until its outcome is known. A lost connection is not a no; the same key again brings
// the same receipt, whatever happened meanwhile.

import { text } from '../text/en.js';
import { oneLine as said } from '../lib/text.js';
import type { Answer, Receipt, Request } from './wire.js';

const t = text.request;

/** What came of sending. `unknown`: no word came back, so it may or may not have arrived. */
export type Sent =
  | { is: 'won'; receipt: Receipt }
  | { is: 'lost'; receipt: Receipt }
  | { is: 'closed'; receipt: Receipt | null; words: string }
  | { is: 'refused'; code: string; words: string }
  | { is: 'unknown' };

/** A reply of the gateway: what was said with which status. */
export interface Reply {
  status: number;
  body: unknown;
}

/** Sends an answer; throws only where no reply came. */
export type Post = (request_id: string, answer: Answer, key: string) => Promise<Reply>;

/** 128 bits that nobody guesses; `randomUUID` is missing on pages that are not secure. */
export function freshKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `web-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

const isReceipt = (body: unknown): body is Receipt =>
  typeof body === 'object' && body !== null && 'resolved_by' in body && 'state' in body;

/** What a reply means. Pure. A reply that a proxy made in place of the gateway tells nothing. */
export function meaning({ status, body }: Reply): Sent {
  if (status >= 200 && status < 300) return isReceipt(body) ? (body.won === false ? { is: 'lost', receipt: body } : { is: 'won', receipt: body }) : { is: 'unknown' };
  const problem = (typeof body === 'object' && body !== null ? body : {}) as { code?: string; detail?: string; title?: string };
  const code = typeof problem.code === 'string' ? problem.code : '';
  if (status === 409 && code === 'already_resolved' && isReceipt(body)) return { is: 'lost', receipt: body };
  if (status === 410) return { is: 'closed', receipt: isReceipt(body) ? body : null, words: said(problem.detail) || t.gone };
  if (!code) return { is: 'unknown' };
  return { is: 'refused', code, words: t.refusals[code] ?? t.refused(said(problem.detail ?? problem.title) || String(status)) };
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
    // What was shown in part has none; only a no goes without.
    this.answer = request.digest ? { ...answer, digest: request.digest } : answer;
  }

  async send(): Promise<Sent> {
    try {
      return meaning(await this.post(this.request.request_id, this.answer, this.key));
    } catch {
      return { is: 'unknown' };
    }
  }
}
