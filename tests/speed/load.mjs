// The page under load: hundreds of updates a second, presses of keys meanwhile, switching between sessions, long lists. Everything is told
// by the demo agent through the gateway; everything is counted by the browser's own observers, beside a page that does nothing.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DESK, PATIENCE_MS, PHONE, settled } from '../web/kit.mjs';
import { base, newSession, play, prompt } from '../web/session_kit.mjs';
import { changed, ended, requests, sessions, worked } from './situations.mjs';
import { median, percentile } from './table.mjs';

/** What a phone's processor is slower than this machine's: Lighthouse's own factor. */
const PHONE_SLOWER = 4;
/** A stream into one session: its updates, and the pause between two, ms. An agent and a gateway take their time as well: 500 a second come of it. */
const UPDATES = 5_000;
const PAUSE_MS = 1;
/** The same number a second over many sessions. */
const SESSIONS = 50;
const SESSION_UPDATES = 100;
const SESSION_PAUSE_MS = 100;
/** Most time that a stream may take, ms. */
const STREAM_MS = 180_000;
/** Presses of `j` in a long list, as fast as a key repeats, ms. */
const STEPS = 100;
const STEP_MS = 30;
/** Switches between two sessions, after each of both was shown once. */
const SWITCHES = 40;
/** After so long the page shows all news, ms. */
const NEWS_MS = 1_500;
/** Presses that took less are not told by the browser, and count as this, ms. */
const PRESS_LEAST_MS = 16;
/** A frame, ms; two in the time of one more than half late are one dropped. */
const FRAME_MS = 1000 / 60;
const SENTENCE = 'Words that somebody writes while it streams, a hundred presses of keys in all, as fast as fingers go.';

/** Watches from the page's first moment on: long tasks, how long presses take to be seen, and the time between frames. */
function watching() {
  const seen = { long: /** @type {number[]} */ ([]), keys: /** @type {number[]} */ ([]), frames: /** @type {number[]} */ ([]) };
  /** @type {any} */ (window).__speed = seen;
  new PerformanceObserver((all) => { for (const one of all.getEntries()) seen.long.push(Math.round(one.duration)); }).observe({ type: 'longtask' });
  new PerformanceObserver((all) => { for (const one of all.getEntries()) if (one.name === 'keydown') seen.keys.push(one.duration); }).observe(/** @type {any} */ ({ type: 'event', durationThreshold: 16 }));
  let last = 0;
  const frame = (/** @type {number} */ at) => { if (last) seen.frames.push(at - last); last = at; requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
}

/** Everything that was told of in time is told of: observers come after the frame. */
const reset = (/** @type {any} */ page) => page.evaluate(() => new Promise((done) => { setTimeout(() => { const seen = /** @type {any} */ (window).__speed; for (const all of [seen.long, seen.keys, seen.frames]) all.length = 0; done(null); }, 100); }));
const read = (/** @type {any} */ page) => page.evaluate(() => new Promise((done) => { setTimeout(() => { const { long, keys, frames } = /** @type {any} */ (window).__speed; done({ long: [...long], keys: [...keys], frames: [...frames] }); }, 100); }));
const longest = (/** @type {number[]} */ all) => Math.max(0, ...all);
/** Frames that were not drawn, in percent. */
const dropped = (/** @type {number[]} */ frames) => {
  const missed = frames.reduce((sum, one) => sum + Math.max(0, Math.round(one / FRAME_MS) - 1), 0);
  return Math.round((missed / Math.max(1, frames.length + missed)) * 100);
};
/** Elements in the document, through all shadow roots. */
const elements = (/** @type {any} */ page) => page.evaluate(() => { let all = 0; const walk = (/** @type {any} */ root) => { for (const one of root.querySelectorAll('*')) { all++; if (one.shadowRoot) walk(one.shadowRoot); } }; walk(document); return all; });

/** Types a sentence; how long 95 of 100 presses took at most. */
async function typed(/** @type {any} */ page) {
  await reset(page);
  await page.keyboard.type(SENTENCE, { delay: 60 });
  const { keys } = await read(page);
  return { p95: Math.round(percentile([...keys, ...Array(Math.max(0, SENTENCE.length - keys.length)).fill(PRESS_LEAST_MS)], 95)), slowest: Math.max(PRESS_LEAST_MS, longest(keys)) };
}

/** Scrolls through an element, half of what it shows each frame. */
const scrolled = (/** @type {any} */ place) => place.evaluate(async (/** @type {HTMLElement} */ el) => {
  for (let n = 0; n < 120; n++) {
    el.scrollTop += el.clientHeight / 2;
    await new Promise((done) => { requestAnimationFrame(done); });
  }
});

/** Moves down a list by a key. */
async function stepped(/** @type {any} */ page) {
  for (let n = 0; n < STEPS; n++) await page.keyboard.press('j', { delay: STEP_MS });
}

const firstRow = (/** @type {any} */ page) => page.locator('plexus-session .feed[aria-busy="false"] .row').first().waitFor();

/**
 * What can be measured, by name.
 * @param {{context: any, floor: string, say: (line: import('./table.mjs').Line) => void, dir: string, shots: string | undefined}} at
 */
export function load({ context, floor, say, dir, shots }) {
  if (shots) mkdirSync(shots, { recursive: true });
  const picture = (/** @type {any} */ page, /** @type {string} */ name) => (shots ? page.screenshot({ path: join(shots, `${name}.png`) }) : null);
  /** A page of its own, on a profile. @param {'phone' | 'desk'} profile */
  async function open(/** @type {string} */ url, profile = 'desk') {
    const page = await context.newPage();
    await page.setViewportSize(profile === 'phone' ? PHONE : DESK);
    if (profile === 'phone') await (await context.newCDPSession(page)).send('Emulation.setCPUThrottlingRate', { rate: PHONE_SLOWER });
    await page.addInitScript(watching);
    await page.goto(url);
    return page;
  }
  const live = (/** @type {any} */ page) => page.locator('.link[data-phase="live"]').first().waitFor({ state: 'attached' });

  /** What a page that does nothing takes: presses, and frames that are dropped, while the gateway does `work`. */
  async function idle(/** @type {() => Promise<unknown>} */ work, profile = 'desk') {
    const page = await open(floor, profile);
    await page.locator('textarea').click();
    const running = work();
    const press = await typed(page);
    await reset(page);
    await running;
    const { frames, long } = await read(page);
    await page.close();
    return { press, dropped: dropped(frames), long: longest(long) };
  }

  /** Streams over many sessions at once; how many updates a second came of it. */
  async function spread(/** @type {string[]} */ ids) {
    const began = Date.now();
    await Promise.all(ids.map((id) => prompt(id, `stream ${SESSION_UPDATES} ${SESSION_PAUSE_MS}`)));
    await Promise.all(ids.map((id) => ended(id, STREAM_MS)));
    return Math.round((ids.length * SESSION_UPDATES) / ((Date.now() - began) / 1000));
  }

  /** How long a list takes to open, to be scrolled and to be stepped through; with `more`, after all of it was shown by that button. */
  async function list(/** @type {string} */ what, /** @type {string} */ hash, /** @type {string} */ row, /** @type {string} */ scroller, /** @type {string} */ name, more = '') {
    const page = await open(`${base}/${hash}`);
    await live(page);
    await page.locator(row).first().waitFor({ timeout: STREAM_MS });
    await settled(page);
    const opening = await read(page);
    while (more && await page.locator(more).count()) { await page.locator(more).click(); await settled(page); }
    await reset(page);
    await stepped(page);
    const steps = await read(page);
    await picture(page, name);
    await reset(page);
    await scrolled(page.locator(scroller).first());
    const scrolls = await read(page);
    const count = await elements(page);
    await page.close();
    const over = (/** @type {number[]} */ long) => `${longest(long)} ms`;
    say({ what: `${what}: longest task`, measured: longest([...steps.long, ...scrolls.long]), unit: 'ms', target: 100, more: `j ${over(steps.long)}, scrolling ${over(scrolls.long)}, opening ${over(opening.long)}; ${dropped(steps.frames)}% of frames dropped by j` });
    say({ what: `${what}: elements in the document`, measured: count, unit: '', ...(more ? {} : { target: 10_000 }) });
  }

  /** Switches between two sessions, by the links of the navigation. */
  async function switched(/** @type {any} */ page, /** @type {string[]} */ two, /** @type {'key' | 'press'} */ by) {
    const took = [];
    for (let n = 0; n < SWITCHES + 2; n++) {
      const to = two[n % 2];
      // The links are in the order of news: until both sessions were read they may change places, and a press would reach another one.
      if (n <= 2) await page.waitForTimeout(NEWS_MS);
      const link = page.locator(`.recent a[href="#/s/${to}"]`);
      await link.waitFor();
      await page.evaluate((/** @type {[string, string, number]} */ [id, kind, most]) => {
        /** @type {any} */ (window).__switched = new Promise((done, failed) => {
          const late = setTimeout(() => failed(new Error(`${id} is not shown by a ${kind}: ${location.hash}`)), most);
          addEventListener(kind, (pressed) => {
            clearTimeout(late);
            setTimeout(() => failed(new Error(`${id} is not shown after a ${kind}: ${location.hash}`)), most);
            const look = () => {
              const view = /** @type {any} */ (document.querySelector('plexus-app')?.shadowRoot?.querySelector('plexus-session-page')?.shadowRoot?.querySelector('plexus-session'));
              const rows = view?.sessionId === id && view.renderRoot.querySelector('.feed[aria-busy="false"]')?.textContent.includes(`of ${id}`);
              // After this frame is drawn.
              if (rows) setTimeout(() => done(performance.now() - pressed.timeStamp), 0); else requestAnimationFrame(look);
            };
            requestAnimationFrame(look);
          }, { capture: true, once: true });
        });
      }, [to, by === 'key' ? 'keydown' : 'pointerup', PATIENCE_MS]);
      if (by === 'key') { await link.focus(); await page.keyboard.press('Enter'); } else await link.click();
      const one = Math.round(await page.evaluate(() => /** @type {any} */ (window).__switched));
      if (n >= 2) took.push(one);
      await settled(page);
    }
    return took;
  }

  /** What a page that does nothing takes from a press of a link to the next words. */
  async function switchedNothing() {
    const page = await open(floor);
    const took = [];
    for (let n = 0; n < SWITCHES; n++) {
      await page.evaluate((/** @type {number} */ n) => {
        const link = /** @type {HTMLAnchorElement} */ (document.querySelector('a'));
        link.href = `#${n}`;
        /** @type {any} */ (window).__switched = new Promise((done) => {
          let at = 0;
          addEventListener('pointerup', (pressed) => { at = pressed.timeStamp; }, { capture: true, once: true });
          addEventListener('hashchange', () => {
            /** @type {HTMLElement} */ (document.querySelector('p')).textContent = `Words ${n}. `.repeat(100);
            requestAnimationFrame(() => setTimeout(() => done(performance.now() - at), 0));
          }, { once: true });
        });
      }, n);
      await page.locator('a').click();
      took.push(Math.round(await page.evaluate(() => /** @type {any} */ (window).__switched)));
    }
    await page.close();
    return took;
  }

  return {
    /** One session that gets hundreds of updates a second, and somebody who writes meanwhile. */
    async stream() {
      const id = await worked(600);
      const stream = () => play(id, `stream ${UPDATES} ${PAUSE_MS}`, STREAM_MS);
      for (const profile of /** @type {const} */ (['desk', 'phone'])) {
        const least = await idle(stream, profile);
        const page = await open(`${base}/#/s/${id}`, profile);
        await firstRow(page);
        await settled(page);
        await reset(page);
        const began = Date.now();
        await stream();
        const rate = Math.round(UPDATES / ((Date.now() - began) / 1000));
        const { long, frames } = await read(page);
        const what = `${rate} updates a second into an open session, ${profile}`;
        say({ what: `${what}: longest task`, measured: longest(long), unit: 'ms', target: 100, floor: least.long, more: `${long.length} over 50 ms, ${dropped(frames)}% of frames dropped (${least.dropped}%)` });
        const field = page.locator('plexus-session #prompt');
        await field.click();
        const running = stream();
        const press = await typed(page);
        say({ what: `${what}: a press of a key, p95`, measured: press.p95, unit: 'ms', target: 50, floor: least.press.p95, more: `slowest ${press.slowest} ms (${least.press.slowest} ms)` });
        if (await field.inputValue() !== SENTENCE) throw new Error(`keys were lost: ${await field.inputValue()}`);
        await picture(page, `stream-${profile}`);
        await running;
        await field.fill('');
        await page.close();
      }
    },

    /** Two sessions that were shown before. */
    async switch() {
      const marked = async (/** @type {number} */ events) => { const id = await worked(events); await play(id, `echo The end of ${id}`); return id; };
      const [one, other, big] = [await marked(600), await marked(600), await marked(50_000)];
      const least = await switchedNothing();
      for (const [what, two] of /** @type {const} */ ([['of 600 events', [one, other]], ['of 600 and of 50,000 events', [one, big]]])) {
        for (const by of /** @type {const} */ (['press', 'key'])) {
          const page = await open(`${base}/#/s/${two[1]}`);
          await firstRow(page);
          await settled(page);
          await reset(page);
          const took = await switched(page, [...two], by);
          const { long } = await read(page);
          await page.close();
          say({ what: `switching between sessions ${what} by a ${by === 'key' ? 'key' : 'press'}, p95`, measured: percentile(took, 95), unit: 'ms', target: 50, floor: percentile(least, 95), more: `median ${median(took)} ms (${median(least)} ms), longest task ${longest(long)} ms` });
        }
      }
    },

    /** A folder with thousands of changed files. */
    async changes() {
      const id = await changed(dir, 2_000);
      await list('2,000 changed files', `#/s/${id}/changes`, 'plexus-change-file', 'plexus-app main', 'changes-2000');
      await list('2,000 changed files, all of them shown', `#/s/${id}/changes`, 'plexus-change-file', 'plexus-app main', 'changes-all', 'plexus-changes #more');
    },

    /** A day with many requests. */
    async inbox() {
      const count = await requests(1_000);
      await list(`${count.toLocaleString('en-US')} open requests`, '#/inbox', 'plexus-requests [role="row"]', 'plexus-requests .scroller', 'inbox-1000');
    },

    /** A day with many sessions. */
    async sessions() {
      await sessions(2_000);
      await list('2,000 sessions', '#/sessions', 'plexus-sessions .row', 'plexus-app main', 'sessions-2000');
    },

    /** The same number of updates, of many sessions at once, while the lists of all sessions and requests are open. */
    async spread() {
      const ids = [];
      for (let n = 0; n < SESSIONS; n++) ids.push(await newSession());
      const least = await idle(() => spread(ids));
      for (const [what, hash, row] of /** @type {const} */ ([['the list of sessions', '#/sessions', 'plexus-sessions .row'], ['the inbox', '#/inbox', 'plexus-inbox'], ['another session', `#/s/${await worked(600)}`, 'plexus-session .feed .row']])) {
        const page = await open(`${base}/${hash}`);
        await live(page);
        await page.locator(row).first().waitFor();
        await settled(page);
        await reset(page);
        const rate = await spread(ids);
        const { long, frames } = await read(page);
        await picture(page, `spread-${hash.slice(2, 9).replace(/\W/g, '-')}`);
        await page.close();
        say({ what: `${rate} updates a second over ${SESSIONS} sessions, ${what} open: longest task`, measured: longest(long), unit: 'ms', target: 100, floor: least.long, more: `${long.length} over 50 ms, ${dropped(frames)}% of frames dropped (${least.dropped}%)` });
      }
    },
  };
}
