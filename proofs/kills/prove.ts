/**
 * `npm run prove kills [rounds] [seed]`: a service is killed at any moment, or told to stop, and
 * restarted, while clients go on, by default 2,000 times. After every start, all promises made so
 * far are checked against the plants.
 */
import { join } from "node:path";
import { auditStore } from "../../testing/audited-store.ts";
import { makeDice, spread } from "../../testing/dice.ts";
import { fillStore } from "../../testing/filled-store.ts";
import { KeptConnection, makeSteadyCaller, writeRequest } from "../../testing/kept-connection.ts";
import { makeToken, spawnProgram, waitFor } from "../../testing/running-service.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";
import { auditGarden, listPlants } from "../audit.ts";
import { RestartingService } from "../deployment.ts";
import { Ledger } from "../ledger.ts";
import { joinTrials, prove, type Trial } from "../proof.ts";
import { Workload } from "../workload.ts";

/**
 * `load`: at any moment. `first write`: right after a write was confirmed. `start`: before it
 * serves. `stopping`: right after SIGTERM. `stop`: SIGTERM only.
 */
export const moments = ["load", "first write", "start", "stopping", "stop"] as const;
export type Moment = (typeof moments)[number];

const certificates = join(import.meta.dir, "../../test/certificates");
const [certificate, key] = ["server.pem", "server-key.pem"].map((name) => join(certificates, name));
const secureArgs = ["--tls-cert", `${certificate}`, "--tls-key", `${key}`];
const clientsCount = 12;
/** Of a bulk; the service takes no more. */
const bulkPlantsMax = 10_000;
const [loadMs, startMs, stoppingMs] = [250, 250, 40];
/** A list of this many is longer than a connection's buffers. */
const longListPlants = 40_000;

/** A database whose service is ended and started again and again. */
export async function live(options: {
  readonly seed: number;
  /** How the process ends each time. */
  readonly ends: readonly Moment[];
  readonly threads: number;
  readonly isSecure: boolean;
  readonly program?: string;
}): Promise<Trial> {
  const { seed, ends, threads, isSecure, program } = options;
  using folder = makeTemporaryFolder();
  const database = join(folder.path, "plants.db");
  const dice = makeDice(spread(seed));
  const args = ["--threads", String(threads), ...(isSecure ? secureArgs : [])];
  const service = new RestartingService({ database, args, program });
  const ledger = new Ledger();
  const caller = makeSteadyCaller({
    pickPort: () => service.port,
    isSecure,
    // Only a killed process may leave half a response behind.
    onCutShort: async (port, text) => {
      if ((await service.exits.get(port)) === 0) ledger.fault(text);
    },
  });
  const startAndKill = async () => {
    const command = ["serve", "--port", "0", "--database", database, ...args];
    const child = spawnProgram(command, {}, program);
    await Bun.sleep(dice(startMs));
    child.kill("SIGKILL");
    await child.exited;
  };
  // The very first start is killed, too.
  await startAndKill();
  const token = await makeToken({ database }, "gardener");
  const readerToken = await makeToken({ database }, "reader", "--garden", "home");
  if (ends.includes("stop")) await fillStore(database, longListPlants, "Fern".repeat(50));

  async function end(moment: Moment, load: Workload): Promise<void> {
    if (moment === "first write") await load.untilWritten();
    else await Bun.sleep(dice(loadMs));
    if (moment === "stop") return stop();
    if (moment === "stopping") {
      service.process?.signal("SIGTERM");
      await Bun.sleep(dice(stoppingMs));
    }
    await service.kill();
  }

  /** While somebody is in the middle of a long list. */
  async function stop(): Promise<void> {
    const address = { port: service.port, isSecure };
    const connection = await KeptConnection.open(address);
    const list = connection.ask(writeRequest("GET /plants", { token: readerToken })).then(
      ({ status, body }) => {
        // A busy service may refuse it.
        const count = status === 503 ? longListPlants : JSON.parse(body.toString()).length;
        if (count !== longListPlants) ledger.fault(`a long list ended after ${count} plants`);
      },
      (error) => ledger.fault(`cut short: long list: ${error}`),
    );
    const { resume } = await connection.pauseAtFirst();
    const stopping = service.stop().catch((error) => ledger.fault(`${error}`));
    // Until it accepts no more connections.
    await waitFor(() =>
      KeptConnection.open(address).then(
        (other) => void other.close(),
        () => true,
      ),
    );
    resume();
    await list;
    connection.close();
    await stopping;
  }

  const figures: Record<string, number> = {};
  let faults: readonly string[] = [];
  let clients = Promise.resolve();
  try {
    for (const [cycle, moment] of ends.entries()) {
      figures[moment] = (figures[moment] ?? 0) + 1;
      if (moment === "start") {
        await startAndKill();
        continue;
      }
      await service.start();
      // They settle unknown outcomes.
      await clients;
      faults = ledger.audit(await listPlants(caller, token));
      // Later faults would only repeat the first.
      if (faults.length > 0) break;
      const own = { clients: clientsCount, seed: (seed % 1_000) * 1_000 + cycle, bulkPlantsMax };
      const load = new Workload([{ token, call: caller.call }], ledger, own);
      await end(moment, load);
      clients = load.stop();
    }
    if (faults.length === 0) {
      await service.start();
      await clients;
      // Wrong counts and events stay wrong.
      faults = [...(await auditStore(database)), ...(await auditGarden(caller, token, ledger))];
    }
  } finally {
    await service.kill();
  }
  const bulks = ledger.keyed.filter(({ isBulk, isAnswered }) => isBulk && isAnswered).length;
  return { faults, figures: { ...figures, "confirmed writes": ledger.promises, bulks } };
}

if (import.meta.main) {
  const endsOfALife = 50;
  // A start leaves one of two processors idle most of the time.
  const livesAtOnce = 2;
  // Half of the ends come at any moment.
  const mix: readonly Moment[] = ["load", "load", "load", ...moments];
  const liveOnce = (seed: number) => {
    const dice = makeDice(spread(seed + 1));
    const ends = Array.from({ length: endsOfALife }, () => mix[dice(mix.length)] as Moment);
    return live({ seed, ends, threads: 1 + dice(2), isSecure: dice(5) === 0 });
  };
  await prove({
    trials: `rounds of ${livesAtOnce * endsOfALife} ends`,
    count: 20,
    run: async (seed) =>
      joinTrials(await Promise.all([liveOnce(2 * seed), liveOnce(2 * seed + 1)])),
  });
}
