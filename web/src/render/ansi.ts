// Parses program output with escape sequences into lines of coloured text. All other sequences (links, titles) are dropped.

/** The style of text. Colours are 0-255 of the palette, or `#rrggbb`. */
export interface Style {
  fg?: number | string;
  bg?: number | string;
  bold?: boolean;
  dim?: boolean;
  italic?: boolean;
  underline?: boolean;
  strike?: boolean;
  inverse?: boolean;
}

/** Text of one style. */
export interface Run {
  text: string;
  style: Style | null;
}

export type Line = Run[];

/** Maximum length of an escape sequence, in characters; a longer one is dropped. */
const SEQUENCE_MAX = 4096;

type Mode = 'text' | 'esc' | 'csi' | 'string' | 'string-esc' | 'charset';

const hex = (n: number) => Math.max(0, Math.min(255, n | 0)).toString(16).padStart(2, '0');

/** Parses output in pieces; sequences may be split anywhere. */
export class Ansi {
  /** Finished lines. The current line is `open()`. */
  readonly lines: Line[] = [];
  private cells: Run[] = [];
  /** The column of the next character, in UTF-16 units; at most the line's length. */
  private column = 0;
  private length = 0;
  private style: Style | null = null;
  private mode: Mode = 'text';
  private sequence = '';

  push(text: string): void {
    let from = 0;
    const size = text.length;
    for (let i = 0; i < size; i++) {
      const code = text.charCodeAt(i);
      if (this.mode === 'text') {
        if (code >= 0x20 && code !== 0x7f && (code < 0x80 || code > 0x9f)) continue;
        if (code === 0x09) continue;
        if (i > from) this.write(text.slice(from, i));
        from = i + 1;
        this.control(code);
      } else {
        this.escape(code, text[i] as string);
        from = i + 1;
      }
    }
    if (this.mode === 'text' && size > from) this.write(text.slice(from));
  }

  /** The current line. */
  open(): Line {
    return this.cells;
  }

  /** All lines, with the current one unless it is empty. */
  all(): Line[] {
    return this.length ? [...this.lines, this.cells] : this.lines;
  }

  private control(code: number): void {
    switch (code) {
      case 0x0a: case 0x85: this.feed(); break;
      case 0x0d: this.column = 0; break;
      case 0x08: this.column = Math.max(0, this.column - 1); break;
      case 0x1b: this.mode = 'esc'; this.sequence = ''; break;
      case 0x9b: this.mode = 'csi'; this.sequence = ''; break;
      case 0x90: case 0x98: case 0x9d: case 0x9e: case 0x9f: this.mode = 'string'; this.sequence = ''; break;
      default: break;
    }
  }

  private feed(): void {
    this.lines.push(this.cells);
    this.cells = [];
    this.column = 0;
    this.length = 0;
  }

  private escape(code: number, c: string): void {
    // CAN and SUB end a sequence; a line feed within one still counts.
    if (code === 0x18 || code === 0x1a) { this.mode = 'text'; return; }
    switch (this.mode) {
      case 'esc':
        if (c === '[') this.mode = 'csi';
        else if (c === ']' || c === 'P' || c === 'X' || c === '^' || c === '_') this.mode = 'string';
        else if (code >= 0x20 && code <= 0x2f) this.mode = 'charset';
        else if (code === 0x1b) this.sequence = '';
        else { this.mode = 'text'; if (code === 0x0a) this.feed(); if (c === 'c') this.style = null; }
        break;
      case 'charset':
        if (code < 0x20 || code > 0x2f) this.mode = code === 0x1b ? 'esc' : 'text';
        break;
      case 'csi':
        if (code >= 0x40 && code <= 0x7e) { this.mode = 'text'; this.csi(c); }
        else if (code === 0x1b) { this.mode = 'esc'; this.sequence = ''; }
        else if (code === 0x0a) this.feed();
        else if (code === 0x0d) this.column = 0;
        else if (code > 0x7e) this.mode = 'text';
        else if (this.sequence.length < SEQUENCE_MAX) this.sequence += c;
        else this.mode = 'text';
        break;
      case 'string':
        // Ends with BEL or ST. Its content (a title, a link, the clipboard) is dropped.
        if (code === 0x07 || code === 0x9c) this.mode = 'text';
        else if (code === 0x1b) this.mode = 'string-esc';
        else if (code === 0x0a || ++this.stringLength > SEQUENCE_MAX) { this.mode = 'text'; this.stringLength = 0; if (code === 0x0a) this.feed(); }
        break;
      case 'string-esc':
        this.stringLength = 0;
        if (c === '\\') this.mode = 'text';
        else { this.mode = 'esc'; this.escape(code, c); }
        break;
      default: break;
    }
    if (this.mode === 'text') this.stringLength = 0;
  }
  private stringLength = 0;

  private csi(final: string): void {
    const text = this.sequence;
    this.sequence = '';
    if (final === 'm') { if (/^[0-9;:]*$/.test(text)) this.sgr(text); return; }
    const n = /^[0-9]*$/.test(text) ? Number(text || 0) : -1;
    if (final === 'K') {
      if (n === 0) this.truncate(this.column);
      else if (n === 2) { const at = this.column; this.truncate(0); this.column = at; }
    } else if (final === 'G' && n >= 0) this.column = Math.max(0, n - 1);
    else if (final === 'D' && n >= 0) this.column = Math.max(0, this.column - Math.max(1, n));
    else if (final === 'C' && n >= 0) this.column = Math.min(this.length, this.column + Math.max(1, n));
  }

  private sgr(text: string): void {
    const parts = text.split(/[;:]/).map((p) => (p === '' ? 0 : Math.min(Number(p), 65_535)));
    let s: Style = { ...(this.style ?? {}) };
    for (let i = 0; i < parts.length; i++) {
      const p = parts[i] as number;
      if (p === 0) s = {};
      else if (p === 1) s.bold = true;
      else if (p === 2) s.dim = true;
      else if (p === 3) s.italic = true;
      else if (p === 4 || p === 21) s.underline = true;
      else if (p === 7) s.inverse = true;
      else if (p === 9) s.strike = true;
      else if (p === 22) { delete s.bold; delete s.dim; }
      else if (p === 23) delete s.italic;
      else if (p === 24) delete s.underline;
      else if (p === 27) delete s.inverse;
      else if (p === 29) delete s.strike;
      else if (p >= 30 && p <= 37) s.fg = p - 30;
      else if (p === 39) delete s.fg;
      else if (p >= 40 && p <= 47) s.bg = p - 40;
      else if (p === 49) delete s.bg;
      else if (p >= 90 && p <= 97) s.fg = p - 82;
      else if (p >= 100 && p <= 107) s.bg = p - 92;
      else if (p === 38 || p === 48) {
        let colour: number | string | undefined;
        if (parts[i + 1] === 5 && i + 2 < parts.length) { colour = Math.min(255, parts[i + 2] as number); i += 2; }
        else if (parts[i + 1] === 2 && i + 4 < parts.length) {
          colour = `#${hex(parts[i + 2] as number)}${hex(parts[i + 3] as number)}${hex(parts[i + 4] as number)}`;
          i += 4;
        } else break;
        if (p === 38) s.fg = colour; else s.bg = colour;
      }
    }
    this.style = Object.keys(s).length ? s : null;
  }

  private truncate(at: number): void {
    if (at >= this.length) return;
    let left = at;
    const kept: Run[] = [];
    for (const run of this.cells) {
      if (left <= 0) break;
      kept.push(run.text.length <= left ? run : { text: run.text.slice(0, left), style: run.style });
      left -= run.text.length;
    }
    this.cells = kept;
    this.length = at;
  }

  private write(text: string): void {
    if (this.column >= this.length) {
      const last = this.cells[this.cells.length - 1];
      if (last && last.style === this.style) last.text += text;
      else this.cells.push({ text, style: this.style });
      this.length += text.length;
      this.column = this.length;
      return;
    }
    // Overwrites: keeps the text before and after.
    const end = this.column + text.length;
    const before: Run[] = [];
    const after: Run[] = [];
    let at = 0;
    for (const run of this.cells) {
      const stop = at + run.text.length;
      if (at < this.column) before.push(stop <= this.column ? run : { text: run.text.slice(0, this.column - at), style: run.style });
      if (stop > end) after.push(at >= end ? run : { text: run.text.slice(end - at), style: run.style });
      at = stop;
    }
    this.cells = [...before, { text, style: this.style }, ...after];
    this.length = Math.max(this.length, end);
    this.column = end;
  }
}

/** The lines of a whole text. */
export function ansiLines(text: string): Line[] {
  const ansi = new Ansi();
  ansi.push(text);
  return ansi.all();
}

/** Whether a text has control characters other than tabs and line feeds. */
export function hasControls(text: string): boolean {
  // eslint-disable-next-line no-control-regex
  return /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/.test(text);
}
