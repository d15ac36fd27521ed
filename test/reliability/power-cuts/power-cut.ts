/** Cuts the power at moments of a recording, and examines what is left. */
import { makeDice, spread } from "../../dice.ts";
import { type Call, parseCalls } from "../interposed-io/interposed-io.ts";
import { type Entry, isSettled } from "../ledger.ts";
import type { Trial } from "../proof.ts";
import { Disk } from "./disk.ts";
import { examine } from "./examination.ts";
import type { Note } from "./recording.ts";

/** Cuts of one recording, which only go forward. */
export class PowerCuts {
  readonly #calls: readonly Call[];
  readonly #count: number;
  #disk = new Disk();
  readonly #gardens = new Map<string, { token: string; entries: Entry[] }>();
  #moment = 0;

  /** How many cuts there are in all. */
  constructor(log: Buffer, count: number) {
    this.#calls = parseCalls(log);
    this.#count = count;
  }

  async examine(index: number, seed: number): Promise<Trial> {
    const dice = makeDice(spread(seed));
    const [from, to] = [this.#momentOf(index), this.#momentOf(index + 1)];
    const any = from + dice(to - from);
    // Half of them come right after a confirmed write.
    const confirmed = any + this.#calls.slice(any, to).findIndex(isConfirmation) + 1;
    this.#goTo(dice(2) === 0 ? any : confirmed);
    const gardens = [...this.#gardens.values()];
    const faults = await examine(this.#disk.cut(dice), gardens, dice);
    const promises = gardens.flatMap(({ entries }) => entries).filter(isSettled).length;
    return {
      faults: faults.map((fault) => `cut at call ${this.#moment}: ${fault}`),
      figures: { "confirmed writes checked": promises },
    };
  }

  /** The first calls create the store, so there are more cuts among them. */
  #momentOf(index: number): number {
    return Math.floor(this.#calls.length * (index / this.#count) ** 2);
  }

  #goTo(moment: number): void {
    for (const call of this.#calls.slice(this.#moment, moment)) {
      const note = readNote(call);
      if (note === undefined) this.#disk.follow(call);
      else if (note.kind === "token") {
        this.#gardens.set(note.garden, { token: note.token, entries: [] });
      } else if (note.kind === "entries") {
        this.#gardens.get(note.garden)?.entries.push(...note.entries);
      } else this.#disk = new Disk(this.#disk.cut(makeDice(spread(note.seed))));
    }
    this.#moment = moment;
  }
}

function isConfirmation(call: Call): boolean {
  const note = readNote(call);
  return note?.kind === "entries" && note.entries.every(isSettled);
}

function readNote(call: Call): Note | undefined {
  return call.kind === "note" ? JSON.parse(call.data.toString()) : undefined;
}
