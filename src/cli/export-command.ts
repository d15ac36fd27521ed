/** `plantstore export`: all plants of a garden to a file or to standard output. */
import { closeSync, fchmodSync, fchownSync, fsyncSync, openSync, rmSync, statSync } from "node:fs";
import type { Plant, PlantStore } from "../client/plant-store.ts";
import { isBackup } from "../storage/backup.ts";
import { renameDurably } from "../storage/durable-file.ts";
import { CliError, exitCodes, fileError } from "./cli-error.ts";
import { type Call, type Command, textFlag } from "./command.ts";
import { cancellable } from "./long-work.ts";
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
        await writeFile(path, (descriptor) =>
          exportTo(call, pages, format, (text) => writeResult(descriptor, text, path)),
        );
      }
      return exitCodes.done;
    };
    const work = (signal?: AbortSignal) =>
      withStore(call, (store) => exportAll(store, signal), patience);
    // A pipe needs no cleaning up, and a signal must end the process even while nobody reads.
    if (path === "-" || !isRegularFile(path)) return work();
    return cancellable(call.terminal, `${path} was not changed.`, work);
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

/** Also if it doesn't exist yet. */
function isRegularFile(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isFile() !== false;
  } catch {
    // Opening it reports why.
    return true;
  }
}

/**
 * Replaces a regular file only once the new one is complete. Anything else, such as a pipe or a
 * device, is written to directly.
 */
async function writeFile(path: string, write: (descriptor: number) => Promise<void>) {
  const target = locateTarget(path);
  if (!isRegularFile(target)) {
    const descriptor = open(target, "w");
    await write(descriptor);
    return closeSync(descriptor);
  }
  // It may have been meant for `backup`; either way everyone's plants would be gone.
  if (isDatabase(target) || isBackup(target)) {
    throw new CliError(`${path} is a database or a backup. An export doesn't replace those.`);
  }
  const partial = `${target}.${crypto.randomUUID()}.partial`;
  const descriptor = open(partial, "wx", path);
  try {
    await write(descriptor);
    replace(target, partial, descriptor);
  } catch (error) {
    rmSync(partial, { force: true });
    throw error;
  }
}

/** A new file is private, like the database. */
function open(path: string, flags: string, shownPath = path): number {
  try {
    return openSync(path, flags, 0o600);
  } catch (error) {
    throw fileError("write", shownPath, error);
  }
}

/** Synced first: a power cut must not leave an empty file in place of the older one. */
function replace(target: string, partial: string, descriptor: number): void {
  try {
    copyPermissions(target, descriptor);
    fsyncSync(descriptor);
    closeSync(descriptor);
    renameDurably(partial, target);
  } catch (error) {
    throw fileError("write", target, error);
  }
}

/** Whoever could read and write the older file still can. */
function copyPermissions(from: string, descriptor: number): void {
  const older = statSync(from, { throwIfNoEntry: false });
  if (!older?.isFile()) return;
  try {
    fchownSync(descriptor, older.uid, older.gid);
  } catch {
    // Only root may give a file away.
  }
  fchmodSync(descriptor, older.mode & 0o777);
}
