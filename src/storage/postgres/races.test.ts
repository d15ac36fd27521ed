/**
 * Several instances on one database: whatever they do at the same time, the database decides once.
 */
import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { auditStore } from "../../../proofs/audited-store.ts";
import { makeDice } from "../../../test/dice.ts";
import { makeDatabase, type TestDatabase } from "../../../test/postgres-server.ts";
import { applyPatiently, create, put, remove } from "../../../test/storage/tested-storage.ts";
import type { Outcome, Write } from "../../domain/ports.ts";
import type { Storage } from "../storage.ts";
import { openPostgres } from "./engine.ts";

let database: TestDatabase;
let instances: Storage[];

beforeAll(async () => {
  database = await makeDatabase();
  instances = await Promise.all(
    [1, 2, 3].map(() => openPostgres(database.url, { isServing: true })),
  );
});

afterEach(() => database.query("TRUNCATE plants, gardens, events, idempotency_keys"));

afterAll(async () => {
  await Promise.all(instances.map((instance) => instance.close()));
  await database.drop();
});

/**
 * Each instance applies its groups one after the other, as it would; all do so at the same time.
 */
async function applyAll(groupsOf: (instance: number) => Write[][]): Promise<Outcome[]> {
  const outcomes = await Promise.all(
    instances.map(async (storage, instance) => {
      const own: Outcome[] = [];
      for (const group of groupsOf(instance)) own.push(...(await applyPatiently(storage, group)));
      return own;
    }),
  );
  return outcomes.flat();
}

function times<Result>(count: number, make: (index: number) => Result): Result[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

const idempotency = (key: string) => ({ key, nowMs: 0, expiresAtMs: 1_000 });

test("a quota holds and its counts stay exact, whatever instances add and delete at the same time", async () => {
  const plantsMax = 10;
  const limited = await Promise.all(
    [1, 2, 3].map(() => openPostgres(database.url, { isServing: true, plantsMax })),
  );
  const pick = makeDice(11);
  const garden = () => `garden-${pick(6)}`;
  const work = limited.map(async (storage) => {
    for (let round = 0; round < 60; round++) {
      const one = () => create({ garden: garden() });
      const other = () => remove(BigInt(1 + pick(round + 5)), garden());
      const either = () => (pick(2) === 0 ? one() : other());
      await applyPatiently(storage, times(1 + pick(8), [one, other, either][pick(3)] ?? one));
    }
  });
  await Promise.all(work);
  expect(await auditStore(database.url)).toEqual([]);
  const rows = await database.query("SELECT plants::int AS plants FROM gardens");
  expect(rows).toHaveLength(6);
  for (const { plants } of rows) expect(plants).toBeLessThanOrEqual(plantsMax);
  await Promise.all(limited.map((storage) => storage.close()));
});

test("keys that are forgotten while others are added stay exactly counted", async () => {
  const pick = makeDice(12);
  const write = (nowMs: number) => {
    const idempotency = { key: `k${pick(40)}`, nowMs, expiresAtMs: nowMs + 3 };
    return create({ garden: `garden-${pick(3)}`, idempotency });
  };
  const work = instances.map(async (storage) => {
    for (let round = 0; round < 40; round++) {
      await applyPatiently(
        storage,
        times(1 + pick(6), () => write(round)),
      );
      if (pick(3) === 0) await storage.forgetKeys(round);
    }
  });
  await Promise.all(work);
  expect(await auditStore(database.url)).toEqual([]);
});

test("what was answered is what is there, after many random groups at the same time", async () => {
  const pick = makeDice(20_260_101);
  const write = (): Write => {
    const garden = `garden-${pick(3)}`;
    const id = BigInt(pick(12));
    switch (pick(6)) {
      case 0:
        return create({ garden });
      case 1:
        return create({ garden, idempotency: idempotency(`k${pick(20)}`) });
      case 2:
        return create({ garden, id });
      case 3:
        return put({ garden, id, name: `Plant ${pick(3)}` });
      case 4:
        return put({ garden, id, preconditions: { ifNoneMatch: "*" } });
      default:
        return remove(id, garden);
    }
  };
  const groups = times(3, () => times(40, () => times(1 + pick(6), write)));
  const outcomes = await applyAll((instance) => groups[instance] ?? []);
  const balance = new Map<string, number>();
  for (const [index, { garden, ...sent }] of groups.flat(2).entries()) {
    const outcome = outcomes[index] as Outcome;
    const count = (id: bigint | undefined, change: number) =>
      balance.set(`${garden} ${id}`, (balance.get(`${garden} ${id}`) ?? 0) + change);
    if (outcome.kind === "created" && !outcome.replayed) count(outcome.id, 1);
    if (outcome.kind === "deleted") count(sent.id, -1);
  }
  expect([...balance.values()].filter((count) => count !== 0 && count !== 1)).toEqual([]);
  const expected = [...balance].flatMap(([place, count]) => times(count, () => place));
  const rows = await database.query("SELECT garden || ' ' || id AS place FROM plants");
  expect(rows.map(({ place }) => String(place)).toSorted()).toEqual(expected.toSorted());
  expect(await auditStore(database.url)).toEqual([]);
});
