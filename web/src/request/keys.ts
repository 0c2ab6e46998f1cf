// The keys of the cards: one listener for all. A key acts on the focused card; if no card is focused, it only focuses one, so that
// no key answers a request that the person did not choose.

import type { PlexusCard } from './card.js';

const CARD_KEYS = /^[aAdDeo1-9]$/;

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

const cards = new Set<PlexusCard>();
/** The card whose key is held down. */
let holding: PlexusCard | null = null;

/** Registers a card; the returned function removes it. */
export function join(card: PlexusCard): () => void {
  cards.add(card);
  return () => cards.delete(card);
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
  const mine = cardAround(at);
  if (mine) {
    if (mine.key(event)) {
      holding = mine;
      event.preventDefault();
    }
    return;
  }
  if (event.repeat || !plain(at)) return;
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
