/**
 * `npm run prove histories [count] [seed]`: concurrent clients on new gardens of a service that is
 * killed, or cut off from its database, while they run. What they record must be possible one
 * operation after the other.
 */
import { makeDice, spread } from "../../testing/dice.ts";
import { Deployment, type Layout } from "../deployment.ts";
import { prove, type Trial } from "../proof.ts";
import { Client, type Notebook } from "./client.ts";
import { check } from "./linearization.ts";
import { callsMin, plan } from "./plan.ts";

/**
 * `killed`: an instance is killed and restarted. `cut off`: PostgreSQL closes all connections of
 * all instances.
 */
export type Trouble = "none" | "killed" | "cut off";

const clientsMin = 4;
const clientsMax = 8;

const layouts: readonly Layout[] = [
  { engine: "sqlite", threads: [1] },
  { engine: "postgres", threads: [1, 1, 2] },
  { engine: "sqlite", threads: [4] },
];

/** One of each layout. */
export function startDeployments(): Promise<Deployment[]> {
  return Promise.all(layouts.map((layout) => Deployment.start(layout)));
}

/** The seed decides on the layout and on the trouble, too. Most histories have none. */
export function runHistory(deployments: readonly Deployment[], seed: number): Promise<Trial> {
  // Half of them are on PostgreSQL.
  const deployment = deployments[seed % 2 === 1 ? 1 : seed % 4] as Deployment;
  if (seed % 7 === 0) return tryHistory(deployment, seed, "killed");
  const isCutOff = seed % 7 === 3 && deployment.engine === "postgres";
  return tryHistory(deployment, seed, isCutOff ? "cut off" : "none");
}

/** Returns which gardens were miscounted. */
export async function stopAll(deployments: readonly Deployment[]): Promise<string[]> {
  return (await Promise.all(deployments.map((each) => each.stop()))).flat();
}

/** Records and checks what happens in one garden. */
export async function tryHistory(
  deployment: Deployment,
  seed: number,
  trouble: Trouble,
): Promise<Trial> {
  const dice = makeDice(spread(seed));
  const reads = [2, 4, 8][dice(3)] as number;
  const tokens = await deployment.takeGarden();
  const notebook: Notebook = { tokens, operations: [], seen: [], faults: [] };
  const { operations, faults } = notebook;
  const clients = clientsMin + dice(clientsMax - clientsMin + 1);
  const running = Array.from({ length: clients }, (_, index) => {
    const ownDice = makeDice(spread(seed * 100 + index));
    const client = new Client(`client ${index}`, deployment, notebook, ownDice);
    return client.run(plan(index, ownDice, reads, notebook));
  });
  if (trouble !== "none") {
    // At a random moment of the work.
    const operationsBefore = dice((clients * callsMin) / 2);
    while (operations.length < operationsBefore && faults.length === 0) await Bun.sleep(1);
    if (trouble === "cut off") await deployment.cutOff();
    else await deployment.kill(dice(deployment.instances.length));
  }
  await Promise.all(running);
  // In the end, every instance has the same plants and events.
  for (const instance of deployment.instances) {
    await new Client("visitor", deployment, notebook, dice, [instance]).run([
      { kind: "list", include: "id" },
      { kind: "count", of: "plants" },
      { kind: "events", after: 0 },
    ]);
  }
  return {
    faults: [...faults, ...check(operations)],
    figures: {
      operations: operations.length,
      unknown: operations.filter(({ response }) => response === undefined).length,
      ...(trouble !== "none" && { [trouble]: 1 }),
    },
  };
}

if (import.meta.main) {
  const deployments = await startDeployments();
  await prove({
    trials: "histories",
    count: 2_000,
    // Each in its own gardens, so that commits contain writes to several.
    atOnce: 16,
    run: (seed) => runHistory(deployments, seed),
    conclude: () => stopAll(deployments),
  });
}
