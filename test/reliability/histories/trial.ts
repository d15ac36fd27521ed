/**
 * Clients at once on fresh gardens of a running service, which may get into trouble meanwhile, and
 * what the checker says of the histories that they recorded.
 */
import { makeDice, spread } from "../../dice.ts";
import type { Trial } from "../proof.ts";
import { check } from "./checker.ts";
import { Client, type Notebook } from "./client.ts";
import type { Deployment } from "./deployment.ts";
import type { Instance } from "./instance.ts";
import { type Dice, drawHabits, plan } from "./plan.ts";

/**
 * `killed`: an instance is killed, and started again. `cut off`: PostgreSQL ends all connections of
 * all instances, whatever they are waiting for.
 */
export type Trouble = "none" | "killed" | "cut off";

export interface TrialOptions {
  readonly seed: number;
  readonly trouble: Trouble;
  /** How many of the instances are used; all, unless it is given. */
  readonly instancesMax?: number | undefined;
}

const clientsMin = 4;
const clientsMax = 8;

/** Records what happens in one or two gardens, and checks it. */
export async function tryHistory(deployment: Deployment, options: TrialOptions): Promise<Trial> {
  const { seed, trouble, instancesMax } = options;
  const dice = makeDice(spread(seed));
  const instances = deployment.instances.slice(0, instancesMax);
  const habits = drawHabits(dice);
  const notebooks: Notebook[] = [];
  for (let gardens = 1 + dice(2); gardens > 0; gardens--) {
    const { garden, token } = await deployment.takeGarden();
    notebooks.push({ garden, token, operations: [], seenIds: [], faults: [] });
  }
  const clients = Array.from({ length: clientsMin + dice(clientsMax - clientsMin + 1) });
  const working = clients.map((_, index) => {
    const notebook = notebooks[index % notebooks.length] as Notebook;
    const ownDice = makeDice(spread(seed * 100 + index));
    const client = new Client(`client ${index + 1}`, instances, notebook, ownDice);
    return client.work(plan(index + 1, ownDice, habits, notebook.seenIds));
  });
  let isOver = false;
  const allDone = Promise.all(working).finally(() => {
    isOver = true;
  });
  const answersUntilTrouble = dice((clients.length * habits.callsMin) / 2);
  const isTime = () =>
    isOver || notebooks.flatMap(({ operations }) => operations).length >= answersUntilTrouble;
  const making = makeTrouble(trouble, deployment, instances, dice, isTime);
  const [isTroubled] = await Promise.all([making, allDone]);
  // When all is quiet, every instance shows the same, which is what came of it.
  for (const instance of instances) {
    for (const notebook of notebooks) {
      const visitor = new Client("visitor", [instance], notebook, dice);
      await visitor.work([{ kind: "list", fields: ["id", "name", "tag"] }]);
    }
  }
  const operations = notebooks.flatMap((notebook) => notebook.operations);
  return {
    faults: notebooks.flatMap((notebook) => [...notebook.faults, ...check(notebook)]),
    figures: {
      histories: 1,
      operations: operations.length,
      unknown: operations.filter(({ result }) => !result).length,
      ...(isTroubled && { [trouble]: 1 }),
    },
  };
}

/** At a moment by chance, in the midst of the work; whether it was made. */
async function makeTrouble(
  trouble: Trouble,
  deployment: Deployment,
  instances: readonly Instance[],
  dice: Dice,
  isTime: () => boolean,
): Promise<boolean> {
  if (trouble === "none") return false;
  while (!isTime()) await Bun.sleep(1);
  await Bun.sleep(dice(3));
  if (trouble === "cut off") await deployment.cutOff();
  return trouble === "cut off" || (instances[dice(instances.length)] as Instance).kill();
}
