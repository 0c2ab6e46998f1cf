// When a press counts. Pure: the clock and the places come in as arguments.
//
// A card that has just come up, or moved, takes no press: the press was meant for what was there before.

/** How long a card must have stood still before it takes an answer, ms. Shorter, and a tap meant for something else lands on it. */
export const ARMING_MS = 400;
/** How long "danger" is held down, ms. Shorter, and a slow tap is taken for a decision. */
export const HOLD_MS = 900;
/** How often the place of open cards is looked at, ms. Longer, and a move may be noticed too late. */
export const WATCH_MS = 80;
/** A move of less than this is a rounding, px. */
const JITTER_PX = 2;

export interface Place {
  top: number;
  left: number;
}

/** Knows since when one thing stands still. */
export class Arming {
  #since: number;
  #place: Place | null = null;

  constructor(now: number) {
    this.#since = now;
  }

  /** It has just come up, moved, or changed: the delay begins again. */
  again(now: number): void {
    this.#since = now;
  }

  /** Where it is now; whether it has moved since it was last seen. */
  seen(place: Place, now: number): boolean {
    const before = this.#place;
    const moved = !before || Math.abs(before.top - place.top) >= JITTER_PX || Math.abs(before.left - place.left) >= JITTER_PX;
    if (moved) {
      this.#place = place;
      this.again(now);
    }
    return moved;
  }

  /** Whether it has stood long enough. */
  armed(now: number): boolean {
    return now - this.#since >= ARMING_MS;
  }
}
