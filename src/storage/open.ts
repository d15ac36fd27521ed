/** The engines, and which of them an address belongs to. Only this file chooses one. */
import { statSync } from "node:fs";
import { maskUrl } from "./postgres/url.ts";
import type { OpenOptions, Storage, TransferOptions } from "./storage.ts";

/** What an engine can do with an address of its own. Each is loaded when it is first used. */
interface Engine {
  /** Fails with `unavailable`, in one line without secrets, if the storage cannot be opened. */
  open(address: string, options: OpenOptions): Promise<Storage>;

  /** Writes everything, as it is at one moment, to the empty file at `path`, as a SQLite store. */
  backup(address: string, path: string, options: TransferOptions): Promise<void>;

  /**
   * Restores everything, or nothing, from the SQLite store that `makeFile` writes to a path.
   * Resolves once that is durable, to where the old store is kept, if any.
   */
  restore(
    address: string,
    options: TransferOptions,
    makeFile: (path: string) => Promise<void>,
  ): Promise<string | undefined>;
}

const sqlite: Engine = {
  open: async (path, options) => (await import("./sqlite/engine.ts")).openSqlite(path, options),
  backup: async (path, target, options) =>
    (await import("./sqlite/backup.ts")).backupSqlite(path, target, options),
  restore: async (path, options, makeFile) =>
    (await import("./sqlite/backup.ts")).restoreSqlite(path, options, makeFile),
};

const postgres: Engine = {
  open: async (url, options) => (await import("./postgres/engine.ts")).openPostgres(url, options),
  async backup(url, path, options) {
    const { openScratch } = await import("./sqlite/backup.ts");
    const { backupPostgres } = await import("./postgres/backup.ts");
    return backupPostgres(url, options, () => openScratch(path));
  },
  async restore(url, options, makeFile) {
    const { openScratch } = await import("./sqlite/backup.ts");
    const { restorePostgres } = await import("./postgres/backup.ts");
    return restorePostgres(url, options, makeFile, openScratch);
  },
};

/** The address is valid; `config.ts` refuses the URLs of other databases. */
export function engineOf(address: string): Engine {
  return isFile(address) ? sqlite : postgres;
}

export async function openStorage(address: string, options: OpenOptions): Promise<Storage> {
  return engineOf(address).open(address, options);
}

/**
 * Counts what is in the SQLite file of a backup. Fails with `unavailable`, in words that follow
 * "Cannot …: ", if it is not a store, or not whole, where that is checked too.
 */
export async function inspectFile(path: string, { mustBeWhole = false } = {}) {
  return (await import("./sqlite/backup.ts")).inspectSqlite(path, mustBeWhole);
}

/** Whether it is the path of a file. */
export function isFile(address: string): boolean {
  return !/^postgres(?:ql)?:/i.test(address);
}

/** As it may be shown and logged: without a password. */
export function maskAddress(address: string): string {
  return isFile(address) ? address : maskUrl(address);
}

/**
 * Whether two addresses lead to the same file, even through links. False if either can't be read;
 * opening it then reports why.
 */
export function isSameFile(one: string, other: string): boolean {
  try {
    const [first, second] = [statSync(one), statSync(other)];
    return first.dev === second.dev && first.ino === second.ino;
  } catch {
    return false;
  }
}
