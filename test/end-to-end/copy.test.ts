/** The real program copies a store from one engine to the other, and is stopped on the way. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { openStorage } from "../../src/storage/open.ts";
import { countPlants, fillStore as fill, readPlants } from "../filled-store.ts";
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

/** Tokens of the same moment are listed in the order in which they were made. */
async function readTokens(address: string) {
  const storage = await openStorage(address, { isServing: false });
  const tokens = await storage.listTokens();
  await storage.close();
  return tokens;
}

test("a store goes to PostgreSQL and back, and tokens, keys and ids go on", async () => {
  const back = join(folder.path, "back.db");
  const fern = { body: '{"name":"Farn \u{1f33f}","tag":"é"}', headers: { "Idempotency-Key": "k" } };
  const lines = {
    body: '{"name":"line","id":-5}\n',
    headers: { "Content-Type": "application/jsonl", "Idempotency-Key": "k" },
  };
  let token = "";
  {
    await using service = await startService({ database: file });
    token = service.token;
    const ids = ["9007199254740993", "-9223372036854775808", "9223372036854775807"];
    await service.call("POST /plants", fern);
    await service.call("POST /plants/bulk", lines);
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
  const users = ["gardener", "bob"];
  for (const [from, to, user] of [
    [file, database.url, "0"],
    [database.url, back, "z"],
  ] as const) {
    const copied = await copy(from, to);
    expect(copied).toMatchObject({ exitCode: 0 });
    expect(JSON.parse(copied.out)).toMatchObject({ plants: 3 + lastId, tokens: users.length });
    expect(await readTokens(to)).toEqual(await readTokens(from));
    expect(await readPlants(to)).toEqual(await readPlants(from));
    // A later token comes after those that were copied.
    await runProgram(["token", "create", user, "--database", to]);
    users.push(user);
    expect((await readTokens(to)).map((each) => each.user)).toEqual(users);
    await using service = await startService({ database: to });
    expect(service.token).toBe("");
    const again = await service.call("POST /plants", { ...fern, token });
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    const linesAgain = await service.call("POST /plants/bulk", { ...lines, token });
    expect(await linesAgain.text()).toBe('{"status":201,"id":-5,"replayed":true}\n');
    const next = await service.call("POST /plants", { body: '{"name":"next"}', token });
    expect(next.headers.get("location")).toBe(`/plants/${++lastId}`);
    const list = (await (await service.call("GET /plants", { token })).json()) as unknown[];
    expect(list).toHaveLength(3 + lastId);
    service.signal("SIGTERM");
    await service.exited;
  }
}, 120_000);

describe("a copy that is cut short leaves nothing in the target, and can be run again", () => {
  test.each<[engine: string, signal: "SIGKILL" | "SIGINT"]>([
    ["PostgreSQL", "SIGINT"],
    ["SQLite", "SIGKILL"],
  ])(
    "to %s, %s",
    async (engine, signal) => {
      const plants = 60_000;
      const source = join(folder.path, "source.db");
      const target = engine === "SQLite" ? file : database.url;
      await fill(source, plants);
      await using child = spawnProgram(["copy", "--from", source, "--to", target]);
      const hasBegun = async () =>
        engine === "SQLite"
          ? readdirSync(folder.path).some((name) => name.includes(".partial"))
          : (await database.query("SELECT 1 FROM pg_tables WHERE tablename = 'plants'")).length > 0;
      await waitFor(async () => (await hasBegun()) || undefined);
      child.kill(signal);
      const errors = await new Response(child.stderr).text();
      const exitCode = await child.exited;
      // A fast machine may have been done by then.
      if (exitCode === 0) return;
      if (signal === "SIGINT") {
        expect(exitCode).toBe(130);
        expect(errors).toBe("plantstore: Stopped. Nothing was changed.\n");
      }
      if (engine === "SQLite") expect(existsSync(file)).toBe(false);
      else expect(await countPlants(target)).toBe(0);
      expect(await copy(source, target)).toMatchObject({ exitCode: 0 });
      expect(await countPlants(target)).toBe(plants);
    },
    120_000,
  );
});

test("from a file that isn't there makes no tables in the target", async () => {
  expect((await copy(file, database.url)).errors).toContain("there is no such file");
  expect(await database.query("SELECT 1 FROM pg_tables WHERE tablename = 'plants'")).toEqual([]);
});

test("names the table with what PostgreSQL cannot store, as from a corrupt file", async () => {
  await fill(file, 1, "Fern\0");
  const finished = await copy(file, database.url);
  expect(finished).toMatchObject({ exitCode: 1, out: "" });
  expect(finished.errors).toMatch(/^plantstore: .+\n$/);
  expect(finished.errors).toContain("PostgreSQL can't store some rows of plants");
});

test("replaces a SQLite file with --force, and keeps the old one", async () => {
  const target = join(folder.path, "target.db");
  await fill(file, 3);
  await fill(target, 9);
  const copied = await copy(file, target, "--force");
  expect(copied).toMatchObject({ exitCode: 0, errors: "" });
  expect(await countPlants(target)).toBe(3);
  expect(await countPlants(JSON.parse(copied.out).kept)).toBe(9);
});
