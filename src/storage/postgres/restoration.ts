/** Fills an empty database from a SQLite file, in one transaction. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PlantStoreError } from "../../domain/errors.ts";
import type { ConnectionLimits, Storage } from "../../domain/storage.ts";
import type { Restoration, Use } from "../backup.ts";
import { copyAll, isEmpty } from "../copy.ts";
import { verifyAll } from "../verification.ts";
import { maskAddress } from "./address.ts";
import { inTransaction } from "./long-transaction.ts";
import { migrate, requireRights } from "./migrate.ts";
import { openPrimary } from "./opening.ts";

export async function restorePostgres<Result>(
  url: string,
  limits: ConnectionLimits,
  openUnpacked: (path: string) => Promise<Storage>,
  use: Use<Restoration, Result>,
): Promise<Result> {
  const primary = await openPrimary(url, limits, async (client) => {
    await migrate(client);
    await requireRights(client);
  });
  const folder = mkdtempSync(join(tmpdir(), "plantstore-restore-"));
  const unpackedPath = join(folder, "plants.db");
  const nowMs = Date.now();
  const transact = <Outcome>(work: Parameters<typeof inTransaction<Outcome>>[3]) =>
    inTransaction<Outcome>(primary, "BEGIN ISOLATION LEVEL READ COMMITTED", nowMs, work);
  const requireEmpty = async (target: Parameters<typeof isEmpty>[0]) => {
    if (await isEmpty(target)) return;
    throw new PlantStoreError(
      "conflict",
      `${maskAddress(url)} is not empty. Restore into a new database, and serve that one.`,
    );
  };
  try {
    await transact(requireEmpty);
    return await use({
      unpackedPath,
      async fill(tally, signal) {
        const storage = await openUnpacked(unpackedPath);
        try {
          const source = storage.transfer(nowMs);
          await transact(async (target) => {
            await requireEmpty(target);
            await copyAll(source, target, tally, signal);
            const untold = { plants: 0, plantsInAll: 0 };
            await verifyAll(source, target, untold, signal, ({ kind }) => {
              throw new PlantStoreError(
                "conflict",
                `Something else wrote ${kind} to it meanwhile.`,
              );
            });
          });
        } finally {
          await storage.close();
        }
        return undefined;
      },
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
    await primary.close();
  }
}
