/** `plantstore backup` and `restore` of a SQLite store, and `copy` to PostgreSQL. */
import { Database } from "bun:sqlite";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  copyFileSync,
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { issueToken } from "../../src/auth/opaque-token.ts";
import { openStorage } from "../../src/storage/open.ts";
import { runInProcess } from "../../testing/command.ts";
import { countPlants, fillStore, readPlants } from "../../testing/filled-store.ts";
import { makeDatabase, serverPassword } from "../../testing/postgres-server.ts";
import { makeToken, realProgram, serveHere, waitFor } from "../../testing/running-service.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";
import { create } from "../../testing/tested-storage.ts";

const sources = makeTemporaryFolder();
const small = join(sources.path, "small.db");
await fillStore(small, 900);

let folder: ReturnType<typeof makeTemporaryFolder>;
let file: string;
let backup: string;

beforeEach(() => {
  folder = makeTemporaryFolder();
  file = join(folder.path, "plants.db");
  backup = join(folder.path, "backup.db");
});

afterEach(() => folder[Symbol.dispose]());
afterAll(() => sources[Symbol.dispose]());

const backUp = () => runInProcess(["backup", backup, "--database", file]);
const restore = (from = backup) => runInProcess(["restore", from, "--database", file]);

test("a backup is a whole SQLite file that only its owner can read", async () => {
  copyFileSync(small, file);
  const mask = process.umask(0);
  const made = await backUp();
  process.umask(mask);
  expect(made).toMatchObject({ exitCode: 0, errors: "" });
  expect(JSON.parse(made.out)).toEqual({ file: backup, plants: 900, tokens: 0 });
  expect(readdirSync(folder.path).toSorted()).toEqual(["backup.db", "plants.db"]);
  expect(statSync(backup).mode & 0o777).toBe(0o600);
  using database = new Database(backup, { readonly: true });
  expect(database.query("PRAGMA integrity_check").values()).toEqual([["ok"]]);
  expect(database.query("SELECT count(*) FROM plants").values()).toEqual([[900]]);
});

test("a backup under load is of one moment, with all that was confirmed before it", async () => {
  await using service = await serveHere({ database: file });
  let written = 0;
  let isDone = false;
  // One after the other, so that the plants of any moment are the first ones.
  const writing = (async () => {
    while (!isDone) {
      const body = JSON.stringify({ id: written + 1, name: "Fern" });
      expect((await service.call("POST /plants", { body })).status).toBe(201);
      written++;
    }
  })();
  await waitFor(() => written >= 10 || undefined);
  const confirmed = written;
  const { plants, tokens } = JSON.parse((await backUp()).out);
  isDone = true;
  await writing;
  expect([tokens, plants >= confirmed, plants <= written]).toEqual([1, true, true]);
  const ids = (await readPlants(backup, "gardener")).map(({ id }) => Number(id));
  expect(ids).toEqual(Array.from({ length: plants }, (_, index) => index + 1));
});

test.each([
  ["a file", () => writeFileSync(backup, "precious")],
  ["a link that leads nowhere", () => symlinkSync("precious", backup)],
])("a backup never replaces %s, even one that appears while it runs", async (_, appear) => {
  copyFileSync(small, file);
  const isUnderWay = () => readdirSync(folder.path).some((name) => name.endsWith(".partial"));
  const making = backUp();
  await waitFor(() => isUnderWay() || undefined);
  appear();
  const before = lstatSync(backup).ino;
  const errors = `plantstore: ${backup} exists already.\n`;
  expect(await making).toEqual({ exitCode: 1, out: "", errors });
  expect(lstatSync(backup).ino).toBe(before);
  expect(readdirSync(folder.path).toSorted()).toEqual(["backup.db", "plants.db"]);
  expect(await backUp()).toEqual({ exitCode: 1, out: "", errors });
});

test("a backup that is short of room has no name, and disturbs no service", async () => {
  copyFileSync(small, file);
  await using service = await serveHere({ database: file });
  // Blocks of 512 bytes, less than the backup takes.
  const line = `trap '' XFSZ; ulimit -f 100; exec "$@"`;
  const args = ["backup", backup, "--database", file];
  const short = Bun.spawn(["sh", "-c", line, "sh", process.execPath, realProgram, ...args], {
    stderr: "pipe",
  });
  const refusal = `plantstore: There is no room for a copy in ${folder.path}.\n`;
  expect([await short.exited, await short.stderr.text()]).toEqual([1, refusal]);
  expect(readdirSync(folder.path).filter((name) => name.startsWith("backup"))).toEqual([]);
  const created = await service.call("POST /plants", { body: '{"name":"Moss"}' });
  expect(created.status).toBe(201);
});

describe("a restore", () => {
  /** As a crash leaves it: the plant is only in the log. */
  async function layCrashed(): Promise<void> {
    const path = join(folder.path, "running.db");
    const storage = await openStorage(path, { isServing: false });
    await issueToken(storage, { user: "ada" }, 0);
    await storage.apply([create()]);
    for (const suffix of ["", "-wal"]) copyFileSync(path + suffix, file + suffix);
    await storage.close();
    rmSync(path);
    expect(statSync(`${file}-wal`).size).toBeGreaterThan(0);
  }
  const logs = () => readdirSync(folder.path).filter((name) => /-(?:wal|shm|journal)$/.test(name));

  test("keeps the old store as one file with what its log held, and can be undone", async () => {
    await layCrashed();
    const first = await restore(small);
    expect(first).toMatchObject({ exitCode: 0, errors: "" });
    const { kept, ...contents } = JSON.parse(first.out);
    expect(contents).toEqual({ plants: 900, tokens: 0 });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect([await countPlants(file), logs()]).toEqual([900, []]);
    expect(JSON.parse((await restore(kept)).out)).toMatchObject({ plants: 1, tokens: 1 });
    expect(logs()).toEqual([]);
  });

  test("replaces a file that is corrupt, and keeps it", async () => {
    writeFileSync(file, "garbage");
    const { kept } = JSON.parse((await restore(small)).out);
    expect(await countPlants(file)).toBe(900);
    expect(readFileSync(kept, "utf8")).toBe("garbage");
  });

  test("of a store that another program has locked changes nothing", async () => {
    await layCrashed();
    {
      using other = new Database(file);
      other.run("PRAGMA locking_mode = EXCLUSIVE");
      other.run("BEGIN IMMEDIATE");
      const errors = `plantstore: Cannot open ${file}: another program is using it (try again).\n`;
      expect(await restore(small)).toEqual({ exitCode: 1, out: "", errors });
    }
    expect(await countPlants(file)).toBe(1);
  });

  async function layGardensWithLongNames(): Promise<void> {
    const storage = await openStorage(file, { isServing: false });
    const gardens = Array.from({ length: 1_000 }, (_, index) => `${index}`.padEnd(250, "x"));
    await storage.apply(gardens.map((garden) => create({ garden })));
    await storage.close();
  }

  test("that is short of room for the gardens of the old store changes nothing", async () => {
    await layGardensWithLongNames();
    // Blocks of 512 bytes: enough for the backup, not for the gardens.
    const line = `trap '' XFSZ; ulimit -f 300; exec "$@"`;
    const args = ["restore", small, "--database", file];
    const short = Bun.spawn(["sh", "-c", line, "sh", process.execPath, realProgram, ...args], {
      stderr: "pipe",
    });
    const reason = "the disk reports an error, or is full";
    const refusal = `plantstore: Cannot open ${file}: ${reason}.\n`;
    expect([await short.exited, await short.stderr.text()]).toEqual([1, refusal]);
    expect(await countPlants(file)).toBe(0);
    expect(readdirSync(folder.path).toSorted()).toEqual(["plants.db", "plants.db-serving"]);
  });

  test("doesn't apply the log of a file that was lost", async () => {
    await layCrashed();
    renameSync(file, backup);
    expect(JSON.parse((await restore(small)).out)).toEqual({ plants: 900, tokens: 0 });
    expect(existsSync(`${file}-wal`)).toBe(false);
    expect(await countPlants(file)).toBe(900);
  });
});

/** Tokens of the same moment are listed in the order in which they were made. */
async function readAll(address: string) {
  const storage = await openStorage(address, { isServing: false });
  const tokens = await storage.listTokens();
  const plants = await storage.list("gardener", undefined, 1_000);
  const events = await storage.readEvents("gardener", undefined, 1_000, 1_000_000);
  await storage.close();
  return { tokens, plants, events };
}

test("a store goes to PostgreSQL, and tokens, keys, ids and events go on", async () => {
  await using database = await makeDatabase();
  const fern = { body: '{"name":"Farn \u{1f33f}","tag":"é"}', headers: { "Idempotency-Key": "k" } };
  const ids = ["9007199254740993", "-9223372036854775808", "9223372036854775807", "-5"];
  const drafts = ids.map((id) => `{"name":"${id}","id":${id}}`);
  const bulk = { body: `[${drafts}]`, headers: { "Idempotency-Key": "k" } };
  let token = "";
  {
    await using service = await serveHere({ database: file });
    token = service.token;
    await service.call("POST /plants", fern);
    await service.call("POST /plants/bulk", bulk);
    await service.call("POST /plants", { body: '{"name":"short-lived"}' });
    await service.call("DELETE /plants/2");
    await makeToken(service, "bob", "--garden", "Gärten \u{1f33f}", "--scope", "read");
  }
  const copied = await runInProcess(["copy", file, database.url]);
  expect(copied).toMatchObject({ exitCode: 0, errors: "" });
  expect(JSON.parse(copied.out)).toEqual({ plants: 5, tokens: 2 });
  expect(copied.out).not.toContain(serverPassword);
  expect(await readAll(database.url)).toEqual(await readAll(file));
  // A later token comes after the copied ones.
  await makeToken({ database: database.url }, "0");
  const { tokens } = await readAll(database.url);
  expect(tokens.map(({ user }) => user)).toEqual(["gardener", "bob", "0"]);

  await using service = await serveHere({ database: database.url });
  const again = await service.call("POST /plants", { ...fern, token });
  expect(again.headers.get("idempotency-replayed")).toBe("true");
  const bulkAgain = await service.call("POST /plants/bulk", { ...bulk, token });
  expect((await bulkAgain.json()).at(-1)).toEqual({ status: 201, id: -5, replayed: true });
  const next = await service.call("POST /plants", { body: '{"name":"next"}', token });
  expect(next.headers.get("location")).toBe("/plants/3");
  const events = await (await service.call("GET /events?after=7", { token })).json();
  expect(events).toMatchObject([{ seq: 8, plant: { id: 3, name: "next" } }]);
  const { plants } = await (await service.call("GET /me", { token })).json();
  expect(plants).toBe(6);
});

test("a copy that is interrupted leaves nothing, and can be run again", async () => {
  copyFileSync(small, file);
  await using database = await makeDatabase();
  await fillStore(database.url, 0);
  // It gets no further than to its first plants.
  const intruder = new Client(database.url);
  await intruder.connect();
  await intruder.query("BEGIN; LOCK TABLE plants IN SHARE MODE");
  // However short the time limit of requests is.
  const args = ["copy", file, database.url, "--database-statement-timeout-ms", "100"];
  const copying = runInProcess(args);
  await waitFor(async () => {
    const [found] = await database.query(
      `SELECT 1 FROM pg_stat_activity WHERE datname = current_database()
         AND wait_event_type = 'Lock' AND query LIKE '%INTO plants (%'
         AND now() - query_start > interval '200 ms'`,
    );
    return found;
  });
  process.emit("SIGINT");
  const errors = "plantstore: Stopped. Nothing was copied.\n";
  expect(await copying).toEqual({ exitCode: 130, out: "", errors });
  await intruder.end();
  expect(await countPlants(database.url)).toBe(0);
  expect(await runInProcess(["copy", file, database.url])).toMatchObject({ exitCode: 0 });
  expect(await countPlants(database.url)).toBe(900);
});

test("a copy that is interrupted while it connects says so, not that the server is away", async () => {
  copyFileSync(small, file);
  using silent = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: { open: () => void process.emit("SIGINT"), data() {} },
  });
  const url = `postgres://plants@127.0.0.1:${silent.port}/plants`;
  const args = ["copy", file, url, "--database-connect-timeout-ms", "300"];
  const errors = "plantstore: Stopped. Nothing was copied.\n";
  expect(await runInProcess(args)).toEqual({ exitCode: 130, out: "", errors });
});
