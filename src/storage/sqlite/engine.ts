/** Storage in one SQLite file: reads on this thread; writes, and looks at the file, in a worker. */
import type { Database } from "bun:sqlite";
import { statSync } from "node:fs";
import { PlantStoreError } from "../../domain/errors.ts";
import { removeLeftover } from "../durable-file.ts";
import {
  type ForgottenEvents,
  forgetEvents,
  type OldestEventRow,
  oldestEventsStatement,
} from "../event-cleanup.ts";
import type { OpenOptions, Storage } from "../storage.ts";
import { guard } from "./errors.ts";
import { createEventReader } from "./events.ts";
import { createGardenStorage } from "./gardens.ts";
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
import { createReader } from "./reader.ts";
import { checkFile, createSchema } from "./schema.ts";
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
  const isNew = createSchema(database);
  checkWritable(database);
  if (isNew) options.onNewStore?.();
  const store = { path: file, files: identify(file, identity) };
  const worker = new LazyWorker(() => WorkerClient.start(store, options));
  return createStorage({ database, path: file, opened, worker }, options);
}

function openShared(share: Share, options: OpenOptions, opened: DisposableStack): Storage {
  const database = opened.adopt(connect(share.path), close);
  const worker = new LazyWorker(() => WorkerClient.join(share));
  return createStorage({ database, path: share.path, opened, worker }, options);
}

/** Not `use`: a database that is disposed of fails if it still has statements. */
const close = (database: Database) => database.close();

function create(path: string, { mustExist }: OpenOptions, opened: DisposableStack): string {
  if (mustExist) throw new PlantStoreError("unavailable", "there is no such file");
  const file = createFile(path);
  opened.defer(() => sizeOf(file) === 0 && removeLeftover(file));
  return file;
}

/** What a thread has opened. */
interface OpenedStore {
  readonly database: Database;
  readonly path: string;
  /** Ends all of it. */
  readonly opened: DisposableStack;
  readonly worker: LazyWorker;
}

/** Reads on this thread's own connection; writes in the worker. */
function createStorage(store: OpenedStore, options: OpenOptions): Storage {
  const { database, path, opened, worker } = store;
  const tokens = createTokenStorage(database);
  const oldestEvents = database.query<OldestEventRow, [string]>(oldestEventsStatement);
  const cleanup = {
    find: async (after: string) => guard(() => oldestEvents.all(after)),
    forget: (...values: ForgottenEvents) => worker.get().call("forgetEvents", ...values),
  };
  return {
    ...createReader(database, options.onRead),
    ...createEventReader(database),
    ...createGardenStorage(database),
    ...tokens,
    apply: (writes) => worker.get().apply(writes),
    version: (garden) => worker.get().versions.read(garden),
    forgetKeys: (nowMs) => worker.get().call("forgetKeys", nowMs),
    forgetEvents: (beforeMs, after) => forgetEvents(cleanup, options.plantsMax, beforeMs, after),
    noteTokenUses: (uses) => worker.get().call("noteTokenUses", uses),
    measure: () => worker.get().call("measure"),
    async ping() {
      const client = worker.get();
      // Before it has started, the file has just been opened: a new service is ready sooner.
      if (worker.hasReplied) await client.call("checkStillThere");
      await tokens.countTokenChanges();
    },
    share() {
      const shared = worker.get().share();
      const state: Share = { ...shared, path };
      return { state, transfer: [shared.port] };
    },
    async close() {
      await worker.close();
      // The newest first, so the lock is released last.
      opened.dispose();
    },
  };
}

/** A command may never need one, and the first response of a service needn't wait for it. */
class LazyWorker {
  #client: WorkerClient | undefined;
  hasReplied = false;

  constructor(private readonly open: () => WorkerClient) {}

  get(): WorkerClient {
    this.#client ??= this.#start();
    return this.#client;
  }

  #start(): WorkerClient {
    const client = this.open();
    const note = () => {
      this.hasReplied = true;
    };
    client.call("checkStillThere").then(note, note);
    return client;
  }

  async close(): Promise<void> {
    await this.#client?.close();
  }
}
