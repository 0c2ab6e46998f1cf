// A view of program output with colours.

import { text as words } from '../text/en.js';
import { Ansi, type Line, type Style } from './ansi.js';
import { button, h } from './dom.js';
import { Lines, LINE_SHOWN, longLine } from './lines.js';
import { cut, visibleOutput } from './visible.js';

/** Characters parsed at a time, before the page may handle events. */
const SLICE = 131_072;

const LEVELS = [0, 95, 135, 175, 215, 255];
function colour(value: number | string | undefined): string | null {
  if (value === undefined) return null;
  if (typeof value === 'string') return value;
  if (value < 16) return `var(--ansi-${value})`;
  if (value >= 232) { const grey = 8 + (value - 232) * 10; return `rgb(${grey} ${grey} ${grey})`; }
  const n = value - 16;
  return `rgb(${LEVELS[Math.floor(n / 36)]} ${LEVELS[Math.floor(n / 6) % 6]} ${LEVELS[n % 6]})`;
}

/** A colour for text that the program gave as such, not by a name of the palette: made dark or light enough to be read on the page. */
const legible = (value: string): string => (value.startsWith('var(') ? value : `light-dark(oklch(from ${value} min(l, 0.5) c h), oklch(from ${value} max(l, 0.72) c h))`);

function styled(text: string, style: Style | null): Node {
  if (!style) return document.createTextNode(text);
  const el = h('span', '', text);
  const fg = colour(style.inverse ? style.bg : style.fg);
  const bg = colour(style.inverse ? style.fg : style.bg);
  if (style.inverse) { el.style.color = fg ?? 'var(--lines-bg)'; el.style.backgroundColor = bg ?? 'currentcolor'; if (!bg) el.classList.add('inverse'); } else {
    if (fg) el.style.color = bg ? fg : legible(fg);
    if (bg) el.style.backgroundColor = bg;
  }
  if (style.bold) el.classList.add('b');
  if (style.dim) el.classList.add('d');
  if (style.italic) el.classList.add('i');
  if (style.underline) el.classList.add('u');
  if (style.strike) el.classList.add('s');
  return el;
}

/** A view of program output. Parsed in slices, so that megabytes do not block the page. */
export class Output {
  readonly el: HTMLElement;
  #ansi = new Ansi();
  #all: Line[] = [];
  #text = '';
  /** The length of the text that was parsed, in characters. */
  #at = 0;
  #due = false;
  readonly #longs = h('div');
  readonly #lines: Lines;

  constructor(label: string) {
    this.#lines = new Lines(label, () => this.#all.length, (n) => this.#row(this.#all[n] ?? []));
    this.el = h('div', 'output', this.#lines.el, this.#longs);
  }

  /** Shows a text. One that begins with the shown text is only parsed from there on. */
  set(text: string): void {
    if (text === this.#text) return;
    if (!this.#text || !text.startsWith(this.#text)) {
      this.#ansi = new Ansi();
      this.#at = 0;
      this.#longs.replaceChildren();
    }
    this.#text = text;
    if (!this.#due) this.#step(true);
  }

  #step(first: boolean): void {
    this.#ansi.push(this.#text.slice(this.#at, this.#at + SLICE));
    this.#at += SLICE;
    this.#all = this.#ansi.all();
    const done = this.#at >= this.#text.length;
    if (done) this.#at = this.#text.length;
    if (first || done) this.#lines.changed();
    this.#due = !done;
    if (!done) setTimeout(() => this.#step(false), 0);
  }

  #row(line: Line): HTMLElement {
    const el = h('div', 'line');
    let left = LINE_SHOWN;
    let size = 0;
    for (const run of line) {
      size += run.text.length;
      if (left > 0) el.append(styled(visibleOutput(cut(run.text, left)), run.style));
      left -= run.text.length;
    }
    if (size > LINE_SHOWN) {
      const whole = line.map((run) => run.text).join('');
      el.append(button(words.session.restOfLine(size - LINE_SHOWN), () => this.#longs.replaceChildren(longLine(whole)), 'quiet rest'));
    }
    if (!size) el.append(' ');
    return el;
  }
}

/** A view of a whole program output. */
export function outputView(text: string, label: string): HTMLElement {
  const output = new Output(label);
  output.set(text);
  return output.el;
}
