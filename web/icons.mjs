// Makes the PNG icons from public/icon.svg by a browser; run again only when the drawing changes. They are committed.
//   node web/icons.mjs DIRECTORY_WITH_PLAYWRIGHT
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';

const { chromium } = createRequire(join(resolve(process.argv[2] ?? '.'), 'package.json'))('playwright-core');
const here = new URL('.', import.meta.url).pathname;
const svg = readFileSync(join(here, 'public/icon.svg'), 'utf8');
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
for (const [name, size, inset] of [['icon-180', 180, 0], ['icon-192', 192, 0], ['icon-512', 512, 0], ['icon-maskable-512', 512, 0.1], ['icon-badge', 96, 0]]) {
  const page = await browser.newPage({ viewport: { width: size, height: size } });
  // A maskable icon is cut to any shape by the system: full bleed, the drawing within its safe middle.
  let drawing = svg;
  if (name.includes('maskable') || name === 'icon-180') drawing = svg.replace('rx="15"', 'rx="0"');
  if (inset) drawing = drawing.replace('<g fill="none"', `<g transform="translate(${64 * inset} ${64 * inset}) scale(${1 - 2 * inset})"><g fill="none"`).replace('</svg>', '</g></svg>');
  // A badge is a mask: white on nothing.
  if (name.endsWith('badge')) drawing = svg.replace(/<rect[^>]*>/, '').replace(/<circle cx="43" cy="32" r="3.900"[^>]*>/, '');
  await page.setContent(`<style>html,body{margin:0;background:transparent}svg{display:block;width:${size}px;height:${size}px}</style>${drawing}`);
  writeFileSync(join(here, `public/${name}.png`), await page.screenshot({ omitBackground: true }));
  await page.close();
}
await browser.close();
