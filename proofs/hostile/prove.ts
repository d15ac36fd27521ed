/**
 * `npm run prove hostile [count] [seed] [-- --only WORDS --on WORDS --factor N --program DIR]`:
 * crowds that try to stop the service or to hold up others, and what a quiet user notices; then ten
 * times the load that the service can take. N times as many connections, as far as the limit of
 * open files allows. DIR is a checkout of another version. `--only overload` leaves the crowds out.
 */
import { join, resolve } from "node:path";
import { prove, takeOption } from "../proof.ts";
import { crowds } from "./crowds.ts";
import { overload } from "./overload.ts";
import { calls } from "./quiet-user.ts";
import { type SetupName, setups, tryCrowd } from "./trial.ts";

const [only = "", on = ""] = [takeOption("only"), takeOption("on")];
const factor = Number(takeOption("factor") ?? 1);
const other = takeOption("program");
const program = other && join(resolve(other), "src/main.ts");
const names = (Object.keys(setups) as SetupName[]).filter((name) => name.includes(on));
const chosen = crowds
  .filter(({ name }) => name.includes(only))
  .flatMap((crowd) => names.map((name) => [crowd, name] as const));
const isOverloaded = program === undefined && "overload".includes(only);
if (chosen.length === 0 && !isOverloaded) throw new Error("There is no such crowd.");

const render = (statuses: Readonly<Record<string, number>>) =>
  Object.entries(statuses)
    .map(([status, count]) => `${count} × ${status}`)
    .join(", ");

await prove({
  trials: "crowds; median / worst ms of the quiet user's calls",
  count: chosen.length,
  async run(seed) {
    const [crowd, name] = chosen[seed % chosen.length] as (typeof chosen)[number];
    const connections = Math.ceil(crowd.connections * factor);
    const result = await tryCrowd(crowd, name, { connections, program });
    const times = calls.map((call) => {
      const { medianMs, worstMs } = result.times[call];
      return `${call} ${medianMs.toFixed(0)} / ${worstMs.toFixed(0)}`;
    });
    const sizes = [`+${result.grownMb.toFixed(0)} MB`, `stop ${result.stopMs.toFixed(0)} ms`];
    const seen = [render(result.statuses), `crowd: ${render(result.crowd.statuses)}`];
    const row = [crowd.name, name, ...times, ...sizes, ...seen].join(" | ");
    return { faults: result.faults, figures: {}, row };
  },
  conclude: async () => (isOverloaded ? await overload() : []),
});
