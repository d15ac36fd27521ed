/**
 * `npm run prove upgrade -- --previous DIR [upgrades] [seed]`: all instances of 0.5, in a checkout
 * with its packages, are stopped, and this version goes on with their store, on either engine.
 * Clients go on all the time.
 */
import { join, resolve } from "node:path";
import type { Finished } from "../../end-to-end/running-service.ts";
import { auditStore } from "../audited-store.ts";
import { makeRoom } from "../histories/deployment.ts";
import { Ledger } from "../ledger.ts";
import { type Caller, listPlants, PlantClient } from "../plant-client.ts";
import { exitOnSignals, prove } from "../proof.ts";
import { makeCaller, ownVersion, RestartedInstance } from "../restarted-instance.ts";
import { listReasons, RetryingClients } from "../retrying-clients.ts";

/** How long clients work before and after. */
const stageMs = 3_000;
/** More than fit into one row of keys. */
const linesCount = 300;

const previous = takePrevious();
if (previous === undefined) {
  process.stdout.write("skipped: name a checkout of 0.5 with --previous DIR\n");
  process.exit(0);
}
const versionOf = async (folder: string) => (await runCommand(folder, ["--version"])).out.trim();
process.stdout.write(`${await versionOf(previous)}, then ${await versionOf(ownVersion)}\n`);

const running = new Set<RestartedInstance>();
process.on("exit", () => {
  for (const instance of running) instance.kill();
});
exitOnSignals();
const reasons = new Map<string, number>();
let promises = 0;

await prove({
  name: "upgrade",
  trials: "upgrades",
  count: 6,
  async run(seed) {
    const engine = seed % 2 === 0 ? "sqlite" : "postgres";
    const [database, remove] = await makeRoom(engine);
    const makeToken = async () =>
      (await runCommand(previous, ["token", "create", "gardener"], database)).out.trim();
    const [token, revoked] = [await makeToken(), await makeToken()];
    const list = await runCommand(previous, ["token", "list", "--json"], database);
    const { id } = JSON.parse(list.out).at(-1);
    await runCommand(previous, ["token", "revoke", id], database);

    const instances = Array.from(
      { length: engine === "sqlite" ? 1 : 2 },
      () => new RestartedInstance(database),
    );
    const ledger = new Ledger();
    let turn = 0;
    const pickPort = () => instances[turn++ % instances.length]?.port ?? 0;
    const call: Caller["call"] = (request, init) => makeCaller(pickPort())(request, init);
    const startClients = (bulks: number) =>
      new RetryingClients({
        ...{ pickPort, tokens: [token], ledger, reasons, seed: seed * 10 + bulks },
        ...{ singles: 8, bulks, slowReaders: 1 },
      });

    for (const instance of instances) running.add(instance);
    await Promise.all(instances.map((instance) => instance.start(previous)));
    const clients = startClients(0);
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
    const bulkClients = startClients(1);
    await Bun.sleep(stageMs / 2);
    await bulkClients.stop();

    const faults = ledger.audit(await listPlants({ call }, token));
    const { status } = await call("GET /plants", { token: revoked });
    if (status !== 401) faults.push(`a revoked token: ${status}`);
    for (const instance of instances) await instance.stop();
    faults.push(...(await checkRefusals(previous, database)), ...(await auditStore(database)));
    promises += ledger.promises;
    await remove();
    const { requests, "with a retry": retried } = clients.figures;
    return {
      faults,
      figures: { [engine]: 1, requests, "with a retry": retried, "ms down": Math.round(downMs) },
    };
  },
  async conclude() {
    const text = `${promises} confirmed writes; retried after: ${listReasons(reasons)}`;
    return { isFault: false, text };
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

/** The older version does not touch a schema that it does not know. */
async function checkRefusals(folder: string, database: string): Promise<string[]> {
  const faults: string[] = [];
  const { exitCode } = await runCommand(folder, ["token", "list"], database);
  if (exitCode !== 1) faults.push(`a command of the older version ends with ${exitCode}`);
  const instance = new RestartedInstance(database);
  try {
    await instance.start(folder);
    faults.push("an instance of the older version starts again");
  } catch (error) {
    if (!`${error}`.includes("newer version")) faults.push(`no reason is given: ${error}`);
  } finally {
    instance.kill();
  }
  return faults;
}

/** Runs a command of a checkout, as its user does. */
async function runCommand(
  folder: string,
  args: readonly string[],
  database = "",
): Promise<Finished> {
  const child = Bun.spawn([join(folder, "bin/plantstore"), ...args], {
    env: { PATH: process.env.PATH ?? "", ...(database && { PLANTSTORE_DATABASE: database }) },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, errors, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { out, errors, exitCode };
}

/** Takes the flag out of the arguments, so that only numbers are left. */
function takePrevious(): string | undefined {
  const at = process.argv.indexOf("--previous");
  const [, path] = at < 0 ? [] : process.argv.splice(at, 2);
  return path && resolve(path);
}
