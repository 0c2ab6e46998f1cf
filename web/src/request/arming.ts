// Decides when a press counts. Pure: clock and positions are arguments.
//
// A card that has just appeared or moved takes no press: the press was meant for what was there before.

import { answers } from '../../../clients/typescript/src/answers.js';

/** Time that a card must have stood still before it accepts an answer, ms. */
export const ARMING_MS = answers.guardMs;
/** Time that a danger button is held down, ms. If shorter, a slow tap would count as a decision. */
export const HOLD_MS = 900;
/** Interval of the checks of the positions of open cards, ms. If longer, a move may be noticed too late. */
export const WATCH_MS = 80;
/** Smaller moves are rounding errors, px. */
const JITTER_PX = 2;

export interface Place {
  top: number;
  left: number;
}

/** Tracks since when an element stands still. */
export class Arming {
  #since: number;
  #place: Place | null = null;

  constructor(now: number) {
    this.#since = now;
  }

  /** Restarts the delay: the element appeared, moved or changed. */
  again(now: number): void {
    this.#since = now;
  }

  /** Reports the position; returns whether it has moved since the last report. */
  seen(place: Place, now: number): boolean {
    const before = this.#place;
    const moved = !before || Math.abs(before.top - place.top) >= JITTER_PX || Math.abs(before.left - place.left) >= JITTER_PX;
    if (moved) {
      this.#place = place;
      this.again(now);
    }
    return moved;
  }

  /** The remaining time until the card accepts a press, ms. */
  left(now: number): number {
    return Math.max(0, this.#since + ARMING_MS - now);
  }

  /** Whether it has stood still long enough. */
  armed(now: number): boolean {
    return now - this.#since >= ARMING_MS;
  }
}
