// What the session's tests share: sessions made over HTTP, prompts played to their end, a page that shows one.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PATIENCE_MS, caller, launch, need, settled, signIn, watch } from './kit.mjs';

export const base = need('PLEXUS_URL').replace(/\/$/, '');
const token = need('PLEXUS_TOKEN');
const dir = need('PLEXUS_DIR');

/** One call to the gateway, as this machine's own administrator. */
export const api = caller(base, () => token);

export const newSession = async () => (await api('POST', '/v1/sessions', { runtime_id: 'demo' })).session_id;
export const prompt = (session, text) => api('POST', `/v1/sessions/${session}/prompt`, { text });

/** Prompts, and waits until nothing runs any more. */
export async function play(session, text, patience = PATIENCE_MS) {
  await prompt(session, text);
  const until = Date.now() + patience;
  for (;;) {
    const { state, queue } = await api('GET', `/v1/sessions/${session}`);
    if (state === 'idle' && !queue?.length) return;
    if (Date.now() > until) throw new Error(`the run of "${text.slice(0, 60)}" does not end`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** What loading all of a long session may take, ms. */
const WHOLE_MS = 120_000;
let files = 0;
/** A file of updates that the demo agent plays; what to prompt. */
export function script(updates) {
  const file = join(dir, `script-${++files}.ndjson`);
  writeFileSync(file, updates.map((update) => JSON.stringify(update)).join('\n'));
  return `script ${file}`;
}
let ids = 0;
export const says = (text, kind = 'agent_message_chunk') => ({ sessionUpdate: kind, messageId: `m${++ids}`, content: { type: 'text', text } });
export const goesOn = (text) => ({ sessionUpdate: 'agent_message_chunk', messageId: `m${ids}`, content: { type: 'text', text } });
export const tool = (call) => ({ sessionUpdate: 'tool_call', toolCallId: `t${++ids}`, status: 'completed', kind: 'other', ...call });
export const output = (text) => [{ type: 'content', content: { type: 'text', text } }];

/** A browser, signed in, that watches for everything that must not happen. */
export async function start(more = {}) {
  const kit = await launch({ shots: process.env.PLEXUS_SHOTS });
  const context = await kit.context(more);
  const page = await context.newPage();
  const seen = watch(page);
  const { code } = await api('POST', '/v1/codes', { scopes: ['watch', 'prompt', 'approve', 'admin'], ttl: 120 });
  await signIn(page, base, code);
  return { kit, context, page, seen, close: () => kit.close() };
}

/** Shows a session and waits until its rows stand. */
export async function show(page, session, at = '') {
  await page.goto('about:blank');
  await page.goto(`${base}/#/s/${session}${at}`);
  await page.locator('plexus-session .feed[aria-busy="false"] .row').first().waitFor();
  await settled(page);
}

/** Loads all that is older than what a session opens with. */
export async function whole(page) {
  const more = page.locator('plexus-session #older button');
  const status = page.locator('plexus-session .top-note[role="status"]');
  while (await more.count() || await status.count()) {
    // While it loads, how far that is stands in the button's place.
    if (!(await status.count())) await more.click({ timeout: 1_000 }).catch(() => {});
    await status.waitFor({ state: 'detached', timeout: WHOLE_MS });
    await settled(page);
  }
}

/** Scrolls through all of it, a window at a time, and does `work` at each stop. The number of stops. */
export async function through(page, work, least = 0) {
  await whole(page);
  await page.locator('plexus-session .scroller').evaluate((el) => { el.scrollTop = 0; });
  await settled(page);
  for (let stops = 1; ; stops++) {
    await work(stops);
    const ended = await page.locator('plexus-session .scroller').evaluate((el) => {
      const before = el.scrollTop;
      el.scrollTop += el.clientHeight * 0.9;
      return el.scrollTop - before < 1;
    });
    await page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
    if (ended || (least && stops >= least)) return stops;
  }
}

/** Nothing ran, nothing left, nobody complained. */
export async function harmless(page, seen) {
  const marks = await page.evaluate(() => ({ hostile: /** @type {any} */ (window).__hostile ?? null, scripts: [...document.scripts].map((s) => s.src).filter((s) => !s.startsWith(location.origin)) }));
  const foreign = seen.asked.filter((url) => !url.startsWith(`${base}/`) && !url.startsWith(`blob:${base}/`) && !url.startsWith('about:'));
  return { ...marks, dialogs: seen.dialogs, foreign, complaints: seen.complaints };
}
export const HARMLESS = { hostile: null, scripts: [], dialogs: [], foreign: [], complaints: [] };
