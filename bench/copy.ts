/** `npm run bench:copy -- [PLANTS]`: a copy to PostgreSQL and back, and the memory it takes. */
import { join } from "node:path";
import { makeDatabase, startPostgres } from "../test/postgres-server.ts";
import { bunPath, rootDirectory } from "./contenders/paths.ts";
import { fillStore } from "./copied-store.ts";
import { say, showProgress } from "./output.ts";
import { watchResidentMemory } from "./process/usage.ts";
import { Workspace } from "./process/workspace.ts";
import { renderTable } from "./report/text-table.ts";

const plantsMax = Number(process.argv[2] ?? 1_000_000);

const workspace = new Workspace();
const server = await startPostgres();
try {
  const rows: string[][] = [];
  // If ten times the plants take the same memory, it does not grow with them.
  for (const plants of [plantsMax / 10, plantsMax]) {
    const directory = workspace.makeDirectory("copy");
    const [first, last] = [join(directory, "first.db"), join(directory, "last.db")];
    showProgress(`making ${plants.toLocaleString("en")} plants`);
    await fillStore(first, plants);
    const database = await makeDatabase(server);
    rows.push(await measure(plants, "to PostgreSQL", first, database.url));
    rows.push(await measure(plants, "to SQLite", database.url, last));
    await database.drop();
    workspace.discard(directory);
  }
  say(renderTable(["plants", "seconds", "plants/s", "peak MB"], rows));
} finally {
  await server.stop();
  workspace.remove();
}

async function measure(plants: number, where: string, from: string, to: string): Promise<string[]> {
  const title = `${plants.toLocaleString("en")}, ${where}`;
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
  const rate = Math.round(plants / seconds).toLocaleString("en");
  return [title, seconds.toFixed(1), rate, peakMegabytes().toFixed(0)];
}
