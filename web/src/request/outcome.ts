// The outcome of a request in words. Pure.

import { text } from '../text/en.js';
import { oneLine } from '../lib/text.js';
import { ROLES, roleOf, type Role } from './actions.js';
import { questionsOf } from './questions.js';
import type { Receipt, Request } from './wire.js';

const t = text.request;

/** The text of a resolved card. `sense` is for the colour only; the text says the same. */
export interface Outcome {
  /** The answer and its author. */
  text: string;
  /** The answer. */
  what: string;
  /** The author of the answer; empty if there was none. */
  who: string;
  sense: 'allow' | 'deny' | 'none';
  at: string | null;
  reason: string;
  /** The edited text that was allowed, as the gateway displays it; empty if nothing was edited. */
  edited: string;
}

/** The role of the answer that was given. */
function given(receipt: Receipt, request: Request): Role {
  const option = request.options.find((one) => one.id === receipt.option_id);
  if (option) return roleOf(option);
  if (receipt.ids?.length || receipt.answers) return 'send';
  const asksText = questionsOf(request).length > 0 || request.type === 'prompt' || request.type === 'pick';
  if (asksText) return receipt.ok === false ? 'skip' : 'send';
  return receipt.ok === false ? 'deny' : receipt.ok ? 'allow_once' : 'send';
}

function answered(receipt: Receipt, request: Request): [string, Outcome['sense']] {
  const role = given(receipt, request);
  const { outcome, sense } = ROLES[role];
  if (role === 'choose') return [t.answeredWith(oneLine(request.options.find((one) => one.id === receipt.option_id)?.label)), 'none'];
  if (receipt.ids?.length) {
    const labels = receipt.ids.map((id) => oneLine(request.items?.find((item) => item.id === id)?.label ?? id));
    return [t.chosen(labels.join(', ')), 'none'];
  }
  return [outcome, role === 'send' || role === 'skip' || sense === 'defer' ? 'none' : sense];
}

/** The outcome of a receipt; `me` is this device. */
export function outcomeOf(receipt: Receipt, request: Request, me?: string): Outcome {
  const by = receipt.resolved_by;
  const name = oneLine(by?.name) || oneLine(by?.device_id);
  const { edited_display, edited } = receipt as { edited_display?: string; edited?: unknown };
  const changed = edited_display ?? (typeof edited === 'string' ? edited : '');
  const plain = { sense: 'none' as const, who: '', at: receipt.at ?? null, reason: oneLine(receipt.reason), edited: oneLine(changed) };
  const ended = (what: string): Outcome => ({ ...plain, text: what, what });
  switch (receipt.state) {
    case 'answered': {
      const [outcome, sense] = answered(receipt, request);
      const what = `${outcome}${edited ? t.edited : ''}`;
      const who = whoOf(receipt, request, me, name);
      return { ...plain, what, who, text: `${what}${who ? t.by(who) : ''}`, sense };
    }
    case 'expired':
      return ended(t.expired);
    case 'withdrawn':
      return ended(by && by.device_id !== 'gateway' && name ? t.withdrawnBy(by.device_id === me ? t.you : name) : t.withdrawn);
    case 'orphaned':
      return ended(t.orphaned);
    default:
      return ended(t.gone);
  }
}

/** The author of an answer. A rule or the agent itself is not a device. */
function whoOf(receipt: Receipt, request: Request, me: string | undefined, name: string): string {
  switch ((receipt as { answered_by?: string }).answered_by) {
    case 'rule':
      return t.rule;
    case 'agent':
      return t.reviewer(oneLine(request.runtime_id));
    default:
      return me && receipt.resolved_by?.device_id === me ? t.you : name;
  }
}
