/** Copies all records from one storage to another, in constant memory. Knows no engine. */
import {
  type MovedRecords,
  type RecordKind,
  recordKinds,
  type TransferStorage,
} from "../domain/transfer.ts";

/** A transaction of so many takes some tens of milliseconds, also on a small machine. */
const batchRecords = 2_000;

/** How far it is, for whoever watches. */
export interface Tally {
  plants: number;
  plantsInAll: number;
}

/**
 * Goes on where an earlier copy ended. Changes nothing that the target already holds, so it can be
 * stopped at any moment and run again. Fails with the signal's reason when it is told to stop.
 */
export async function copyAll(
  source: TransferStorage,
  target: TransferStorage,
  tally: Tally,
  signal: AbortSignal,
): Promise<void> {
  for (const kind of recordKinds) {
    const start = await findStart(source, target, kind);
    const remaining = await source.count(kind, start);
    if (kind === "plants") tally.plantsInAll = remaining;
    for await (const batch of readBatches(source, kind, start, signal)) {
      await target.add(kind, batch);
      if (kind === "plants") tally.plants += batch.length;
    }
  }
}

export async function isEmpty(storage: TransferStorage): Promise<boolean> {
  for (const kind of recordKinds) {
    if ((await storage.last(kind)) !== undefined) return false;
  }
  return true;
}

/**
 * The last record of the target, if it holds as many up to there as the source does: then an
 * earlier copy came so far. Else the beginning, because something may be missing before.
 */
async function findStart<Kind extends RecordKind>(
  source: TransferStorage,
  target: TransferStorage,
  kind: Kind,
): Promise<MovedRecords[Kind] | undefined> {
  const last = await target.last(kind);
  if (last === undefined) return undefined;
  const before = (await source.count(kind)) - (await source.count(kind, last));
  return before === (await target.count(kind)) ? last : undefined;
}

/** All records behind `after`. The next batch is read while the last one is used. */
export async function* readBatches<Kind extends RecordKind>(
  storage: TransferStorage,
  kind: Kind,
  after: MovedRecords[Kind] | undefined,
  signal: AbortSignal,
): AsyncGenerator<readonly MovedRecords[Kind][], void, undefined> {
  let batch = await storage.read(kind, after, batchRecords);
  while (batch.length > 0) {
    const next = storage.read(kind, batch.at(-1), batchRecords);
    // Should nobody ask for it any more, its failure is nobody's.
    next.catch(() => {});
    yield batch;
    // An engine in this process never waits, and then no signal or timer would have its turn.
    await new Promise(setImmediate);
    signal.throwIfAborted();
    batch = await next;
  }
}
