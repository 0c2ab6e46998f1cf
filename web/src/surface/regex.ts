// Regular expressions of agents, in time linear in the text: an automaton is run over all its states at once, so that no pattern can
// keep the page busy. Lookaround and backreferences cannot be matched this way; the gateway refuses them, too.
import { MATCHED_MAX, PATTERN_MAX } from './types.js';

/** Maximum number of steps of a compiled pattern; each repetition counts. */
const STEPS_MAX = 1_000;
/** Maximum depth of nested groups. */
const GROUPS_MAX = 50;

type Ranges = readonly (readonly [number, number])[];
type Step =
  | { is: 'char'; ranges: Ranges; not: boolean }
  | { is: 'split'; to: number[] }
  | { is: 'at'; what: '^' | '$' | 'b' | 'B' }
  | { is: 'end' };
type Node =
  | { is: 'char'; ranges: Ranges; not: boolean }
  | { is: 'all'; of: Node[] }
  | { is: 'any'; of: Node[] }
  | { is: 'times'; of: Node; least: number; most: number }
  | { is: 'at'; what: '^' | '$' | 'b' | 'B' };

const DIGIT: Ranges = [[48, 57]];
const WORD: Ranges = [[48, 57], [65, 90], [95, 95], [97, 122]];
const SPACE: Ranges = [[9, 13], [32, 32], [160, 160], [0x1680, 0x1680], [0x2000, 0x200a], [0x2028, 0x2029], [0x202f, 0x202f], [0x205f, 0x205f], [0x3000, 0x3000], [0xfeff, 0xfeff]];
const LINE: Ranges = [[10, 10], [13, 13], [0x2028, 0x2029]];
const MOST = 0x10ffff;

const within = (ranges: Ranges, code: number): boolean => ranges.some(([from, to]) => code >= from && code <= to);
const others = (ranges: Ranges): Ranges => {
  const out: [number, number][] = [];
  let next = 0;
  for (const [from, to] of [...ranges].sort((a, b) => a[0] - b[0])) {
    if (from > next) out.push([next, from - 1]);
    next = Math.max(next, to + 1);
  }
  if (next <= MOST) out.push([next, MOST]);
  return out;
};

class Unsupported extends Error {}

class Parser {
  #at = 0;
  #groups = 0;
  readonly #all: string[];
  constructor(pattern: string) { this.#all = [...pattern]; }

  parse(): Node {
    const node = this.#choice();
    if (this.#at < this.#all.length) throw new Unsupported();
    return node;
  }

  #peek(): string { return this.#all[this.#at] ?? ''; }
  #take(): string { return this.#all[this.#at++] ?? ''; }
  #skip(what: string): boolean {
    if (this.#peek() !== what) return false;
    this.#at++;
    return true;
  }

  #choice(): Node {
    const of = [this.#sequence()];
    while (this.#skip('|')) of.push(this.#sequence());
    return of.length === 1 ? (of[0] as Node) : { is: 'any', of };
  }

  #sequence(): Node {
    const of: Node[] = [];
    while (this.#at < this.#all.length && this.#peek() !== '|' && this.#peek() !== ')') of.push(this.#repeated(this.#atom()));
    return { is: 'all', of };
  }

  #repeated(node: Node): Node {
    const sign = this.#peek();
    let times: [number, number] | null = sign === '*' ? [0, Infinity] : sign === '+' ? [1, Infinity] : sign === '?' ? [0, 1] : null;
    if (times) this.#at++;
    else if (sign === '{') {
      const found = /^\{(\d{1,4})(,(\d{0,4}))?\}/.exec(this.#all.slice(this.#at, this.#at + 12).join(''));
      if (!found) return node;
      this.#at += found[0].length;
      const least = Number(found[1]);
      times = [least, found[2] === undefined ? least : found[3] ? Number(found[3]) : Infinity];
    }
    if (!times) return node;
    if (node.is === 'at') throw new Unsupported();
    this.#skip('?');
    if ('*+?'.includes(this.#peek()) && this.#peek()) throw new Unsupported();
    if (times[0] > times[1]) throw new Unsupported();
    return { is: 'times', of: node, least: times[0], most: times[1] };
  }

  #atom(): Node {
    const c = this.#take();
    switch (c) {
      case '(': return this.#group();
      case '[': return this.#set();
      case '.': return { is: 'char', ranges: LINE, not: true };
      case '^': case '$': return { is: 'at', what: c };
      case '\\': return this.#escape();
      case '*': case '+': case '?': throw new Unsupported();
      default: return one(c);
    }
  }

  #group(): Node {
    if (++this.#groups > GROUPS_MAX) throw new Unsupported();
    if (this.#skip('?')) {
      if (this.#skip('<') || (this.#peek() === 'P' && this.#all[this.#at + 1] === '<' && (this.#at += 2))) {
        if ('=!'.includes(this.#peek())) throw new Unsupported();
        while (this.#at < this.#all.length && this.#take() !== '>');
      } else if (!this.#skip(':')) throw new Unsupported();
    }
    const node = this.#choice();
    if (!this.#skip(')')) throw new Unsupported();
    this.#groups--;
    return node;
  }

  #escape(): Node {
    const c = this.#peek();
    if (c === 'b' || c === 'B') { this.#at++; return { is: 'at', what: c }; }
    return { is: 'char', ranges: this.#escaped(), not: false };
  }

  /** The characters of an escape. */
  #escaped(): Ranges {
    const c = this.#take();
    switch (c) {
      case 'd': return DIGIT;
      case 'D': return others(DIGIT);
      case 'w': return WORD;
      case 'W': return others(WORD);
      case 's': return SPACE;
      case 'S': return others(SPACE);
      case 'n': return single(10);
      case 'r': return single(13);
      case 't': return single(9);
      case 'v': return single(11);
      case 'f': return single(12);
      case 'x': return single(this.#hex(2));
      case 'u': {
        if (!this.#skip('{')) return single(this.#hex(4));
        let digits = '';
        while (this.#peek() && this.#peek() !== '}') digits += this.#take();
        if (!this.#skip('}') || !/^[0-9a-f]{1,6}$/i.test(digits)) throw new Unsupported();
        return single(parseInt(digits, 16));
      }
      default:
        if (c === '' || /[a-z0-9]/i.test(c)) throw new Unsupported();
        return single(c.codePointAt(0) ?? 0);
    }
  }

  #hex(digits: number): number {
    const text = this.#all.slice(this.#at, this.#at + digits).join('');
    if (!new RegExp(`^[0-9a-fA-F]{${digits}}$`).test(text)) throw new Unsupported();
    this.#at += digits;
    return parseInt(text, 16);
  }

  #set(): Node {
    const not = this.#skip('^');
    const ranges: (readonly [number, number])[] = [];
    for (;;) {
      if (this.#at >= this.#all.length) throw new Unsupported();
      if (this.#skip(']')) break;
      const from = this.#member();
      const start = from.length === 1 && from[0]?.[0] === from[0]?.[1] ? from[0]?.[0] : undefined;
      if (start !== undefined && this.#peek() === '-' && this.#all[this.#at + 1] !== ']' && this.#at + 1 < this.#all.length) {
        this.#at++;
        const to = this.#member();
        const end = to.length === 1 && to[0]?.[0] === to[0]?.[1] ? to[0]?.[0] : undefined;
        if (end === undefined || end < start) throw new Unsupported();
        ranges.push([start, end]);
      } else ranges.push(...from);
    }
    return { is: 'char', ranges, not };
  }

  #member(): Ranges {
    const c = this.#take();
    if (c === '\\') {
      if (this.#skip('b')) return single(8);
      return this.#escaped();
    }
    // Nested sets and set operations mean different things in different languages.
    if (c === '[' || ((c === '&' || c === '~') && this.#peek() === c)) throw new Unsupported();
    return single(c.codePointAt(0) ?? 0);
  }
}

const single = (code: number): Ranges => [[code, code]];
const one = (c: string): Node => ({ is: 'char', ranges: single(c.codePointAt(0) ?? 0), not: false });

function compile(node: Node): Step[] {
  const steps: Step[] = [];
  let parts = 0;
  const add = (step: Step): number => {
    if (steps.push(step) > STEPS_MAX) throw new Unsupported();
    return steps.length - 1;
  };
  const emit = (at: Node): void => {
    // Repeated empty groups add no steps.
    if (++parts > 4 * STEPS_MAX) throw new Unsupported();
    switch (at.is) {
      case 'char': case 'at': add(at); break;
      case 'all': for (const part of at.of) emit(part); break;
      case 'any': {
        const split: Step = { is: 'split', to: [] };
        add(split);
        const ends: { is: 'split'; to: number[] }[] = [];
        for (const part of at.of) {
          split.to.push(steps.length);
          emit(part);
          const end = { is: 'split' as const, to: [] };
          add(end);
          ends.push(end);
        }
        for (const end of ends) end.to.push(steps.length);
        break;
      }
      case 'times': {
        for (let n = 0; n < at.least; n++) emit(at.of);
        if (at.most === Infinity) {
          const split: Step = { is: 'split', to: [steps.length + 1] };
          const begin = add(split);
          emit(at.of);
          add({ is: 'split', to: [begin] });
          split.to.push(steps.length);
        } else {
          const splits: { is: 'split'; to: number[] }[] = [];
          for (let n = at.least; n < at.most; n++) {
            const split = { is: 'split' as const, to: [steps.length + 1] };
            add(split);
            splits.push(split);
            emit(at.of);
          }
          for (const split of splits) split.to.push(steps.length);
        }
        break;
      }
    }
  };
  emit(node);
  add({ is: 'end' });
  return steps;
}

function holds(what: '^' | '$' | 'b' | 'B', codes: readonly number[], n: number): boolean {
  if (what === '^') return n === 0;
  if (what === '$') return n === codes.length;
  const word = (code: number | undefined) => code !== undefined && within(WORD, code);
  return (word(codes[n - 1]) !== word(codes[n])) === (what === 'b');
}

function run(steps: readonly Step[], text: string): boolean {
  const codes = [...text].map((c) => c.codePointAt(0) ?? 0);
  const seen = new Int32Array(steps.length).fill(-1);
  let now: number[] = [];
  let next: number[] = [];
  /** Adds a step and what follows it without a character. True if the pattern is at its end. */
  const reach = (into: number[], first: number, n: number): boolean => {
    const due = [first];
    for (let at = due.pop(); at !== undefined; at = due.pop()) {
      if (seen[at] === n) continue;
      seen[at] = n;
      const step = steps[at] as Step;
      if (step.is === 'end') return true;
      if (step.is === 'char') into.push(at);
      else if (step.is === 'split') due.push(...step.to);
      else if (holds(step.what, codes, n)) due.push(at + 1);
    }
    return false;
  };
  for (let n = 0; n <= codes.length; n++) {
    // A match may begin anywhere.
    if (reach(now, 0, n)) return true;
    const code = codes[n];
    if (code === undefined) return false;
    // Marks of the next place are those with its number, so the two lists do not mix.
    for (const at of now) {
      const step = steps[at] as Step & { is: 'char' };
      if (within(step.ranges, code) !== step.not && reach(next, at + 1, n + 1)) return true;
    }
    [now, next] = [next, now];
    next.length = 0;
  }
  return false;
}

/** A compiled pattern (null: not supported), and its last result: views match it again each time they are drawn. */
interface Known { steps: Step[] | null; text: string | null; found: boolean }
const known = new Map<string, Known>();
/** Maximum number of patterns in the cache. */
const KNOWN_MAX = 300;

/** Whether a text contains a match of a pattern; null if this cannot be told here (not supported, too long). */
export function matches(pattern: string, text: string): boolean | null {
  if (pattern.length > PATTERN_MAX || text.length > MATCHED_MAX) return null;
  let at = known.get(pattern);
  if (!at) {
    at = { steps: null, text: null, found: false };
    try { at.steps = compile(new Parser(pattern).parse()); } catch { /* not supported */ }
    known.set(pattern, at);
    if (known.size > KNOWN_MAX) known.delete(known.keys().next().value as string);
  }
  if (!at.steps) return null;
  if (at.text !== text) {
    at.found = run(at.steps, text);
    at.text = text;
  }
  return at.found;
}
