/**
 * Connections to the server that takes writes. When that server is gone, it looks for one that does
 * among the hosts of the URL. It knows when a connection is lost, not what is asked over it.
 */
import { type ClientBase, DatabaseError, Pool, type PoolClient } from "pg";
import { PlantStoreError } from "../../domain/errors.ts";
import { type ConnectionLimits, defaultConnectionLimits } from "../../domain/storage.ts";
import {
  checkServer,
  clientConfig,
  cut,
  findServer,
  inTime,
  type Server,
  type Target,
  withConnection,
} from "./connect.ts";
import { ConnectionLost, explain, hasState, isLost, reasonOf } from "./errors.ts";
import { type DatabaseUrl, maskUrl, parseUrl } from "./url.ts";

/** Beyond the server's own limit, so that its response arrives before the connection is cut. */
const graceMs = 1_000;
const pauseMinMs = 50;
const pauseMaxMs = 500;
const closeMs = 2_000;

/** Lasts until a server takes writes, or the storage is closed. */
interface Search {
  readonly sinceMs: number;
  readonly found: Promise<Pool>;
}

export interface UseOptions {
  /** The moment by which it must be over; by default that of an operation which starts now. */
  readonly dueAtMs?: number;
  /** Whether a server that has changed is looked for. */
  readonly isPatient?: boolean;
  /** Whether it leaves one connection to writes. */
  readonly isRead?: boolean;
}

export class PrimaryPool {
  readonly #limits: ConnectionLimits;
  /** Reads leave one connection to writes, which would be late after many lists. */
  readonly #reads: Semaphore;
  #target: Target;
  #pool: Pool | undefined;
  #search: Search | undefined;
  /** Why the last try found no server. */
  #searchFailure: unknown;
  #isClosed = false;
  /** Clients that have reported an error, so that their connection is gone. */
  readonly #lost = new WeakSet<ClientBase>();
  #ping: Promise<unknown> | undefined;

  constructor(url: DatabaseUrl, limits: ConnectionLimits) {
    this.#target = { url, limits, schema: undefined };
    this.#limits = limits;
    this.#reads = new Semaphore(Math.max(1, limits.poolSize - 1));
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
      const server = await findServer(pool.#target);
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

  /**
   * Resolves once there is a server, or when it has been looked for so long that it seems far away.
   */
  async settle(): Promise<void> {
    await this.#find(this.dueAtMs()).catch(() => {});
  }

  /** The moment by which an operation that starts now is over, one way or the other. */
  dueAtMs(): number {
    return performance.now() + this.#limits.statementTimeoutMs + graceMs;
  }

  /**
   * Runs work on a connection of its own, which is cut when the work is not done in time. Fails
   * with `ConnectionLost` where there is no connection, or none any more; other errors are the
   * work's.
   */
  async use<Result>(
    work: (client: PoolClient) => Promise<Result>,
    { dueAtMs = this.dueAtMs(), isPatient = true, isRead = false }: UseOptions = {},
  ): Promise<Result> {
    if (isRead) return this.#reads.run(() => this.use(work, { dueAtMs, isPatient }));
    const [pool, client] = await this.#acquire(dueAtMs, isPatient);
    const sinceMs = performance.now();
    let isBroken = false;
    try {
      return await before(dueAtMs, work(client));
    } catch (error) {
      const isUseless = error instanceof ConnectionLost;
      isBroken = isUseless || isLost(error) || this.#lost.has(client) || isInTransaction(client);
      const isLate = isUseless && reasonOf(error) === undefined;
      if (isLate) cut(client);
      // A server that had its time to respond, or takes no writes any more, is not asked again.
      const hadTime = performance.now() - sinceMs >= this.#limits.statementTimeoutMs;
      if (isLate ? hadTime : isUseless || hasState(error, "25006")) this.#leave(pool);
      const isKnown = isUseless || error instanceof DatabaseError || !isBroken;
      throw isKnown ? error : new ConnectionLost("Connection lost.", { cause: error });
    } finally {
      client.release(isBroken);
    }
  }

  /**
   * Fails with `ConnectionLost`, at once, unless a server that takes writes is known and responds.
   * Everyone who asks meanwhile shares one query: anyone may ask, and writes would wait.
   */
  async ping(): Promise<void> {
    if (!this.#pool) throw new ConnectionLost("No server is known to take writes.");
    this.#ping ??= this.use(checkServer, { isPatient: false }).finally(() => {
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

  /** Tries twice, because the first try may be what shows that the server has changed. */
  async #acquire(dueAtMs: number, isPatient: boolean): Promise<[Pool, PoolClient]> {
    for (let isLastTry = !isPatient; ; isLastTry = true) {
      const pool = this.#pool ?? (await this.#find(dueAtMs));
      const isBusy = pool.totalCount >= this.#limits.poolSize && pool.idleCount === 0;
      const connecting = pool.connect();
      // Also once the time of who asked is over. A server that has no connection left is there.
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
   * Everyone shares one search, so that a server that is down is not stormed. Nobody waits for it
   * once it has lasted longer than connecting may.
   */
  async #find(dueAtMs: number): Promise<Pool> {
    const search = this.#startSearch();
    const giveUpAtMs = Math.min(dueAtMs, search.sinceMs + this.#limits.connectTimeoutMs);
    try {
      return await before(giveUpAtMs, search.found);
    } catch {
      throw new ConnectionLost("No server takes writes.", { cause: this.#searchFailure });
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
    for (let pauseMs = pauseMinMs; ; pauseMs = Math.min(pauseMs * 2, pauseMaxMs)) {
      try {
        const pool = this.#connectTo(await findServer(this.#target));
        this.#search = undefined;
        return pool;
      } catch (error) {
        this.#searchFailure = error;
        if (this.#isClosed) throw error;
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
        // From its first moment on: it may be lost before it is handed out.
        client.on("error", () => this.#lost.add(client));
        // A load balancer may lead to another server than it did before.
        await inTime(client, this.#limits, () => checkServer(client));
      },
    });
    // What is lost is noticed where it is used; without a listener it would end the process.
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

/** Fails with `ConnectionLost` when the time is over before the work is. */
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

/** Runs so many at a time, first come, first served. */
class Semaphore {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(places: number) {
    this.#free = places;
  }

  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free++;
    }
  }
}
