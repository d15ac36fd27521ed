/**
 * How long ago a moment was, by whichever of two clocks says more. What counts for so long from now
 * on is over then, even if the wall clock is set back, or the machine sleeps meanwhile.
 */

export interface Moment {
  readonly wallMs: number;
  readonly monotonicMs: number;
}

export class Clocks {
  constructor(
    /** The time of day, in which tokens say when they expire. It may be set. */
    readonly wallMs: () => number = () => Date.now(),
    /** Nobody can set it, but it may stand still while the machine sleeps. */
    private readonly monotonicMs: () => number = () => performance.now(),
  ) {}

  now(): Moment {
    return { wallMs: this.wallMs(), monotonicMs: this.monotonicMs() };
  }

  msSince(moment: Moment): number {
    return Math.max(this.wallMs() - moment.wallMs, this.monotonicMs() - moment.monotonicMs);
  }
}
