// Questions to a person, several in one request: what is chosen, what is typed, and the answer that they make. Pure.

import { text } from '../text/en.js';
import { oneLine } from '../lib/text.js';
import type { Question, Request } from './wire.js';

const t = text.request;

/** The questions of a request that are answered all at once; empty for every other request. One that a pick or a prompt says by itself is theirs. */
export function questionsOf(request: Request): readonly Question[] {
  const { subject, type } = request;
  if (subject?.type !== 'question' || request.observe_only) return [];
  const plain = (type === 'pick' || type === 'prompt') && subject.questions.length === 1 && subject.questions[0]?.id === 'answer';
  return plain ? [] : subject.questions;
}

/** What was said to one question so far. */
export interface Said {
  /** Ids of options. */
  chosen: ReadonlySet<string>;
  /** Words of one's own; they count only while `own` is chosen, or where there are no options. */
  words: string;
  own: boolean;
}
export const NOTHING: Said = { chosen: new Set(), words: '', own: false };

/** One more choice, or one less; the last one alone where only one may be. */
export function choose(question: Question, said: Said, id: string, on: boolean): Said {
  const chosen = question.multiple ? new Set(said.chosen) : new Set<string>();
  if (on) chosen.add(id);
  else chosen.delete(id);
  return { ...said, chosen, own: question.multiple ? said.own : false };
}

/** The option of words of one's own. */
export const chooseOwn = (question: Question, said: Said, on: boolean): Said => ({ ...said, own: on, chosen: on && !question.multiple ? new Set() : said.chosen });

const countsOwn = (question: Question, said: Said): boolean => question.free_text && (said.own || question.options.length === 0);

/** What an answer to one question is. */
export function answerTo(question: Question, said: Said): string[] {
  // In the order of the question, whatever the order of pressing.
  const ids = question.options.map((option) => option.id).filter((id) => said.chosen.has(id));
  const own = countsOwn(question, said) ? said.words.trim() : '';
  return own ? [...ids, own] : ids;
}

/** Why what was said to one question does not fit; empty if it does. */
export function wrongWith(question: Question, said: Said): string {
  const answer = answerTo(question, said);
  if (countsOwn(question, said) && said.words.trim() === '' && !(question.optional && !said.own)) return t.questions.wantsWords;
  if (answer.length === 0) return question.optional ? '' : t.questions.wantsOne;
  const { number, least, most } = question.fits ?? {};
  const low = (n: number) => least !== undefined && n < least;
  const high = (n: number) => most !== undefined && n > most;
  if (question.multiple) {
    if (low(answer.length)) return t.questions.atLeast(least!);
    if (high(answer.length)) return t.questions.atMost(most!);
  } else if (countsOwn(question, said)) {
    const words = said.words.trim();
    if (number) {
      const value = Number(words);
      if (!Number.isFinite(value)) return t.questions.aNumber;
      if (number === 'integer' && !Number.isInteger(value)) return t.questions.aWhole;
      if (low(value)) return t.questions.from(least!);
      if (high(value)) return t.questions.upTo(most!);
    } else {
      if (low([...words].length)) return t.questions.longer(least!);
      if (high([...words].length)) return t.questions.shorter(most!);
    }
  }
  return '';
}

/** The whole answer, or which question lacks what. What may be left out and was is not in it. */
export function answersOf(questions: readonly Question[], said: ReadonlyMap<string, Said>): { answers: Record<string, string[]> } | { question: Question; words: string } {
  const answers: Record<string, string[]> = Object.create(null) as Record<string, string[]>;
  for (const question of questions) {
    const one = said.get(question.id) ?? NOTHING;
    const words = wrongWith(question, one);
    if (words) return { question, words };
    const answer = answerTo(question, one);
    if (answer.length) answers[question.id] = answer;
  }
  return { answers };
}

/** A question's name in a sentence of ours. */
export const nameOf = (question: Question): string => oneLine(question.header || question.text);
