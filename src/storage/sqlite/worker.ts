/// <reference lib="webworker" />
/**
 * The thread that commits, so that a slow disk delays writers only. It serves every thread that has
 * joined it, over one connection; after a failure of the storage, over a new one.
 */
import type { Database } from "bun:sqlite";
import { PlantStoreError } from "../../domain/errors.ts";
import type { Outcome, Write } from "../../domain/storage.ts";
import { connect } from "./connection.ts";
import { translate, unavailable } from "./failure.ts";
import { packOutcomes, unpackWrites } from "./wire.ts";
import type { Reply, WorkerRequest } from "./write-thread.ts";
import { createWriter, type Writer } from "./writer.ts";

declare const self: Worker;

type End = Pick<MessagePort, "postMessage" | "onmessage">;

/** The writes of one end that wait for a commit. */
interface Group {
  readonly end: End;
  readonly writes: readonly Write[];
}

let path = "";
let plantsMax: number | undefined;
let connection: { readonly database: Database; readonly writer: Writer } | undefined;
let commits: Int32Array = new Int32Array(1);
let waiting: Group[] = [];

function opened(): Writer {
  if (connection) return connection.writer;
  let database: Database | undefined;
  try {
    database = connect(path);
    const writer = createWriter(database, plantsMax);
    connection = { database, writer };
    return writer;
  } catch (error) {
    database?.close();
    // Whatever SQLite calls it: no query can be at fault yet.
    throw new PlantStoreError("unavailable", unavailable, { cause: error });
  }
}

function disconnect(): void {
  connection?.database.close();
  connection = undefined;
}

/**
 * As the domain's error. What a connection knew of a file that failed it is not relied on again.
 */
function explain(thrown: unknown): unknown {
  const error = translate(thrown);
  if (error instanceof PlantStoreError && error.code === "unavailable") disconnect();
  return error;
}

function perform(request: Exclude<WorkerRequest, { kind: "apply" }>): unknown {
  switch (request.kind) {
    case "open":
      path = request.path;
      plantsMax = request.plantsMax;
      commits = new Int32Array(request.commits);
      opened();
      return;
    case "join":
      return attend(request.end);
    case "forget-keys":
      return opened().forgetKeys(request.nowMs);
    case "note-token-uses":
      return opened().noteTokenUses(request.uses);
    case "close":
      return disconnect();
  }
}

/**
 * Groups that came in during the last commit share the next one, whichever thread they are from.
 */
function commitWaiting(): void {
  const groups = waiting;
  waiting = [];
  if (groups.length === 0) return;
  let outcomes: readonly Outcome[];
  try {
    outcomes = opened().apply(groups.flatMap((group) => group.writes));
  } catch (thrown) {
    const error = explain(thrown);
    if (groups.length > 1 && !(error instanceof PlantStoreError)) {
      // Not the storage failed but one of the writes: the groups beside it need not.
      for (const group of groups) {
        waiting = [group];
        commitWaiting();
      }
      return;
    }
    for (const { end } of groups) end.postMessage(toReply(error));
    return;
  }
  // Outside of the catch above: what went wrong from here on would have all of it applied again.
  // Counted before anyone is told: whoever asks any thread next sees that something has changed.
  Atomics.add(commits, 0, 1);
  let from = 0;
  for (const { end, writes } of groups) {
    const result = packOutcomes(outcomes.slice(from, from + writes.length));
    from += writes.length;
    end.postMessage({ result } satisfies Reply);
  }
}

function toReply(error: unknown): Reply {
  return {
    code: error instanceof PlantStoreError ? error.code : undefined,
    message: error instanceof Error ? error.message : String(error),
    cause: error instanceof PlantStoreError ? String(error.cause) : undefined,
  };
}

function attend(end: End): void {
  end.onmessage = ({ data: request }: MessageEvent<WorkerRequest>) => {
    if (request.kind === "apply") {
      waiting.push({ end, writes: unpackWrites(request.writes) });
      if (waiting.length === 1) setImmediate(commitWaiting);
      return;
    }
    // Replies go out in the order of the requests.
    commitWaiting();
    try {
      const result = perform(request);
      if (request.kind !== "join") end.postMessage({ result } satisfies Reply);
    } catch (thrown) {
      end.postMessage(toReply(explain(thrown)));
    }
  };
}

attend(self as unknown as End);
