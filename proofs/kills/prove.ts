/**
 * `npm run prove kills [rounds] [seed]`: a service is killed at any moment, or told to stop, and
 * restarted, while clients go on, by default 2,000 times. After every start, all promises made so
 * far are checked against the plants.
 */
import { statSync } from "node:fs";
import { join } from "node:path";
import { makeDice, spread } from "../../test/dice.ts";
import { makeToken } from "../../test/end-to-end/running-service.ts";
import { fillStore } from "../../test/filled-store.ts";
import { makeTemporaryFolder } from "../../test/temporary-folder.ts";
import { auditGarden, checkNextId, listPlants } from "../audit.ts";
import { auditStore } from "../audited-store.ts";
import { RestartingService } from "../deployment.ts";
import { KeptConnection, makeSteadyCaller, writeRequest } from "../kept-connection.ts";
import { Ledger } from "../ledger.ts";
import { joinTrials, prove, type Trial } from "../proof.ts";
import { Workload } from "../workload.ts";

/**
 * `load`: at any moment. `first write`: right after a write was confirmed. `start`: before it
 * serves. `checkpoint`: while the WAL is copied into the file. `stopping`: right after SIGTERM.
 * `stop`: SIGTERM only.
 */
export const moments = ["load", "first write", "start", "checkpoint", "stopping", "stop"] as const;
export type Moment = (typeof moments)[number];

const certificates = join(import.meta.dir, "../../test/certificates");
const [certificate, key] = ["server.pem", "server-key.pem"].map((name) => join(certificates, name));
const secureArgs = ["--tls-cert", `${certificate}`, "--tls-key", `${key}`];
/** More before a checkpoint, to fill the WAL soon. */
const [usualClients, checkpointClients] = [12, 48];
/** Of a bulk; the service takes no more. */
const bulkPlantsMax = 10_000;
const [loadMs, startMs, stoppingMs, checkpointMs] = [250, 250, 40, 2_000];
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
  // The very first start is killed, too.
  await service.startAndKill(dice(startMs));
  const token = await makeToken({ database }, "gardener");
  const readerToken = await makeToken({ database }, "reader", "--garden", "home");
  if (ends.includes("stop")) await fillStore(database, longListPlants, "Fern".repeat(50));

  let clients = Promise.resolve();
  /** Lets clients settle unknown outcomes, and checks all promises. */
  async function restart(): Promise<string[]> {
    await service.start();
    await clients;
    const plants = await listPlants(caller, token);
    return [...ledger.audit(plants), ...(await auditStore(database, { skipsEvents: true }))];
  }

  async function end(moment: Moment, load: Workload): Promise<void> {
    if (moment === "first write") await load.untilWritten();
    else if (moment === "checkpoint") await untilCheckpoint(database);
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
    const connect = () => KeptConnection.open(address).catch(() => undefined);
    for (let other = await connect(); other; other = await connect()) {
      other.close();
      await Bun.sleep(5);
    }
    resume();
    await list;
    connection.close();
    await stopping;
  }

  const figures: Record<string, number> = {};
  let faults: readonly string[] = [];
  try {
    for (const [cycle, moment] of ends.entries()) {
      figures[moment] = (figures[moment] ?? 0) + 1;
      if (moment === "start") {
        await service.startAndKill(dice(startMs));
        continue;
      }
      faults = await restart();
      // Later faults would only repeat the first.
      if (faults.length > 0) break;
      const count = moment === "checkpoint" ? checkpointClients : usualClients;
      const own = { clients: count, seed: (seed % 1_000) * 1_000 + cycle, bulkPlantsMax };
      const load = new Workload([{ token, call: caller.call }], ledger, own);
      await end(moment, load);
      clients = load.stop();
    }
    if (faults.length === 0) faults = await restart();
    // An event that is missing, or too many, stays so.
    if (faults.length === 0) {
      faults = [...(await auditStore(database)), ...(await auditGarden(caller, token, ledger))];
    }
    if (faults.length === 0) faults = await checkNextId(caller, token, ledger.highestId);
  } finally {
    await service.kill();
  }
  const bulks = ledger.keyed.filter(({ isBulk, isAnswered }) => isBulk && isAnswered).length;
  return { faults, figures: { ...figures, "confirmed writes": ledger.promises, bulks } };
}

/** Until pages of the WAL reach the file, or for a while. */
async function untilCheckpoint(database: string): Promise<void> {
  const writtenAtMs = () => statSync(database).mtimeMs;
  const [before, deadlineMs] = [writtenAtMs(), performance.now() + checkpointMs];
  while (writtenAtMs() === before && performance.now() < deadlineMs) await Bun.sleep(1);
}

if (import.meta.main) {
  const endsOfALife = 50;
  // A start leaves one of two processors idle most of the time.
  const livesAtOnce = 2;
  // Half of the ends come at any moment.
  const mix: readonly Moment[] = ["load", "load", "load", "load", ...moments];
  const liveOnce = (seed: number) => {
    const dice = makeDice(spread(seed + 1));
    const ends = Array.from({ length: endsOfALife }, () => mix[dice(mix.length)] as Moment);
    return live({ seed, ends, threads: 1 + dice(2), isSecure: dice(5) === 0 });
  };
  await prove({
    trials: `rounds of ${livesAtOnce * endsOfALife} ends`,
    count: 20,
    async run(seed) {
      const seeds = Array.from({ length: livesAtOnce }, (_, index) => seed * livesAtOnce + index);
      return joinTrials(await Promise.all(seeds.map(liveOnce)));
    },
  });
}
