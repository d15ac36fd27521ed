/** What is told of a group of writes whose transaction is refused. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import type { ClientBase } from "pg";
import { makeDatabase, type TestDatabase } from "../../../test/postgres-server.ts";
import { create, created, remove } from "../../../test/storage-contract/tested-storage.ts";
import { countedIdMax, defaultConnectionLimits, type Storage } from "../../domain/storage.ts";
import { openPostgres } from "./engine.ts";
import { PrimaryPool, type UseOptions } from "./pool.ts";
import { TransactionRunner } from "./transaction.ts";
import { parseUrl } from "./url.ts";
import { createWriter } from "./writer.ts";

setDefaultTimeout(60_000);

/** Whose statements pass through `change` first. */
class Meddled extends PrimaryPool {
  change = (text: string): string | Promise<string> => text;

  override use<Result>(work: (client: never) => Promise<Result>, options?: UseOptions) {
    return super.use((client) => work(meddled(client, this.change) as never), options);
  }
}

function meddled(client: ClientBase, change: Meddled["change"]): ClientBase {
  const query = (text: string, values?: unknown[]) => {
    const changed = change(text);
    if (typeof changed === "string") return client.query(changed, values);
    return changed.then((later) => client.query(later, values));
  };
  return new Proxy(client, {
    get(target, name) {
      if (name === "query") return query;
      const value = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** As if somebody cancelled it. */
const cancelled = "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '57014'; END $$";

let database: TestDatabase;
let storage: Storage;
let pool: Meddled;

beforeEach(async () => {
  database = await makeDatabase();
  storage = await openPostgres(database.url, { isServing: true });
  pool = new Meddled(parseUrl(database.url), defaultConnectionLimits);
  await pool.settle();
});

afterEach(async () => {
  await pool.close();
  await storage.close();
  await database.drop();
});

test("the outcome is unknown when no transaction was begun, for deletions have happened", async () => {
  await storage.apply([create()]);
  pool.change = (text) => (text.startsWith("BEGIN") ? cancelled : text);
  const { apply } = createWriter(new TransactionRunner(pool));
  const failure = await apply([remove(1n), create({ id: 2n })]).catch((error) => error);
  expect(failure).toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("outcome is unknown"),
  });
  expect(await storage.list("home", undefined, 10)).toEqual([]);
});

test("plants that were loaded without being counted are stepped over", async () => {
  await storage.apply([create()]);
  await database.query(
    "INSERT INTO plants SELECT 'home', id, 'Fern', '' FROM generate_series(2, 9) AS id",
  );
  expect(await storage.apply([create(), create()])).toEqual([created(10n), created(11n)]);
  expect(await storage.apply([create()])).toEqual([created(12n)]);
});

test("ids that clients chose are stepped over, however many there are in a row", async () => {
  await storage.apply([create({ id: countedIdMax })]);
  await database.query(
    `INSERT INTO plants SELECT 'home', id, 'Fern', ''
       FROM generate_series(${countedIdMax}::bigint + 2, ${countedIdMax}::bigint + 9000) AS id`,
  );
  const outcomes = await storage.apply([create(), create({ id: countedIdMax + 9_002n }), create()]);
  expect(outcomes).toEqual([1n, 9_002n, 9_001n].map((step) => created(countedIdMax + step)));
  expect(await storage.apply([create()])).toEqual([created(countedIdMax + 9_003n)]);
});

test("a key that an instance of 0.3 has kept replays", async () => {
  await database.query("INSERT INTO idempotency_keys VALUES ('home', 'k', 'r', 7, 1000)");
  const keyed = (request: string, nowMs: number) =>
    create({ idempotency: { key: "k", request, nowMs, expiresAtMs: nowMs + 1_000 } });
  expect(await storage.apply([keyed("r", 0), keyed("other", 0)])).toEqual([
    ...[created(7n, true), { kind: "mismatch" } as const],
  ]);
  expect(await storage.apply([keyed("other", 1_000)])).toEqual([created(1n)]);
  await storage.forgetKeys(1_000);
  expect(await database.query("SELECT * FROM idempotency_keys")).toEqual([]);
});
