/**
 * A file takes the place of a store: at once, under the lock, and what was there before is kept.
 */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, spyOn, test } from "bun:test";
import {
  chownSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  renameSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { join } from "node:path";
import { makeTemporaryFolder, touch } from "../../../test/temporary-folder.ts";
import type { Storage } from "../../domain/storage.ts";
import { openSqlite } from "./engine.ts";
import { restoreSqlite } from "./restoration.ts";
import { copySqlite } from "./snapshot.ts";

const { signal } = new AbortController();
const tally = { plants: 0, plantsInAll: 0 };

let folder: ReturnType<typeof makeTemporaryFolder>;
let path: string;
let backup: string;

beforeEach(async () => {
  folder = makeTemporaryFolder();
  path = join(folder.path, "data", "plants.db");
  backup = join(folder.path, "new.db");
  await openWith(backup, "new").close();
});

afterEach(() => folder[Symbol.dispose]());

function openWith(file: string, name: string): Storage {
  const storage = openSqlite(file, { isServing: false });
  storage.transfer(0).add("plants", [{ garden: "home", id: 1n, name, tag: "" }]);
  return storage;
}

function restore(mayReplace = false): Promise<string | undefined> {
  return restoreSqlite(path, mayReplace, ({ unpackedPath, fill }) => {
    copyFileSync(backup, unpackedPath);
    return fill(tally, signal);
  });
}

async function namesIn(file: string): Promise<string[]> {
  const storage = openSqlite(file, { isServing: true, mustExist: true });
  const plants = await storage.list("home", undefined, 9);
  await storage.close();
  return plants.map(({ name }) => name);
}

test("where there was none, in a folder that was not there", async () => {
  expect(await restore()).toBeUndefined();
  expect(await namesIn(path)).toEqual(["new"]);
  expect(statSync(join(folder.path, "data")).mode & 0o777).toBe(0o700);
});

// Else a service that runs as another user, such as that of the systemd unit, cannot open what root
// restored.
test.skipIf(process.getuid?.() !== 0)(
  "by root for whoever owns the folder, or the file",
  async () => {
    const data = join(folder.path, "data");
    const owners = () => readdirSync(data).map((name) => statSync(join(data, name)).uid);
    mkdirSync(data);
    chownSync(data, 1234, 1234);
    await restore();
    expect(owners()).toEqual([1234, 1234]);
    for (const name of readdirSync(data)) chownSync(join(data, name), 4321, 4321);
    await restore(true);
    expect(owners()).toEqual([4321, 4321, 4321]);
  },
);

test.skipIf(process.getuid?.() !== 0)(
  "by root for nobody who has only set a link to where it lies",
  async () => {
    const [data, elsewhere] = [join(folder.path, "data"), join(folder.path, "elsewhere")];
    mkdirSync(data);
    chownSync(data, 1234, 1234);
    mkdirSync(elsewhere);
    symlinkSync(join(elsewhere, "plants.db"), path);
    await restore();
    const owners = readdirSync(elsewhere).map((name) => statSync(join(elsewhere, name)).uid);
    expect(owners).toEqual([0, 0]);
  },
);

/** As a crash leaves it: the plant is only in the log. */
async function layCrashed(): Promise<void> {
  const old = openWith(path, "old");
  const crashed = join(folder.path, "data", "crashed.db");
  for (const suffix of ["", "-wal"]) copyFileSync(path + suffix, crashed + suffix);
  await old.close();
  for (const suffix of ["", "-wal"]) renameSync(crashed + suffix, path + suffix);
}

test("only if it may where there is one, which is kept with what its log held", async () => {
  await layCrashed();

  expect(await restore().catch((error) => error)).toMatchObject({ code: "conflict" });
  expect(existsSync(`${path}-wal`)).toBe(true);
  const kept = (await restore(true)) ?? "";
  expect(await namesIn(path)).toEqual(["new"]);
  expect(await namesIn(kept)).toEqual(["old"]);
});

test("only if it may also where a command has made one meanwhile", async () => {
  const restoring = restoreSqlite(path, false, async ({ unpackedPath, fill }) => {
    copyFileSync(backup, unpackedPath);
    await openWith(path, "meanwhile").close();
    return fill(tally, signal);
  });
  await expect(restoring).rejects.toThrow("With --force it is kept");
  expect(await namesIn(path)).toEqual(["meanwhile"]);
});

test("also where only the logs of a lost file are left, which are not applied", async () => {
  const old = openWith(path, "old");
  copyFileSync(`${path}-wal`, join(folder.path, "log"));
  await old.close();
  renameSync(path, join(folder.path, "lost"));
  renameSync(join(folder.path, "log"), `${path}-wal`);
  touch(`${path}-journal`);
  await restore();
  expect([`${path}-wal`, `${path}-journal`].filter((log) => existsSync(log))).toEqual([]);
  expect(await namesIn(path)).toEqual(["new"]);
});

test("not while a service uses it, and none can start meanwhile", async () => {
  const serving = openSqlite(path, { isServing: true });
  const refused = await restore(true).catch((error) => error);
  expect(refused.message).toMatch(/^Cannot open .+ another process is serving it already/);
  await serving.close();
  await restoreSqlite(path, true, async () => {
    expect(() => openSqlite(path, { isServing: true })).toThrow("another process is serving it");
  });
  expect(await namesIn(path)).toEqual([]);
});

test.skipIf(process.platform === "win32")(
  "not where something stands that is no file",
  async () => {
    mkdirSync(join(folder.path, "data"));
    Bun.spawnSync(["mkfifo", path]);
    for (const mayReplace of [false, true]) {
      await expect(restore(mayReplace)).rejects.toThrow("it is no plain file");
    }
    expect(statSync(path).isFIFO()).toBe(true);
  },
);

test("or not at all: what was begun leaves nothing, and no empty store", async () => {
  const failing = restoreSqlite(path, false, async ({ unpackedPath }) => {
    copyFileSync(backup, unpackedPath);
    throw new Error("enough");
  });
  expect(await failing.catch((error) => error)).toMatchObject({ message: "enough" });
  expect(readdirSync(join(folder.path, "data"))).toEqual(["plants.db-serving"]);
});

test("again after a power cut in the middle, from which no half of a store is served", async () => {
  await openWith(path, "old").close();
  linkSync(path, `${path}.before-the-cut`);
  expect(() => openSqlite(path, { isServing: true })).toThrow("several names");
  await restore(true);
  expect(await namesIn(path)).toEqual(["new"]);
});

test.each([
  ["before its log was moved", []],
  ["behind that", ["-wal"]],
])("again after a kill %s: the older store is kept whole, under one name", async (_, moved) => {
  await layCrashed();
  touch(`${path}-shm`);
  const keptPath = `${path}.before-2026-07-01T12-00-00.000Z`;
  linkSync(path, keptPath);
  for (const suffix of moved) renameSync(path + suffix, keptPath + suffix);
  expect(await restore(true)).toBe(keptPath);
  expect(await namesIn(path)).toEqual(["new"]);
  expect(await namesIn(keptPath)).toEqual(["old"]);
});

test("or not at all: commands that use the older file go on to share its index", async () => {
  const command = openWith(path, "old");
  const { ino } = statSync(`${path}-shm`);
  const failing = restoreSqlite(path, true, ({ unpackedPath, fill }) => {
    // Which cannot take the name of a file.
    mkdirSync(unpackedPath);
    return fill(tally, signal);
  });
  expect(await failing.catch((error) => error)).toMatchObject({ code: "unavailable" });
  expect(statSync(`${path}-shm`).ino).toBe(ino);
  const kept = (await restore(true)) ?? "";
  expect(statSync(`${kept}-shm`).ino).toBe(ino);
  expect(existsSync(`${path}-shm`)).toBe(false);
  await command.close();
  expect(await namesIn(path)).toEqual(["new"]);
  expect(await namesIn(kept)).toEqual(["old"]);
});

/** Does what a restoration would, once somebody who opens the file has come so far. */
function interrupt(method: "run" | "close", isMoment: (sql?: string) => boolean, step: () => void) {
  const original = Database.prototype[method] as (...values: unknown[]) => never;
  const spy = spyOn(Database.prototype, method).mockImplementation(function (
    this: Database,
    ...values: unknown[]
  ) {
    const result = original.apply(this, values);
    if (isMoment(values[0] as string)) {
      spy.mockRestore();
      step();
    }
    return result;
  });
}

test("a command that looked at the older file before it had two names leaves no log of it", async () => {
  await openWith(path, "old").close();
  interrupt(
    "close",
    () => true,
    () => linkSync(path, `${path}.before-now`),
  );
  expect(() => openSqlite(path, { isServing: false })).toThrow("several names");
  renameSync(backup, path);
  expect(existsSync(`${path}-wal`)).toBe(false);
  expect(await namesIn(path)).toEqual(["new"]);
});

test("no backup is made of the older file while it is cut off from its log", async () => {
  await layCrashed();
  interrupt(
    "run",
    (sql) => sql === "PRAGMA foreign_keys = ON",
    () => {
      linkSync(path, `${path}.before-now`);
      renameSync(`${path}-wal`, `${path}.before-now-wal`);
    },
  );
  const copying = copySqlite(path, touch(join(folder.path, "copy.db")), async () => {});
  expect(await copying.catch((error) => error.message)).toContain("several names");
});

test("a service does not begin on a file that is replaced while it opens it", async () => {
  await openWith(path, "old").close();
  interrupt(
    "run",
    (sql) => sql === "BEGIN EXCLUSIVE",
    () =>
      interrupt(
        "run",
        (sql) => sql === "PRAGMA foreign_keys = ON",
        () => renameSync(backup, path),
      ),
  );
  expect(() => openSqlite(path, { isServing: true })).toThrow("taken its place");
  expect(await namesIn(path)).toEqual(["new"]);
});

test("a service that waited for it, and then finds it cut off, does not begin", async () => {
  await openWith(path, "old").close();
  interrupt(
    "run",
    (sql) => sql === "BEGIN EXCLUSIVE",
    () => linkSync(path, `${path}.before-now`),
  );
  expect(() => openSqlite(path, { isServing: true })).toThrow("several names");
});

test("a service that began to start before it ended serves what was restored", async () => {
  await openWith(path, "old").close();
  // The service has looked at the older file, and gets the lock once the restoration lets it go.
  const run = Database.prototype.run;
  const spy = spyOn(Database.prototype, "run").mockImplementation(function (this: Database, sql) {
    if (sql === "BEGIN EXCLUSIVE") renameSync(backup, path);
    return run.call(this, sql);
  });
  const storage = openSqlite(path, { isServing: true });
  spy.mockRestore();
  expect(await storage.list("home", undefined, 9)).toMatchObject([{ name: "new" }]);
  await storage.ping();
  await storage.close();
});
