// One window of a browser, in three engines, with what a person has: an address bar, a pointer, keys and eyes. Chromium is driven as in the
// other scripts; Firefox and WebKit by the commands of W3C WebDriver, which both speak without another program: WebKitWebDriver over HTTP,
// Firefox over the socket of its remote agent (Marionette), which takes the same commands.
//
//   FIREFOX, WEBKIT_DRIVER, MINIBROWSER   the programs, if they are not where Debian has them
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { launch, within } from './kit.mjs';

/** Time for a browser to start, ms; reaching it is a failure. */
const START_MS = 150_000;
/** Time for one command, ms: longer than a page takes to load on a busy machine. */
const COMMAND_MS = 60_000;

/**
 * @typedef {object} Screen a window of a browser
 * @property {string} engine
 * @property {(url: string) => Promise<void>} go
 * @property {() => Promise<void>} reload
 * @property {(script: (...args: any[]) => unknown, ...args: unknown[]) => Promise<any>} run a function of the page, without names from outside
 * @property {(name: string) => Promise<void>} key one key: a character, or a name of `KEYS`, with `Control+` or `Shift+` before it
 * @property {(text: string) => Promise<void>} write into what has the focus
 * @property {(x: number, y: number) => Promise<void>} click
 * @property {(file: string) => Promise<void>} shoot
 * @property {() => Promise<void>} close
 * @property {import('playwright-core').Page} [page] Chromium's, for its accessibility tree
 */

/** The first of these programs that is there; else it is said what to install. */
function program(/** @type {string | undefined} */ named, /** @type {string[]} */ known, /** @type {string} */ what) {
  const found = named ?? known.find((path) => existsSync(path));
  if (!found) throw new Error(`no ${what}`);
  return found;
}

// --- Chromium ---------------------------------------------------------------------------------------------------------------------------

/** @returns {Promise<Screen>} */
async function chromium({ width, height }) {
  const kit = await launch();
  const page = await (await kit.context({ viewport: { width, height } })).newPage();
  return {
    engine: 'chromium',
    page,
    go: async (url) => { await page.goto(url, { waitUntil: 'domcontentloaded' }); },
    reload: async () => { await page.reload({ waitUntil: 'domcontentloaded' }); },
    // As an expression: the page's policy forbids to make functions of text.
    run: (script, ...args) => page.evaluate(`(${script}).apply(null, ${JSON.stringify(args)})`),
    key: (name) => page.keyboard.press(name),
    write: (text) => page.keyboard.type(text),
    click: (x, y) => page.mouse.click(x, y),
    shoot: async (file) => { await page.screenshot({ path: file }); },
    close: () => kit.close(),
  };
}

// --- W3C WebDriver ------------------------------------------------------------------------------------------------------------------------

/** Keys by the code points of WebDriver. */
const KEYS = { Tab: '\uE004', Enter: '\uE007', Shift: '\uE008', Control: '\uE009', Escape: '\uE00C', ArrowLeft: '\uE012', ArrowUp: '\uE013', ArrowRight: '\uE014', ArrowDown: '\uE015' };

/**
 * A window by WebDriver.
 * @param {string} engine
 * @param {(name: string, params?: object) => Promise<any>} command
 * @param {() => Promise<void>} close
 * @returns {Promise<Screen>}
 */
async function window(engine, command, close, { width, height }) {
  const pressed = (/** @type {string[]} */ values) => [...values.map((value) => ({ type: 'keyDown', value })), ...values.toReversed().map((value) => ({ type: 'keyUp', value }))];
  const keys = (/** @type {object[]} */ actions) => command('PerformActions', { actions: [{ type: 'key', id: 'keyboard', actions }] });
  /** @type {Screen} */ const screen = {
    engine,
    go: async (url) => { await command('Navigate', { url }); },
    // As a person reloads: Firefox's own command goes past the service worker.
    reload: async () => {
      await screen.run(() => { /** @type {any} */ (window).before = true; location.reload(); });
      const there = () => screen.run(() => !('before' in window) && document.readyState !== 'loading').catch(() => false);
      for (const end = Date.now() + COMMAND_MS; !(await there());) {
        if (Date.now() > end) throw new Error(`${engine} does not reload`);
        await new Promise((done) => { setTimeout(done, 50); });
      }
    },
    run: (script, ...args) => command('ExecuteScript', { script: `return (${script}).apply(null, arguments)`, args }),
    key: async (name) => { await keys(pressed((name === '+' ? [name] : name.split('+')).map((one) => KEYS[/** @type {keyof typeof KEYS} */ (one)] ?? one))); },
    write: async (text) => { await keys([...text].flatMap((one) => pressed([one]))); },
    click: async (x, y) => {
      const actions = [{ type: 'pointerMove', x: Math.round(x), y: Math.round(y), duration: 0 }, { type: 'pointerDown', button: 0 }, { type: 'pointerUp', button: 0 }];
      await command('PerformActions', { actions: [{ type: 'pointer', id: 'mouse', parameters: { pointerType: 'mouse' }, actions }] });
    },
    shoot: async (file) => { writeFileSync(file, Buffer.from(await command('TakeScreenshot', {}), 'base64')); },
    close,
  };
  // What the window has around the page is not known: it is asked for twice.
  await command('SetWindowRect', { width, height });
  const inner = await screen.run(() => ({ width: innerWidth, height: innerHeight }));
  await command('SetWindowRect', { width: 2 * width - inner.width, height: 2 * height - inner.height });
  return screen;
}

/** A program that runs until it is ended; what it said on stderr is part of the error if it ends by itself. */
function start(/** @type {string} */ file, /** @type {string[]} */ args, /** @type {object} */ options = {}) {
  const child = spawn(file, args, { stdio: ['ignore', 'ignore', 'pipe', 'pipe'], ...options });
  let said = '';
  child.stderr?.on('data', (data) => { said = (said + data).slice(-4_000); });
  const ended = new Promise((_, fail) => {
    child.once('error', (error) => fail(new Error(`${file}: ${error.message}`)));
    child.once('exit', (code, signal) => fail(new Error(`${file} ended (${code ?? signal}): ${said}`)));
  });
  ended.catch(() => {});
  return {
    child,
    ended: /** @type {Promise<never>} */ (ended),
    async end() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = new Promise((done) => { child.once('exit', done); });
      child.kill('SIGTERM');
      const kill = setTimeout(() => child.kill('SIGKILL'), 5_000);
      await gone;
      clearTimeout(kill);
    },
  };
}

// --- WebKit -------------------------------------------------------------------------------------------------------------------------------

const MINIBROWSERS = ['x86_64', 'aarch64'].flatMap((arch) => ['6.0', '4.1', '4.0'].map((api) => `/usr/lib/${arch}-linux-gnu/webkit${api === '6.0' ? 'gtk' : '2gtk'}-${api}/MiniBrowser`));

/** A free port of this machine. */
async function freePort() {
  const server = createServer();
  await new Promise((done) => { server.listen(0, '127.0.0.1', () => done(null)); });
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  await new Promise((done) => { server.close(done); });
  return port;
}

/** @returns {Promise<Screen>} */
async function webkit(size) {
  const packages = 'WebKit: apt-get install webkit2gtk-driver xvfb (or name them in $WEBKIT_DRIVER and $MINIBROWSER)';
  const driver = program(process.env.WEBKIT_DRIVER, ['/usr/bin/WebKitWebDriver'], packages);
  const binary = program(process.env.MINIBROWSER, MINIBROWSERS, packages);
  const xvfb = start(program(undefined, ['/usr/bin/Xvfb'], packages), ['-displayfd', '3', '-screen', '0', '1920x1400x24', '-nolisten', 'tcp']);
  const home = mkdtempSync(join(tmpdir(), 'plexus-webkit-'));
  /** @type {ReturnType<typeof start> | undefined} */ let running;
  const close = async () => {
    await running?.end();
    await xvfb.end();
    rmSync(home, { recursive: true, force: true });
  };
  try {
    const display = await within(Promise.race([new Promise((done) => { xvfb.child.stdio[3]?.once('data', (data) => done(`:${String(data).trim()}`)); }), xvfb.ended]), START_MS, 'a display of Xvfb');
    const port = await freePort();
    const own = { HOME: home, XDG_RUNTIME_DIR: home, XDG_DATA_HOME: join(home, 'data'), XDG_CACHE_HOME: join(home, 'cache'), XDG_CONFIG_HOME: join(home, 'config') };
    running = start(driver, [`--port=${port}`, '--host=127.0.0.1'], { env: { ...process.env, ...own, DISPLAY: display, GDK_BACKEND: 'x11', LIBGL_ALWAYS_SOFTWARE: '1', NO_AT_BRIDGE: '1', GTK_A11Y: 'none' } });
    const send = async (/** @type {string} */ method, /** @type {string} */ path, /** @type {object | undefined} */ body) => {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, { method, body: body && JSON.stringify(body), signal: AbortSignal.timeout(COMMAND_MS) });
      const { value } = /** @type {any} */ (await response.json());
      if (!response.ok) throw new Error(`WebKit: ${method} ${path}: ${value?.error}: ${value?.message}`);
      return value;
    };
    for (const end = Date.now() + START_MS; ;) {
      if (await Promise.race([send('GET', '/status', undefined).then(() => true, () => false), running.ended])) break;
      if (Date.now() > end) throw new Error('WebKitWebDriver does not answer');
      await new Promise((done) => { setTimeout(done, 50); });
    }
    const options = { binary, args: ['--automation'] };
    const { sessionId } = await send('POST', '/session', { capabilities: { alwaysMatch: { 'webkitgtk:browserOptions': options } } });
    /** @type {Record<string, [string, string]>} */ const paths = {
      Navigate: ['POST', '/url'], Refresh: ['POST', '/refresh'], ExecuteScript: ['POST', '/execute/sync'], PerformActions: ['POST', '/actions'], TakeScreenshot: ['GET', '/screenshot'], SetWindowRect: ['POST', '/window/rect'],
    };
    const command = (/** @type {string} */ name, /** @type {object | undefined} */ params) => {
      const [method, path] = paths[name] ?? ['', ''];
      return send(method, `/session/${sessionId}${path}`, method === 'GET' ? undefined : params);
    };
    return await window('webkit', command, async () => {
      await send('DELETE', `/session/${sessionId}`, undefined).catch(() => {});
      await close();
    }, size);
  } catch (error) {
    await close();
    throw error;
  }
}

// --- Firefox ------------------------------------------------------------------------------------------------------------------------------

/** Nothing is fetched that is not the page's, and nothing is asked at the start. */
const FIREFOX_PREFS = {
  'marionette.port': 0, 'app.normandy.enabled': false, 'app.update.disabledForTesting': true, 'browser.aboutwelcome.enabled': false, 'browser.shell.checkDefaultBrowser': false,
  'browser.startup.homepage_override.mstone': 'ignore', 'browser.safebrowsing.update.enabled': false, 'datareporting.policy.dataSubmissionEnabled': false, 'datareporting.healthreport.uploadEnabled': false,
  'extensions.update.enabled': false, 'network.captive-portal-service.enabled': false, 'network.connectivity-service.enabled': false, 'services.settings.server': 'data:,#remote-settings-dummy/v1',
  'toolkit.telemetry.server': 'data:,', 'trailhead.firstrun.didSeeAboutWelcome': true,
};

/** The commands of a Firefox: messages of a length, a colon and JSON. */
async function marionette(/** @type {number} */ port) {
  const socket = connect(port, '127.0.0.1');
  /** @type {Map<number, {done: (value: any) => void, fail: (error: Error) => void}>} */ const waiting = new Map();
  const fail = (/** @type {Error} */ error) => { for (const one of waiting.values()) one.fail(error); waiting.clear(); };
  let rest = Buffer.alloc(0);
  let last = 0;
  /** @type {(value: unknown) => void} */ let greeted = () => {};
  const greeting = new Promise((done) => { greeted = done; });
  socket.on('data', (data) => {
    rest = Buffer.concat([rest, data]);
    for (let colon = rest.indexOf(':'); colon > 0; colon = rest.indexOf(':')) {
      const end = colon + 1 + Number(rest.subarray(0, colon));
      if (rest.length < end) return;
      const message = JSON.parse(rest.subarray(colon + 1, end).toString());
      rest = rest.subarray(end);
      if (!Array.isArray(message)) { greeted(message); continue; }
      const [, id, error, result] = message;
      const one = waiting.get(id);
      waiting.delete(id);
      if (error) one?.fail(new Error(`Firefox: ${error.error}: ${error.message}`));
      else one?.done(result);
    }
  });
  socket.on('error', fail);
  socket.on('close', () => fail(new Error('Firefox closed the connection')));
  await within(greeting, START_MS, 'a greeting of Firefox');
  return {
    send: (/** @type {string} */ name, /** @type {object} */ params = {}, ms = COMMAND_MS) => within(new Promise((done, failed) => {
      last += 1;
      waiting.set(last, { done, fail: failed });
      const message = JSON.stringify([0, last, name, params]);
      socket.write(`${Buffer.byteLength(message)}:${message}`);
    }), ms, name),
    close: () => socket.destroy(),
  };
}

/** @returns {Promise<Screen>} */
async function firefox(size) {
  const file = program(process.env.FIREFOX, ['/usr/bin/firefox-esr', '/usr/bin/firefox'], 'Firefox: apt-get install firefox-esr (or name it in $FIREFOX)');
  const profile = mkdtempSync(join(tmpdir(), 'plexus-firefox-'));
  writeFileSync(join(profile, 'user.js'), Object.entries(FIREFOX_PREFS).map(([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});\n`).join(''));
  const running = start(file, ['--headless', '--marionette', '--no-remote', '--profile', profile], { env: { ...process.env, HOME: profile, MOZ_CRASHREPORTER_DISABLE: '1' } });
  const close = async () => {
    await running.end();
    rmSync(profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  };
  try {
    const written = join(profile, 'MarionetteActivePort');
    for (const end = Date.now() + START_MS; !existsSync(written) || !Number(readFileSync(written, 'utf8'));) {
      if (Date.now() > end) throw new Error('Firefox does not open its socket');
      await Promise.race([new Promise((done) => { setTimeout(done, 50); }), running.ended]);
    }
    const socket = await marionette(Number(readFileSync(written, 'utf8')));
    await socket.send('WebDriver:NewSession', { capabilities: { alwaysMatch: {} } }, START_MS);
    const command = async (/** @type {string} */ name, /** @type {object} */ params) => {
      const { value } = await socket.send(`WebDriver:${name}`, name === 'TakeScreenshot' ? { full: false, hash: false } : name === 'ExecuteScript' ? { ...params, sandbox: null } : params) ?? {};
      return value;
    };
    return await window('firefox', command, async () => { socket.close(); await close(); }, size);
  } catch (error) {
    await close();
    throw error;
  }
}

const ENGINES = { chromium, firefox, webkit };

/**
 * Opens a window of an engine.
 * @param {string} engine chromium, firefox or webkit
 * @param {{width: number, height: number}} size of the page in it
 */
export function open(engine, size) {
  const make = ENGINES[/** @type {keyof typeof ENGINES} */ (engine)];
  if (!make) throw new Error(`no engine ${engine}: one of ${Object.keys(ENGINES).join(', ')}`);
  return make(size);
}

