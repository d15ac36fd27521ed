/**
 * `npm run prove listeners [count] [seed]`: a consumer that is cut off and resumes, a forwarder
 * that is killed, how soon an event reaches a thousand listeners, and what ten thousand idle ones
 * cost, on each engine.
 */
import { joinTrials, prove, type Trial } from "../proof.ts";
import { measureDelays, measureIdle, type Setup } from "./audience.ts";
import { followEvents } from "./consumer.ts";
import { forwardUnderKills } from "./forwarder.ts";

const delayMsMax = 500;
const idleMbMax = 250;
const idleProcessorsMax = 0.05;
const creates = 200;
/** Several times as long as the pause between comments. */
const idleMs = 60_000;
const layouts = {
  sqlite: { engine: "sqlite", threads: [2] },
  postgres: { engine: "postgres", threads: [1, 1] },
} as const;

/** A consumer on each engine. */
export async function followBoth(disconnects: number, seed: number): Promise<Trial> {
  const trials: Trial[] = [];
  for (const layout of Object.values(layouts)) {
    trials.push(await followEvents(layout, disconnects, seed));
  }
  return joinTrials(trials);
}

async function tryDelays(setup: Setup): Promise<Trial> {
  const delays = await measureDelays(setup, 1_000, creates);
  const at = (share: number) => Math.round(delays[Math.ceil(delays.length * share) - 1] ?? 0);
  const faults = at(0.99) > delayMsMax ? [`p99 is over ${delayMsMax} ms`] : [];
  const row = `${setup.engine}: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, worst ${at(1)} ms`;
  return { faults, figures: {}, row };
}

async function tryIdle(setup: Setup): Promise<Trial> {
  const { processors, grownMb, closed } = await measureIdle(setup, 10_000, idleMs);
  const faults: string[] = [];
  if (grownMb > idleMbMax) faults.push(`over ${idleMbMax} MB`);
  if (processors > idleProcessorsMax) faults.push(`over ${100 * idleProcessorsMax} %`);
  if (closed > 0) faults.push(`${closed} streams ended`);
  const percent = `${(100 * processors).toFixed(1)} % of a processor`;
  return { faults, figures: {}, row: `${setup.engine}: +${grownMb.toFixed(0)} MB, ${percent}` };
}

if (import.meta.main) {
  const sqlite: Setup = { engine: "sqlite", threads: 2, instances: 1 };
  const postgres: Setup = { engine: "postgres", threads: 1, instances: 2 };
  const kinds: ((seed: number) => Promise<Trial>)[] = [
    (seed) => followBoth(1_000, seed),
    (seed) => forwardUnderKills(10_000, 100, seed),
    () => tryDelays(sqlite),
    () => tryDelays(postgres),
    () => tryIdle(sqlite),
    () => tryIdle({ ...postgres, instances: 1 }),
  ];
  await prove({
    trials: "kinds of listeners",
    count: kinds.length,
    run: (seed) => (kinds[seed % kinds.length] as (typeof kinds)[number])(seed),
  });
}
