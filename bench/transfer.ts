/**
 * `npm run bench:transfer -- [LINES] [--previous DIR]`: import and export of files, next to raw
 * creates over HTTP and, with --previous, next to another build in the same run.
 */
import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { parseArgs } from "node:util";
import type { Contender } from "./contenders/contender.ts";
import { bunPath, rootDirectory } from "./contenders/paths.ts";
import { createPrevious, plantStore } from "./contenders/plant-store.ts";
import { say, showProgress } from "./output.ts";
import { Seat } from "./parts/seat.ts";
import { killAllChildren, startChild } from "./process/children.ts";
import { watchResidentMemory } from "./process/usage.ts";
import { Workspace } from "./process/workspace.ts";
import { renderTable } from "./report/text-table.ts";

/** A build with a service of its own on fresh data. */
interface Build {
  readonly name: string;
  readonly root: string;
  readonly seat: Seat;
  readonly token: string;
}

interface Source {
  readonly title: string;
  readonly path: string;
  /** Assigned ids depend on the order of commits, so an export is then compared without them. */
  readonly hasIds: boolean;
}

interface Measured {
  readonly rate: number;
  readonly commandMegabytes: number;
  readonly serviceMegabytes: number;
}

const rawSeconds = 10;
const connections = 64;
const copyName = "copy.jsonl";
const { values, positionals } = parseArgs({
  options: { previous: { type: "string" } },
  allowPositionals: true,
});
const lines = Number(positionals[0] ?? 1_000_000);
/** Part of the file is enough for an import of what is there already. */
const partLines = Math.min(lines, 100_000);
const workspace = new Workspace();

try {
  const raw = await measureRawCreates();
  const directory = workspace.makeDirectory("files");
  const sources = await Promise.all([
    writeSource(join(directory, "ids.jsonl"), "with ids", lines, true),
    writeSource(join(directory, "no-ids.jsonl"), "without ids", lines, false),
  ]);
  const part = await writeSource(join(directory, "part.jsonl"), "", partLines, true);
  const rows = [[`raw creates, ${connections} connections`, "", count(raw), "1.00"]];
  for (const source of sources) {
    const builds = await startBuilds();
    const addRows = async (title: string, of: number, args: readonly string[]) => {
      rows.push(...renderRows(builds, raw, title, await runOnAll(builds, title, of, args)));
    };
    await addRows(`import, ${source.title}`, lines, ["import", source.path]);
    if (source.hasIds) {
      const title = `the first ${partLines.toLocaleString("en")} again`;
      await addRows(title, partLines, ["import", part.path]);
    }
    await addRows(`export, ${source.title}`, lines, ["export", copyName]);
    for (const { name, seat } of builds) {
      await compare(source, join(seat.directory, copyName), name);
      await seat.child.stop();
      workspace.discard(seat.directory);
    }
  }
  const header = [
    ...["", "build", "plants/s", "of raw creates", "of previous"],
    ...["command, peak MB", "service, peak MB"],
  ];
  say(renderTable(header, rows));
  say(
    `\nEach file has ${lines.toLocaleString("en")} lines. Every export was compared: with ids it has`,
  );
  say("the bytes of the imported file, without ids the same lines but for the assigned ids.");
} finally {
  killAllChildren();
  workspace.remove();
}

async function startBuilds(): Promise<Build[]> {
  const builds = [await startBuild(plantStore, rootDirectory)];
  if (values.previous === undefined) return builds;
  const root = resolve(values.previous);
  return [...builds, await startBuild(createPrevious(root), root)];
}

async function startBuild(contender: Contender, root: string): Promise<Build> {
  const directory = workspace.makeDirectory(contender.name);
  const token = await contender.prepare(directory);
  const seat = await Seat.start(contender, directory);
  await seat.rest();
  const [version] = (await contender.readVersion()).split(" ");
  return { name: `${contender.name} ${version}`, root, seat, token };
}

/** One after the other; the service that is not measured is frozen. */
async function runOnAll(
  builds: readonly Build[],
  title: string,
  of: number,
  args: readonly string[],
): Promise<Measured[]> {
  const measured: Measured[] = [];
  for (const build of builds) {
    showProgress(`${title}: ${build.name}`);
    await build.seat.wake();
    measured.push(await runCommand(build, args, of));
    await build.seat.rest();
  }
  return measured;
}

function renderRows(
  builds: readonly Build[],
  raw: number,
  title: string,
  measured: readonly Measured[],
): string[][] {
  const previous = measured[1]?.rate;
  return measured.map(({ rate, commandMegabytes, serviceMegabytes }, index) => [
    ...[title, builds[index]?.name ?? "", count(rate), (rate / raw).toFixed(2)],
    index === 0 && previous ? `${(rate / previous).toFixed(2)} ×` : "",
    ...[commandMegabytes.toFixed(0), serviceMegabytes.toFixed(0)],
  ]);
}

async function measureRawCreates(): Promise<number> {
  showProgress("raw creates");
  const directory = workspace.makeDirectory("raw");
  const token = await plantStore.prepare(directory);
  const seat = await Seat.start(plantStore, directory);
  const action = plantStore.describeAction("create", token, 0);
  if (action === undefined) throw new Error("There is no create.");
  const figures = await seat.drive([{ action, weight: 1 }], {
    connections,
    durationSeconds: rawSeconds,
  });
  await seat.child.stop();
  return figures.answersPerSecond;
}

/** In the order and form of an export, so that the files can be compared. */
async function writeSource(
  path: string,
  title: string,
  of: number,
  hasIds: boolean,
): Promise<Source> {
  function* makeLines() {
    for (let number = 1; number <= of; number++) {
      const id = hasIds ? `"id":${2n ** 53n + BigInt(number)},` : "";
      yield `{${id}"name":"Plant ${number}","tag":"bench"}\n`;
    }
  }
  await pipeline(Readable.from(makeLines()), createWriteStream(path));
  return { title, path, hasIds };
}

async function runCommand(
  { root, seat, token }: Build,
  args: readonly string[],
  of: number,
): Promise<Measured> {
  const logPath = join(seat.directory, "command.log");
  const startedAtMs = performance.now();
  const child = startChild({
    command: [bunPath, join(root, "src/main.ts"), ...args],
    environment: { PLANTSTORE_URL: `http://${seat.host}`, PLANTSTORE_TOKEN: token },
    directory: seat.directory,
    logPath,
  });
  const endCommandWatch = watchResidentMemory(child.pid);
  const endServiceWatch = watchResidentMemory(seat.child.pid);
  if ((await child.exited) !== 0) throw new Error(await Bun.file(logPath).text());
  const seconds = (performance.now() - startedAtMs) / 1_000;
  return {
    rate: of / seconds,
    commandMegabytes: endCommandWatch(),
    serviceMegabytes: endServiceWatch(),
  };
}

async function compare({ path, title, hasIds }: Source, copy: string, build: string) {
  const digest = hasIds ? digestBytes : digestLinesWithoutIds;
  if ((await digest(path)) === (await digest(copy))) return;
  throw new Error(`The export of ${build}, ${title}, is not what was imported.`);
}

async function digestBytes(path: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path), hash);
  return hash.digest("hex");
}

async function digestLinesWithoutIds(path: string): Promise<string> {
  const found: string[] = [];
  for await (const line of createInterface({ input: createReadStream(path) })) {
    found.push(line.replace(/"id":-?\d+,/, ""));
  }
  return createHash("sha256").update(found.toSorted().join("\n")).digest("hex");
}

function count(rate: number): string {
  return Math.round(rate).toLocaleString("en");
}
