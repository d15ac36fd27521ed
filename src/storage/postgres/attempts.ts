/**
 * Runs a transaction, and runs it again where that is safe and may help. It tells a failure that
 * changed nothing from one whose outcome nobody knows.
 */
import type { ClientBase, QueryResult } from "pg";
import { PlantStoreError } from "../../domain/errors.ts";
import { requireDurable } from "./connection.ts";
import { ConnectionLost, hasState, isDoubtful, isLost, unknownOutcome } from "./failure.ts";
import type { Primary } from "./primary.ts";
import type { WaitingLine } from "./waiting-line.ts";

const triesMax = 10;
const pauseMs = 5;
const pauseMaxMs = 250;
const lookEveryMs = 1_000;

/** Two transactions were in each other's way, and the server undid this one. */
const races = ["40001", "40P01"];

/** `commit` is called just before anything is sent that may make the work last. */
export type Work<Result> = (client: ClientBase, commit: () => void) => Promise<Result>;

export interface TransactOptions {
  /** Further SQLSTATEs that are races. */
  readonly alsoRaces?: readonly string[];
  readonly dueAtMs?: number;
  readonly isRefusable?: boolean;
  /** Where what can be refused waits, before it waits with all that can. */
  readonly line?: WaitingLine | undefined;
  /** A write that may be done again, so that it need not call `commit`. */
  readonly isRepeatable?: boolean;
  /** What to do when the outcome is unknown, where no request is answered. */
  readonly advice?: string | undefined;
}

export class Attempts {
  readonly #primary: Primary;
  /** When a connection was last seen to confirm only what lasts. */
  readonly #lookedAtMs = new WeakMap<ClientBase, number>();

  constructor(primary: Primary) {
    this.#primary = primary;
  }

  /** The moment by which work that starts now is over, unless it is given another one. */
  dueAtMs(): number {
    return this.#primary.dueAtMs();
  }

  /** One statement that changes nothing, so it is asked once more where the connection was lost. */
  read(text: string, values: readonly unknown[] = []): Promise<QueryResult> {
    return this.transact((client) => client.query(text, [...values]));
  }

  /**
   * The same for a request, which is refused with `overloaded` if it waits too long for its turn.
   */
  serve(text: string, values: readonly unknown[], line?: WaitingLine): Promise<QueryResult> {
    return this.transact((client) => client.query(text, [...values]), { isRefusable: true, line });
  }

  /** One statement that is a transaction of its own. */
  write(text: string, values: readonly unknown[] = [], advice?: string): Promise<QueryResult> {
    return this.transact(
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
  async transact<Result>(work: Work<Result>, options: TransactOptions = {}): Promise<Result> {
    const { alsoRaces = [], dueAtMs = this.dueAtMs(), isRefusable, line } = options;
    const { isRepeatable, advice } = options;
    for (let tries = 1; ; tries++) {
      let isCommitting = false;
      const attempt = (client: ClientBase) =>
        watched(client, async () => {
          let durable = isRepeatable ? this.#lookAgain(client) : undefined;
          const result = await work(client, () => {
            isCommitting = true;
            durable = this.#lookAgain(client);
          });
          await durable;
          return result;
        });
      try {
        const [result, warning] = isRefusable
          ? await this.#primary.serve(attempt, dueAtMs, line)
          : await this.#primary.use(attempt, { dueAtMs });
        const isWrite = isCommitting || isRepeatable;
        if (isWrite && warning !== undefined) throw unknownOutcome(warning, advice);
        return result;
      } catch (error) {
        if (isCommitting && isDoubtful(error)) throw unknownOutcome(error, advice);
        const isRace = hasState(error, ...races, ...alsoRaces);
        const isWorthIt = isRace || (isLost(error) && tries === 1);
        const waitMs = isRace ? Math.random() * Math.min(pauseMs * 2 ** tries, pauseMaxMs) : 0;
        if (!isWorthIt || tries === triesMax || performance.now() + waitMs > dueAtMs) throw error;
        await Bun.sleep(waitMs);
      }
    }
  }

  /**
   * Whoever has a running server read its settings anew changes those of open connections, too.
   * Then none of them is used any more. The question goes out with a write, so that nobody waits
   * for it; that it fails says nothing of the write.
   */
  #lookAgain(client: ClientBase): Promise<void> | undefined {
    const nowMs = performance.now();
    if (nowMs - (this.#lookedAtMs.get(client) ?? 0) < lookEveryMs) return undefined;
    const looked = requireDurable(client).then(
      () => {
        this.#lookedAtMs.set(client, nowMs);
      },
      (cause) => {
        const isCareless = cause instanceof PlantStoreError;
        throw new (isCareless ? ConnectionLost : Error)("It may confirm too soon.", { cause });
      },
    );
    looked.catch(() => {});
    return looked;
  }
}

/**
 * The result, and a warning if there was one: a commit that was told to stop waiting for its
 * standby is reported as done, with a warning only, and would be gone after a failover.
 */
export async function watched<Result>(
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
