// The questions of a request: draft answers, their checks, and the complete answer. Pure.

import { text } from '../text/en.js';
import { oneLine } from '../lib/text.js';
import type { Question, Request } from './wire.js';

const t = text.request;

/** The questions of a request that are answered together; empty for all other requests, also for a request with a single question. */
export function questionsOf(request: Request): readonly Question[] {
  const { subject } = request;
  if (subject?.type !== 'question' || request.observe_only) return [];
  const plain = subject.questions.length === 1 && subject.questions[0]?.id === 'answer';
  return plain ? [] : subject.questions;
}

/** The draft answer to one question. */
export interface DraftAnswer {
  /** Ids of the chosen options. */
  chosen: ReadonlySet<string>;
  /** Free text; counts only while `own` is set, or if the question has no options. */
  words: string;
  own: boolean;
}
export const NOTHING: DraftAnswer = { chosen: new Set(), words: '', own: false };

/** Adds or removes an option; a single-choice question keeps only the last one. */
export function choose(question: Question, draft: DraftAnswer, id: string, on: boolean): DraftAnswer {
  const chosen = question.multiple ? new Set(draft.chosen) : new Set<string>();
  if (on) chosen.add(id);
  else chosen.delete(id);
  return { ...draft, chosen, own: question.multiple ? draft.own : false };
}

/** Sets or clears the choice of free text. */
export const chooseOwn = (question: Question, draft: DraftAnswer, on: boolean): DraftAnswer => ({ ...draft, own: on, chosen: on && !question.multiple ? new Set() : draft.chosen });

const countsOwn = (question: Question, draft: DraftAnswer): boolean => question.free_text && (draft.own || question.options.length === 0);

/** The answer to one question. */
export function answerTo(question: Question, draft: DraftAnswer): string[] {
  // In the order of the question's options.
  const ids = question.options.map((option) => option.id).filter((id) => draft.chosen.has(id));
  const own = countsOwn(question, draft) ? draft.words.trim() : '';
  return own ? [...ids, own] : ids;
}

/** The reason why a draft answer does not fit its question; empty if it does. */
export function wrongWith(question: Question, draft: DraftAnswer): string {
  const answer = answerTo(question, draft);
  if (countsOwn(question, draft) && draft.words.trim() === '' && !(question.optional && !draft.own)) return t.questions.wantsWords;
  if (answer.length === 0) return question.optional ? '' : t.questions.wantsOne;
  const { number, least, most } = question.fits ?? {};
  const low = (n: number) => least !== undefined && n < least;
  const high = (n: number) => most !== undefined && n > most;
  if (question.multiple) {
    if (low(answer.length)) return t.questions.atLeast(least!);
    if (high(answer.length)) return t.questions.atMost(most!);
  } else if (countsOwn(question, draft)) {
    const words = draft.words.trim();
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

/** The answers to all questions, or the first question that lacks something. Optional questions without an answer are left out. */
export function answersOf(questions: readonly Question[], drafts: ReadonlyMap<string, DraftAnswer>): { answers: Record<string, string[]> } | { question: Question; words: string } {
  const answers: Record<string, string[]> = Object.create(null) as Record<string, string[]>;
  for (const question of questions) {
    const draft = drafts.get(question.id) ?? NOTHING;
    const words = wrongWith(question, draft);
    if (words) return { question, words };
    const answer = answerTo(question, draft);
    if (answer.length) answers[question.id] = answer;
  }
  return { answers };
}

/** A question's name in the page's own sentences. */
export const nameOf = (question: Question): string => oneLine(question.header || question.text);
