// Pictures of terminals: turns a capture of a pane (`tmux capture-pane -e -p`) into a PNG, in a real browser's monospace.
//
//   node tests/web/terminal.mjs CAPTURE.ansi PICTURE.png [CAPTURE PICTURE ...]
//
// A capture whose name ends with `-light.ansi` is of a terminal with a light background.
//
//   PLEXUS_PLAYWRIGHT  a directory that holds node_modules/playwright-core
//   CHROMIUM           the browser; /usr/bin/chromium if not set
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const DARK = { foreground: '#d7dae0', background: '#16181d' };
const LIGHT = { foreground: '#24292f', background: '#ffffff' };
const SIXTEEN = [
  '#2b2f38', '#e06c75', '#98c379', '#e5c07b', '#61afef', '#c678dd', '#56b6c2', '#d7dae0',
  '#6b7280', '#ff8a94', '#b5e890', '#ffd98a', '#8cc8ff', '#e0a3f0', '#7fdce8', '#ffffff',
];

/** A colour of the palette of 256. @param {number} n */
function palette(n) {
  if (n < 16) return SIXTEEN[n];
  if (n >= 232) return `rgb(${Array(3).fill(8 + (n - 232) * 10).join(',')})`;
  const part = (/** @type {number} */ v) => (v === 0 ? 0 : 55 + v * 40);
  const cube = n - 16;
  return `rgb(${part(Math.floor(cube / 36))},${part(Math.floor(cube / 6) % 6)},${part(cube % 6)})`;
}

/** What `SGR` changes in a style. @param {Record<string, any>} style @param {number[]} codes */
function sgr(style, codes) {
  for (let i = 0; i < codes.length; i += 1) {
    const code = codes[i];
    const on = { 1: 'bold', 2: 'dim', 3: 'italic', 4: 'underline', 7: 'reverse', 9: 'strike' }[code];
    if (code === 0) for (const key of Object.keys(style)) delete style[key];
    else if (on) style[on] = true;
    else if (code === 22) { delete style.bold; delete style.dim; }
    else if (code === 23) delete style.italic;
    else if (code === 24) delete style.underline;
    else if (code === 27) delete style.reverse;
    else if (code === 29) delete style.strike;
    else if (code === 39) delete style.fg;
    else if (code === 49) delete style.bg;
    else if ((code >= 30 && code < 38) || (code >= 90 && code < 98)) style.fg = SIXTEEN[code >= 90 ? code - 82 : code - 30];
    else if ((code >= 40 && code < 48) || (code >= 100 && code < 108)) style.bg = SIXTEEN[code >= 100 ? code - 92 : code - 40];
    else if (code === 38 || code === 48) {
      const key = code === 38 ? 'fg' : 'bg';
      if (codes[i + 1] === 5) { style[key] = palette(codes[i + 2] ?? 0); i += 2; }
      else if (codes[i + 1] === 2) { style[key] = `rgb(${codes.slice(i + 2, i + 5).map((v) => v || 0).join(',')})`; i += 4; }
    }
  }
}

/**
 * The capture as stretches of one style each, line by line.
 * @param {string} capture
 * @param {typeof DARK} ground
 * @returns {{ text: string, css: string }[][]}
 */
function stretches(capture, { foreground, background }) {
  /** @type {Record<string, any>} */ const style = {};
  return capture.replace(/\n$/, '').split('\n').map((line) => {
    /** @type {{ text: string, css: string }[]} */ const out = [];
    for (const part of line.split(/(\x1b\[[0-9;:]*m)/)) {
      const codes = /^\x1b\[([0-9;:]*)m$/.exec(part);
      if (codes) { sgr(style, codes[1].split(/[;:]/).map(Number)); continue; }
      // Whatever else tmux has put there (a change of the character set) draws nothing.
      const text = part.replace(/\x1b[()][0-9A-B]|[\x00-\x1f]/g, '');
      if (!text) continue;
      let fg = style.fg ?? foreground;
      let bg = style.bg ?? 'transparent';
      if (style.reverse) [fg, bg] = [style.bg ?? background, style.fg ?? foreground];
      const css = [`color:${fg}`, `background:${bg}`];
      if (style.bold) css.push('font-weight:700');
      if (style.dim) css.push('opacity:.65');
      if (style.italic) css.push('font-style:italic');
      if (style.underline) css.push('text-decoration:underline');
      if (style.strike) css.push('text-decoration:line-through');
      out.push({ text, css: css.join(';') });
    }
    return out;
  });
}

/**
 * Draws captures as pictures.
 * @param {import('playwright-core').Browser | import('playwright-core').BrowserContext} browser
 * @param {[capture: string, picture: string][]} pairs files to read, and to write
 */
export async function draw(browser, pairs) {
  const page = await browser.newPage();
  try {
    await page.setViewportSize({ width: 1600, height: 1200 });
    for (const [capture, picture] of pairs) {
      const ground = capture.endsWith('-light.ansi') ? LIGHT : DARK;
      await page.setContent('<!doctype html><meta charset="utf-8"><body></body>');
      await page.evaluate(({ lines, background }) => {
        document.body.style.cssText = `margin:0;background:${background}`;
        const screen = document.createElement('pre');
        screen.id = 'screen';
        screen.style.cssText = `display:inline-block;margin:0;padding:14px 16px;background:${background};font:15px/18px "DejaVu Sans Mono","Liberation Mono",monospace`;
        for (const line of lines) {
          const row = document.createElement('div');
          row.style.height = '18px';
          for (const { text, css } of line) {
            const span = document.createElement('span');
            span.style.cssText = `${css};display:inline-block;height:18px;white-space:pre`;
            span.textContent = text;
            row.append(span);
          }
          screen.append(row);
        }
        document.body.append(screen);
      }, { lines: stretches(readFileSync(capture, 'utf8'), ground), background: ground.background });
      await page.locator('#screen').screenshot({ path: picture });
    }
  } finally {
    await page.close();
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const names = process.argv.slice(2);
  const home = process.env.PLEXUS_PLAYWRIGHT;
  if (!home || names.length === 0 || names.length % 2) {
    console.error('usage: PLEXUS_PLAYWRIGHT=DIR node tests/web/terminal.mjs CAPTURE.ansi PICTURE.png [CAPTURE PICTURE ...]');
    process.exit(2);
  }
  const { chromium } = createRequire(join(resolve(home), 'package.json'))('playwright-core');
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });
  /** @type {[string, string][]} */ const pairs = [];
  for (let i = 0; i < names.length; i += 2) pairs.push([names[i], names[i + 1]]);
  await draw(browser, pairs).finally(() => browser.close());
}
