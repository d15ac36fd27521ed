/** The real program makes and restores backups, and is stopped, killed and short of room. */
import {
  afterAll,
  afterEach,
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
import { countPlants, fillStore as fill, readPlants } from "../filled-store.ts";
import { makeDatabase } from "../postgres-server.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import {
  type Finished,
  readOutput,
  realProgram,
  runProgram,
  spawnProgram,
  startService,
  waitFor,
} from "./running-service.ts";

/** Each command is a process of its own, and a test runs several. */
setDefaultTimeout(120_000);

const sources = makeTemporaryFolder();
/** Takes long enough to be interrupted. */
const large = join(sources.path, "large.db");
const small = join(sources.path, "small.db");
await fill(large, 30_000);
await fill(small, 900);
await runProgram(["backup", join(sources.path, "small.backup"), "--database", small]);
const intact = readFileSync(join(sources.path, "small.backup"));

let folder: ReturnType<typeof makeTemporaryFolder>;
let file: string;
let backup: string;
let target: string;

beforeEach(() => {
  folder = makeTemporaryFolder();
  file = join(folder.path, "plants.db");
  backup = join(folder.path, "plants.backup");
  target = join(folder.path, "target.db");
});

afterEach(() => folder[Symbol.dispose]());
afterAll(() => sources[Symbol.dispose]());

const backUp = (database: string, ...flags: string[]) =>
  runProgram(["backup", backup, "--database", database, ...flags]);
const restore = (to: string, ...flags: string[]) =>
  runProgram(["restore", backup, ...flags], { PLANTSTORE_DATABASE: to });
const partials = () => readdirSync(folder.path).filter((name) => name.includes(".partial"));

test("reports what a backup holds, which only its owner can read, and replaces one with --force", async () => {
  await fill(file, 3);
  const made = await backUp(file);
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
  expect(await backUp(file, "--force")).toMatchObject({ exitCode: 0 });
  const checked = await runProgram(["restore", backup, "--dry-run"]);
  expect(JSON.parse(checked.out)).toMatchObject({ plants: 5, tokens: 0 });
});

test("a restore with --force keeps the old store, and says where", async () => {
  writeFileSync(backup, intact);
  await fill(file, 9);
  const restored = await restore(file, "--force");
  expect(restored).toMatchObject({ exitCode: 0, errors: "" });
  expect(await countPlants(file)).toBe(900);
  expect(await countPlants(JSON.parse(restored.out).kept)).toBe(9);
});

describe("a backup to standard output", () => {
  /** Runs it within a line of the shell, as "$@". */
  async function backUpInShell(line: string, database: string) {
    const command = [process.execPath, realProgram, "backup", "-", "--database", database];
    const child = Bun.spawn(["sh", "-c", line, backup, ...command], { stderr: "pipe" });
    return { exitCode: await child.exited, errors: await new Response(child.stderr).text() };
  }

  test("can be restored, on both engines, and says on standard error what it holds", async () => {
    await using database = await makeDatabase();
    await fill(database.url, 900);
    for (const from of [small, database.url]) {
      const made = await backUpInShell('"$@" > "$0"', from);
      expect(made.exitCode).toBe(0);
      expect(made.errors).toStartWith("Standard output: 900 plants and 0 tokens, as of ");
      const restored = await restore(target, "--force");
      expect(JSON.parse(restored.out)).toMatchObject({ plants: 900, tokens: 0 });
      expect(partials()).toEqual([]);
    }
  });

  test("ends with 141 when its reader goes away, and leaves nothing", async () => {
    copyFileSync(large, file);
    const cut = await backUpInShell('{ "$@"; echo $? >&2; } | head -c 9 > /dev/null', file);
    expect(cut.errors).toBe("141\n");
    expect(partials()).toEqual([]);
  });

  test("is stopped by Ctrl+C while nobody reads it, and leaves nothing", async () => {
    copyFileSync(large, file);
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
    const child = Bun.spawn([process.execPath, realProgram, "backup", "-", "--database", small], {
      terminal: { data: () => {} },
    });
    expect(await child.exited).toBe(2);
  });
});

test("a backup that is cut short, by a signal or a full disk, leaves the older one and the service", async () => {
  copyFileSync(large, file);
  writeFileSync(backup, intact);
  await using service = await startService({ database: file });
  const args = ["backup", backup, "--database", file, "--force"];
  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    await using child = spawnProgram(args);
    await waitFor(() => (partials().length > 0 ? true : undefined));
    child.kill(signal);
    const errors = await new Response(child.stderr).text();
    await child.exited;
    // A fast machine may have been done by then.
    if (child.exitCode === 0) writeFileSync(backup, intact);
    expect(readFileSync(backup).equals(intact)).toBe(true);
    if (child.exitCode === 0 || signal === "SIGKILL") continue;
    expect(child.exitCode).toBe(130);
    expect(errors).toBe("plantstore: Stopped. Nothing was written.\n");
    expect(partials()).toEqual([]);
  }
  for (const name of partials()) rmSync(join(folder.path, name));

  // Blocks of 512 bytes, far less than the backup takes.
  const limited = `trap '' XFSZ; ulimit -f 500; exec "$@"`;
  const child = Bun.spawn(["sh", "-c", limited, "sh", process.execPath, realProgram, ...args], {
    stderr: "pipe",
  });
  expect(await new Response(child.stderr).text()).toMatch(
    /^plantstore: Cannot write .+: there is no room for it\.\n$/,
  );
  expect(await child.exited).toBe(1);
  expect(readFileSync(backup).equals(intact)).toBe(true);
  expect(partials()).toEqual([]);
  const created = await service.call("POST /plants", { body: '{"name":"Moss"}' });
  expect(created.status).toBe(201);
});

describe("in PostgreSQL nothing is left, and it can be run again, after", () => {
  test.each([
    ["a restore that is killed", () => ["restore", backup, "--database"], "SIGKILL"],
    ["a copy that is stopped", () => ["copy", "--from", large, "--to"], "SIGINT"],
  ] as const)("%s", async (_, makeArguments, signal) => {
    writeFileSync(backup, intact);
    await using database = await makeDatabase();
    await fill(database.url, 0);
    // It gets no further than to its first plants.
    const intruder = new Client(database.url);
    await intruder.connect();
    await intruder.query("BEGIN; LOCK TABLE plants IN SHARE MODE");
    const watcher = new Client(database.url);
    await watcher.connect();
    await using child = spawnProgram([...makeArguments(), database.url]);
    await waitFor(
      async () => {
        const { rows } = await watcher.query(
          `SELECT 1 FROM pg_stat_activity WHERE datname = current_database()
             AND wait_event_type = 'Lock' AND query LIKE '%INTO plants (%'`,
        );
        return rows[0];
      },
      () => child.exitCode !== null && `It ended with ${child.exitCode}.`,
    );
    await watcher.end();
    child.kill(signal);
    if (signal === "SIGKILL") await child.exited;
    await intruder.end();
    const { exitCode, errors } = await readOutput(child);
    const stopped = [130, "plantstore: Stopped. Nothing was changed.\n"];
    expect([exitCode, errors]).toEqual(signal === "SIGINT" ? stopped : [137, ""]);
    expect(await countPlants(database.url)).toBe(0);
    expect(await restore(database.url)).toMatchObject({ exitCode: 0 });
    expect(await countPlants(database.url)).toBe(900);
  });
});

describe("a backup is refused in one line, and nothing is touched, if it", () => {
  const flip = (share: number) => () => {
    const bytes = Buffer.from(intact);
    const at = Math.floor(bytes.length * share);
    bytes.writeUInt8(bytes.readUInt8(at) ^ 4, at);
    return bytes;
  };
  /** The store after that statement, compressed as a backup is. */
  const altered = (sql: string) => () => {
    copyFileSync(small, file);
    const database = connect(file);
    database.run(sql);
    database.close();
    return Bun.gzipSync(readFileSync(file));
  };
  /** A store whose header counts that many pages, and then 1 GiB of zeros. */
  const endless = (pages?: number) => () => {
    const store = readFileSync(small);
    const pagesAt = 28;
    if (pages !== undefined) store.writeUInt32BE(pages, pagesAt);
    const zeros = Bun.gzipSync(Buffer.alloc(2 ** 24));
    return Buffer.concat([Bun.gzipSync(store), ...Array(64).fill(zeros)]);
  };
  const spy = `CREATE TRIGGER spy AFTER INSERT ON plants WHEN new.garden <> 'spy'
    BEGIN INSERT INTO plants VALUES ('spy', new.id, new.name, new.tag); END`;
  const spyFound = 'it has the trigger "spy", which Plant Store doesn\'t create';

  test.each<[what: string, reason: string, make: () => Uint8Array]>([
    ["has a changed bit in the middle", "it is damaged", flip(0.5)],
    ["has another header", "not a backup", flip(0)],
    ["is cut short", "cut short", () => intact.subarray(0, -10)],
    ["has something after it", "it is damaged", () => Buffer.concat([intact, Buffer.from("x")])],
    ["is not compressed", "it is a store itself, not a backup", () => readFileSync(small)],
    ["is newer", "its schema is 99, and this version knows", altered("PRAGMA user_version = 99")],
    ["is of 0.5", "upgrade to 1.0 first", altered("PRAGMA user_version = 3")],
    ["is of another program", "not a backup", altered("PRAGMA application_id = 1")],
    [
      "is of a corrupt store",
      "it is corrupt",
      () => Bun.gzipSync(readFileSync(small).fill(0xff, 4_096 * 2, 4_096 * 3)),
    ],
    ["has a trigger that copies plants to another garden", spyFound, altered(spy)],
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
    ["unpacks to more than its own header says", "it is damaged: it is too long", endless()],
    ["unpacks to more than there is room for", "it needs 17592.2 GB, and", endless(2 ** 32 - 2)],
  ])("%s", async (_, reason, make) => {
    writeFileSync(backup, make());
    copyFileSync(small, target);
    expectRefusal(await restore(target, "--force"), reason);
    expect(readFileSync(target).equals(readFileSync(small))).toBe(true);
    expect(partials()).toEqual([]);
  });

  test("would copy plants to another garden in PostgreSQL; nor is such a backup made", async () => {
    writeFileSync(backup, altered(spy)());
    await using database = await makeDatabase();
    expectRefusal(await restore(database.url), spyFound);
    rmSync(backup);
    const failed = await backUp(file);
    expect(failed).toMatchObject({ exitCode: 1, out: "" });
    expect(failed.errors).toContain(spyFound);
    expect([existsSync(backup), ...partials()]).toEqual([false]);
  });

  function expectRefusal(refused: Finished, reason: string): void {
    expect(refused).toMatchObject({ exitCode: 1, out: "" });
    expect(refused.errors).toMatch(/^plantstore: Cannot restore .+\.\n$/);
    expect(refused.errors).toContain(reason);
  }
});

test("a store with indexes of its operator can be backed up and copied, without them", async () => {
  copyFileSync(small, file);
  const store = connect(file);
  store.run('CREATE INDEX "by ""name" ON plants (name)');
  store.run("CREATE INDEX late ON tokens (last_used_at_ms) WHERE note <> ''");
  store.close();
  expect(await backUp(file)).toMatchObject({ exitCode: 0, errors: "" });
  const copied = join(folder.path, "copied.db");
  const copying = await runProgram(["copy", "--from", file, "--to", copied]);
  expect(copying).toMatchObject({ exitCode: 0, errors: "" });
  expect(await restore(target, "--force")).toMatchObject({ exitCode: 0 });
  expect(await readPlants(target)).toEqual(await readPlants(file));
  expect(await readPlants(copied)).toEqual(await readPlants(file));
});

test("a backup of a corrupt store fails, and leaves nothing", async () => {
  writeFileSync(file, readFileSync(small).fill(0xff, 4_096 * 2));
  const failed = await backUp(file);
  expect(failed).toMatchObject({ exitCode: 1, out: "" });
  expect(failed.errors).toContain("corrupt");
  expect([existsSync(backup), ...partials()]).toEqual([false]);
});
