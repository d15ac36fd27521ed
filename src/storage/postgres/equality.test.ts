/**
 * The two engines decide alike: the same random groups have the same outcomes, one after the other.
 */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { makeDice } from "../../../test/dice.ts";
import { makeDatabase } from "../../../test/postgres-server.ts";
import { create, remove } from "../../../test/storage-contract/tested-storage.ts";
import { makeTemporaryFolder } from "../../../test/temporary-folder.ts";
import { assignedIdMax, plantIdMax, plantIdMin } from "../../domain/plant.ts";
import { countedIdMax, type Write } from "../../domain/storage.ts";
import { openStorage } from "../open.ts";

const gardens = ["one", "two", "three"];

/** Ids around every limit, few enough that they meet. */
const ids = [
  ...[-1n, 0n, 1n, 2n, 3n, 5n, 8n, plantIdMin, plantIdMax],
  ...[-1n, 0n, 1n, 2n, 3n, 4n].map((step) => countedIdMax + step),
  ...[-3n, -2n, -1n, 0n, 1n].map((step) => assignedIdMax + step),
];

function makeGroups(seed: number): Write[][] {
  const pick = makeDice(seed);
  const any = <Item>(items: readonly Item[]) => items[pick(items.length)] as Item;
  const kinds: ((nowMs: number) => Write)[] = [
    () => create({ garden: any(gardens), name: `Plant ${pick(100)}` }),
    () => remove(any(ids), any(gardens)),
    () => create({ garden: any(gardens), id: any(ids) }),
    (nowMs) => {
      const times = { nowMs, expiresAtMs: nowMs + 20 };
      const line = any([undefined, pick(300)]);
      const idempotency = { key: `k${pick(5)}`, line, ...times };
      const id = any([undefined, any(ids)]);
      return create({ garden: any(gardens), id, name: `Plant ${pick(2)}`, idempotency });
    },
  ];
  return Array.from({ length: 80 }, (_, round) => {
    // Some groups are of one kind, because a single statement can do them.
    const ofGroup = kinds[round % 6] === undefined ? kinds : [any(kinds.slice(0, 2))];
    return Array.from({ length: 1 + pick(8) }, () => any(ofGroup)(round));
  });
}

test.each([
  [1, 0n],
  [2, countedIdMax - 2n],
  [3, assignedIdMax - 8n],
  [4, assignedIdMax],
])(
  "for the random groups of the seed %i, in gardens that have got to the id %p",
  async (seed, lastId) => {
    using folder = makeTemporaryFolder();
    const path = join(folder.path, "plants.db");
    const database = await makeDatabase();
    const file = await openStorage(path, { isServing: false });
    const server = await openStorage(database.url, { isServing: false });
    const own = new Database(path);
    for (const garden of gardens) {
      own.run("INSERT INTO gardens VALUES (?, ?)", [garden, lastId]);
      await database.query("INSERT INTO gardens VALUES ($1, $2)", [garden, lastId]);
    }
    own.close();
    for (const group of makeGroups(seed)) {
      expect(await server.apply(group)).toEqual(await file.apply(group));
    }
    for (const garden of gardens) {
      const plants = await file.list(garden, undefined, 10_000);
      expect(await server.list(garden, undefined, 10_000)).toEqual(plants);
    }
    await Promise.all([file.close(), server.close()]);
    await database.drop();
  },
);
