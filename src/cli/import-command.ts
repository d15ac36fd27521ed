/** `plantstore import`: the plants of a file into a running service. Safe to repeat. */
import { createReadStream } from "node:fs";
import {
  checkRows,
  checkUpdateRows,
  describeInvalid,
  type FileCheck,
} from "../../client/files/check.ts";
import { describeImport, Importer, makeImportKey } from "../../client/files/importer.ts";
import {
  type Format,
  PlantFileError,
  type PlantUpdate,
  type RefusedRow,
  readRows,
  readUpdateRows,
  type ValidRow,
} from "../../client/files/rows.ts";
import { makeIdempotencyKey, type PlantStore } from "../../client/plant-store.ts";
import { mapFileError } from "../shared/system-errors.ts";
import { renderCount, showSafely } from "../shared/text.ts";
import { CliError, exitCodes, usageError } from "./cli-error.ts";
import { type Call, type Command, jsonFlag } from "./command.ts";
import { listRows, mapStorageFull, printCounts } from "./import-report.ts";
import { updatePlants } from "./import-update.ts";
import { chooseFormat, formatFlag, patient, variables, withService } from "./service-client.ts";
import { cancellable } from "./stop-signals.ts";
import { withProgress } from "./terminal.ts";

export const importCommand: Command = {
  name: "import",
  summary: "Add the plants of a file, or of standard input (-). Safe to run again.",
  words: ["FILE|-"],
  flags: {
    format: formatFlag,
    update: { help: "change the plants that are here already to what the file has" },
    "dry-run": { help: "only check the file; with --update, show what would change" },
    yes: { help: "with --update: don't ask before sending" },
    again: { help: "import a file once more that was imported in the last 24 hours" },
    json: jsonFlag,
  },
  settings: ["url"],
  variables,
  examples: [
    "plantstore import plants.csv",
    "plantstore import plants.csv --dry-run",
    "plantstore import plants.csv --update",
    "zcat plants.csv.gz | plantstore import - --format csv",
  ],
  async run(call) {
    const path = call.words[0] ?? "";
    const format = chooseFormat(call, path);
    if (call.flags.update === true) return update(call, path, format);
    if (call.flags.yes === true) {
      throw usageError("Only an import with --update asks before it sends.");
    }
    const check = await readFile(call, path, (chunks) => checkRows(readRows(chunks, format)));
    if (call.flags["dry-run"] === true) return reportCheck(call, check);
    if (check.invalid.length > 0) throw refuseFile(call, check);
    await withService(call, (store) => importRows(call, store, check.valid), patient);
    return undefined;
  },
};

async function update(call: Call, path: string, format: Format): Promise<number | undefined> {
  if (call.flags.again === true) {
    throw usageError("--again adds plants once more. With --update, no plant is added twice.");
  }
  const check = await readFile(call, path, (chunks) =>
    checkUpdateRows(readUpdateRows(chunks, format)),
  );
  if (check.invalid.length > 0) throw refuseFile(call, check);
  return withService(call, (store) => updatePlants(call, store, check.valid, format), patient);
}

/** Reads and checks all rows. Throws a `CliError` if the file can't be read at all. */
async function readFile<Draft>(
  { terminal }: Call,
  path: string,
  check: (chunks: readonly Uint8Array[]) => Promise<FileCheck<Draft>>,
): Promise<FileCheck<Draft>> {
  const stream = path === "-" ? terminal.stdin : createReadStream(path);
  try {
    return await check(await Array.fromAsync<Uint8Array>(stream));
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
function refuseFile(call: Call, check: FileCheck<PlantUpdate>): CliError {
  listRows(call, check.invalid);
  const others = call.flags.update === true ? { changed: 0, unchanged: 0 } : { alreadyThere: 0 };
  printCounts(call, { stored: 0, ...others, refused: check.invalid.length });
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
      throw mapStorageFull(error);
    } finally {
      report(call, importer, performance.now() - startedAtMs);
    }
    if (importer.refused.length > 0) throw new CliError(adviseRefused(importer.refused, rows));
  });
}

function adviseRefused(refused: readonly RefusedRow[], rows: readonly ValidRow[]): string {
  const byId = Map.groupBy(rows, ({ draft }) => String(draft.id));
  // An update refuses a file that has an id twice.
  const isOnce = ({ here }: RefusedRow) => here && byId.get(String(here.id))?.length === 1;
  if (refused.every(isOnce)) {
    return "To make these plants as the file has them, import it with --update.";
  }
  // Not "in place": another content is another import, which would add the rows without ids again.
  return "Put the refused rows into another file, fix them there, and import that.";
}

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
