/**
 * What a kill and cuts of the power would leave of the store at this moment, each held to the
 * ledger.
 */
import { cpSync, existsSync, rmSync } from "node:fs";
import { join, relative } from "node:path";
import { makeDice, spread } from "../../dice.ts";
import { fastestParent, makeTemporaryFolder } from "../../temporary-folder.ts";
import type { Call } from "../interposed-io/call-log.ts";
import type { Ledger } from "../ledger.ts";
import { Disk } from "../power-cuts/disk.ts";
import { lay } from "../power-cuts/leftover.ts";
import type { Dice } from "../power-cuts/tearing.ts";
import { auditFile } from "./audit.ts";

const tornCuts = 2;

export class Cuts {
  readonly #root: string;
  readonly #database: string;
  readonly #disk: Disk;
  #followed = 0;

  /** The root is a folder that surely stays. */
  constructor(root: string, database: string) {
    this.#root = root;
    this.#database = database;
    this.#disk = new Disk(root);
  }

  audit(calls: readonly Call[], ledger: Ledger, moment: string): string[] {
    for (const call of calls.slice(this.#followed)) this.#disk.follow(call);
    this.#followed = calls.length;
    const torn = Array.from({ length: tornCuts }, (_, index) =>
      makeDice(spread(calls.length + index)),
    );
    return [
      ...this.#auditKill(ledger).map((fault) => `${moment}, after a kill: ${fault}`),
      // The least that there may be, and something in between.
      ...[() => 0, ...torn].flatMap((dice) =>
        this.#auditCut(dice, ledger).map((fault) => `${moment}, after a power cut: ${fault}`),
      ),
    ];
  }

  #auditKill(ledger: Ledger): readonly string[] {
    using folder = makeTemporaryFolder(fastestParent());
    const path = join(folder.path, "plants.db");
    for (const suffix of ["", "-wal", "-journal"]) {
      const file = this.#database + suffix;
      if (existsSync(file)) cpSync(file, path + suffix);
    }
    return auditFile(path, ledger);
  }

  #auditCut(dice: Dice, ledger: Ledger): readonly string[] {
    using folder = makeTemporaryFolder(fastestParent());
    lay(this.#disk.cut(dice), folder.path);
    const path = join(folder.path, relative(this.#root, this.#database));
    // Nobody reads an index whose process is gone, but SQLite would look at its locks.
    rmSync(`${path}-shm`, { force: true });
    return auditFile(path, ledger);
  }
}
