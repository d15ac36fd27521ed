/**
 * `npm run prove upgrade -- --previous DIR [upgrades] [seed]`: all instances of 0.5, in a checkout
 * with its packages, are stopped, and this version goes on with their store, on either engine.
 * Clients go on all the time.
 */
import { join, resolve } from "node:path";
import { type Finished, runProgram } from "../../end-to-end/running-service.ts";
import { pickPorts } from "../../processes.ts";
import { auditStore, makePlace } from "../audited-store.ts";
import { Ledger } from "../ledger.ts";
import { type Caller, listPlants, PlantClient } from "../plant-client.ts";
import { exitOnSignals, prove } from "../proof.ts";
import { RestartingService } from "../restarting-service.ts";
import { SteadyCaller } from "../steady-caller.ts";
import { Workload } from "../workload.ts";

/** How long clients work before and after. */
const stageMs = 3_000;
/** More than fit into one row of keys. */
const linesCount = 300;

const previous = takePrevious();
if (previous === undefined) {
  process.stdout.write("skipped: name a checkout of 0.5 with --previous DIR\n");
  process.exit(0);
}
const oldProgram = join(previous, "src/main.ts");
const [before, after] = [await runOld(["--version"]), await runProgram(["--version"])];
process.stdout.write(`${before.out.trim()}, then ${after.out}`);

const running = new Set<RestartingService>();
process.on("exit", () => {
  for (const instance of running) instance.process?.signal("SIGKILL");
});
exitOnSignals();
const reasons: string[] = [];
let promises = 0;

await prove({
  name: "upgrade",
  trials: "upgrades",
  count: 6,
  async run(seed) {
    const engine = seed % 2 === 0 ? "sqlite" : "postgres";
    await using place = await makePlace(engine);
    const { database } = place;
    const makeToken = async () =>
      (await runOld(["token", "create", "gardener"], database)).out.trim();
    const [token, revoked] = [await makeToken(), await makeToken()];
    const list = await runOld(["token", "list", "--json"], database);
    const { id } = JSON.parse(list.out).at(-1);
    await runOld(["token", "revoke", id], database);

    const instances = pickPorts(engine === "sqlite" ? 1 : 2).map(
      (port) => new RestartingService({ database, port }),
    );
    const ledger = new Ledger();
    let turn = 0;
    const pickPort = () => instances[turn++ % instances.length]?.port ?? 0;
    const caller = new SteadyCaller({ pickPort });
    const { call } = caller;
    const startClients = (options: { isOld?: boolean; linesMax?: number }) =>
      new Workload([{ token, call }], ledger, {
        ...{ clients: 8, seed: seed * 10 + (options.isOld ? 0 : 1), ...options },
      });

    for (const instance of instances) running.add(instance);
    await Promise.all(instances.map((instance) => instance.start(oldProgram)));
    const clients = startClients({ isOld: true });
    // 0.5 took lines where it took single plants.
    await sendKeyed((request, init) => call(request.replace("/bulk", ""), init), token, ledger);
    await Bun.sleep(stageMs);
    await Promise.all(instances.map((instance) => instance.stop()));
    const downAtMs = performance.now();
    await Promise.all(instances.map((instance) => instance.start()));
    const downMs = performance.now() - downAtMs;
    await sendKeyed(call, token, ledger);
    await Bun.sleep(stageMs / 2);
    await clients.stop();
    const newClients = startClients({ linesMax: 1_000 });
    await Bun.sleep(stageMs / 2);
    await newClients.stop();

    const faults = ledger.audit(await listPlants({ call }, token));
    const { status } = await call("GET /plants", { token: revoked });
    if (status !== 401) faults.push(`a revoked token: ${status}`);
    for (const instance of instances) await instance.stop();
    faults.push(...(await auditStore(database)));
    promises += ledger.promises;
    if (caller.reasons.size > 0) reasons.push(caller.listReasons());
    const requests = clients.figures.requests + newClients.figures.requests;
    return { faults, figures: { [engine]: 1, requests, "ms down": Math.round(downMs) } };
  },
  async conclude() {
    const text = `${promises} confirmed writes; retried after: ${reasons.join("; ")}`;
    return { text };
  },
});

/** Creates plants with keys. The second time, the keys must be known. */
async function sendKeyed(call: Caller["call"], token: string, ledger: Ledger): Promise<void> {
  const client = new PlantClient({ call }, { ledger, token });
  const plants = Array.from({ length: linesCount }, (_, line) => ({ name: `lines/${line}` }));
  const single = await client.create({ name: "keyed", isKeyed: true });
  const { outcome: lines } = await client.createMany({ key: "lines", plants });
  if (single !== "done" || lines !== "done") ledger.fault(`with keys: ${single}, ${lines}`);
}

/** Runs a command of the older version. */
function runOld(args: readonly string[], database = ""): Promise<Finished> {
  return runProgram(args, database ? { PLANTSTORE_DATABASE: database } : {}, oldProgram);
}

/** Takes the flag out of the arguments, so that only numbers are left. */
function takePrevious(): string | undefined {
  const at = process.argv.indexOf("--previous");
  const [, path] = at < 0 ? [] : process.argv.splice(at, 2);
  return path && resolve(path);
}
