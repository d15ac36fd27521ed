/**
 * Records the calls of a process that change files in a folder, and makes calls fail. For programs
 * of this runtime on Linux. It sees all calls of SQLite; of `node:fs` it sees `mkdir`, `rename`,
 * `unlink`, and on the main thread those that node-calls.ts redirects.
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
  /** `short`: half of the bytes are written, and the call returns that. */
  readonly error: "EIO" | "ENOSPC" | "EROFS" | "EDQUOT" | "EMFILE" | "short";
  /** Which of the calls of these kinds, counted from 1; by default all. */
  readonly first?: number;
  readonly last?: number;
}

export interface Rule {
  /** How many calls there were of these kinds, and how many of them failed. */
  counts(): { matched: number; failed: number };
}

/** As in `struct control` and `struct rule`: numbers of 64 bits. */
const controlBytes = 4_096;
const ruleBytes = 128;
const rulesMax = controlBytes / ruleBytes - 1;
const [kindsAt, errorAt, firstAt, lastAt, matchedAt, failedAt] = [0, 8, 16, 24, 32, 40];

/** As `ar` writes it. */
const emptyLibrary = "!<arch>\n";

export class InterposedIo {
  /** For the environment of the process. There may be several, one after the other. */
  readonly variables: Readonly<Record<string, string>>;
  readonly #equipment = makeTemporaryFolder();
  readonly #logPath = join(this.#equipment.path, "calls.log");
  readonly #log = openSync(this.#logPath, "a");
  readonly #control: DataView;

  /** The folder must exist. */
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

  /** The recording so far, for `parseCalls`. */
  log(): Buffer {
    return readFileSync(this.#logPath);
  }

  /** All calls so far. */
  calls(): Call[] {
    return parseCalls(this.log());
  }

  /** Records a note: after calls whose effects the test has seen, before those it causes. */
  note(text: string): void {
    this.pretend({ kind: "note", data: Buffer.from(text) });
  }

  /** Records a call that nobody made. */
  pretend(call: Partial<Call> & Pick<Call, "kind">): void {
    writeSync(this.#log, packCall(call));
  }

  /** From now on, also in a running process. */
  fail(failing: Failing): Rule {
    const { first = 1, last = Number.MAX_SAFE_INTEGER, error } = failing;
    const count = Number(this.#control.getBigUint64(0, true));
    if (count === rulesMax) throw new Error("There are too many rules.");
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
    // Last, because the process may read it at any moment.
    this.#control.setBigUint64(0, BigInt(count + 1), true);
    const read = (at: number) => Number(this.#control.getBigUint64(base + at, true));
    return { counts: () => ({ matched: read(matchedAt), failed: read(failedAt) }) };
  }

  /** Removes all rules. */
  heal(): void {
    this.#control.setBigUint64(0, 0n, true);
  }

  [Symbol.dispose](): void {
    closeSync(this.#log);
    this.#equipment[Symbol.dispose]();
  }
}
