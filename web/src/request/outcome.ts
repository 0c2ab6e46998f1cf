// The outcome of a request in words. Pure.

import { text } from '../text/en.js';
import { oneLine } from '../lib/text.js';
import { ROLES, roleOf, type Role } from './actions.js';
import { questionsOf } from './questions.js';
import type { Receipt, Request } from './wire.js';

const t = text.request;

/** The text of a resolved card. `sense` is for the colour only; the text says the same. */
export interface Outcome {
  text: string;
  sense: 'allow' | 'deny' | 'none';
  at: string | null;
  reason: string;
  /** The edited text that was allowed, as the gateway displays it; empty if nothing was edited. */
  edited: string;
}

/** The role of the answer that was given. */
function given(receipt: Receipt, request: Request): Role {
  const option = request.options.find((one) => one.id === receipt.option_id);
  if (option) return roleOf(option.kind);
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
  const mine = Boolean(me) && by?.device_id === me;
  const who = mine ? t.you(name) : name;
  const plain = { sense: 'none' as const, at: receipt.at ?? null, reason: oneLine(receipt.reason), edited: oneLine(changed) };
  switch (receipt.state) {
    case 'answered': {
      const [text, sense] = answered(receipt, request);
      return { ...plain, text: `${text}${edited ? t.edited : ''}${who ? t.by(who) : ''}`, sense };
    }
    case 'expired':
      return { ...plain, text: t.expired };
    case 'withdrawn':
      return { ...plain, text: by && by.device_id !== 'gateway' && name ? t.withdrawnBy(who) : t.withdrawn };
    case 'orphaned':
      return { ...plain, text: t.orphaned };
    default:
      return { ...plain, text: t.gone };
  }
}
