/** `plantstore copy`: moves everything from one storage to another, of either engine. */
import { readLimits, readSetting } from "../config.ts";
import { PlantStoreError } from "../domain/errors.ts";
import type { OpenOptions } from "../domain/storage.ts";
import { type RecordKind, retold, type TransferStorage } from "../domain/transfer.ts";
import { copyAll, isEmpty } from "../storage/copy.ts";
import { isSameDatabase, maskAddress, openStorage } from "../storage/open.ts";
import { type Comparison, type Difference, verifyAll } from "../storage/verification.ts";
import { alignColumns, type Command, type Terminal } from "./command.ts";
import { stoppable, timed } from "./long-work.ts";

/** More of them would say no more. */
const toldDifferencesMax = 20;
const shownChecksumDigits = 16;

export const copyCommand: Command = {
  name: "copy",
  summary: "Copy all plants, tokens and idempotency keys to another database, and compare the two.",
  words: [],
  flags: { resume: { help: "go on with a copy that was stopped; else the target must be empty" } },
  settings: ["copyFrom", "copyTo", "databaseConnectTimeoutMs", "databaseStatementTimeoutMs"],
  examples: [
    "plantstore copy --from data/plants.db --to postgres://plants@db1,db2/plants",
    "plantstore copy --from data/plants.db --to postgres://plants@db1,db2/plants --resume",
    "PLANTSTORE_COPY_FROM=postgres://plants:secret@db1/plants plantstore copy --to plants.db",
  ],
  async run({ flags, terminal }) {
    const from = readSetting("copyFrom", flags);
    const to = readSetting("copyTo", flags);
    if (isSameDatabase(from, to)) {
      throw new PlantStoreError("invalid-request", "--from and --to are the same database.");
    }
    // As if both were served, so that an engine that can tell refuses what a service is using.
    const options: OpenOptions = { isServing: true, limits: readLimits(flags) };
    await using source = await open(from, { ...options, mustExist: true });
    await using target = await open(to, options);
    const nowMs = Date.now();
    const move = {
      source: named(source.storage.transfer(nowMs), from),
      target: named(target.storage.transfer(nowMs), to),
      terminal,
    };
    if (flags.resume === true) while (await target.storage.forgetKeys(nowMs));
    else if (!(await isEmpty(move.target))) {
      throw new PlantStoreError(
        "conflict",
        `${maskAddress(to)} is not empty. To go on with a copy that was stopped, add --resume.`,
      );
    }
    const hint = "Run it again with --resume to go on; nothing is lost.";
    return await stoppable(terminal, hint, (signal) => copyAndVerify(move, signal));
  },
};

interface Move {
  readonly source: TransferStorage;
  readonly target: TransferStorage;
  readonly terminal: Terminal;
}

async function open(address: string, options: OpenOptions) {
  const storage = await openStorage(address, options);
  return { storage, [Symbol.asyncDispose]: () => storage.close() };
}

/** Its failures say which of the two broke off, and how to go on. */
function named(storage: TransferStorage, address: string): TransferStorage {
  return retold(storage, (error) => {
    if (!(error instanceof PlantStoreError)) return error;
    const where = maskAddress(address);
    const message = `Broke off at ${where}: ${error.message} Go on with --resume.`;
    return new PlantStoreError(error.code, message, { cause: error });
  });
}

async function copyAndVerify(
  { source, target, terminal }: Move,
  signal: AbortSignal,
): Promise<number> {
  await timed(terminal, "Copied", (tally) => copyAll(source, target, tally, signal));
  const differences: Difference[] = [];
  const comparisons = await timed(terminal, "Compared", (tally) =>
    verifyAll(source, target, tally, signal, (difference) => {
      if (differences.length < toldDifferencesMax) differences.push(difference);
    }),
  );
  terminal.out(`${renderComparisons(comparisons)}\n`);
  const differing = comparisons.reduce((sum, each) => sum + each.differing, 0);
  if (differing === 0) return 0;
  for (const difference of differences) terminal.out(`${renderDifference(difference)}\n`);
  const untold = differing - differences.length;
  if (untold > 0) terminal.out(`and ${untold.toLocaleString("en")} more\n`);
  terminal.say("plantstore: The target differs from the source. Nothing of it was overwritten.");
  return 1;
}

function renderComparisons(comparisons: readonly Comparison[]): string {
  const rows = comparisons.map(({ kind, source, target }) => [
    kind,
    source.records.toLocaleString("en"),
    target.records.toLocaleString("en"),
    source.checksum.slice(0, shownChecksumDigits),
    target.checksum.slice(0, shownChecksumDigits),
    source.checksum === target.checksum ? "equal" : "DIFFERENT",
  ]);
  return alignColumns([["", "SOURCE", "TARGET", "CHECKSUMS"], ...rows]).join("\n");
}

const titles: Readonly<Record<RecordKind, string>> = {
  tokens: "the token",
  counters: "the counter of ids of the garden",
  keys: "the idempotency keys of the garden",
  plants: "the plants of the garden",
};

function renderDifference({ kind, source, target }: Difference): string {
  const group = JSON.stringify(source?.group ?? target?.group);
  const [here, there] = [source?.records ?? 0, target?.records ?? 0];
  const how =
    here === there
      ? `${here.toLocaleString("en")} on both sides, but not the same`
      : `${here.toLocaleString("en")} in the source, ${there.toLocaleString("en")} in the target`;
  return `${titles[kind]} ${group}: ${how}`;
}
