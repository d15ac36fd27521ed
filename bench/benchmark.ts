/** `npm run bench`: prepares, measures, reports, and leaves nothing behind. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { bare } from "./contenders/bare.ts";
import type { Contender } from "./contenders/contender.ts";
import { elysia, fastify, hono } from "./contenders/hand-written.ts";
import { createOneInsert } from "./contenders/one-insert.ts";
import { plantStoreOn, readBuild } from "./contenders/plant-store.ts";
import { readServerVersion, stopServer } from "./contenders/postgres-server.ts";
import { help, type Options, readOptions } from "./options.ts";
import { complain, say } from "./output.ts";
import { measureMemory } from "./parts/memory.ts";
import { type BenchContext, type Cell, runScenarios } from "./parts/side-by-side.ts";
import { measureStart } from "./parts/start-up.ts";
import { benchDirectory, rootDirectory } from "./paths.ts";
import { prepareMachine } from "./preparation.ts";
import { killAllChildren } from "./process/children.ts";
import { Workspace } from "./process/workspace.ts";
import { describeMachine } from "./report/machine.ts";
import { renderReport } from "./report/markdown.ts";
import type { Results } from "./report/results.ts";
import { scenarios } from "./scenarios.ts";

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2));
  if (options.wantsHelp) {
    say(help);
    return 0;
  }
  await prepareMachine();
  const workspace = new Workspace();
  const cleanUp = async () => {
    killAllChildren();
    await stopServer();
    workspace.remove();
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.once(signal, async () => {
      complain(`\nStopped by ${signal}.`);
      await cleanUp();
      process.exit(130);
    });
  }
  try {
    writeReport(await measure(options, workspace), options);
    return 0;
  } finally {
    await cleanUp();
  }
}

async function measure(options: Options, workspace: Workspace): Promise<Results> {
  const { timing, parts } = options;
  const startedAtMs = Date.now();
  const machine = await describeMachine(workspace);
  const contenders = await chooseContenders(options);
  const context: BenchContext = { timing, workspace, contenders };
  const cells: Cell[] = [];
  const chosen = scenarios.filter(({ name }) => options.scenarios.has(name));
  const groups = Map.groupBy(chosen, ({ name, beside }) => beside ?? name);
  for (const group of groups.values()) cells.push(...(await runScenarios(context, group)));
  const own = contenders.sqlite[0] as Contender;
  const memory = parts.has("memory") ? await measureMemory(context, own) : undefined;
  const start = parts.has("start") ? await measureStart(context) : undefined;
  const shown = [
    ...contenders.sqlite,
    ...contenders.postgres.filter(({ name }) => name === "one-insert"),
  ];
  return {
    startedAt: new Date(startedAtMs).toISOString(),
    durationSeconds: (Date.now() - startedAtMs) / 1000,
    timing,
    machine,
    postgres: await readServerVersion(),
    contenders: await Promise.all(
      shown.map(async ({ name, summary, readVersion }) => {
        return { name, summary, version: await readVersion() };
      }),
    ),
    cells,
    memory,
    start,
  };
}

/** Plant Store comes first, because `bare` repeats its responses. */
async function chooseContenders({ contenders: chosen, previousPath }: Options) {
  const own = await readBuild("plant-store");
  const previous = previousPath ? [await readBuild("previous", resolve(previousPath))] : [];
  const withoutEvents = await readBuild("without-events");
  const builds = [own, await readBuild("one-thread"), withoutEvents, ...previous];
  const all = {
    sqlite: [...builds.map((build) => plantStoreOn("sqlite", build)), bare, hono, elysia, fastify],
    postgres: [
      ...[own, withoutEvents, ...previous].map((build) => plantStoreOn("postgres", build)),
      createOneInsert(own),
    ],
  };
  const runs = (contender: Contender) => {
    if (!chosen.has(contender.name)) return false;
    const why = contender.findObstacle?.();
    if (why !== undefined) say(`Not measured: ${contender.name}: ${why}.`);
    return why === undefined;
  };
  return { sqlite: all.sqlite.filter(runs), postgres: all.postgres.filter(runs) };
}

const markers = /(<!-- results -->\n)[\s\S]*(\n<!-- end of results -->)/;

function writeReport(results: Results, { isWhole }: Options): void {
  const report = renderReport(results);
  const directory = isWhole ? benchDirectory : join(benchDirectory, ".output");
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "results.json"), `${JSON.stringify(results, null, 2)}\n`);
  if (isWhole) {
    const page = join(rootDirectory, "docs", "benchmarks.md");
    const text = readFileSync(page, "utf8");
    writeFileSync(
      page,
      text.replace(markers, (_, open, close) => `${open}\n${report}${close}`),
    );
  } else {
    writeFileSync(join(directory, "results.md"), report);
  }
  say(`\n${report}`);
  say(`Written to ${directory}${isWhole ? " and docs/benchmarks.md" : ""}.`);
}

process.exitCode = await main().catch((error: unknown) => {
  complain(`The benchmark failed: ${error instanceof Error ? error.message : String(error)}`);
  return 1;
});
