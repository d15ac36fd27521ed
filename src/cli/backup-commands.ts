/** `plantstore backup|restore|copy`: everything in a store, to a file and back. */
import { existsSync, realpathSync, statSync } from "node:fs";
import { readLimits, readSetting, storageSettings } from "../config.ts";
import {
  type BackupWork,
  checkBackup,
  copyStore,
  isBackup,
  restoreBackup,
  streamBackup,
  writeBackup,
} from "../storage/backup.ts";
import { isSameFile, maskAddress } from "../storage/open.ts";
import { renderCount } from "../wording.ts";
import { CliError, usageError } from "./cli-error.ts";
import { type Call, type Command, isForPeople, jsonFlag } from "./command.ts";
import { cancellable } from "./stop-signals.ts";
import { renderTime, unreadExitCode, writeBytes } from "./terminal.ts";

const replaceFlag = { help: "replace a SQLite store that exists; it is kept under another name" };

export const backupCommand: Command = {
  name: "backup",
  summary: "Write everything in a store to a file or to standard output (-), while it is served.",
  words: ["FILE|-"],
  flags: {
    force: { help: "replace FILE, if it is an older backup" },
    json: jsonFlag,
  },
  settings: storageSettings,
  examples: [
    "plantstore backup plants.backup",
    'plantstore backup "/backups/plants-$(date +%F).backup" --database /var/lib/plantstore/plants.db',
    "plantstore backup - > plants.backup",
  ],
  async run(call) {
    const [path = ""] = call.words;
    const database = readSetting("database", call.flags, call.terminal.env);
    if (path === "-") return backUpToStdout(call, database);
    const target = chooseTarget(path, database, call.flags.force === true);
    await cancellable("Nothing was written.", async (signal) => {
      const { madeAt, plants, tokens } = await writeBackup(database, target, toWork(call, signal));
      const bytes = statSync(target).size;
      show(call, `${path}:`, { file: path, madeAt, plants, tokens, bytes });
    });
  },
};

/** What it did goes to standard error, because the backup goes to standard output. */
async function backUpToStdout(call: Call, database: string): Promise<number | undefined> {
  const { flags, terminal } = call;
  if (flags.force === true) throw usageError("--force is for a file, not for standard output.");
  if (terminal.isStdoutTty) {
    throw usageError("A backup isn't text. Redirect it: plantstore backup - > plants.backup");
  }
  try {
    await cancellable("What was written is incomplete.", async (signal) => {
      const { madeAt, ...contents } = await streamBackup(
        database,
        writeBytes,
        toWork(call, signal),
      );
      const summary = { file: "-", madeAt, ...contents };
      terminal.say(
        flags.json === true ? JSON.stringify(summary) : describe("Standard output:", summary),
      );
    });
  } catch (error) {
    const { code } = ((error as Error).cause ?? {}) as { code?: string };
    if (code === "EPIPE") return unreadExitCode;
    throw error;
  }
}

/** Follows a link, so that its target is replaced, not the link. */
function chooseTarget(path: string, database: string, mayReplace: boolean): string {
  if (!existsSync(path)) return path;
  if (isSameFile(path, database)) throw usageError(`${path} is the database itself.`);
  if (!isBackup(path)) throw new CliError(`${path} exists already, and is not a backup.`);
  if (!mayReplace) throw new CliError(`${path} exists already. With --force it is replaced.`);
  return realpathSync(path);
}

export const restoreCommand: Command = {
  name: "restore",
  summary: "Restore a stopped store from a backup.",
  words: ["FILE"],
  flags: {
    force: replaceFlag,
    "dry-run": { help: "only check that FILE could be restored, and say what it holds" },
    json: jsonFlag,
  },
  settings: storageSettings,
  examples: [
    "plantstore restore plants.backup",
    "plantstore restore plants.backup --force",
    "plantstore restore plants.backup --dry-run",
    "PLANTSTORE_DATABASE=postgres://plants:secret@db1/plants plantstore restore plants.backup",
  ],
  async run(call) {
    const [path = ""] = call.words;
    if (path === "-") {
      throw usageError("A backup is restored from a file. Write standard input to one first.");
    }
    await cancellable("Nothing was changed.", async (signal) => {
      const work = toWork(call, signal);
      if (call.flags["dry-run"] === true) {
        const { madeAt, plants, tokens } = await checkBackup(path, work);
        show(call, `${path} holds`, { madeAt, plants, tokens });
        return;
      }
      const database = readSetting("database", call.flags, call.terminal.env);
      if (isSameFile(path, database)) {
        throw usageError(`${path} cannot be restored into itself.`);
      }
      const mayReplace = call.flags.force === true;
      const { madeAt, plants, tokens, kept } = await restoreBackup(path, database, {
        ...work,
        mayReplace,
      });
      show(call, `Restored ${maskAddress(database)}:`, { madeAt, plants, tokens, kept });
    });
  },
};

export const copyCommand: Command = {
  name: "copy",
  summary: "Copy everything (plants, tokens, idempotency keys, events) to another database.",
  words: [],
  flags: { force: replaceFlag, json: jsonFlag },
  settings: ["copyFrom", "copyTo", "databaseConnectTimeoutMs", "databaseStatementTimeoutMs"],
  examples: [
    "plantstore copy --from data/plants.db --to postgres://plants@db1/plants",
    "PLANTSTORE_COPY_FROM=postgres://plants:secret@db1/plants plantstore copy --to plants.db",
  ],
  async run(call) {
    const from = readSetting("copyFrom", call.flags, call.terminal.env);
    const to = readSetting("copyTo", call.flags, call.terminal.env);
    if (isSameFile(from, to)) throw usageError("--from and --to are the same file.");
    await cancellable("Nothing was changed.", async (signal) => {
      const mayReplace = call.flags.force === true;
      const options = { ...toWork(call, signal), mayReplace };
      const { plants, tokens, kept } = await copyStore(from, to, options);
      show(call, `Copied to ${maskAddress(to)}:`, { plants, tokens, kept });
    });
  },
};

function toWork({ flags, terminal }: Call, signal: AbortSignal): BackupWork {
  return {
    limits: readLimits(flags, terminal.env),
    signal,
    onPhase(phase) {
      if (terminal.isStderrTty) terminal.say(`${phase} …`);
    },
  };
}

/** What a command did, as it is printed. */
interface Summary {
  readonly file?: string;
  readonly plants: number;
  readonly tokens: number;
  readonly madeAt?: string;
  /** The new name of the file that was replaced. */
  readonly kept?: string | undefined;
  readonly bytes?: number;
}

function show(call: Call, title: string, summary: Summary): void {
  if (!isForPeople(call)) {
    call.terminal.out(`${JSON.stringify(summary)}\n`);
    return;
  }
  call.terminal.out(`${describe(title, summary)}\n`);
  const { kept } = summary;
  if (kept !== undefined) call.terminal.out(`The old file is kept as ${kept}.\n`);
}

function describe(title: string, { plants, tokens, madeAt }: Summary): string {
  const contents = `${renderCount(plants, "plant")} and ${renderCount(tokens, "token")}`;
  const time = madeAt === undefined ? "" : `, as of ${renderTime(Date.parse(madeAt))}`;
  return `${title} ${contents}${time}.`;
}
