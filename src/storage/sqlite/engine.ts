/** Storage in one SQLite file: reads on this thread, plant writes in a worker. */
import type { Database } from "bun:sqlite";
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  realpathSync,
  statSync,
} from "node:fs";
import { dirname, resolve } from "node:path";
import { PlantStoreError } from "../../domain/errors.ts";
import type { Plant } from "../../domain/plant.ts";
import type { OpenOptions, PlantStorage, Storage } from "../../domain/storage.ts";
import { retold } from "../../domain/transfer.ts";
import { createTranslated } from "../translation.ts";
import { connect, useWriteAheadLog } from "./connection.ts";
import { translate } from "./failure.ts";
import { lockForServing } from "./lock.ts";
import { checkFile, migrate } from "./migrate.ts";
import { createTokenStorage } from "./tokens.ts";
import { createTransfer } from "./transfer.ts";
import { WriteThread } from "./write-thread.ts";

const translated = createTranslated(translate);

/** Fails with `unavailable`, in one line that names the file, if it cannot be opened. */
export function openSqlite(path: string, options: OpenOptions): Storage {
  const opened: Database[] = [];
  try {
    const file = locate(path, options);
    const database = connect(file);
    opened.push(database);
    if (options.joins === undefined) {
      checkFile(database);
      if (options.isServing) opened.push(lockForServing(file));
      useWriteAheadLog(database);
      migrate(database);
      checkWritable(database);
    }
    return createStorage(file, database, opened, options);
  } catch (error) {
    for (const database of opened) database.close();
    throw new PlantStoreError("unavailable", `Cannot open ${path}: ${explain(error)}.`, {
      cause: error,
    });
  }
}

/** The file itself, behind any symbolic link: the lock and the write-ahead log lie beside it. */
function locate(path: string, options: OpenOptions): string {
  const file = resolve(path);
  if (!existsSync(file)) {
    if (options.mustExist) throw new PlantStoreError("unavailable", "there is no such file");
    makeFolder(dirname(file));
    // Before SQLite does, which would let everyone on the machine read it.
    closeSync(openSync(file, "a", 0o600));
  }
  if (statSync(file).isDirectory()) throw new PlantStoreError("unavailable", "it is a folder");
  if (statSync(file).nlink > 1 && options.isServing) {
    throw new PlantStoreError(
      "unavailable",
      "it has several names (hard links), so it is not safe",
    );
  }
  return realpathSync(file);
}

/** With all above it that are missing. SQLite syncs the folder of its file, but none above it. */
function makeFolder(folder: string): void {
  const first = mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (first === undefined) return;
  for (let made = folder; made.length >= first.length; made = dirname(made)) {
    const above = openSync(dirname(made), "r");
    fsyncSync(above);
    closeSync(above);
  }
}

function checkWritable(database: Database): void {
  database.run("BEGIN IMMEDIATE");
  database.run("ROLLBACK");
}

function explain(error: unknown): string {
  const code = (error as { code?: string }).code ?? "";
  if (code === "EACCES" || code === "EPERM") return "permission is denied";
  if (code === "ENOTDIR" || code === "EEXIST") return "a part of its path is a file, not a folder";
  if (code.startsWith("SQLITE_NOTADB")) return "it is not a database (choose another file)";
  if (code.startsWith("SQLITE_CANTOPEN")) return "it cannot be opened or made there";
  if (code.startsWith("SQLITE_READONLY")) return "it cannot be written";
  return error instanceof Error ? error.message.replace(/\.$/, "") : String(error);
}

function createStorage(
  file: string,
  database: Database,
  opened: readonly Database[],
  options: OpenOptions,
): Storage {
  const { list, seek, version } = createReader(database, () => thread?.countCommits());
  const tokens = createTokenStorage(database);
  const { dev, ino } = statSync(file);
  let thread = options.joins ? WriteThread.join(options.joins) : undefined;
  let moving: Database | undefined;
  // At the start, where there are surely descriptors left for it. A command may never need one.
  if (options.isServing) thread ??= WriteThread.start(file, options.onFailure);

  function writeThread(): WriteThread {
    thread ??= WriteThread.start(file);
    return thread;
  }

  /** A file that was removed or replaced is still open here, but nobody would find its plants again. */
  function checkStillThere(): void {
    try {
      const found = statSync(file);
      if (found.dev === dev && found.ino === ino) return;
    } catch {
      // It is not there, or cannot be reached any more.
    }
    throw new PlantStoreError("unavailable", "The database file was removed or replaced.");
  }

  return {
    list: translated(list),
    seek: translated(seek),
    version,
    findToken: translated(tokens.findToken),
    listTokens: translated(tokens.listTokens),
    addToken: translated(tokens.addToken),
    revokeToken: translated(tokens.revokeToken),
    countTokenChanges: translated(tokens.countTokenChanges),
    transfer(nowMs) {
      // Of its own, because `version` does not see what is written over the connection that it asks.
      moving ??= connect(file);
      return retold(createTransfer(moving, nowMs), translate);
    },
    ping: translated(async () => {
      checkStillThere();
      thread?.check();
      await tokens.countTokenChanges();
    }),
    async apply(writes) {
      checkStillThere();
      return writeThread().apply(writes);
    },
    share: () => writeThread().share(),
    forgetKeys: (nowMs) => writeThread().forgetKeys(nowMs),
    noteTokenUses: (uses) => writeThread().noteTokenUses(uses),
    async close() {
      await thread?.close();
      moving?.close();
      // In the order of opening: the lock is let go last.
      for (const each of opened) each.close();
    },
  };
}

/** `LIMIT +?`, because a bare parameter there has SQLite plan the query anew each time: 23 µs, not 14. */
function createReader(
  database: Database,
  countCommits: () => number | undefined,
): Pick<PlantStorage, "list" | "seek" | "version"> {
  const fromStart = database.query<Plant, [string, number]>(
    "SELECT id, name, tag FROM plants WHERE garden = ? ORDER BY id LIMIT +?",
  );
  const fromBehind = database.query<Plant, [string, bigint, number]>(
    "SELECT id, name, tag FROM plants WHERE garden = ? AND id > ? ORDER BY id LIMIT +?",
  );
  const seekFromStart = database.query<{ id: bigint | null }, [string, number]>(
    "SELECT max(id) AS id FROM (SELECT id FROM plants WHERE garden = ? ORDER BY id LIMIT +?)",
  );
  const seekFromBehind = database.query<{ id: bigint | null }, [string, bigint, number]>(
    `SELECT max(id) AS id FROM
       (SELECT id FROM plants WHERE garden = ? AND id > ? ORDER BY id LIMIT +?)`,
  );

  const dataVersion = database.query<{ data_version: bigint }, []>("PRAGMA data_version");

  let known:
    | { readonly version: bigint | undefined; readonly commits: number | undefined }
    | undefined;

  return {
    /**
     * SQLite's own count changes with every commit of another connection, and plants are written by
     * others only. To ask takes 2 µs, so it is asked once in a turn of the event loop, which is soon
     * enough for other processes; and at once when a thread of this process has committed, because a
     * request may be read later in the same turn that was sent after the answer to that.
     */
    version() {
      const commits = countCommits();
      if (known !== undefined && known.commits === commits) return known.version;
      try {
        known = { version: dataVersion.get()?.data_version, commits };
      } catch (error) {
        throw translate(error);
      }
      setImmediate(() => {
        known = undefined;
      });
      return known.version;
    },
    async list(garden, after, count) {
      return after === undefined
        ? fromStart.all(garden, count)
        : fromBehind.all(garden, after, count);
    },
    async seek(garden, after, count) {
      const found =
        after === undefined
          ? seekFromStart.get(garden, count)
          : seekFromBehind.get(garden, after, count);
      return found?.id ?? undefined;
    },
  };
}
