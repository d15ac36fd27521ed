/** Fills an empty database from a SQLite file, in one transaction. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ClientBase } from "pg";
import { PlantStoreError } from "../../domain/errors.ts";
import type { ConnectionLimits, Storage } from "../../domain/storage.ts";
import type { TransferStorage } from "../../domain/transfer.ts";
import type { Restoration, Use } from "../backup.ts";
import { copyAll, isEmpty } from "../copy.ts";
import { verifyAll } from "../verification.ts";
import { maskAddress } from "./address.ts";
import { inTransaction } from "./long-transaction.ts";
import { migrate, readSchema, requireNewest, requireRights } from "./migrate.ts";
import { openPrimary } from "./opening.ts";
import type { Primary } from "./primary.ts";

export async function restorePostgres<Result>(
  url: string,
  limits: ConnectionLimits,
  openUnpacked: (path: string) => Promise<Storage>,
  use: Use<Restoration, Result>,
): Promise<Result> {
  const folder = makeFolder();
  try {
    const primary = await openPrimary(url, limits, makeTables);
    try {
      return await use(await prepare(url, primary, join(folder, "plants.db"), openUnpacked));
    } finally {
      await primary.close();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Instances of an older version may be serving what is there, and could not start on it again. */
async function makeTables(client: ClientBase): Promise<void> {
  if ((await readSchema(client)) > 0) await requireNewest(client);
  await migrate(client);
  await requireRights(client);
}

function makeFolder(): string {
  try {
    return mkdtempSync(join(tmpdir(), "plantstore-restore-"));
  } catch (cause) {
    const message = `Cannot unpack to ${tmpdir()}: have TMPDIR name a folder that can be written.`;
    throw new PlantStoreError("unavailable", message, { cause });
  }
}

async function prepare(
  url: string,
  primary: Primary,
  unpackedPath: string,
  openUnpacked: (path: string) => Promise<Storage>,
): Promise<Restoration> {
  const nowMs = Date.now();
  await inTransaction(primary, "read", nowMs, (target) => requireEmpty(url, target));
  return {
    unpackedPath,
    async fill(tally, signal) {
      const storage = await openUnpacked(unpackedPath);
      try {
        const source = storage.transfer(nowMs);
        await inTransaction(primary, "write", nowMs, async (target) => {
          await requireEmpty(url, target);
          await copyAll(source, target, tally, signal);
          await requireSame(source, target, signal);
        });
      } finally {
        await storage.close();
      }
      return undefined;
    },
  };
}

async function requireEmpty(url: string, target: TransferStorage): Promise<void> {
  if (await isEmpty(target)) return;
  throw new PlantStoreError(
    "conflict",
    `${maskAddress(url)} is not empty. Restore into a new database, and serve that one.`,
  );
}

async function requireSame(
  source: TransferStorage,
  target: TransferStorage,
  signal: AbortSignal,
): Promise<void> {
  const unseen = { plants: 0, plantsInAll: 0 };
  await verifyAll(source, target, unseen, signal, ({ kind }) => {
    throw new PlantStoreError("conflict", `Somebody else wrote ${kind} to it meanwhile.`);
  });
}
