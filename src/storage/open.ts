/** The engines, and which of them an address belongs to. Only this file chooses one. */
import { maskUrl } from "./postgres/url.ts";
import type { ConnectionLimits, Contents, OpenOptions, Storage } from "./storage.ts";

/**
 * Fails with `unavailable`, in one line without secrets, if the storage cannot be opened. The
 * address is valid; `config.ts` refuses the URLs of other databases.
 */
export async function openStorage(address: string, options: OpenOptions): Promise<Storage> {
  // Each engine is loaded when it is first used.
  if (isFile(address)) return (await import("./sqlite/engine.ts")).openSqlite(address, options);
  return (await import("./postgres/engine.ts")).openPostgres(address, options);
}

/** Writes a SQLite store, as it is at one moment, to the new file at `target`. */
export async function backUpFile(path: string, target: string, signal: AbortSignal) {
  return (await import("./sqlite/backup.ts")).backupSqlite(path, target, signal);
}

/** Puts a backup in the place of a SQLite store that isn't served. */
export async function restoreFile(path: string, backup: string, signal: AbortSignal) {
  return (await import("./sqlite/backup.ts")).restoreSqlite(path, backup, signal);
}

/** Copies a SQLite store that isn't served to an empty PostgreSQL database. */
export async function copyToPostgres(
  path: string,
  url: string,
  limits: ConnectionLimits,
  signal: AbortSignal,
): Promise<Contents> {
  const { openIdle } = await import("./sqlite/backup.ts");
  const { fillPostgres } = await import("./postgres/copy.ts");
  using store = openIdle(path);
  return await fillPostgres(url, store.database, limits, signal);
}

/** Whether it is the path of a file. */
export function isFile(address: string): boolean {
  return !/^postgres(?:ql)?:/i.test(address);
}

/** As it may be shown and logged: without a password. */
export function maskAddress(address: string): string {
  return isFile(address) ? address : maskUrl(address);
}
