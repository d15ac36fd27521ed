/**
 * The two engines decide alike: the same random groups have the same outcomes, one after the other,
 * and leave the same rows. On SQLite, `rules.ts` decides everything. On PostgreSQL, plain creates
 * are one statement, which states the rules a second time.
 */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { assignedIdMax, contentHash, plantIdMax, plantIdMin } from "../../src/domain/plant.ts";
import type { Write } from "../../src/domain/ports.ts";
import { openStorage } from "../../src/storage/open.ts";
import type { WriterOptions } from "../../src/storage/storage.ts";
import { makeDice } from "../dice.ts";
import { makeDatabase } from "../postgres-server.ts";
import { fastestParent, makeTemporaryFolder } from "../temporary-folder.ts";
import { create, put, remove } from "./tested-storage.ts";

const gardens = ["one", "two", "three"];

/** Ids around every limit, few enough that they meet. */
const ids = [
  -1n,
  0n,
  1n,
  2n,
  3n,
  5n,
  8n,
  plantIdMin,
  plantIdMax,
  ...[-3n, -2n, -1n, 0n, 1n, 2n].map((step) => assignedIdMax + step),
];

const hashes = [0, 1].map((number) => contentHash({ name: `Plant ${number}`, tag: "" }));

const users = ["ada", "bob"];

function makeGroups(seed: number): Write[][] {
  const pick = makeDice(seed);
  const any = <Item>(items: readonly Item[]) => items[pick(items.length)] as Item;
  const plainKinds: ((nowMs: number) => Write)[] = [
    () => create({ garden: any(gardens), name: `Plant ${pick(100)}` }),
    (nowMs) => {
      // Some keys come twice, with the same plant or another one, before or after they expire.
      const idempotency = { key: `p${pick(100)}`, nowMs, expiresAtMs: nowMs + 20 };
      return create({ garden: any(gardens), name: `Plant ${pick(2)}`, idempotency });
    },
  ];
  const kinds: ((nowMs: number) => Write)[] = [
    ...plainKinds,
    () => remove(any(ids), any(gardens)),
    () => create({ garden: any(gardens), id: any(ids) }),
    () => {
      const ifMatch = any([undefined, "*" as const, [any(hashes)], [any(hashes), any(hashes)]]);
      const ifNoneMatch = any([undefined, undefined, "*" as const]);
      const content = { name: `Plant ${pick(2)}`, tag: "" };
      const named = { garden: any(gardens), id: any(ids) };
      return any([
        put({ ...named, ...content, preconditions: { ifMatch, ifNoneMatch } }),
        { ...remove(named.id, named.garden), preconditions: { ifMatch } },
        {
          ...remove(named.id, named.garden),
          kind: "patch",
          change: any([{ tag: "hall" }, { name: "Plant 1" }, content]),
          preconditions: { ifMatch },
        },
      ]);
    },
    (nowMs) => {
      const times = { nowMs, expiresAtMs: nowMs + 20 };
      const index = any([undefined, pick(300)]);
      const idempotency = { key: `k${pick(5)}`, index, ...times };
      const id = any([undefined, undefined, any(ids)]);
      return create({ garden: any(gardens), id, name: `Plant ${pick(2)}`, idempotency });
    },
  ];
  return Array.from({ length: 80 }, (_, round) => {
    // Many groups are of kinds that one statement does.
    const ofGroup = [kinds, plainKinds, [any(kinds)]][round % 3] ?? kinds;
    return Array.from({ length: 1 + pick(8) }, () => {
      return { ...any(ofGroup)(round), user: any(users), atMs: pick(1_000) };
    });
  });
}

const toText = (row: Record<string, unknown>) => Object.values(row).map(String);

test.each<[seed: number, lastId: bigint, options: WriterOptions]>([
  [1, 0n, {}],
  [3, assignedIdMax - 8n, {}],
  [4, assignedIdMax, { withoutEvents: true }],
  [6, 2n, { plantsMax: 12 }],
])(
  "for the random groups of the seed %i, in gardens that have got to the id %p, with %p",
  async (seed, lastId, options) => {
    using folder = makeTemporaryFolder(fastestParent());
    const path = join(folder.path, "plants.db");
    const database = await makeDatabase();
    const file = await openStorage(path, { isServing: false, ...options });
    const server = await openStorage(database.url, { isServing: false, ...options });
    const own = new Database(path, { safeIntegers: true, readwrite: true });
    for (const garden of gardens) {
      own.run("INSERT INTO gardens VALUES (?, ?, 0, 0, 0)", [garden, lastId]);
      await database.query("INSERT INTO gardens VALUES ($1, $2, 0, 0, 0)", [garden, lastId]);
    }
    for (const group of makeGroups(seed)) {
      expect(await server.apply(group)).toEqual(await file.apply(group));
    }
    for (const rows of [
      "SELECT garden, last_id, plants, keys, last_event FROM gardens ORDER BY garden",
      "SELECT * FROM events ORDER BY garden, seq",
      "SELECT garden, hex(key) AS key, hex(entries) AS entries, expires_at_ms FROM idempotency_keys ORDER BY garden, key",
    ]) {
      const ofServer = await database.query(
        rows.replaceAll(/hex\((\w+)\)/g, "upper(encode($1, 'hex'))"),
      );
      const ofFile = own.query<Record<string, string | number | bigint>, []>(rows).all();
      expect(ofServer.map(toText)).toEqual(ofFile.map(toText));
    }
    own.close();
    for (const garden of gardens) {
      const plants = await file.list(garden, undefined, 10_000);
      expect(await server.list(garden, undefined, 10_000)).toEqual(plants);
      expect(await file.countPlants(garden)).toBe(plants.length);
      expect(await server.countPlants(garden)).toBe(plants.length);
    }
    await Promise.all([file.close(), server.close()]);
    await database.drop();
  },
);
