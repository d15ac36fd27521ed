/** From the address of a database to the engine that keeps it: the only place that chooses. */
import { statSync } from "node:fs";
import { PlantStoreError } from "../domain/errors.ts";
import type { ConnectionLimits, OpenOptions, Storage } from "../domain/storage.ts";
import type { Contents, Restoration, SnapshotCopy, Use } from "./backup.ts";
import {
  isSameDatabase as isSamePostgres,
  maskAddress as maskPostgresAddress,
} from "./postgres/address.ts";

/** Fails with `unavailable`, in one line without secrets, if the storage cannot be opened. */
export async function openStorage(address: string, options: OpenOptions): Promise<Storage> {
  // Each is loaded where it is used: that takes a while.
  return engineOf(address) === "sqlite"
    ? (await import("./sqlite/engine.ts")).openSqlite(address, options)
    : (await import("./postgres/engine.ts")).openPostgres(address, options);
}

/** Copies what is kept at an address to the empty file at `targetPath`, as it is at one moment. */
export async function copySnapshot<Result>(
  address: string,
  targetPath: string,
  limits: ConnectionLimits,
  use: Use<SnapshotCopy, Result>,
): Promise<Result> {
  if (engineOf(address) === "sqlite") {
    return (await import("./sqlite/snapshot.ts")).copySqlite(address, targetPath, use);
  }
  const { copyPostgres } = await import("./postgres/snapshot.ts");
  const openTarget = () => openStorage(targetPath, { isServing: false });
  return copyPostgres(address, limits, openTarget, use);
}

/**
 * Fails with `unavailable`, in words that follow "Cannot …: ", if a file is not fit to be a store.
 */
export async function inspectFile(path: string, expected: Contents): Promise<void> {
  (await import("./sqlite/inspection.ts")).inspectSqlite(path, expected);
}

/** Has everything at an address come from a file; what is there is replaced only if it may be. */
export async function restoreTo<Result>(
  address: string,
  { mayReplace, limits }: { mayReplace: boolean; limits: ConnectionLimits },
  use: Use<Restoration, Result>,
): Promise<Result> {
  if (engineOf(address) === "sqlite") {
    return (await import("./sqlite/restoration.ts")).restoreSqlite(address, mayReplace, use);
  }
  const { restorePostgres } = await import("./postgres/restoration.ts");
  const openUnpacked = (path: string) => openStorage(path, { isServing: false });
  return restorePostgres(address, limits, openUnpacked, use);
}

/** Whether it is the path of a file. */
export function isFile(address: string): boolean {
  return schemeOf(address) === undefined;
}

/** The address as it may be shown and logged: without a password. */
export function maskAddress(address: string): string {
  return isFile(address) ? address : maskPostgresAddress(address);
}

/** Whether two addresses surely lead to the same plants. */
export function isSameDatabase(one: string, other: string): boolean {
  if (isFile(one) !== isFile(other)) return false;
  return isFile(one) ? isSameFile(one, other) : isSamePostgres(one, other);
}

/** Also through links. What cannot be looked at is told by whoever opens it. */
function isSameFile(one: string, other: string): boolean {
  try {
    const [first, second] = [statSync(one), statSync(other)];
    return first.dev === second.dev && first.ino === second.ino;
  } catch {
    return false;
  }
}

function engineOf(address: string): "sqlite" | "postgres" {
  switch (schemeOf(address)) {
    case undefined:
      return "sqlite";
    case "postgres":
    case "postgresql":
      return "postgres";
    default:
      throw new PlantStoreError(
        "unavailable",
        `Cannot open a "${schemeOf(address)}:" database: plants are kept in a SQLite file, named by ` +
          "its path, or in PostgreSQL, named by postgres://user@host/database.",
      );
  }
}

function schemeOf(address: string): string | undefined {
  return /^([a-z][a-z0-9+.-]*):/i.exec(address)?.[1]?.toLowerCase();
}
