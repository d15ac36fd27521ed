/** `plantstore import`: the plants of a file into a running service. Safe to repeat. */
import { accessSync, constants, createReadStream, existsSync, writeFileSync } from "node:fs";
import { basename, dirname } from "node:path";
import { checkRows, type FileCheck, sortRows } from "../../client/files/check.ts";
import { Importer, requestRows, StorageFullError } from "../../client/files/importer.ts";
import { renderSources } from "../../client/files/renderer.ts";
import {
  type Format,
  PlantFileError,
  type RefusedRow,
  type Row,
  readRows,
} from "../../client/files/rows.ts";
import { describeImport, describeInvalid, renderLine } from "../../client/files/words.ts";
import type { PlantStore } from "../../client/plant-store.ts";
import { choice, integer, type Parser } from "../config.ts";
import { showSafely } from "../domain/errors.ts";
import { mapFileError } from "../storage/failures.ts";
import { renderCount } from "../wording.ts";
import { CliError, exitCodes, usageError } from "./cli-error.ts";
import { type Call, type Command, isForPeople, jsonFlag, readFlag } from "./command.ts";
import { withProgress } from "./progress.ts";
import { chooseFormat, formatFlag, patient, variables, withService } from "./service-client.ts";
import { cancellable, onStopSignal } from "./stop-signals.ts";

const actions = ["stop", "continue"] as const;
const onError = choice(...actions);
const concurrencyDefault = 8;
/** What the runtime's HTTP client sends at a time. */
const concurrencyMax = 256;
/** A file with more invalid rows is wrong as a whole. */
const listedRowsMax = 100;

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
      help: "skip refused rows, and write them to FILE, to be fixed and imported",
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
    const isStopping = readFlag(call, "on-error", onError) !== "continue" && rejects === undefined;
    const options = {
      batch: readFlag(call, "batch", someText("a name")) ?? basename(path),
      batchAdvice: "to add this one too, choose another name with --batch",
      isStopping,
      concurrency: readFlag(call, "concurrency", integer(1, concurrencyMax)) ?? concurrencyDefault,
    };
    const format = chooseFormat(call, path);
    const checkFile = (listedMax: number) =>
      cancellable("Nothing was sent.", async (signal) => {
        const chunks = await readSource(call, path, signal);
        const read = () => readRowsOrFail(chunks, format);
        return { read, check: await checkRows(read(), { listedMax, signal }) };
      });
    if (call.flags["dry-run"] === true) {
      const { check } = await checkFile(Number.POSITIVE_INFINITY);
      reportCheck(call, check);
      if (check.invalid === 0) return exitCodes.done;
      if (rejects !== undefined) writeRejects(check.listed, rejects);
      return exitCodes.rowsRefused;
    }
    const work = async (store: PlantStore) => {
      const listedMax = isStopping ? listedRowsMax : Number.POSITIVE_INFINITY;
      const { read, check } = await checkFile(listedMax);
      if (isStopping && check.invalid > 0) throw refuseFile(call, check);
      const importer = new Importer(store, options);
      await sendRows(call, read, check, importer);
      conclude(importer, [...check.listed, ...importer.refused], rejects);
    };
    await withService(call, work, patient);
  },
};

/** An unset shell variable becomes an empty string. */
function someText(expected: string): Parser<string> {
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
    throw mapFileError("write", path, error);
  }
  return path;
}

/** All of a file or of a pipe, because an import reads it several times. */
async function readSource(
  { terminal }: Call,
  path: string,
  signal: AbortSignal,
): Promise<Uint8Array[]> {
  if (path === "-" && terminal.isStderrTty && process.stdin.isTTY) {
    terminal.say("Reading plants from the terminal, one per line. Press Ctrl+D to end.");
  }
  // Reading a pipe itself can't be aborted while nobody writes to it.
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason));
  });
  const stream = path === "-" ? process.stdin : createReadStream(path);
  try {
    return await Promise.race([Array.fromAsync<Uint8Array>(stream), aborted]);
  } catch (error) {
    throw mapFileError("read", path, error);
  }
}

/** Throws a `CliError` if the file can't be read at all. */
function* readRowsOrFail(chunks: Iterable<Uint8Array>, format: Format): Generator<Row, void> {
  try {
    yield* readRows(chunks, format);
  } catch (error) {
    if (!(error instanceof PlantFileError)) throw error;
    throw usageError(showSafely(error.message));
  }
}

/** Of a dry run. */
function reportCheck(call: Call, { rows, withId, withoutId, invalid, listed }: FileCheck): void {
  const valid = withId + withoutId;
  report(
    call,
    listed,
    { valid, withoutId, refused: invalid },
    `${renderCount(rows, "row")}: ${renderCount(valid)} valid (${renderCount(withoutId)} without ` +
      `an id), ${renderCount(invalid)} invalid. Nothing was sent.`,
  );
}

/** Lists invalid rows. The error to throw says what to do. */
function refuseFile(call: Call, check: FileCheck): CliError {
  const { invalid, listed, unreadable } = check;
  report(call, listed, { stored: 0, alreadyThere: 0, refused: invalid });
  const more = invalid - listed.length;
  if (more > 0) call.terminal.say(`… and ${renderCount(more)} more. --dry-run lists all.`);
  const them = invalid === 1 ? "it" : "them";
  const advice = unreadable
    ? "Fix that, and run the import again."
    : `Fix ${them}, or import the rest with --on-error continue.`;
  return new CliError(`${describeInvalid(check)} ${advice}`, exitCodes.rowsRefused);
}

async function sendRows(
  call: Call,
  read: () => Iterable<Row>,
  check: FileCheck,
  importer: Importer,
): Promise<void> {
  const { withId, withoutId, listed } = check;
  const readProgress = () => {
    const count = importer.stored + importer.alreadyThere;
    return { count, share: count / Math.max(1, withId + withoutId) };
  };
  const startedAtMs = performance.now();
  // To the end of the process: npm repeats a SIGINT, which must not cut off the last message.
  onStopSignal(() => importer.cancel());
  try {
    await withProgress(call.terminal, readProgress, () => importer.send(read, check));
  } catch (error) {
    if (!(error instanceof StorageFullError)) throw error;
    throw new CliError(error.message, exitCodes.unavailable);
  } finally {
    const { stored, alreadyThere, unconfirmed } = importer;
    const refused = [...listed, ...importer.refused];
    const counts = {
      stored,
      alreadyThere,
      refused: refused.length,
      ...(unconfirmed > 0 && { unconfirmed }),
    };
    const elapsedMs = performance.now() - startedAtMs;
    report(call, refused, counts, describeImport(importer, refused.length, elapsedMs));
  }
}

/** Lists refused rows in the order of the file. */
function report(
  call: Call,
  refused: readonly RefusedRow[],
  counts: Readonly<Record<string, number>>,
  summary?: string,
): void {
  // An error may quote the file.
  for (const row of sortRows(refused))
    call.terminal.say(`${renderLine(row)}: ${showSafely(row.error)}`);
  if (!isForPeople(call)) call.terminal.out(`${JSON.stringify(counts)}\n`);
  if (summary !== undefined) call.terminal.say(summary);
}

/** Throws a `CliError` that says how to go on, if there is something left to do. */
function conclude(
  importer: Importer,
  refused: readonly RefusedRow[],
  rejects: string | undefined,
): void {
  if (importer.isCancelled) {
    const message = "Interrupted. Run the same import again to go on: no plant is stored twice.";
    throw new CliError(message, exitCodes.interrupted);
  }
  if (refused.length === 0) return;
  if (rejects !== undefined) {
    writeRejects(refused, rejects);
    const advice = `The refused rows are in ${rejects}. Fix them there, and import that file.`;
    throw new CliError(advice, exitCodes.rowsRefused);
  }
  const advice =
    "Fix the refused rows in place and run the import again. Don't delete rows: later rows " +
    "without ids could be stored twice.";
  const skipping =
    " Or run it with --rejects FILE: that skips them, and writes them to a file to fix and import.";
  const canSkip = !refused.some(({ isUnreadable }) => isUnreadable);
  throw new CliError(canSkip ? advice + skipping : advice, exitCodes.rowsRefused);
}

function writeRejects(refused: readonly RefusedRow[], path: string): void {
  const unreadable = refused.find((row) => row.isUnreadable);
  if (unreadable !== undefined) {
    throw new CliError(
      `${path} was not written: the file could not be read to its end (${renderLine(unreadable)}). ` +
        "Fix that, and run the import again.",
      exitCodes.rowsRefused,
    );
  }
  try {
    writeFileSync(path, renderSources(sortRows(refused)), { flag: "wx", mode: 0o600 });
  } catch (error) {
    throw mapFileError("write", path, error);
  }
}
