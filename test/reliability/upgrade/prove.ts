/**
 * `npm run prove upgrade -- --previous DIR [upgrades] [seed]`: all instances of 0.5, in a checkout
 * with its packages, are stopped, and this version goes on with their store, on either engine.
 * Clients go on all the time.
 */
import { join, resolve } from "node:path";
import { runProgram } from "../../end-to-end/running-service.ts";
import { pickPorts } from "../../processes.ts";
import { auditStore, makePlace } from "../audited-store.ts";
import { Ledger } from "../ledger.ts";
import { type Caller, listPlants, PlantClient } from "../plant-client.ts";
import { prove } from "../proof.ts";
import { RestartingService } from "../restarting-service.ts";
import { SteadyCaller } from "../steady-caller.ts";
import { Workload } from "../workload.ts";

/** How long clients work before and after. */
const stageMs = 3_000;
/** More than fit into one row of keys. */
const plants = Array.from({ length: 300 }, (_, index) => ({ name: `bulk/${index}` }));

// Takes the flag out of the arguments, so that only numbers are left.
const at = process.argv.indexOf("--previous");
const [, previous] = at < 0 ? [] : process.argv.splice(at, 2);
if (previous === undefined) {
  process.stdout.write("skipped: name a checkout of 0.5 with --previous DIR\n");
  process.exit(0);
}
const oldProgram = join(resolve(previous), "src/main.ts");

await prove({
  name: "upgrade",
  trials: "upgrades",
  count: 6,
  async run(seed) {
    const engine = seed % 2 === 0 ? "sqlite" : "postgres";
    await using place = await makePlace(engine);
    const { database } = place;
    const runOld = async (...args: string[]) =>
      (await runProgram(args, { PLANTSTORE_DATABASE: database }, oldProgram)).out.trim();
    const token = await runOld("token", "create", "gardener");
    const revoked = await runOld("token", "create", "gardener");
    const { id } = JSON.parse(await runOld("token", "list", "--json")).at(-1);
    await runOld("token", "revoke", id);

    const instances = pickPorts(engine === "sqlite" ? 1 : 2).map(
      (port) => new RestartingService({ database, port }),
    );
    const ledger = new Ledger();
    let turn = 0;
    const pickPort = () => instances[turn++ % instances.length]?.port ?? 0;
    const { call } = new SteadyCaller({ pickPort });
    /** Creates plants with keys. The second time, the keys must be known. */
    const sendKeyed = async (call: Caller["call"]) => {
      const client = new PlantClient({ call }, { ledger, token });
      const single = await client.create({ name: "keyed", isKeyed: true });
      const many = await client.createMany({ key: "bulk", plants });
      if (single !== "done" || many !== "done") ledger.fault(`with keys: ${single}, ${many}`);
    };

    await Promise.all(instances.map((instance) => instance.start(oldProgram)));
    const options = { clients: 8, seed: seed * 10 };
    const clients = new Workload([{ token, call }], ledger, { ...options, isOld: true });
    await sendKeyed((request, init) => call(...toOlder(request, init)));
    await Bun.sleep(stageMs);
    await Promise.all(instances.map((instance) => instance.stop()));
    await Promise.all(instances.map((instance) => instance.start()));
    await sendKeyed(call);
    await Bun.sleep(stageMs);
    await clients.stop();

    const faults = ledger.audit(await listPlants({ call }, token));
    const { status } = await call("GET /plants", { token: revoked });
    if (status !== 401) faults.push(`a revoked token: ${status}`);
    for (const instance of instances) await instance.stop();
    faults.push(...(await auditStore(database)));
    return { faults, figures: { [engine]: 1, "confirmed writes": ledger.promises } };
  },
});

/** 0.5 took many plants as JSON Lines, where it took single ones. */
function toOlder(request: string, init: RequestInit = {}): [request: string, init: RequestInit] {
  if (request !== "POST /plants/bulk") return [request, init];
  const plants: object[] = JSON.parse(String(init.body));
  const headers = new Headers(init.headers);
  headers.set("Content-Type", "application/jsonl");
  const body = plants.map((plant) => JSON.stringify(plant)).join("\n");
  return ["POST /plants", { ...init, headers, body }];
}
