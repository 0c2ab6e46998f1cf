// What the card needs to know of a request beyond its shape. Pure.

import type { Answer, Item, Offer, Question, Receipt, Request, Resolver, Risk } from '../wire/types.js';

export type { Answer, Item, Offer, Question, Receipt, Request, Resolver, Risk };

/** How risky a request is: the gateway's word; from a gateway that says none, what the agent itself says. */
export const riskOf = (request: Request): Risk => request.risk ?? (request.danger ? 'danger' : 'elevated');

const LEVELS: Record<Risk, number> = { low: 0, elevated: 1, danger: 2 };
/** Whether a device that may answer up to `limit` (absent: everything) may answer this. */
export const withinLimit = (risk: Risk, limit?: Risk | null): boolean => !limit || LEVELS[risk] <= LEVELS[limit];

/** Whether choosing it may let the agent go ahead: what must be guarded. What we do not know might. */
export const letsGo = (offer: Offer): boolean => offer.kind !== 'reject_once' && offer.kind !== 'reject_always';
