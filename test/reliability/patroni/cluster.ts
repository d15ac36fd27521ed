/**
 * Three nodes of Patroni and PostgreSQL with one etcd, from the system's packages, on loopback.
 * Everything goes away with this process.
 */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Subprocess } from "bun";
import { waitFor } from "../../end-to-end/running-service.ts";
import { runStatement } from "../../postgres-server.ts";
import { pickPorts, send, signalAll } from "../../processes.ts";
import { findPrograms, makeServerFolder, spawnServer, versionOf } from "../system-servers.ts";

export type Failure = "killed" | "frozen" | "stopped";

/**
 * 20 is the shortest ttl that Patroni takes: a leader that says nothing for so long is replaced.
 * It must be at least loop_wait and twice retry_timeout.
 */
export const timing = { ttl: 20, loop_wait: 3, retry_timeout: 5 };

const names = ["node1", "node2", "node3"];
const password = "s3cret-of-the-cluster";
const startMs = 120_000;
const pollMs = 50;
const programs = findPrograms();

interface Member {
  readonly role: string;
  readonly state: string;
  readonly timeline?: number;
}

/** What has to be installed before there can be a cluster; undefined if nothing is missing. */
export function findMissing(): string | undefined {
  const isThere = Bun.which("patroni") && Bun.which("etcd") && programs;
  return isThere ? undefined : "patroni, etcd-server and postgresql of Debian are needed";
}

export function versions(): string {
  const commands = [
    ["patroni", "--version"],
    ["etcd", "--version"],
    [`${programs}/postgres`, "-V"],
  ];
  return commands.map((command) => versionOf(command)).join(", ");
}

export class PatroniCluster {
  readonly #nodes: readonly PatroniNode[];

  private constructor(nodes: readonly PatroniNode[]) {
    this.#nodes = nodes;
  }

  static async start(): Promise<PatroniCluster> {
    const folder = makeServerFolder();
    const [etcdPort = 0, peerPort = 0, ...ports] = pickPorts(2 + 2 * names.length);
    const etcd = spawnServer(etcdCommand(folder, etcdPort, peerPort), join(folder, "etcd.log"));
    const nodes = names.map((name, index) => {
      const [port = 0, apiPort = 0] = ports.slice(2 * index);
      return new PatroniNode(name, port, apiPort, folder, etcdPort);
    });
    process.on("exit", () => {
      for (const node of nodes) node.fail("killed");
      etcd.kill("SIGKILL");
      rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
    });
    for (const node of nodes) node.start();
    const cluster = new PatroniCluster(nodes);
    await cluster.settle();
    const { port } = await cluster.leader();
    const url = `postgres://postgres:${password}@127.0.0.1:${port}/postgres`;
    await runStatement(url, `CREATE ROLE plants LOGIN PASSWORD '${password}'`);
    await runStatement(url, "CREATE DATABASE plants OWNER plants");
    return cluster;
  }

  /** With all hosts, as users are told to write it. */
  get url(): string {
    return urlOf(this.#nodes);
  }

  async leaderUrl(): Promise<string> {
    return urlOf([await this.leader()]);
  }

  /** The node that takes writes, once the given one has failed. */
  leader(failed?: PatroniNode): Promise<PatroniNode> {
    const nodes = this.#nodes.filter((node) => node !== failed);
    const find = async () => {
      const areWritable = await Promise.all(nodes.map((node) => node.isWritable()));
      return nodes.find((_, index) => areWritable[index]);
    };
    return waitFor(find, undefined, startMs);
  }

  /** Waits until all nodes are there, on one timeline, and one of them is a synchronous standby. */
  async settle(): Promise<void> {
    const isSettled = async () => {
      const response = await (await this.leader()).ask("/cluster");
      const { members = [] } = ((await response?.json()) ?? {}) as { members?: Member[] };
      await Bun.sleep(pollMs);
      const areUp = members.every(({ state }) => state === "running" || state === "streaming");
      const timelines = new Set(members.map(({ timeline }) => timeline));
      const hasStandby = members.some(({ role }) => role === "sync_standby");
      const areAll = members.length === names.length && timelines.size === 1;
      return (areAll && areUp && hasStandby) || undefined;
    };
    await waitFor(isSettled, undefined, startMs);
  }
}

function urlOf(nodes: readonly PatroniNode[]): string {
  const hosts = nodes.map(({ port }) => `127.0.0.1:${port}`).join(",");
  return `postgres://plants:${password}@${hosts}/plants`;
}

/** A Patroni process, and the PostgreSQL that it starts. */
export class PatroniNode {
  readonly #dataFolder: string;
  readonly #configFile: string;
  #patroni: Subprocess | undefined;

  constructor(
    readonly name: string,
    readonly port: number,
    readonly apiPort: number,
    readonly folder: string,
    etcdPort: number,
  ) {
    this.#dataFolder = join(folder, name);
    this.#configFile = join(folder, `${name}.json`);
    writeFileSync(this.#configFile, JSON.stringify(this.#config(etcdPort)));
  }

  start(): void {
    const log = join(this.folder, `${this.name}.log`);
    this.#patroni = spawnServer(["patroni", this.#configFile], log);
  }

  /**
   * `killed`: at once, like a machine that loses its power. `frozen`: silent, with open
   * connections. `stopped`: Patroni is asked to stop PostgreSQL and itself.
   */
  fail(failure: Failure): void {
    if (failure === "stopped") {
      this.#signalPatroni("SIGTERM");
      return;
    }
    // Stopped first, so that Patroni cannot tell anyone that PostgreSQL is gone.
    this.#signalPatroni("SIGSTOP");
    this.#signalPostgres(failure === "killed" ? "SIGKILL" : "SIGSTOP");
    if (failure === "killed") this.#signalPatroni("SIGKILL");
  }

  /** After that, Patroni makes it a replica of the new leader. */
  async repair(failure: Failure): Promise<void> {
    if (failure === "frozen") {
      this.#signalPostgres("SIGCONT");
      return this.#signalPatroni("SIGCONT");
    }
    await this.#patroni?.exited;
    this.start();
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
    const signal = AbortSignal.timeout(1_000);
    return fetch(`http://127.0.0.1:${this.apiPort}${path}`, { signal }).catch(() => undefined);
  }

  #signalPatroni(signal: NodeJS.Signals): void {
    if (this.#patroni && this.#patroni.exitCode === null && this.#patroni.signalCode === null) {
      send(this.#patroni.pid, signal);
    }
  }

  #signalPostgres(signal: NodeJS.Signals): void {
    try {
      const [pid] = readFileSync(join(this.#dataFolder, "postmaster.pid"), "utf8").split("\n");
      signalAll({ pid: Number(pid), folder: this.#dataFolder }, signal);
    } catch {
      // It doesn't run.
    }
  }

  #config(etcdPort: number): unknown {
    const api = `127.0.0.1:${this.apiPort}`;
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
        pgpass: join(this.folder, `${this.name}.pgpass`),
        authentication: {
          superuser: { username: "postgres", password },
          replication: { username: "replicator", password },
          rewind: { username: "rewinder", password },
        },
        parameters: { unix_socket_directories: this.folder },
        // Patroni's own commands talk over loopback, so nothing else is let in.
        pg_hba: ["all all", "replication replicator"].map(
          (who) => `host ${who} 127.0.0.1/32 scram-sha-256`,
        ),
      },
    };
  }
}

function etcdCommand(folder: string, port: number, peerPort: number): string[] {
  const [clients, peers] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${peerPort}`];
  const options = {
    name: "etcd",
    "data-dir": join(folder, "etcd"),
    "listen-client-urls": clients,
    "advertise-client-urls": clients,
    "listen-peer-urls": peers,
    "initial-advertise-peer-urls": peers,
    "initial-cluster": `etcd=${peers}`,
  };
  const flags = Object.entries(options).map(([name, value]) => `--${name}=${value}`);
  return ["etcd", "--enable-v2", ...flags];
}
