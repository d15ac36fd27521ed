/** `npm run bench:copy -- [PLANTS]`: a move to PostgreSQL and back, and the memory that it takes. */
import { join } from "node:path";
import type { MovedRecords } from "../src/domain/transfer.ts";
import { openSqlite } from "../src/storage/sqlite/engine.ts";
import { makeDatabase, startPostgres } from "../test/postgres-server.ts";
import { bunPath, rootDirectory } from "./contenders/paths.ts";
import { say, showProgress } from "./output.ts";
import { watchResidentMemory } from "./process/usage.ts";
import { Workspace } from "./process/workspace.ts";
import { renderTable } from "./report/text-table.ts";

const plantsMax = Number(process.argv[2] ?? 1_000_000);
const gardens = 100;
const batchRecords = 10_000;
const dayMs = 86_400_000;

const workspace = new Workspace();
const server = await startPostgres();
try {
  const rows: string[][] = [];
  // If ten times the plants take the same memory, it does not grow with them.
  for (const plants of [plantsMax / 10, plantsMax]) {
    const directory = workspace.makeDirectory("copy");
    const [first, last] = [join(directory, "first.db"), join(directory, "last.db")];
    showProgress(`making ${plants.toLocaleString("en")} plants`);
    await fill(first, plants);
    const database = await makeDatabase(server);
    rows.push(await measure(`${plants.toLocaleString("en")}, to PostgreSQL`, first, database.url));
    rows.push(await measure(`${plants.toLocaleString("en")}, to SQLite`, database.url, last));
    await database.drop();
    workspace.discard(directory);
  }
  say(renderTable(["plants", "seconds", "copied/s", "compared/s", "peak MB"], rows));
} finally {
  await server.stop();
  workspace.remove();
}

/** Half of the plants in one garden, the others in many; a key for every hundredth plant. */
async function fill(path: string, plants: number): Promise<void> {
  const storage = openSqlite(path, { isServing: false });
  const transfer = storage.transfer(Date.now());
  const gardenOf = (index: number) => (index % 2 === 0 ? "hot" : `garden ${index % gardens}`);
  for (let from = 0; from < plants; from += batchRecords) {
    const batch: MovedRecords["plants"][] = Array.from({ length: batchRecords }, (_, offset) => ({
      garden: gardenOf(from + offset),
      id: BigInt(from + offset),
      name: `Monstera deliciosa ${from + offset}`,
      tag: "living room",
    }));
    await transfer.add("plants", batch);
    const keys = batch
      .filter(({ id }) => id % 100n === 0n)
      .map(({ garden, id }) => {
        const request = '{"name":"Monstera deliciosa","tag":"living room"}';
        return { garden, key: `key-${id}`, request, plantId: id, expiresAtMs: Date.now() + dayMs };
      });
    await transfer.add("keys", keys);
  }
  await storage.close();
}

async function measure(title: string, from: string, to: string): Promise<string[]> {
  showProgress(title);
  const startedAtMs = performance.now();
  const child = Bun.spawn([bunPath, "src/main.ts", "copy", "--from", from, "--to", to], {
    cwd: rootDirectory,
    stdout: "pipe",
    stderr: "pipe",
  });
  const peakMegabytes = watchResidentMemory(child.pid, 50);
  const errors = await new Response(child.stderr).text();
  const exitCode = await child.exited;
  if (exitCode !== 0) throw new Error(`The copy ended with ${exitCode}: ${errors}`);
  const seconds = (performance.now() - startedAtMs) / 1_000;
  const [copied = "", compared = ""] = [...errors.matchAll(/\(([\d,]+)\/s\)/g)].map(
    ([, rate = ""]) => rate,
  );
  return [title, seconds.toFixed(1), copied, compared, peakMegabytes().toFixed(0)];
}
