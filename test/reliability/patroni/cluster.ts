/**
 * Three nodes of Patroni and PostgreSQL with one etcd, from the system's packages, on loopback.
 * Everything goes away with this process.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { waitFor } from "../../end-to-end/running-service.ts";
import { runStatement } from "../../postgres-server.ts";
import { pickPorts } from "../../processes.ts";
import { findPrograms, makeServerFolder, spawnServer, versionOf } from "../system-servers.ts";
import { PatroniNode } from "./node.ts";

export type Failure = "killed" | "frozen" | "stopped";

const nodesCount = 3;
const password = "s3cret-of-the-cluster";
const startMs = 120_000;
const pollMs = 50;

interface Member {
  readonly role: string;
  readonly state: string;
  readonly timeline?: number;
}

export class PatroniCluster {
  readonly #nodes: readonly PatroniNode[];

  private constructor(nodes: readonly PatroniNode[]) {
    this.#nodes = nodes;
  }

  /** What has to be installed before there can be a cluster; undefined if nothing is missing. */
  static missing(): string | undefined {
    const isThere = Bun.which("patroni") && Bun.which("etcd") && findPrograms();
    return isThere ? undefined : "patroni, etcd-server and postgresql of Debian are needed";
  }

  /** The versions of its parts. */
  static versions(): string {
    const commands = [
      ["patroni", "--version"],
      ["etcd", "--version"],
      [`${findPrograms()}/postgres`, "-V"],
    ];
    return commands.map((command) => versionOf(command)).join(", ");
  }

  static async start(): Promise<PatroniCluster> {
    const folder = makeServerFolder();
    const [etcdPort = 0, peerPort = 0, ...ports] = pickPorts(2 + 2 * nodesCount);
    const etcd = spawnServer(etcdCommand(folder, etcdPort, peerPort), join(folder, "etcd.log"));
    const settings = { folder, etcdPort, programs: findPrograms() ?? "", password };
    const nodes = Array.from(
      { length: nodesCount },
      (_, index) =>
        new PatroniNode(
          `node${index + 1}`,
          ports[2 * index] ?? 0,
          ports[2 * index + 1] ?? 0,
          settings,
        ),
    );
    process.on("exit", () => {
      for (const node of nodes) node.kill();
      etcd.kill("SIGKILL");
      rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
    });
    const cluster = new PatroniCluster(nodes);
    for (const node of nodes) node.start();
    await cluster.settle();
    await cluster.#makeDatabase();
    return cluster;
  }

  /** With all hosts, as users are told to write it. */
  get url(): string {
    const hosts = this.#nodes.map(({ port }) => `127.0.0.1:${port}`).join(",");
    return urlOf(hosts);
  }

  async leaderUrl(): Promise<string> {
    return urlOf(`127.0.0.1:${(await this.leader()).port}`);
  }

  async leader(): Promise<PatroniNode> {
    return waitFor(() => findWritable(this.#nodes), undefined, startMs);
  }

  /** The leader that takes writes after the given one failed. */
  async nextLeader(failed: PatroniNode): Promise<PatroniNode> {
    const others = this.#nodes.filter((node) => node !== failed);
    return waitFor(() => findWritable(others), undefined, startMs);
  }

  fail(node: PatroniNode, failure: Failure): void {
    if (failure === "killed") node.kill();
    else if (failure === "frozen") node.freeze();
    else node.stop();
  }

  /** After that, Patroni makes it a replica of the new leader. */
  async repair(node: PatroniNode, failure: Failure): Promise<void> {
    if (failure === "frozen") return node.thaw();
    await node.waitForEnd();
    node.start();
  }

  /** Waits until all nodes are there, on one timeline, and one of them is a synchronous standby. */
  async settle(): Promise<void> {
    await waitFor(
      async () => {
        const leader = await findWritable(this.#nodes);
        const response = await leader?.ask("/cluster");
        const { members = [] } = ((await response?.json()) ?? {}) as { members?: Member[] };
        await Bun.sleep(pollMs);
        return isSettled(members) || undefined;
      },
      undefined,
      startMs,
    );
  }

  async #makeDatabase(): Promise<void> {
    const { port } = await this.leader();
    const url = `postgres://postgres:${password}@127.0.0.1:${port}/postgres`;
    await runStatement(url, `CREATE ROLE plants LOGIN PASSWORD '${password}'`);
    await runStatement(url, "CREATE DATABASE plants OWNER plants");
  }
}

function urlOf(hosts: string): string {
  return `postgres://plants:${password}@${hosts}/plants`;
}

function isSettled(members: readonly Member[]): boolean {
  const timelines = new Set(members.map(({ timeline }) => timeline));
  return (
    members.length === nodesCount &&
    members.every(({ state }) => state === "running" || state === "streaming") &&
    timelines.size === 1 &&
    members.some(({ role }) => role === "sync_standby")
  );
}

async function findWritable(nodes: readonly PatroniNode[]): Promise<PatroniNode | undefined> {
  const areWritable = await Promise.all(nodes.map((node) => node.isWritable()));
  const found = nodes.find((_, index) => areWritable[index]);
  if (!found) await Bun.sleep(pollMs);
  return found;
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
  return [
    "etcd",
    "--enable-v2",
    ...Object.entries(options).map(([name, value]) => `--${name}=${value}`),
  ];
}
