// The parser of `formatString`: text with `${..}`, which holds a path, a literal, or a call with named arguments.

/** An expression: a literal, a path of the data, a call. */
export type Expression = string | number | boolean | { path: string } | { call: string; args: { [name: string]: Expression } };

/** Deepest nesting of expressions. */
const DEPTH = 50;
/** Maximum length of a text with expressions, in characters. */
const LONG = 65_536;
const NUMBER = /^\d+\.?\d*$/;

/** The text is no valid expression. */
export class BadExpression extends Error {}

const isWord = (c: string): boolean => /^[A-Za-z0-9]$/.test(c);
const isPath = (c: string): boolean => /^[A-Za-z0-9/._~-]$/.test(c);

class Scanner {
  at = 0;
  constructor(readonly text: string) {}
  get ended(): boolean { return this.at >= this.text.length; }
  get next(): string { return this.text[this.at] ?? ''; }
  take(): string { return this.text[this.at++] ?? ''; }
  sees(what: string): boolean { return this.text.startsWith(what, this.at); }
  space(): void { while (!this.ended && /\s/.test(this.next)) this.at++; }
  while(test: (c: string) => boolean): string {
    const from = this.at;
    while (!this.ended && test(this.next)) this.at++;
    return this.text.slice(from, this.at);
  }
}

/** The parts of a text: literal pieces and expressions. */
export function parse(text: string): Expression[] {
  if (!text.includes('${')) return [text];
  if (text.length > LONG) throw new BadExpression('too long');
  const parts: Expression[] = [];
  const scanner = new Scanner(text);
  let literal = '';
  const settle = () => { if (literal) parts.push(literal); literal = ''; };
  while (!scanner.ended) {
    if (scanner.sees('${')) {
      settle();
      scanner.at += 2;
      parts.push(whole(inner(scanner), 1));
    } else if (scanner.sees('\\${')) {
      scanner.at += 3;
      literal += '${';
    } else literal += scanner.take();
  }
  settle();
  return parts.filter((part) => part !== '');
}

/** The expression before the closing brace. */
function inner(scanner: Scanner): string {
  const from = scanner.at;
  for (let open = 1; !scanner.ended;) {
    const c = scanner.take();
    if (c === '{') open++;
    else if (c === '}') { if (--open === 0) return scanner.text.slice(from, scanner.at - 1); }
    else if (c === "'" || c === '"') string(scanner, c);
  }
  throw new BadExpression('} is missing');
}

function whole(text: string, depth: number): Expression {
  const scanner = new Scanner(text.trim());
  const made = expression(scanner, depth);
  if (!scanner.ended) throw new BadExpression(scanner.text.slice(scanner.at, scanner.at + 40));
  return made;
}

function expression(scanner: Scanner, depth: number): Expression {
  if (depth > DEPTH) throw new BadExpression('too deep');
  scanner.space();
  if (scanner.ended) return '';
  if (scanner.sees('${')) {
    scanner.at += 2;
    return whole(inner(scanner), depth + 1);
  }
  const c = scanner.next;
  if (c === "'" || c === '"') { scanner.at++; return string(scanner, c); }
  if (/\d/.test(c)) {
    const digits = scanner.while((d) => /[\d.]/.test(d));
    if (!NUMBER.test(digits)) throw new BadExpression(digits);
    return Number(digits);
  }
  for (const [word, value] of [['true', true], ['false', false], ['null', '']] as const) {
    const after = scanner.text[scanner.at + word.length] ?? '';
    if (scanner.sees(word) && !isWord(after) && after !== '_') { scanner.at += word.length; return value; }
  }
  const token = scanner.while(isPath);
  scanner.space();
  if (scanner.next === '(') return call(token, scanner, depth);
  return token ? { path: token } : '';
}

function call(name: string, scanner: Scanner, depth: number): Expression {
  scanner.at++;
  const args: { [name: string]: Expression } = Object.create(null);
  scanner.space();
  while (!scanner.ended && scanner.next !== ')') {
    const arg = scanner.while((c) => isWord(c) || c === '_');
    scanner.space();
    if (!arg || scanner.take() !== ':') throw new BadExpression(`: is missing in ${name}`);
    args[arg] = expression(scanner, depth + 1);
    scanner.space();
    if (scanner.next === ',') { scanner.at++; scanner.space(); }
  }
  if (scanner.take() !== ')') throw new BadExpression(`) is missing in ${name}`);
  return { call: name, args };
}

/** The rest of a string literal. */
function string(scanner: Scanner, quote: string): string {
  let out = '';
  while (!scanner.ended) {
    const c = scanner.take();
    if (c === quote) break;
    if (c !== '\\') { out += c; continue; }
    const escaped = scanner.take();
    out += { n: '\n', t: '\t', r: '\r' }[escaped] ?? escaped;
  }
  return out;
}
