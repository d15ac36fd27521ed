/** `plantstore import`: the plants of a file into a running service. Safe to repeat. */
import {
  createReadStream,
  fstatSync,
  openSync,
  readSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { PlantStore } from "../client/plant-store.ts";
import { exitCodes, fileError, toFileError } from "./cli-error.ts";
import {
  type Call,
  type Command,
  choiceFlag,
  isForPeople,
  numberFlag,
  textFlag,
} from "./command.ts";
import { Importer, type RefusedRow, type ValidRow } from "./importer.ts";
import { chooseFormat, formatFlag, type Row, readRows } from "./plant-file.ts";
import { Progress, renderDuration, renderRate } from "./progress.ts";
import { variables, withStore } from "./service-client.ts";
import { onStopSignal } from "./stop-signals.ts";
import { showSafely } from "./terminal.ts";

const actions = ["stop", "continue"] as const;
const concurrencyDefault = 64;
/** What the runtime's HTTP client sends at a time. */
const concurrencyMax = 256;
const chunkBytes = 64 * 1024;
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
    concurrency: {
      placeholder: "NUMBER",
      help: "requests at a time; 1 assigns ids in the order of the rows",
      fallback: String(concurrencyDefault),
    },
    batch: {
      placeholder: "NAME",
      help: "a name by which a later run recognizes rows without an id",
      fallback: "the file's name without its folder",
    },
    json: { help: "print the summary as JSON, also at a terminal" },
  },
  settings: ["url"],
  variables,
  examples: [
    "plantstore import plants.csv",
    "plantstore import plants.csv --dry-run",
    "plantstore import plants.jsonl --on-error continue",
    "zcat plants.csv.gz | plantstore import - --format csv --batch spring",
  ],
  async run(call) {
    const path = call.words[0] ?? "";
    const options = {
      batch: textFlag(call, "batch") ?? basename(path),
      isStopping: choiceFlag(call, "on-error", actions) !== "continue",
      concurrency:
        numberFlag(call, "concurrency", { min: 1, max: concurrencyMax }) ?? concurrencyDefault,
    };
    const format = chooseFormat(call, path);
    const openRows = async () => {
      const descriptor = await openSource(call, path);
      return () => readRows(readChunks(descriptor), format);
    };
    if (call.flags["dry-run"] === true) return check(call, await openRows());
    const work = async (store: PlantStore) => {
      const importer = new Importer(store, options);
      await importRows(call, await openRows(), importer);
      return conclude(call, importer, options.isStopping);
    };
    return withStore(call, work, patience);
  },
};

/** A dry run: the exit code says whether every row can be sent. */
function check(call: Call, read: () => Iterable<Row>): number {
  let refused = 0;
  const { withId, withoutId } = countRows(read(), (row) => {
    refused++;
    call.terminal.say(renderRefusal(row));
    return false;
  });
  const valid = withId + withoutId;
  if (!isForPeople(call)) {
    call.terminal.out(`${JSON.stringify({ valid, withoutId, refused })}\n`);
  }
  call.terminal.say(
    `${renderCount(valid)} valid (${renderCount(withoutId)} without an id), ` +
      `${renderCount(refused)} refused. Nothing was sent.`,
  );
  return refused === 0 ? exitCodes.done : exitCodes.rowsRefused;
}

/**
 * Reads the file three times: to check it and count its rows, for the rows with an id, and for the
 * others. Those come last, because the service could assign them an id that a later row brings.
 */
async function importRows(
  call: Call,
  read: () => Iterable<Row>,
  importer: Importer,
): Promise<void> {
  const { withId, withoutId } = countRows(read(), (row) => {
    importer.refused.push(row);
    return importer.isStopped;
  });
  const progress = new Progress(call.terminal, () => {
    const count = importer.stored + importer.alreadyThere;
    return { count, share: count / Math.max(1, withId + withoutId) };
  });
  // To the end of the process: npm repeats a SIGINT, which must not cut off the last message.
  onStopSignal(() => importer.cancel());
  try {
    if (withId > 0) await importer.send(validRows(read(), true));
    if (withoutId > 0) await importer.send(validRows(read(), false));
  } finally {
    progress.end();
    report(call, importer, progress.elapsedMs);
  }
}

/** Ends early where `refuse` returns true. */
function countRows(rows: Iterable<Row>, refuse: (row: RefusedRow) => boolean) {
  const counts = { withId: 0, withoutId: 0 };
  for (const row of rows) {
    if ("draft" in row) counts[row.draft.id === undefined ? "withoutId" : "withId"]++;
    else if (refuse(row)) break;
  }
  return counts;
}

function* validRows(rows: Iterable<Row>, hasId: boolean): Generator<ValidRow> {
  for (const row of rows) {
    if ("draft" in row && (row.draft.id !== undefined) === hasId) yield row;
  }
}

function report(call: Call, importer: Importer, elapsedMs: number): void {
  const { stored, alreadyThere, refused } = importer;
  const inOrder = refused.toSorted((a, b) => a.line - b.line || (a.column ?? 0) - (b.column ?? 0));
  for (const row of inOrder) call.terminal.say(renderRefusal(row));
  if (!isForPeople(call)) {
    call.terminal.out(`${JSON.stringify({ stored, alreadyThere, refused: refused.length })}\n`);
  }
  const took = `${renderDuration(elapsedMs)} (${renderRate(stored + alreadyThere, elapsedMs)})`;
  call.terminal.say(
    `${renderCount(stored)} stored, ${renderCount(alreadyThere)} already there, ` +
      `${renderCount(refused.length)} refused, in ${took}.`,
  );
}

/** The exit code, and how to go on. */
function conclude({ terminal }: Call, importer: Importer, isStopping: boolean): number {
  if (importer.isCancelled) {
    terminal.say("plantstore: Interrupted. Run it again to go on; no plant is stored twice.");
    return exitCodes.interrupted;
  }
  if (importer.refused.length === 0) return exitCodes.done;
  const orSkip = isStopping ? ", or skip such rows with --on-error continue" : "";
  terminal.say(`plantstore: Fix what was refused and run it again${orSkip}.`);
  return exitCodes.rowsRefused;
}

/** It may quote the file. */
function renderRefusal({ line, column, error }: RefusedRow): string {
  const place = column === undefined ? `line ${line}` : `line ${line}, column ${column}`;
  return `${place}: ${showSafely(error)}`;
}

function renderCount(count: number): string {
  return count.toLocaleString("en");
}

/** A descriptor that can be read repeatedly: a pipe is copied to a temporary file first. */
async function openSource({ terminal }: Call, path: string): Promise<number> {
  if (path === "-") {
    if (terminal.isWatched && process.stdin.isTTY) {
      terminal.say("Reading plants from the terminal, one per line. Press Ctrl+D to end.");
    }
    return spool(process.stdin);
  }
  try {
    const descriptor = openSync(path, "r");
    const stats = fstatSync(descriptor);
    if (stats.isDirectory()) throw fileError("read", path, { code: "EISDIR" });
    return stats.isFile() ? descriptor : await spool(createReadStream(path, { fd: descriptor }));
  } catch (error) {
    throw toFileError("read", path, error);
  }
}

async function spool(chunks: AsyncIterable<Uint8Array>): Promise<number> {
  const path = join(tmpdir(), `plantstore-import-${crypto.randomUUID()}`);
  try {
    const descriptor = openSync(path, "wx+", 0o600);
    // Without a name it is gone when the process ends, however that happens.
    unlinkSync(path);
    for await (const chunk of chunks) writeFileSync(descriptor, chunk);
    return descriptor;
  } catch (error) {
    throw fileError("write", path, error);
  }
}

function* readChunks(descriptor: number): Generator<Uint8Array, void> {
  const chunk = new Uint8Array(chunkBytes);
  for (let position = 0; ; ) {
    const count = readSync(descriptor, chunk, 0, chunk.length, position);
    if (count === 0) return;
    position += count;
    yield chunk.subarray(0, count);
  }
}
