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

function styled(text: string, style: Style | null): Node {
  if (!style) return document.createTextNode(text);
  const el = h('span', '', text);
  const fg = colour(style.inverse ? style.bg : style.fg);
  const bg = colour(style.inverse ? style.fg : style.bg);
  if (style.inverse) { el.style.color = fg ?? 'var(--lines-bg)'; el.style.backgroundColor = bg ?? 'currentcolor'; if (!bg) el.classList.add('inverse'); } else {
    if (fg) el.style.color = fg;
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
export function outputView(text: string, label: string): HTMLElement {
  const ansi = new Ansi();
  let all: Line[] = [];
  const longs = h('div');
  const lines = new Lines(label, () => all.length, (n) => row(all[n] ?? []));
  const box = h('div', 'output', lines.el, longs);

  const whole = (line: Line) => line.map((run) => run.text).join('');
  function row(line: Line): HTMLElement {
    const el = h('div', 'line');
    let left = LINE_SHOWN;
    let size = 0;
    for (const run of line) {
      size += run.text.length;
      if (left > 0) el.append(styled(visibleOutput(cut(run.text, left)), run.style));
      left -= run.text.length;
    }
    if (size > LINE_SHOWN) {
      el.append(button(words.session.restOfLine(size - LINE_SHOWN), () => longs.replaceChildren(longLine(whole(line))), 'quiet rest'));
    }
    if (!size) el.append(' ');
    return el;
  }

  let at = 0;
  const step = () => {
    ansi.push(text.slice(at, at + SLICE));
    at += SLICE;
    all = ansi.all();
    if (at < text.length) setTimeout(step, 0);
    else lines.changed();
  };
  step();
  if (at < text.length) lines.changed();
  return box;
}
