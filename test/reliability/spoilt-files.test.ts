/** Corrupt, replaced and foreign files are refused or reported. */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { runProgram, startService } from "../end-to-end/running-service.ts";
import { makeTemporaryFolder, touch } from "../temporary-folder.ts";

describe("the program exits with one line and leaves the file unchanged when the file", () => {
  const foreign = (path: string, ...statements: string[]) => {
    using database = new Database(path);
    for (const statement of statements) database.run(statement);
  };
  const spoilt: Record<string, { spoil(path: string): unknown; reason: string }> = {
    "is another program's": {
      spoil: (path) => foreign(path, "CREATE TABLE songs (title TEXT)"),
      reason: "it is a SQLite database of another program",
    },
    "is of a newer version": {
      spoil: (path) =>
        foreign(path, "PRAGMA application_id = 1347178068", "PRAGMA user_version = 9"),
      reason: "its schema is 9",
    },
    "is text": {
      spoil: (path) => writeFileSync(path, "A letter. ".repeat(1_000)),
      reason: "it is not a database",
    },
    "is corrupt": {
      async spoil(path) {
        await runProgram(["token", "create", "ann", "--database", path]);
        const bytes = readFileSync(path);
        writeFileSync(path, bytes.fill(0, bytes.length / 2));
      },
      reason: "it is corrupt",
    },
  };

  test.each(Object.keys(spoilt))("%s", async (kind) => {
    using folder = makeTemporaryFolder();
    const path = join(folder.path, "plants.db");
    await spoilt[kind]?.spoil(path);
    const before = readFileSync(path);
    const { exitCode, out, errors } = await runProgram([
      "serve",
      "--port",
      "0",
      "--database",
      path,
    ]);
    expect([exitCode, out]).toEqual([1, ""]);
    expect(errors).toMatch(/^plantstore: Cannot open [^\n]+\.\n$/);
    expect(errors).toContain(spoilt[kind]?.reason ?? "none");
    expect(readFileSync(path).equals(before)).toBe(true);
  });
});

test.each([
  ["removed", (path: string) => rmSync(path)],
  ["removed with its folder", (path: string) => rmSync(dirname(path), { recursive: true })],
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
