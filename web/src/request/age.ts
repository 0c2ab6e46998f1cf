// Ages and remaining times in words. Pure.

import { text } from '../text/en.js';

const t = text.common;
const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export function span(ms: number): string {
  const left = Math.max(0, ms);
  if (left < MINUTE) return t.seconds(Math.round(left / SECOND));
  if (left < HOUR) return t.minutes(Math.floor(left / MINUTE));
  if (left < 2 * DAY) return t.hours(Math.floor(left / HOUR));
  return t.days(Math.floor(left / DAY));
}

/** The age of a moment, by the gateway's clock. */
export function ago(at: string | null | undefined, now: number): string {
  const then = at ? Date.parse(at) : NaN;
  if (Number.isNaN(then)) return t.justNow;
  const ms = now - then;
  return ms < 2 * SECOND ? t.justNow : t.ago(span(ms));
}
