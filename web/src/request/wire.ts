// Properties of a request that the card derives. Pure.

import type { Answer, Item, Offer, Question, Receipt, Request, Resolver, Risk } from '../wire/types.js';

export type { Answer, Item, Offer, Question, Receipt, Request, Resolver, Risk };

/** The risk of a request as the gateway judged it; from an older gateway without risk, the agent's own claim. */
export const riskOf = (request: Request): Risk => request.risk ?? (request.danger ? 'danger' : 'elevated');

/** The icon of each risk. */
export const RISK_ICON = { low: 'check', elevated: 'warn', danger: 'danger' } as const;

const LEVELS: Record<Risk, number> = { low: 0, elevated: 1, danger: 2 };
/** Whether a device that may allow up to `limit` (absent: everything) may allow this. */
export const withinLimit = (risk: Risk, limit?: Risk | null): boolean => !limit || LEVELS[risk] <= LEVELS[limit];
