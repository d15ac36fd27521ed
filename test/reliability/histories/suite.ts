/**
 * The mix that makes a proof: which service, of how many threads and instances, in which trouble.
 */
import type { Trial } from "../proof.ts";
import { Deployment, type Engine, type Layout } from "./deployment.ts";
import { type Trouble, tryHistory } from "./trial.ts";

const layouts: readonly Layout[] = [
  { engine: "sqlite", threads: [1] },
  { engine: "sqlite", threads: [4] },
  { engine: "postgres", threads: [1, 1, 2] },
];

/** By engine, in turn. Most are without, because there are many of those in a second. */
const troubles: Readonly<Record<Engine, readonly Trouble[]>> = {
  sqlite: ["killed", "none", "none", "none", "none", "none", "none"],
  postgres: ["killed", "none", "none", "cut off", "none", "none", "none"],
};

export class Suite {
  readonly #engine: Engine;
  readonly #deployments: readonly Deployment[];

  private constructor(engine: Engine, started: readonly Deployment[]) {
    this.#engine = engine;
    this.#deployments = started;
  }

  static async start(engine: Engine): Promise<Suite> {
    const own = layouts.filter((layout) => layout.engine === engine);
    return new Suite(engine, await Promise.all(own.map((layout) => Deployment.start(layout))));
  }

  /** One history; the seed also tells of what. */
  run(seed: number): Promise<Trial> {
    const trouble = inTurn(troubles[this.#engine], seed);
    const instancesMax = seed % 3 === 0 ? 1 : undefined;
    return tryHistory(inTurn(this.#deployments, seed), { seed, trouble, instancesMax });
  }

  async stop(): Promise<void> {
    for (const deployment of this.#deployments) await deployment.stop();
  }

  /** For a process that is about to end. */
  abandon(): void {
    for (const deployment of this.#deployments) deployment.abandon();
  }
}

function inTurn<Item>(items: readonly Item[], turn: number): Item {
  return items[turn % items.length] as Item;
}
