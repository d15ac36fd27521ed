/** Cuts the power at moments of a recording, and has what is left examined. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { makeDice, spread } from "../../dice.ts";
import { fastestParent, makeTemporaryFolder } from "../../temporary-folder.ts";
import { type Call, parseCalls, textOf } from "../interposed-io/call-log.ts";
import { Account, type Note } from "./account.ts";
import { Disk, type Image } from "./disk.ts";
import { examineHere, examineServed } from "./examination.ts";
import type { Dice } from "./tearing.ts";

export interface PowerCut {
  /** Empty: all promises were kept. */
  readonly faults: readonly string[];
  /** How many writes had been answered. */
  readonly promised: number;
}

/** The moments of one recording, one after the other: going back takes longer. */
export class PowerCuts {
  readonly callsCount: number;
  readonly #calls: readonly Call[];
  readonly #place: Extract<Note, { kind: "place" }>;
  #disk: Disk;
  #account = new Account();
  #moment = 0;

  constructor(log: Buffer) {
    this.#calls = parseCalls(log);
    this.callsCount = this.#calls.length;
    this.#place = JSON.parse(textOf(this.#calls[0] as Call));
    this.#disk = new Disk(this.#place.root);
  }

  /** Cuts in the `index`-th of `count` parts of the recording, as the dice of the seed fall. */
  async cut(index: number, count: number, seed: number, by: "here" | "program"): Promise<PowerCut> {
    const dice = makeDice(spread(seed));
    this.#goTo(this.#choose(index, count, dice));
    using folder = makeTemporaryFolder(fastestParent());
    const { root, database } = this.#place;
    const settle = (path: string) => join(folder.path, relative(root, path));
    lay(this.#disk.cut(dice), settle);
    const promised = this.#account.countPromises();
    const examine = by === "here" ? examineHere : examineServed;
    const faults = await examine(settle(database), this.#account, dice);
    return { faults: faults.map((fault) => `cut at call ${this.#moment}: ${fault}`), promised };
  }

  /** Half of the time just after an answer, when most is owed. */
  #choose(index: number, count: number, dice: Dice): number {
    const share = this.#calls.length / count;
    const moment = Math.floor(index * share) + dice(Math.ceil(share));
    if (dice(2) === 0) return moment;
    const end = Math.floor((index + 1) * share);
    const note = this.#calls.slice(moment, end).findIndex(({ kind }) => kind === "note");
    return moment + note + 1;
  }

  #goTo(moment: number): void {
    if (moment < this.#moment) {
      this.#disk = new Disk(this.#place.root);
      this.#account = new Account();
      this.#moment = 0;
    }
    for (const call of this.#calls.slice(this.#moment, moment)) {
      if (call.kind === "note") this.#account.follow(JSON.parse(textOf(call)));
      else this.#disk.follow(call);
    }
    this.#moment = moment;
  }
}

function lay(image: Image, settle: (path: string) => string): void {
  for (const [path, content] of image) {
    if (content === "folder") mkdirSync(settle(path), { recursive: true });
    else writeFileSync(settle(path), content);
  }
}
