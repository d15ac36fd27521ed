/**
 * `npm run prove hostile [FACTOR] [-- --program DIR --only WORD]`: crowds that try to stop the
 * service or to hold up others, on SQLite with one and two threads and on PostgreSQL with one and
 * two instances. Prints what a quiet user sees. FACTOR is times as many connections.
 */
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { crowds } from "./crowds.ts";
import { calls, type Setup, type TrialResult, tryCrowd } from "./trial.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    program: { type: "string" },
    only: { type: "string", default: "" },
    on: { type: "string", default: "" },
  },
});
const factor = Number(positionals[0] ?? 1);
const program = values.program && join(resolve(values.program), "src/main.ts");

const setups: Readonly<Record<string, Setup>> = {
  "sqlite, 1 thread": { engine: "sqlite", threads: 1, instances: 1 },
  "sqlite, 2 threads": { engine: "sqlite", threads: 2, instances: 1 },
  "postgres, 1 instance": { engine: "postgres", threads: 1, instances: 1 },
  "postgres, 2 instances": { engine: "postgres", threads: 1, instances: 2 },
};

const limits = {
  healthz: { medianMs: 50, worstMs: 250 },
  get: { medianMs: 50, worstMs: 250 },
  create: { medianMs: 150, worstMs: 500 },
} as const;

function findFaults(
  { hasLived, times, quiet, grownMb }: TrialResult,
  grownMbMax = Number.POSITIVE_INFINITY,
): string[] {
  if (!hasLived) return ["died"];
  const faults: string[] = [];
  for (const name of calls) {
    const { medianMs, worstMs } = times[name];
    if (medianMs > limits[name].medianMs || worstMs > limits[name].worstMs)
      faults.push(`${name} too slow`);
  }
  const bad = Object.entries(quiet).filter(([status]) => !/^2/.test(status));
  for (const [status, count] of bad)
    faults.push(`${count} × ${status === "0" ? "no response" : status} for the quiet user`);
  if (grownMb > grownMbMax) faults.push("too much memory");
  return faults;
}

const say = (text: string) => process.stdout.write(`${text}\n`);
const count = (statuses: Readonly<Record<string, number>>) =>
  Object.entries(statuses)
    .map(([status, times]) => `${status === "0" ? "none" : status}×${times}`)
    .join(" ");
say(
  `| crowd | on | lived | healthz ms | get ms | create ms | grown MB | quiet user | crowd | faults |`,
);
say(`|---|---|---|---|---|---|---|---|---|---|`);
let faulty = 0;
for (const crowd of crowds.filter(({ name }) => name.includes(values.only))) {
  for (const [where, setup] of Object.entries(setups).filter(([name]) =>
    name.includes(values.on),
  )) {
    const result = await tryCrowd(crowd, setup, { factor, program });
    const faults = findFaults(result, crowd.grownMbMax);
    if (faults.length > 0) faulty++;
    const ms = calls.map((name) => {
      const { medianMs, worstMs } = result.times[name];
      return `${medianMs.toFixed(0)} / ${worstMs.toFixed(0)}`;
    });
    const { statuses, closed, failed } = result.crowd;
    say(
      `| ${crowd.name} | ${where} | ${result.hasLived ? "yes" : "NO"} | ${ms.join(" | ")} | ${result.grownMb.toFixed(0)} | ${count(result.quiet)} | ${count(statuses)}; ${closed} closed, ${failed} not opened | ${faults.join(", ")} |`,
    );
  }
}
say(faulty > 0 ? `${faulty} with faults` : "clean");
process.exit(faulty > 0 ? 1 : 0);
