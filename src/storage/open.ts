/** From the address of a database to the engine that keeps it: the only place that chooses. */
import { statSync } from "node:fs";
import { PlantStoreError } from "../domain/errors.ts";
import type { OpenOptions, Storage } from "../domain/storage.ts";
import {
  isSameDatabase as isSamePostgres,
  maskAddress as maskPostgresAddress,
} from "./postgres/address.ts";

/** Fails with `unavailable`, in one line without secrets, if the storage cannot be opened. */
export async function openStorage(address: string, options: OpenOptions): Promise<Storage> {
  // Each is loaded where it is used: that takes a while.
  switch (schemeOf(address)) {
    case undefined:
      return (await import("./sqlite/engine.ts")).openSqlite(address, options);
    case "postgres":
    case "postgresql":
      return (await import("./postgres/engine.ts")).openPostgres(address, options);
    default:
      throw new PlantStoreError(
        "unavailable",
        `Cannot open a "${schemeOf(address)}:" database: plants are kept in a SQLite file, named by ` +
          "its path, or in PostgreSQL, named by postgres://user@host/database.",
      );
  }
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

/** Also through links. */
function isSameFile(one: string, other: string): boolean {
  const [first, second] = [one, other].map((path) => statSync(path, { throwIfNoEntry: false }));
  return first !== undefined && first.dev === second?.dev && first.ino === second.ino;
}

function schemeOf(address: string): string | undefined {
  return /^([a-z][a-z0-9+.-]*):/i.exec(address)?.[1]?.toLowerCase();
}
