/** `plantstore backup|restore|copy`: everything in a SQLite store, to a file or to PostgreSQL. */

import { readLimits, readSetting } from "../shared/config.ts";
import { mapFileError } from "../shared/system-errors.ts";
import { renderCount } from "../shared/text.ts";
import { backUpFile, copyToPostgres, isFile, maskAddress, restoreFile } from "../storage/open.ts";
import type { Contents } from "../storage/storage.ts";
import { usageError } from "./cli-error.ts";
import { type Call, type Command, isForPeople, jsonFlag, printResult } from "./command.ts";
import { cancellable } from "./stop-signals.ts";

export const backupCommand: Command = {
  name: "backup",
  summary: "Write everything in a SQLite store to a new file, while it is served.",
  words: ["FILE"],
  flags: { json: jsonFlag },
  settings: ["database"],
  examples: [
    "plantstore backup plants-backup.db",
    'plantstore backup "/backups/plants-$(date +%F).db" --database /var/lib/plantstore/plants.db',
  ],
  async run(call) {
    const [path = ""] = call.words;
    const database = readFile(call, "pg_dump");
    if (path === "-") throw usageError("FILE must be the path of a new file.");
    try {
      await cancellable("Nothing was written.", async (signal) => {
        const contents = await backUpFile(database, path, signal);
        show(call, `${path}:`, { file: path, ...contents });
      });
    } catch (error) {
      throw mapFileError("write", path, error);
    }
  },
};

export const restoreCommand: Command = {
  name: "restore",
  summary: "Replace a stopped SQLite store with a backup, and keep the old file.",
  words: ["FILE"],
  flags: { json: jsonFlag },
  settings: ["database"],
  examples: [
    "plantstore restore plants-backup.db",
    "plantstore restore /backups/plants-2026-07-01.db --database /var/lib/plantstore/plants.db",
  ],
  async run(call) {
    const [path = ""] = call.words;
    const database = readFile(call, "pg_restore");
    await cancellable("Nothing was changed.", async (signal) => {
      const restored = await restoreFile(database, path, signal);
      show(call, `Restored ${database}:`, restored);
      const { kept } = restored;
      if (isForPeople(call) && kept) call.terminal.out(`The old file is kept as ${kept}.\n`);
    });
  },
};

export const copyCommand: Command = {
  name: "copy",
  summary: "Copy everything in a stopped SQLite store to an empty PostgreSQL database.",
  words: ["FILE", "URL"],
  flags: { json: jsonFlag },
  settings: ["databaseConnectTimeoutMs", "databaseStatementTimeoutMs"],
  variables: { PGPASSWORD: "the password for PostgreSQL, unless it is in the URL" },
  examples: ["plantstore copy data/plants.db postgres://plants@db1/plants"],
  async run(call) {
    const [file = "", url = ""] = call.words;
    if (!isFile(file)) throw usageError("FILE must be the path of a SQLite store.");
    // Not shown, because it may hold a password.
    if (isFile(url)) throw usageError("URL must be such as postgres://user@host/database.");
    await cancellable("Nothing was copied.", async (signal) => {
      const contents = await copyToPostgres(
        file,
        url,
        readLimits(call.flags, call.terminal.env),
        signal,
      );
      show(call, `Copied to ${maskAddress(url)}:`, contents);
    });
  },
};

/** The path of the store. */
function readFile({ flags, terminal }: Call, tool: string): string {
  const database = readSetting("database", flags, terminal.env);
  if (isFile(database)) return database;
  throw usageError(`This command is for SQLite. For PostgreSQL, use ${tool}: docs/postgresql.md.`);
}

function show(call: Call, title: string, result: Contents & { file?: string }): void {
  const { plants, tokens } = result;
  const text = `${title} ${renderCount(plants, "plant")} and ${renderCount(tokens, "token")}.`;
  printResult(call, text, JSON.stringify(result));
}
