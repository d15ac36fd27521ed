/** `plantstore import`: the plants of a file into a running service. Safe to repeat. */
import { accessSync, constants, existsSync, writeFileSync } from "node:fs";
import { basename, dirname } from "node:path";
import type { PlantStore } from "../client/plant-store.ts";
import { type Check, choice, integer } from "../config.ts";
import { explainSystemCall } from "../domain/file-failure.ts";
import type { Place, Row } from "../plant-file/rows.ts";
import { CliError, exitCodes, usageError } from "./cli-error.ts";
import { type Call, type Command, isForPeople, jsonFlag, readFlag } from "./command.ts";
import { openSource, readChunks } from "./import-source.ts";
import { detach, Importer, type RefusedRow, requestRows, type ValidRow } from "./importer.ts";
import { chooseFormat, formatFlag, readRows, renderSources, validate } from "./plant-formats.ts";
import { renderTook, withProgress } from "./progress.ts";
import { variables, withStore } from "./service-client.ts";
import { cancellable, onStopSignal } from "./stop-signals.ts";
import { renderCount, showSafely } from "./terminal.ts";

const actions = ["stop", "continue"] as const;
const onError = choice(...actions);
const concurrencyDefault = 8;
/** What the runtime's HTTP client sends at a time. */
const concurrencyMax = 256;
/** A file with more invalid rows is wrong as a whole. */
const invalidRowsMax = 100;
/** Few enough that Ctrl+C is noticed soon. */
const uninterruptedRows = 10_000;
/** Long enough for a service that restarts. A rate limit only makes the import take longer. */
const patience = { retries: 20, limitedRetries: Number.POSITIVE_INFINITY };

export const importCommand: Command = {
  name: "import",
  summary: "Add the plants of a file, or of standard input (-). Safe to run again.",
  words: ["FILE|-"],
  flags: {
    format: formatFlag,
    "dry-run": { help: "only check the file, without calling the service" },
    "on-error": {
      placeholder: actions.join("|"),
      help: "what to do when a row is refused",
      fallback: "stop",
    },
    rejects: {
      placeholder: "FILE",
      help: "skip refused rows, and write them to FILE, to be corrected and imported",
    },
    concurrency: {
      placeholder: "NUMBER",
      help: `requests of ${requestRows} rows at a time; 1 assigns ids in the order of the rows`,
      fallback: String(concurrencyDefault),
    },
    batch: {
      placeholder: "NAME",
      help: "a name by which a later run recognizes rows without an id",
      fallback: "the file's name without its folder",
    },
    json: jsonFlag,
  },
  settings: ["url"],
  variables,
  examples: [
    "plantstore import plants.csv",
    "plantstore import plants.csv --dry-run",
    "plantstore import plants.csv --rejects refused.csv",
    "zcat plants.csv.gz | plantstore import - --format csv --batch spring",
  ],
  async run(call) {
    const path = call.words[0] ?? "";
    const rejects = readRejectsPath(call);
    const options = {
      batch: readFlag(call, "batch", someText("a name")) ?? basename(path),
      isStopping: readFlag(call, "on-error", onError) !== "continue" && rejects === undefined,
      concurrency: readFlag(call, "concurrency", integer(1, concurrencyMax)) ?? concurrencyDefault,
    };
    const format = chooseFormat(call, path);
    const checkFile = (refusedMax: number) =>
      cancellable("Nothing was sent.", async (signal) => {
        const descriptor = await openSource(call, path, signal);
        const read = () => readRows(readChunks(descriptor), format);
        return { read, check: await checkRows(read(), refusedMax, signal) };
      });
    if (call.flags["dry-run"] === true) {
      const { check } = await checkFile(Number.POSITIVE_INFINITY);
      reportCheck(call, check);
      if (check.refused.length === 0) return exitCodes.done;
      if (rejects !== undefined) writeRejects(check.refused, rejects);
      return exitCodes.rowsRefused;
    }
    const work = async (store: PlantStore) => {
      const refusedMax = options.isStopping ? invalidRowsMax : Number.POSITIVE_INFINITY;
      const { read, check } = await checkFile(refusedMax);
      const importer = new Importer(store, options, check.refused);
      await sendRows(call, read, check, importer);
      if (check.refused.length === refusedMax) {
        call.terminal.say(`The check ended after ${refusedMax} invalid rows. --dry-run lists all.`);
      }
      conclude(importer, rejects);
    };
    await withStore(call, work, patience);
  },
};

/** Empty is what a shell variable that isn't set gives. */
function someText(expected: string): Check<string> {
  return { parse: (text) => text || undefined, expected };
}

/** Throws a `CliError` if refused rows can't be written there. */
function readRejectsPath(call: Call): string | undefined {
  const path = readFlag(call, "rejects", someText("the path of a file"));
  if (path === undefined) return undefined;
  if (readFlag(call, "on-error", onError) === "stop") {
    throw usageError("--rejects skips refused rows. Leave out --on-error stop.");
  }
  // It may hold rows that somebody has corrected.
  if (existsSync(path)) throw usageError(`${path} exists already. Choose another file.`);
  try {
    accessSync(dirname(path), constants.W_OK);
  } catch (error) {
    throw explainSystemCall("write", path, error);
  }
  return path;
}

interface FileCheck {
  readonly withId: number;
  readonly withoutId: number;
  readonly refused: readonly RefusedRow[];
}

/** Ends at the invalid row with the number `refusedMax`. */
async function checkRows(
  rows: Iterable<Row>,
  refusedMax: number,
  signal: AbortSignal,
): Promise<FileCheck> {
  let withId = 0;
  let withoutId = 0;
  const refused: RefusedRow[] = [];
  for (const unchecked of rows) {
    const count = withId + withoutId + refused.length;
    if (count % uninterruptedRows === 0) await Bun.sleep(0);
    signal.throwIfAborted();
    const row = validate(unchecked);
    if ("error" in row) {
      refused.push(detach(row));
      if (refused.length === refusedMax) break;
    } else if (row.draft.id === undefined) withoutId++;
    else withId++;
  }
  return { withId, withoutId, refused };
}

/** Of a dry run. */
function reportCheck(call: Call, { withId, withoutId, refused }: FileCheck): void {
  const valid = withId + withoutId;
  const counts = { valid, withoutId, refused: refused.length };
  report(
    call,
    refused,
    counts,
    `${renderCount(valid)} valid (${renderCount(withoutId)} without an id), ` +
      `${renderCount(refused.length)} refused. Nothing was sent.`,
  );
}

/**
 * First the rows with an id, then the others: the service could assign those an id that a later row
 * brings.
 */
async function sendRows(
  call: Call,
  read: () => Iterable<Row>,
  { withId, withoutId, refused }: FileCheck,
  importer: Importer,
): Promise<void> {
  const refusedPlaces = new Set(refused.map(renderPlace));
  const isValid = (row: Row): row is ValidRow =>
    "draft" in row && (refusedPlaces.size === 0 || !refusedPlaces.has(renderPlace(row)));
  function* rowsWithIds(): Generator<ValidRow> {
    for (const row of read()) {
      if (isValid(row) && row.draft.id !== undefined) yield row;
    }
  }
  function* rowsWithoutIds(): Generator<ValidRow | undefined> {
    for (const row of read()) {
      yield isValid(row) && row.draft.id === undefined ? row : undefined;
    }
  }
  const readProgress = () => {
    const count = importer.stored + importer.alreadyThere;
    return { count, share: count / Math.max(1, withId + withoutId) };
  };
  const work = async () => {
    if (withId > 0) await importer.sendWithIds(rowsWithIds());
    if (withoutId > 0) await importer.sendWithoutIds(rowsWithoutIds());
  };
  const startedAtMs = performance.now();
  // To the end of the process: npm repeats a SIGINT, which must not cut off the last message.
  onStopSignal(() => importer.cancel());
  try {
    await withProgress(call.terminal, readProgress, work);
  } finally {
    const { stored, alreadyThere, unconfirmed } = importer;
    const counts = {
      ...{ stored, alreadyThere, refused: importer.refused.length },
      ...(unconfirmed > 0 && { unconfirmed }),
    };
    const mayBeStored =
      ` ${renderCount(unconfirmed)} more may have been stored: their requests got no response. ` +
      "Running the same import again settles it.";
    report(
      call,
      importer.refused,
      counts,
      `${renderCount(stored)} stored, ${renderCount(alreadyThere)} already there, ` +
        `${renderCount(counts.refused)} refused, in ` +
        `${renderTook(stored + alreadyThere, startedAtMs)}.${unconfirmed > 0 ? mayBeStored : ""}`,
    );
  }
}

/** Lists refused rows in the order of the file. */
function report(
  call: Call,
  refused: readonly RefusedRow[],
  counts: Readonly<Record<string, number>>,
  summary: string,
): void {
  // An error may quote the file.
  for (const row of sortRows(refused))
    call.terminal.say(`${renderPlace(row)}: ${showSafely(row.error)}`);
  if (!isForPeople(call)) call.terminal.out(`${JSON.stringify(counts)}\n`);
  call.terminal.say(summary);
}

/** Throws a `CliError` that says how to go on, if there is something left to do. */
function conclude(importer: Importer, rejects: string | undefined): void {
  if (importer.isCancelled) {
    const message = "Interrupted. Run the same import again to go on: no plant is stored twice.";
    throw new CliError(message, exitCodes.interrupted);
  }
  if (importer.refused.length === 0) return;
  if (rejects !== undefined) {
    writeRejects(importer.refused, rejects);
    const advice = `The refused rows are in ${rejects}. Correct them there, and import that file.`;
    throw new CliError(advice, exitCodes.rowsRefused);
  }
  const advice =
    "Correct the refused rows where they are, and run it again; if you removed one, later rows " +
    "without ids could be stored twice.";
  const skipping =
    " Or run it with --rejects FILE: that skips them, and writes them to a file to correct and " +
    "import.";
  const canSkip = !importer.refused.some(({ isEnd }) => isEnd);
  throw new CliError(canSkip ? advice + skipping : advice, exitCodes.rowsRefused);
}

function writeRejects(refused: readonly RefusedRow[], path: string): void {
  const end = refused.find(({ isEnd }) => isEnd);
  if (end !== undefined) {
    throw new CliError(
      `${path} was not written: the file could not be read to its end (${renderPlace(end)}). ` +
        "Correct that where it is, and run it again.",
      exitCodes.rowsRefused,
    );
  }
  try {
    writeFileSync(path, renderSources(sortRows(refused)), { flag: "wx", mode: 0o600 });
  } catch (error) {
    throw explainSystemCall("write", path, error);
  }
}

/** In the order of the file. */
function sortRows(rows: readonly RefusedRow[]): readonly RefusedRow[] {
  return rows.toSorted((a, b) => a.line - b.line || (a.column ?? 0) - (b.column ?? 0));
}

function renderPlace({ line, column }: Place): string {
  return column === undefined ? `line ${line}` : `line ${line}, column ${column}`;
}
