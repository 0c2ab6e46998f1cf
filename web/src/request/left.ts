// Requests that the person leaves for another device. They stay open; this page only stops asking.

import { signal } from '../lib/signal.js';

const left = signal<ReadonlySet<string>>(new Set());

export const isLeft = (request_id: string): boolean => left.value.has(request_id);

export function leave(request_id: string): void {
  left.value = new Set([...left.value, request_id]);
}

/** Takes a request back that was left for another device. */
export function resume(request_id: string): void {
  const rest = new Set(left.value);
  if (rest.delete(request_id)) left.value = rest;
}
