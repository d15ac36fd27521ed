/** `plantstore restore`: everything from a backup into a store that nobody serves. */
import { closeSync, fsyncSync, openSync, writeSync } from "node:fs";
import { readLimits, readSetting, storageSettings } from "../config.ts";
import { PlantStoreError } from "../domain/errors.ts";
import { explainFile } from "../domain/file-failure.ts";
import { inspectFile, isSameDatabase, maskAddress, restoreTo } from "../storage/open.ts";
import { type Description, unseal } from "../storage/sealed-file.ts";
import { describe } from "./backup-command.ts";
import type { Call, Command, Terminal } from "./command.ts";
import { shown, stoppable } from "./long-work.ts";
import { exitCodes } from "./service-client.ts";

export const restoreCommand: Command = {
  name: "restore",
  summary: "Put a backup in the place of a store that is not being served.",
  words: ["FILE"],
  flags: {
    force: { help: "replace a SQLite file that is there; it is kept under another name" },
    "dry-run": { help: "only check that FILE is a whole backup, and say what it holds" },
    json: { help: "as JSON, also at a terminal" },
  },
  settings: storageSettings,
  examples: [
    "plantstore restore plants.backup",
    "plantstore restore plants.backup --dry-run",
    "PLANTSTORE_DATABASE=postgres://plants:secret@db1/plants plantstore restore plants.backup",
  ],
  run(call) {
    const [path = ""] = call.words;
    return stoppable(call.terminal, "Nothing was changed.", async (signal) => {
      if (call.flags["dry-run"] === true) {
        show(call, `${path} holds`, await read(path, call.terminal, signal, () => {}));
      } else await restore(call, path, signal);
      return exitCodes.done;
    });
  },
};

async function restore(call: Call, path: string, signal: AbortSignal): Promise<void> {
  const { flags, terminal } = call;
  const database = readSetting("database", flags);
  if (isSameDatabase(path, database)) {
    throw new PlantStoreError("invalid-request", `${path} cannot be restored into itself.`);
  }
  const options = { mayReplace: flags.force === true, limits: readLimits(flags) };
  const restored = await restoreTo(database, options, async ({ unpackedPath, fill }) => {
    const description = await unpack(path, unpackedPath, terminal, signal);
    return { description, kept: await shown(terminal, (tally) => fill(tally, signal)) };
  });
  // Behind its end: all may end here, because nobody reads it, and what was unpacked would stay.
  show(call, `Restored to ${maskAddress(database)}:`, restored.description, restored.kept);
}

/** Makes a file of the database in a backup, and checks both, bit by bit. */
async function unpack(
  path: string,
  unpackedPath: string,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<Description> {
  const writing = <Result>(work: () => Result): Result => {
    try {
      return work();
    } catch (error) {
      throw explainFile("write", unpackedPath, error);
    }
  };
  const descriptor = writing(() => openSync(unpackedPath, "wx", 0o600));
  const write = (bytes: Uint8Array) => {
    for (let rest = bytes; rest.length > 0; ) rest = rest.subarray(writeSync(descriptor, rest));
  };
  try {
    const description = await read(path, terminal, signal, (bytes) => writing(() => write(bytes)));
    writing(() => fsyncSync(descriptor));
    await inspectFile(unpackedPath, description).catch((error) => refuse(path, error));
    return description;
  } finally {
    closeSync(descriptor);
  }
}

function read(
  path: string,
  terminal: Terminal,
  signal: AbortSignal,
  take: (bytes: Uint8Array) => void,
): Promise<Description> {
  return shown(terminal, (tally) => unseal(path, take, tally, signal)).catch((error) =>
    refuse(path, error),
  );
}

function refuse(path: string, error: unknown): never {
  if (error instanceof PlantStoreError && error.code === "unavailable") {
    const message = `Cannot restore ${path}: ${error.message.replace(/\.$/, "")}.`;
    throw new PlantStoreError("unavailable", message, { cause: error });
  }
  throw error instanceof Error && "syscall" in error ? explainFile("read", path, error) : error;
}

function show(call: Call, title: string, description: Description, kept?: string): void {
  const { flags, terminal } = call;
  const { madeAt, plants, tokens } = description;
  if (terminal.isInteractive && flags.json !== true) {
    terminal.out(`${title} ${describe(description)}.\n`);
    if (kept !== undefined) terminal.out(`What was there before is kept as ${kept}.\n`);
  } else terminal.out(`${JSON.stringify({ madeAt, plants, tokens, kept })}\n`);
}
