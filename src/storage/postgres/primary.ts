/**
 * Finds the server that takes writes, hands out connections to it, and looks for it again when it
 * is gone. It knows when a connection is lost, and nothing of what is asked over it.
 */
import { type ClientBase, DatabaseError, Pool, type PoolClient } from "pg";
import { PlantStoreError } from "../../domain/errors.ts";
import type { ConnectionLimits } from "../../domain/storage.ts";
import { type Address, describeHost } from "./address.ts";
import {
  clientConfig,
  cut,
  explain,
  probe,
  promptly,
  reasonOf,
  requireDurable,
  requireWritable,
  type Server,
} from "./connection.ts";
import { before } from "./deadline.ts";
import { ConnectionLost, hasState, isLost } from "./failure.ts";
import { isBehind, type Lineage, replaced, requireSame } from "./lineage.ts";
import { clientsThatTell } from "./telling-client.ts";
import { WaitingLine } from "./waiting-line.ts";
import { Whereabouts } from "./whereabouts.ts";

/** Beyond the server's own limit, so that its answer is heard before the connection is cut. */
const graceMs = 1_000;
const pauseMinMs = 50;
const pauseMaxMs = 500;
const closeMs = 2_000;
/** For the other hosts to answer, once one takes writes: there may be a newer one. */
const secondLookMs = 250;

/** Goes on until a server takes writes, or the storage is closed. */
interface Search {
  readonly sinceMs: number;
  readonly found: Promise<Pool>;
  /** Why there is none yet. */
  reason: unknown;
}

export interface UseOptions {
  /** The moment by which it must be over; the default is that of an operation which starts now. */
  readonly dueAtMs?: number;
  /** Whether a server that has changed is looked for. */
  readonly isPatient?: boolean;
}

export class Primary {
  readonly whereabouts = new Whereabouts();
  readonly #address: Address;
  readonly #limits: ConnectionLimits;
  readonly #line: WaitingLine;
  #pool: Pool | undefined;
  #search: Search | undefined;
  #newest: Lineage | undefined;
  #isClosed = false;
  /** Clients whose connection is gone, as their own errors told. */
  readonly #lost = new WeakSet<ClientBase>();
  /** What is being asked to tell whether a server answers. */
  readonly #pings = new WeakMap<Pool, Promise<void>>();

  constructor(address: Address, limits: ConnectionLimits) {
    this.#address = address;
    this.#limits = limits;
    this.#line = new WaitingLine(Math.max(1, limits.poolSize - 1));
  }

  /**
   * Looks once. Fails with `unavailable` and the reason, in words that follow "Cannot open …: ".
   */
  async open(): Promise<void> {
    this.#pool = this.#makePool(await this.#look());
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
    { dueAtMs = this.dueAtMs(), isPatient = true }: UseOptions = {},
  ): Promise<Result> {
    const [pool, client] = await this.#acquire(dueAtMs, isPatient);
    const sinceMs = performance.now();
    let isBroken = false;
    try {
      return await before(dueAtMs, work(client));
    } catch (error) {
      const isUseless = error instanceof ConnectionLost;
      isBroken = isUseless || isLost(error) || this.#lost.has(client) || !isAtRest(client);
      const isLate = isUseless && reasonOf(error) === undefined;
      if (isLate) cut(client);
      // A server that had its time to answer, or takes no writes any more, is not asked again.
      const hadTime = performance.now() - sinceMs >= this.#limits.statementTimeoutMs;
      if (isLate ? hadTime : isUseless || hasState(error, "25006")) this.#leave(pool);
      const isKnown = isUseless || error instanceof DatabaseError || !isBroken;
      throw isKnown ? error : new ConnectionLost("Connection lost.", { cause: error });
    } finally {
      client.release(isBroken);
    }
  }

  /**
   * The same for a request that can be refused: it waits for its turn, and fails with `overloaded`
   * if that comes too late. One connection is left to all else: if commits waited behind requests,
   * they would be too late themselves. Where there is a line of its own for some, they wait there
   * first.
   */
  async serve<Result>(
    work: (client: PoolClient) => Promise<Result>,
    dueAtMs: number,
    line?: WaitingLine,
  ): Promise<Result> {
    if (!this.#pool) await this.#find(dueAtMs);
    const serve = () => this.#line.pass(() => this.use(work, { dueAtMs }));
    return line ? line.pass(serve) : serve();
  }

  /**
   * Fails with `ConnectionLost`, at once, unless the server that takes writes is known and answers,
   * and shows all of the store. All who ask meanwhile share one answer: anyone may ask, and commits
   * would wait behind them.
   */
  async ping(): Promise<void> {
    const pool = this.#pool;
    if (pool === undefined) throw new ConnectionLost("No server is known to take writes.");
    const ask = async (client: ClientBase) => {
      await requireWritable(client);
      await this.whereabouts.requireStill(client);
    };
    const asked =
      this.#pings.get(pool) ??
      this.use(ask, { isPatient: false }).finally(() => this.#pings.delete(pool));
    this.#pings.set(pool, asked);
    await asked;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const pool = this.#pool;
    this.#pool = undefined;
    await Promise.race([pool?.end(), new Promise((resolve) => setTimeout(resolve, closeMs))]);
  }

  /**
   * Tries twice, because the first try may be how it is learnt that the server has changed; who is
   * not patient wants to know just that.
   */
  async #acquire(dueAtMs: number, isPatient: boolean): Promise<[Pool, PoolClient]> {
    for (let isLastTry = !isPatient; ; isLastTry = true) {
      const pool = this.#pool ?? (await this.#find(dueAtMs));
      const connecting = pool.connect();
      try {
        const client = await before(dueAtMs, connecting);
        return [pool, client];
      } catch (error) {
        connecting.then(
          (client) => client.release(),
          () => {},
        );
        // Else all connections are in use, here or there, or the work had no time left.
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
   * All who ask meanwhile share one search, so that a server that is down is not stormed. Nobody
   * waits for it when it has lasted longer than a connection may: an answer at once is better.
   */
  async #find(dueAtMs: number): Promise<Pool> {
    const search = this.#startSearch();
    const giveUpAtMs = Math.min(dueAtMs, search.sinceMs + this.#limits.connectTimeoutMs);
    try {
      return await before(giveUpAtMs, search.found);
    } catch {
      throw new ConnectionLost("No server takes writes.", { cause: search.reason });
    }
  }

  #startSearch(): Search {
    if (this.#search) return this.#search;
    const { promise: found, resolve, reject } = Promise.withResolvers<Pool>();
    found.catch(() => {});
    const search: Search = { sinceMs: performance.now(), found, reason: undefined };
    this.#search = search;
    this.#searchOn(search).then(resolve, reject);
    return search;
  }

  async #searchOn(search: Search): Promise<Pool> {
    for (let pauseMs = pauseMinMs; ; pauseMs = Math.min(pauseMs * 2, pauseMaxMs)) {
      try {
        const pool = this.#makePool(await this.#look());
        this.#pool = pool;
        this.#search = undefined;
        return pool;
      } catch (error) {
        search.reason = error;
        if (this.#isClosed) throw error;
      }
      await Bun.sleep(pauseMs * (0.5 + Math.random()));
    }
  }

  /**
   * Asks all hosts at once. Of those that take writes it takes the one that was promoted last: an
   * old primary that came back does not know that it was replaced.
   */
  async #look(): Promise<Server> {
    const address = this.#address;
    const { hosts } = address;
    const servers: Server[] = [];
    const probes = hosts.map(async (host) => {
      const server = await probe(address, host, this.#limits, (client) =>
        this.whereabouts.requireStore(client),
      );
      if (isBehind(server.lineage, this.#newest)) throw replaced;
      servers.push(server);
    });
    try {
      await Promise.any(probes);
    } catch (failure) {
      const reasons = (failure as AggregateError).errors.map((error, index) => {
        const host = hosts[index];
        const where = hosts.length > 1 && host ? `${describeHost(host)}: ` : "";
        return where + explain(error, address);
      });
      throw new PlantStoreError("unavailable", reasons.join("; "), { cause: failure });
    }
    await Promise.race([Promise.allSettled(probes), Bun.sleep(secondLookMs)]);
    const server = servers.reduce((best, other) =>
      isBehind(best.lineage, other.lineage) ? other : best,
    );
    this.#newest = server.lineage ?? this.#newest;
    return server;
  }

  #makePool(server: Server): Pool {
    if (this.#isClosed) throw new ConnectionLost("The storage is closed.");
    // That the server has no connection left is no reason to drop those that work.
    const note = (failure: unknown) => !hasState(failure, "53300") && this.#leave(pool);
    const pool = new Pool({
      ...clientConfig(this.#address, server, this.#limits),
      max: this.#limits.poolSize,
      connectionTimeoutMillis: this.#limits.connectTimeoutMs,
      Client: clientsThatTell(note),
      onConnect: async (client) => {
        // From its first moment on: it may be lost before it is handed out.
        client.on("error", () => this.#lost.add(client));
        await promptly(client, this.#limits, async () => {
          await requireWritable(client);
          await requireDurable(client);
          await requireSame(client, server.lineage);
          await this.whereabouts.requireSame(client);
        }).catch((failure) => {
          note(failure);
          throw failure;
        });
      },
    });
    // What is lost is noticed where it is used; without a listener it would end the process.
    pool.on("error", () => {});
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

/** Whether no transaction is under way. */
function isAtRest(client: PoolClient): boolean {
  return client.getTransactionStatus() === "I";
}
