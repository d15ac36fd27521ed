/**
 * `npm run prove pgbouncer [failures] [seed]`: the tests of the PostgreSQL engine on the system's
 * PostgreSQL, behind PgBouncer, too; then PgBouncer and PostgreSQL fail under load.
 */
import { join } from "node:path";
import { makeDice, spread } from "../../dice.ts";
import { LoadedInstances } from "../loaded-instances.ts";
import { exitOnSignals, prove, seconds, skipWithout, spanOf } from "../proof.ts";
import { type Failure, type Part, PooledPostgres } from "./pooled-postgres.ts";

const mix: readonly (readonly [Part, Failure])[] = [
  ["PgBouncer", "restarted"],
  ["PostgreSQL", "restarted"],
  ["PgBouncer", "killed"],
  ["PostgreSQL", "killed"],
  ["PgBouncer", "frozen"],
];
/** Longer than the service waits for a response. */
const frozenMs = 7_000;

skipWithout(PooledPostgres.missing());
process.stdout.write(`${PooledPostgres.versions()}\n`);

exitOnSignals();
const pooled = await PooledPostgres.start();
await runTests();

const loaded = await LoadedInstances.start(pooled.url);
const outages = new Map<string, Outage[]>();

interface Outage {
  /** From the failure until it took connections again. */
  readonly downMs: number;
  /** The longest time in which one of the instances confirmed no write. */
  readonly gapMs: number;
}

await prove({
  name: "pgbouncer",
  trials: "failures",
  count: 20,
  async run(seed) {
    const dice = makeDice(spread(seed));
    const [part, failure] = mix[seed % mix.length] as (typeof mix)[number];
    await using load = loaded.startLoad(seed, true);
    await Bun.sleep(500 + dice(1_000));
    const failedAtMs = performance.now();
    await pooled.fail(part, failure);
    // A package's restart takes no time; whoever replaces a killed server may.
    if (failure !== "restarted") await Bun.sleep(failure === "frozen" ? frozenMs : dice(2_000));
    await pooled.repair(part, failure);
    const downMs = performance.now() - failedAtMs;
    await load.waitForWrites();
    await Bun.sleep(300 + dice(500));
    const faults = await load.finish(pooled.url);

    const what = `${part} ${failure}`;
    const { longestGapMs: gapMs, longestMs } = load.workload;
    outages.set(what, [...(outages.get(what) ?? []), { downMs, gapMs }]);
    process.stdout.write(
      `${what}: down ${seconds(downMs)}, no write for ${seconds(gapMs)}, longest request ` +
        `${seconds(longestMs)}; ${loaded.ledger.promises} promises, ${faults.length} broken\n`,
    );
    return { faults, figures: { [what]: 1 } };
  },
  async conclude() {
    await loaded.stop();
    const lines = [...outages].map(([what, each]) => {
      const down = spanOf(each.map(({ downMs }) => downMs));
      const gap = spanOf(each.map(({ gapMs }) => gapMs));
      return `${what}, ${each.length} times: down ${down}; no write for ${gap}`;
    });
    const total = `${loaded.ledger.promises} confirmed writes`;
    return { text: [...lines, total].join("\n") };
  },
});

/** `npm test` runs them on another version of PostgreSQL. */
async function runTests(): Promise<void> {
  const child = Bun.spawn([process.execPath, "test", "--timeout=60000", "src/storage/postgres"], {
    cwd: join(import.meta.dir, "../../.."),
    env: { ...process.env, PLANTSTORE_TEST_POSTGRES: String(pooled.port) },
    stdout: "ignore",
    stderr: "pipe",
  });
  const output = await new Response(child.stderr).text();
  process.stdout.write(`${/^ *\d+ pass$/m.exec(output)?.[0].trim()} on the system's PostgreSQL\n`);
  if ((await child.exited) === 0) return;
  process.stdout.write(output);
  process.exit(1);
}
