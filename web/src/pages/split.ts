/** A command line as words: quotes and backslashes as in a shell, nothing else of a shell. */
export function split(line: string): string[] {
  const words: string[] = [];
  let word: string | null = null;
  let quote = '';
  for (let i = 0; i < line.length; i += 1) {
    const c = line[i] ?? '';
    if (c === '\\' && quote !== "'" && i + 1 < line.length) { i += 1; word = (word ?? '') + line[i]; }
    else if (quote) { if (c === quote) quote = ''; else word += c; }
    else if (c === '"' || c === "'") { quote = c; word ??= ''; }
    else if (/\s/.test(c)) { if (word !== null) words.push(word); word = null; }
    else word = (word ?? '') + c;
  }
  if (word !== null) words.push(word);
  return words;
}
