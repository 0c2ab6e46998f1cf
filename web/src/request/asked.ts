// The question of a request in one line, the key of requests with the same question, and the part of the agent's text that adds to the
// gateway's. Pure.
//
// The texts are untrusted: every string is cut, put on one line, and its hidden characters are made visible.

import { oneLine } from '../lib/text.js';
import { text } from '../text/en.js';
import type { Request } from './wire.js';

const t = text.request.rows;

/** Maximum length of a part of a text in a row, in characters: more is never visible in one line. */
const LINE_CHARS = 320;
/** Maximum length of a file name that a row shows completely, in characters. */
const NAME_CHARS = 40;

/** One line. Where there is no room, `head` loses its end; `tail` and `more` stay. */
export interface AskedLine {
  /** The action in the page's own words; empty for a command, which needs no verb. */
  verb: string;
  head: string;
  tail: string;
  /** Counts: changed lines, further files or questions. */
  more: string;
  /** Whether `head` is the agent's own text, to be quoted. */
  quoted: boolean;
}

const cut = (words: string): string => oneLine(words.slice(0, LINE_CHARS));

const line = (verb: string, head: string, more: Partial<AskedLine> = {}): AskedLine => ({ verb, head: cut(head), tail: '', more: '', quoted: false, ...more });

/** The last line of a command's display, which names its folder. */
const IN_FOLDER = /\nin [^\n]*$/;

/** A path in two parts, so that a long one loses its middle: the folders, and the file's name. */
function ofPath(path: string): Pick<AskedLine, 'head' | 'tail'> {
  const shown = cut(path);
  const name = shown.slice(shown.lastIndexOf('/') + 1);
  return name && name.length <= NAME_CHARS && name.length < shown.length ? { head: shown.slice(0, -name.length), tail: name } : { head: shown, tail: '' };
}

/** The question of a request, in one line. */
export function lineOf(request: Request): AskedLine {
  const { subject, display } = request;
  switch (subject?.type) {
    case 'command':
      return line('', subject.argv?.length ? subject.argv.join(' ').slice(0, LINE_CHARS) : display.slice(0, LINE_CHARS).replace(IN_FOLDER, ''));
    case 'edit': {
      const [first] = subject.files;
      if (!first) return line(t.edit, display);
      const files = subject.files.length + (subject.more ?? 0) - 1;
      const sum = (of: 'added' | 'removed') => subject.files.reduce((all, file) => all + (file[of] ?? 0), 0);
      return { ...line(t.edit, ''), ...ofPath(first.path), more: [files > 0 ? t.moreFiles(files) : '', t.counts(sum('added'), sum('removed'))].filter(Boolean).join(' ') };
    }
    case 'fetch':
      return line(t.fetch, subject.url);
    case 'plan':
      return line(t.plan, display);
    case 'question': {
      const [first] = subject.questions;
      return line(t.question, first?.text || display, { quoted: true, more: subject.questions.length > 1 ? t.questions(subject.questions.length) : '' });
    }
    case 'unreadable':
      return line(t.unreadable, display);
    case 'tool':
    case undefined:
      break;
  }
  const asks = request.type === 'prompt' || request.type === 'pick';
  return line(asks ? t.question : '', display || request.title, { quoted: asks });
}

/** The question as plain text, for names and announcements. */
export function wordsOf(request: Request): string {
  const { verb, head, tail, more, quoted } = lineOf(request);
  const asked = quoted ? `“${head}${tail}”` : `${head}${tail}`;
  return [verb, asked, more].filter(Boolean).join(' ');
}

const keys = new WeakMap<Request, string>();

/** The common key of requests with the same question: the command itself, else the whole display. Empty if the question is not known
 *  completely. */
export function sameAs(request: Request): string {
  const known = keys.get(request);
  if (known !== undefined) return known;
  const { subject } = request;
  const key = request.display_truncated ? '' : subject?.type === 'command' && subject.argv?.length ? `command ${JSON.stringify(subject.argv)}` : `${subject?.type ?? request.type} ${request.display}`;
  keys.set(request, key);
  return key;
}

/** The words of a text, without what quoting and layout add. */
const flat = (words: string): string => words.replace(/[`'"“”]/g, '').replace(/\s+/g, ' ').trim().toLowerCase();

/** The agent's title and message, each empty where it only repeats what the gateway shows. */
export function agentWords(request: Request): { title: string; message: string } {
  const shown = flat(`${request.display} ${request.subject?.type === 'question' ? request.subject.questions.map((one) => one.text).join(' ') : ''}`);
  const says = (words: string | undefined): string => {
    // Some agents cut their titles.
    const mine = flat(oneLine(words ?? '')).replace(/(?:…|\.\.\.)$/, '');
    return mine && !shown.includes(mine) ? (words ?? '') : '';
  };
  const title = says(request.title);
  const message = says(request.message);
  return { title, message: message && title && flat(title).includes(flat(oneLine(message))) ? '' : message };
}

/** The display of a command without its last line, and the folder which that line names; otherwise the whole display and no folder. */
export function apart(request: Request): { shown: string; folder: string } {
  const { display, subject } = request;
  const last = subject?.type === 'command' && !request.display_truncated ? IN_FOLDER.exec(display) : null;
  return last ? { shown: display.slice(0, last.index), folder: last[0].slice('\nin '.length) } : { shown: display, folder: '' };
}

/** The folder where it would happen: the one that the request names, else the session's, unless the display says it. */
export function folderOf(request: Request, cwd: string | undefined): string {
  const { folder } = apart(request);
  const session = oneLine(cwd);
  return folder || (request.display.endsWith(`\nin ${session}`) ? '' : session);
}

/** Whether it only asks something and does nothing by itself. */
export const asksOnly = (request: Request): boolean => request.subject?.type === 'question' || request.type === 'prompt' || request.type === 'pick';

/** The agent's request as the head of a card: the action in the page's own words, and its object. */
export interface Head {
  words: string;
  target: Pick<AskedLine, 'head' | 'tail'> | null;
  more: string;
}

const h = text.request.heads;

export function headOf(request: Request): Head {
  const { subject } = request;
  const plain = (words: string): Head => ({ words, target: null, more: '' });
  switch (subject?.type) {
    case 'command':
      return plain(h.command);
    case 'edit': {
      const { head, tail, more } = lineOf(request);
      return { words: h.edit, target: subject.files.length ? { head, tail } : null, more };
    }
    case 'fetch':
      return plain(h.fetch);
    case 'plan':
      return plain(h.plan);
    case 'tool':
      return { words: h.tool, target: { head: cut(subject.name), tail: '' }, more: '' };
    case 'question':
      return plain(h.questions(subject.questions.length));
    case 'unreadable':
      return plain(h.unreadable);
    case undefined:
      return plain(h.types[request.type] ?? h.types['permission']!);
    default:
      return plain(h.types['permission']!);
  }
}
