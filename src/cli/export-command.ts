/** `plantstore export`: all plants of a garden into a file or to standard output. */
import {
  closeSync,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  openSync,
  rmSync,
  statSync,
} from "node:fs";
import type { Plant, PlantStore } from "../client/plant-store.ts";
import { renameDurably } from "../storage/durable-file.ts";
import { CliError, exitCodes, fileError } from "./cli-error.ts";
import { type Call, type Command, textFlag } from "./command.ts";
import { stoppable } from "./long-work.ts";
import { writeResult } from "./output.ts";
import { chooseFormat, type Format, formatFlag, PlantWriter } from "./plant-file.ts";
import { Progress, renderDuration, renderRate } from "./progress.ts";
import { variables, withStore } from "./service-client.ts";
import { isDatabase, locateTarget } from "./target-file.ts";

const patience = { retries: 20 };

export const exportCommand: Command = {
  name: "export",
  summary: "Write all plants, with their ids, to a file or to standard output.",
  words: ["[FILE|-]"],
  flags: { format: formatFlag },
  settings: ["url"],
  variables,
  examples: [
    "plantstore export plants.csv",
    "plantstore export --format csv | gzip > plants.csv.gz",
  ],
  run(call) {
    const path = call.words[0] ?? "-";
    const format = chooseFormat(textFlag(call, "format"), path);
    const exportAll = async (store: PlantStore, signal?: AbortSignal) => {
      const pages = store.pages({ signal });
      if (path === "-") await exportTo(call, pages, format, (text) => call.terminal.out(text));
      else {
        await writeWhole(path, (descriptor) =>
          exportTo(call, pages, format, (text) => writeResult(descriptor, text, path)),
        );
      }
      return exitCodes.done;
    };
    const work = (signal?: AbortSignal) =>
      withStore(call, (store) => exportAll(store, signal), patience);
    // Of a pipe there is nothing to clean up, and a signal ends it also while nobody reads.
    if (!isPlainFile(path)) return work();
    return stoppable(call.terminal, `${path} is as it was before.`, work);
  },
};

async function exportTo(
  { terminal }: Call,
  pages: AsyncIterable<readonly Plant[]>,
  format: Format,
  write: (text: string) => void,
): Promise<void> {
  let count = 0;
  const writer = new PlantWriter(format);
  const progress = new Progress(terminal, () => ({ count }));
  try {
    write(writer.header());
    for await (const page of pages) {
      write(writer.page(page));
      count += page.length;
    }
    write(writer.footer());
  } finally {
    progress.end();
  }
  const { elapsedMs } = progress;
  const plants = `${count.toLocaleString("en")} plants`;
  terminal.say(`${plants}, in ${renderDuration(elapsedMs)} (${renderRate(count, elapsedMs)}).`);
}

/** Also where there is none yet. */
function isPlainFile(path: string): boolean {
  try {
    return path !== "-" && statSync(path, { throwIfNoEntry: false })?.isFile() !== false;
  } catch {
    // It is told when it is opened.
    return true;
  }
}

/**
 * The file has its name only once it is whole; until then an older one stays. What is no plain
 * file, such as a pipe or a device, is written to as it is and never replaced.
 */
async function writeWhole(path: string, write: (descriptor: number) => Promise<void>) {
  const { descriptor, target, partial } = openTarget(path);
  try {
    await write(descriptor);
    if (partial === undefined) closeSync(descriptor);
    else giveName(descriptor, partial, target);
  } catch (error) {
    if (partial !== undefined) rmSync(partial, { force: true });
    throw error;
  }
}

/** Synced first: else a power cut could leave it empty, in the place of an older file. */
function giveName(descriptor: number, partial: string, target: string): void {
  try {
    giveRightsOf(target, descriptor);
    fsyncSync(descriptor);
    closeSync(descriptor);
    renameDurably(partial, target);
  } catch (error) {
    throw fileError("write", target, error);
  }
}

/** Who could read and write the older file still can, whatever the mask takes from new ones. */
function giveRightsOf(target: string, descriptor: number): void {
  const older = statSync(target, { throwIfNoEntry: false });
  if (!older?.isFile()) return;
  const own = fstatSync(descriptor);
  try {
    if (own.uid !== older.uid || own.gid !== older.gid) {
      fchownSync(descriptor, older.uid, older.gid);
    }
  } catch {
    // Only root may give it away, and others only to a group of theirs.
  }
  if (own.mode !== older.mode) fchmodSync(descriptor, older.mode & 0o777);
}

function openTarget(path: string) {
  const target = locateTarget(path);
  if (isPlainFile(target) && isDatabase(target)) {
    // Meant for `backup`, or a slip: either way plants of others would go with it.
    throw new CliError(`${path} is a database or a backup. An export doesn't replace those.`);
  }
  try {
    const older = statSync(target, { throwIfNoEntry: false });
    if (older?.isFile() === false) return { descriptor: openSync(path, "w"), target };
    // A name that nobody can have put there before, and readable by its owner only, as the database
    // is.
    const partial = `${target}.${crypto.randomUUID()}.partial`;
    return { descriptor: openSync(partial, "wx", 0o600), target, partial };
  } catch (error) {
    throw fileError("write", path, error);
  }
}
