// Whether somebody is there: a page in front that nobody touches is looked at by nobody.

/** How long without any input somebody is still taken to be there, ms. */
export const LOOKING_MS = 120_000;

/** When somebody last touched something, by a clock that nobody sets. */
export class Attention {
  #at: number;

  constructor(private readonly clock: () => number = () => performance.now()) {
    this.#at = clock();
  }

  /** Somebody is there. Returns whether that is news. */
  touch(): boolean {
    const was = this.here;
    this.#at = this.clock();
    return !was;
  }

  get here(): boolean {
    return this.clock() - this.#at < LOOKING_MS;
  }
}
