/** `plantstore import`: the plants of a file into a running service. Safe to repeat. */
import { createReadStream } from "node:fs";
import {
  checkRows,
  describeInvalid,
  type FileCheck,
  renderLine,
} from "../../client/files/check.ts";
import {
  describeImport,
  Importer,
  makeImportKey,
  StorageFullError,
} from "../../client/files/importer.ts";
import {
  PlantFileError,
  type RefusedRow,
  readRows,
  type ValidRow,
} from "../../client/files/rows.ts";
import { makeIdempotencyKey, type PlantStore } from "../../client/plant-store.ts";
import { mapFileError } from "../shared/system-errors.ts";
import { renderCount, showSafely } from "../shared/text.ts";
import { CliError, exitCodes, usageError } from "./cli-error.ts";
import { type Call, type Command, isForPeople, jsonFlag } from "./command.ts";
import { chooseFormat, formatFlag, patient, variables, withService } from "./service-client.ts";
import { cancellable } from "./stop-signals.ts";
import { withProgress } from "./terminal.ts";

export const importCommand: Command = {
  name: "import",
  summary: "Add the plants of a file, or of standard input (-). Safe to run again.",
  words: ["FILE|-"],
  flags: {
    format: formatFlag,
    "dry-run": { help: "only check the file, without calling the service" },
    again: { help: "import a file once more that was imported in the last 24 hours" },
    json: jsonFlag,
  },
  settings: ["url"],
  variables,
  examples: [
    "plantstore import plants.csv",
    "plantstore import plants.csv --dry-run",
    "zcat plants.csv.gz | plantstore import - --format csv",
  ],
  async run(call) {
    const check = await checkFile(call);
    if (call.flags["dry-run"] === true) return reportCheck(call, check);
    if (check.invalid.length > 0) throw refuseFile(call, check);
    await withService(call, (store) => importRows(call, store, check.valid), patient);
  },
};

/** Reads and checks all rows. Throws a `CliError` if the file can't be read at all. */
async function checkFile(call: Call): Promise<FileCheck> {
  const path = call.words[0] ?? "";
  const format = chooseFormat(call, path);
  const stream = path === "-" ? call.terminal.stdin : createReadStream(path);
  try {
    const chunks = await Array.fromAsync<Uint8Array>(stream);
    return await checkRows(readRows(chunks, format));
  } catch (error) {
    if (error instanceof PlantFileError) throw usageError(showSafely(error.message));
    throw mapFileError("read", path, error);
  }
}

/** The result of a dry run. Returns the exit code. */
function reportCheck(call: Call, { valid, invalid }: FileCheck): number {
  const withoutId = valid.filter(({ draft }) => draft.id === undefined).length;
  listRows(call, invalid);
  printCounts(call, { valid: valid.length, withoutId, refused: invalid.length });
  call.terminal.say(
    `${renderCount(valid.length + invalid.length, "row")}: ${renderCount(valid.length)} valid ` +
      `(${renderCount(withoutId)} without an id), ${renderCount(invalid.length)} invalid. ` +
      "Nothing was sent.",
  );
  return invalid.length === 0 ? exitCodes.done : exitCodes.usage;
}

/** Lists the invalid rows. The error to throw says what to do. */
function refuseFile(call: Call, check: FileCheck): CliError {
  listRows(call, check.invalid);
  printCounts(call, { stored: 0, alreadyThere: 0, refused: check.invalid.length });
  return usageError(describeInvalid(check));
}

/** Reports what became of the rows, even if it fails midway. */
async function importRows(call: Call, store: PlantStore, rows: readonly ValidRow[]): Promise<void> {
  const contentKey = makeImportKey(rows);
  const isAgain = call.flags.again === true;
  const key = isAgain ? `${contentKey}-${makeIdempotencyKey()}` : contentKey;
  await cancellable("Not all rows were sent.", async (_, stop) => {
    const importer = new Importer(store, { key, stop });
    const startedAtMs = performance.now();
    try {
      const describe = () =>
        `${renderCount(importer.done)} of ${renderCount(rows.length, "plant")}`;
      await withProgress(call.terminal, describe, () => importer.send(rows), stop.asked);
    } catch (error) {
      if (!(error instanceof StorageFullError)) throw error;
      throw new CliError(error.message, exitCodes.unavailable);
    } finally {
      report(call, importer, performance.now() - startedAtMs);
    }
    if (importer.refused.length > 0) throw new CliError(refusedAdvice);
  });
}

// Not "in place": another content is another import, which would add the rows without ids again.
const refusedAdvice = "Put the refused rows into another file, fix them there, and import that.";

function report(call: Call, importer: Importer, elapsedMs: number): void {
  const { stored, storedMax, alreadyThere, deletedSince, refused, notCompared } = importer;
  listRows(call, refused);
  printCounts(call, {
    stored,
    ...(storedMax > stored && { storedMax }),
    alreadyThere,
    refused: refused.length,
    ...(deletedSince > 0 && { deletedSince }),
    ...(notCompared > 0 && { notCompared }),
  });
  const parts = [describeImport(importer, elapsedMs)];
  if (!importer.isDone) {
    parts.push(
      call.flags.again === true
        ? "With --again, another run would add these plants once more."
        : "Run the same import again to go on: no plant is added twice.",
    );
  } else if (deletedSince > 0) parts.push("To import the whole file once more, add --again.");
  call.terminal.say(parts.join(" "));
}

function listRows({ terminal }: Call, rows: readonly RefusedRow[]): void {
  // An error may quote the file.
  for (const row of rows) terminal.say(`${renderLine(row)}: ${showSafely(row.error)}`);
}

function printCounts(call: Call, counts: Readonly<Record<string, number>>): void {
  if (!isForPeople(call)) call.terminal.out(`${JSON.stringify(counts)}\n`);
}
