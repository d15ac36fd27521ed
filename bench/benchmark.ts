/** `npm run bench`: prepares, measures part by part, reports, and leaves nothing behind. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bare, bareThreads } from "./contenders/bare.ts";
import type { Contender } from "./contenders/contender.ts";
import { elysia, fastify, hono } from "./contenders/hand-written.ts";
import { jsonServer } from "./contenders/json-server.ts";
import { benchDirectory } from "./contenders/paths.ts";
import { createPrevious, plantStore } from "./contenders/plant-store.ts";
import { createPocketbase } from "./contenders/pocketbase.ts";
import { help, type Options, readOptions } from "./options.ts";
import { complain, say } from "./output.ts";
import { type BenchContext, Templates } from "./parts/bench-context.ts";
import { measureGrowthOfGardens, measureGrowthOfPlants } from "./parts/growth.ts";
import { measureMemory } from "./parts/memory.ts";
import { measurePostgres } from "./parts/postgres.ts";
import { runScenario, type ScenarioResult } from "./parts/side-by-side.ts";
import { measureSlowDisk } from "./parts/slow-disk.ts";
import { measureStart } from "./parts/start-up.ts";
import { fullPlan, quickPlan } from "./plan.ts";
import { prepareMachine } from "./preparation.ts";
import { killAllChildren } from "./process/children.ts";
import { Workspace } from "./process/workspace.ts";
import { renderChart } from "./report/chart.ts";
import { describeMachine } from "./report/machine.ts";
import { describeDisturbance, renderMarkdown, renderPromises } from "./report/markdown.ts";
import type { ContenderInfo, Results, Skipped } from "./report/results.ts";
import { scenarios } from "./scenarios.ts";

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2));
  if (options.wantsHelp) {
    say(help);
    return 0;
  }
  await prepareMachine();
  const workspace = new Workspace();
  const cleanUp = () => {
    killAllChildren();
    workspace.remove();
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.once(signal, () => {
      complain(`\nStopped by ${signal}.`);
      cleanUp();
      process.exit(130);
    });
  }
  try {
    const results = await measure(options, workspace);
    writeReport(results, options);
    return 0;
  } finally {
    cleanUp();
  }
}

async function measure(options: Options, workspace: Workspace): Promise<Results> {
  const startedAtMs = Date.now();
  const machine = await describeMachine(workspace);
  const { contenders, skipped } = chooseContenders(options);
  for (const { what, why } of skipped) say(`Not measured: ${what}: ${why}.`);
  if (machine.isDataInMemory) say("The data lies in memory: set TMPDIR to a disk to see syncs.");
  const plan = options.isQuick ? quickPlan : fullPlan;
  const context = { plan, workspace, contenders, templates: new Templates(workspace) };
  const found = await measureParts(context, options);
  return {
    startedAt: new Date(startedAtMs).toISOString(),
    durationSeconds: (Date.now() - startedAtMs) / 1000,
    plan,
    machine,
    contenders: await describeContenders(contenders),
    ...found,
    skipped: [...skipped, ...found.skipped],
  };
}

async function measureParts(context: BenchContext, { scenarios: chosen, parts }: Options) {
  const rows: ScenarioResult[] = [];
  for (const scenario of scenarios) {
    if (chosen.has(scenario.name)) rows.push(...(await runScenario(context, scenario)));
  }
  const wantsGrowth = parts.has("growth");
  const ofPlants = wantsGrowth ? await measureGrowthOfPlants(context) : [];
  const ofGardens = wantsGrowth ? await measureGrowthOfGardens(context) : [];
  const slowDisk = parts.has("slow-disk") ? await measureSlowDisk(context) : [];
  const skipped = typeof slowDisk === "string" ? [{ what: "slow disk", why: slowDisk }] : [];
  for (const { what, why } of skipped) say(`Not measured: ${what}: ${why}.`);
  return {
    scenarios: rows,
    growth: [...ofPlants, ...ofGardens],
    slowDisk: typeof slowDisk === "string" ? [] : slowDisk,
    memory: parts.has("memory") ? await measureMemory(context) : undefined,
    start: parts.has("start") ? await measureStart(context) : [],
    postgres: parts.has("postgres") ? await measurePostgres(context) : undefined,
    skipped,
  };
}

/** Plant Store comes first, because `bare` repeats its answers. */
function chooseContenders(options: Options): { contenders: Contender[]; skipped: Skipped[] } {
  const pocketbase = createPocketbase(options.pocketbasePath);
  const previous = createPrevious(options.previousPath);
  const peers = [hono, elysia, fastify, pocketbase, jsonServer];
  const all = [plantStore, previous, bare, bareThreads, ...peers];
  const contenders: Contender[] = [];
  const skipped: Skipped[] = [];
  for (const contender of all.filter(({ name }) => options.contenders.has(name))) {
    const why = contender.findObstacle();
    if (why === undefined) contenders.push(contender);
    else skipped.push({ what: contender.name, why });
  }
  return { contenders, skipped };
}

function describeContenders(contenders: readonly Contender[]): Promise<ContenderInfo[]> {
  return Promise.all(
    contenders.map(async (contender) => {
      const { name, summary } = contender;
      return { name, summary, version: await contender.readVersion() };
    }),
  );
}

function writeReport(results: Results, options: Options): void {
  const isWhole = !options.isQuick && !options.isFiltered;
  const directory = isWhole ? benchDirectory : join(benchDirectory, ".output");
  mkdirSync(directory, { recursive: true });
  const markdown = renderMarkdown(results);
  writeFileSync(join(directory, "results.json"), `${JSON.stringify(results, null, 2)}\n`);
  writeFileSync(join(directory, "results.md"), markdown);
  writeFileSync(join(directory, "chart.svg"), renderChart(results));
  say(`\n${markdown}`);
  say(`What must be shown:\n\n${renderPromises(results)}\n`);
  const disturbance = describeDisturbance(results);
  if (disturbance !== undefined) say(`${disturbance}\n`);
  say(`Written to ${directory}: results.json, results.md, chart.svg.`);
}

process.exitCode = await main().catch((error: unknown) => {
  complain(`The benchmark failed: ${error instanceof Error ? error.message : String(error)}`);
  return 1;
});
