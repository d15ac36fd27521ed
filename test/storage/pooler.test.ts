/** The storage contract behind PgBouncer in transaction mode: nothing rests on a session. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { openPostgres } from "../../src/storage/postgres/engine.ts";
import type { Storage } from "../../src/storage/storage.ts";
import { makeDatabase, type TestDatabase } from "../postgres-server.ts";
import { skipsWithoutPooler, startPooler, type TransactionPooler } from "../transaction-pooler.ts";
import { describeStorage } from "./storage-contract.ts";
import { create, created, reuse } from "./tested-storage.ts";

describe.skipIf(skipsWithoutPooler())("behind PgBouncer", () => {
  let database: TestDatabase;
  let pooler: TransactionPooler;
  let storage: Storage;

  beforeAll(async () => {
    database = await makeDatabase();
    pooler = await startPooler(database.url);
    storage = await openPostgres(pooler.url, { isServing: true });
  });

  afterAll(async () => {
    await storage.close();
    await pooler.stop();
    await database.drop();
  });

  describeStorage("PostgreSQL", async () => reuse(storage, database, pooler.url));

  test("names that a pooler lets us give, and then does not know, are done without", async () => {
    await database.query(
      `ALTER DATABASE ${database.name} SET plan_cache_mode = force_generic_plan`,
    );
    const other = await startPooler(database.url);
    const storage = await openPostgres(other.url, { isServing: true });
    const idempotency = (key: number) => ({ key: `k${key}`, nowMs: 0, expiresAtMs: 2 ** 52 });
    const numbers = Array.from({ length: 20 }, (_, index) => index + 1);
    for (const number of numbers) {
      expect(await storage.apply([create()])).toMatchObject([{ kind: "created" }]);
      const keyed = create({ garden: "keyed", idempotency: idempotency(number) });
      expect(await storage.apply([keyed])).toEqual([created(BigInt(number))]);
      expect(await storage.list("home", undefined, 99)).toHaveLength(number);
    }
    await Promise.all(numbers.map((number) => storage.list("keyed", BigInt(number), 1)));
    await storage.close();
    await other.stop();
  });
});
