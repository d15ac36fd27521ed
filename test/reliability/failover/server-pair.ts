/**
 * A PostgreSQL primary and its synchronous standby, on two fixed addresses. The primary can be lost
 * in several ways, and the standby promoted and given a new standby.
 */
import { waitFor } from "../../end-to-end/running-service.ts";
import {
  type PostgresServer,
  runStatement,
  serverPassword,
  startPostgres,
} from "../../postgres-server.ts";
import { send, signalAll } from "../../processes.ts";

const database = "postgres";
const commitsGatherMs = 100;

/** Processes are killed, not machines, so syncs are not needed. */
const flags = ["-c", "fsync=off", "-c", "wal_keep_size=512MB", "-c", "max_connections=400"];

export class ServerPair {
  #primary: PostgresServer;
  #standby: PostgresServer;
  readonly #ports: readonly number[];

  private constructor(primary: PostgresServer, standby: PostgresServer) {
    this.#primary = primary;
    this.#standby = standby;
    this.#ports = [primary.port, standby.port];
  }

  static async start(): Promise<ServerPair> {
    const primary = await startPostgres(flags);
    const pair = new ServerPair(primary, await startStandby(primary));
    await pair.waitForStandby(true);
    return pair;
  }

  /** With both hosts. */
  get url(): string {
    const hosts = this.#ports.map((port) => `127.0.0.1:${port}`).join(",");
    return `postgres://postgres:${serverPassword}@${hosts}/${database}`;
  }

  get primary(): PostgresServer {
    return this.#primary;
  }

  get standby(): PostgresServer {
    return this.#standby;
  }

  get primaryUrl(): string {
    return this.#primary.url(database);
  }

  query(text: string): Promise<Record<string, unknown>[]> {
    return runStatement(this.primaryUrl, text);
  }

  /** Decides whether commits wait for the standby. */
  async waitForStandby(isWaiting: boolean): Promise<void> {
    await this.query(`ALTER SYSTEM SET synchronous_standby_names = '${isWaiting ? "*" : ""}'`);
    await this.query("SELECT pg_reload_conf()");
    await waitFor(async () => {
      const [row] = await this.query("SELECT sync_state FROM pg_stat_replication");
      return row?.sync_state === (isWaiting ? "sync" : "async") ? true : undefined;
    });
  }

  /** From now on, nothing reaches the standby. */
  async stopReplication(): Promise<void> {
    await this.#signal("SIGSTOP", "SELECT pid FROM pg_stat_replication");
  }

  /**
   * From now on the primary sends no responses, but its commits still reach the standby.
   * Replication pauses for a moment first, so that there are such commits.
   */
  async stopAnswers(): Promise<void> {
    const senders = await this.#signal("SIGSTOP", "SELECT pid FROM pg_stat_replication");
    await Bun.sleep(commitsGatherMs);
    await this.#signal(
      "SIGSTOP",
      "SELECT pid FROM pg_stat_activity WHERE application_name = 'plantstore'",
    );
    for (const pid of senders) send(pid, "SIGCONT");
    await Bun.sleep(commitsGatherMs);
  }

  async #signal(signal: NodeJS.Signals, processes: string): Promise<number[]> {
    const pids = (await this.query(processes)).map(({ pid }) => Number(pid));
    for (const pid of pids) send(pid, signal);
    return pids;
  }

  /** Makes the standby the primary. */
  async promote(): Promise<void> {
    [this.#primary, this.#standby] = [this.#standby, this.#primary];
    await this.query("SELECT pg_promote()");
  }

  /** Replaces the lost server with a new standby at the same address. */
  async replaceStandby(): Promise<void> {
    const { port } = this.#standby;
    signalAll(this.#standby, "SIGKILL");
    await this.#standby.stop();
    this.#standby = await startStandby(this.#primary, port);
    await this.waitForStandby(true);
  }

  async stop(): Promise<void> {
    for (const server of [this.#primary, this.#standby]) {
      signalAll(server, "SIGKILL");
      await server.stop();
    }
  }
}

function startStandby(primary: PostgresServer, port?: number): Promise<PostgresServer> {
  const original = { url: primary.url(database), folder: primary.folder };
  return startPostgres(flags, { standbyOf: original, port });
}
