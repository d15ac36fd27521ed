/** Storage in one SQLite file: reads on this thread, plant writes in a worker. */
import type { Database } from "bun:sqlite";
import { type Stats, statSync } from "node:fs";
import { PlantStoreError } from "../../domain/errors.ts";
import type { Plant } from "../../domain/plant.ts";
import type { OpenOptions, PlantStorage, Storage } from "../../domain/storage.ts";
import { retold } from "../../domain/transfer.ts";
import { createTranslated } from "../translation.ts";
import { connect, useWriteAheadLog } from "./connection.ts";
import { translate } from "./failure.ts";
import { lookAt } from "./first-look.ts";
import { lockForServing } from "./lock.ts";
import { checkFile, isMigrated, migrate } from "./migrate.ts";
import { checkUnmoved, explainOpening, locate } from "./opening.ts";
import { checkRows } from "./plant-rows.ts";
import { createTokenStorage } from "./tokens.ts";
import { createTransfer } from "./transfer.ts";
import { WriteThread } from "./write-thread.ts";

const translated = createTranslated(translate);

/** Fails with `unavailable`, in one line that names the file, if it cannot be opened. */
export function openSqlite(path: string, options: OpenOptions): Storage {
  const opened: Database[] = [];
  let keeper: Database | undefined;
  try {
    const file = options.joins?.path ?? locate(path, options);
    if (options.joins === undefined) {
      keeper = lookAt(file, options.isServing);
      if (options.isServing) opened.push(lockForServing(file));
    }
    // Behind the lock: whoever held it until now may have restored another file in its place. And
    // before it is opened: a file that takes its name later is another one.
    const identity = statSync(file);
    const database = connect(file);
    opened.unshift(database);
    if (options.joins === undefined) {
      if (isMigrated(database)) checkColumns(database);
      useWriteAheadLog(database);
      checkFile(database);
      checkUnmoved(file, identity);
      migrate(database);
      checkWritable(database);
    }
    return createStorage(file, identity, database, opened, options);
  } catch (error) {
    for (const database of opened) database.close();
    throw explainOpening(path, error);
  } finally {
    keeper?.close();
  }
}

/** One that is missing is no damage to SQLite. Its file is refused before it is given a log. */
function checkColumns(database: Database): void {
  createReader(database, () => undefined);
  createTokenStorage(database);
}

function checkWritable(database: Database): void {
  database.run("BEGIN IMMEDIATE");
  database.run("ROLLBACK");
}

function createStorage(
  file: string,
  identity: Stats,
  database: Database,
  opened: readonly Database[],
  options: OpenOptions,
): Storage {
  const { list, seek, version } = createReader(database, () => thread?.countCommits());
  const tokens = createTokenStorage(database);
  // The others' files are those of the worker that they join, whatever has their names by now.
  const files = options.joins?.files ?? identify(file, identity);
  const checkStillThere = watchFiles(file, files);
  let thread = options.joins ? WriteThread.join(options.joins) : undefined;
  let moving: Database | undefined;
  // At the start, where there are surely descriptors left for it. A command may never need one.
  if (options.isServing) thread ??= WriteThread.start(file, options);

  function writeThread(): WriteThread {
    thread ??= WriteThread.start(file, options);
    return thread;
  }

  return {
    list: translated(list),
    seek: translated(seek),
    version,
    findToken: translated(tokens.findToken),
    hasTokens: translated(tokens.hasTokens),
    listTokens: translated(tokens.listTokens),
    addToken: translated(tokens.addToken),
    revokeToken: translated(tokens.revokeToken),
    countTokenChanges: translated(tokens.countTokenChanges),
    transfer(nowMs) {
      // Of its own, because `version` does not see what is written over the connection that it
      // asks.
      moving ??= connect(file);
      return retold(createTransfer(moving, nowMs), translate);
    },
    buckets: undefined,
    ping: translated(async () => {
      checkStillThere();
      thread?.check();
      await tokens.countTokenChanges();
    }),
    async apply(writes) {
      checkStillThere();
      return writeThread().apply(writes);
    },
    share: () => ({ ...writeThread().share(), path: file, files }),
    forgetKeys: (nowMs) => writeThread().forgetKeys(nowMs),
    noteTokenUses: (uses) => writeThread().noteTokenUses(uses),
    async close() {
      await thread?.close();
      moving?.close();
      // The lock is let go last.
      for (const each of opened) each.close();
    },
  };
}

/**
 * A file that was removed or replaced is still open here, but nobody would find its plants again.
 * So it is with the log beside it, and without their common index, processes would not see each
 * other.
 */
function watchFiles(file: string, known: string): () => void {
  return () => {
    try {
      const found = look(file);
      if (identify(file, found) === known && found?.size !== 0) return;
    } catch {
      // It cannot be reached any more.
    }
    throw new PlantStoreError("unavailable", "The database file was removed, replaced or emptied.");
  };
}

/** Of a file that was found to be `stats`, and of what lies beside it. */
function identify(file: string, stats: Stats | undefined): string {
  const found = [stats, look(`${file}-wal`), look(`${file}-shm`)];
  return found.map((each) => `${each?.dev} ${each?.ino}`).join();
}

function look(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false });
}

/**
 * `LIMIT +?`, because a bare parameter there has SQLite plan the query anew each time: 23 µs, not
 * 14. `+garden = ?1` looks at each plant once more, which takes 0.4 µs of the 10 for 20 plants: in
 * a damaged file the way to a garden can end in another one. After `garden =` SQLite would take it
 * for said already.
 */
function createReader(
  database: Database,
  countCommits: () => number | undefined,
): Pick<PlantStorage, "list" | "seek" | "version"> {
  const fromStart = database.query<Plant, [string, number]>(
    "SELECT id, name, tag FROM plants WHERE garden IS ?1 AND +garden = ?1 ORDER BY id LIMIT +?2",
  );
  const fromBehind = database.query<Plant, [string, bigint, number]>(
    `SELECT id, name, tag FROM plants
       WHERE garden IS ?1 AND +garden = ?1 AND id > ?2 ORDER BY id LIMIT +?3`,
  );
  const seekFromStart = database.query<{ id: bigint | null }, [string, number]>(
    "SELECT max(id) AS id FROM (SELECT id FROM plants WHERE garden = ? ORDER BY id LIMIT +?)",
  );
  const seekFromBehind = database.query<{ id: bigint | null }, [string, bigint, number]>(
    `SELECT max(id) AS id FROM
       (SELECT id FROM plants WHERE garden = ? AND id > ? ORDER BY id LIMIT +?)`,
  );

  const dataVersion = database.query<{ data_version: bigint }, []>("PRAGMA data_version");

  function iterate(garden: string, after: bigint | undefined, count: number): Iterable<Plant> {
    if (after === undefined) return fromStart.iterate(garden, count);
    return fromBehind.iterate(garden, after, count);
  }

  let known:
    | { readonly version: bigint | undefined; readonly commits: number | undefined }
    | undefined;

  return {
    /**
     * SQLite's own count changes with every commit of another connection, and plants are written by
     * others only. To ask takes 2 µs, so it is asked once in a turn of the event loop, which is
     * soon enough for other processes; and at once when a thread of this process has committed,
     * because a request may be read later in the same turn that was sent after the answer to that.
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
    async list(garden, after, count, textMax) {
      const plants =
        textMax !== undefined
          ? takeText(iterate(garden, after, count), textMax)
          : after === undefined
            ? fromStart.all(garden, count)
            : fromBehind.all(garden, after, count);
      return checkRows(plants, after);
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

/** Reads rows one by one and stops in time: rows that nobody sends would only be garbage. */
function takeText(rows: Iterable<Plant>, textMax: number): Plant[] {
  const plants: Plant[] = [];
  let text = 0;
  for (const plant of rows) {
    text += plant.name.length + plant.tag.length;
    if (text > textMax && plants.length > 0) break;
    plants.push(plant);
  }
  return plants;
}
