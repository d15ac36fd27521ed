/** The numbered schemas of an engine, and the statements that lead from one to the newest. */
import { PlantStoreError } from "../domain/errors.ts";

interface Step {
  /** 0: nothing is stored yet. */
  readonly from: number;
  readonly to: number;
  readonly statements: string;
}

export class SchemaSteps {
  readonly newest: number;
  readonly #steps: readonly Step[];

  /** Steps are only ever added. */
  constructor(steps: readonly Step[]) {
    this.#steps = steps;
    this.newest = Math.max(...steps.map(({ to }) => to));
  }

  /** Fails, in words that follow "Cannot open …: ", if no step leads from this schema on. */
  check(found: number): void {
    if (found === this.newest || this.#steps.some(({ from }) => from === found)) return;
    const reason =
      found > this.newest
        ? `its schema is ${found}, and this version knows schemas up to ${this.newest}: use a newer version`
        : `its schema is ${found}, of a version before 0.5: upgrade to 0.5 first, then to this version`;
    throw new PlantStoreError("unavailable", reason);
  }

  /** What to run, one after the other, to get from this schema to the newest. */
  leadingFrom(found: number): string[] {
    this.check(found);
    const step = this.#steps.find(({ from }) => from === found);
    return step ? [step.statements, ...this.leadingFrom(step.to)] : [];
  }
}
