import { text } from '../text/en.js';

const t = text.common;

/** A span in words, in its largest unit. */
export function span(ms: number): string {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return t.seconds(s);
  if (s < 3_600) return t.minutes(Math.floor(s / 60));
  if (s < 172_800) return t.hours(Math.floor(s / 3_600));
  return t.days(Math.floor(s / 86_400));
}

/** How long ago, in words. Both in ms of the gateway's clock. */
export function ago(at: number, now: number): string {
  if (!Number.isFinite(at)) return '';
  return now - at < 5_000 ? t.justNow : t.ago(span(now - at));
}

/** A moment for people, short: the time today, else the day too. */
export function moment(at: number): string {
  const d = new Date(at);
  const today = new Date().toDateString() === d.toDateString();
  return today
    ? d.toLocaleTimeString('en', { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false })
    : d.toLocaleString('en', { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', hour12: false });
}
