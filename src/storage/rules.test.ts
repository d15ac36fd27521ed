/** The rules over look-ups that the test makes: what is looked up, and what is to be stored. */
import { describe, expect, test } from "bun:test";
import { create, created, put, remove } from "../../test/storage-contract/tested-storage.ts";
import type { PlantId } from "../domain/plant.ts";
import type { Write } from "../domain/storage.ts";
import { olderRow, type StoredKey, toKeyUse } from "./keys.ts";
import { decide, type GardenRow, prepare } from "./rules.ts";

interface Stored {
  readonly garden?: Partial<GardenRow> | "none";
  readonly plants?: readonly PlantId[];
  readonly keys?: ReadonlyMap<string, StoredKey>;
  readonly plantsMax?: number;
  readonly olderKeysUntilMs?: number;
}

const empty: GardenRow = { lastId: 0n, plants: 0, keys: 0 };

/** Decides writes to one garden, and notes what was looked up. */
function decideWith(stored: Stored, ...writes: Write[]) {
  const { garden = {}, plants = [], keys, plantsMax, olderKeysUntilMs = 0 } = stored;
  const lookedUp: string[] = [];
  const lookUp = {
    garden() {
      lookedUp.push("garden");
      return garden === "none" ? undefined : { ...empty, plants: plants.length, ...garden };
    },
    plant(_: string, id: PlantId) {
      lookedUp.push(`plant ${id}`);
      return plants.includes(id) ? { name: "Fern", tag: "" } : undefined;
    },
    key(_: string, row: string) {
      lookedUp.push("key");
      return keys?.get(row);
    },
  };
  const { outcomes, changes } = decide(prepare(writes), lookUp, { plantsMax, olderKeysUntilMs });
  return { kinds: outcomes.map(({ kind }) => kind), outcomes, changes: changes[0], lookedUp };
}

const idempotency = { key: "k", nowMs: 0, expiresAtMs: 9 };

describe("what is looked up", () => {
  test("is the garden alone, once, for creates without an id", () => {
    const { outcomes, lookedUp } = decideWith({ garden: { lastId: 7n } }, create(), create());
    expect(outcomes).toEqual([created(8n), created(9n)]);
    expect(lookedUp).toEqual(["garden"]);
  });

  test("is each plant and key once, however many writes name it", () => {
    const keyed = create({ id: 1n, idempotency });
    const { kinds, lookedUp } = decideWith(
      {},
      keyed,
      keyed,
      remove(1n),
      put({ id: 1n }),
      remove(2n),
    );
    expect(kinds).toEqual(["created", "created", "deleted", "created", "missing"]);
    expect(lookedUp).toEqual(["garden", "key", "plant 1", "plant 2"]);
  });

  test("is nothing in a garden without a row, whatever another process adds meanwhile", () => {
    const stored = { garden: "none", plants: [1n] } as const;
    const { kinds, changes, lookedUp } = decideWith(stored, remove(1n));
    expect(kinds).toEqual(["missing"]);
    expect(changes).toBeUndefined();
    expect(lookedUp).toEqual(["garden"]);
  });
});

describe("what is to be stored", () => {
  test("is each plant once, as the last write left it", () => {
    const { changes } = decideWith(
      { garden: { lastId: 5n }, plants: [1n, 2n, 3n] },
      ...[remove(1n), put({ id: 2n, name: "a" }), put({ id: 2n, name: "b" })],
      ...[remove(3n), create({ id: 3n, name: "c" }), create(), remove(6n), create({ name: "d" })],
    );
    expect(changes).toMatchObject({
      lastId: 7n,
      plants: 3,
      keys: 0,
      inserted: [{ id: 7n, name: "d" }],
      replaced: [
        { id: 2n, name: "b" },
        { id: 3n, name: "c" },
      ],
      deleted: [1n],
    });
  });

  test("counts a key that is new to the garden, and none that had expired there", () => {
    const row = toKeyUse(create({ idempotency }))?.row ?? "";
    const expired = new Map([[row, { entries: Buffer.alloc(24, 1), expiresAtMs: 0 }]]);
    expect(decideWith({}, create({ idempotency })).changes?.keys).toBe(1);
    const again = decideWith({ garden: { keys: 4 }, keys: expired }, create({ idempotency }));
    expect(again.outcomes).toEqual([created(1n)]);
    expect(again.changes?.keys).toBe(4);
  });
});

test("a key that 0.5 stored is found until the last of them expires", () => {
  const write = create({ idempotency });
  const use = toKeyUse(write);
  if (use === undefined) throw new Error("It has a key.");
  const entries = Buffer.concat([Buffer.from(use.request, "latin1"), Buffer.alloc(8, 0)]);
  entries.writeBigInt64BE(5n, 16);
  const keys = new Map([[olderRow(use), { entries, expiresAtMs: 9 }]]);
  expect(decideWith({ keys, olderKeysUntilMs: 9 }, write).outcomes).toEqual([created(5n, true)]);
  expect(decideWith({ keys, olderKeysUntilMs: 0 }, write).outcomes).toEqual([created(1n)]);
});
