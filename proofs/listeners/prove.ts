/**
 * `npm run prove listeners [disconnects] [seed]`: a consumer that is cut off and resumes, a
 * forwarder to a URL that is killed, how soon an event reaches a thousand listeners, and what ten
 * thousand idle ones cost. Prints a table.
 */
import { readNumbers } from "../proof.ts";
import { measureDelays, measureIdle, type Setup } from "./audience.ts";
import { followEvents } from "./consumer.ts";
import { forwardUnderKills } from "./forwarder.ts";

const delayMsMax = 500;
const idleMbMax = 250;
const idleProcessorsMax = 0.05;
const creates = 200;
/** Several times as long as the pause between comments. */
const idleMs = 60_000;

const [disconnects = 1_000, seed = 1] = readNumbers();
const sqlite: Setup = { engine: "sqlite", threads: 2, instances: 1 };
let faulty = 0;

// Ctrl+C ends a proof like any exit, so that what it started is ended, too.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(1));

function printRow(...cells: readonly string[]): void {
  process.stdout.write(`| ${cells.join(" | ")} |\n`);
}

function report(what: string, on: string, result: string, faults: readonly string[]): void {
  if (faults.length > 0) faulty++;
  printRow(what, on, result, faults.slice(0, 5).join("; "));
}

function name({ engine, threads, instances }: Setup): string {
  const [count, part] = engine === "sqlite" ? [threads, "thread"] : [instances, "instance"];
  return `${engine}, ${count} ${part}${count === 1 ? "" : "s"}`;
}

printRow("what", "on", "result", "faults");
printRow("---", "---", "---", "---");

for (const layout of [
  { engine: "sqlite", threads: [2] },
  { engine: "postgres", threads: [1, 1] },
] as const) {
  const { faults, figures } = await followEvents(layout, disconnects, seed);
  const result = Object.entries(figures).map(([figure, count]) => `${count} ${figure}`);
  report("a consumer that is cut off and resumes", layout.engine, result.join(", "), faults);
}

{
  // By default 100 kills and 10,000 events.
  const kills = Math.ceil(disconnects / 10);
  const { faults, figures } = await forwardUnderKills(100 * kills, kills, seed);
  const { events, failed, twice } = figures;
  const result = `${events} events, ${kills} kills, ${failed} failed requests, ${twice} came twice`;
  report("a forwarder that is killed", "sqlite", result, faults);
}

for (const setup of [sqlite, { engine: "postgres", threads: 1, instances: 2 } as const]) {
  const delays = await measureDelays(setup, 1_000, creates);
  const at = (share: number) => delays[Math.ceil(delays.length * share) - 1] ?? 0;
  const [median, p99, worst] = [at(0.5), at(0.99), at(1)].map((ms) => ms.toFixed(0));
  const faults = at(0.99) > delayMsMax ? [`p99 is over ${delayMsMax} ms`] : [];
  const what = `1,000 listeners, ${creates} creates`;
  report(what, name(setup), `p50 ${median} ms, p99 ${p99} ms, worst ${worst} ms`, faults);
}

for (const setup of [sqlite, { engine: "postgres", threads: 1, instances: 1 } as const]) {
  const { processors, grownMb, closed } = await measureIdle(setup, 10_000, idleMs);
  const percent = `${(100 * processors).toFixed(1)} % of a processor`;
  const faults: string[] = [];
  if (grownMb > idleMbMax) faults.push(`over ${idleMbMax} MB`);
  if (processors > idleProcessorsMax) faults.push(`over ${100 * idleProcessorsMax} %`);
  if (closed > 0) faults.push(`${closed} streams ended`);
  report("10,000 idle listeners", name(setup), `+${grownMb.toFixed(0)} MB, ${percent}`, faults);
}

process.exit(faulty > 0 ? 1 : 0);
