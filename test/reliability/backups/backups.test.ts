/** A few drills, and what the audit reports about copies that are no backups. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { openStorage } from "../../../src/storage/open.ts";
import type { ListedPlant } from "../ledger.ts";
import { type Case, drill, LoadedStore } from "./drill.ts";

setDefaultTimeout(60_000);

test.each<[Case["from"], Case["to"], Case["loss"]]>([
  ["SQLite", "SQLite", "all but the WAL"],
  ["SQLite", "PostgreSQL", "all files"],
  ["PostgreSQL", "SQLite", "all files"],
])("a backup of %s under load is restored to %s after the loss of %s", async (from, to, loss) => {
  const { faults, figures } = await drill(1, { from, to, loss });
  expect(faults).toEqual([]);
  expect(figures.restored).toBeGreaterThan(0);
});

async function readPlants(path: string, pause = async () => {}): Promise<ListedPlant[]> {
  const storage = await openStorage(path, { isServing: false });
  const [garden] = (await storage.listTokens()).map((token) => token.garden);
  const all = await storage.list(garden ?? "", undefined, 100_000);
  const first = all.slice(0, all.length / 2);
  await pause();
  const second = await storage.list(garden ?? "", first.at(-1)?.id, 100_000);
  await storage.close();
  return [...first, ...second].map(({ id, name, tag }) => ({ id: String(id), name, tag }));
}

test("a copy of the file without its WAL is found to lack plants", async () => {
  await using store = await LoadedStore.start("SQLite", 2);
  await store.grow(30);
  const begun = store.ledger.moment;
  const copy = join(store.folder, "copy.db");
  copyFileSync(store.address, copy);
  const plants = await readPlants(copy);
  const faults = store.ledger.auditMoment(plants, begun, store.ledger.moment);
  expect(faults).toContainEqual(expect.stringMatching(/: missing$/));
});

test("a copy of two moments is found to be inconsistent", async () => {
  await using store = await LoadedStore.start("SQLite", 3);
  await store.grow(30);
  const begun = store.ledger.moment;
  const plants = await readPlants(store.address, () => store.grow(30));
  expect(store.ledger.auditMoment(plants, begun, store.ledger.moment)).not.toEqual([]);
});
