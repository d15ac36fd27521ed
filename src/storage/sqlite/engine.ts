/** Storage in one SQLite file: reads on this thread, plant writes in a worker. */
import type { Database } from "bun:sqlite";
import { type Stats, statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { PlantStoreError } from "../../domain/errors.ts";
import type { Plant } from "../../domain/plant.ts";
import type { CountedTag, Order, PlantReader } from "../../domain/storage.ts";
import { removeLeftover } from "../durable-file.ts";
import { idAfter, type OpenOptions, type Storage } from "../storage.ts";
import { mapErrors } from "./errors.ts";
import { createEventReader, takeText } from "./events.ts";
import { checkFile, isOlder, migrate } from "./migrate.ts";
import {
  checkLog,
  checkSmallFile,
  checkWritable,
  connect,
  createFile,
  findFile,
  lockForServing,
  sizeOf,
  toOpenError,
  useWriteAheadLog,
} from "./open.ts";
import { createTokenStorage } from "./tokens.ts";
import { WorkerClient, type WorkerShare } from "./worker-client.ts";

/** What another thread of the process needs to open the same file. */
interface Share extends WorkerShare {
  /** The file's path, with all links resolved. */
  readonly path: string;
  /** Identifies the file and its WAL files: others may have their names by now. */
  readonly files: string;
}

const olderService =
  "an older version is serving it, and this one would change its schema (use the command of that " +
  "version, or upgrade the service first)";

/** Fails with `unavailable`, in one line that names the file, if it cannot be opened. */
export function openSqlite(path: string, options: OpenOptions): Storage {
  /** All connections, to be closed in this order. */
  const opened: Database[] = [];
  const share = options.share as Share | undefined;
  const { isServing } = options;
  let created: string | undefined;
  const create = () => {
    if (options.mustExist) throw new PlantStoreError("unavailable", "there is no such file");
    created = createFile(path);
    return created;
  };
  try {
    const file = share?.path ?? findFile(path) ?? create();
    checkLog(file);
    if (share === undefined && isServing) opened.push(lockForServing(file));
    // Before opening it: if another file takes its name later, we notice.
    const identity = statSync(file);
    const database = connect(file);
    opened.unshift(database);
    if (share === undefined) {
      checkFile(database);
      if (isServing) checkSmallFile(database, file);
      useWriteAheadLog(database);
      // An older service wouldn't start again on a file that a command has migrated.
      const lock = !isServing && isOlder(database) ? lockForServing(file, olderService) : undefined;
      try {
        migrate(database, options.onMigration);
      } finally {
        lock?.close();
      }
      checkWritable(database);
    }
    // A thread that joins uses the files that the worker has open.
    const files = share?.files ?? identify(file, identity);
    return createStorage(database, opened, file, files, options);
  } catch (error) {
    for (const database of opened) database.close();
    if (created !== undefined && sizeOf(created) === 0) removeLeftover(created);
    throw toOpenError(path, error);
  }
}

function createStorage(
  database: Database,
  opened: readonly Database[],
  file: string,
  files: string,
  options: OpenOptions,
): Storage {
  const { list, countByTag, countPlants } = createReader(database, options.onRead);
  const events = createEventReader(database);
  const tokens = createTokenStorage(database);
  const checkStillThere = watchFiles(file, files);
  let worker = options.share ? WorkerClient.join(options.share as Share) : undefined;

  /** A command may never need one, and the first response of a service needn't wait for it. */
  function startedWorker(): WorkerClient {
    worker ??= WorkerClient.start(file, options);
    return worker;
  }

  return {
    list: mapErrors(list),
    countByTag: mapErrors(countByTag),
    countPlants: mapErrors(countPlants),
    readEvents: mapErrors(events.readEvents),
    findNewEvents: mapErrors(events.findNewEvents),
    version: (garden) => startedWorker().versions.read(garden),
    findToken: mapErrors(tokens.findToken),
    hasTokens: mapErrors(tokens.hasTokens),
    listTokens: mapErrors(tokens.listTokens),
    addToken: mapErrors(tokens.addToken),
    revokeToken: mapErrors(tokens.revokeToken),
    countTokenChanges: mapErrors(tokens.countTokenChanges),
    ping: mapErrors(async () => {
      checkStillThere();
      worker?.check();
      await tokens.countTokenChanges();
    }),
    async measure() {
      checkStillThere();
      const { blocks, bavail, bsize } = statfsSync(dirname(file));
      return {
        database: sizeOf(file),
        log: sizeOf(`${file}-wal`),
        diskFree: bavail * bsize,
        disk: blocks * bsize,
      };
    },
    async apply(writes) {
      checkStillThere();
      return startedWorker().apply(writes);
    },
    share() {
      const shared = startedWorker().share();
      const state: Share = { ...shared, path: file, files };
      return { state, transfer: [shared.port] };
    },
    forgetKeys: (nowMs) => startedWorker().forgetKeys(nowMs),
    forgetEvents: mapErrors(async (beforeMs, after) => {
      const gardens = events.findOld(beforeMs, after);
      for (const { garden, isOld } of gardens) {
        while (isOld && (await startedWorker().forgetEvents(garden, beforeMs)));
      }
      return gardens.at(-1)?.garden;
    }),
    noteTokenUses: (uses) => startedWorker().noteTokenUses(uses),
    async close() {
      await worker?.close();
      // The lock is released last.
      for (const each of opened) each.close();
    },
  };
}

/**
 * If the file was removed or replaced, it's still open here, but its plants would be gone after the
 * next start. The same goes for its log. Without the log's index, processes wouldn't see each
 * other's commits.
 */
function watchFiles(file: string, known: string): () => void {
  return () => {
    try {
      const found = look(file);
      if (identify(file, found) === known && found?.size !== 0) return;
    } catch {
      // It can't be reached any more.
    }
    throw new PlantStoreError("unavailable", "The database file was removed, replaced or emptied.");
  };
}

/** One text for a file, whose `stats` are known, and its WAL files. */
function identify(file: string, stats: Stats | undefined): string {
  const found = [stats, look(`${file}-wal`), look(`${file}-shm`)];
  return found.map((each) => `${each?.dev} ${each?.ino}`).join();
}

function look(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false });
}

function createReader(database: Database, onRead: OpenOptions["onRead"] = () => {}): PlantReader {
  const prepare = (order: Order, source: string) => {
    const range = order === "asc" ? ">= ? ORDER BY id" : "<= ? ORDER BY id DESC";
    // `LIMIT +?`: with a bare parameter SQLite plans the query again each time.
    return database.query<Plant, Value[]>(
      `SELECT id, name, tag FROM ${source} AND id ${range} LIMIT +?`,
    );
  };
  const inGarden = "plants WHERE garden = ?";
  const inTag = "plants INDEXED BY plants_by_tag WHERE garden = ? AND tag = ?";
  const lists = {
    asc: { all: prepare("asc", inGarden), tagged: prepare("asc", inTag) },
    desc: { all: prepare("desc", inGarden), tagged: prepare("desc", inTag) },
  };
  const findCount = database.query<{ plants: bigint }, [string]>(
    "SELECT plants FROM gardens WHERE garden = ?",
  );
  const countByTag = database.query<CountedTag, Value[]>(
    `SELECT tag, count(*) AS plants, max(id) AS lastId FROM (
       SELECT tag, id FROM plants INDEXED BY plants_by_tag
         WHERE garden = ? AND (tag, id) >= (?, ?) ORDER BY tag, id LIMIT +?)
       GROUP BY tag ORDER BY tag`,
  );

  function timed<Result>(read: () => Result): Result {
    const startedAtMs = performance.now();
    const result = read();
    onRead(performance.now() - startedAtMs);
    return result;
  }

  return {
    async countPlants(garden) {
      return Number(findCount.get(garden)?.plants ?? 0n);
    },
    async list(garden, after, count, { textMax, tag, order = "asc" } = {}) {
      const first = idAfter(after, order);
      if (first === undefined) return [];
      const { all, tagged } = lists[order];
      const statement = tag === undefined ? all : tagged;
      const values = tag === undefined ? [garden, first, count] : [garden, tag, first, count];
      return timed(() =>
        textMax === undefined
          ? statement.all(...values)
          : takeText(statement.iterate(...values), textMax),
      );
    },
    async countByTag(garden, { tag, id }, count) {
      const counted = timed(() => countByTag.all(garden, tag, id, count));
      return counted.map((each) => ({ ...each, plants: Number(each.plants) }));
    },
  };
}

type Value = string | bigint | number;
