/**
 * How often a test waits for what it keeps away on purpose: a service that restarts, a garden that
 * is locked. Everywhere else, a refusal is a failure.
 */

const pauseMs = 100;

export class Patience {
  waits = 0;

  /** Requests that share it may wait this often together. */
  constructor(private readonly waitsMax = 50) {}

  /** Waits before a request is sent again, or fails with why it was refused. */
  async wait(reason: unknown): Promise<void> {
    if (this.waits++ >= this.waitsMax) throw new Error(`Refused ${this.waits} times: ${reason}`);
    await Bun.sleep(pauseMs);
  }
}
