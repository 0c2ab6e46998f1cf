// Detects whether a person uses the page: without input, nobody is looking at it.

/** How long after the last input a person counts as present, ms. */
export const LOOKING_MS = 120_000;

/** Tracks the last input, by a monotonic clock. */
export class Attention {
  #at: number;

  constructor(private readonly clock: () => number = () => performance.now()) {
    this.#at = clock();
  }

  /** Records an input. Returns whether the person was away before. */
  touch(): boolean {
    const was = this.here;
    this.#at = this.clock();
    return !was;
  }

  get here(): boolean {
    return this.clock() - this.#at < LOOKING_MS;
  }
}
