/**
 * Runs statements and transactions on a pool of connections: by a deadline, and again where that is
 * safe and may help. Fails with the domain's errors, and tells a failure that changed nothing from
 * an unknown outcome.
 */
import { DatabaseError, type Pool, type PoolClient, type QueryResult } from "pg";
import { PlantStoreError } from "../../domain/errors.ts";
import { Semaphore } from "../../limits/semaphore.ts";
import { deadline, singleFlight } from "../../shared/promises.ts";
import { unknownOutcome } from "../failures.ts";
import { type ConnectionLimits, closeMs, type PoolUse } from "../storage.ts";
import { type ConnectionMode, clientConfig, createPool, findMode } from "./connect.ts";
import { beginWrite, type Connection, unknownStatementStates } from "./connection.ts";
import {
  ConnectionLost,
  describeFailure,
  hasState,
  isOutcomeUnknown,
  isReadOnly,
  mapError,
  needsNewConnection,
} from "./errors.ts";
import { maskUrl, parseUrl } from "./url.ts";

const triesMax = 10;
const racePauseMinMs = 5;
const racePauseMaxMs = 250;
const connectPauseMs = 100;
/** One in so many connections may wait for a garden. */
const waitsShare = 5;
/** For what an operator waits for. */
const longMs = 7 * 24 * 60 * 60 * 1000;
/** Beyond the server's own limit, so that its response arrives before the connection is cut. */
const graceMs = 1_000;

/** Serialization failures and deadlocks, which the server rolled back; and see `unknownStatementStates`. */
const races = ["40001", "40P01", ...unknownStatementStates];

/**
 * Calls `announceCommit` before sending anything that could commit. After that, a lost connection
 * means an unknown outcome.
 */
type Work<Result> = (client: Connection, announceCommit: () => void) => Promise<Result>;

interface RunOptions {
  readonly dueAtMs?: number;
  /** Ends the message about an unknown outcome if a command, not a request, made the write. */
  readonly advice?: string | undefined;
}

/** A connection, and the pool to give it back to. */
interface Lease {
  readonly pool: Pool;
  readonly client: Connection & Pick<PoolClient, "release">;
}

export class TransactionRunner {
  readonly #makePool: () => Pool;
  readonly #limits: ConnectionLimits;
  /** How many writes may wait for a garden at the same time, each on a connection. */
  readonly waitsMax: number;
  /** Leaves a connection free for commits, and those on which writes may wait. */
  readonly #reads: Semaphore;
  #pool: Pool;
  /** When connecting first failed; absent once it has succeeded. */
  #failingSinceMs: number | undefined;
  readonly #sharedCheck = singleFlight(() => this.#check());

  constructor(makePool: () => Pool, limits: ConnectionLimits) {
    this.#makePool = makePool;
    this.#limits = limits;
    this.waitsMax = Math.max(1, Math.floor(limits.poolSize / waitsShare));
    const permits = Math.max(1, limits.poolSize - 1 - this.waitsMax);
    // With all of them, one garden's lists kept the server and this thread busy for everyone.
    this.#reads = new Semaphore(permits, Math.ceil(permits / 3));
    this.#pool = makePool();
  }

  /**
   * Connects at the start of a process. `setUp` checks the database, and may migrate it. Fails
   * with `unavailable`, in one line that names the database and no secret.
   */
  static async open(
    address: string,
    limits: ConnectionLimits,
    setUp: (client: Connection) => Promise<void>,
  ): Promise<{ runner: TransactionRunner; mode: ConnectionMode }> {
    const url = parseUrl(address);
    let runner: TransactionRunner | undefined;
    try {
      const mode = await findMode(url, limits, setUp);
      runner = TransactionRunner.create(address, limits, mode);
      // So that the first request finds a connection.
      await runner.#check();
      return { runner, mode };
    } catch (error) {
      await runner?.close();
      const message = `Cannot open ${maskUrl(address)}: ${describeFailure(error, url)}.`;
      throw new PlantStoreError("unavailable", message, { cause: error });
    }
  }

  /** Uses the mode that the first connection of the process has found. */
  static create(
    address: string,
    limits: ConnectionLimits,
    mode: ConnectionMode,
  ): TransactionRunner {
    const config = clientConfig(parseUrl(address), limits, mode);
    return new TransactionRunner(() => createPool(config, limits), limits);
  }

  usage(): PoolUse {
    const { totalCount, idleCount, waitingCount } = this.#pool;
    return {
      connectionsMax: this.#limits.poolSize,
      busy: totalCount - idleCount,
      idle: idleCount,
      waiting: waitingCount + this.#reads.waiting,
    };
  }

  get hasOneConnection(): boolean {
    return this.#limits.poolSize === 1;
  }

  get statementTimeoutMs(): number {
    return this.#limits.statementTimeoutMs;
  }

  /** When work that starts now must have ended, unless it is given another time. */
  dueAtMs(): number {
    return performance.now() + this.#limits.statementTimeoutMs + graceMs;
  }

  /** One statement that changes nothing, so it can be sent again after a lost connection. */
  query(text: string, values: readonly unknown[] = []): Promise<QueryResult> {
    return this.run((client) => client.send(text, values));
  }

  /** The same for a request's read. Gardens take turns, and some connections are left for writes. */
  read(garden: string, text: string, values: readonly unknown[]): Promise<QueryResult> {
    const options = { dueAtMs: this.dueAtMs() };
    return this.#reads.run(garden, () => this.run((client) => client.send(text, values), options));
  }

  /** One statement as a transaction of its own. */
  write(
    text: string,
    values: readonly unknown[] = [],
    options: RunOptions = {},
  ): Promise<QueryResult> {
    return this.run((client, announceCommit) => {
      announceCommit();
      return client.send(text, values);
    }, options);
  }

  /**
   * Runs the work again after a race, and once if its connection was lost before the commit. All
   * tries together end by `dueAtMs`. If no connection can be made, there is no second try.
   */
  async run<Result>(
    work: Work<Result>,
    { dueAtMs = this.dueAtMs(), advice }: RunOptions = {},
  ): Promise<Result> {
    for (let tries = 1; ; tries++) {
      const lease = await this.#connect(dueAtMs).catch(throwMapped);
      let isCommitting = false;
      const announceCommit = () => {
        isCommitting = true;
      };
      try {
        return await this.#use(lease, dueAtMs, (client) =>
          client.failOnWarning(() => work(client, announceCommit)),
        );
      } catch (error) {
        if (isCommitting && isOutcomeUnknown(error)) throw unknownOutcome(error, advice);
        // Nothing was changed, so the work may be tried again.
        const pauseMs = pauseBeforeNext(tries, error);
        if (performance.now() + pauseMs > dueAtMs) throw mapError(error);
        await Bun.sleep(pauseMs);
      }
    }
  }

  /** One transaction that may take long, for a command. The rest is as with `run`. */
  runLong<Result>(advice: string, work: (client: Connection) => Promise<Result>): Promise<Result> {
    const dueAtMs = performance.now() + longMs;
    return this.run(
      (client, announceCommit) => runLong(client, () => work(client), announceCommit),
      { dueAtMs, advice },
    );
  }

  /**
   * Checks that the database responds and accepts writes. Fails soon instead of waiting out an
   * outage. Calls share one query: anyone may call /readyz, and writes need the connections.
   */
  async ping(): Promise<void> {
    await this.#sharedCheck().catch(throwMapped);
  }

  async close(): Promise<void> {
    await deadline(this.#pool.end(), closeMs, () => {});
  }

  async #check(): Promise<void> {
    const dueAtMs = this.dueAtMs();
    await this.#use(await this.#connectOnce(dueAtMs), dueAtMs, (client) => client.checkServer());
  }

  /**
   * Runs the work, and cuts the connection if the work isn't done in time. Fails with
   * `ConnectionLost` if the connection breaks; other errors are the work's.
   */
  async #use<Result>(
    { pool, client }: Lease,
    dueAtMs: number,
    work: (client: Connection) => Promise<Result>,
  ): Promise<Result> {
    const startedAtMs = performance.now();
    let failure: UseFailure | undefined;
    try {
      return await deadline(work(client), dueAtMs - startedAtMs, () => {
        client.cut();
        throw new NoResponse("No response in time.");
      });
    } catch (error) {
      const hadTime = performance.now() - startedAtMs >= this.#limits.statementTimeoutMs;
      failure = classify(error, client.isUnusable, hadTime);
      if (failure.isServer) this.#replace(pool);
      throw failure.error;
    } finally {
      client.release(failure?.isConnection ?? false);
    }
  }

  /**
   * Takes a connection from the pool. After a failure it tries again, until connecting has been
   * failing for the connect timeout. A server that doesn't respond uses that up in one try.
   */
  async #connect(dueAtMs: number): Promise<Lease> {
    for (;;) {
      const startedAtMs = performance.now();
      try {
        const lease = await this.#connectOnce(dueAtMs);
        this.#failingSinceMs = undefined;
        return lease;
      } catch (error) {
        this.#failingSinceMs ??= startedAtMs;
        const giveUpAtMs = Math.min(dueAtMs, this.#failingSinceMs + this.#limits.connectTimeoutMs);
        const pauseMs = connectPauseMs * (0.5 + Math.random());
        if (performance.now() + pauseMs > giveUpAtMs || this.#pool.ending) throw error;
        await Bun.sleep(pauseMs);
      }
    }
  }

  /** Fails with `ConnectionLost`. */
  async #connectOnce(dueAtMs: number): Promise<Lease> {
    const pool = this.#pool;
    const connecting = pool.connect();
    try {
      const client = await deadline(connecting, dueAtMs - performance.now(), () => {
        throw new ConnectionLost("No connection in time.");
      });
      return { pool, client: client as Lease["client"] };
    } catch (error) {
      // If it's made after all, another call can use it.
      connecting.then(
        (client) => client.release(),
        () => {},
      );
      if (error instanceof ConnectionLost) throw error;
      throw new ConnectionLost("No connection.", { cause: error });
    }
  }

  /** Unless somebody else has replaced it, or the storage is being closed. */
  #replace(pool: Pool): void {
    if (this.#pool !== pool || pool.ending) return;
    this.#pool = this.#makePool();
    pool.end().catch(() => {});
  }
}

/** The server didn't respond in time, so its connection was cut. */
class NoResponse extends ConnectionLost {}

interface UseFailure {
  readonly error: unknown;
  /** This connection can't be used again. */
  readonly isConnection: boolean;
  /** Nor can the pool's others: they lead to the same server, which is silent or read-only. */
  readonly isServer: boolean;
}

/** `hadTime`: the server had the time that a statement may take. */
function classify(error: unknown, isUnusable: boolean, hadTime: boolean): UseFailure {
  const isConnection = needsNewConnection(error) || isUnusable;
  const isServer = (error instanceof NoResponse && hadTime) || isReadOnly(error);
  const isNamed = error instanceof ConnectionLost || error instanceof DatabaseError;
  const isAnonymousLoss = isConnection && !isNamed;
  return {
    error: isAnonymousLoss ? new ConnectionLost("Connection lost.", { cause: error }) : error,
    isConnection,
    isServer,
  };
}

/** How long to wait before the work is tried again; forever if it can't do better then. */
function pauseBeforeNext(tries: number, error: unknown): number {
  if (hasState(error, ...races) && tries < triesMax) {
    return Math.random() * Math.min(racePauseMinMs * 2 ** tries, racePauseMaxMs);
  }
  return needsNewConnection(error) && tries === 1 ? 0 : Number.POSITIVE_INFINITY;
}

function throwMapped(error: unknown): never {
  throw mapError(error);
}

/** One transaction without time limits, even if the role has some. */
export async function runLong<Result>(
  client: Connection,
  work: () => Promise<Result>,
  announceCommit: () => void = () => {},
): Promise<Result> {
  await client.query(beginWrite);
  try {
    // Not by SET LOCAL: servers before PostgreSQL 17 know no transaction_timeout.
    await client.query(
      `SELECT set_config(name, '0', true) FROM pg_settings WHERE name IN ('statement_timeout',
         'idle_in_transaction_session_timeout', 'transaction_timeout')`,
    );
    const result = await work();
    announceCommit();
    await client.query("COMMIT");
    return result;
  } catch (error) {
    await client.query("ROLLBACK").catch(() => {});
    throw error;
  }
}
