/**
 * `npm run prove:upgrade -- --previous DIR [upgrades] [seed]`: two instances of an older version,
 * in a checkout with its packages, are replaced by this one while clients go on.
 */
import { resolve } from "node:path";
import { makeDatabase, startPostgres } from "../../postgres-server.ts";
import { auditStore } from "../audited-store.ts";
import { Ledger } from "../ledger.ts";
import { listPlants } from "../plant-client.ts";
import { joinTrials, prove } from "../proof.ts";
import { makeCaller, ownVersion, RestartedInstance } from "../restarted-instance.ts";
import { listReasons, RetryingClients } from "../retrying-clients.ts";
import { checkMix, runCommand } from "./mixed-versions.ts";

/** How long each stage lasts: both old, one of each, both new. */
const stageMs = 3_000;

const previous = takePrevious();
if (previous === undefined) {
  process.stdout.write("skipped: name a checkout of an older version with --previous DIR\n");
  process.exit(0);
}
const versionOf = async (folder: string) => (await runCommand(folder, ["--version"])).out.trim();
process.stdout.write(`${await versionOf(previous)}, then ${await versionOf(ownVersion)}\n`);

const server = await startPostgres();
const running = new Set<RestartedInstance>();
process.on("exit", () => {
  for (const instance of running) instance.kill();
});
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(1));
const reasons = new Map<string, number>();
let promises = 0;

await prove({
  name: "upgrade",
  trials: "upgrades",
  count: 5,
  async run(seed) {
    await using database = await makeDatabase(server);
    const { url } = database;
    const { out } = await runCommand(previous, ["token", "create", "gardener"], url);
    const token = out.trim();
    const [one, two] = [new RestartedInstance(url), new RestartedInstance(url)];
    const ledger = new Ledger();
    let turn = 0;
    /** As a load balancer does: the clients' requests go to the instances that are there. */
    const serving = [one, two];
    const pickPort = () => serving[turn++ % serving.length]?.port ?? 0;
    const startClients = (bulks: number) =>
      new RetryingClients({
        ...{ pickPort, tokens: [token], ledger, reasons, seed: seed * 10 + bulks },
        ...{ singles: 8, bulks, slowReaders: 1 },
      });
    const replace = async (instance: RestartedInstance) => {
      serving.splice(serving.indexOf(instance), 1);
      await instance.stop();
      await instance.start();
      serving.push(instance);
    };

    for (const instance of serving) running.add(instance);
    await Promise.all(serving.map((instance) => instance.start(previous)));
    const clients = startClients(0);
    await Bun.sleep(stageMs);
    await replace(one);
    const [mixed] = await Promise.all([
      checkMix({ previous, database: url, old: two.port, fresh: one.port }),
      Bun.sleep(stageMs),
    ]);
    await replace(two);
    await Bun.sleep(stageMs / 2);
    await clients.stop();
    // Only now: the older version may know no lines.
    const bulkClients = startClients(1);
    await Bun.sleep(stageMs / 2);
    await bulkClients.stop();

    const faults = [...mixed.faults];
    for (const { port } of serving) {
      faults.push(...ledger.audit(await listPlants({ call: makeCaller(port) }, token)));
    }
    for (const instance of serving) await instance.stop();
    faults.push(...(await auditStore(url)));
    promises += ledger.promises;
    return joinTrials([
      { faults, figures: clients.figures },
      {
        faults: [],
        figures: { "done twice when repeated at the older one": Number(mixed.isDoubled) },
      },
      { faults: [], figures: bulkClients.figures },
    ]);
  },
  async conclude() {
    await server.stop();
    const text = `${promises} confirmed writes; retried after: ${listReasons(reasons)}`;
    return { isFault: false, text };
  },
});

/** Takes the flag out of the arguments, so that only numbers are left. */
function takePrevious(): string | undefined {
  const at = process.argv.indexOf("--previous");
  const [, path] = at < 0 ? [] : process.argv.splice(at, 2);
  return path && resolve(path);
}
