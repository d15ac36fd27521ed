/** The engines, and which of them an address belongs to. Only this file chooses one. */
import { maskUrl } from "./postgres/url.ts";
import type { ConnectionLimits, Contents, OpenOptions, Storage } from "./storage.ts";

/** All that depends on the engine, besides the storage itself. */
interface Engine {
  owns(address: string): boolean;
  /** Whether an address is the path of a file. */
  readonly isFile: boolean;
  /** Whether one writer serves all threads. Otherwise each has its own connections and commits. */
  readonly hasOneWriter: boolean;
  /** The address without a password, as it can be shown and logged. */
  mask(address: string): string;
  open(address: string, options: OpenOptions): Promise<Storage>;
}

/** The first that owns an address takes it. Each is loaded when it's first used. */
const engines: readonly Engine[] = [
  {
    owns: (address) => /^postgres(?:ql)?:/i.test(address),
    isFile: false,
    hasOneWriter: false,
    mask: maskUrl,
    open: async (url, options) => (await import("./postgres/engine.ts")).openPostgres(url, options),
  },
  {
    owns: () => true,
    isFile: true,
    hasOneWriter: true,
    mask: (path) => path,
    open: async (path, options) => (await import("./sqlite/engine.ts")).openSqlite(path, options),
  },
];

/** `config.ts` refuses the URLs of other databases. */
export function engineOf(address: string): Engine {
  return engines.find((engine) => engine.owns(address)) as Engine;
}

/** Fails with `unavailable`, in one line without secrets, if the storage cannot be opened. */
export function openStorage(address: string, options: OpenOptions): Promise<Storage> {
  return engineOf(address).open(address, options);
}

export function isFile(address: string): boolean {
  return engineOf(address).isFile;
}

export function maskAddress(address: string): string {
  return engineOf(address).mask(address);
}

/** Writes a SQLite store, as it is at one moment, to the new file at `target`. */
export async function backUpFile(path: string, target: string, signal: AbortSignal) {
  return (await import("./sqlite/backup.ts")).backupSqlite(path, target, signal);
}

/** Replaces a SQLite store that isn't served with a backup. */
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
