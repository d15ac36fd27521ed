/**
 * `npm run prove hostile [FACTOR] [-- --only WORDS --on WORDS --plants COUNT --program DIR]`:
 * crowds that try to stop the service or to hold up others, and what a quiet user notices; then ten
 * times the load that the service can take. FACTOR times as many connections, as far as the limit
 * of open files allows; COUNT plants in a crowd's garden instead of its own number. DIR is a
 * checkout of another version. `--only overload` leaves the crowds out.
 */
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { crowds } from "./crowds.ts";
import { overload } from "./overload.ts";
import { calls } from "./quiet-user.ts";
import { type SetupName, setups, tryCrowd } from "./trial.ts";

const words = { type: "string", default: "" } as const;
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { only: words, on: words, plants: { type: "string" }, program: { type: "string" } },
});
const factor = Number(positionals[0] ?? 1);
if (!(factor > 0)) throw new Error(`"${positionals[0]}" is not a factor.`);
const program = values.program && join(resolve(values.program), "src/main.ts");
const { plants } = values;
const chosen = crowds
  .filter(({ name }) => name.includes(values.only))
  .map((crowd) => (plants === undefined ? crowd : { ...crowd, plants: Number(plants) }));
const chosenSetups = (Object.keys(setups) as SetupName[]).filter((name) =>
  name.includes(values.on),
);

function printRow(...cells: readonly string[]): void {
  process.stdout.write(`| ${cells.join(" | ")} |\n`);
}

function renderStatuses(statuses: Readonly<Record<string, number>>): string {
  const entries = Object.entries(statuses).map(([status, count]) => `${count} × ${status}`);
  return entries.join(", ");
}

// Ctrl+C ends a proof like any exit, so that what it started is ended, too.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(1));
const times = calls.map((name) => `${name}, ms`);
const ends = ["grown, MB", "stop, s", "quiet user got", "crowd got", "faults"];
printRow("crowd", "on", "lived", ...times, ...ends);
printRow(...Array<string>(calls.length + 8).fill("---"));
let faulty = 0;
for (const crowd of chosen) {
  for (const setup of chosenSetups) {
    const connections = Math.ceil(crowd.connections * factor);
    const result = await tryCrowd(crowd, setup, { connections, program });
    const { hasLived, grownMb, stopMs, statuses, faults } = result;
    if (faults.length > 0) faulty++;
    printRow(
      crowd.name,
      setup,
      hasLived ? "yes" : "NO",
      ...calls.map((name) => {
        const { medianMs, worstMs } = result.times[name];
        return `${medianMs.toFixed(0)} / ${worstMs.toFixed(0)}`;
      }),
      grownMb.toFixed(0),
      (stopMs / 1_000).toFixed(1),
      renderStatuses(statuses),
      `${renderStatuses(result.crowd.statuses)}; ${result.crowd.closed} closed`,
      faults.join("; "),
    );
  }
}
const trials = chosen.length * chosenSetups.length;
process.stdout.write(`${trials} trials, ${faulty} with faults; median / worst in each column\n`);
const isOverloaded = program === undefined && "overload".includes(values.only);
const faults = isOverloaded ? await overload() : [];
for (const fault of faults) process.stdout.write(`fault: ${fault}\n`);
process.exit(faulty > 0 || faults.length > 0 || (trials === 0 && !isOverloaded) ? 1 : 0);
