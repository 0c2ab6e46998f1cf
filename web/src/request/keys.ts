// The keys of the cards: one listener for all. A key acts on the focused card, or on the card of the focused row; if none is focused, it
// only focuses one, so that no key answers a request that the person did not choose.

import type { PlexusCard } from './card.js';

const CARD_KEYS = /^[aAdDeoyrcm1-9n]$/;
/** Keys that mean something else while no card is chosen. */
const ELSEWHERE = /^[nrm]$/;

/** The element that has the focus, through shadow roots. */
function focused(): Element | null {
  let at = document.activeElement;
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  return at;
}

/** The card that contains an element, through shadow roots. */
function cardAround(from: Element | null): PlexusCard | null {
  let at: Node | null = from;
  while (at) {
    if (at instanceof HTMLElement && at.localName === 'plexus-card') return at as PlexusCard;
    at = at.parentNode instanceof ShadowRoot ? at.parentNode.host : at.parentNode;
  }
  return null;
}

/** A list whose rows stand for cards. */
export interface CardList extends HTMLElement {
  /** The open card of the row that contains an element. */
  cardAt(el: Element): PlexusCard | null;
  /** Whether a key means the selection of the list; then the list has handled it. */
  several(key: string): boolean;
}

const cards = new Set<PlexusCard>();
const lists = new Set<CardList>();
/** The card whose key is held down. */
let holding: PlexusCard | null = null;

/** Registers a card; the returned function removes it. */
export function join(card: PlexusCard): () => void {
  cards.add(card);
  return () => cards.delete(card);
}

/** Registers a list; the returned function removes it. */
export function joinList(list: CardList): () => void {
  lists.add(list);
  return () => lists.delete(list);
}

/** The list whose row has the focus. */
function listAround(from: Element | null): CardList | null {
  if (!from?.closest('[role="row"]')) return null;
  const root = from.getRootNode();
  return [...lists].find((list) => list.shadowRoot === root) ?? null;
}

function writes(target: EventTarget | undefined): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return !['checkbox', 'radio', 'button'].includes(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement || target.isContentEditable;
}

/** Whether a card is open and visible. */
function reachable(card: PlexusCard): boolean {
  const box = card.getBoundingClientRect();
  if (!card.open || box.width === 0 || box.height === 0) return false;
  return card.checkVisibility?.({ visibilityProperty: true, contentVisibilityAuto: true }) ?? true;
}

/** Whether no control is focused: controls have keys of their own. */
function plain(at: Element | null): boolean {
  return !at || at === document.body || at.matches('main, h1, h2, [tabindex="-1"]');
}

function modalOpen(): boolean {
  return document.querySelector('dialog:modal') !== null || focused()?.closest('dialog, [role="dialog"]') != null;
}

document.addEventListener('keydown', (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing || !CARD_KEYS.test(event.key)) return;
  if (writes(event.composedPath()[0]) || modalOpen()) return;
  const at = focused();
  const list = listAround(at);
  if (list && !event.repeat && list.several(event.key)) return event.preventDefault();
  const mine = list && at ? list.cardAt(at) : cardAround(at);
  if (mine) {
    if (mine.key(event)) {
      holding = mine;
      event.preventDefault();
    }
    return;
  }
  // The row of a group has no card: no key of a card may mean something else there.
  if (list) return event.preventDefault();
  if (event.repeat || !plain(at) || ELSEWHERE.test(event.key)) return;
  const open = [...cards].filter(reachable).sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top);
  const first = open[0];
  if (!first) return;
  first.choose();
  event.preventDefault();
});

function release(): void {
  holding?.keyUp();
  holding = null;
}
document.addEventListener('keyup', release);
window.addEventListener('blur', release);
