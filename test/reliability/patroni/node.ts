/** One node of a Patroni cluster: a Patroni process, and the PostgreSQL that it starts. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Subprocess } from "bun";
import { send, signalAll } from "../../processes.ts";
import { spawnServer } from "../system-servers.ts";

/** What all nodes of a cluster share. */
export interface ClusterSettings {
  readonly folder: string;
  readonly etcdPort: number;
  /** The folder of PostgreSQL's programs. */
  readonly programs: string;
  readonly password: string;
}

/**
 * 20 is the shortest ttl that Patroni takes: a leader that says nothing for so long is replaced.
 * It must be at least loop_wait and twice retry_timeout.
 */
export const timing = { ttl: 20, loop_wait: 3, retry_timeout: 5 };

const askTimeoutMs = 1_000;
/** Patroni's own commands talk over loopback, so nothing else is let in. */
const access = ["host all all 127.0.0.1/32 scram-sha-256"];

export class PatroniNode {
  readonly name: string;
  readonly port: number;
  readonly #apiPort: number;
  readonly #dataFolder: string;
  readonly #configFile: string;
  readonly #log: string;
  #patroni: Subprocess | undefined;

  constructor(name: string, port: number, apiPort: number, settings: ClusterSettings) {
    this.name = name;
    this.port = port;
    this.#apiPort = apiPort;
    this.#dataFolder = join(settings.folder, name);
    this.#configFile = join(settings.folder, `${name}.json`);
    this.#log = join(settings.folder, `${name}.log`);
    writeFileSync(this.#configFile, JSON.stringify(this.#config(settings)));
  }

  start(): void {
    this.#patroni = spawnServer(["patroni", this.#configFile], this.#log);
  }

  /** Ends at once, like a machine that loses its power. */
  kill(): void {
    // Stopped first, so that Patroni cannot tell anyone that PostgreSQL is gone.
    this.#signalPatroni("SIGSTOP");
    this.#signalPostgres("SIGKILL");
    this.#signalPatroni("SIGKILL");
  }

  /** Goes silent with its connections open. */
  freeze(): void {
    this.#signalPatroni("SIGSTOP");
    this.#signalPostgres("SIGSTOP");
  }

  thaw(): void {
    this.#signalPostgres("SIGCONT");
    this.#signalPatroni("SIGCONT");
  }

  /** Asks Patroni to stop PostgreSQL and itself, and does not wait. */
  stop(): void {
    this.#signalPatroni("SIGTERM");
  }

  async waitForEnd(): Promise<void> {
    await this.#patroni?.exited;
  }

  /** Whether it is the leader, and PostgreSQL has been promoted: the lock comes first. */
  async isWritable(): Promise<boolean> {
    const response = await this.ask("/primary");
    if (response?.status !== 200) return false;
    const { role } = (await response.json()) as { role: string };
    return role === "master" || role === "primary";
  }

  /** Asks Patroni's REST API; undefined if it does not respond. */
  ask(path: string): Promise<Response | undefined> {
    const signal = AbortSignal.timeout(askTimeoutMs);
    return fetch(`http://127.0.0.1:${this.#apiPort}${path}`, { signal }).catch(() => undefined);
  }

  #signalPatroni(signal: NodeJS.Signals): void {
    if (this.#patroni && this.#patroni.exitCode === null && this.#patroni.signalCode === null) {
      send(this.#patroni.pid, signal);
    }
  }

  #signalPostgres(signal: NodeJS.Signals): void {
    const pid = readPid(join(this.#dataFolder, "postmaster.pid"));
    if (pid !== undefined) signalAll({ pid, folder: this.#dataFolder }, signal);
  }

  #config({ folder, etcdPort, programs, password }: ClusterSettings): unknown {
    const api = `127.0.0.1:${this.#apiPort}`;
    const address = `127.0.0.1:${this.port}`;
    return {
      scope: "plants",
      name: this.name,
      restapi: { listen: api, connect_address: api },
      // Not `etcd3`: with it, a leader of Patroni 3.0.2 that was frozen can overwrite the lock of
      // its successor (patroni/patroni#2689), and confirmed writes are lost.
      etcd: { host: `127.0.0.1:${etcdPort}` },
      bootstrap: {
        dcs: {
          ...timing,
          synchronous_mode: true,
          postgresql: { use_pg_rewind: true, parameters: { max_connections: 200 } },
        },
        initdb: [{ encoding: "UTF8" }, "data-checksums"],
      },
      postgresql: {
        listen: address,
        connect_address: address,
        data_dir: this.#dataFolder,
        bin_dir: programs,
        pgpass: join(folder, `${this.name}.pgpass`),
        authentication: {
          superuser: { username: "postgres", password },
          replication: { username: "replicator", password },
          rewind: { username: "rewinder", password },
        },
        parameters: { unix_socket_directories: folder },
        pg_hba: [...access, "host replication replicator 127.0.0.1/32 scram-sha-256"],
      },
    };
  }
}

function readPid(path: string): number | undefined {
  try {
    return Number(readFileSync(path, "utf8").split("\n")[0]) || undefined;
  } catch {
    return undefined;
  }
}
