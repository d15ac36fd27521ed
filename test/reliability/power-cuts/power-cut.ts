/** Cuts the power at moments of a recording, and has what is left examined. */
import { join, relative } from "node:path";
import { makeDice, spread } from "../../dice.ts";
import { fastestParent, makeTemporaryFolder } from "../../temporary-folder.ts";
import { type Call, parseCalls, textOf } from "../interposed-io/call-log.ts";
import { Account, type Note } from "./account.ts";
import { Disk } from "./disk.ts";
import { examineHere, examineServed } from "./examination.ts";
import { type Leftover, lay } from "./leftover.ts";
import type { Dice } from "./tearing.ts";

export interface PowerCut {
  /** Empty: all promises were kept. */
  readonly faults: readonly string[];
  /** How many writes had been answered. */
  readonly promised: number;
}

/** Where in a recording: in which of how many parts of it, and with which chance. */
export interface Cut {
  readonly index: number;
  readonly count: number;
  readonly seed: number;
}

/** About so many are made until a new store is ready. */
const callsOfStart = 250;

type Place = Extract<Note, { kind: "place" }>;

/** The moments of one recording, one after the other: going back takes longer. */
export class PowerCuts {
  readonly #calls: readonly Call[];
  /** Before it, there were no calls: it tells what was there. */
  readonly #begin: number;
  readonly #place: Place;
  #disk: Disk;
  #account = new Account();
  #moment = 0;

  constructor(log: Buffer) {
    this.#calls = parseCalls(log);
    this.#begin = this.#calls.findIndex((call) => readNote(call)?.kind === "place");
    this.#place = readNote(this.#calls[this.#begin] as Call) as Place;
    this.#disk = new Disk(this.#place.root);
  }

  get callsCount(): number {
    return this.#calls.length - this.#begin;
  }

  async examine(cut: Cut, by: "here" | "program"): Promise<PowerCut> {
    const dice = makeDice(spread(cut.seed));
    const { image } = this.cut(cut, dice);
    using folder = makeTemporaryFolder(fastestParent());
    lay(image, folder.path);
    const promised = this.#account.countPromises();
    const database = join(folder.path, relative(this.#place.root, this.#place.database));
    const examineIt = by === "here" ? examineHere : examineServed;
    const faults = await examineIt(database, this.#account, dice);
    return { faults: faults.map((fault) => `cut at call ${this.#moment}: ${fault}`), promised };
  }

  /** What is left, without a look at it. */
  cut(cut: Cut, dice = makeDice(spread(cut.seed))): Leftover {
    this.#goTo(this.#choose(cut, dice));
    const notes = this.#calls.slice(0, this.#moment).flatMap((call) => readNote(call) ?? []);
    const image = this.#disk.cut(dice);
    return { image, notes: notes.filter(({ kind }) => kind !== "place") };
  }

  /** A tenth of them while the store is made, and half just after an answer, when most is owed. */
  #choose({ index, count }: Cut, dice: Dice): number {
    const early = Math.floor(count / 10);
    const isEarly = index < early;
    const share = isEarly ? callsOfStart / early : this.callsCount / (count - early);
    const part = isEarly ? index : index - early;
    const from = this.#begin + Math.floor(part * share) + dice(Math.ceil(share));
    if (dice(2) === 0) return from;
    const to = this.#begin + Math.floor((part + 1) * share);
    const isAnswer = (call: Call) => readNote(call)?.kind === "answered";
    return from + this.#calls.slice(from, to).findIndex(isAnswer) + 1;
  }

  #goTo(moment: number): void {
    if (moment < this.#moment) {
      this.#disk = new Disk(this.#place.root);
      this.#account = new Account();
      this.#moment = 0;
    }
    for (const call of this.#calls.slice(this.#moment, moment)) {
      const note = readNote(call);
      if (note) this.#account.follow(note);
      else this.#disk.follow(call);
    }
    this.#moment = moment;
  }
}

function readNote(call: Call): Note | undefined {
  return call.kind === "note" ? JSON.parse(textOf(call)) : undefined;
}
