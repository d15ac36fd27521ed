/** Cuts the power at moments of a recording, and examines what is left. */
import { join, relative } from "node:path";
import { makeDice, spread } from "../../dice.ts";
import { fastestParent, makeTemporaryFolder } from "../../temporary-folder.ts";
import { type Call, parseCalls, textOf } from "../interposed-io/call-log.ts";
import { isSettled, Ledger } from "../ledger.ts";
import { Disk } from "./disk.ts";
import { examineHere, examineServed } from "./examination.ts";
import { writeImage } from "./image.ts";
import type { Leftover, Note } from "./recording.ts";
import type { Dice } from "./tearing.ts";

export interface PowerCut {
  readonly faults: readonly string[];
  /** How many writes had been confirmed. */
  readonly promised: number;
  /** Bulks without a response: the number of lines of each. All of them are sent again. */
  readonly cutOff: readonly number[];
}

/** In which of how many parts of a recording, at random. */
export interface Cut {
  readonly index: number;
  readonly count: number;
  readonly seed: number;
}

/** About as many calls as it takes to create a new store. */
const callsOfStart = 250;

type Place = Extract<Note, { kind: "place" }>;

/** Cuts of one recording. Going forward is fast; going back starts over. */
export class PowerCuts {
  readonly #calls: readonly Call[];
  /** Where the recorded calls begin, after those of a leftover. */
  readonly #begin: number;
  readonly #place: Place;
  #disk: Disk;
  #gardens = new Map<string, { token: string; ledger: Ledger }>();
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
    this.#goTo(this.#choose(cut, dice));
    const image = this.#disk.cut(dice);
    using folder = makeTemporaryFolder(fastestParent());
    writeImage(image, folder.path);
    const ledgers = [...this.#gardens.values()].map(({ ledger }) => ledger);
    const promised = ledgers.reduce((sum, { promises }) => sum + promises, 0);
    const cutOff = ledgers
      .flatMap(({ batches }) => batches)
      .filter(({ isAnswered }) => !isAnswered)
      .map(({ lines }) => lines.length);
    const database = join(folder.path, relative(this.#place.root, this.#place.database));
    const examine = by === "here" ? examineHere : examineServed;
    const faults = await examine(database, this.#gardens, dice);
    const when = `cut at call ${this.#moment}`;
    return { faults: faults.map((fault) => `${when}: ${fault}`), promised, cutOff };
  }

  /** What is left, not examined. */
  cut(cut: Cut): Leftover {
    const dice = makeDice(spread(cut.seed));
    this.#goTo(this.#choose(cut, dice));
    const notes = this.#calls.slice(0, this.#moment).flatMap((call) => readNote(call) ?? []);
    const image = this.#disk.cut(dice);
    return { image, notes: notes.filter(({ kind }) => kind !== "place") };
  }

  /** A tenth while the store is created; half right after a confirmed write. */
  #choose({ index, count }: Cut, dice: Dice): number {
    const early = Math.floor(count / 10);
    const isEarly = index < early;
    const share = isEarly ? callsOfStart / early : this.callsCount / (count - early);
    const part = isEarly ? index : index - early;
    const from = this.#begin + Math.floor(part * share) + dice(Math.ceil(share));
    if (dice(2) === 0) return from;
    const to = this.#begin + Math.floor((part + 1) * share);
    return from + this.#calls.slice(from, to).findIndex(isConfirmation) + 1;
  }

  #goTo(moment: number): void {
    if (moment < this.#moment) {
      this.#disk = new Disk(this.#place.root);
      this.#gardens = new Map();
      this.#moment = 0;
    }
    for (const call of this.#calls.slice(this.#moment, moment)) {
      const note = readNote(call);
      if (note === undefined) this.#disk.follow(call);
      else if (note.kind === "entries")
        this.#gardens.get(note.garden)?.ledger.noteAll(note.entries);
      else if (note.kind === "token") {
        this.#gardens.set(note.garden, { token: note.token, ledger: new Ledger() });
      }
    }
    this.#moment = moment;
  }
}

function isConfirmation(call: Call): boolean {
  const note = readNote(call);
  return note?.kind === "entries" && note.entries.every(isSettled);
}

function readNote(call: Call): Note | undefined {
  return call.kind === "note" ? JSON.parse(textOf(call)) : undefined;
}
