/** One transaction for a whole move, however long that takes. */
import type { TransferStorage } from "../../domain/transfer.ts";
import { retold } from "../../domain/transfer.ts";
import { liftTimeouts } from "./connection.ts";
import { translate } from "./failure.ts";
import type { Primary } from "./primary.ts";
import { allOn, createTransfer } from "./transfer.ts";

const moveMs = 7 * 24 * 60 * 60 * 1000;

/** What `use` stored lasts if it resolves; if it rejects, nothing does. */
export async function inTransaction<Result>(
  primary: Primary,
  begin: string,
  nowMs: number,
  use: (transfer: TransferStorage) => Promise<Result>,
): Promise<Result> {
  try {
    return await primary.use(
      async (client) => {
        await client.query(begin);
        try {
          await liftTimeouts(client);
          const result = await use(retold(createTransfer(allOn(client), nowMs), translate));
          await client.query("COMMIT");
          return result;
        } catch (error) {
          await client.query("ROLLBACK").catch(() => {});
          throw error;
        }
      },
      { dueAtMs: performance.now() + moveMs },
    );
  } catch (error) {
    throw translate(error);
  }
}
