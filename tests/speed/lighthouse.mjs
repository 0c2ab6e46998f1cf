// Lighthouse's performance score of a page, in a browser that is signed in. Its cookie stays; files and the service worker that a visit
// before left do not, so that each run is a first visit.
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { need } from '../web/kit.mjs';
import { median } from './table.mjs';

const modules = createRequire(join(resolve(need('PLEXUS_PLAYWRIGHT')), 'package.json'));
const load = async (/** @type {string} */ name) => (await import(pathToFileURL(modules.resolve(name)).href)).default;
const lighthouse = await load('lighthouse');
const desk = await load('lighthouse/core/config/desktop-config.js');

/**
 * The medians of some runs.
 * @param {string} url
 * @param {{port: number, profile: 'phone' | 'desk', runs: number}} how `port` is the browser's for debugging
 */
export async function rated(url, { port, profile, runs }) {
  const all = [];
  for (let n = 0; n < runs; n++) {
    const result = await lighthouse(url, { port, onlyCategories: ['performance'], logLevel: 'error' }, profile === 'desk' ? desk : undefined);
    const { lhr } = result ?? {};
    if (!lhr || lhr.runtimeError) throw new Error(`Lighthouse: ${url}: ${lhr?.runtimeError?.message ?? 'no result'}`);
    const value = (/** @type {string} */ id) => Math.round((lhr.audits[id]?.numericValue ?? NaN) * 1000) / 1000;
    const one = {
      score: Math.round((lhr.categories.performance.score ?? 0) * 100), lcp: Math.round(value('largest-contentful-paint')), fcp: Math.round(value('first-contentful-paint')),
      blocked: Math.round(value('total-blocking-time')), shift: value('cumulative-layout-shift'), index: Math.round(value('speed-index')),
    };
    console.error(`  ${profile} ${n + 1} of ${runs}: ${JSON.stringify(one)}`);
    if (process.env.PLEXUS_SHOTS && n === 0) (await import('node:fs')).writeFileSync(join(process.env.PLEXUS_SHOTS, `lighthouse-${profile}-${encodeURIComponent(new URL(url).hash || 'floor').slice(0, 20)}.json`), JSON.stringify(lhr));
    all.push(one);
  }
  const of = (/** @type {'score' | 'lcp' | 'fcp' | 'blocked' | 'shift' | 'index'} */ key) => median(all.map((one) => one[key]));
  return { score: of('score'), lcp: of('lcp'), fcp: of('fcp'), blocked: of('blocked'), shift: of('shift'), index: of('index') };
}
