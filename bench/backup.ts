/**
 * `npm run bench:backup -- [PLANTS]`: backups of a service that is written to all the time, what
 * they take, what the writers notice, and how long a restoration is.
 */
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { startService } from "../test/end-to-end/running-service.ts";
import { makeDatabase, startPostgres } from "../test/postgres-server.ts";
import { bunPath, rootDirectory } from "./contenders/paths.ts";
import { fillStore } from "./copied-store.ts";
import { say, showProgress } from "./output.ts";
import { watchResidentMemory } from "./process/usage.ts";
import { Workspace } from "./process/workspace.ts";
import { renderTable } from "./report/text-table.ts";

const plantsMax = Number(process.argv[2] ?? 1_000_000);
const writersCount = 16;
/** Before a backup, and after it. */
const aloneMs = 5_000;

const workspace = new Workspace();
const server = await startPostgres();
try {
  const costs: string[][] = [];
  const delays: string[][] = [];
  // If ten times the plants take the same memory, it does not grow with them.
  for (const plants of [plantsMax / 10, plantsMax]) {
    for (const engine of ["SQLite", "PostgreSQL"]) {
      const title = `${plants.toLocaleString("en")}, ${engine}`;
      const directory = workspace.makeDirectory("backup");
      const database = engine === "PostgreSQL" ? await makeDatabase(server) : undefined;
      showProgress(`making ${title}`);
      const { cost, delay } = await measure(title, directory, database?.url, plants);
      costs.push(cost);
      delays.push(...delay);
      await database?.drop();
      workspace.discard(directory);
    }
  }
  say(
    renderTable(
      ["plants", "backup s", "of CPU", "peak MB", "file MB", "log MB", "restore s", "peak MB"],
      costs,
    ),
  );
  say(renderTable(["creates of 16 clients", "per second", "p50 ms", "p99 ms", "max ms"], delays));
} finally {
  await server.stop();
  workspace.remove();
}

async function measure(
  title: string,
  directory: string,
  url: string | undefined,
  plants: number,
): Promise<{ cost: string[]; delay: string[][] }> {
  const address = url ?? join(directory, "plants.db");
  const backup = join(directory, "plants.backup");
  await fillStore(address, plants);
  const service = await startService({ database: address });
  const writers = new Writers(service);
  const log = url === undefined ? watchSize(`${address}-wal`) : undefined;
  try {
    showProgress(title);
    await Bun.sleep(aloneMs);
    const before = writers.take();
    const taken = await run(["backup", backup], address);
    const during = writers.take();
    await Bun.sleep(aloneMs);
    const after = writers.take();
    const logMegabytes = log ? megabytes(log()) : "";
    await writers.stop();
    const restored = await run(["restore", backup], join(directory, "restored.db"));
    return {
      cost: [
        ...[title, taken.seconds, taken.cpuSeconds, taken.peakMegabytes],
        ...[
          megabytes(statSync(backup).size),
          logMegabytes,
          restored.seconds,
          restored.peakMegabytes,
        ],
      ],
      delay: [
        [`${title}: before`, ...before],
        ["during the backup", ...during],
        ["after it", ...after],
      ],
    };
  } finally {
    await service[Symbol.asyncDispose]();
  }
}

async function run(args: readonly string[], address: string) {
  const startedAtMs = performance.now();
  const child = Bun.spawn([bunPath, "src/main.ts", ...args], {
    cwd: rootDirectory,
    env: { ...process.env, PLANTSTORE_DATABASE: address },
    stdout: "pipe",
    stderr: "pipe",
  });
  const peak = watchResidentMemory(child.pid, 50);
  const errors = await new Response(child.stderr).text();
  if ((await child.exited) !== 0) throw new Error(errors);
  const seconds = (performance.now() - startedAtMs) / 1_000;
  // It says more than the clock on a machine that has other work.
  const cpuSeconds = Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1e6;
  return {
    seconds: seconds.toFixed(1),
    cpuSeconds: cpuSeconds.toFixed(1),
    peakMegabytes: peak().toFixed(0),
  };
}

/** Clients that create one plant after the other, and keep how long each took. */
class Writers {
  readonly #working: Promise<void>[];
  #delaysMs: number[] = [];
  #sinceMs = performance.now();
  #isStopping = false;

  constructor(service: Awaited<ReturnType<typeof startService>>) {
    this.#working = Array.from({ length: writersCount }, async () => {
      while (!this.#isStopping) {
        const startedAtMs = performance.now();
        const { status } = await service.call("POST /plants", { body: '{"name":"Fern"}' });
        if (status !== 201) throw new Error(`A create was answered with ${status}.`);
        this.#delaysMs.push(performance.now() - startedAtMs);
      }
    });
  }

  /** Since it was last asked: creates a second, and how long they took. */
  take(): string[] {
    const sorted = this.#delaysMs.toSorted((a, b) => a - b);
    const seconds = (performance.now() - this.#sinceMs) / 1_000;
    const at = (share: number) => (sorted[Math.floor(sorted.length * share)] ?? 0).toFixed(1);
    this.#delaysMs = [];
    this.#sinceMs = performance.now();
    const rate = Math.round(sorted.length / seconds).toLocaleString("en");
    return [rate, at(0.5), at(0.99), (sorted.at(-1) ?? 0).toFixed(1)];
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all(this.#working);
  }
}

/** Watches a file until it is asked for the largest that it was. */
function watchSize(path: string): () => number {
  let largest = 0;
  const timer = setInterval(() => {
    if (existsSync(path)) largest = Math.max(largest, statSync(path).size);
  }, 20);
  return () => {
    clearInterval(timer);
    return largest;
  };
}

function megabytes(bytes: number): string {
  return (bytes / 1_048_576).toFixed(0);
}
