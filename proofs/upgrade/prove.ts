/**
 * `npm run prove upgrade -- --previous DIR [upgrades] [seed]`: from 3.0 to this version (DIR is a
 * checkout of 3.0 with its packages), while clients write to one garden without rest. On SQLite, the
 * instance is stopped and this version started on its store. On PostgreSQL, two instances are
 * replaced one by one, and then one by one by 3.0 again, so both versions serve side by side.
 */
import { join, resolve } from "node:path";
import { makeSteadyCaller } from "../../testing/kept-connection.ts";
import { realProgram, runProgram } from "../../testing/running-service.ts";
import { auditGarden } from "../audit.ts";
import { Deployment } from "../deployment.ts";
import { Ledger } from "../ledger.ts";
import { PlantClient } from "../plant-client.ts";
import { prove, takeOption } from "../proof.ts";
import { Workload } from "../workload.ts";

/** How long clients work before and after each replacement. */
const stageMs = 3_000;
/** More than fit into one row of keys. */
const plants = Array.from({ length: 300 }, (_, index) => ({ name: `bulk/${index}` }));

const previous = takeOption("previous");
if (previous === undefined) {
  process.stdout.write("skipped: name a checkout of 3.0 with --previous DIR\n");
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
    // Clients go on with the instance that is up.
    const pickPort = () => {
      const up = instances.filter(({ port }) => port !== 0);
      return up[turn++ % up.length]?.port ?? 0;
    };
    const { call } = makeSteadyCaller({ pickPort });
    const client = new PlantClient({ call }, { ledger, token });
    const keyed = { name: "keyed", isKeyed: true };

    const options = { clients: 8, seed: seed * 10, bulkPlantsMax: 300 };
    const clients = new Workload([{ token, call }], ledger, options);
    const createBoth = async () => {
      const single = await client.create(keyed);
      const many = await client.createMany({ key: "bulk", plants });
      if (single !== "done" || many !== "done") ledger.fault(`with keys: ${single}, ${many}`);
    };
    await createBoth();
    await Bun.sleep(stageMs);
    const programs = engine === "sqlite" ? [realProgram] : [realProgram, oldProgram];
    for (const program of programs) {
      for (const instance of instances) {
        await instance.stop();
        await instance.start(program);
        // The same keys again. The ledger objects if any of them creates another plant.
        await createBoth();
        await Bun.sleep(stageMs);
      }
    }
    await clients.stop();

    const broken = await auditGarden({ call }, token, ledger);
    const faults = [...broken, ...(await deployment.stop())];
    return { faults, figures: { [engine]: 1, "confirmed writes": ledger.promises } };
  },
});
