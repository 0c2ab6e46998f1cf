// Shared terminals: the list, and the screen of one. Loaded when it is opened, with the terminal emulator.
import { Terminal, type ITheme } from '@xterm/xterm';
import xtermStyles from '@xterm/xterm/css/xterm.css?inline';
import { css, html, nothing, unsafeCSS, type PropertyValues } from 'lit';
import { customElement, property, state } from 'lit/decorators.js';
import { PlexusElement } from '../lib/element.js';
import { effect } from '../lib/signal.js';
import { oneLine } from '../lib/text.js';
import { theme } from '../lib/theme.js';
import { plexus } from '../plexus.js';
import { terminalWords as t } from '../text/terminals.js';
import { icon } from '../ui/icons.js';
import { command, empty, pageStyles } from '../ui/parts.js';
import { readTerminals, terminals } from '../wire/terminals.js';
import type { TerminalInfo } from '../wire/types.js';

/** Sizes of the letters, px: the largest, and the smallest before the screen is moved instead. */
const FONT_MAX = 14;
const FONT_MIN = 6;
/** Height of a line, in letters. */
const LINE = 1.2;
/** Lines that scrolled off and are kept here. */
const SCROLLBACK = 1_000;
/** Bytes that are not drawn yet; beyond them the connection is made again, which begins with a snapshot. */
const UNDRAWN_MAX = 4 << 20;
/** Pause before a lost connection is made again, ms. */
const AGAIN_MS = 1_500;
/** Characters of one message; a paste is sent in several. In UTF-8 they are at most three times as many bytes. */
const INPUT_CHARS = 16_384;
/** Keys that phones lack. */
const KEYS: ReadonlyArray<readonly [string, string]> = [['Esc', '\x1b'], ['Tab', '\t'], ['^C', '\x03'], ['↑', '\x1b[A'], ['↓', '\x1b[B'], ['←', '\x1b[D'], ['→', '\x1b[C'], ['⏎', '\r']];

/** Colours that can be read on this page's grounds. */
const COLOURS: Record<'light' | 'dark', ITheme> = {
  light: {
    background: '#f5f5f7', foreground: '#17181c', cursor: '#4f46d8', cursorAccent: '#ffffff', selectionBackground: '#c5c2f5',
    black: '#17181c', red: '#b3201f', green: '#116b3c', yellow: '#8a5200', blue: '#0b5cad', magenta: '#8a2be2', cyan: '#0b6b75', white: '#6b6e78',
    brightBlack: '#555863', brightRed: '#c42b2a', brightGreen: '#15803d', brightYellow: '#96600a', brightBlue: '#2a6fc4', brightMagenta: '#9a4be8', brightCyan: '#0f7c88', brightWhite: '#4a4d57',
  },
  dark: {
    background: '#101216', foreground: '#eceef2', cursor: '#8f94ff', cursorAccent: '#101216', selectionBackground: '#3b3c73',
    black: '#3a3f49', red: '#ff8a85', green: '#57c98a', yellow: '#e9b25a', blue: '#79b8ff', magenta: '#c79bff', cyan: '#6fd0dc', white: '#d5d8e0',
    brightBlack: '#959ba9', brightRed: '#ffaaa6', brightGreen: '#7fd6a5', brightYellow: '#f3cb88', brightBlue: '#a3cfff', brightMagenta: '#dcbfff', brightCyan: '#9be3ec', brightWhite: '#ffffff',
  },
};

const dark = matchMedia('(prefers-color-scheme: dark)');
const colours = (): ITheme => COLOURS[theme.value === 'auto' ? (dark.matches ? 'dark' : 'light') : theme.value];

/**
 * Does `work` while new style elements are style sheets of `root` instead: the page's policy allows no style elements, and the emulator
 * makes its own where it is opened.
 */
function withoutStyleElements(root: ShadowRoot, work: () => void): void {
  const style = (): HTMLElement => {
    const stand = document.createElement('span');
    const sheet = new CSSStyleSheet();
    stand.hidden = true;
    new MutationObserver(() => sheet.replaceSync(stand.textContent ?? '')).observe(stand, { childList: true, characterData: true, subtree: true });
    root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet];
    return stand;
  };
  const create = document.createElement.bind(document);
  document.createElement = ((tag: string, more?: ElementCreationOptions) => (tag === 'style' ? style() : create(tag, more))) as typeof document.createElement;
  // The method of all documents is there again.
  try { work(); } finally { Reflect.deleteProperty(document, 'createElement'); }
}

/** The state of a terminal, in words. */
const standing = (one: TerminalInfo): string =>
  !one.exited ? t.running : one.exited.code !== undefined ? t.exited(one.exited.code) : one.exited.signal !== undefined ? t.killed(one.exited.signal) : t.ended;

/** The page: the list, or one terminal. */
@customElement('plexus-terminals')
export class PlexusTerminals extends PlexusElement {
  @property() terminalId = '';

  static override styles = [...[PlexusElement.styles].flat(), pageStyles, css`
    :host { height: 100%; }
    .one { display: grid; gap: 2px; padding: 12px 16px; color: inherit; }
    .one:hover { background: var(--bg-hover); text-decoration: none; }
    .name { font-family: var(--mono); font-weight: 600; }
    .facts { display: flex; flex-wrap: wrap; gap: 2px 12px; color: var(--fg-mute); font-size: var(--t-s); }
  `];

  override connectedCallback(): void { super.connectedCallback(); void readTerminals(); }

  override render() {
    if (this.terminalId) return html`<plexus-terminal-view .terminalId=${this.terminalId}></plexus-terminal-view>`;
    const all = terminals.value;
    return html`<div class="page"><header><h1 tabindex="-1">${t.title}</h1></header>
      ${all.length ? html`<ul class="list">${all.map((one) => html`<li><a class="one" href=${plexus.href({ page: 'terminals', terminal_id: one.terminal_id })}>
          <bdi class="name cut">${oneLine(one.command.join(' '))}</bdi>${one.title ? html`<bdi class="cut soft">${oneLine(one.title)}</bdi>` : nothing}
          <div class="facts"><span>${standing(one)}</span><span>${t.size(one.size.rows, one.size.cols)}</span><span>${t.screens(one.attached)}</span><plexus-age .at=${one.started_at}></plexus-age><bdi class="cut">${oneLine(one.cwd)}</bdi></div></a></li>`)}</ul>`
        : empty('terminal', t.none, t.noneText, command(t.noneCommand))}</div>`;
  }
}

type Phase = 'connecting' | 'live' | 'lost' | 'over';

/** The screen of one terminal. */
@customElement('plexus-terminal-view')
export class PlexusTerminalView extends PlexusElement {
  @property() terminalId = '';
  @state() private phase: Phase = 'connecting';
  @state() private words = '';
  @state() private heading = '';
  @state() private may = false;
  @state() private owner = false;
  @state() private typing = false;
  #term: Terminal | null = null;
  #socket: WebSocket | null = null;
  #again: ReturnType<typeof setTimeout> | undefined;
  #undrawn = 0;
  #stop: Array<() => void> = [];
  #size = new ResizeObserver(() => this.#scale());
  /** Width of a letter, in letters' heights. */
  #ratio = 0;

  static override styles = [...[PlexusElement.styles].flat(), unsafeCSS(xtermStyles), css`
    :host { display: flex; flex-direction: column; height: 100%; min-height: 0; }
    .bar { display: flex; align-items: center; gap: var(--s2); flex-wrap: wrap; padding: 8px var(--s3); border-bottom: 1px solid var(--line); background: var(--bg-raised); }
    .bar h1 { font-size: var(--t-m); flex: 1 1 120px; min-width: 0; font-family: var(--mono); }
    .note { margin: var(--s2) var(--s3) 0; }
    .screen { flex: 1; min-height: 0; overflow: auto; padding: var(--s2); background: var(--bg-code); }
    .screen[data-typing] { box-shadow: inset 0 0 0 2px var(--warn-line); }
    .keys { display: flex; gap: 6px; padding: 6px var(--s2); overflow-x: auto; border-top: 1px solid var(--line); background: var(--bg-raised); }
    .keys button { min-width: 44px; min-height: 40px; font-family: var(--mono); }
    @media (pointer: fine) { .keys { display: none; } }
  `];

  override connectedCallback(): void {
    super.connectedCallback();
    const recolour = () => { if (this.#term) this.#term.options.theme = colours(); };
    dark.addEventListener('change', recolour);
    this.#stop.push(() => dark.removeEventListener('change', recolour), effect(() => { void theme.value; recolour(); }));
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    for (const stop of this.#stop.splice(0)) stop();
    this.#size.disconnect();
    this.#close();
    this.#term?.dispose();
    this.#term = null;
  }

  override render() {
    const info = terminals.value.find((one) => one.terminal_id === this.terminalId);
    const words = this.heading || (info ? info.command.join(' ') : this.terminalId);
    const note = this.phase === 'connecting' ? t.connecting : this.phase === 'lost' ? t.lost : this.words;
    return html`<div class="bar"><a class="btn ghost icon compact" href="#/terminals" aria-label=${t.back} title=${t.back}>${icon('back')}</a>
        <h1 tabindex="-1" class="cut"><bdi>${oneLine(words)}</bdi></h1>
        ${this.typing ? html`<span class="chip warn" id="state" role="status">${icon('keyboard', 12)}${t.typing}</span>`
          : html`<span class="chip" id="state" role="status" title=${this.may ? '' : t.watchingWhy}>${icon('eye', 12)}${this.may ? t.mayType : t.watching}</span>`}
        ${this.may && this.phase !== 'over' ? html`<button class="compact" id="type" aria-pressed=${this.typing} @click=${() => this.#type(!this.typing)}>${this.typing ? t.stop : t.type}</button>` : nothing}
        ${this.typing ? html`<button class="compact" id="fit" title=${t.fitHint} ?disabled=${this.owner} @click=${this.#fit}>${this.owner ? t.owner : t.fit}</button>` : nothing}</div>
      ${note ? html`<p class="note" role="status">${note}</p>` : nothing}
      <div class="screen" aria-label=${t.screen} ?data-typing=${this.typing}></div>
      ${this.typing ? html`<div class="keys" role="toolbar" aria-label=${t.keys}>${KEYS.map(([name, keys]) => html`<button @click=${() => { this.#send(keys); this.#term?.focus(); }}>${name}</button>`)}</div>` : nothing}`;
  }

  override updated(changed: PropertyValues<this>): void {
    if (!this.#term) this.#open();
    if (changed.has('terminalId')) { this.#close(); this.typing = false; this.#connect(); }
  }

  #open(): void {
    const screen = this.renderRoot.querySelector<HTMLElement>('.screen');
    if (!screen) return;
    const root = this.renderRoot as ShadowRoot;
    const font = getComputedStyle(document.documentElement).getPropertyValue('--mono').trim() || 'monospace';
    const pen = document.createElement('canvas').getContext('2d');
    if (pen) pen.font = `100px ${font}`;
    this.#ratio = (pen?.measureText('W').width ?? 60) / 100;
    const term = new Terminal({
      disableStdin: true, scrollback: SCROLLBACK, fontFamily: font, fontSize: FONT_MAX, lineHeight: LINE, theme: colours(), cursorInactiveStyle: 'outline', minimumContrastRatio: 4.5, screenReaderMode: true,
      // Only web pages are opened, in a window without a reference to this one.
      linkHandler: { activate: (_, address) => { if (/^https?:\/\//i.test(address)) window.open(address, '_blank', 'noopener,noreferrer'); } },
    });
    // The gateway shows no questions of programs to their terminal; one that came would be answered by the owner's terminal alone.
    for (const id of [{ final: 'c' }, { prefix: '>', final: 'c' }, { prefix: '=', final: 'c' }, { final: 'n' }, { prefix: '?', final: 'n' }, { final: 't' }, { intermediates: '$', final: 'p' }, { prefix: '?', intermediates: '$', final: 'p' }, { prefix: '>', final: 'q' }]) term.parser.registerCsiHandler(id, () => true);
    for (const code of [4, 10, 11, 12, 52]) term.parser.registerOscHandler(code, () => true);
    term.parser.registerDcsHandler({ intermediates: '$', final: 'q' }, () => true);
    withoutStyleElements(root, () => term.open(screen));
    term.onData((keys) => this.#send(keys));
    term.onTitleChange((title) => { this.heading = title; });
    this.#term = term;
    this.#size.observe(screen);
  }

  #connect(): void {
    clearTimeout(this.#again);
    if (!this.isConnected || !this.terminalId) return;
    [this.phase, this.words] = [this.phase === 'lost' ? 'lost' : 'connecting', ''];
    const socket = plexus.socket(`/v1/terminals/${encodeURIComponent(this.terminalId)}/ws`);
    socket.binaryType = 'arraybuffer';
    this.#socket = socket;
    this.#undrawn = 0;
    socket.onmessage = (event: MessageEvent<string | ArrayBuffer>) => {
      if (this.#socket !== socket) return;
      if (typeof event.data === 'string') this.#told(JSON.parse(event.data)); else this.#draw(new Uint8Array(event.data), socket);
    };
    socket.onclose = () => {
      if (this.#socket !== socket || this.phase === 'over') return;
      [this.#socket, this.phase, this.typing] = [null, 'lost', false];
      void readTerminals();
      this.#again = setTimeout(() => this.#connect(), AGAIN_MS);
    };
  }

  #close(): void {
    clearTimeout(this.#again);
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
  }

  #told(message: { type: string; size?: { rows: number; cols: number }; owner?: boolean; may_type?: boolean; code?: number | string | null; signal?: number | null; why?: string; detail?: string }): void {
    const term = this.#term;
    switch (message.type) {
      case 'snapshot':
        [this.phase, this.words, this.may, this.owner] = ['live', '', message.may_type === true, message.owner === true];
        term?.reset();
        if (message.size) term?.resize(message.size.cols, message.size.rows);
        this.#scale();
        break;
      case 'exited':
        this.#over(typeof message.code === 'number' ? t.exited(message.code) : typeof message.signal === 'number' ? t.killed(message.signal) : t.ended);
        break;
      case 'gone': this.#over(t.gone(oneLine(message.why))); break;
      case 'refused': this.words = t.refused(oneLine(message.detail)); break;
    }
  }

  #over(words: string): void {
    [this.phase, this.words] = ['over', words];
    this.#type(false);
    void readTerminals();
  }

  #draw(bytes: Uint8Array, socket: WebSocket): void {
    this.#undrawn += bytes.length;
    this.#term?.write(bytes, () => { this.#undrawn -= bytes.length; });
    // The terminal draws more slowly than the program writes: a snapshot is quicker.
    if (this.#undrawn > UNDRAWN_MAX) socket.close();
  }

  #type(on: boolean): void {
    this.typing = on;
    if (this.#term) {
      this.#term.options.disableStdin = !on;
      // The emulator takes what a phone's keyboard inserts only without it.
      this.#term.options.screenReaderMode = !on;
    }
    if (on) this.#term?.focus();
  }

  #send(keys: string): void {
    if (!this.typing || this.#socket?.readyState !== WebSocket.OPEN) return;
    for (let at = 0; at < keys.length;) {
      let end = Math.min(keys.length, at + INPUT_CHARS);
      // Not between the halves of a character.
      if (end < keys.length && /[\ud800-\udbff]/.test(keys[end - 1] ?? '')) end -= 1;
      this.#socket.send(JSON.stringify({ type: 'input', data: keys.slice(at, end) }));
      at = end;
    }
  }

  /** The room of the screen, px. */
  #room(): { width: number; height: number } {
    const screen = this.renderRoot.querySelector<HTMLElement>('.screen');
    const style = screen ? getComputedStyle(screen) : null;
    const inner = (whole: number, ...pads: string[]) => Math.max(0, whole - pads.reduce((sum, pad) => sum + (parseFloat(pad) || 0), 0));
    // The emulator keeps some of the width for its scroll bar.
    return { width: inner(screen?.clientWidth ?? 0, style?.paddingLeft ?? '', style?.paddingRight ?? '', '16'), height: inner(screen?.clientHeight ?? 0, style?.paddingTop ?? '', style?.paddingBottom ?? '') };
  }

  /** The largest letters with which the whole width is seen. */
  #scale(): void {
    const term = this.#term;
    const { width } = this.#room();
    if (!term || !width || !this.#ratio) return;
    const size = Math.floor((10 * width) / (term.cols * this.#ratio)) / 10;
    const wanted = Math.max(FONT_MIN, Math.min(FONT_MAX, size));
    if (term.options.fontSize !== wanted) term.options.fontSize = wanted;
  }

  #fit = (): void => {
    const { width, height } = this.#room();
    const [rows, cols] = [Math.floor(height / (FONT_MAX * LINE)), Math.floor(width / (FONT_MAX * this.#ratio))];
    if (rows > 1 && cols > 1) this.#socket?.send(JSON.stringify({ type: 'size', rows, cols }));
    this.#term?.focus();
  };
}

declare global { interface HTMLElementTagNameMap { 'plexus-terminals': PlexusTerminals; 'plexus-terminal-view': PlexusTerminalView } }
