/**
 * Copies a database as it is at one moment into a SQLite file, while instances go on serving it.
 */
import { PlantStoreError } from "../../domain/errors.ts";
import type { ConnectionLimits, Storage } from "../../domain/storage.ts";
import type { SnapshotCopy, Use } from "../backup.ts";
import { copyAll } from "../copy.ts";
import { movedTables } from "../moved-tables.ts";
import { verifyAll } from "../verification.ts";
import { inTransaction } from "./long-transaction.ts";
import { requireNewest, requireRights } from "./migrate.ts";
import { openPrimary } from "./opening.ts";

const needed = {
  tables: Object.values(movedTables).map(({ name }) => name),
  rights: ["SELECT"],
};

export async function copyPostgres<Result>(
  url: string,
  limits: ConnectionLimits,
  openTarget: () => Promise<Storage>,
  use: Use<SnapshotCopy, Result>,
): Promise<Result> {
  const primary = await openPrimary(url, limits, async (client) => {
    await requireNewest(client);
    await requireRights(client, needed);
  });
  const nowMs = Date.now();
  try {
    const target = await openTarget();
    try {
      const copied = target.transfer(nowMs);
      return await inTransaction(primary, "read", nowMs, (source) =>
        use({
          copy: (tally, signal) => copyAll(source, copied, tally, signal),
          async compare(tally, signal) {
            const sums = await verifyAll(source, copied, tally, signal, ({ kind }) => {
              throw new PlantStoreError("internal", `The copy differs in its ${kind}.`);
            });
            const count = (kind: string) => sums.find((sum) => sum.kind === kind)?.source.records;
            return { plants: count("plants") ?? 0, tokens: count("tokens") ?? 0 };
          },
        }),
      );
    } finally {
      await target.close();
    }
  } finally {
    await primary.close();
  }
}
