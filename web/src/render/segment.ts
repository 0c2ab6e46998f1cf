// Cuts a growing Markdown message into parts: finished blocks that do not change any more, and one open part. Each part is parsed
// by itself, so that the cost of a frame does not grow with the message.

/** A part: Markdown, or the inside of a fenced code block. */
export interface Segment {
  kind: 'md' | 'code';
  text: string;
  /** The language of the fence; code only. */
  lang: string;
  /** Whether it continues the code block or paragraph of the part before. */
  goesOn: boolean;
}

/** A part ends at the first block boundary after this many characters. */
const SEGMENT_GOAL = 1_200;
/** A longer part ends at the next line, even within a block. */
const SEGMENT_MAX = 16_000;
/** A part ends within a line that is longer: while it grows, all of it is laid out again with each frame. */
const LINE_MAX = 4_000;
/** A part of code ends at the next line after this many characters. */
const CODE_MAX = 8_000;

const FENCE = /^ {0,3}(`{3,}|~{3,})[ \t]*([^`\r\n]*)\r?$/;

/** Cuts text that arrives in pieces. Amortised O(length). */
export class Segmenter {
  /** Parts that will not change. */
  readonly settled: Segment[] = [];
  private tail = '';
  /** Index in the tail of the first line that was not scanned. */
  private scanned = 0;
  /** The last block boundary within the tail, 0 if none. */
  private boundary = 0;
  private blank = false;
  private fence: { mark: string; length: number; lang: string } | null = null;
  private goesOn = false;

  push(text: string): void {
    this.tail += text;
    let at = this.tail.indexOf('\n', Math.max(this.scanned, this.tail.length - text.length));
    while (at >= 0) {
      const start = this.scanned;
      const line = this.tail.slice(start, at);
      this.scanned = at + 1;
      this.line(line, start, at + 1);
      at = this.tail.indexOf('\n', this.scanned);
    }
    // A very long line.
    for (let most = this.most(); this.tail.length - this.scanned > most; most = this.most()) {
      let end = most;
      if (!this.fence) {
        const space = this.tail.lastIndexOf(' ', this.scanned + most);
        if (space > this.scanned + most / 2) end = space + 1 - this.scanned;
      }
      end += this.scanned;
      const code = this.tail.charCodeAt(end - 1);
      if (code >= 0xd800 && code < 0xdc00) end--;
      this.close(end, true);
    }
  }

  /** The longest line that is one part. A line of code is broken as late as possible: it looks like two then. */
  private most(): number { return this.fence ? SEGMENT_MAX : LINE_MAX; }

  /** The open part, unless it is empty. */
  open(): Segment | null {
    return this.tail ? this.segment(this.tail) : null;
  }

  /** All parts. */
  all(): Segment[] {
    const open = this.open();
    return open ? [...this.settled, open] : this.settled;
  }

  private segment(text: string): Segment {
    return { kind: this.fence ? 'code' : 'md', text, lang: this.fence?.lang ?? '', goesOn: this.goesOn };
  }

  /** Ends the part at index `end` of the tail. */
  private close(end: number, within: boolean): void {
    const text = this.tail.slice(0, end);
    if (text.trim() || this.fence) this.settled.push(this.segment(text));
    this.tail = this.tail.slice(end);
    this.scanned = Math.max(0, this.scanned - end);
    this.boundary = 0;
    this.goesOn = within;
  }

  private line(line: string, start: number, end: number): void {
    if (this.fence) {
      const close = /^ {0,3}(`{3,}|~{3,})[ \t]*\r?$/.exec(line);
      const mark = close?.[1] ?? '';
      if (mark[0] === this.fence.mark && mark.length >= this.fence.length) {
        const had = this.tail.slice(0, start);
        if (had || !this.goesOn) this.settled.push(this.segment(had));
        this.tail = this.tail.slice(end);
        this.scanned = 0;
        this.fence = null;
        this.goesOn = false;
        this.boundary = 0;
        this.blank = true;
      } else if (end > CODE_MAX) this.close(end, true);
      return;
    }
    const fence = FENCE.exec(line);
    if (fence?.[1]) {
      if (start > 0) this.close(start, false);
      this.goesOn = false;
      const lang = (fence[2] ?? '').trim().split(/[\s{]/)[0] ?? '';
      // The fence's own line is no part of the code.
      this.tail = this.tail.slice(line.length + 1);
      this.scanned = 0;
      this.fence = { mark: fence[1][0] as string, length: fence[1].length, lang };
      return;
    }
    if (line.trim() === '') { this.blank = true; return; }
    if (this.blank && !/^[ \t]/.test(line) && start > 0) {
      this.boundary = start;
      if (start >= SEGMENT_GOAL) this.close(start, false);
    }
    this.blank = false;
    if (this.scanned > SEGMENT_MAX) this.close(this.boundary || this.scanned, this.boundary === 0);
  }
}

/** The parts of a whole text. */
export function segments(text: string): Segment[] {
  const segmenter = new Segmenter();
  segmenter.push(text);
  return segmenter.all();
}
