/// <reference lib="webworker" />
/**
 * The thread that commits and looks at the files, so that a slow disk delays only writes. It serves
 * every thread that has joined it, over one connection, and opens a new one after the storage has
 * failed.
 */
import type { Database } from "bun:sqlite";
import { statfsSync } from "node:fs";
import { dirname } from "node:path";
import { PlantStoreError } from "../../domain/errors.ts";
import type { Outcome, Write } from "../../domain/ports.ts";
import { storageError } from "../failures.ts";
import {
  type Contents,
  otherProcessesMs,
  type StorageSizes,
  type WriterOptions,
} from "../storage.ts";
import { mapError } from "./errors.ts";
import {
  checkIntegrity,
  checkStillThere,
  connect,
  readPragma,
  sizeOf,
  toOpenError,
} from "./open.ts";
import { requireStore } from "./schema.ts";
import { GardenVersions } from "./versions.ts";
import {
  pack,
  unpack,
  type WorkerMethods,
  type WorkerReply,
  type WorkerRequest,
} from "./worker-client.ts";
import { createWriter, type Writer } from "./writer.ts";

declare const self: Worker;

/** A thread that has joined: the port to it, or for the thread that started this one, `self`. */
type Port = Pick<MessagePort, "postMessage" | "onmessage">;

/** The writes of one request that wait for a commit. */
interface WaitingRequest {
  readonly port: Port;
  readonly writes: readonly Write[];
}

let store = { path: "", files: "" };
let options: WriterOptions = {};
let connection:
  | { readonly database: Database; readonly writer: Writer; dataVersion: bigint }
  | undefined;
let versions = new GardenVersions();
let waiting: WaitingRequest[] = [];
/** The thread whose writes were the last commit, unless it shared it. */
let lastAlone: Port | undefined;

/**
 * How long the files count as still there. Looking at them takes as long as a tenth of a commit, and
 * what was written just before they went is lost as well.
 */
const lookedMs = 10;
let lookedAtMs = Number.NEGATIVE_INFINITY;

/** Connects if there is no connection, but never to another file that has taken the name. */
function openWriter(): Writer {
  const nowMs = performance.now();
  if (!connection || nowMs - lookedAtMs > lookedMs) {
    checkStillThere(store.path, store.files);
    lookedAtMs = nowMs;
  }
  if (connection) return connection.writer;
  let database: Database | undefined;
  try {
    database = connect(store.path);
    const writer = createWriter(database, options);
    connection = { database, writer, dataVersion: readPragma(database, "data_version") };
    // Others may have written while there was no connection.
    versions.changeAll();
    return writer;
  } catch (error) {
    database?.close();
    // No query has run yet, so whatever SQLite's code is, the storage is at fault.
    throw storageError("unavailable", error);
  }
}

function disconnect(): void {
  connection?.database.close();
  connection = undefined;
}

/** Maps to the domain's error. A connection that failed is not used again. */
function handleFailure(thrown: unknown): unknown {
  const error = mapError(thrown);
  if (error instanceof PlantStoreError && error.code === "unavailable") disconnect();
  return error;
}

function perform(request: Exclude<WorkerRequest, { kind: "apply" }>): unknown {
  switch (request.kind) {
    case "open":
      store = request.store;
      options = request.options;
      versions = new GardenVersions(request.versions);
      openWriter();
      return;
    case "join":
      return listenTo(request.port);
    case "call":
      return (methods[request.method] as (...values: unknown[]) => unknown)(...request.values);
    case "close":
      return disconnect();
  }
}

const methods: WorkerMethods = {
  forgetKeys: (nowMs) => openWriter().forgetKeys(nowMs),
  forgetEvents: (...values) => openWriter().forgetEvents(...values),
  noteTokenUses: (uses) => openWriter().noteTokenUses(uses),
  checkStillThere: () => checkStillThere(store.path, store.files),
  measure,
  vacuumInto,
  checkFile,
};

function measure(): StorageSizes {
  const { path, files } = store;
  checkStillThere(path, files);
  const { blocks, bavail, bsize } = statfsSync(dirname(path));
  return {
    database: sizeOf(path),
    log: sizeOf(`${path}-wal`),
    diskFree: bavail * bsize,
    disk: blocks * bsize,
  };
}

/** Over a connection of its own, because it may be another file than the store's. */
function vacuumInto(source: string, target: string): void {
  try {
    using database = connect(source);
    requireStore(database);
    database.query("VACUUM INTO ?").run(target);
  } catch (error) {
    const { code = "" } = error as { code?: string };
    // The source is only read. Quotas and size limits are reported as failed writes.
    const isFull = code === "SQLITE_FULL" || code === "SQLITE_IOERR_WRITE";
    if (!isFull) throw toOpenError(source, error);
    const message = `There is no room for a copy in ${dirname(target)}.`;
    throw new PlantStoreError("storage-full", message, { cause: error });
  }
}

function checkFile(file: string): Contents {
  try {
    using database = connect(file);
    requireStore(database);
    checkIntegrity(database, "integrity_check");
    const counts = database.query<Record<keyof Contents, bigint>, []>(
      `SELECT (SELECT coalesce(sum(plants), 0) FROM gardens) AS plants,
         (SELECT count(*) FROM tokens) AS tokens`,
    );
    const { plants, tokens } = counts.get() ?? { plants: 0n, tokens: 0n };
    return { plants: Number(plants), tokens: Number(tokens) };
  } catch (error) {
    throw toOpenError(file, error);
  }
}

/** Requests that arrived during the last commit share the next one, whichever thread sent them. */
function commitWaiting(): void {
  const requests = waiting;
  const [first] = requests;
  waiting = [];
  if (!first) return;
  lastAlone = requests.length === 1 ? first.port : undefined;
  commit(requests);
}

function commit(requests: readonly WaitingRequest[]): void {
  let outcomes: readonly Outcome[];
  try {
    outcomes = write(requests.flatMap(({ writes }) => writes));
  } catch (thrown) {
    const error = handleFailure(thrown);
    // If a write is at fault, not the storage, only its own request fails.
    if (requests.length > 1 && !(error instanceof PlantStoreError)) {
      for (const request of requests) commit([request]);
      return;
    }
    for (const { port } of requests) port.postMessage(toReply(error));
    return;
  }
  // Outside the try above: its catch would reply a second time.
  let from = 0;
  for (const { port, writes } of requests) {
    const result = pack(outcomes.slice(from, from + writes.length));
    from += writes.length;
    port.postMessage({ result } satisfies WorkerReply);
  }
}

function write(writes: readonly Write[]): readonly Outcome[] {
  const end = versions.begin(writes);
  try {
    return openWriter().apply(writes);
  } finally {
    end();
  }
}

/**
 * SQLite counts the commits of other connections. After a failure there is no connection to ask
 * until the next write, so no cached list counts as current.
 */
function noticeOtherProcesses(): void {
  if (!connection) {
    versions.changeAll();
    return;
  }
  try {
    const found = readPragma(connection.database, "data_version");
    if (found !== connection.dataVersion) versions.changeAll();
    connection.dataVersion = found;
  } catch {
    // Its files may have been replaced. Writes are refused until that's fixed.
    disconnect();
  }
}

function toReply(error: unknown): WorkerReply {
  return {
    code: error instanceof PlantStoreError ? error.code : undefined,
    message: error instanceof Error ? error.message : String(error),
    cause: error instanceof PlantStoreError ? String(error.cause) : undefined,
  };
}

function listenTo(port: Port): void {
  port.onmessage = ({ data: request }: MessageEvent<WorkerRequest>) => {
    if (request.kind === "apply") {
      waiting.push({ port, writes: unpack<Write>(request.writes) });
      if (waiting.length > 1) return;
      // A thread that writes alone doesn't wait for others.
      if (port === lastAlone) commitWaiting();
      else setImmediate(commitWaiting);
      return;
    }
    // Replies go out in the order of the requests.
    commitWaiting();
    try {
      const result = perform(request);
      if (request.kind !== "join") port.postMessage({ result } satisfies WorkerReply);
    } catch (thrown) {
      port.postMessage(toReply(handleFailure(thrown)));
    }
  };
}

setInterval(noticeOtherProcesses, otherProcessesMs);
listenTo(self as unknown as Port);
