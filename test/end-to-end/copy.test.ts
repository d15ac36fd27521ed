/**
 * The real program moves a store from one engine to the other, and is stopped, refused and misled.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, symlinkSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type MovedRecords, recordKinds } from "../../src/domain/transfer.ts";
import { openStorage } from "../../src/storage/open.ts";
import { makeDatabase, serverPassword, type TestDatabase } from "../postgres-server.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { runProgram, spawnProgram, startService, waitFor } from "./running-service.ts";

let folder: ReturnType<typeof makeTemporaryFolder>;
let database: TestDatabase;
let file: string;

beforeEach(async () => {
  folder = makeTemporaryFolder();
  file = join(folder.path, "plants.db");
  database = await makeDatabase();
});

afterEach(async () => {
  await database.drop();
  folder[Symbol.dispose]();
});

async function copy(from: string, to: string, ...flags: string[]) {
  const finished = await runProgram(["copy", "--from", from, "--to", to, ...flags]);
  expect(finished.out + finished.errors).not.toContain(serverPassword);
  return finished;
}

async function fill(address: string, plants: number, name = "Fern"): Promise<void> {
  const storage = await openStorage(address, { isServing: false });
  const records = Array.from({ length: plants }, (_, index) => ({
    ...{ garden: "home", id: BigInt(index), name: `${name} ${index}`, tag: "" },
  }));
  await storage.transfer(0).add("plants", records);
  await storage.close();
}

async function readAll(address: string): Promise<unknown[]> {
  const storage = await openStorage(address, { isServing: false });
  const transfer = storage.transfer(Date.now());
  const read = recordKinds.map((kind) => transfer.read(kind, undefined, 10_000));
  const all = await Promise.all(read);
  await storage.close();
  return all;
}

test("a store goes to PostgreSQL and back, and tokens, keys and ids go on", async () => {
  const back = join(folder.path, "back.db");
  const fern = { body: '{"name":"Farn \u{1f33f}","tag":"é"}', headers: { "Idempotency-Key": "k" } };
  let token = "";
  {
    await using service = await startService({ database: file });
    token = service.token;
    const ids = ["9007199254740993", "-9223372036854775808", "9223372036854775807"];
    await service.call("POST /plants", fern);
    for (const id of ids) {
      await service.call("POST /plants", { body: `{"name":"${id}","id":${id}}` });
    }
    await service.call("POST /plants", { body: '{"name":"short-lived"}' });
    await service.call("DELETE /plants/2");
    const garden = ["--garden", "Gärten \u{1f33f}", "--scope", "read"];
    await runProgram(["token", "create", "bob", ...garden, "--database", file]);
    service.signal("SIGTERM");
    await service.exited;
  }
  let lastId = 2;
  for (const [from, to] of [
    [file, database.url],
    [database.url, back],
  ] as const) {
    const copied = await copy(from, to);
    expect(copied).toMatchObject({ exitCode: 0 });
    expect(copied.out).toMatch(/^plants +\d+ +\d+ +(\w{16}) +\1 +equal$/m);
    expect(await readAll(to)).toEqual(await readAll(from));
    await using service = await startService({ database: to });
    expect(service.token).toBe("");
    const again = await service.call("POST /plants", { ...fern, token });
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    const next = await service.call("POST /plants", { body: '{"name":"next"}', token });
    expect(next.headers.get("location")).toBe(`/plants/${++lastId}`);
    const list = (await (await service.call("GET /plants", { token })).json()) as unknown[];
    expect(list).toHaveLength(2 + lastId);
    service.signal("SIGTERM");
    await service.exited;
  }
  const [tokens] = (await readAll(back)) as [MovedRecords["tokens"][]];
  expect(tokens.map(({ user, garden }) => [user, garden]).toSorted()).toEqual([
    ["bob", "Gärten \u{1f33f}"],
    ["gardener", "gardener"],
  ]);
}, 60_000);

describe("a copy that is cut short", () => {
  const plants = 60_000;

  async function countIn(address: string): Promise<number> {
    if (address === file && !existsSync(file)) return 0;
    const storage = await openStorage(address, { isServing: false });
    const count = await storage.transfer(0).count("plants");
    await storage.close();
    return count;
  }

  test.each<[engine: string, signal: "SIGKILL" | "SIGINT"]>([
    ["PostgreSQL", "SIGKILL"],
    ["SQLite", "SIGKILL"],
    ["SQLite", "SIGINT"],
  ])(
    "goes on with --resume: to %s, %s",
    async (engine, signal) => {
      const source = join(folder.path, "source.db");
      const target = engine === "SQLite" ? file : database.url;
      await fill(source, plants);
      await using child = spawnProgram(["copy", "--from", source, "--to", target]);
      await waitFor(async () => (await countIn(target).catch(() => 0)) > 0 || undefined);
      child.kill(signal);
      const errors = await new Response(child.stderr).text();
      if (signal === "SIGINT") {
        expect(await child.exited).toBe(130);
        expect(errors).toContain("Run it again with --resume to go on");
      }
      const done = await countIn(target);
      // A fast machine may have reached the comparison by then.
      expect(done).toBeLessThanOrEqual(plants);

      const refused = await copy(source, target);
      expect(refused).toMatchObject({ exitCode: 1, out: "" });
      expect(refused.errors).toMatch(/^plantstore: .+ is not empty\. .+ --resume\.\n$/);

      const resumed = await copy(source, target, "--resume");
      expect(resumed).toMatchObject({ exitCode: 0 });
      // A server may have gone on for a moment with what the killed process had sent.
      const copied = /Copied ([\d,]+) plants/.exec(resumed.errors)?.[1]?.replaceAll(",", "");
      expect(Number(copied)).toBeLessThanOrEqual(plants - done);
      expect(await countIn(target)).toBe(plants);
    },
    60_000,
  );
});

test("says what differs, and leaves it as it is", async () => {
  await fill(file, 10);
  expect(await copy(file, database.url)).toMatchObject({ exitCode: 0 });
  await database.query("UPDATE plants SET name = 'Weed' WHERE id = 3");
  await database.query("INSERT INTO plants VALUES ('Ünique', 1, 'Weed', '')");
  const finished = await copy(file, database.url, "--resume");
  expect(finished.exitCode).toBe(1);
  expect(finished.out).toMatch(/^plants +10 +11 .+DIFFERENT$/m);
  expect(finished.out).toContain(
    `the plants of the garden "home": 10 on both sides, but not the same\n` +
      `the plants of the garden "Ünique": 0 in the source, 1 in the target\n`,
  );
  expect(finished.errors).toContain("plantstore: The target differs from the source.");
  expect(await database.query("SELECT name FROM plants WHERE id = 3")).toEqual([{ name: "Weed" }]);
});

test("says of which kind is what PostgreSQL cannot keep, as from a damaged file", async () => {
  await fill(file, 1, "Fern\0");
  const finished = await copy(file, database.url);
  expect(finished).toMatchObject({ exitCode: 1, out: "" });
  expect(finished.errors).toMatch(/^Copied 0 plants .+\nplantstore: .+\n$/);
  expect(finished.errors).toContain("PostgreSQL cannot keep some of the plants");
});

test.if(process.platform === "linux")(
  "takes memory that does not grow with the plants",
  async () => {
    async function peakMegabytes(plants: number): Promise<number> {
      const source = join(folder.path, `${plants}.db`);
      await fill(source, plants, "\u{1f33f}".repeat(190));
      await using child = spawnProgram(["copy", "--from", source, "--to", `${source}-copy`]);
      // Not from its usage of resources, which begins with the memory of the process that started
      // it.
      let peakKilobytes = 0;
      while (child.exitCode === null) {
        const status = await readFile(`/proc/${child.pid}/status`, "utf8").catch(() => "");
        peakKilobytes = Number(/^VmHWM:\s+(\d+)/m.exec(status)?.[1] ?? peakKilobytes);
        await Bun.sleep(20);
      }
      expect(child.exitCode).toBe(0);
      return peakKilobytes / 1_024;
    }
    const few = await peakMegabytes(10_000);
    const many = await peakMegabytes(100_000);
    // The names alone would take 150 more if they were held.
    expect(many - few).toBeLessThan(75);
  },
  60_000,
);

describe("refuses in one line without a secret", () => {
  let served: Awaited<ReturnType<typeof startService>>;
  beforeAll(async () => {
    served = await startService();
  });
  afterAll(() => served[Symbol.asyncDispose]());

  /** FILE is a store, LINK leads to it, NEW is not there, SERVED is in use. */
  test.each<[line: string, exitCode: number, reason: string]>([
    ["--from FILE", 2, "--to must be the path of a file or the URL"],
    ["--to NEW", 2, "--from must be"],
    ["--from FILE --to :memory:", 2, "--to must be"],
    ["--from FILE --to FILE", 2, "the same database"],
    ["--from FILE --to LINK", 2, "the same database"],
    ["--from POSTGRES --to POSTGRES", 2, "the same database"],
    ["--from NEW --to POSTGRES", 1, "there is no such file"],
    ["--from POSTGRES --to NEW", 1, "it holds no plant store yet"],
    ["--from SERVED --to NEW", 1, "another process is serving it already"],
    ["--from FILE --to SERVED", 1, "another process is serving it already"],
    ["--from FILE --to oracle://db", 1, "oracle:"],
    [
      "--from FILE --to postgres://u:s3cret-of-the-server@127.0.0.1:1/x",
      1,
      "nothing listens there",
    ],
    [
      "--from FILE --to postgres://u:s3cret-of-the-server@h/x?sslmode=x",
      2,
      "sslmode must be one of",
    ],
    ["--from FILE --to FULL", 1, "is not empty"],
  ])("copy %s", async (line, exitCode, reason) => {
    await fill(file, 1);
    await fill(join(folder.path, "full.db"), 1);
    symlinkSync(file, join(folder.path, "link.db"));
    const places: Record<string, string> = {
      FILE: file,
      LINK: join(folder.path, "link.db"),
      NEW: join(folder.path, "new.db"),
      FULL: join(folder.path, "full.db"),
      POSTGRES: database.url,
      SERVED: served.database,
    };
    const finished = await runProgram([
      "copy",
      ...line.split(" ").map((word) => places[word] ?? word),
    ]);
    expect(finished).toMatchObject({ exitCode, out: "" });
    expect(finished.errors).toMatch(/^plantstore: .+\n$/);
    expect(finished.errors).toContain(reason);
    expect(finished.errors).not.toContain(serverPassword);
    expect(existsSync(places.NEW ?? "")).toBe(false);
  });
});
