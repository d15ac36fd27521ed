/**
 * `npm run prove hostile [count] [seed] [-- --only WORDS --on WORDS]`: crowds that try to stop the
 * service or to hold up others, and what a quiet user notices; then ten times the load that the
 * service can take (`--only overload`).
 */
import { prove, type Trial, takeOption } from "../proof.ts";
import { crowds, overloads } from "./crowds.ts";
import { setups, tryCrowd, tryOverload } from "./trial.ts";

const trials: [what: string, on: string, run: () => Promise<Trial>][] = [];
for (const crowd of Object.keys(crowds)) {
  for (const setup of Object.keys(setups)) {
    trials.push([crowd, setup, () => tryCrowd(crowd, setup)]);
  }
}
for (const name of Object.keys(overloads)) {
  for (const engine of ["sqlite", "postgres"] as const) {
    trials.push([`overload, ${name}`, engine, () => tryOverload(name, engine)]);
  }
}
const [only = "", on = ""] = [takeOption("only"), takeOption("on")];
const chosen = trials.filter((trial) => trial[0].includes(only) && trial[1].includes(on));
if (chosen.length === 0) throw new Error("There is no such crowd.");

await prove({
  trials: "crowds; median / worst ms of the quiet user's calls",
  count: chosen.length,
  run: (seed) => (chosen[seed % chosen.length] as (typeof chosen)[number])[2](),
});
