/** `npm run prove faults [injections] [seed]`: each file operation fails, in every way. */
import { prove } from "../proof.ts";
import { type Case, callsMax, inject, makeCases } from "./fault-trial.ts";

const cases = await makeCases();
/** How many operations a case has, once that is known. */
const callsOf = new Map<Case, number>();

await prove({
  trials: "injections",
  count: callsMax * cases.length,
  async run(number) {
    const each = cases[number % cases.length] as Case;
    const nth = (Math.floor(number / cases.length) % callsMax) + 1;
    if (nth > (callsOf.get(each) ?? callsMax)) return { faults: [], figures: {} };
    const trial = await inject({ ...each, nth });
    if (trial.figures["calls that failed"] === 0) callsOf.set(each, nth - 1);
    else if (nth === callsMax) throw new Error(`There are more than ${callsMax} calls.`);
    return trial;
  },
});
