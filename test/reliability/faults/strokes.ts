/**
 * Every stroke has a number, the same in every run: which call fails, how, where, and for how long.
 */
import type { Trial } from "../proof.ts";
import { failures } from "./failures.ts";
import { countCalls, type Stroke, strike } from "./fault-trial.ts";
import { makeScenes } from "./scenes.ts";

/** More than there are in any scene; those beyond would never fail. */
const callsMax = 300;
const scenesCount = 3;
export const strokesCount = callsMax * scenesCount * failures.length * 2;
/** Calls of what happens by the clock come and go. */
const margin = 5;

export class Strokes {
  readonly #scenes = makeScenes();
  readonly #counts = new Map<string, Promise<number>>();

  /** Strikes, unless the scene has no such call. */
  async run(number: number): Promise<Trial> {
    const stroke = await this.find(number % strokesCount);
    const { scene, failure, nth } = stroke;
    const name = `${scene.name}, ${failure.name}`;
    const counting = this.#counts.get(name) ?? countCalls(scene, failure);
    this.#counts.set(name, counting);
    const last = (await counting) + margin;
    if (last > callsMax) throw new Error(`There are more calls than ${callsMax}: ${name}.`);
    return nth > last ? { faults: [], figures: {} } : strike(stroke);
  }

  async find(number: number): Promise<Stroke> {
    let rest = number;
    const take = (count: number) => {
      const taken = rest % count;
      rest = Math.floor(rest / count);
      return taken;
    };
    const scene = (await this.#scenes)[take(scenesCount)];
    const failure = failures[take(failures.length)];
    const isLasting = take(2) === 1;
    if (!scene || !failure) throw new Error(`There is no stroke ${number}.`);
    return { scene, failure, isLasting, nth: rest + 1 };
  }
}
