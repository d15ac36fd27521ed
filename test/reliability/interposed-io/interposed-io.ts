/**
 * Sees every call of a process that changes the files below a folder, and lets calls fail. It is
 * for programs of this runtime on Linux. Of SQLite it sees all; of `node:fs` what node-calls.ts
 * leads here, on the main thread, and `mkdir`, `rename` and `unlink`.
 */
import { closeSync, openSync, readFileSync, realpathSync, writeFileSync, writeSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { makeTemporaryFolder } from "../../temporary-folder.ts";
import { type Call, type Kind, kinds, packCall, parseCalls } from "./call-log.ts";

export const isInterposable =
  process.platform === "linux" && (process.arch === "x64" || process.arch === "arm64");

export interface Failing {
  readonly kinds: readonly Exclude<Kind, "note" | "synced">[];
  /** `short`: half of the bytes are written, and that is what is answered. */
  readonly error: "EIO" | "ENOSPC" | "EROFS" | "EDQUOT" | "EMFILE" | "short";
  /** Only files whose path ends so, such as `-wal`; all unless given. */
  readonly suffix?: string;
  /** Which of the calls that match, counted from 1: from the first on unless given. */
  readonly first?: number;
  /** To the end unless given. */
  readonly last?: number;
}

export interface Rule {
  /** How many calls matched so far, and how many of them were made to fail. */
  counts(): { matched: number; failed: number };
}

/** As `struct control` and `struct rule` lay it out, in numbers of 64 bits. */
const controlBytes = 4_096;
const ruleBytes = 128;
const rulesMax = controlBytes / ruleBytes - 1;
const suffixBytesMax = 79;
const [kindsAt, errorAt, firstAt, lastAt, matchedAt, failedAt, suffixAt] = [
  0, 8, 16, 24, 32, 40, 48,
];

/** As the archiver writes it. */
const emptyLibrary = "!<arch>\n";

export class InterposedIo {
  /** What a process needs in its environment. There may be several, one after the other. */
  readonly variables: Readonly<Record<string, string>>;
  readonly #equipment = makeTemporaryFolder();
  readonly #logPath = join(this.#equipment.path, "calls.log");
  readonly #log = openSync(this.#logPath, "a");
  readonly #control: DataView;

  /** Watches a folder that is there, and all that is or comes below it. */
  constructor(watched: string) {
    const control = join(this.#equipment.path, "control");
    writeFileSync(control, new Uint8Array(controlBytes));
    writeFileSync(join(this.#equipment.path, "libc.a"), emptyLibrary);
    this.#control = new DataView(Bun.mmap(control, { shared: true }).buffer);
    this.variables = {
      BUN_OPTIONS: `--preload ${join(import.meta.dir, "preload.ts")}`,
      INTERPOSED_FOLDER: realpathSync(watched),
      INTERPOSED_EQUIPMENT: this.#equipment.path,
    };
  }

  /** What was recorded so far, as `parseCalls` takes it. */
  log(): Buffer {
    return readFileSync(this.#logPath);
  }

  /** All calls so far. One that was made to fail had no effect, but for what it says it wrote. */
  calls(): Call[] {
    return parseCalls(this.log());
  }

  /**
   * Stands among the calls: behind those whose answers the test has seen, before any that it
   * causes.
   */
  note(text: string): void {
    this.pretend({ kind: "note", data: Buffer.from(text) });
  }

  /** Has a call among the others that nobody made. */
  pretend(call: Partial<Call> & Pick<Call, "kind">): void {
    writeSync(this.#log, packCall(call));
  }

  /** From now on, at once, for the process that runs as well. */
  fail(failing: Failing): Rule {
    const { first = 1, last = Number.MAX_SAFE_INTEGER, suffix = "", error } = failing;
    const count = Number(this.#control.getBigUint64(0, true));
    if (count === rulesMax || suffix.length > suffixBytesMax) throw new Error("Too much to fail.");
    const base = (count + 1) * ruleBytes;
    const put = (at: number, value: number) =>
      this.#control.setBigUint64(base + at, BigInt(value), true);
    put(
      kindsAt,
      failing.kinds.reduce((bits, kind) => bits | (1 << kinds.indexOf(kind)), 0),
    );
    put(errorAt, error === "short" ? 0 : constants.errno[error]);
    put(firstAt, first);
    put(lastAt, last);
    put(matchedAt, 0);
    put(failedAt, 0);
    for (let index = 0; index <= suffixBytesMax; index++) {
      this.#control.setUint8(base + suffixAt + index, suffix.charCodeAt(index) || 0);
    }
    // Last, because the process may look at any moment.
    this.#control.setBigUint64(0, BigInt(count + 1), true);
    const read = (at: number) => Number(this.#control.getBigUint64(base + at, true));
    return { counts: () => ({ matched: read(matchedAt), failed: read(failedAt) }) };
  }

  /** Nothing fails any more. */
  heal(): void {
    this.#control.setBigUint64(0, 0n, true);
  }

  [Symbol.dispose](): void {
    closeSync(this.#log);
    this.#equipment[Symbol.dispose]();
  }
}
