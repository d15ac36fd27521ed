/** `plantstore copy`, from a SQLite store to PostgreSQL. */
import { afterAll, expect, test } from "bun:test";
import { join } from "node:path";
import { Client } from "pg";
import { openStorage } from "../../src/storage/open.ts";
import { runInProcess } from "../command.ts";
import { countPlants, fillStore } from "../filled-store.ts";
import { makeDatabase, serverPassword } from "../postgres-server.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { makeToken, serveHere, waitFor } from "./running-service.ts";

const folder = makeTemporaryFolder();
afterAll(() => folder[Symbol.dispose]());

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
  const file = join(folder.path, "plants.db");
  const fern = { body: '{"name":"Farn \u{1f33f}","tag":"é"}', headers: { "Idempotency-Key": "k" } };
  const bulk = { body: '[{"name":"of a bulk","id":-5}]', headers: { "Idempotency-Key": "k" } };
  let token = "";
  {
    await using service = await serveHere({ database: file });
    token = service.token;
    const ids = ["9007199254740993", "-9223372036854775808", "9223372036854775807"];
    await service.call("POST /plants", fern);
    await service.call("POST /plants/bulk", bulk);
    for (const id of ids) {
      await service.call("POST /plants", { body: `{"name":"${id}","id":${id}}` });
    }
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
  expect(await bulkAgain.json()).toEqual([{ status: 201, id: -5, replayed: true }]);
  const next = await service.call("POST /plants", { body: '{"name":"next"}', token });
  expect(next.headers.get("location")).toBe("/plants/3");
  const events = await (await service.call("GET /events?after=7", { token })).json();
  expect(events).toMatchObject([{ seq: 8, plant: { id: 3, name: "next" } }]);
  const { plants } = await (await service.call("GET /me", { token })).json();
  expect(plants).toBe(6);
});

test("a copy that is interrupted leaves nothing, and can be run again", async () => {
  const file = join(folder.path, "interrupted.db");
  await fillStore(file, 500);
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
  const errors = "plantstore: Stopped. Nothing was changed.\n";
  expect(await copying).toEqual({ exitCode: 130, out: "", errors });
  await intruder.end();
  expect(await countPlants(database.url)).toBe(0);
  expect(await runInProcess(["copy", file, database.url])).toMatchObject({ exitCode: 0 });
  expect(await countPlants(database.url)).toBe(500);
});
