// A virtual list of lines of one height, for terminal output and diffs: only visible lines are in the document.

import { text as words } from '../text/en.js';
import { button, h } from './dom.js';
import { visibleOutput } from './visible.js';

/** Lines drawn above and below the visible ones. */
const MARGIN = 30;
/** Up to this many lines all are drawn, so that find-in-page and selection work. */
const WHOLE = 300;
/** The height of a line, px; `.lines` in the style sheet has the same. */
export const LINE_PX = 20;
/** Maximum length of the drawn part of a line, in characters. */
export const LINE_SHOWN = 2_000;
/** Characters that "show more" adds to a long line. */
const PIECE = 65_536;

/** A box of `count()` lines; `line(n)` creates one. Call `changed` when lines were added. */
export class Lines {
  readonly el: HTMLElement;
  private readonly body: HTMLElement;
  private from = 0;
  private to = 0;
  private readonly draw = () => this.window();

  constructor(label: string, private readonly count: () => number, private readonly line: (n: number) => HTMLElement) {
    this.body = h('div', 'lines-body');
    this.el = h('div', 'lines', this.body);
    this.el.tabIndex = 0;
    this.el.setAttribute('role', 'group');
    this.el.setAttribute('aria-label', label);
    this.el.addEventListener('scroll', this.draw, { passive: true });
    this.changed();
  }

  /** Redraws the visible lines. */
  changed(): void {
    this.from = this.to = 0;
    this.body.replaceChildren();
    this.window();
  }

  /** Scrolls to a line. */
  reveal(n: number): void {
    this.el.scrollTop = Math.max(0, (n - 4) * LINE_PX);
    this.window();
  }

  private window(): void {
    const count = this.count();
    this.body.style.height = `${count * LINE_PX}px`;
    let from = 0;
    let to = count;
    if (count > WHOLE) {
      const first = Math.floor(this.el.scrollTop / LINE_PX);
      from = Math.max(0, first - MARGIN);
      to = Math.min(count, first + Math.ceil((this.el.clientHeight || 600) / LINE_PX) + MARGIN);
    }
    if (from === this.from && to === this.to && this.body.childElementCount) return;
    const made: HTMLElement[] = [];
    for (let n = from; n < to; n++) made.push(this.line(n));
    this.from = from;
    this.to = to;
    this.body.style.paddingTop = `${from * LINE_PX}px`;
    this.body.replaceChildren(...made);
  }
}

/** One long line; "show more" adds a piece at a time. */
export function longLine(text: string): HTMLElement {
  const body = h('pre', 'long');
  body.tabIndex = 0;
  let shown = 0;
  const more = button('', () => grow(), 'quiet more');
  const grow = () => {
    let end = Math.min(text.length, shown + PIECE);
    const code = text.charCodeAt(end - 1);
    if (end < text.length && code >= 0xd800 && code < 0xdc00) end--;
    body.append(visibleOutput(text.slice(shown, end)));
    shown = end;
    more.textContent = words.session.moreOfLine(text.length - shown);
    more.hidden = shown >= text.length;
  };
  grow();
  return h('div', 'long-line', body, more);
}
