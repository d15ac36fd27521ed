/** `npm run prove faults [injections] [seed]`: each file operation fails, in every way. */
import { prove } from "../proof.ts";
import { inject } from "./fault-trial.ts";
import {
  callsMax,
  type Failure,
  findInjection,
  injectionsCount,
  makeScenes,
  type Scene,
} from "./injections.ts";

/** Periodic tasks make the number of operations vary. */
const margin = 5;
const scenes = await makeScenes();
const counts = new Map<string, Promise<number>>();

await prove({
  name: "faults",
  trials: "injections",
  count: injectionsCount,
  async run(number) {
    const injection = findInjection(number, scenes);
    const { scene, failure } = injection;
    // No start runs out of descriptors, and SQLite goes on if it can't open a folder to sync it.
    if (failure.name === "EMFILE" && scene.isFromStart) return { faults: [], figures: {} };
    const name = `${scene.name}, ${failure.name}`;
    const counting = counts.get(name) ?? countCalls(scene, failure);
    counts.set(name, counting);
    const last = (await counting) + margin;
    if (last > callsMax) throw new Error(`${name}: ${last} calls, more than ${callsMax}.`);
    return injection.nth > last ? { faults: [], figures: {} } : inject(injection);
  },
});

/** How many operations of the scene can fail in this way. */
async function countCalls(scene: Scene, failure: Failure): Promise<number> {
  const never = Number.MAX_SAFE_INTEGER - 1;
  const { faults, calls } = await inject({ scene, failure, nth: never, isLasting: false });
  if (faults.length > 0) throw new Error(faults.join("\n"));
  return calls;
}
