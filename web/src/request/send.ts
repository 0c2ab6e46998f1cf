// Sends an answer to the gateway.

import { Refused } from '../plexus.js';
import { wire } from '../wire/gateway.js';
import type { Reply } from './answering.js';
import type { Answer } from './wire.js';

/** Timeout of the reply to an answer, ms; after it the answer is sent again with the same key. */
const PATIENCE_MS = 12_000;

/** One attempt; throws only if no reply came. */
export async function post(request_id: string, answer: Answer, key: string): Promise<Reply> {
  try {
    const path = `/v1/requests/${encodeURIComponent(request_id)}/answer`;
    return { status: 200, body: await wire.json('POST', path, answer, { headers: { 'Idempotency-Key': key }, patience: PATIENCE_MS }) };
  } catch (error) {
    if (error instanceof Refused && error.status > 0) return { status: error.status, body: error.problem };
    throw error;
  }
}
