/**
 * The buckets that instances share: they add up, run out by the database's clock, and are
 * forgotten.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { makeDatabase, type TestDatabase } from "../../../test/postgres-server.ts";
import type { BucketLevel, BucketStorage, Storage } from "../../domain/storage.ts";
import { openPostgres } from "./engine.ts";

let database: TestDatabase;
let instances: Storage[];

beforeEach(async () => {
  database = await makeDatabase();
  instances = await Promise.all([1, 2].map(() => openPostgres(database.url, { isServing: true })));
});

afterEach(async () => {
  await Promise.all(instances.map((instance) => instance.close()));
  await database.drop();
});

const bucketsOf = (instance: number) => instances[instance]?.buckets as BucketStorage;

async function pour(instance: number, ...pours: BucketLevel[]): Promise<number[]> {
  const levels = await bucketsOf(instance).pour(pours);
  const byKey = new Map(levels.map(({ key, levelMs }) => [key, levelMs]));
  return pours.map(({ key }) => byKey.get(key) ?? Number.NaN);
}

test("what instances pour into a bucket adds up, and runs out as time goes by", async () => {
  const key = 2 ** 53 - 1;
  expect(await pour(0, { key, levelMs: 60_000 })).toEqual([60_000]);
  const [level = 0] = await pour(1, { key, levelMs: 0.5 });
  expect(level).toBeWithin(30_000, 60_000.5);
  await database.query("UPDATE rate_buckets SET empty_at_us = empty_at_us - 3600000000");
  expect(await pour(1, { key, levelMs: 7.25 })).toEqual([7.25]);
});

test("a clock that is set back fills no bucket", async () => {
  await pour(0, { key: 1, levelMs: 2_000 });
  await database.query(
    "UPDATE rate_buckets SET poured_at_us = poured_at_us + 3600000000, empty_at_us = empty_at_us + 3600000000",
  );
  expect(await pour(1, { key: 1, levelMs: 1_000 })).toEqual([3_000]);
});

test("many buckets are poured into by all at once, in any order", async () => {
  const keys = Array.from({ length: 300 }, (_, index) => index * 7_919);
  const pours = keys.map((key) => ({ key, levelMs: 3_600_000 }));
  await Promise.all([0, 1, 0, 1].map((each) => pour(each, ...(each ? pours : pours.toReversed()))));
  const levels = await pour(0, ...keys.map((key) => ({ key, levelMs: 0 })));
  for (const level of levels) expect(level).toBeWithin(4 * 3_600_000 - 60_000, 4 * 3_600_000 + 1);
});

test("those that have run out are forgotten, and no other", async () => {
  await pour(0, { key: 1, levelMs: 0 }, { key: 2, levelMs: 3_600_000 });
  await bucketsOf(1).forgetEmpty();
  expect(await database.query("SELECT key::int FROM rate_buckets")).toEqual([{ key: 2 }]);
});
