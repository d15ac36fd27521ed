/**
 * `npm run prove failover pgbouncer [failures] [seed]`: PgBouncer in transaction mode, and the
 * PostgreSQL behind it, fail under load.
 */
import { makeDice, spread } from "../../testing/dice.ts";
import { makeDatabase, startPostgres } from "../../testing/postgres-server.ts";
import { pickPorts, send, signalAll } from "../../testing/processes.ts";
import { needProgram } from "../../testing/system-servers.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";
import { startPooler } from "../../testing/transaction-pooler.ts";
import { prove } from "../proof.ts";
import type { Workload } from "../workload.ts";
import { LoadedInstances } from "./loaded-instances.ts";

/** Restarted as their packages do it. A frozen PostgreSQL is in prove.ts. */
const mix = [
  ["PgBouncer", "restarted"],
  ["PostgreSQL", "restarted"],
  ["PgBouncer", "killed"],
  ["PostgreSQL", "killed"],
  ["PgBouncer", "frozen"],
] as const;
const signals = { restarted: "SIGINT", killed: "SIGKILL", frozen: "SIGSTOP" } as const;
/** Longer than the service waits for a response. */
const frozenMs = 7_000;

needProgram("pgbouncer");
const folder = makeTemporaryFolder();
const [serverPort = 0, poolerPort = 0] = pickPorts(2);
// Processes are killed, not machines, so syncs are not needed.
const startServer = () =>
  startPostgres(["-c", "fsync=off"], { folder: folder.path, port: serverPort });
let server = await startServer();
const database = await makeDatabase(server);
const startPgbouncer = () => startPooler(database.url, poolerPort);
let pooler = await startPgbouncer();
const loaded = await LoadedInstances.start(pooler.url);

await prove({
  trials: "failures",
  count: 20,
  async run(seed) {
    const dice = makeDice(spread(seed));
    const [part, failure] = mix[seed % mix.length] as (typeof mix)[number];
    let gapMs = 0;
    const fail = async (load: Workload) => {
      await Bun.sleep(500 + dice(1_000));
      if (part === "PostgreSQL") {
        if (failure === "killed") signalAll(server, "SIGKILL");
        await server.stop();
      } else {
        send(pooler.pid, signals[failure]);
        if (failure !== "frozen") await pooler.exited;
      }
      // A package restarts it at once; replacing a killed server takes a while.
      if (failure !== "restarted") await Bun.sleep(failure === "frozen" ? frozenMs : dice(2_000));
      if (failure === "frozen") send(pooler.pid, "SIGCONT");
      else if (part === "PostgreSQL") server = await startServer();
      else pooler = await startPgbouncer();
      await load.untilWritten();
      await Bun.sleep(300 + dice(500));
      gapMs = Math.round(load.longestGapMs);
      return pooler.url;
    };
    const faults = await loaded.audit(seed, fail);
    const what = `${part} ${failure}`;
    return { faults, figures: { [what]: 1, [`ms without writes, ${what}`]: gapMs } };
  },
  async conclude() {
    await server.stop();
    folder[Symbol.dispose]();
    return [];
  },
});
