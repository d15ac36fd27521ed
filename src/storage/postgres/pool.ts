/**
 * A pool of connections to the primary. After a failover, it searches the hosts of the URL for the
 * new primary.
 */
import { type ClientBase, DatabaseError, Pool, type PoolClient } from "pg";
import { FairSemaphore } from "../../async/fair-semaphore.ts";
import { PlantStoreError } from "../../domain/errors.ts";
import { type ConnectionLimits, defaultConnectionLimits, type PoolUse } from "../storage.ts";
import {
  checkServer,
  clientConfig,
  cut,
  noServer,
  type Server,
  type Target,
  tryHost,
  withConnection,
  withConnectTimeout,
} from "./connect.ts";
import { ConnectionLost, explain, hasState, isLost, reasonOf } from "./errors.ts";
import { type DatabaseUrl, type Host, maskUrl, parseUrl } from "./url.ts";

/** Beyond the server's own limit, so that its response arrives before the connection is cut. */
const graceMs = 1_000;
const pauseMinMs = 50;
const pauseMaxMs = 500;
const closeMs = 2_000;
/** A search that is over after the first try of each host. */
const once = AbortSignal.abort();

/** Lasts until there is a primary, or the storage is closed. */
interface Search {
  readonly sinceMs: number;
  readonly found: Promise<Pool>;
}

interface UseOptions {
  /** When it must have ended; by default as for an operation that starts now. */
  readonly dueAtMs?: number;
  /** Whether to search for the new primary if the known one is lost. */
  readonly waitsForPrimary?: boolean;
}

export class PrimaryPool {
  readonly #limits: ConnectionLimits;
  /**
   * Leaves one connection free, so that writes always find one. A garden gets a third of the rest:
   * with all of them, its lists kept the server and this thread busy for everyone.
   */
  readonly #reads: FairSemaphore;
  #target: Target;
  #pool: Pool | undefined;
  #search: Search | undefined;
  /** Why each host could not be used when it was last tried. */
  readonly #refusals = new Map<Host, unknown>();
  #isClosed = false;
  /** Clients that have reported an error: their connection is lost. */
  readonly #lost = new WeakSet<ClientBase>();
  #ping: Promise<unknown> | undefined;

  constructor(url: DatabaseUrl, limits: ConnectionLimits) {
    this.#target = { url, limits, schema: undefined };
    this.#limits = limits;
    const places = Math.max(1, limits.poolSize - 1);
    this.#reads = new FairSemaphore(places, Math.ceil(places / 3));
  }

  /**
   * Connects at the start of a process. `prepare` checks the database, and may migrate it. Fails
   * with `unavailable`, in one line that names the database and no secret.
   */
  static async open(
    url: string,
    limits: ConnectionLimits = defaultConnectionLimits,
    prepare: (client: ClientBase) => Promise<void>,
  ): Promise<PrimaryPool> {
    const parsed = parseUrl(url);
    const pool = new PrimaryPool(parsed, limits);
    try {
      const server = await pool.#tryHosts(once).catch(() => {
        throw noServer(parsed, pool.#refusals);
      });
      // With the role's own search path, which may lead to another store than the first of it.
      await withConnection(pool.#target, server, prepare);
      pool.#connectTo(server);
      // So that the first request finds a connection.
      await pool.ping();
      return pool;
    } catch (error) {
      await pool.close();
      const message = `Cannot open ${maskUrl(url)}: ${explain(error, parsed)}.`;
      throw new PlantStoreError("unavailable", message, { cause: error });
    }
  }

  /** Waits for a primary, but no longer than connecting may take. */
  async settle(): Promise<void> {
    await this.#find(this.dueAtMs()).catch(() => {});
  }

  usage(): PoolUse {
    const { totalCount = 0, idleCount = 0, waitingCount = 0 } = this.#pool ?? {};
    return {
      connectionsMax: this.#limits.poolSize,
      busy: totalCount - idleCount,
      idle: idleCount,
      waiting: waitingCount + this.#reads.waiting,
    };
  }

  /** When an operation that starts now must have ended. */
  dueAtMs(): number {
    return performance.now() + this.#limits.statementTimeoutMs + graceMs;
  }

  /**
   * Runs work on a connection of the pool, and cuts the connection if the work isn't done in time.
   * Fails with `ConnectionLost` if there is no connection or it breaks; other errors are the
   * work's.
   */
  async use<Result>(
    work: (client: PoolClient) => Promise<Result>,
    { dueAtMs = this.dueAtMs(), waitsForPrimary = true }: UseOptions = {},
  ): Promise<Result> {
    const [pool, client] = await this.#acquire(dueAtMs, waitsForPrimary);
    const sinceMs = performance.now();
    let isBroken = false;
    try {
      return await before(dueAtMs, work(client));
    } catch (error) {
      const isUseless = error instanceof ConnectionLost;
      isBroken = isUseless || isLost(error) || this.#lost.has(client) || isInTransaction(client);
      const isLate = isUseless && reasonOf(error) === undefined;
      if (isLate) cut(client);
      // Leave a server that had enough time to respond, or that no longer accepts writes.
      const hadTime = performance.now() - sinceMs >= this.#limits.statementTimeoutMs;
      if (isLate ? hadTime : isUseless || hasState(error, "25006")) this.#leave(pool);
      const isKnown = isUseless || error instanceof DatabaseError || !isBroken;
      throw isKnown ? error : new ConnectionLost("Connection lost.", { cause: error });
    } finally {
      client.release(isBroken);
    }
  }

  /** The same for a garden's read. It waits for its turn, or fails with `overloaded`. */
  read<Result>(
    garden: string,
    work: (client: PoolClient) => Promise<Result>,
    dueAtMs: number,
  ): Promise<Result> {
    return this.#reads.run(garden, () => this.use(work, { dueAtMs }));
  }

  /**
   * Fails with `ConnectionLost`, soon, unless there is a primary that responds.
   * Concurrent calls share one query: anyone may call /readyz, and writes need the connections.
   */
  async ping(): Promise<void> {
    // Waits a moment: until the hosts were tried, nobody knows why there is no primary.
    if (!this.#pool) await this.#find(performance.now() + pauseMaxMs);
    this.#ping ??= this.use(checkServer, { waitsForPrimary: false }).finally(() => {
      this.#ping = undefined;
    });
    await this.#ping;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const pool = this.#pool;
    this.#pool = undefined;
    await Promise.race([pool?.end(), new Promise((resolve) => setTimeout(resolve, closeMs))]);
  }

  /** Tries twice: the first try may only find out that the primary is lost. */
  async #acquire(dueAtMs: number, waitsForPrimary: boolean): Promise<[Pool, PoolClient]> {
    for (let isLastTry = !waitsForPrimary; ; isLastTry = true) {
      const pool = this.#pool ?? (await this.#find(dueAtMs));
      const isBusy = pool.totalCount >= this.#limits.poolSize && pool.idleCount === 0;
      const connecting = pool.connect();
      // Also after the caller has given up. A server without a free connection is still there.
      connecting.catch((error) => {
        if (!isBusy && !hasState(error, "53300")) this.#leave(pool);
      });
      try {
        return [pool, await before(dueAtMs, connecting)];
      } catch (error) {
        connecting.then(
          (client) => client.release(),
          () => {},
        );
        const isLeft = this.#pool !== pool;
        if (!isLeft || isLastTry || performance.now() >= dueAtMs) {
          throw error instanceof ConnectionLost
            ? error
            : new ConnectionLost("No connection.", { cause: error });
        }
      }
    }
  }

  /**
   * All callers share one search, so that a server that is down isn't flooded. Nobody waits once it
   * has lasted longer than connecting may.
   */
  async #find(dueAtMs: number): Promise<Pool> {
    const search = this.#startSearch();
    const giveUpAtMs = Math.min(dueAtMs, search.sinceMs + this.#limits.connectTimeoutMs);
    try {
      return await before(giveUpAtMs, search.found);
    } catch {
      const cause = noServer(this.#target.url, this.#refusals);
      throw new ConnectionLost("No server takes writes.", { cause });
    }
  }

  #startSearch(): Search {
    if (this.#search) return this.#search;
    const found = this.#searchOn();
    found.catch(() => {});
    this.#search = { sinceMs: performance.now(), found };
    return this.#search;
  }

  async #searchOn(): Promise<Pool> {
    const over = new AbortController();
    try {
      const pool = this.#connectTo(await this.#tryHosts(over.signal));
      this.#search = undefined;
      return pool;
    } finally {
      over.abort();
    }
  }

  /** Each on its own, so that a silent one does not hold up the others. */
  #tryHosts(over: AbortSignal): Promise<Server> {
    this.#refusals.clear();
    return Promise.any(this.#target.url.hosts.map((host) => this.#keepTrying(host, over)));
  }

  async #keepTrying(host: Host, over: AbortSignal): Promise<Server> {
    for (let pauseMs = pauseMinMs; ; pauseMs = Math.min(pauseMs * 2, pauseMaxMs)) {
      try {
        return await tryHost(this.#target, host);
      } catch (error) {
        this.#refusals.set(host, error);
        if (this.#isClosed || over.aborted) throw error;
      }
      await Bun.sleep(pauseMs * (0.5 + Math.random()));
    }
  }

  #connectTo(server: Server): Pool {
    if (this.#isClosed) throw new ConnectionLost("The storage is closed.");
    this.#target = { ...this.#target, schema: this.#target.schema ?? server.schema };
    const pool = new Pool({
      ...clientConfig(this.#target, server),
      max: this.#limits.poolSize,
      connectionTimeoutMillis: this.#limits.connectTimeoutMs,
      onConnect: async (client) => {
        // Right away: it may break before the pool hands it out.
        client.on("error", () => this.#lost.add(client));
        // A load balancer may lead to another server than it did before.
        await withConnectTimeout(client, this.#limits, () => checkServer(client));
      },
    });
    // `use` notices a lost connection; without a listener it would end the process.
    pool.on("error", () => {});
    this.#pool = pool;
    return pool;
  }

  #leave(pool: Pool): void {
    if (this.#pool === pool) {
      this.#pool = undefined;
      this.#startSearch();
    }
    if (!pool.ending) pool.end().catch(() => {});
  }
}

function isInTransaction(client: PoolClient): boolean {
  return client.getTransactionStatus() !== "I";
}

/** Fails with `ConnectionLost` if the work isn't done in time. */
async function before<Result>(dueAtMs: number, work: Promise<Result>): Promise<Result> {
  let timer: Timer | undefined;
  const late = new Promise<never>((_, reject) => {
    const remainingMs = Math.max(0, dueAtMs - performance.now());
    timer = setTimeout(() => reject(new ConnectionLost("No response in time.")), remainingMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
