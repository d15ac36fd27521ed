/**
 * `npm run prove upgrade -- --previous DIR [upgrades] [seed]`: stops all instances of 2.0 (DIR is a
 * checkout with its packages) and starts this version on their store, on either engine. Clients
 * keep calling throughout.
 */
import { join, resolve } from "node:path";
import { realProgram, runProgram } from "../../test/end-to-end/running-service.ts";
import { auditGarden } from "../audit.ts";
import { Deployment } from "../deployment.ts";
import { makeSteadyCaller } from "../kept-connection.ts";
import { Ledger } from "../ledger.ts";
import { PlantClient } from "../plant-client.ts";
import { prove, takeOption } from "../proof.ts";
import { Workload } from "../workload.ts";

/** How long clients work before and after. */
const stageMs = 3_000;
/** More than fit into one row of keys. */
const plants = Array.from({ length: 300 }, (_, index) => ({ name: `bulk/${index}` }));

const previous = takeOption("previous");
if (previous === undefined) {
  process.stdout.write("skipped: name a checkout of 2.0 with --previous DIR\n");
  process.exit(0);
}
const oldProgram = join(resolve(previous), "src/main.ts");

await prove({
  trials: "upgrades",
  count: 6,
  async run(seed) {
    const engine = seed % 2 === 0 ? "sqlite" : "postgres";
    const threads = engine === "sqlite" ? [2] : [1, 1];
    const deployment = await Deployment.start({ engine, threads }, oldProgram);
    const { instances } = deployment;
    const variables = { PLANTSTORE_DATABASE: deployment.place.database };
    const { out } = await runProgram(["token", "create", "gardener"], variables, oldProgram);
    const token = out.trim();

    const ledger = new Ledger();
    let turn = 0;
    const pickPort = () => instances[turn++ % instances.length]?.port ?? 0;
    const { call } = makeSteadyCaller({ pickPort });
    const client = new PlantClient({ call }, { ledger, token });
    const keyed = { name: "keyed", isKeyed: true };

    const options = { clients: 8, seed: seed * 10, isOld: true };
    const clients = new Workload([{ token, call }], ledger, options);
    const createBoth = async () => {
      const single = await client.create(keyed);
      const many = await client.createMany({ key: "bulk", plants });
      if (single !== "done" || many !== "done") ledger.fault(`with keys: ${single}, ${many}`);
    };
    await createBoth();
    await Bun.sleep(stageMs);
    await Promise.all(instances.map((instance) => instance.stop()));
    await Promise.all(instances.map((instance) => instance.start(realProgram)));
    // The same keys again. The ledger objects if any of them creates another plant.
    await createBoth();
    await Bun.sleep(stageMs);
    await clients.stop();

    const broken = await auditGarden({ call }, token, ledger);
    const faults = [...broken, ...(await deployment.stop())];
    return { faults, figures: { [engine]: 1, "confirmed writes": ledger.promises } };
  },
});
