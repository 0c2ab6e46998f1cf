// axe on every page and every dialog, with something on it, in both themes, on the narrowest screen and on a desk. The pages are those of the
// page's own router, and the dialogs those of its source: one that is new fails here until it is said how it is reached.
//
//   PLEXUS_URL, PLEXUS_CODE, PLEXUS_TOKEN   the gateway, a one-time code, the administrator's token
//   PLEXUS_WORK                             a git repository
//   PLEXUS_TERMINAL                         a shared terminal
//   PLEXUS_SHOTS                            a directory for pictures; none are taken if not set
//   and what kit.mjs reads
//
// Prints a line `ok ...` for each page; everything that axe finds is told, and is exit code 1.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { axe, caller, DESK, fits, launch, need, ok, PHONE, settled, signIn, THEMES, until, visit, watch } from './kit.mjs';

const base = need('PLEXUS_URL').replace(/\/$/, '');
const work = need('PLEXUS_WORK');
const shots = process.env.PLEXUS_SHOTS;
const source = join(import.meta.dirname, '../../web/src');
/** The narrowest screen that the page is made for, and a desk: where axe judges. Pictures are taken of what is between, too. */
const SIZES = [{ width: 320, height: 640 }, DESK];
const BETWEEN = [PHONE, { width: 768, height: 1024 }];
const api = caller(base, () => need('PLEXUS_TOKEN'));

// --- what is there -------------------------------------------------------------------------------------------------------------------------

const { session_id: busy } = await api('POST', '/v1/sessions', { runtime_id: 'demo', title: 'Rework of the parser', cwd: work });
const prompt = (/** @type {string} */ session, /** @type {string} */ text) => api('POST', `/v1/sessions/${session}/prompt`, { text });
const idle = (/** @type {string} */ session) => until('the end of the run', async () => (await api('GET', `/v1/sessions/${session}`)).state === 'idle');
const asked = (/** @type {number} */ count) => until(`${count} requests`, async () => { const { requests } = await api('GET', '/v1/requests?state=open'); return requests.length === count && requests; });
await prompt(busy, 'think ;; plan ;; diff ;; usage ;; ask make test ;; echo the grammar is ambiguous');
const [first] = await asked(1);
// The list comes once the folder was looked at for the run.
await api('GET', `/v1/sessions/${busy}/changes`);
writeFileSync(join(work, 'parser.txt'), 'one\ntwo and a half\nthree\n');
await api('POST', `/v1/requests/${first.request_id}/answer`, { option_id: 'allow_once', digest: first.digest });
await idle(busy);
const components = [{ id: 'root', component: 'Column', children: ['name', 'go'] }, { id: 'name', component: 'TextField', label: 'Name of the release', value: { path: '/name' } }, { id: 'go', component: 'Button', variant: 'primary', child: 'got', action: { event: { name: 'submit' } } }, { id: 'got', component: 'Text', text: 'Release' }];
await api('POST', `/v1/sessions/${busy}/surfaces`, { surface: 'release', title: 'Release', components, data: { name: 'v1' } });
await api('PATCH', `/v1/sessions/${busy}/surfaces/release`, { pinned: true });
for (const command of ['sudo systemctl restart postgresql', 'make deploy']) {
  const { session_id } = await api('POST', '/v1/sessions', { runtime_id: 'demo', title: `Ask for ${command}` });
  await prompt(session_id, `ask ${command}`);
}
const form = await api('POST', '/v1/sessions', { runtime_id: 'demo', title: 'Questions' });
await prompt(form.session_id, 'form');
const requests = await asked(3);
await api('POST', '/v1/devices', { name: 'Pixel 9, Chrome on Android', scopes: ['watch', 'approve'] });
await api('POST', `/v1/sessions/${busy}/shares`, { hours: 1 });

// --- where it is looked at -----------------------------------------------------------------------------------------------------------------

/** A place, and what stands there once it is drawn. @type {Record<string, Array<[hash: string, there: string]>>} by the router's words */
const PAGES = {
  inbox: [['#/inbox', 'plexus-requests [role="row"][data-request]']],
  home: [['#/home', 'plexus-home plexus-surface']],
  sessions: [['#/sessions', 'plexus-sessions .row']],
  new: [['#/new', '.new-page plexus-new-session #start']],
  s: [[`#/s/${busy}`, 'plexus-session .feed[aria-busy="false"] .row'], [`#/s/${form.session_id}`, 'plexus-session plexus-card'], [`#/s/${busy}/changes`, 'plexus-changes plexus-change-file .row.add'], ['#/s/s_nothing', 'plexus-session .void']],
  r: requests.map((/** @type {any} */ one) => [`#/r/${one.request_id}`, 'plexus-request plexus-card']),
  devices: [['#/devices', 'plexus-devices .row']],
  settings: [['#/settings', 'plexus-settings #s-reach']],
  runtimes: [['#/runtimes', 'plexus-runtimes .row']],
  terminals: [['#/terminals', 'plexus-terminals a.one'], [`#/terminals/${need('PLEXUS_TERMINAL')}`, 'plexus-terminals plexus-terminal-view']],
  usage: [['#/usage', 'plexus-usage table'], [`#/usage?session=${busy}`, 'plexus-usage']],
  search: [['#/search?q=', 'plexus-search input'], ['#/search?q=ambiguous', 'plexus-search .hit']],
};

/** @typedef {import('playwright-core').Page} Page */
const inMenu = async (/** @type {Page} */ page, /** @type {string} */ words) => {
  await visit(page, '#/sessions');
  await page.locator('plexus-sessions .row', { hasText: 'Rework of the parser' }).locator('plexus-menu button').first().click();
  await page.locator('plexus-sessions [role="menuitem"]', { hasText: words }).click();
};
/** How a dialog is opened, by the file that draws it; or the script in which it is judged. @type {Record<string, ((page: Page) => Promise<void>) | string>} */
const DIALOGS = {
  'ui/app.ts': async (page) => { await visit(page, '#/sessions'); await page.locator('plexus-sessions #new').click(); await page.locator('plexus-dialog#new-session plexus-new-session #start').waitFor(); },
  'ui/help.ts': async (page) => { await visit(page, '#/inbox'); await page.keyboard.press('?'); await page.locator('plexus-help dialog[open]').waitFor(); },
  'ui/palette.ts': async (page) => { await page.keyboard.press('Control+k'); await page.locator('plexus-palette dialog[open] .one').first().waitFor(); },
  'ui/dialog.ts': async (page) => { await inMenu(page, 'Rename'); await page.locator('plexus-asking input').waitFor(); },
  'pages/share.ts': async (page) => { await inMenu(page, 'Share'); await page.locator('plexus-dialog[heading="Share this session"] dialog[open]').waitFor(); },
  'pages/runtimes.ts': async (page) => { await visit(page, '#/runtimes'); await page.locator('plexus-runtimes .row[data-runtime="demo"] button', { hasText: 'Log' }).click(); await page.locator('plexus-runtimes dialog[open]').waitFor(); },
  'pages/pairing.ts': async (page) => { await visit(page, '#/devices'); await page.locator('plexus-devices #add').click(); await page.locator('plexus-pairing dialog[open]').waitFor(); },
  'request/many.ts': async (page) => {
    await visit(page, '#/inbox');
    await page.locator('plexus-requests [role="row"][data-request] .words').first().click();
    await page.keyboard.press('Control+a');
    await page.keyboard.press('d');
    await page.locator('plexus-many dialog[open]').waitFor();
  },
  'pages/links.ts': 'links.mjs',
  'pages/abilities.ts': 'abilities.mjs',
};

// --- nothing is forgotten ------------------------------------------------------------------------------------------------------------------

const [router = ''] = readFileSync(join(source, 'wire/route.ts'), 'utf8').split('export function href');
const routes = [...router.matchAll(/case '(\w+)'|default: return \{ page: '(\w+)'/g)].map((one) => one[1] ?? one[2]);
assert.deepEqual(Object.keys(PAGES).toSorted(), [...new Set(routes)].toSorted(), 'the pages of the router (left: those of this script)');
const drawn = readdirSync(source, { recursive: true }).map(String).filter((file) => file.endsWith('.ts') && /<(?:plexus-)?dialog[\s>]/.test(readFileSync(join(source, file), 'utf8').replaceAll(/^\s*(?:\/\/|\/?\*).*$/gm, '')));
assert.deepEqual(Object.keys(DIALOGS).toSorted(), drawn.toSorted(), 'the files that draw dialogs (left: those of this script)');
for (const how of Object.values(DIALOGS)) if (typeof how === 'string') assert.match(readFileSync(join(import.meta.dirname, how), 'utf8'), /await axe\(/, `${how} judges its dialog`);

const kit = await launch({ shots });
/** @type {string[]} */ const faults = [];
/** @type {Page | undefined} */ let page;
try {
  page = await (await kit.context()).newPage();
  const at = page;
  const seen = watch(at);
  await signIn(at, base, need('PLEXUS_CODE'));
  /** A place as it stands, or as `again` makes it, in each size and theme. */
  const judge = async (/** @type {string} */ name) => {
    const before = faults.length;
    const fault = (/** @type {Error} */ error) => { faults.push(error.message); console.error('not ok', error.message); };
    for (const size of shots ? [...SIZES, ...BETWEEN] : SIZES) {
      await at.setViewportSize(size);
      for (const theme of THEMES) {
        await at.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
        await settled(at);
        if (shots) await at.screenshot({ path: join(shots, `route-${name.replaceAll(/\W+/g, '-')}-${size.width}-${theme}.png`) });
        if (SIZES.includes(size)) await axe(at, `${name} at ${size.width}, ${theme}`).catch(fault);
      }
      if (size.width < DESK.width) await fits(at, size.width, size.height, name).catch(fault);
    }
    await at.emulateMedia({ colorScheme: 'light', reducedMotion: null });
    await at.setViewportSize(DESK);
    if (faults.length === before) ok(`axe finds nothing: ${name}`);
  };
  for (const [word, places] of Object.entries(PAGES)) {
    for (const [n, [hash, there]] of places.entries()) {
      await visit(at, hash);
      await at.locator(there).first().waitFor();
      await judge(n ? `page ${word} ${n + 1}` : `page ${word}`);
    }
  }
  for (const [file, open] of Object.entries(DIALOGS)) {
    if (typeof open === 'string') continue;
    await open(at);
    await judge(`dialog ${file}`);
    await at.keyboard.press('Escape');
    await at.locator('dialog[open]').first().waitFor({ state: 'hidden' });
  }
  // That there is no such session is answered by a status that the browser notes.
  assert.deepEqual(seen.complaints.filter((one) => !/status of 404/.test(one)), []);
} catch (error) {
  faults.push(String(error));
  console.error('not ok', error);
  if (shots) await page?.screenshot({ path: join(shots, 'route-failure.png') }).catch(() => {});
} finally {
  await kit.close();
}
process.exit(faults.length ? 1 : 0);
