/**
 * Several instances on one database: whatever they do at the same time, the database decides once.
 */
import { expect, test } from "bun:test";
import { auditStore } from "../../../proofs/audited-store.ts";
import { makeDice } from "../../../test/dice.ts";
import { makeDatabase } from "../../../test/postgres-server.ts";
import { applyPatiently, create, put, remove } from "../../../test/storage/tested-storage.ts";
import type { Outcome, Write } from "../../domain/ports.ts";
import { openPostgres } from "./engine.ts";

const times = <Result>(count: number, make: (index: number) => Result): Result[] =>
  Array.from({ length: count }, (_, index) => make(index));

test.each([
  ["without a quota", undefined],
  ["with a quota", 6],
])(
  "what was answered is what is there, after many random groups at the same time, %s",
  async (_, plantsMax) => {
    await using database = await makeDatabase();
    const pick = makeDice(20_260_101);
    const write = (nowMs: number): Write => {
      const garden = `garden-${pick(3)}`;
      const id = BigInt(pick(12));
      const idempotency = { key: `k${pick(20)}`, nowMs, expiresAtMs: nowMs + 3 };
      const kinds = [
        create({ garden }),
        create({ garden, idempotency }),
        create({ garden, id }),
        put({ garden, id, name: `Plant ${pick(3)}` }),
        put({ garden, id, preconditions: { ifNoneMatch: "*" } }),
        remove(id, garden),
      ];
      return kinds[pick(kinds.length)] as Write;
    };
    const instances = await Promise.all(
      times(3, () => openPostgres(database.url, { isServing: true, plantsMax })),
    );
    /** How often each plant was created, minus how often it was deleted. */
    const balance = new Map<string, number>();
    const work = instances.map(async (storage) => {
      for (let round = 0; round < 50; round++) {
        // Some groups are plain creates, which one statement does.
        const one = pick(3) === 0 ? () => create({ garden: `garden-${pick(3)}` }) : write;
        const group = times(1 + pick(6), () => one(round));
        for (const [index, outcome] of (await applyPatiently(storage, group)).entries()) {
          note(group[index] as Write, outcome);
        }
        // Keys are forgotten while others are added.
        if (pick(3) === 0) await storage.forgetKeys(round);
      }
    });
    const note = ({ garden, id }: Write, outcome: Outcome) => {
      const isNew = outcome.kind === "created" && !outcome.replayed;
      if (!isNew && outcome.kind !== "deleted") return;
      const place = `${garden} ${isNew ? outcome.id : id}`;
      balance.set(place, (balance.get(place) ?? 0) + (isNew ? 1 : -1));
    };
    await Promise.all(work);
    await Promise.all(instances.map((storage) => storage.close()));
    const rows = await database.query("SELECT garden || ' ' || id AS place FROM plants");
    const expected = [...balance].flatMap(([place, count]) => times(count, () => place));
    expect(rows.map(({ place }) => String(place)).toSorted()).toEqual(expected.toSorted());
    expect(rows.length).toBeLessThanOrEqual(3 * (plantsMax ?? rows.length));
    expect(await auditStore(database.url)).toEqual([]);
  },
);
