// The answers that a request takes, in the order of their buttons. Pure.
//
// A button's text is the page's own, by the option's kind; the agent's label stands below, quoted. Deny and allow come last: at the
// bottom on a phone, at the right on a desktop. Neither is the default.

import { oneLine } from '../lib/text.js';
import { text } from '../text/en.js';
import { questionsOf } from './questions.js';
import { letsGo, type Answer, type Offer, type Request } from './wire.js';

const t = text.request;

export interface Action {
  /** Unique within the card. */
  id: string;
  /** The page's text for it. */
  verb: string;
  /** The agent's label, if it differs. */
  quoted: string;
  /** `allow` is guarded: armed by reading, held for danger, never by Enter. */
  sense: 'allow' | 'deny';
  /** The key that presses it, beside its number. */
  key: '' | 'a' | 'A' | 'd';
  /** Whether it answers later requests, too. */
  always: boolean;
  /** The answer, without typed or picked values. */
  answer: Answer;
}

const ORDER: Record<string, number> = { allow_always: 0, reject_always: 1, other: 2, reject_once: 3, allow_once: 4 };

const normal = (label: string): string => label.toLowerCase().replace(/[^a-z]/g, '');

function ofOffer(offer: Offer): Action {
  const label = oneLine(offer.label) || offer.id;
  const verb = (t.verbs as Record<string, string>)[offer.kind];
  return {
    id: `option:${offer.id}`,
    verb: verb ?? `“${label}”`,
    quoted: verb && normal(label) !== normal(verb) ? label : '',
    sense: letsGo(offer) ? 'allow' : 'deny',
    key: '',
    always: offer.kind === 'allow_always' || offer.kind === 'reject_always',
    answer: { option_id: offer.id },
  };
}

const own = (id: string, verb: string, sense: Action['sense'], answer: Answer): Action => ({ id, verb, quoted: '', sense, key: '', always: false, answer });

function unkeyed(request: Request): Action[] {
  if (request.observe_only) return [];
  if (questionsOf(request).length) return [own('none', t.noAnswer, 'deny', { answers: {} }), own('send', t.sendAnswers, 'allow', {})];
  if (request.options.length > 0) {
    const place = (offer: Offer) => ORDER[offer.kind] ?? 2;
    return request.options
      .map((offer, n) => ({ offer, n }))
      .sort((a, b) => place(a.offer) - place(b.offer) || a.n - b.n)
      .map(({ offer }) => ofOffer(offer));
  }
  switch (request.type) {
    case 'pick':
      return [own('none', t.chooseNothing, 'deny', { ids: [] }), own('send', t.sendChoice, 'allow', {})];
    case 'prompt':
      return [own('none', t.noAnswer, 'deny', { value: null }), own('send', t.sendAnswer, 'allow', {})];
    case 'confirm':
    case 'permission':
      return [own('deny', t.deny, 'deny', { ok: false }), own('allow', t.allow, 'allow', { ok: true })];
    default:
      return [];
  }
}

/** The actions with their keys; the first of a kind gets its key. */
export function actionsOf(request: Request): Action[] {
  const actions = unkeyed(request);
  const give = (key: Action['key'], fits: (action: Action) => boolean) => {
    const one = actions.find((action) => action.key === '' && fits(action));
    if (one) one.key = key;
  };
  const kind = (action: Action) => request.options.find((offer) => `option:${offer.id}` === action.id)?.kind;
  give('d', (action) => action.sense === 'deny' && !action.always);
  give('a', (action) => (request.options.length > 0 ? kind(action) === 'allow_once' : action.sense === 'allow'));
  give('A', (action) => kind(action) === 'allow_always');
  return actions;
}

/** How the answers are laid out: the two for this request alone; others for it alone; and those that last. */
export function mainOf(actions: readonly Action[]): { main: Action[]; others: Action[]; lasting: Action[] } {
  const once = actions.filter((action) => !action.always);
  const keyed = once.filter((action) => action.key !== '');
  const main = keyed.some((action) => action.key === 'a') ? keyed : once;
  return { main, others: once.filter((action) => !main.includes(action)), lasting: actions.filter((action) => action.always) };
}

/** Whether "remember" is a separate checkbox: the runtime supports it, but has no option for it. */
export const rememberIsBox = (request: Request): boolean =>
  request.allow_remember && !request.observe_only && !request.options.some((offer) => offer.kind === 'allow_always' || offer.kind === 'reject_always');
