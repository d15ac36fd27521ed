/**
 * `npm run bench:transfer -- [LINES]`: import and export of a file, next to raw creates over HTTP.
 */
import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { bunPath, rootDirectory } from "./contenders/paths.ts";
import { plantStore } from "./contenders/plant-store.ts";
import { say, showProgress } from "./output.ts";
import { Seat } from "./parts/seat.ts";
import { startChild } from "./process/children.ts";
import { watchResidentMemory } from "./process/usage.ts";
import { Workspace } from "./process/workspace.ts";
import { renderTable } from "./report/text-table.ts";

const rawSeconds = 10;
const connections = 64;
const lines = Number(process.argv[2] ?? 1_000_000);
/** What is there already is read and compared, and a part of it tells enough. */
const partLines = Math.min(lines, 100_000);
const workspace = new Workspace();

try {
  const raw = await measureRawCreates();
  const directory = workspace.makeDirectory("transfer");
  const token = await plantStore.prepare(directory);
  const seat = await Seat.start(plantStore, directory);
  const environment = { PLANTSTORE_URL: `http://${seat.host}`, PLANTSTORE_TOKEN: token };
  const source = join(directory, "source.jsonl");
  const copy = join(directory, "copy.jsonl");
  const part = join(directory, "part.jsonl");
  await pipeline(Readable.from(makeLines(lines)), createWriteStream(source));
  await pipeline(Readable.from(makeLines(partLines)), createWriteStream(part));

  const imported = await measureCommand(["import", source], lines, environment);
  const again = await measureCommand(["import", part], partLines, environment);
  const exported = await measureCommand(["export", copy], lines, environment);
  await seat.child.stop();
  if ((await digest(source)) !== (await digest(copy))) throw new Error("The set is not the same.");
  const row = (what: string, rate: number, megabytes = 0) => [
    ...[what, Math.round(rate).toLocaleString("en"), (rate / raw).toFixed(2)],
    megabytes === 0 ? "" : megabytes.toFixed(0),
  ];
  say(
    renderTable(
      ["", "plants/s", "of raw creates", "peak MB"],
      [
        row(`raw creates, ${connections} connections`, raw),
        row(`import of ${lines.toLocaleString("en")} lines`, imported.rate, imported.megabytes),
        row(`the first ${partLines.toLocaleString("en")} again`, again.rate, again.megabytes),
        row("export, the same bytes", exported.rate, exported.megabytes),
      ],
    ),
  );
} finally {
  workspace.remove();
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

/** In the order and form of an export, so that the two files can be compared as they are. */
function* makeLines(count: number): Generator<string> {
  for (let id = 1; id <= count; id++) {
    yield `{"id":${2n ** 53n + BigInt(id)},"name":"Plant ${id}","tag":"bench"}\n`;
  }
}

async function measureCommand(
  args: readonly string[],
  count: number,
  environment: Record<string, string>,
) {
  showProgress(args[0] ?? "");
  const startedAtMs = performance.now();
  const child = startChild({
    command: [bunPath, join(rootDirectory, "src/main.ts"), ...args],
    environment,
    logPath: join(workspace.path, "command.log"),
  });
  const endWatch = watchResidentMemory(child.pid);
  if ((await child.exited) !== 0) {
    throw new Error(await Bun.file(join(workspace.path, "command.log")).text());
  }
  const seconds = (performance.now() - startedAtMs) / 1_000;
  return { rate: count / seconds, megabytes: endWatch() };
}

async function digest(path: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path), hash);
  return hash.digest("hex");
}
