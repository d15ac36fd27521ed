/**
 * Concurrent clients on fresh gardens of a running service, which is killed or cut off from its
 * database meanwhile. The recorded histories are checked.
 */
import { makeDice, spread } from "../../dice.ts";
import type { Engine } from "../audited-store.ts";
import type { Trial } from "../proof.ts";
import type { RestartingService } from "../restarting-service.ts";
import { Client, type Notebook } from "./client.ts";
import { Deployment, type Layout } from "./deployment.ts";
import { check } from "./linearization.ts";
import { callsMin, drawHabits, plan } from "./plan.ts";

/**
 * `killed`: an instance is killed and restarted. `cut off`: PostgreSQL closes all connections of
 * all instances.
 */
export type Trouble = "none" | "killed" | "cut off";

const clientsMin = 4;
const clientsMax = 8;

const layouts: readonly Layout[] = [
  { engine: "sqlite", threads: [1] },
  { engine: "sqlite", threads: [4] },
  { engine: "postgres", threads: [1, 1, 2] },
];

/** Most histories have none, because those are fast. */
const troubles: Readonly<Record<Engine, readonly Trouble[]>> = {
  sqlite: ["killed", "none", "none", "none", "none", "none", "none"],
  postgres: ["killed", "none", "none", "cut off", "none", "none", "none"],
};

/** Every layout of one engine. The seed of a history also decides on layout and trouble. */
export class Suite {
  readonly #engine: Engine;
  readonly #deployments: readonly Deployment[];

  private constructor(engine: Engine, deployments: readonly Deployment[]) {
    this.#engine = engine;
    this.#deployments = deployments;
  }

  static async start(engine: Engine): Promise<Suite> {
    const own = layouts.filter((layout) => layout.engine === engine);
    return new Suite(engine, await Promise.all(own.map((layout) => Deployment.start(layout))));
  }

  run(seed: number): Promise<Trial> {
    const instancesMax = seed % 3 === 0 ? 1 : undefined;
    const trouble = pick(troubles[this.#engine], seed);
    return tryHistory(pick(this.#deployments, seed), seed, trouble, instancesMax);
  }

  /** Returns which gardens were miscounted. */
  async stop(): Promise<string[]> {
    return (await Promise.all(this.#deployments.map((each) => each.stop()))).flat();
  }
}

function pick<Item>(items: readonly Item[], number: number): Item {
  return items[number % items.length] as Item;
}

/** Records and checks what happens in one or two gardens. */
export async function tryHistory(
  deployment: Deployment,
  seed: number,
  trouble: Trouble,
  instancesMax?: number,
): Promise<Trial> {
  const dice = makeDice(spread(seed));
  const instances = deployment.instances.slice(0, instancesMax);
  const habits = drawHabits(dice);
  const notebooks: Notebook[] = [];
  for (let gardens = 1 + dice(2); gardens > 0; gardens--) {
    const { garden, token } = await deployment.takeGarden();
    notebooks.push({ garden, token, operations: [], seenIds: [], seen: [], faults: [] });
  }
  const clients = Array.from({ length: clientsMin + dice(clientsMax - clientsMin + 1) });
  const running = clients.map((_, index) => {
    const notebook = pick(notebooks, index);
    const ownDice = makeDice(spread(seed * 100 + index));
    const client = new Client(`client ${index + 1}`, deployment, instances, notebook, ownDice);
    return client.run(plan(index + 1, ownDice, habits, notebook));
  });
  let isOver = false;
  const allDone = Promise.all(running).finally(() => {
    isOver = true;
  });
  // At a random moment of the work.
  const operationsBefore = dice((clients.length * callsMin) / 2);
  const isTime = () =>
    isOver || notebooks.flatMap(({ operations }) => operations).length >= operationsBefore;
  const makeTrouble = async () => {
    if (trouble === "none") return false;
    while (!isTime()) await Bun.sleep(1);
    await Bun.sleep(dice(3));
    if (trouble === "killed") {
      return deployment.kill(instances[dice(instances.length)] as RestartingService);
    }
    await deployment.cutOff();
    return true;
  };
  const [isTroubled] = await Promise.all([makeTrouble(), allDone]);
  // In the end, every instance lists and counts the same plants.
  for (const instance of instances) {
    for (const notebook of notebooks) {
      const visitor = new Client("visitor", deployment, [instance], notebook, dice);
      await visitor.run([{ kind: "list", fields: ["id", "name", "tag"] }, { kind: "count" }]);
    }
  }
  const operations = notebooks.flatMap((notebook) => notebook.operations);
  return {
    faults: notebooks.flatMap(({ faults, operations }) => [...faults, ...check(operations)]),
    figures: {
      histories: 1,
      operations: operations.length,
      unknown: operations.filter(({ result }) => !result).length,
      preconditions: operations.filter(({ call }) => "ifMatch" in call || "isForNew" in call)
        .length,
      "that failed": operations.filter(
        ({ result }) => result?.kind === "refused" && result.status === 412,
      ).length,
      ...(isTroubled && { [trouble]: 1 }),
    },
  };
}
