/** `plantstore backup` and `restore` of a SQLite store, and `copy` to PostgreSQL. */
import { Database } from "bun:sqlite";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import {
  copyFileSync,
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
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
import { makeDatabase, serverPassword, type TestDatabase } from "../../testing/postgres-server.ts";
import { makeToken, realProgram, serveHere, waitFor } from "../../testing/running-service.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";
import { create } from "../../testing/tested-storage.ts";

const sources = makeTemporaryFolder();
const storeOf900Plants = join(sources.path, "small.db");
await fillStore(storeOf900Plants, 900);

/** A folder of its own for each test: a store goes to `file`, and its backup to `backup`. */
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

const makeBackup = () => runInProcess(["backup", backup, "--database", file]);
const restore = (from: string) => runInProcess(["restore", from, "--database", file]);
const listFolder = () => readdirSync(folder.path).toSorted();

/** Runs the real program where no file may grow beyond this many blocks of 512 bytes. */
async function runWithFileLimit(blocks: number, ...args: readonly string[]) {
  const script = `trap '' XFSZ; ulimit -f ${blocks}; exec "$@"`;
  const child = Bun.spawn(["sh", "-c", script, "sh", process.execPath, realProgram, ...args], {
    stderr: "pipe",
  });
  return { exitCode: await child.exited, errors: await child.stderr.text() };
}

describe("a backup", () => {
  test("is a whole SQLite file with all plants", async () => {
    copyFileSync(storeOf900Plants, file);

    await makeBackup();

    using database = new Database(backup, { readonly: true });
    expect(database.query("PRAGMA integrity_check").values()).toEqual([["ok"]]);
    expect(database.query("SELECT count(*) FROM plants").values()).toEqual([[900]]);
  });

  test("reports its file and what is in it, and leaves no other file", async () => {
    copyFileSync(storeOf900Plants, file);

    const { exitCode, out, errors } = await makeBackup();

    expect(exitCode).toBe(0);
    expect(JSON.parse(out)).toEqual({ file: backup, plants: 900, tokens: 0 });
    expect(errors).toBe("");
    expect(listFolder()).toEqual(["backup.db", "plants.db"]);
  });

  test("can be read by its owner only, whatever the umask", async () => {
    copyFileSync(storeOf900Plants, file);

    const mask = process.umask(0);
    await makeBackup();
    process.umask(mask);

    expect(statSync(backup).mode & 0o777).toBe(0o600);
  });

  test("under load is of one moment, with all that was confirmed before it", async () => {
    await using service = await serveHere({ database: file });
    let written = 0;
    let isDone = false;
    // One after the other, so that the plants of any moment are the first ones.
    async function writePlants(): Promise<void> {
      while (!isDone) {
        const body = JSON.stringify({ id: written + 1, name: "Fern" });
        expect((await service.call("POST /plants", { body })).status).toBe(201);
        written++;
      }
    }
    const writing = writePlants();
    await waitFor(() => written >= 10 || undefined);

    const confirmedBefore = written;
    const { plants, tokens } = JSON.parse((await makeBackup()).out);
    isDone = true;
    await writing;

    expect(tokens).toBe(1);
    expect(plants).toBeGreaterThanOrEqual(confirmedBefore);
    expect(plants).toBeLessThanOrEqual(written);
    const ids = (await readPlants(backup, "gardener")).map(({ id }) => Number(id));
    expect(ids).toEqual(Array.from({ length: plants }, (_, index) => index + 1));
  });

  const obstacles = [
    { name: "a file", appear: () => writeFileSync(backup, "precious") },
    { name: "a dangling link", appear: () => symlinkSync("precious", backup) },
  ];

  for (const { name, appear } of obstacles) {
    test(`never replaces ${name} that was there before`, async () => {
      copyFileSync(storeOf900Plants, file);
      appear();
      const inode = lstatSync(backup).ino;

      expect(await makeBackup()).toEqual({
        exitCode: 1,
        out: "",
        errors: `plantstore: ${backup} exists already.\n`,
      });
      expect(lstatSync(backup).ino).toBe(inode);
      expect(listFolder()).toEqual(["backup.db", "plants.db"]);
    });

    test(`never replaces ${name} that appears while it runs`, async () => {
      copyFileSync(storeOf900Plants, file);
      const making = makeBackup();
      await waitFor(() => listFolder().some((each) => each.endsWith(".partial")) || undefined);
      appear();
      const inode = lstatSync(backup).ino;

      expect(await making).toEqual({
        exitCode: 1,
        out: "",
        errors: `plantstore: ${backup} exists already.\n`,
      });
      expect(lstatSync(backup).ino).toBe(inode);
      expect(listFolder()).toEqual(["backup.db", "plants.db"]);
    });
  }

  test("that is short of room leaves no file, and the service goes on", async () => {
    copyFileSync(storeOf900Plants, file);
    await using service = await serveHere({ database: file });

    // Less than the backup takes.
    const short = await runWithFileLimit(100, "backup", backup, "--database", file);

    expect(short.exitCode).toBe(1);
    expect(short.errors).toBe(`plantstore: There is no room for a copy in ${folder.path}.\n`);
    expect(listFolder().filter((name) => name.startsWith("backup"))).toEqual([]);
    const created = await service.call("POST /plants", { body: '{"name":"Moss"}' });
    expect(created.status).toBe(201);
  });
});

describe("a restore", () => {
  /** A store as a crash leaves it: its one plant and its one token are only in the log. */
  async function makeCrashedStore(): Promise<void> {
    const running = join(folder.path, "running.db");
    const storage = await openStorage(running, { isServing: false });
    await issueToken(storage, { user: "ada" }, 0);
    await storage.apply([create()]);
    copyFileSync(running, file);
    copyFileSync(`${running}-wal`, `${file}-wal`);
    await storage.close();
    rmSync(running);
    expect(statSync(`${file}-wal`).size).toBeGreaterThan(0);
  }

  const listLogs = () => listFolder().filter((name) => /-(?:wal|shm|journal)$/.test(name));

  test("replaces the store and its log with the backup", async () => {
    await makeCrashedStore();

    const { exitCode, out, errors } = await restore(storeOf900Plants);

    expect(exitCode).toBe(0);
    expect(JSON.parse(out)).toEqual({ plants: 900, tokens: 0, kept: expect.any(String) });
    expect(errors).toBe("");
    expect(await countPlants(file)).toBe(900);
    expect(listLogs()).toEqual([]);
  });

  test("makes a store that only its owner can read", async () => {
    await makeCrashedStore();

    await restore(storeOf900Plants);

    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  test("keeps the old store with what its log held, so that it can be undone", async () => {
    await makeCrashedStore();
    const { kept } = JSON.parse((await restore(storeOf900Plants)).out);

    const undone = await restore(kept);

    expect(JSON.parse(undone.out)).toMatchObject({ plants: 1, tokens: 1 });
    expect(await countPlants(file)).toBe(1);
    expect(listLogs()).toEqual([]);
  });

  test("replaces a file that is corrupt, and keeps it", async () => {
    writeFileSync(file, "garbage");

    const { kept } = JSON.parse((await restore(storeOf900Plants)).out);

    expect(await countPlants(file)).toBe(900);
    expect(readFileSync(kept, "utf8")).toBe("garbage");
  });

  test("doesn't apply the log of a file that was lost", async () => {
    await makeCrashedStore();
    rmSync(file);

    const { out } = await restore(storeOf900Plants);

    expect(JSON.parse(out)).toEqual({ plants: 900, tokens: 0 });
    expect(existsSync(`${file}-wal`)).toBe(false);
    expect(await countPlants(file)).toBe(900);
  });

  test("of a store that another program has locked changes nothing", async () => {
    await makeCrashedStore();
    {
      using otherProgram = new Database(file);
      otherProgram.run("PRAGMA locking_mode = EXCLUSIVE");
      otherProgram.run("BEGIN IMMEDIATE");

      expect(await restore(storeOf900Plants)).toEqual({
        exitCode: 1,
        out: "",
        errors: `plantstore: Cannot open ${file}: another program is using it (try again).\n`,
      });
    }
    expect(await countPlants(file)).toBe(1);
  });

  async function makeStoreWithLongGardenNames(): Promise<void> {
    const storage = await openStorage(file, { isServing: false });
    const gardens = Array.from({ length: 1_000 }, (_, index) => `${index}`.padEnd(250, "x"));
    await storage.apply(gardens.map((garden) => create({ garden })));
    await storage.close();
  }

  test("that is short of room for the gardens of the old store changes nothing", async () => {
    await makeStoreWithLongGardenNames();

    // Enough for the backup, not for the gardens.
    const short = await runWithFileLimit(300, "restore", storeOf900Plants, "--database", file);

    expect(short.exitCode).toBe(1);
    expect(short.errors).toBe(
      `plantstore: Cannot open ${file}: the disk reports an error, or is full.\n`,
    );
    // None of the backup's plants, which are in the garden "home".
    expect(await countPlants(file)).toBe(0);
    expect(listFolder()).toEqual(["plants.db", "plants.db-serving"]);
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

describe("a copy of a store in PostgreSQL", () => {
  const createFern = {
    body: '{"name":"Farn \u{1f33f}","tag":"é"}',
    headers: { "Idempotency-Key": "k" },
  };
  const createWithIds = {
    body: `[
      {"name":"9007199254740993","id":9007199254740993},
      {"name":"-9223372036854775808","id":-9223372036854775808},
      {"name":"9223372036854775807","id":9223372036854775807},
      {"name":"-5","id":-5}
    ]`,
    headers: { "Idempotency-Key": "k" },
  };

  const sourceFolder = makeTemporaryFolder();
  const source = join(sourceFolder.path, "plants.db");
  let database: TestDatabase;
  let token: string;
  let copied: Awaited<ReturnType<typeof runInProcess>>;
  let contentsOfSource: Awaited<ReturnType<typeof readAll>>;
  let contentsOfCopy: typeof contentsOfSource;
  /** It serves the copy. */
  let service: Awaited<ReturnType<typeof serveHere>>;

  /** Seven events: five plants that stay, and one that is added and deleted. */
  async function fillSource(): Promise<void> {
    await using sourceService = await serveHere({ database: source });
    token = sourceService.token;
    await sourceService.call("POST /plants", createFern);
    await sourceService.call("POST /plants/bulk", createWithIds);
    await sourceService.call("POST /plants", { body: '{"name":"short-lived"}' });
    await sourceService.call("DELETE /plants/2");
    await makeToken(sourceService, "bob", "--garden", "Gärten \u{1f33f}", "--scope", "read");
  }

  beforeAll(async () => {
    database = await makeDatabase();
    await fillSource();
    copied = await runInProcess(["copy", source, database.url]);
    contentsOfSource = await readAll(source);
    contentsOfCopy = await readAll(database.url);
    service = await serveHere({ database: database.url });
  });

  afterAll(async () => {
    await service[Symbol.asyncDispose]();
    await database.drop();
    sourceFolder[Symbol.dispose]();
  });

  test("is reported with its counts, and without the server's password", () => {
    expect(copied.exitCode).toBe(0);
    expect(JSON.parse(copied.out)).toEqual({ plants: 5, tokens: 2 });
    expect(copied.out).not.toContain(serverPassword);
    expect(copied.errors).toBe("");
  });

  test("has the same tokens, plants and events", () => {
    expect(contentsOfCopy).toEqual(contentsOfSource);
    expect(contentsOfCopy.plants).toHaveLength(5);
  });

  test("lists a later token after the copied ones", async () => {
    await makeToken({ database: database.url }, "0");

    const users = (await readAll(database.url)).tokens.map(({ user }) => user);
    expect(users.slice(0, 2)).toEqual(["gardener", "bob"]);
    expect(users.at(-1)).toBe("0");
  });

  test("recognizes a request that was sent to the original", async () => {
    const again = await service.call("POST /plants", { ...createFern, token });

    expect(again.headers.get("idempotency-replayed")).toBe("true");
  });

  test("recognizes a bulk that was sent to the original", async () => {
    const again = await service.call("POST /plants/bulk", { ...createWithIds, token });

    expect((await again.json()).at(-1)).toEqual({ status: 201, id: -5, replayed: true });
  });

  test("goes on with the next id and the next event", async () => {
    const created = await service.call("POST /plants", { body: '{"name":"next"}', token });

    expect(created.headers.get("location")).toBe("/plants/3");
    const events = await (await service.call("GET /events?after=7", { token })).json();
    expect(events).toMatchObject([{ seq: 8, plant: { id: 3, name: "next" } }]);
    const { plants } = await (await service.call("GET /me", { token })).json();
    expect(plants).toBe(6);
  });
});

describe("a copy to PostgreSQL", () => {
  /** Starts a copy that waits for a lock of its first plants, and has done so for a while. */
  async function startBlockedCopy(database: TestDatabase, ...flags: readonly string[]) {
    await fillStore(database.url, 0);
    const intruder = new Client(database.url);
    await intruder.connect();
    await intruder.query("BEGIN; LOCK TABLE plants IN SHARE MODE");
    const copying = runInProcess(["copy", file, database.url, ...flags]);
    await waitFor(async () => {
      const [found] = await database.query(
        `SELECT 1 FROM pg_stat_activity WHERE datname = current_database()
           AND wait_event_type = 'Lock' AND query LIKE '%INTO plants (%'
           AND now() - query_start > interval '200 ms'`,
      );
      return found;
    });
    return { copying, unblock: () => intruder.end() };
  }

  test("leaves nothing if it is interrupted, and can be run again", async () => {
    copyFileSync(storeOf900Plants, file);
    await using database = await makeDatabase();
    const { copying, unblock } = await startBlockedCopy(database);

    process.emit("SIGINT");

    expect(await copying).toEqual({
      exitCode: 130,
      out: "",
      errors: "plantstore: Stopped. Nothing was copied.\n",
    });
    await unblock();
    expect(await countPlants(database.url)).toBe(0);
    expect(await runInProcess(["copy", file, database.url])).toMatchObject({ exitCode: 0 });
    expect(await countPlants(database.url)).toBe(900);
  });

  test("may take longer than a request may", async () => {
    copyFileSync(storeOf900Plants, file);
    await using database = await makeDatabase();
    const requestLimit = ["--database-statement-timeout-ms", "100"];
    const { copying, unblock } = await startBlockedCopy(database, ...requestLimit);

    await unblock();

    expect(await copying).toMatchObject({ exitCode: 0, errors: "" });
    expect(await countPlants(database.url)).toBe(900);
  });

  test("that is interrupted while it connects doesn't say that the server is away", async () => {
    copyFileSync(storeOf900Plants, file);
    using silentServer = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: { open: () => void process.emit("SIGINT"), data() {} },
    });
    const url = `postgres://plants@127.0.0.1:${silentServer.port}/plants`;

    expect(await runInProcess(["copy", file, url, "--database-connect-timeout-ms", "300"])).toEqual(
      {
        exitCode: 130,
        out: "",
        errors: "plantstore: Stopped. Nothing was copied.\n",
      },
    );
  });
});
