/**
 * Runs statements and transactions, and runs them again where that is safe and may help. Fails with
 * the domain's errors, and tells a failure that changed nothing from an unknown outcome.
 */
import type { ClientBase, QueryResult } from "pg";
import { hasState, isLost, isOutcomeUnknown, mapError, unknownOutcome } from "./errors.ts";
import type { PrimaryPool } from "./pool.ts";
import { nameFailures, send } from "./statement.ts";

const triesMax = 10;
const pauseMs = 5;
const pauseMaxMs = 250;

/** Serialization failures and deadlocks, which the server rolled back; and see `nameFailures`. */
const races = ["40001", "40P01", ...nameFailures];

/** `announceCommit` is called just before anything is sent that may make the work last. */
type Work<Result> = (client: ClientBase, announceCommit: () => void) => Promise<Result>;

interface RunOptions {
  readonly dueAtMs?: number;
  /** Whose read it is, for its turn; absent for everything else, which waits for nobody. */
  readonly readBy?: string;
  /** Ends the message of an unknown outcome where a command, not a request, did the write. */
  readonly advice?: string | undefined;
}

export class TransactionRunner {
  readonly #pool: PrimaryPool;

  constructor(pool: PrimaryPool) {
    this.#pool = pool;
  }

  /** When work that starts now must have ended, unless it is given another time. */
  dueAtMs(): number {
    return this.#pool.dueAtMs();
  }

  /** One statement that changes nothing, so it can be sent again after a lost connection. */
  query(text: string, values: readonly unknown[] = []): Promise<QueryResult> {
    return this.run((client) => send(client, text, values));
  }

  /** The same for a request's read. Gardens take turns, and one connection is left for writes. */
  read(
    garden: string,
    text: string,
    values: readonly unknown[],
    dueAtMs = this.dueAtMs(),
  ): Promise<QueryResult> {
    return this.run((client) => send(client, text, values), { readBy: garden, dueAtMs });
  }

  /** One statement as a transaction of its own. */
  write(text: string, values: readonly unknown[] = [], advice?: string): Promise<QueryResult> {
    return this.run(
      (client, announceCommit) => {
        announceCommit();
        return send(client, text, values);
      },
      { advice },
    );
  }

  /**
   * Runs the work again after a race, and once if the connection was lost before the commit. All
   * tries together end by `dueAtMs`.
   */
  async run<Result>(work: Work<Result>, options: RunOptions = {}): Promise<Result> {
    const { dueAtMs = this.dueAtMs(), readBy, advice } = options;
    for (let tries = 1; ; tries++) {
      let isCommitting = false;
      const announceCommit = () => {
        isCommitting = true;
      };
      try {
        const useClient = (client: ClientBase) =>
          withWarnings(client, () => work(client, announceCommit));
        const [result, warning] = await (readBy === undefined
          ? this.#pool.use(useClient, { dueAtMs })
          : this.#pool.read(readBy, useClient, dueAtMs));
        if (isCommitting && warning !== undefined) throw warning;
        return result;
      } catch (error) {
        if (isCommitting && isOutcomeUnknown(error)) throw unknownOutcome(error, advice);
        const isRace = hasState(error, ...races);
        const isWorthIt = isRace || (isLost(error) && tries === 1);
        const waitMs = isRace ? Math.random() * Math.min(pauseMs * 2 ** tries, pauseMaxMs) : 0;
        const isOver = tries === triesMax || performance.now() + waitMs > dueAtMs;
        if (!isWorthIt || isOver) throw mapError(error);
        await Bun.sleep(waitMs);
      }
    }
  }

  /** Fails soon unless there is a primary that responds. */
  async ping(): Promise<void> {
    await this.#pool.ping().catch((error) => {
      throw mapError(error);
    });
  }
}

/**
 * The result, and a warning if there was one. If somebody cancels a commit while it waits for its
 * standby, the server reports success with only a warning, but a failover would lose it.
 */
async function withWarnings<Result>(
  client: ClientBase,
  work: () => Promise<Result>,
): Promise<[Result, warning: unknown]> {
  let warning: unknown;
  const note = (notice: { code?: string | undefined }) => {
    if (notice.code?.startsWith("01")) warning = notice;
  };
  client.on("notice", note);
  try {
    return [await work(), warning];
  } finally {
    client.off("notice", note);
  }
}

/** A read sees everything as of one moment. */
const begins = {
  read: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
  write: "BEGIN ISOLATION LEVEL READ COMMITTED",
};

/** One transaction without time limits, even if the role has some. */
export async function runLong<Result>(
  client: ClientBase,
  kind: keyof typeof begins,
  work: () => Promise<Result>,
  announceCommit: () => void = () => {},
): Promise<Result> {
  await client.query(begins[kind]);
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
