/** The real program makes and restores backups, and is stopped, killed and short of room. */
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  setDefaultTimeout,
  test,
} from "bun:test";
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { connect } from "../../src/storage/sqlite/open.ts";
import { countPlants, fillStore as fill } from "../filled-store.ts";
import { makeDatabase, type TestDatabase } from "../postgres-server.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import {
  type Finished,
  realProgram,
  runProgram,
  spawnProgram,
  startService,
  waitFor,
} from "./running-service.ts";

/** Each command is a process of its own, and a test runs several. */
setDefaultTimeout(120_000);

let folder: ReturnType<typeof makeTemporaryFolder>;
let file: string;
let backup: string;
let empty: TestDatabase;

beforeAll(async () => {
  empty = await makeDatabase();
});
afterAll(() => empty.drop());

beforeEach(() => {
  folder = makeTemporaryFolder();
  file = join(folder.path, "plants.db");
  backup = join(folder.path, "plants.backup");
});

afterEach(() => folder[Symbol.dispose]());

const backupArguments = () => ["backup", backup, "--database", file];
const backUp = (...flags: string[]) => runProgram([...backupArguments(), ...flags]);
const restore = (to: string, ...flags: string[]) =>
  runProgram(["restore", backup, ...flags], { PLANTSTORE_DATABASE: to });
const partials = () => readdirSync(folder.path).filter((name) => name.includes(".partial"));

test("reports what a backup holds, which only its owner can read, and replaces one with --force", async () => {
  await fill(file, 3);
  const made = await backUp();
  expect(made).toMatchObject({ exitCode: 0, errors: "" });
  const summary = JSON.parse(made.out);
  expect(summary).toMatchObject({ file: backup, plants: 3, tokens: 0 });
  expect(statSync(backup)).toMatchObject({ size: summary.bytes });
  expect(statSync(backup).mode & 0o777).toBe(0o600);
  expect(partials()).toEqual([]);
  // It is a gzipped SQLite database with the time at which it was made.
  const bytes = readFileSync(backup);
  expect(bytes.readUInt32LE(4) * 1_000).toBe(Date.parse(summary.madeAt));
  expect(Buffer.from(Bun.gunzipSync(bytes)).toString("latin1")).toStartWith("SQLite format 3\0");

  await fill(file, 5);
  expect(await backUp("--force")).toMatchObject({ exitCode: 0 });
  const checked = await runProgram(["restore", backup, "--dry-run"]);
  expect(JSON.parse(checked.out)).toMatchObject({ plants: 5, tokens: 0 });
});

describe("a backup to standard output", () => {
  /** Runs it within a line of the shell, as "$@". */
  async function backUpInShell(line: string, database: string, more: readonly string[] = []) {
    const command = [process.execPath, realProgram, "backup", "-", "--database", database, ...more];
    const child = Bun.spawn(["sh", "-c", line, backup, ...command], { stderr: "pipe" });
    return { exitCode: await child.exited, errors: await new Response(child.stderr).text() };
  }

  test("can be restored, on both engines, and says on standard error what it holds", async () => {
    const database = await makeDatabase();
    for (const [to, from] of [file, database.url].entries()) {
      await fill(from, 3);
      const made = await backUpInShell('"$@" > "$0"', from);
      expect(made.exitCode).toBe(0);
      expect(made.errors).toMatch(
        /^Standard output: 3 plants and 0 tokens, as of [-\d]+ [\d:]+ (?:UTC|[-+][\d:]+)\.\n$/,
      );
      const restored = await restore(join(folder.path, `restored-${to}.db`));
      expect(JSON.parse(restored.out)).toMatchObject({ plants: 3, tokens: 0 });
      expect(partials()).toEqual([]);
    }
    const json = await backUpInShell('"$@" > "$0"', file, ["--json"]);
    expect(JSON.parse(json.errors)).toMatchObject({ file: "-", plants: 3, tokens: 0 });
    await database.drop();
  });

  test("ends with 141 when its reader goes away, and leaves nothing", async () => {
    await fill(file, 20_000);
    const cut = await backUpInShell('{ "$@"; echo $? >&2; } | head -c 9 > /dev/null', file);
    expect(cut.errors).toBe("141\n");
    expect(partials()).toEqual([]);
  });

  test("is stopped by Ctrl+C while nobody reads it, and leaves nothing", async () => {
    await fill(file, 60_000);
    await using child = spawnProgram(["backup", "-", "--database", file]);
    const reader = child.stdout.getReader();
    await reader.read();
    child.kill("SIGINT");
    expect(await child.exited).toBe(130);
    const errors = await new Response(child.stderr).text();
    expect(errors).toBe("plantstore: Stopped. What was written is incomplete.\n");
    expect(partials()).toEqual([]);
  });

  test("is not shown at a terminal", async () => {
    await fill(file, 3);
    const child = Bun.spawn([process.execPath, realProgram, "backup", "-", "--database", file], {
      terminal: { data: () => {} },
    });
    expect(await child.exited).toBe(2);
  });
});

test("a restore with --force keeps the old store, and says where", async () => {
  await fill(file, 3);
  await backUp();
  await fill(file, 9);
  const restored = await restore(file, "--force");
  expect(restored).toMatchObject({ exitCode: 0, errors: "" });
  expect(await countPlants(file)).toBe(3);
  expect(await countPlants(JSON.parse(restored.out).kept)).toBe(9);
});

describe("a backup that is cut short", () => {
  test("by a signal leaves the older one, and the service", async () => {
    await fill(file, 60_000);
    await backUp();
    const older = readFileSync(backup);
    await using service = await startService({ database: file });
    for (const signal of ["SIGTERM", "SIGKILL"] as const) {
      await using child = spawnProgram([...backupArguments(), "--force"]);
      await waitFor(() => (partials().length > 0 ? true : undefined));
      child.kill(signal);
      const errors = await new Response(child.stderr).text();
      await child.exited;
      // A fast machine may have been done by then.
      if (child.exitCode === 0) return;
      expect(readFileSync(backup).equals(older)).toBe(true);
      if (signal === "SIGKILL") continue;
      expect(child.exitCode).toBe(130);
      expect(errors).toBe("plantstore: Stopped. Nothing was written.\n");
      expect(partials()).toEqual([]);
    }
    const created = await service.call("POST /plants", { body: '{"name":"Moss"}' });
    expect(created.status).toBe(201);
  });

  test("by a full disk leaves nothing, and the service", async () => {
    await fill(file, 20_000);
    await using service = await startService({ database: file });
    // Blocks of 512 bytes, far less than the backup takes.
    const limited = `trap '' XFSZ; ulimit -f 500; exec "$@"`;
    const child = Bun.spawn(
      ["sh", "-c", limited, "sh", process.execPath, realProgram, ...backupArguments()],
      { stdout: "pipe", stderr: "pipe" },
    );
    const errors = await new Response(child.stderr).text();
    expect(await child.exited).toBe(1);
    expect(errors).toMatch(/^plantstore: Cannot write .+: there is no room for it\.\n$/);
    expect(existsSync(backup)).toBe(false);
    expect(partials()).toEqual([]);
    const created = await service.call("POST /plants", { body: '{"name":"Moss"}' });
    expect(created.status).toBe(201);
  });
});

test("a restoration into PostgreSQL that is killed leaves nothing, and can be run again", async () => {
  const plants = 2_000;
  await fill(file, plants);
  await backUp();
  const database = await makeDatabase();
  await fill(database.url, 0);
  // It gets no further than to its first plants.
  const intruder = new Client(database.url);
  await intruder.connect();
  await intruder.query("BEGIN; LOCK TABLE plants IN SHARE MODE");
  await using child = spawnProgram(["restore", backup], { PLANTSTORE_DATABASE: database.url });
  await waitFor(async () => {
    const [busy] = await database.query(
      `SELECT 1 FROM pg_stat_activity WHERE datname = current_database()
         AND wait_event_type = 'Lock' AND query LIKE '%INTO plants (%'`,
    );
    return busy;
  });
  child.kill("SIGKILL");
  await child.exited;
  await intruder.end();
  expect(await countPlants(database.url)).toBe(0);
  expect(await restore(database.url)).toMatchObject({ exitCode: 0 });
  expect(await countPlants(database.url)).toBe(plants);
  await database.drop();
});

describe("a backup is refused in one line, and nothing is touched, if it", () => {
  const source = makeTemporaryFolder();
  const store = join(source.path, "plants.db");
  let intact: Buffer;

  beforeAll(async () => {
    await fill(store, 900);
    const made = join(source.path, "plants.backup");
    await runProgram(["backup", made, "--database", store]);
    intact = readFileSync(made);
  });
  afterAll(() => source[Symbol.dispose]());

  const flip = (share: number) => () => {
    const bytes = Buffer.from(intact);
    const at = Math.floor(bytes.length * share);
    bytes.writeUInt8(bytes.readUInt8(at) ^ 4, at);
    return bytes;
  };
  /** The store after that statement, compressed as a backup is. */
  const altered = (sql: string) => () => {
    copyFileSync(store, file);
    execute(file, sql);
    return Bun.gzipSync(readFileSync(file));
  };

  test.each<[what: string, reason: string, make: () => Uint8Array]>([
    ["has a changed bit in the middle", "it is damaged", flip(0.5)],
    ["has another header", "not a backup", flip(0)],
    ["is cut short", "cut short", () => intact.subarray(0, -10)],
    ["has something after it", "it is damaged", () => Buffer.concat([intact, Buffer.from("x")])],
    ["is empty", "not complete", () => Buffer.alloc(0)],
    ["is not compressed", "restore it with 0.5 first", () => readFileSync(store)],
    ["is newer", "its schema is 99, and this version knows", altered("PRAGMA user_version = 99")],
    [
      "is of 0.4",
      "its schema is 2, of a version before 0.5: upgrade to 0.5 first",
      altered("PRAGMA user_version = 2"),
    ],
    ["is of another program", "not a backup", altered("PRAGMA application_id = 1")],
    [
      "is of a corrupt store",
      "it is corrupt",
      () => Bun.gzipSync(readFileSync(store).fill(0xff, 4_096 * 2, 4_096 * 3)),
    ],
    ["has a view", 'it has the view "shown"', altered("CREATE VIEW shown AS SELECT * FROM tokens")],
    ["lacks an index", 'it lacks the index "plants_by_tag"', altered("DROP INDEX plants_by_tag")],
    [
      "has a table without its rules",
      'its table "tokens" differs from the one that Plant Store creates',
      altered(`ALTER TABLE tokens RENAME TO old;
       CREATE TABLE tokens (id TEXT, hash TEXT, user TEXT, garden TEXT, scope TEXT, note TEXT,
         created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms);
       DROP TABLE old`),
    ],
  ])("%s", async (_, reason, make) => {
    writeFileSync(backup, make());
    const target = join(folder.path, "target.db");
    await fill(target, 2);
    const before = readFileSync(target);
    expectRefusal(await restore(target, "--force"), reason);
    expect(readFileSync(target).equals(before)).toBe(true);
    expect(partials()).toEqual([]);
  });

  test("has a trigger that copies plants to another garden; nor is such a backup made", async () => {
    const trigger = `CREATE TRIGGER spy AFTER INSERT ON plants WHEN new.garden <> 'spy'
      BEGIN INSERT INTO plants VALUES ('spy', new.id, new.name, new.tag); END`;
    writeFileSync(backup, altered(trigger)());
    const reason = 'it has the trigger "spy", which Plant Store doesn\'t create';
    const target = join(folder.path, "target.db");
    for (const to of [target, empty.url]) expectRefusal(await restore(to), reason);
    expectRefusal(await restore(target, "--dry-run"), reason);
    expect([existsSync(target), ...partials()]).toEqual([false]);
    rmSync(backup);
    const failed = await backUp();
    expect(failed).toMatchObject({ exitCode: 1, out: "" });
    expect(failed.errors).toContain(reason);
    expect([existsSync(backup), ...partials()]).toEqual([false]);
  });

  function expectRefusal(refused: Finished, reason: string): void {
    expect(refused).toMatchObject({ exitCode: 1, out: "" });
    expect(refused.errors).toMatch(/^plantstore: Cannot restore .+\.\n$/);
    expect(refused.errors).toContain(reason);
  }
});

describe("a backup that unpacks to more than it should is refused at once:", () => {
  const pagesAt = 28;

  test.each<[what: string, pages: number | undefined, reason: string]>([
    ["more than its own header says", undefined, "it is damaged: it is too long"],
    ["more than there is room for", 2 ** 32 - 2, "it needs 17592.2 GB, and"],
  ])("%s", async (_, pages, reason) => {
    await fill(file, 3);
    const store = readFileSync(file);
    if (pages !== undefined) store.writeUInt32BE(pages, pagesAt);
    // 1 GiB of zeros.
    const zeros = Bun.gzipSync(Buffer.alloc(2 ** 24));
    writeFileSync(backup, Buffer.concat([Bun.gzipSync(store), ...Array(64).fill(zeros)]));
    for (const to of [join(folder.path, "target.db"), empty.url]) {
      const refused = await restore(to);
      expect(refused).toMatchObject({ exitCode: 1, out: "" });
      expect(refused.errors).toContain(reason);
    }
    expect(partials()).toEqual([]);
  });
});

function execute(path: string, sql: string): void {
  const database = connect(path);
  database.run(sql);
  database.close();
}

test("a backup of a corrupt store fails, and leaves nothing", async () => {
  await fill(file, 900);
  const bytes = readFileSync(file);
  writeFileSync(file, bytes.fill(0xff, 4_096 * 2));
  const failed = await backUp();
  expect(failed).toMatchObject({ exitCode: 1, out: "" });
  expect(failed.errors).toContain("corrupt");
  expect([existsSync(backup), ...partials()]).toEqual([false]);
});
