/**
 * Runs statements and transactions, and runs them again where that is safe and may help. Fails with
 * the domain's errors, and tells a failure that changed nothing from an unknown outcome.
 */
import type { ClientBase, QueryResult } from "pg";
import { hasState, isDoubtful, isLost, mapError, unknownOutcome } from "./errors.ts";
import type { PrimaryPool } from "./pool.ts";

const triesMax = 10;
const pauseMs = 5;
const pauseMaxMs = 250;

/** Two transactions were in each other's way, and the server undid this one. */
const races = ["40001", "40P01"];

/** `commit` is called just before anything is sent that may make the work last. */
export type Work<Result> = (client: ClientBase, commit: () => void) => Promise<Result>;

export interface RunOptions {
  /** Further SQLSTATEs that are races. */
  readonly alsoRaces?: readonly string[];
  readonly dueAtMs?: number;
  /** Whether it leaves one connection to writes. */
  readonly isRead?: boolean;
  /** What to do when the outcome is unknown, where no request is answered. */
  readonly advice?: string | undefined;
}

export class TransactionRunner {
  readonly #pool: PrimaryPool;

  constructor(pool: PrimaryPool) {
    this.#pool = pool;
  }

  /** The moment by which work that starts now is over, unless it is given another one. */
  dueAtMs(): number {
    return this.#pool.dueAtMs();
  }

  /** One statement that changes nothing, so it is sent once more where the connection was lost. */
  query(text: string, values: readonly unknown[] = []): Promise<QueryResult> {
    return this.run((client) => client.query(text, [...values]));
  }

  /** The same for a request, of which there may be many: it leaves one connection to writes. */
  read(text: string, values: readonly unknown[], dueAtMs = this.dueAtMs()): Promise<QueryResult> {
    return this.run((client) => client.query(text, [...values]), { isRead: true, dueAtMs });
  }

  /** One statement that is a transaction of its own. */
  write(text: string, values: readonly unknown[] = [], advice?: string): Promise<QueryResult> {
    return this.run(
      (client, commit) => {
        commit();
        return client.query(text, [...values]);
      },
      { advice },
    );
  }

  /**
   * Runs the work again after a race, and once after a connection that was lost before `commit`.
   * All tries together are over by `dueAtMs`, or when one operation must be.
   */
  async run<Result>(work: Work<Result>, options: RunOptions = {}): Promise<Result> {
    const { alsoRaces = [], dueAtMs = this.dueAtMs(), isRead = false, advice } = options;
    for (let tries = 1; ; tries++) {
      let isCommitting = false;
      const commit = () => {
        isCommitting = true;
      };
      try {
        const [result, warning] = await this.#pool.use(
          (client) => withWarnings(client, () => work(client, commit)),
          { dueAtMs, isRead },
        );
        if (isCommitting && warning !== undefined) throw warning;
        return result;
      } catch (error) {
        if (isCommitting && isDoubtful(error)) throw unknownOutcome(error, advice);
        const isRace = hasState(error, ...races, ...alsoRaces);
        const isWorthIt = isRace || (isLost(error) && tries === 1);
        const waitMs = isRace ? Math.random() * Math.min(pauseMs * 2 ** tries, pauseMaxMs) : 0;
        const isOver = tries === triesMax || performance.now() + waitMs > dueAtMs;
        if (!isWorthIt || isOver) throw mapError(error);
        await Bun.sleep(waitMs);
      }
    }
  }

  /** Fails at once unless a server that takes writes is known and responds. */
  async ping(): Promise<void> {
    await this.#pool.ping().catch((error) => {
      throw mapError(error);
    });
  }
}

/**
 * The result, and a warning if there was one: a commit that was told to stop waiting for its
 * standby is reported as done, with a warning only, and would be gone after a failover.
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

/** What a transaction that only reads sees is of one moment. */
const begins = {
  read: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
  write: "BEGIN ISOLATION LEVEL READ COMMITTED",
};

/** One transaction that takes as long as it must, whatever time limits the role has. */
export async function runLong<Result>(
  client: ClientBase,
  kind: keyof typeof begins,
  work: () => Promise<Result>,
  commit: () => void = () => {},
): Promise<Result> {
  await client.query(begins[kind]);
  try {
    // Not by SET LOCAL: servers before PostgreSQL 17 know no transaction_timeout.
    await client.query(
      `SELECT set_config(name, '0', true) FROM pg_settings WHERE name IN ('statement_timeout',
         'idle_in_transaction_session_timeout', 'transaction_timeout')`,
    );
    const result = await work();
    commit();
    await client.query("COMMIT");
    return result;
  } catch (error) {
    await client.query("ROLLBACK").catch(() => {});
    throw error;
  }
}
