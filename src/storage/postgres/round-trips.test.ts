/** A batch costs as many round trips and statements with a thousand writes as with ten. */
import { afterAll, beforeAll, expect, mock, spyOn, test } from "bun:test";
import { Connection } from "pg";
import { makeDatabase, type TestDatabase } from "../../../test/postgres-server.ts";
import { create, put, remove } from "../../../test/storage/tested-storage.ts";
import type { Write } from "../../domain/ports.ts";
import type { OpenOptions } from "../storage.ts";
import { openPostgres } from "./engine.ts";

let database: TestDatabase;

/** What is sent before all replies are back is in the same round trip. */
let roundTrips = 0;
let statements = 0;
let unanswered = 0;

/** Counts the messages themselves: `pg` may hold back what a client asks for. */
beforeAll(async () => {
  const sending = Connection.prototype as unknown as Record<string, (...sent: unknown[]) => void>;
  const before = (name: string, count: (connection: Connection) => void) => {
    const original = sending[name];
    spyOn(sending, name).mockImplementation(function (this: Connection, ...sent) {
      count(this);
      original?.apply(this, sent);
    });
  };
  const send = () => {
    if (unanswered++ === 0) roundTrips++;
  };
  before("sync", send);
  before("execute", () => statements++);
  before("query", () => {
    statements++;
    send();
  });
  before("connect", (connection) => {
    // An error is a reply: it comes ahead of the reply's end, and `pg` goes on at once.
    let hasFailed = false;
    const receive = (isError: boolean) => {
      if (!hasFailed && unanswered > 0) unanswered--;
      hasFailed = isError;
    };
    connection.on("errorMessage", () => receive(true));
    connection.on("readyForQuery", () => receive(false));
  });
  database = await makeDatabase();
});

afterAll(async () => {
  mock.restore();
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

test.each(Object.entries(cases))("%s", async (_, { options, isRepeated, write, ...expected }) => {
  const storage = await openPostgres(database.url, { isServing: true, ...options });
  const seen: object[] = [];
  for (const size of [8, 1_000]) {
    const batch = Array.from({ length: size }, (_, index) => write(index, size));
    if (isRepeated) await storage.apply(batch);
    roundTrips = statements = 0;
    await storage.apply(batch);
    expect(roundTrips).toBe(expected.roundTrips);
    expect(statements).toBeLessThanOrEqual(13);
    seen.push({ roundTrips, statements });
  }
  await storage.close();
  expect(seen[1]).toEqual(seen[0]);
});
