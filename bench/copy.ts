/**
 * `npm run bench:copy -- [PLANTS]`: a move to PostgreSQL and back, and the memory that it takes.
 */
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
