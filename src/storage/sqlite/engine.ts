/** Storage in one SQLite file: reads on this thread; writes, and looks at the file, in a worker. */
import type { Database } from "bun:sqlite";
import { statSync } from "node:fs";
import { PlantStoreError } from "../../domain/errors.ts";
import type { Plant } from "../../domain/plant.ts";
import type { CountedTag, Order, PlantReader } from "../../domain/ports.ts";
import { removeLeftover } from "../durable-file.ts";
import {
  type ForgottenEvents,
  forgetEvents,
  type OldestEventRow,
  oldestEventsStatement,
} from "../event-cleanup.ts";
import { contentColumns } from "../rows.ts";
import { idAfter, type OpenOptions, type Storage } from "../storage.ts";
import { mapErrors } from "./errors.ts";
import { createEventReader, takeCharacters } from "./events.ts";
import { createGardenStorage } from "./gardens.ts";
import { checkFile, migrate } from "./migrate.ts";
import {
  checkLog,
  checkSmallFile,
  checkWritable,
  connect,
  createFile,
  findFile,
  identify,
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
}

/** Fails with `unavailable`, in one line that names the file, if it cannot be opened. */
export function openSqlite(path: string, options: OpenOptions): Storage {
  const opened = new DisposableStack();
  const share = options.share as Share | undefined;
  try {
    return share ? openShared(share, options, opened) : openFirst(path, options, opened);
  } catch (error) {
    opened.dispose();
    throw toOpenError(path, error);
  }
}

/** The first thread finds, locks, checks and migrates the file for all others. */
function openFirst(path: string, options: OpenOptions, opened: DisposableStack): Storage {
  const file = findFile(path) ?? create(path, options, opened);
  checkLog(file);
  if (options.isServing) opened.adopt(lockForServing(file), close);
  // Before opening it: if another file takes its name later, we notice.
  const identity = statSync(file);
  const database = opened.adopt(connect(file), close);
  checkFile(database);
  if (options.isServing) checkSmallFile(database, file);
  useWriteAheadLog(database);
  const isNew = migrate(database);
  checkWritable(database);
  if (isNew) options.onNewStore?.();
  const store = { path: file, files: identify(file, identity) };
  return createStorage(database, opened, file, () => WorkerClient.start(store, options), options);
}

function openShared(share: Share, options: OpenOptions, opened: DisposableStack): Storage {
  const database = opened.adopt(connect(share.path), close);
  return createStorage(database, opened, share.path, () => WorkerClient.join(share), options);
}

/** Not `use`: a database that is disposed of fails if it still has statements. */
const close = (database: Database) => database.close();

function create(path: string, { mustExist }: OpenOptions, opened: DisposableStack): string {
  if (mustExist) throw new PlantStoreError("unavailable", "there is no such file");
  const file = createFile(path);
  opened.defer(() => sizeOf(file) === 0 && removeLeftover(file));
  return file;
}

function createStorage(
  database: Database,
  opened: DisposableStack,
  path: string,
  openWorker: () => WorkerClient,
  options: OpenOptions,
): Storage {
  const tokens = createTokenStorage(database);
  let worker: WorkerClient | undefined;

  /** A command may never need one, and the first response of a service needn't wait for it. */
  function startedWorker(): WorkerClient {
    worker ??= openWorker();
    return worker;
  }

  const oldestEvents = database.query<OldestEventRow, [string]>(oldestEventsStatement);
  const cleanup = {
    find: async (after: string) => oldestEvents.all(after),
    forget: (...values: ForgottenEvents) => startedWorker().call("forgetEvents", ...values),
  };

  return {
    ...mapErrors({
      ...createReader(database, options.onRead),
      ...createEventReader(database),
      ...tokens,
      ...createGardenStorage(database),
      async ping() {
        await startedWorker().call("checkStillThere");
        await tokens.countTokenChanges();
      },
      forgetEvents: (beforeMs: number, after: string) =>
        forgetEvents(cleanup, options.plantsMax, beforeMs, after),
    }),
    apply: (writes) => startedWorker().apply(writes),
    version: (garden) => startedWorker().versions.read(garden),
    forgetKeys: (nowMs) => startedWorker().call("forgetKeys", nowMs),
    noteTokenUses: (uses) => startedWorker().call("noteTokenUses", uses),
    measure: () => startedWorker().call("measure"),
    share() {
      const shared = startedWorker().share();
      const state: Share = { ...shared, path };
      return { state, transfer: [shared.port] };
    },
    async close() {
      await worker?.close();
      // The newest first, so the lock is released last.
      opened.dispose();
    },
  };
}

function createReader(database: Database, onRead: OpenOptions["onRead"] = () => {}): PlantReader {
  const prepare = (order: Order, source: string) => {
    const range = order === "asc" ? ">= ? ORDER BY id" : "<= ? ORDER BY id DESC";
    // `LIMIT +?`: with a bare parameter SQLite plans the query again each time.
    return database.query<Plant, Value[]>(
      `SELECT id, ${contentColumns} FROM ${source} AND id ${range} LIMIT +?`,
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
    async list(garden, after, count, { charactersMax, tag, order = "asc" } = {}) {
      const first = idAfter(after, order);
      if (first === undefined) return [];
      const { all, tagged } = lists[order];
      const statement = tag === undefined ? all : tagged;
      const values = tag === undefined ? [garden, first, count] : [garden, tag, first, count];
      return timed(() =>
        charactersMax === undefined
          ? statement.all(...values)
          : takeCharacters(statement.iterate(...values), charactersMax),
      );
    },
    async countByTag(garden, { tag, id }, count) {
      const counted = timed(() => countByTag.all(garden, tag, id, count));
      return counted.map((each) => ({ ...each, plants: Number(each.plants) }));
    },
  };
}

type Value = string | bigint | number;
