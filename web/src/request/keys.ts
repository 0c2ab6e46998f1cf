// The keys of the cards: a key acts on the focused card, or on the card of the focused row, and on no other. Whether a key is a command at all
// is decided in lib/keys.ts.

import { around, byKey, claim } from '../lib/keys.js';
import { ANSWER_KEYS } from './actions.js';
import { ARMING_MS } from './arming.js';
import type { PlexusCard } from './card.js';

/** The answers' own keys, the digits among them, and those that show what is asked. */
const CARD_KEYS = new Set([...ANSWER_KEYS.map(([key]) => key), ...'123456789', 'c', 'o']);

/** A list whose rows stand for cards. */
export interface CardList extends HTMLElement {
  /** The open card of the row that contains an element. */
  cardAt(el: Element): PlexusCard | null;
  /** The effect of a key on the selection of the list; null if the key has another meaning. */
  several(key: string): (() => void) | null;
}

const lists = new Set<CardList>();
/** The time when each card, or its row, got the focus. */
const chosenAt = new WeakMap<PlexusCard, number>();

/** The card that contains an element. */
export const cardAround = (from: Element | null): PlexusCard | null => around(from, (el) => el.localName === 'plexus-card') as PlexusCard | null;

/** The list whose row has the focus. */
function listAround(from: Element | null): CardList | null {
  if (!from?.closest('[role="row"]')) return null;
  const root = from.getRootNode();
  return [...lists].find((list) => list.shadowRoot === root) ?? null;
}

/** Restarts the guard of the keys of a card that got the focus, and that of its buttons if a key gave it the focus. */
function chosen(card: PlexusCard | null): void {
  if (!card) return;
  chosenAt.set(card, performance.now());
  if (byKey()) card.rearm();
}

/** Registers a card; the returned function removes it. */
export function join(card: PlexusCard): () => void {
  const focus = () => chosen(card);
  card.addEventListener('focusin', focus);
  return () => card.removeEventListener('focusin', focus);
}

/** Registers a list; the returned function removes it. */
export function joinList(list: CardList): () => void {
  const focus = (event: Event) => { if (event.target instanceof Element && event.target.matches('[role="row"]')) chosen(list.cardAt(event.target)); };
  const root = list.shadowRoot;
  lists.add(list);
  root?.addEventListener('focusin', focus);
  return () => {
    lists.delete(list);
    root?.removeEventListener('focusin', focus);
  };
}

const nothing = { run: () => {} };

claim((at, key) => {
  if (!CARD_KEYS.has(key)) return null;
  const list = listAround(at);
  const several = list?.several(key);
  if (several) return { run: several };
  const card = list && at ? list.cardAt(at) : cardAround(at);
  // The row of a group has no card, and an answered card takes no key: no key of a card may mean something else there.
  if (!card) return list ? nothing : null;
  if (!card.open || !card.armed || performance.now() - (chosenAt.get(card) ?? -Infinity) < ARMING_MS) return nothing;
  return { run: (event) => { card.key(event); }, release: () => card.keyUp() };
});
