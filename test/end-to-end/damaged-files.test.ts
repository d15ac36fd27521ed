/** Corrupt, replaced and foreign files are refused or reported. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { makeTemporaryFolder, touch } from "../temporary-folder.ts";
import { runProgram, startService } from "./running-service.ts";

function makeFile(path: string, ...statements: readonly string[]): void {
  using database = new Database(path);
  for (const statement of statements) database.run(statement);
}

async function makeCorruptFile(path: string): Promise<void> {
  await runProgram(["token", "create", "ann", "--database", path]);
  const bytes = readFileSync(path);
  writeFileSync(path, bytes.fill(0, bytes.length / 2));
}

const newer = ["PRAGMA application_id = 1347178068", "PRAGMA user_version = 9"];

test.each<[what: string, reason: string, spoil: (path: string) => unknown]>([
  ["another program's", "of another program", (path) => makeFile(path, "CREATE TABLE songs (a)")],
  ["of a newer version", "its schema is 9", (path) => makeFile(path, ...newer)],
  ["text", "it is not a database", (path) => writeFileSync(path, "A letter. ".repeat(1_000))],
  ["corrupt", "it is corrupt", makeCorruptFile],
])("a file that is %s is refused in one line and left unchanged", async (_, reason, spoil) => {
  using folder = makeTemporaryFolder();
  const path = join(folder.path, "plants.db");
  await spoil(path);
  const before = readFileSync(path);
  const { exitCode, out, errors } = await runProgram(["serve", "--port", "0", "--database", path]);
  expect([exitCode, out]).toEqual([1, ""]);
  expect(errors).toMatch(/^plantstore: Cannot open [^\n]+\.\n$/);
  expect(errors).toContain(reason);
  expect(readFileSync(path).equals(before)).toBe(true);
});

test.each([
  ["removed", (path: string) => rmSync(path)],
  ["moved away with its folder", (path: string) => renameSync(dirname(path), `${dirname(path)}2`)],
  ["replaced", (path: string) => renameSync(touch(`${path}.other`), path)],
  ["without its WAL", (path: string) => rmSync(`${path}-wal`)],
  ["emptied", (path: string) => truncateSync(path)],
])(
  "a file that is %s under a running service takes no writes, and responses say so",
  async (_, change) => {
    using folder = makeTemporaryFolder();
    const database = join(folder.path, "data", "plants.db");
    mkdirSync(dirname(database));
    await using service = await startService({ database, args: ["--threads", "1"] });
    const create = () => service.call("POST /plants", { body: '{"name":"Fern"}' });
    expect((await create()).status).toBe(201);
    change(database);
    const [created, ready, alive] = [
      await create(),
      await service.call("GET /readyz"),
      await service.call("GET /healthz"),
    ];
    expect([created.status, ready.status, alive.status]).toEqual([503, 503, 200]);
    expect(await created.json()).toMatchObject({
      detail: "The database file was removed, replaced or emptied.",
    });
    expect((await service.call("GET /plants")).status).toBeOneOf([200, 503]);
    service.signal("SIGTERM");
    expect(await service.exited).toBe(0);
  },
);
