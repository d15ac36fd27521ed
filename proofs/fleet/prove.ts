/**
 * `npm run prove fleet`: ten instances behind HAProxy, on PostgreSQL behind PgBouncer in transaction
 * mode. Four tokens open each of a thousand gardens, and every second one is replaced. All instances
 * restart one by one, then PostgreSQL stops and starts. Nothing is lost, and no request takes longer
 * than nine seconds.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Subprocess } from "bun";
import { issueToken } from "../../src/auth/opaque-token.ts";
import { openStorage } from "../../src/storage/open.ts";
import { auditStore } from "../../testing/audited-store.ts";
import { makeDice, spread } from "../../testing/dice.ts";
import { type Caller, makeSteadyCaller } from "../../testing/kept-connection.ts";
import {
  makeDatabase,
  type PostgresServer,
  runStatement,
  startPostgres,
} from "../../testing/postgres-server.ts";
import { pickPorts } from "../../testing/processes.ts";
import { type RunningService, startService, waitFor } from "../../testing/running-service.ts";
import { makeServerFolder, needProgram, spawnServer } from "../../testing/system-servers.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";
import { startPooler } from "../../testing/transaction-pooler.ts";
import { auditGarden } from "../audit.ts";
import { Ledger } from "../ledger.ts";
import { type OwnPlant, PlantClient } from "../plant-client.ts";
import { residentMb } from "../process-use.ts";
import { prove, type Trial } from "../proof.ts";

export interface FleetSize {
  readonly instances: number;
  readonly gardens: number;
  readonly clients: number;
  /** How long it's under load before and after each failure. */
  readonly loadMs: number;
  readonly measuredMs: number;
}

const wholeSize: FleetSize = {
  instances: 10,
  gardens: 1_000,
  clients: 80,
  loadMs: 10_000,
  measuredMs: 20_000,
};
const tokensPerGarden = 4;
/** Half of all requests are about these. */
const busyGardens = 20;
const pauseMs = 20;
/** No request may take longer. */
const requestMsMax = 9_000;
const tokenEveryMs = 1_000;
/** A token that was replaced isn't used any more by then. */
const revokeAfterMs = 12_000;
/** After `/readyz` of a new process is 200, as docs/postgresql.md says. */
const settleMs = 2_000;
const stoppedMs = 3_000;

interface Garden {
  readonly name: string;
  readonly tokens: string[];
  readonly ledger: Ledger;
  readonly plants: OwnPlant[];
}

class Fleet {
  readonly gardens: readonly Garden[];
  readonly faults: string[] = [];
  readonly figures: Record<string, number> = {};
  readonly #services: (RunningService | undefined)[] = [];
  readonly #ports: readonly number[];
  readonly #stack = new AsyncDisposableStack();
  #server!: PostgresServer;
  #startServer!: () => Promise<PostgresServer>;
  /** Of PostgreSQL itself. */
  database = "";
  #pooled = "";
  #balancer!: Subprocess;
  #balancerPort = 0;
  #isLoaded = false;
  #requests = 0;
  #longestMs = 0;

  constructor(readonly size: FleetSize) {
    this.#ports = pickPorts(size.instances);
    this.gardens = Array.from({ length: size.gardens }, (_, index) => ({
      name: `garden-${index}`,
      tokens: [],
      ledger: new Ledger(),
      plants: [],
    }));
  }

  async start(): Promise<void> {
    const folder = this.#stack.use(makeTemporaryFolder());
    const [serverPort = 0] = pickPorts(1);
    // Processes end, not machines, so syncs are not needed.
    const flags = ["-c", "fsync=off", "-c", "max_connections=100"];
    this.#startServer = () => startPostgres(flags, { folder: folder.path, port: serverPort });
    this.#server = await this.#startServer();
    this.#stack.defer(() => this.#server.stop());
    const { url } = await makeDatabase(this.#server, "plants");
    this.database = url;
    // As docs/postgresql.md says.
    for (const setting of [
      "statement_timeout = '5s'",
      "idle_in_transaction_session_timeout = '10s'",
      "enable_bitmapscan = off",
      "enable_seqscan = off",
    ]) {
      await runStatement(url, `ALTER ROLE postgres SET ${setting}`);
    }
    const pooler = await startPooler(url, undefined, {
      max_client_conn: 1_000,
      server_reset_query_always: 0,
    });
    this.#stack.defer(() => pooler.stop());
    this.#pooled = pooler.url;
    await this.#issueTokens();
    for (let index = 0; index < this.size.instances; index++) await this.#startInstance(index);
    this.#stack.defer(async () => {
      for (const service of this.#services) await service?.[Symbol.asyncDispose]();
    });
    const balancer = await startBalancer(this.#ports);
    this.#balancer = balancer.child;
    this.#balancerPort = balancer.port;
  }

  stop(): Promise<void> {
    return this.#stack.disposeAsync();
  }

  async #issueTokens(): Promise<void> {
    const storage = await openStorage(this.database, { isServing: false });
    for (const garden of this.gardens) {
      const grants = Array.from({ length: tokensPerGarden }, () => ({
        user: "gardener",
        garden: garden.name,
      }));
      const issued = grants.map((grant) => issueToken(storage, grant, Date.now()));
      garden.tokens.push(...(await Promise.all(issued)).map(({ token }) => token));
    }
    await storage.close();
  }

  async #startInstance(index: number): Promise<void> {
    const port = this.#ports[index] as number;
    this.#services[index] = await startService({ database: this.#pooled, port });
  }

  /** Clients use all gardens, and tokens are replaced, until `work` is over. */
  async underLoad(work: () => Promise<void>): Promise<void> {
    this.#isLoaded = true;
    const clients = Array.from({ length: this.size.clients }, (_, index) =>
      this.#useGardens(index),
    );
    const replacing = this.#replaceTokens();
    await work();
    this.#isLoaded = false;
    await Promise.all([...clients, replacing]);
  }

  /** One in four requests goes to any instance, as it does with JWTs and older tokens. */
  async #useGardens(number: number): Promise<void> {
    const dice = makeDice(spread(number));
    const pickPort = () => {
      const running = this.#services.filter((service) => service !== undefined);
      return running[dice(running.length)]?.port ?? 0;
    };
    const balanced = makeSteadyCaller({ pickPort: () => this.#balancerPort });
    const direct = makeSteadyCaller({ pickPort });
    for (let count = 0; this.#isLoaded; count++) {
      const garden = this.gardens[dice(dice(2) === 0 ? busyGardens : this.size.gardens)] as Garden;
      const { ledger, plants, tokens } = garden;
      const callers = this.#timed(dice(4) === 0 ? direct : balanced);
      const client = () =>
        new PlantClient(callers, { ledger, token: tokens[dice(tokensPerGarden)] as string });
      const insist = async (send: (client: PlantClient) => Promise<string>) => {
        while ((await send(client())) === "unavailable") await Bun.sleep(200);
      };
      const choice = dice(10);
      const own = plants[0];
      if (choice < 4) {
        const token = tokens[dice(tokensPerGarden)] as string;
        const list = await callers.call("GET /plants?limit=20", { token });
        if (list.status !== 200 && list.status !== 503) this.faults.push(`a list: ${list.status}`);
      } else if (choice < 8 || !own) {
        const name = `${number}-${count}`;
        await insist((each) => each.create({ name, isKeyed: true }));
        const { id } = ledger.find(name) ?? {};
        if (id !== undefined) plants.push({ name, id });
      } else {
        plants.shift();
        await insist((each) => each.delete(own));
      }
      await Bun.sleep(dice(2 * pauseMs));
    }
  }

  #timed({ call }: Caller): Caller {
    return {
      call: async (request, init) => {
        const startedAtMs = performance.now();
        const response = await call(request, init);
        const tookMs = performance.now() - startedAtMs;
        this.#requests++;
        this.#longestMs = Math.max(this.#longestMs, tookMs);
        if (tookMs > requestMsMax) this.faults.push(`${request} took ${Math.round(tookMs)} ms`);
        this.#count(`responses ${response.status}`);
        return response;
      },
    };
  }

  /** Each second, one token of a garden is replaced; the old one is revoked when nobody uses it. */
  async #replaceTokens(): Promise<void> {
    const storage = await openStorage(this.database, { isServing: false });
    const dice = makeDice(spread(this.size.clients));
    const replaced: { readonly id: string; readonly atMs: number }[] = [];
    const known = new Map((await storage.listTokens()).map(({ id, hash }) => [hash, id]));
    while (this.#isLoaded) {
      await Bun.sleep(tokenEveryMs);
      const garden = this.gardens[dice(this.size.gardens)] as Garden;
      try {
        const grant = { user: "gardener", garden: garden.name };
        const { token } = await issueToken(storage, grant, Date.now());
        const old = garden.tokens.splice(0, 1, token)[0] as string;
        const id = known.get(new Bun.CryptoHasher("sha256").update(old).digest("hex"));
        if (id) replaced.push({ id, atMs: performance.now() });
        this.#count("tokens created");
        const [oldest] = replaced;
        if (!oldest || performance.now() - oldest.atMs < revokeAfterMs) continue;
        await storage.revokeToken(oldest.id, Date.now());
        replaced.shift();
        this.#count("tokens revoked");
      } catch {
        // PostgreSQL is stopped.
      }
    }
    await storage.close();
  }

  /** As docs/postgresql.md says. */
  async restartOneByOne(): Promise<void> {
    for (const [index, old] of this.#services.entries()) {
      this.#services[index] = undefined;
      old?.signal("SIGTERM");
      if ((await old?.exited) !== 0) this.faults.push("an instance didn't end with 0");
      await old?.[Symbol.asyncDispose]();
      await this.#startInstance(index);
      const isReady = async () => (await this.#services[index]?.call("GET /readyz"))?.ok;
      await waitFor(async () => (await isReady()) || undefined);
      await Bun.sleep(settleMs);
      this.#count("instances restarted");
    }
  }

  async restartPostgres(): Promise<void> {
    await this.#server.stop();
    await Bun.sleep(stoppedMs);
    this.#server = await this.#startServer();
    this.#count("restarts of PostgreSQL");
  }

  /** Calls `look` with how many connections there are, each second until `work` is over. */
  async measureConnections(work: () => Promise<void>): Promise<void> {
    const look = async () => {
      const [row] = await runStatement(
        this.database,
        `SELECT count(*) AS sessions FROM pg_stat_activity
           WHERE datname = 'plants' AND backend_type = 'client backend' AND pid <> pg_backend_pid()`,
      );
      this.#note("server connections of PgBouncer and commands, at most", Number(row?.sessions));
    };
    const timer = setInterval(() => void look().catch(() => {}), 1_000);
    await work().finally(() => clearInterval(timer));
    const sum = async (sample: string) => {
      const values = this.#services.map(async (service) => {
        const text = await (await service?.call("GET /metrics"))?.text();
        return Number(new RegExp(`^plantstore_${sample} (\\d+)`, "m").exec(text ?? "")?.[1] ?? 0);
      });
      return (await Promise.all(values)).reduce((total, value) => total + value, 0);
    };
    const states = ["idle", "busy"].map((state) => sum(`pool_connections\\{state="${state}"\\}`));
    const [idle = 0, busy = 0] = await Promise.all(states);
    this.#note("connections of the instances to PgBouncer", idle + busy);
    this.#note("writes that waited for a garden", await sum("garden_wait_seconds_count"));
    this.#note("writes refused after that", await sum("garden_refusals_total"));
  }

  measureMemory(): void {
    const sizes = this.#services.map((service) => residentMb(service?.pid ?? 0));
    const peaks = this.#services.map((service) => residentMb(service?.pid ?? 0, "VmHWM"));
    const sum = sizes.reduce((total, size) => total + size, 0);
    this.#note("MB per instance, mean", Math.round(sum / this.size.instances));
    this.#note("MB of an instance at its peak", Math.round(Math.max(...peaks)));
  }

  /** Transactions per second that the instances cause by themselves. */
  async measurePolls(when: string): Promise<void> {
    const count = async () => {
      const [row] = await runStatement(
        this.database,
        "SELECT xact_commit + xact_rollback AS count FROM pg_stat_database WHERE datname = 'plants'",
      );
      return Number(row?.count);
    };
    const { measuredMs } = this.size;
    // Statistics are up to a second old, and what clients left behind ends first.
    await Bun.sleep(measuredMs / 4);
    const before = await count();
    await Bun.sleep(measuredMs);
    const perSecond = ((await count()) - before) / (measuredMs / 1_000);
    this.#note(`transactions per second, ${when}`, Math.round(perSecond * 10) / 10);
  }

  /** On every instance, one client follows a garden of its own. */
  async withStreams(work: () => Promise<void>): Promise<void> {
    const aborting = new AbortController();
    for (const [index, service] of this.#services.entries()) {
      const [token = ""] = this.gardens[index]?.tokens ?? [];
      const headers = { accept: "text/event-stream" };
      await service?.call("GET /events", { token, headers, signal: aborting.signal });
    }
    await work();
    aborting.abort();
  }

  async withoutHealthChecks(work: () => Promise<void>): Promise<void> {
    this.#balancer.kill("SIGSTOP");
    await work();
    this.#balancer.kill("SIGCONT");
  }

  async audit(): Promise<Trial> {
    const service = this.#services.find((each) => each !== undefined) as RunningService;
    for (const { ledger, tokens } of this.gardens) {
      if (ledger.entries.length === 0) continue;
      this.faults.push(...(await auditGarden(service, tokens[0] as string, ledger)));
      this.#count("confirmed writes", ledger.promises);
    }
    this.faults.push(...(await auditStore(this.database)));
    this.#note("requests", this.#requests);
    this.#note("ms, the longest request", Math.round(this.#longestMs));
    return { faults: this.faults, figures: this.figures };
  }

  #count(figure: string, count = 1): void {
    this.figures[figure] = (this.figures[figure] ?? 0) + count;
  }

  #note(figure: string, value: number): void {
    this.figures[figure] = Math.max(this.figures[figure] ?? 0, value);
  }
}

/** HAProxy as it's shipped, with other addresses. It ends with this process. */
async function startBalancer(ports: readonly number[]) {
  const [port = 0] = pickPorts(1);
  const folder = makeServerFolder();
  const shipped = join(import.meta.dir, "../../deploy/haproxy");
  const servers = ports.map((each, index) => `    server i${index} 127.0.0.1:${each}`);
  const config = readFileSync(join(shipped, "haproxy.cfg"), "utf8")
    .replace("bind :80", `bind 127.0.0.1:${port}`)
    .replace(/^ +server one .*\n/m, `${servers.join("\n")}\n`)
    .replace(/^ +server two .*\n/m, "");
  writeFileSync(join(folder, "haproxy.cfg"), config);
  writeFileSync(
    join(folder, "problem-400.http"),
    readFileSync(join(shipped, "problem-400.http"), "utf8"),
  );
  const command = [needProgram("haproxy"), "-f", join(folder, "haproxy.cfg")];
  const child = spawnServer(command, join(folder, "log"));
  const isUp = async () => (await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => null))?.ok;
  await waitFor(async () => (await isUp()) || undefined);
  return { port, child };
}

export async function runFleet(size: FleetSize): Promise<Trial> {
  const fleet = new Fleet(size);
  try {
    await fleet.start();
    await fleet.measureConnections(() =>
      fleet.underLoad(async () => {
        await Bun.sleep(size.loadMs);
        await fleet.restartOneByOne();
        await Bun.sleep(size.loadMs);
        await fleet.restartPostgres();
        await Bun.sleep(size.loadMs);
      }),
    );
    fleet.measureMemory();
    await fleet.measurePolls("idle");
    await fleet.withoutHealthChecks(() => fleet.measurePolls("idle, without health checks"));
    await fleet.withStreams(() => fleet.measurePolls("with a stream of events on each instance"));
    return await fleet.audit();
  } finally {
    await fleet.stop();
  }
}

if (import.meta.main) {
  needProgram("haproxy");
  needProgram("pgbouncer");
  await prove({ trials: "fleets", count: 1, run: () => runFleet(wholeSize) });
}
