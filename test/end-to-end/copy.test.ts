/** The real program copies a store from one engine to the other; see also backup.test.ts. */
import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { openStorage } from "../../src/storage/open.ts";
import { countPlants, fillStore as fill, readPlants } from "../filled-store.ts";
import { makeDatabase, serverPassword } from "../postgres-server.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { runProgram, startService } from "./running-service.ts";

setDefaultTimeout(120_000);

const folder = makeTemporaryFolder();
afterAll(() => folder[Symbol.dispose]());

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

async function readEvents(address: string) {
  const storage = await openStorage(address, { isServing: false });
  const page = await storage.readEvents("gardener", undefined, 1_000, 1_000_000);
  await storage.close();
  return page;
}

test("a store goes to PostgreSQL and back, and tokens, keys, ids and events go on", async () => {
  await using database = await makeDatabase();
  const file = join(folder.path, "plants.db");
  const back = join(folder.path, "back.db");
  const fern = { body: '{"name":"Farn \u{1f33f}","tag":"é"}', headers: { "Idempotency-Key": "k" } };
  const bulk = { body: '[{"name":"of a bulk","id":-5}]', headers: { "Idempotency-Key": "k" } };
  let token = "";
  {
    await using service = await startService({ database: file });
    token = service.token;
    const ids = ["9007199254740993", "-9223372036854775808", "9223372036854775807"];
    await service.call("POST /plants", fern);
    await service.call("POST /plants/bulk", bulk);
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
    expect(await readEvents(to)).toEqual(await readEvents(from));
    // A later token comes after the copied ones.
    await runProgram(["token", "create", user, "--database", to]);
    users.push(user);
    expect((await readTokens(to)).map((each) => each.user)).toEqual(users);
    await using service = await startService({ database: to });
    expect(service.token).toBe("");
    const again = await service.call("POST /plants", { ...fern, token });
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    const bulkAgain = await service.call("POST /plants/bulk", { ...bulk, token });
    expect(await bulkAgain.json()).toEqual([{ status: 201, id: -5, replayed: true }]);
    const next = await service.call("POST /plants", { body: '{"name":"next"}', token });
    expect(next.headers.get("location")).toBe(`/plants/${++lastId}`);
    const page = await readEvents(to);
    expect(page.events.map(({ seq }) => seq)).toEqual(
      Array.from({ length: 5 + lastId }, (_, index) => index + 1),
    );
    const list = (await (await service.call("GET /plants", { token })).json()) as unknown[];
    expect(list).toHaveLength(3 + lastId);
    service.signal("SIGTERM");
    await service.exited;
  }
});

test("replaces a SQLite file with --force, and keeps the old one", async () => {
  const source = join(folder.path, "source.db");
  const target = join(folder.path, "target.db");
  await fill(source, 3);
  await fill(target, 9);
  const copied = await copy(source, target, "--force");
  expect(copied).toMatchObject({ exitCode: 0, errors: "" });
  expect(await countPlants(target)).toBe(3);
  expect(await countPlants(JSON.parse(copied.out).kept)).toBe(9);
});
