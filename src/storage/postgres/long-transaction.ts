/** One transaction for a whole move, however long that takes. */
import { PlantStoreError } from "../../domain/errors.ts";
import type { TransferStorage } from "../../domain/transfer.ts";
import { retold } from "../../domain/transfer.ts";
import { watched } from "./attempts.ts";
import { liftTimeouts, requireDurable } from "./connection.ts";
import { isDoubtful, translate } from "./failure.ts";
import type { Primary } from "./primary.ts";
import { allOn, createTransfer } from "./transfer.ts";

const moveMs = 7 * 24 * 60 * 60 * 1000;

/** What is read is of one moment; what is written is compared with what others have by then. */
const begins = {
  read: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
  write: "BEGIN ISOLATION LEVEL READ COMMITTED",
};

/** What `use` stored lasts if it resolves; if it rejects, nothing does, unless it says so. */
export async function inTransaction<Result>(
  primary: Primary,
  kind: keyof typeof begins,
  nowMs: number,
  use: (transfer: TransferStorage) => Promise<Result>,
): Promise<Result> {
  let isCommitting = false;
  try {
    return await primary.use(
      async (client) => {
        await client.query(begins[kind]);
        try {
          await liftTimeouts(client);
          const result = await use(retold(createTransfer(allOn(client), nowMs), translate));
          if (kind === "write") {
            // The connection may be hours old, and its settings may have been changed since.
            await requireDurable(client).catch((error) => {
              throw unstored(error);
            });
            isCommitting = true;
          }
          const [, warning] = await watched(client, () => client.query("COMMIT"));
          if (warning !== undefined) throw new Error("It was not replicated.", { cause: warning });
          return result;
        } catch (error) {
          await client.query("ROLLBACK").catch(() => {});
          throw error;
        }
      },
      { dueAtMs: performance.now() + moveMs },
    );
  } catch (error) {
    throw isCommitting && isDoubtful(error) ? unconfirmed(error) : translate(error);
  }
}

function unstored(cause: unknown): unknown {
  if (!(cause instanceof PlantStoreError)) return cause;
  const message = `Nothing was stored in the database: ${cause.message}.`;
  return new PlantStoreError("unavailable", message, { cause });
}

function unconfirmed(cause: unknown): PlantStoreError {
  const message = "The database did not confirm it: now it holds all of it, or nothing.";
  return new PlantStoreError("unavailable", message, { cause });
}
