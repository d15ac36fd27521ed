/**
 * `npm run prove failover patroni [failures] [seed]`: three nodes of Patroni and PostgreSQL with
 * one etcd, and HAProxy in front of them, from the system's packages, on loopback. The leader
 * fails, many times. All of it ends with this process.
 */
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Subprocess } from "bun";
import { makeDice, spread } from "../../testing/dice.ts";
import { serverPassword as password, runStatement } from "../../testing/postgres-server.ts";
import { listProcesses, pickPorts, signalAll } from "../../testing/processes.ts";
import { waitFor } from "../../testing/running-service.ts";
import { makeServerFolder, needProgram, spawnServer } from "../../testing/system-servers.ts";
import { prove } from "../proof.ts";
import type { Workload } from "../workload.ts";
import { startDatabaseProxy } from "./database-proxy.ts";
import { LoadedInstances } from "./loaded-instances.ts";

/**
 * `killed`: at once, like a machine that loses its power. `frozen`: silent, with open connections.
 * `stopped`: Patroni is asked to stop PostgreSQL and itself.
 */
type Failure = "killed" | "frozen" | "stopped";

/** One more than there are nodes: these take turns as the leader, and each fails in every way. */
const mix: readonly Failure[] = ["killed", "frozen", "stopped", "killed"];
const names = ["node1", "node2", "node3"];
/**
 * 20 is the shortest ttl that Patroni accepts: a leader that is silent for that long is replaced.
 * It must be at least loop_wait and twice retry_timeout.
 */
const timing = { ttl: 20, loop_wait: 3, retry_timeout: 5 };
/** How much longer clients may wait than Patroni needs: for HAProxy and for us. */
const ownPartMaxMs = 2_000;
const startMs = 120_000;

/** A Patroni process, and the PostgreSQL that it starts. */
class PatroniNode {
  #patroni: Subprocess;

  constructor(
    readonly port: number,
    readonly apiPort: number,
    readonly dataFolder: string,
    readonly spawn: () => Subprocess,
  ) {
    this.#patroni = spawn();
    // Before the folder is removed. Patroni's own end would leave PostgreSQL behind.
    process.prependListener("exit", () => this.fail("killed"));
  }

  fail(failure: Failure): void {
    // Patroni is frozen first, so that it can't report that PostgreSQL has stopped.
    this.#patroni.kill(failure === "stopped" ? "SIGTERM" : "SIGSTOP");
    if (failure === "stopped") return;
    this.#signalPostgres(failure === "killed" ? "SIGKILL" : "SIGSTOP");
    if (failure === "killed") this.#patroni.kill("SIGKILL");
  }

  /** After that, Patroni makes it a replica of the new leader. */
  async repair(failure: Failure): Promise<void> {
    if (failure === "frozen") {
      this.#signalPostgres("SIGCONT");
      return this.#patroni.kill("SIGCONT");
    }
    await this.#patroni.exited;
    this.#patroni = this.spawn();
  }

  /** Asks Patroni's REST API; empty without a good response. */
  async ask(path: string): Promise<{ role?: string; members?: Record<string, unknown>[] }> {
    const signal = AbortSignal.timeout(1_000);
    const url = `http://127.0.0.1:${this.apiPort}${path}`;
    const response = await fetch(url, { signal }).catch(() => undefined);
    return response?.ok ? response.json() : {};
  }

  #signalPostgres(signal: NodeJS.Signals): void {
    const folder = this.dataFolder;
    const server = listProcesses().find(({ command }) => command.includes(`-D ${folder} `));
    if (server) signalAll({ pid: server.pid, folder }, signal);
  }
}

const [etcd, patroni, postgres] = [
  needProgram("etcd"),
  needProgram("patroni"),
  needProgram("postgres"),
];
const folder = makeServerFolder();
const [etcdPort = 0, ...ports] = pickPorts(1 + 2 * names.length);
const clients = `http://127.0.0.1:${etcdPort}`;
const etcdFlags = [
  `--data-dir=${join(folder, "etcd")}`,
  `--listen-client-urls=${clients}`,
  `--advertise-client-urls=${clients}`,
  // It's alone.
  "--listen-peer-urls=http://127.0.0.1:0",
];
spawnServer([etcd, "--enable-v2", ...etcdFlags], join(folder, "etcd.log"));
const nodes = names.map((name, index) => {
  const [port = 0, apiPort = 0] = ports.slice(2 * index);
  const config = join(folder, `${name}.json`);
  writeFileSync(config, JSON.stringify(configure(name, port, apiPort)));
  const spawn = () => spawnServer([patroni, config], join(folder, `${name}.log`));
  return new PatroniNode(port, apiPort, join(folder, name), spawn);
});
await settle();
const admin = `postgres://postgres:${password}@127.0.0.1:${(await findLeader()).port}/postgres`;
await runStatement(admin, `CREATE ROLE plants LOGIN PASSWORD '${password}'`);
await runStatement(admin, "CREATE DATABASE plants OWNER plants");
const urlOf = (port: number) => `postgres://plants:${password}@127.0.0.1:${port}/plants`;
const proxyPort = await startDatabaseProxy("patroni.cfg", nodes, urlOf);
// Until three checks have failed, HAProxy takes every node for the leader.
await Bun.sleep(2_000);
const loaded = await LoadedInstances.start(urlOf(proxyPort));

await prove({
  trials: "failures",
  count: 20,
  async run(seed) {
    const dice = makeDice(spread(seed));
    const failure = mix[seed % mix.length] as Failure;
    let [gapMs, ownMs] = [0, 0];
    const fail = async (load: Workload) => {
      // At any moment of Patroni's loop.
      await Bun.sleep(1_000 + dice(timing.loop_wait * 1_000));
      const leader = await findLeader();
      const failedAtMs = performance.now();
      leader.fail(failure);
      await findLeader(leader);
      const patroniMs = performance.now() - failedAtMs;
      await load.untilWritten();
      gapMs = Math.round(load.longestGapMs);
      ownMs = Math.max(0, Math.round(gapMs - patroniMs));
      if (ownMs > ownPartMaxMs) loaded.ledger.fault(`our part of ${gapMs} ms is ${ownMs} ms`);
      await Bun.sleep(dice(3_000));
      await leader.repair(failure);
      await settle();
      return urlOf((await findLeader()).port);
    };
    const faults = await loaded.audit(seed, fail);
    const parts = { "ms without writes": gapMs, "ms of these ours": ownMs };
    return { faults, figures: { [failure]: 1, ...parts } };
  },
});

/** The primary, once the given node has failed. */
function findLeader(failed?: PatroniNode): Promise<PatroniNode> {
  const others = nodes.filter((node) => node !== failed);
  const find = async () => {
    for (const node of others) {
      // Only once PostgreSQL has been promoted: the lock comes first.
      const { role = "" } = await node.ask("/primary");
      if (role === "master" || role === "primary") return node;
    }
    return undefined;
  };
  return waitFor(find, undefined, startMs);
}

/** Waits until all nodes are there, on one timeline, and one of them is a synchronous standby. */
async function settle(): Promise<void> {
  const isSettled = async () => {
    const { members = [] } = await (await findLeader()).ask("/cluster");
    const up = members.filter(({ state }) => state === "running" || state === "streaming");
    const timelines = new Set(members.map(({ timeline }) => timeline));
    const hasStandby = members.some(({ role }) => role === "sync_standby");
    return (up.length === names.length && timelines.size === 1 && hasStandby) || undefined;
  };
  await waitFor(isSettled, undefined, startMs);
}

function configure(name: string, port: number, apiPort: number): unknown {
  const [api, address] = [`127.0.0.1:${apiPort}`, `127.0.0.1:${port}`];
  const postgresUser = { username: "postgres", password };
  return {
    scope: "plants",
    name,
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
      data_dir: join(folder, name),
      bin_dir: dirname(postgres),
      pgpass: join(folder, `${name}.pgpass`),
      authentication: { superuser: postgresUser, replication: postgresUser },
      parameters: { unix_socket_directories: folder },
      // Patroni's own commands talk over loopback, so nothing else is let in.
      pg_hba: ["all all", "replication postgres"].map(
        (who) => `host ${who} 127.0.0.1/32 scram-sha-256`,
      ),
    },
  };
}
