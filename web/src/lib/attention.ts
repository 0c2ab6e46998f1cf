// Detects whether the page is used: without input, no user is present.

/** Time after the last input in which the user counts as present, ms. */
export const LOOKING_MS = 120_000;

/** Tracks the last input, by a monotonic clock. */
export class Attention {
  #at: number;

  constructor(private readonly clock: () => number = () => performance.now()) {
    this.#at = clock();
  }

  /** Records an input. Returns whether the user was away before. */
  touch(): boolean {
    const was = this.here;
    this.#at = this.clock();
    return !was;
  }

  get here(): boolean {
    return this.clock() - this.#at < LOOKING_MS;
  }
}
