import { text } from '../text/en.js';

const t = text.common;

/** A duration in words, in its largest unit. */
export function span(ms: number): string {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return t.seconds(s);
  if (s < 3_600) return t.minutes(Math.floor(s / 60));
  if (s < 172_800) return t.hours(Math.floor(s / 3_600));
  return t.days(Math.floor(s / 86_400));
}

/** An age in words. Both times in ms by the gateway's clock. */
export function ago(at: number, now: number): string {
  if (!Number.isFinite(at)) return '';
  return now - at < 5_000 ? t.justNow : t.ago(span(now - at));
}

const two = (n: number): string => String(n).padStart(2, '0');

/** Day and time of this place, to the second. Written without the browser's tables of languages, which take a phone long to load. */
export function exact(at: number): string {
  const d = new Date(at);
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

/** A short time for people: only the time if it is today, else with the day. */
export function moment(at: number): string {
  const d = new Date(at);
  const today = new Date().toDateString() === d.toDateString();
  return today
    ? d.toLocaleTimeString('en', { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false })
    : d.toLocaleString('en', { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', hour12: false });
}

/** Smaller differences between two clocks are ignored, ms. */
const SKEW_MIN_MS = 3_000;

/**
 * How far this clock is behind the gateway's, ms, from the `date` of a reply (HTTP's `Date`, in whole seconds), which was set between
 * `sent` and `received`. The `known` value stays while it is compatible: a slow reply is inexact.
 */
export function skewFrom(known: number, date: number, sent: number, received: number): number {
  const least = date - received - SKEW_MIN_MS;
  const most = date + 1_000 - sent + SKEW_MIN_MS;
  for (const skew of [known, 0]) if (skew >= least && skew <= most) return skew;
  return Math.round((least + most) / 2);
}
