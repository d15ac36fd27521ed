/**
 * `plantstore backup`: everything that a store keeps at one moment, into a file that proves itself
 * whole.
 */
import { closeSync, existsSync, openSync, statSync } from "node:fs";
import { readLimits, readSetting, storageSettings } from "../config.ts";
import { PlantStoreError } from "../domain/errors.ts";
import { explainFile } from "../domain/file-failure.ts";
import { removeLeftover, renameDurably } from "../storage/durable-file.ts";
import { copySnapshot, inspectFile, isSameDatabase } from "../storage/open.ts";
import { type Description, readDescription, seal } from "../storage/sealed-file.ts";
import { version } from "../version.ts";
import type { Call, Command } from "./command.ts";
import { shown, stoppable } from "./long-work.ts";
import { exitCodes } from "./service-client.ts";
import { locateTarget } from "./target-file.ts";

export const backupCommand: Command = {
  name: "backup",
  summary: "Write everything that a store keeps to a file, while it is served.",
  words: ["FILE"],
  flags: {
    force: { help: "replace FILE, if it is an older backup" },
    json: { help: "as JSON, also at a terminal" },
  },
  settings: storageSettings,
  examples: [
    "plantstore backup plants.backup",
    'plantstore backup "/backups/plants-$(date +%F).backup" --database /var/lib/plantstore/plants.db',
  ],
  run(call) {
    const [path = ""] = call.words;
    const database = readSetting("database", call.flags);
    const target = checkTarget(path, database, call.flags.force === true);
    return stoppable(call.terminal, "Nothing was written.", async (signal) => {
      const description = await backUp(call, database, target, signal);
      show(call, path, description);
      return exitCodes.done;
    });
  },
};

/** The file itself, behind any symbolic link. Only an older backup is ever replaced. */
function checkTarget(path: string, database: string, mayReplace: boolean): string {
  const target = locateTarget(path);
  const [, beside] = /^(.+)-(?:wal|shm|journal|serving)$/.exec(target) ?? [];
  if (beside !== undefined && isSameDatabase(beside, database)) {
    throw new PlantStoreError("invalid-request", `${path} is a file of the database.`);
  }
  if (!existsSync(target)) return target;
  if (isSameDatabase(path, database)) {
    throw new PlantStoreError("invalid-request", `${path} is the database itself.`);
  }
  if (!isBackup(path)) {
    throw new PlantStoreError("conflict", `${path} is there already, and is no backup.`);
  }
  if (!mayReplace) {
    throw new PlantStoreError("conflict", `${path} is there already. With --force it is replaced.`);
  }
  return target;
}

function isBackup(path: string): boolean {
  try {
    return statSync(path).isFile() && readDescription(path) !== undefined;
  } catch {
    return false;
  }
}

/**
 * The file has its name only once it is whole, checked and on the disk; until then an older one
 * stays.
 */
async function backUp(
  { flags, terminal }: Call,
  database: string,
  target: string,
  signal: AbortSignal,
): Promise<Description> {
  const partial = `${target}.${crypto.randomUUID()}.partial`;
  const madeAt = new Date().toISOString();
  makePrivate(target, partial);
  try {
    const contents = await copySnapshot(database, partial, readLimits(flags), async (snapshot) => {
      await shown(terminal, (tally) => snapshot.copy(tally, signal));
      return shown(terminal, (tally) => snapshot.compare(tally, signal));
    });
    await inspectFile(partial, contents);
    const description = { madeAt, version, ...contents };
    await seal(partial, description, signal);
    if (readDescription(partial) === undefined) throw new Error("The backup cannot be read again.");
    // Once more: it may have taken hours, and something else may have come there meanwhile.
    checkTarget(target, database, flags.force === true);
    renameDurably(partial, target);
    return description;
  } catch (error) {
    throw explain(target, error);
  } finally {
    for (const suffix of ["", "-wal", "-shm", "-journal"]) removeLeftover(partial + suffix);
  }
}

/** It holds everyone's plants, and the hashes of tokens. */
function makePrivate(target: string, partial: string): void {
  try {
    closeSync(openSync(partial, "wx", 0o600));
  } catch (error) {
    throw explainFile("write", target, error);
  }
}

function explain(target: string, error: unknown): unknown {
  if (error instanceof PlantStoreError && error.code === "storage-full") {
    // The store is only read.
    const message = `Cannot write ${target}: there is no room for it.`;
    return new PlantStoreError(error.code, message, { cause: error });
  }
  const isOfSystem = error instanceof Error && "syscall" in error;
  return isOfSystem ? explainFile("write", target, error) : error;
}

function show({ flags, terminal }: Call, path: string, description: Description): void {
  const { madeAt, plants, tokens } = description;
  const text =
    terminal.isInteractive && flags.json !== true
      ? `${path}: ${describe(description)}.`
      : JSON.stringify({ file: path, madeAt, plants, tokens, bytes: statSync(path).size });
  terminal.out(`${text}\n`);
}

/** In words that follow "FILE: " or "Restored ". */
export function describe({ plants, tokens, madeAt }: Description): string {
  return `${count(plants, "plant")} and ${count(tokens, "token")}, as of ${madeAt}`;
}

function count(number: number, word: string): string {
  return `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
}
