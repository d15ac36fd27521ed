/**
 * The real program makes and restores backups, and is stopped, killed, refused and short of room.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { openStorage } from "../../src/storage/open.ts";
import { seal } from "../../src/storage/sealed-file.ts";
import { connect } from "../../src/storage/sqlite/connection.ts";
import { makeDatabase } from "../postgres-server.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { realProgram, runProgram, spawnProgram, startService, waitFor } from "./running-service.ts";

let folder: ReturnType<typeof makeTemporaryFolder>;
let file: string;
let backup: string;

beforeEach(() => {
  folder = makeTemporaryFolder();
  file = join(folder.path, "plants.db");
  backup = join(folder.path, "plants.backup");
});

afterEach(() => folder[Symbol.dispose]());

async function fill(address: string, plants: number, name = "Fern"): Promise<void> {
  const storage = await openStorage(address, { isServing: false });
  const records = Array.from({ length: plants }, (_, index) => ({
    ...{ garden: "home", id: BigInt(index), name: `${name} ${index}`, tag: "" },
  }));
  await storage.transfer(0).add("plants", records);
  await storage.close();
}

async function countPlants(address: string): Promise<number> {
  const storage = await openStorage(address, { isServing: false, mustExist: true });
  const count = await storage.transfer(0).count("plants");
  await storage.close();
  return count;
}

const backUp = (...flags: string[]) => runProgram(["backup", backup, "--database", file, ...flags]);
const restore = (to: string, ...flags: string[]) =>
  runProgram(["restore", backup, ...flags], { PLANTSTORE_DATABASE: to });
const partials = () => readdirSync(folder.path).filter((name) => name.includes(".partial"));

test("says what a backup holds, which only its owner can read, and replaces one only if it is told to", async () => {
  await fill(file, 3);
  const made = await backUp();
  expect(made).toMatchObject({ exitCode: 0, errors: "" });
  const summary = JSON.parse(made.out);
  expect(summary).toMatchObject({ file: backup, plants: 3, tokens: 0 });
  expect(statSync(backup)).toMatchObject({ size: summary.bytes });
  expect(statSync(backup).mode & 0o777).toBe(0o600);
  expect(partials()).toEqual([]);

  const refused = await backUp();
  expect(refused).toMatchObject({ exitCode: 1, out: "" });
  expect(refused.errors).toMatch(
    /^plantstore: .+ is there already\. With --force it is replaced\.\n$/,
  );
  await fill(file, 5);
  expect(await backUp("--force")).toMatchObject({ exitCode: 0 });
  const checked = await runProgram(["restore", backup, "--dry-run"]);
  expect(JSON.parse(checked.out)).toMatchObject({ plants: 5, tokens: 0 });
});

test("keeps what was there before, and says where", async () => {
  await fill(file, 3);
  await backUp();
  await fill(file, 9);
  expect(await restore(file)).toMatchObject({ exitCode: 1, out: "" });
  const restored = await restore(file, "--force");
  expect(restored).toMatchObject({ exitCode: 0, errors: "" });
  expect(await countPlants(file)).toBe(3);
  expect(await countPlants(JSON.parse(restored.out).kept)).toBe(9);
});

describe("a backup that is cut short", () => {
  test.each<[signal: "SIGINT" | "SIGTERM" | "SIGKILL"]>([["SIGINT"], ["SIGTERM"], ["SIGKILL"]])(
    "by %s leaves the older one, and the service",
    async (signal) => {
      await fill(file, 60_000);
      await backUp();
      const older = readFileSync(backup);
      await using service = await startService({ database: file });
      const args = ["backup", backup, "--force", "--database", file];
      await using child = spawnProgram(args);
      await waitFor(() => (partials().length > 0 ? true : undefined));
      child.kill(signal);
      const errors = await new Response(child.stderr).text();
      await child.exited;
      // A fast machine may have been done by then.
      if (child.exitCode !== 0) {
        expect(readFileSync(backup).equals(older)).toBe(true);
        if (signal !== "SIGKILL") {
          expect(child.exitCode).toBe(130);
          expect(errors).toBe("plantstore: Stopped. Nothing was written.\n");
        }
      }
      if (signal !== "SIGKILL") expect(partials()).toEqual([]);
      expect(await runProgram(["restore", backup, "--dry-run"])).toMatchObject({ exitCode: 0 });
      const created = await service.call("POST /plants", { body: '{"name":"Moss"}' });
      expect(created.status).toBe(201);
    },
    30_000,
  );

  test.if(process.platform !== "win32")(
    "by a full disk leaves nothing, and the service",
    async () => {
      await fill(file, 20_000);
      await using service = await startService({ database: file });
      // Blocks of 512 bytes, far less than the backup takes.
      const limited = `trap '' XFSZ; ulimit -f 500; exec "$@"`;
      const child = Bun.spawn(
        [
          "sh",
          "-c",
          limited,
          "sh",
          process.execPath,
          realProgram,
          "backup",
          backup,
          "--database",
          file,
        ],
        { stdout: "pipe", stderr: "pipe" },
      );
      const errors = await new Response(child.stderr).text();
      expect(await child.exited).toBe(1);
      expect(errors).toMatch(/^plantstore: Cannot write .+: there is no room for it\.\n$/);
      expect(existsSync(backup)).toBe(false);
      expect(partials()).toEqual([]);
      const created = await service.call("POST /plants", { body: '{"name":"Moss"}' });
      expect(created.status).toBe(201);
    },
    30_000,
  );
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
}, 60_000);

describe("a damaged backup is refused in one line, and nothing is touched:", () => {
  test.each<[damage: string, reason: string, spoil: (bytes: Buffer) => Buffer]>([
    ["a name that has changed", "it is damaged", (bytes) => spoilText(bytes, "Fern 7", "Farn 7")],
    [
      "another description",
      "it is damaged",
      (bytes) => spoilText(bytes, '"plants":9', '"plants":8'),
    ],
    ["its first page", "it is damaged", (bytes) => Buffer.from(bytes.fill(0, 0, 100))],
    ["cut short", "or not whole", (bytes) => bytes.subarray(0, bytes.length - 10)],
    ["half of it", "or not whole", (bytes) => bytes.subarray(0, bytes.length / 2)],
    ["nothing in it", "or not whole", () => Buffer.alloc(0)],
  ])("%s", async (_, reason, spoil) => {
    await fill(file, 9);
    await backUp();
    writeFileSync(backup, spoil(readFileSync(backup)));
    const target = join(folder.path, "target.db");
    await fill(target, 2);
    const before = readFileSync(target);
    for (const flags of [["--force"], ["--dry-run"]]) {
      const refused = await restore(target, ...flags);
      expect(refused).toMatchObject({ exitCode: 1, out: "" });
      expect(refused.errors).toMatch(/^plantstore: Cannot restore .+\.\n$/);
      expect(refused.errors).toContain(reason);
    }
    expect(readFileSync(target).equals(before)).toBe(true);
    expect(partials()).toEqual([]);
  });

  function spoilText(bytes: Buffer, text: string, other: string): Buffer {
    return Buffer.from(bytes.toString("latin1").replace(text, other), "latin1");
  }
});

test.each<[what: string, change: string, reason: string]>([
  ["of a newer version", "PRAGMA user_version = 99", "its schema is 99, and this version knows"],
  ["of another program", "PRAGMA application_id = 1", "a SQLite database of another program"],
  ["with another number of plants", "DELETE FROM plants", "it holds 0 plants, not 9"],
])("a backup %s is refused, however well it is sealed", async (_, change, reason) => {
  await fill(file, 9);
  copyFileSync(file, backup);
  const database = connect(backup);
  database.run(change);
  database.close();
  const description = { madeAt: "2026-07-01", version: "9.9.9", plants: 9, tokens: 0 };
  await seal(backup, description, new AbortController().signal);
  const target = join(folder.path, "target.db");
  const refused = await restore(target);
  expect(refused).toMatchObject({ exitCode: 1, out: "" });
  expect(refused.errors).toMatch(/^plantstore: Cannot restore .+\.\n$/);
  expect(refused.errors).toContain(reason);
  expect(existsSync(target)).toBe(false);
});
