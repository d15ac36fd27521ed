/**
 * `npm run prove failover [failovers] [seed]`: two instances under load, through HAProxy, on a
 * PostgreSQL primary and its synchronous standby. The primary is lost and the standby promoted,
 * again and again. `npm run prove failover patroni` and `… pgbouncer` do it with those.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeDice, spread } from "../../testing/dice.ts";
import {
  type PostgresServer,
  runStatement,
  serverPassword,
  startPostgres,
} from "../../testing/postgres-server.ts";
import { send, signalAll } from "../../testing/processes.ts";
import { waitFor } from "../../testing/running-service.ts";
import { needProgram } from "../../testing/system-servers.ts";
import { prove, type Trial } from "../proof.ts";
import { startDatabaseProxy } from "./database-proxy.ts";
import { LoadedInstances } from "./loaded-instances.ts";

/**
 * `killed`: with commits that reached the standby but were not confirmed. `cut off`: killed with
 * commits that never reached the standby. `frozen`: silent, with open connections, and back once
 * there is another primary. `shut down`: a planned switchover.
 */
type Loss = "killed" | "cut off" | "frozen" | "shut down";

const database = "postgres";
/** Processes are killed, not machines, so syncs are not needed. */
const flags = ["-c", "fsync=off", "-c", "wal_keep_size=512MB", "-c", "max_connections=400"];
const replication = "SELECT pid FROM pg_stat_replication";
const sessions = "SELECT pid FROM pg_stat_activity WHERE application_name = 'plantstore'";
const commitsGatherMs = 100;
/** Several checks of HAProxy long. */
const backMs = 2_000;
const writesAgainMs = 10_000;

export class FailoverTrial {
  private constructor(
    private primary: PostgresServer,
    private standby: PostgresServer,
    private readonly instances: LoadedInstances,
    private readonly proxy: string,
  ) {}

  static async start(clients?: number): Promise<FailoverTrial> {
    const primary = await startPostgres(flags);
    const { folder, url } = primary;
    // As deploy/haproxy/postgresql.cfg says. Standbys get a copy.
    const path = join(folder, "pg_hba.conf");
    const rules = readFileSync(path, "utf8");
    writeFileSync(path, `host postgres haproxy 127.0.0.1/32 trust\n${rules}`);
    await runStatement(url(database), "CREATE ROLE haproxy LOGIN");
    await runStatement(url(database), "SELECT pg_reload_conf()");
    const standby = await startStandby(primary);
    const urlOf = (port: number) =>
      `postgres://postgres:${serverPassword}@127.0.0.1:${port}/${database}`;
    // Its second server starts as the primary, so the next one is the one that it would prefer.
    const proxy = urlOf(await startDatabaseProxy("postgresql.cfg", [standby, primary], urlOf));
    const instances = await LoadedInstances.start(proxy, clients);
    const trial = new FailoverTrial(primary, standby, instances, proxy);
    await trial.waitForStandby(true);
    return trial;
  }

  /** Decides whether commits wait for the standby. */
  async waitForStandby(isWaiting: boolean): Promise<void> {
    await this.#query(`ALTER SYSTEM SET synchronous_standby_names = '${isWaiting ? "*" : ""}'`);
    await this.#query("SELECT pg_reload_conf()");
    await waitFor(async () => {
      const [row] = await this.#query("SELECT sync_state FROM pg_stat_replication");
      return row?.sync_state === (isWaiting ? "sync" : "async") || undefined;
    });
  }

  /** One loss and promotion under load. Then all promises made so far are checked. */
  async run(loss: Loss, seed: number, extraOutageMs = 0): Promise<Trial> {
    const dice = makeDice(spread(seed));
    const { ledger } = this.instances;
    let untilWritesMs = 0;
    const faults = await this.instances.audit(seed, async (load) => {
      await Bun.sleep(500 + dice(500));
      await this.#lose(loss, dice);
      await Bun.sleep(400 + dice(1_200) + extraOutageMs);
      const promotedAtMs = performance.now();
      [this.primary, this.standby] = [this.standby, this.primary];
      await Promise.all([load.untilWritten(), this.#query("SELECT pg_promote()")]);
      untilWritesMs = performance.now() - promotedAtMs;
      if (untilWritesMs > writesAgainMs) ledger.fault("writes only later than ten seconds");
      if (loss === "frozen") await this.#bringBack();
      await Bun.sleep(300 + dice(500));
      return this.primary.url(database);
    });
    return { faults, figures: { [loss]: 1, "ms until writes": Math.round(untilWritesMs) } };
  }

  /** Replaces the lost server with a new standby at the same address. */
  async replaceStandby(): Promise<void> {
    const { port } = this.standby;
    await end(this.standby);
    this.standby = await startStandby(this.primary, port);
    await this.waitForStandby(true);
  }

  async stop(): Promise<void> {
    await this.instances.stop();
    await end(this.primary);
    await end(this.standby);
  }

  /** The old primary gets no connections, though it would take writes. */
  async #bringBack(): Promise<void> {
    signalAll(this.standby, "SIGCONT");
    await Bun.sleep(backMs);
    const [row] = await runStatement(this.proxy, "SHOW port");
    if (row?.port !== String(this.primary.port)) {
      this.instances.ledger.fault("the old primary gets connections again");
    }
  }

  async #lose(loss: Loss, dice: (sides: number) => number): Promise<void> {
    const primary = this.primary;
    if (loss === "frozen") return signalAll(primary, "SIGSTOP");
    if (loss === "shut down") {
      send(primary.pid, "SIGINT");
      await waitFor(() => (send(primary.pid, 0) ? undefined : true));
      return;
    }
    // From now on, nothing reaches the standby.
    const senders = await this.#freeze(replication);
    await Bun.sleep(commitsGatherMs + dice(300));
    if (loss === "killed") {
      // From now on nobody gets a response, but the commits that have gathered are replicated.
      await this.#freeze(sessions);
      for (const pid of senders) send(pid, "SIGCONT");
      await Bun.sleep(commitsGatherMs);
    }
    signalAll(primary, "SIGKILL");
  }

  async #freeze(processes: string): Promise<number[]> {
    const pids = (await this.#query(processes)).map(({ pid }) => Number(pid));
    for (const pid of pids) send(pid, "SIGSTOP");
    return pids;
  }

  #query(text: string): Promise<Record<string, unknown>[]> {
    return runStatement(this.primary.url(database), text);
  }
}

function startStandby(primary: PostgresServer, port?: number): Promise<PostgresServer> {
  const original = { url: primary.url(database), folder: primary.folder };
  return startPostgres(flags, { standbyOf: original, port });
}

async function end(server: PostgresServer): Promise<void> {
  signalAll(server, "SIGKILL");
  await server.stop();
}

if (import.meta.main) {
  needProgram("haproxy");
  const mode = process.argv[2];
  if (mode === "patroni" || mode === "pgbouncer") {
    process.argv.splice(2, 1);
    // It ends the process.
    await import(`./${mode}.ts`);
  }
  // Kills are the most frequent.
  const mix: readonly Loss[] = ["killed", "killed", "cut off", "cut off", "frozen", "shut down"];
  const trial = await FailoverTrial.start();
  await prove({
    trials: "failovers",
    count: 50,
    async run(seed) {
      // Longer than requests wait for a server, now and then.
      const extraOutageMs = seed % 7 === 0 ? 5_000 : 0;
      const result = await trial.run(mix[seed % mix.length] as Loss, seed, extraOutageMs);
      await trial.replaceStandby();
      return result;
    },
  });
}
