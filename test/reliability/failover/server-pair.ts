/**
 * A PostgreSQL server and the standby that its commits wait for, on two addresses that stay. The
 * one that takes writes can be lost in several ways, and the other one promoted and given a new
 * standby.
 */
import { waitFor } from "../../end-to-end/running-service.ts";
import {
  type PostgresServer,
  runStatement,
  serverPassword,
  startPostgres,
} from "../../postgres-server.ts";

const database = "postgres";
const commitsGatherMs = 100;

/** Processes are killed, not machines, so nothing has to wait for the disk. */
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

  /** The address with both hosts. */
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

  query(text: string): Promise<Record<string, unknown>[]> {
    return runStatement(this.#primary.url(database), text);
  }

  /** Whether commits wait for the standby. */
  async waitForStandby(isWaiting: boolean): Promise<void> {
    await this.query(`ALTER SYSTEM SET synchronous_standby_names = '${isWaiting ? "*" : ""}'`);
    await this.query("SELECT pg_reload_conf()");
    await waitFor(async () => {
      const [row] = await this.query("SELECT sync_state FROM pg_stat_replication");
      return row?.sync_state === (isWaiting ? "sync" : "async") ? true : undefined;
    });
  }

  /** From now on, nothing that the primary writes reaches the standby. */
  async stopReplication(): Promise<void> {
    await this.#signal("SIGSTOP", "SELECT pid FROM pg_stat_replication");
  }

  /**
   * From now on, nobody hears from the primary, while what it wrote still reaches the standby:
   * commits are made to wait for it first, so that there are some.
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

  /** The other server takes writes from now on; the pair knows it as the primary. */
  async promote(): Promise<void> {
    [this.#primary, this.#standby] = [this.#standby, this.#primary];
    await this.query("SELECT pg_promote()");
  }

  /**
   * What is left of the server that was lost goes, and one that follows the primary takes its
   * place.
   */
  async replaceStandby(): Promise<void> {
    const { port } = this.#standby;
    await signalAll(this.#standby, "SIGKILL");
    await this.#standby.stop();
    this.#standby = await startStandby(this.#primary, port);
    await this.waitForStandby(true);
  }

  async stop(): Promise<void> {
    for (const server of [this.#primary, this.#standby]) {
      await signalAll(server, "SIGKILL");
      await server.stop();
    }
  }
}

function startStandby(primary: PostgresServer, port?: number): Promise<PostgresServer> {
  const original = { url: primary.url(database), folder: primary.folder };
  return startPostgres(flags, { standbyOf: original, port });
}

/** To the server and all its processes, at one moment: it is stopped first, so it starts none. */
export async function signalAll(server: PostgresServer, signal: NodeJS.Signals): Promise<void> {
  // When it is gone, its number may be another process's by now.
  const isIt = (await listProcesses()).some(
    ({ pid, command }) => pid === server.pid && command.includes(server.folder),
  );
  if (!isIt) return;
  send(server.pid, "SIGSTOP");
  for (const { parent, pid } of await listProcesses()) {
    if (parent === server.pid) send(pid, signal);
  }
  send(server.pid, signal);
}

async function listProcesses(): Promise<{ parent: number; pid: number; command: string }[]> {
  const listing = Bun.spawn(["ps", "-A", "-ww", "-o", "ppid=,pid=,command="], { stdout: "pipe" });
  const lines = (await new Response(listing.stdout).text()).trim().split("\n");
  return lines.map((line) => {
    const [parent, pid, ...command] = line.trim().split(/\s+/);
    return { parent: Number(parent), pid: Number(pid), command: command.join(" ") };
  });
}

/** Whether there was such a process. */
export function send(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}
