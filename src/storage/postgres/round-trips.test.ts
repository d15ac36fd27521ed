/** A batch costs as many round trips and statements with a thousand writes as with ten. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type CountingProxy, startCountingProxy } from "../../../test/counting-proxy.ts";
import { makeDatabase, sharedPostgres, type TestDatabase } from "../../../test/postgres-server.ts";
import { create, put, remove } from "../../../test/storage/tested-storage.ts";
import type { Write } from "../../domain/ports.ts";
import type { OpenOptions } from "../storage.ts";
import { openPostgres } from "./engine.ts";

let database: TestDatabase;
let proxy: CountingProxy;

beforeAll(async () => {
  const { port } = await sharedPostgres();
  proxy = await startCountingProxy(port);
  database = await makeDatabase();
});

afterAll(async () => {
  await proxy.stop();
  await database.drop();
});

const idempotency = (key: string) => ({ key, nowMs: 0, expiresAtMs: 1_000 });
const gardenOf = (index: number, size: number) => ({ garden: `garden ${size} ${index}` });

interface Case {
  readonly options?: Partial<OpenOptions>;
  /** Applied once before, so that the batch meets something. */
  readonly isRepeated?: boolean;
  readonly write: (index: number, size: number) => Write;
  readonly roundTrips: number;
}

const cases: Record<string, Case> = {
  "creates without ids": { write: (index) => create(gardenOf(index % 7, 0)), roundTrips: 1 },
  "creates with keys, without ids": {
    write: (index, size) => create({ idempotency: idempotency(`key ${size} ${index}`) }),
    roundTrips: 1,
  },
  "deletions as a request makes them": {
    write: (index) => ({ ...remove(BigInt(index)), preconditions: { ifMatch: undefined } }),
    roundTrips: 2,
  },
  "writes of all kinds": {
    write: (index, size) =>
      [
        create(gardenOf(index, size)),
        create({ ...gardenOf(index, size), id: BigInt(index) }),
        create({ ...gardenOf(index, size), idempotency: idempotency(`k${index % 5}`) }),
        remove(BigInt(index), `garden ${size} ${index - 1}`),
        put({ ...gardenOf(index, size), id: BigInt(index), preconditions: { ifMatch: "*" } }),
      ][index % 5] as Write,
    roundTrips: 2,
  },
  "plants of a bulk with a key": {
    write: (index, size) => create({ idempotency: { ...idempotency(`bulk ${size}`), index } }),
    roundTrips: 2,
  },
  "creates in many gardens with a quota, all of them full": {
    options: { plantsMax: 1 },
    isRepeated: true,
    write: (index, size) => create(gardenOf(index, size)),
    // One statement that is refused, then a batch.
    roundTrips: 3,
  },
  "creates with keys that were used": {
    isRepeated: true,
    write: (index, size) => create({ idempotency: idempotency(`used ${size} ${index}`) }),
    roundTrips: 3,
  },
};

test.each(Object.entries(cases))("%s", async (_, { options, isRepeated, write, roundTrips }) => {
  const url = database.url.replace(/:\d+\//, `:${proxy.port}/`).concat("?sslmode=disable");
  const storage = await openPostgres(url, { isServing: true, ...options });
  const seen = [];
  for (const size of [8, 1_000]) {
    const batch = Array.from({ length: size }, (_, index) => write(index, size));
    if (isRepeated) await storage.apply(batch);
    proxy.takeCounts();
    await storage.apply(batch);
    seen.push(proxy.takeCounts());
  }
  await storage.close();
  const [few, many] = seen;
  expect(few?.roundTrips).toBe(roundTrips);
  expect(many).toEqual(few as never);
  expect(many?.statements).toBeLessThanOrEqual(13);
});
