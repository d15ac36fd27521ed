/** From the address of a database to the engine that keeps it: the only place that chooses. */
import { PlantStoreError } from "../domain/errors.ts";
import type { OpenOptions, Storage } from "../domain/storage.ts";
import { openSqlite } from "./sqlite/engine.ts";

/** Fails with `unavailable`, in one line, if the storage cannot be opened. */
export async function openStorage(address: string, options: OpenOptions): Promise<Storage> {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(address)?.[1];
  if (scheme === undefined) return openSqlite(address, options);
  throw new PlantStoreError(
    "unavailable",
    `Cannot open a "${scheme}:" database: this version keeps plants in a SQLite file, named by its path.`,
  );
}
