/**
 * Records the calls of a process that change files in a folder, and makes calls fail. For programs
 * of this runtime on Linux. It sees all calls of SQLite; of `node:fs` it sees `mkdir`, `rename`,
 * `link`, `unlink`, and on the main thread `openSync` and `fsyncSync`.
 */
import { closeSync, openSync, readFileSync, realpathSync, writeFileSync, writeSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";

export const isInterposable =
  process.platform === "linux" && (process.arch === "x64" || process.arch === "arm64");

/** In the order of `enum kind` in interposer.c; the last one is for notes of the test. */
const kinds = [
  ...(["open", "read", "write", "truncate", "sync", "synced"] as const),
  ...(["unlink", "rename", "link", "make folder", "note"] as const),
];
type Kind = (typeof kinds)[number];

export interface Call {
  readonly kind: Kind;
  /** The process and its descriptor. */
  readonly descriptor: string;
  /** The flags of `open`, the offset of `write`, the size of `truncate`. */
  readonly at: number;
  /** Its errno; 0 if it succeeded. */
  readonly error: number;
  /** The bytes written, or paths from the folder on; for `rename` and `link` two, a zero byte between them. */
  readonly data: Buffer;
}

export interface Failing {
  readonly kinds: readonly Exclude<Kind, "note" | "synced">[];
  readonly error: "EIO" | "ENOSPC" | "EMFILE" | "EPERM";
  /** Which of the calls of these kinds, counted from 1; by default all. */
  readonly first?: number;
  readonly last?: number;
  /** The first of them writes half of its bytes instead, and returns that. */
  readonly isHalved?: boolean;
}

/** As in `struct record`. */
const headBytes = 40;
/** As in `struct rule`: numbers of 64 bits. */
const ruleNumbers = 7;
/** As `ar` writes it. */
const emptyLibrary = "!<arch>\n";

export class InterposedIo {
  /** For the environment of the process. There may be several, one after the other. */
  readonly variables: Readonly<Record<string, string>>;
  readonly #equipment = makeTemporaryFolder();
  readonly #logPath = join(this.#equipment.path, "calls.log");
  readonly #log = openSync(this.#logPath, "a");
  readonly #rule: BigUint64Array;

  /** The folder must exist. */
  constructor(watched: string) {
    const rule = join(this.#equipment.path, "rule");
    writeFileSync(rule, new BigUint64Array(ruleNumbers));
    writeFileSync(join(this.#equipment.path, "libc.a"), emptyLibrary);
    this.#rule = new BigUint64Array(Bun.mmap(rule, { shared: true }).buffer, 0, ruleNumbers);
    this.variables = {
      BUN_OPTIONS: `--preload ${join(import.meta.dir, "preload.ts")}`,
      INTERPOSED_FOLDER: realpathSync(watched),
      INTERPOSED_EQUIPMENT: this.#equipment.path,
    };
  }

  /** In their order. The last record may be incomplete, and is left out then. */
  calls(): Call[] {
    const log = readFileSync(this.#logPath);
    const calls: Call[] = [];
    for (let from = 0; from + headBytes <= log.length; ) {
      const end = from + log.readUInt32LE(from);
      if (end > log.length) break;
      const read = (index: number) => Number(log.readBigInt64LE(from + 8 + 8 * index));
      calls.push({
        kind: kinds[log.readUInt32LE(from + 4)] as Kind,
        descriptor: `${read(0)} ${read(1)}`,
        at: read(2),
        error: read(3),
        data: log.subarray(from + headBytes, end),
      });
      from = end;
    }
    return calls;
  }

  /** Records a note: after calls whose effects the test has seen, before those it causes. */
  note(note: unknown): void {
    const head = Buffer.alloc(headBytes);
    const data = Buffer.from(JSON.stringify(note));
    head.writeUInt32LE(headBytes + data.length, 0);
    head.writeUInt32LE(kinds.indexOf("note"), 4);
    writeSync(this.#log, Buffer.concat([head, data]));
  }

  /** Replaces an earlier rule from now on, in a running process, too. */
  fail(failing: Failing): void {
    const { error, first = 1, last = Number.MAX_SAFE_INTEGER, isHalved = false } = failing;
    const bits = failing.kinds.reduce((sum, kind) => sum | (1 << kinds.indexOf(kind)), 0);
    const rest = [constants.errno[error], first, last, Number(isHalved), 0, 0];
    this.heal();
    this.#rule.set(rest.map(BigInt), 1);
    // Last, because the process may read it at any moment.
    this.#rule[0] = BigInt(bits);
  }

  heal(): void {
    this.#rule[0] = 0n;
  }

  /** How many calls have failed under the last rule. */
  get failed(): number {
    return Number(this.#rule.at(-1));
  }

  [Symbol.dispose](): void {
    closeSync(this.#log);
    this.#equipment[Symbol.dispose]();
  }
}
