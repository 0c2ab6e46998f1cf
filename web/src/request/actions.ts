// The answers that a request takes, as `actions` of crates/protocol/src/answers.rs returns them: verb, order, key and guards come from the
// generated table, and `cases.json` beside that file holds both implementations to the same results. Pure.

import { answers } from '../../../clients/typescript/src/answers.js';
import { visible } from '../lib/text.js';
import { questionsOf } from './questions.js';
import { riskOf, withinLimit, type Answer, type Offer, type Request, type Risk } from './wire.js';

export type Role = keyof typeof answers.roles;
export type Unavailable = keyof typeof answers.unavailable;

/** The properties of a role. */
export interface Rule {
  verb: string;
  outcome: string;
  sense: 'allow' | 'deny' | 'defer';
  key: string | null;
  primary: boolean;
  lasting: boolean;
}

export const ROLES: Readonly<Record<Role, Rule>> = answers.roles;
export const UNAVAILABLE: Readonly<Record<Unavailable, string>> = answers.unavailable;
/** The keys of a request and their meaning. */
export const ANSWER_KEYS = answers.keys;

/** The device that would answer. */
export interface Answerer {
  may_approve: boolean;
  /** Highest risk that it may allow; absent if any. */
  approve_up_to?: Risk | null;
}

export interface Action {
  /** Unique within the request: `option:` and the option's id, or the role. */
  id: string;
  role: Role;
  /** The agent's label, safe to show on one line; empty if it says the same as the verb. */
  label: string;
  /** The key that gives the answer. A digit counts only where it is shown. */
  key: string | null;
  /** Whether the answer needs a long press or a typed word. */
  hold: boolean;
  /** The reason why the device may not give the answer; null if it may. */
  unavailable: Unavailable | null;
  /** The answer without typed or picked values; null for `later`, which sends nothing. */
  answer: Answer | null;
}

export const ruleOf = (action: Pick<Action, 'role'>): Rule => ROLES[action.role];

const ORDER = Object.keys(ROLES) as Role[];
const BY_KIND: Record<string, Role> = { allow_once: 'allow_once', allow_always: 'allow_always', reject_once: 'deny', reject_always: 'deny_always' };

/** The role of an offered option; of an unknown kind, an answer that is guarded like an allowing one. */
export const roleOf = ({ kind, for_session }: Offer): Role => (kind === 'allow_always' && for_session ? 'allow_session' : (BY_KIND[kind] ?? 'choose'));

/** A label without case and punctuation, for comparisons. */
const letters = (label: string): string => label.replace(/[^\p{Alphabetic}\p{N}]/gu, '').toLowerCase();

function labelOf(offer: Offer): string {
  const label = visible(offer.label.trim()).replace(/[\n\t]/g, ' ');
  const chars = [...label];
  return chars.length > answers.labelMax ? `${chars.slice(0, answers.labelMax).join('').trimEnd()}…` : label;
}

function whyNot(request: Request, device: Answerer, { sense, lasting }: Rule): Unavailable | null {
  if (request.observe_only) return 'observe_only';
  if (!device.may_approve) return 'scope';
  if (!device.approve_up_to || sense !== 'allow') return null;
  if (!withinLimit(riskOf(request), device.approve_up_to)) return 'risk';
  return lasting && device.approve_up_to !== 'danger' ? 'lasting' : null;
}

type Plain = [role: Role, answer: Answer, offer?: Offer];

function plainOf(request: Request): Plain[] {
  if (questionsOf(request).length) return [['send', {}], ['skip', { answers: {} }]];
  if (request.options.length) return request.options.map((offer) => [roleOf(offer), { option_id: offer.id }, offer]);
  switch (request.type) {
    case 'pick':
      return [['send', {}], ['skip', { ids: [] }]];
    case 'prompt':
      return [['send', {}], ['skip', { value: null }]];
    case 'confirm':
    case 'permission':
      return [['allow_once', { ok: true }], ['deny', { ok: false }]];
    default:
      return [];
  }
}

/** The answers that a request takes from a device, in the order of the buttons and of Tab. */
export function actionsOf(request: Request, device: Answerer): Action[] {
  const one = (role: Role, answer: Answer | null, offer?: Offer): Action => {
    const rule = ROLES[role];
    const label = offer ? labelOf(offer) : '';
    return {
      id: offer ? `option:${offer.id}` : role,
      role,
      label: letters(label) === letters(rule.verb) ? '' : label,
      key: null,
      hold: rule.sense === 'allow' && riskOf(request) === 'danger',
      unavailable: whyNot(request, device, rule),
      answer,
    };
  };
  const actions = plainOf(request).map(([role, answer, offer]) => one(role, answer, offer));
  if (actions.some((action) => action.unavailable === 'risk')) actions.push(one('later', null));
  actions.sort((a, b) => ORDER.indexOf(a.role) - ORDER.indexOf(b.role));
  const used = new Set<string>();
  let digit = 0;
  for (const action of actions) {
    const { key, lasting, sense } = ruleOf(action);
    if (key && !used.has(key)) action.key = key;
    else if (!lasting && sense !== 'defer' && digit < 9) action.key = String((digit += 1));
    if (action.key) used.add(action.key);
  }
  return actions;
}

/** The actions by their place: the buttons of the bar, the primary one first, and the menu. */
export function barOf(actions: readonly Action[]): { bar: Action[]; menu: Action[] } {
  const primary = actions.find((action) => ruleOf(action).primary);
  const deny = actions.find((action) => action.key === 'd');
  // Without a primary action, what the agent offers stands side by side.
  const offered = primary ? [primary] : actions.filter((action) => action.role === 'choose');
  const first = offered.length ? offered : actions.filter((action) => ruleOf(action).sense === 'allow');
  const later = actions.filter((action) => action.role === 'later');
  const bar = [...first, ...(deny ? [deny] : []), ...later];
  return { bar, menu: actions.filter((action) => !bar.includes(action)) };
}
