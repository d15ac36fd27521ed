/** `plantstore import`: many plants from a file into a running service, as often as one likes. */
import { createReadStream, fstatSync, openSync } from "node:fs";
import { basename } from "node:path";
import type { Readable } from "node:stream";
import type { PlantStore } from "../client/plant-store.ts";
import { PlantStoreError } from "../domain/errors.ts";
import { explainFile } from "../domain/file-failure.ts";
import { type Call, type Command, textFlag } from "./command.ts";
import { Importer, type Tally } from "./importer.ts";
import { chooseFormat, formatFlag, readPlantLines } from "./plant-file.ts";
import { showSafely } from "./plant-table.ts";
import { Progress, renderDuration, renderRate } from "./progress.ts";
import { exitCodes, variables, withStore } from "./service-client.ts";
import { onStopSignal } from "./stop-signals.ts";

const actions = ["stop", "continue"] as const;
const concurrencyDefault = 64;
/** What the runtime's HTTP client sends at a time. */
const concurrencyMax = 256;
/**
 * Long enough for a service that is being restarted; and a rate limit only makes it take longer.
 */
const patience = { retries: 20, limitedRetries: Number.POSITIVE_INFINITY };

export const importCommand: Command = {
  name: "import",
  summary: "Add the plants of a file, or of standard input (-). Can be run again safely.",
  words: ["FILE|-"],
  flags: {
    format: formatFlag,
    "on-error": { placeholder: actions.join("|"), help: "what a bad line does", fallback: "stop" },
    concurrency: {
      placeholder: "NUMBER",
      help: "requests at a time; 1 keeps the order of assigned ids",
      fallback: String(concurrencyDefault),
    },
    batch: {
      placeholder: "NAME",
      help: "what lines without an id are known by in later runs",
      fallback: "the file's name without its folder",
    },
    json: { help: "the summary as JSON, also at a terminal" },
  },
  settings: ["url"],
  variables,
  examples: [
    "plantstore import plants.csv",
    "plantstore import plants.jsonl --on-error continue",
    "zcat plants.csv.gz | plantstore import - --format csv --batch spring",
  ],
  run(call) {
    const path = call.words[0] ?? "";
    const isStopping = readChoice(call, "on-error", actions) === "stop";
    const concurrency = readConcurrency(textFlag(call, "concurrency"));
    const batch = textFlag(call, "batch") ?? basename(path);
    const format = chooseFormat(textFlag(call, "format"), path);
    const source = openSource(path);
    if (path === "-" && call.terminal.isWatched && process.stdin.isTTY) {
      call.terminal.say("Reading plants from the terminal, one a line. Ctrl+D ends them.");
    }

    const importAll = async (store: PlantStore) => {
      const importer = new Importer(store, { batch, isStopping, concurrency });
      const progress = new Progress(call.terminal, () => ({
        count: importer.tally.stored + importer.tally.alreadyThere,
        share: source.share(),
      }));
      const listenNoMore = onStopSignal(() => importer.stop(), exitCodes.interrupted);
      try {
        const lines = readPlantLines(source.chunks(), format);
        const refuse = (line: number, fault: string) => {
          // It may quote the file.
          progress.say(`line ${line}: ${showSafely(fault)}`);
        };
        await importer.run(lines, refuse, source.close).finally(() => {
          progress.end();
          report(call, importer.tally, progress.elapsedMs);
        });
        return conclude(call, importer, isStopping);
      } finally {
        // Last: an echo of the signal that nobody heard would end it before all of that is said.
        listenNoMore();
      }
    };
    return withStore(call, importAll, patience);
  },
};

/** The exit code, and how to go on. */
function conclude({ terminal }: Call, importer: Importer, isStopping: boolean): number {
  if (importer.isInterrupted) {
    terminal.say("plantstore: Interrupted. Run it again to go on; nothing is doubled.");
    return exitCodes.interrupted;
  }
  if (importer.tally.refused === 0) return exitCodes.done;
  const wayOn = isStopping ? ", or pass over bad lines with --on-error continue" : "";
  terminal.say(`plantstore: Mend what was refused and run it again${wayOn}.`);
  return exitCodes.linesRefused;
}

function report({ terminal, flags }: Call, tally: Tally, elapsedMs: number): void {
  const { stored, alreadyThere, refused } = tally;
  if (flags.json === true || !terminal.isInteractive) terminal.out(`${JSON.stringify(tally)}\n`);
  const rate = renderRate(stored + alreadyThere, elapsedMs);
  terminal.say(
    `${stored.toLocaleString("en")} stored, ${alreadyThere.toLocaleString("en")} already there, ` +
      `${refused.toLocaleString("en")} refused, in ${renderDuration(elapsedMs)} (${rate}).`,
  );
}

/** A pipe has no size. Fails with `not-found` if there is nothing to read. */
function openSource(path: string) {
  const descriptor = path === "-" ? 0 : openFile(path);
  const sizeBytes = fstatSync(descriptor).size;
  let stream: Readable | undefined;
  let isClosed = false;
  let wake = () => {};
  let readBytes = 0;
  return {
    share: () => (sizeBytes > 0 ? readBytes / sizeBytes : undefined),
    /** Ends the chunks, also while nothing comes. */
    close() {
      isClosed = true;
      stream?.destroy();
      wake();
    },
    async *chunks(): AsyncGenerator<Uint8Array> {
      stream = path === "-" ? process.stdin : createReadStream(path, { fd: descriptor });
      const iterator: AsyncIterator<Uint8Array> = stream[Symbol.asyncIterator]();
      // A stream has no end while a read of it is under way, as of a pipe that nobody writes to.
      const take = () =>
        new Promise<IteratorResult<Uint8Array>>((resolve, reject) => {
          wake = () => resolve({ done: true, value: undefined });
          iterator.next().then(resolve, reject);
        });
      try {
        while (!isClosed) {
          const { value: chunk, done } = await take();
          if (done) return;
          yield chunk;
          // Now its lines have been taken.
          readBytes += chunk.length;
        }
      } catch (error) {
        if (!isClosed) throw explainFile("read", path, error);
      }
    },
  };
}

function openFile(path: string): number {
  try {
    return openSync(path, "r");
  } catch (error) {
    throw explainFile("read", path, error);
  }
}

function readChoice<Choice extends string>(
  call: Call,
  flag: string,
  choices: readonly [Choice, ...Choice[]],
): Choice {
  const text = textFlag(call, flag) ?? choices[0];
  const choice = choices.find((each) => each === text);
  if (choice !== undefined) return choice;
  throw new PlantStoreError(
    "invalid-request",
    `--${flag} must be ${choices.join(" or ")}, not "${text}".`,
  );
}

function readConcurrency(text = String(concurrencyDefault)): number {
  const value = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (value >= 1 && value <= concurrencyMax) return value;
  throw new PlantStoreError(
    "invalid-request",
    `--concurrency must be a number from 1 to ${concurrencyMax}, not "${text}".`,
  );
}
