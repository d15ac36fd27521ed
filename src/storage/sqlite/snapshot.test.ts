/**
 * A copy of a file at one moment: all tables of any schema, while others write, compared and
 * stoppable.
 */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeEmptyFile, makeTemporaryFolder, touch } from "../../../test/temporary-folder.ts";
import type { Storage } from "../../domain/storage.ts";
import { connect } from "./connection.ts";
import { openSqlite } from "./engine.ts";
import { inspectSqlite } from "./inspection.ts";
import { copySqlite } from "./snapshot.ts";

/** More than two batches. */
const plantsCount = 45_000;
const { signal } = new AbortController();
const tally = () => ({ plants: 0, plantsInAll: 0 });

let folder: ReturnType<typeof makeTemporaryFolder>;
let path: string;
let copyPath: string;
let storage: Storage;

beforeEach(() => {
  folder = makeTemporaryFolder();
  path = makeEmptyFile(folder.path);
  copyPath = touch(join(folder.path, "copy.db"));
  storage = openSqlite(path, { isServing: true });
});

afterEach(async () => {
  await storage.close();
  folder[Symbol.dispose]();
});

async function fill(): Promise<void> {
  const gardens = ["", "home", "\u{1f33f}"];
  const plants = Array.from({ length: plantsCount }, (_, index) => ({
    ...{
      garden: gardens[index % 3] ?? "",
      id: 2n ** 53n + BigInt(index),
      name: `${index}`,
      tag: "",
    },
  }));
  await storage.transfer(0).add("plants", plants);
  const token = { user: "a", garden: "a", scope: "read" as const, note: "", createdAtMs: 1 };
  const times = { expiresAtMs: undefined, revokedAtMs: undefined, lastUsedAtMs: undefined };
  await storage.transfer(0).add("tokens", [
    { ...token, ...times, id: "late", hash: "1", position: 900n },
    { ...token, ...times, id: "early", hash: "2", position: 7n },
  ]);
}

function readAll(file: string): unknown {
  const database = connect(file);
  const names = ["plants", "gardens", "idempotency_keys", "tokens", "token_changes"];
  const all = names.map((name) => {
    const order = name === "tokens" ? "rowid, *" : "*";
    return database.query(`SELECT ${order} FROM ${name} ORDER BY 1, 2`).all();
  });
  const made = database.query("SELECT type, name, sql FROM sqlite_schema ORDER BY name").all();
  const kind = ["user_version", "application_id"].map((name) =>
    database.query(`PRAGMA ${name}`).get(),
  );
  database.close();
  return { all, made, kind };
}

test("holds all that was there when it began, and nothing that came later", async () => {
  await fill();
  const before = readAll(path);
  const contents = await copySqlite(path, copyPath, async (snapshot) => {
    const create = { kind: "create", garden: "home", name: "late", tag: "" } as const;
    const write = () =>
      storage.apply([
        { ...create, id: undefined, idempotency: undefined },
        { kind: "delete", garden: "home", id: 2n ** 53n + 1n },
      ]);
    await write();
    const copied = tally();
    await snapshot.copy(copied, signal);
    expect(copied).toEqual({ plants: plantsCount, plantsInAll: plantsCount });
    await write();
    return snapshot.compare(tally(), signal);
  });
  expect(contents).toEqual({ plants: plantsCount, tokens: 2 });
  inspectSqlite(copyPath, contents);
  expect(readAll(copyPath)).toEqual(before);
});

test("takes whatever tables there are, with rows that have a number of their own and such as have none", async () => {
  const database = connect(path);
  database.run("CREATE TABLE notes (text TEXT, number REAL, bytes BLOB)");
  database.run("CREATE UNIQUE INDEX notes_by_text ON notes (text)");
  database.run("INSERT INTO notes (rowid, text, number, bytes) VALUES (-5, NULL, 0.5, x'00ff')");
  database.run("INSERT INTO notes (rowid, text) VALUES (9, 'Farn')");
  database.close();
  await copySqlite(path, copyPath, async (snapshot) => {
    await snapshot.copy(tally(), signal);
    await snapshot.compare(tally(), signal);
  });
  const copy = new Database(copyPath);
  expect(copy.query("SELECT rowid, text, number, bytes FROM notes").values()).toEqual([
    [-5, null, 0.5, new Uint8Array([0, 255])],
    [9, "Farn", null, null],
  ]);
  expect(() => copy.run("INSERT INTO notes (text) VALUES ('Farn')")).toThrow("UNIQUE");
  copy.close();
});

test("takes tables by any name, and leaves out the views and triggers that an operator has added", async () => {
  const database = connect(path);
  database.run(`CREATE TABLE "my ""own"" notes" ("the ""text""" TEXT)`);
  database.run(`INSERT INTO "my ""own"" notes" VALUES ('Farn')`);
  database.run("CREATE VIEW ferns AS SELECT * FROM plants WHERE tag = 'fern'");
  database.run("CREATE TRIGGER watched AFTER DELETE ON plants BEGIN SELECT 1; END");
  database.close();
  await copySqlite(path, copyPath, async (snapshot) => {
    await snapshot.copy(tally(), signal);
    await snapshot.compare(tally(), signal);
  });
  const copy = new Database(copyPath);
  expect(copy.query(`SELECT * FROM "my ""own"" notes"`).values()).toEqual([["Farn"]]);
  expect(
    copy.query("SELECT name FROM sqlite_schema WHERE type IN ('view', 'trigger')").all(),
  ).toEqual([]);
  copy.close();
});

test("does nothing that the file says, but for making its tables", async () => {
  const taken = join(folder.path, "taken");
  const more = `); COMMIT; VACUUM INTO '${taken}'; BEGIN--`;
  const comment = `/*${"x".repeat(more.length - 5)}*/)`;
  const database = connect(path);
  database.run(`CREATE TABLE bait (text TEXT${comment}`);
  database.close();
  await storage.close();
  // As anyone can who may write the file.
  writeFileSync(path, readFileSync(path, "latin1").replace(comment, more), "latin1");
  await copySqlite(path, copyPath, async (snapshot) => {
    await snapshot.copy(tally(), signal);
    await snapshot.compare(tally(), signal);
  });
  expect(existsSync(taken)).toBe(false);
});

test("fails when the copy is not the same", async () => {
  await fill();
  const compared = copySqlite(path, copyPath, (snapshot) => snapshot.compare(tally(), signal));
  expect(await compared.catch((error) => error)).toMatchObject({
    code: "internal",
    message: "The copy differs in its plants.",
  });
});

test("stops between two batches when it is told to", async () => {
  await fill();
  const stopping = new AbortController();
  const copied = tally();
  const copying = copySqlite(path, copyPath, (snapshot) => {
    const copy = snapshot.copy(copied, stopping.signal);
    setImmediate(() => stopping.abort("enough"));
    return copy;
  });
  expect(await copying.catch((error) => error)).toBe("enough");
  expect(copied.plants).toBeLessThan(plantsCount);
});

test("says that the file is damaged, where it is", async () => {
  await fill();
  await storage.close();
  const bytes = readFileSync(path);
  writeFileSync(path, bytes.fill(0xff, bytes.length / 2, bytes.length / 2 + 4_096));
  const copying = copySqlite(path, copyPath, (snapshot) => snapshot.copy(tally(), signal));
  expect(await copying.catch((error) => error.message)).toBe(`Cannot copy ${path}: it is damaged.`);
});
