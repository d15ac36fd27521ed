/** A few drills, and what the drill says of copies that are no backups. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { openStorage } from "../../../src/storage/open.ts";
import type { ListedPlant } from "../ledger.ts";
import { type Case, drill } from "./drill.ts";
import { LoadedStore } from "./loaded-store.ts";

setDefaultTimeout(60_000);

test.each<[Case["from"], Case["to"], Case["loss"]]>([
  ["SQLite", "SQLite", "but for its log"],
  ["SQLite", "PostgreSQL", "without a trace"],
  ["PostgreSQL", "SQLite", "without a trace"],
])(
  "what %s kept goes on in %s from a backup that was taken under load; it was lost %s",
  async (from, to, loss) => {
    const { faults, figures } = await drill(1, { from, to, loss });
    expect(faults).toEqual([]);
    expect(figures.restored).toBeGreaterThan(0);
  },
);

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

test("the drill finds that a copy of the file without its log is no backup", async () => {
  await using store = await LoadedStore.start("SQLite", 2);
  await store.grow(30);
  const begun = store.chronicle.moment;
  const copy = join(store.folder, "copy.db");
  copyFileSync(store.address, copy);
  const plants = await readPlants(copy);
  const faults = store.chronicle.auditMoment(plants, begun, store.chronicle.moment);
  expect(faults).toContainEqual(expect.stringMatching(/: missing$/));
});

test("the drill finds that a copy of two moments is no backup", async () => {
  await using store = await LoadedStore.start("SQLite", 3);
  await store.grow(30);
  const begun = store.chronicle.moment;
  const plants = await readPlants(store.address, () => store.grow(30));
  expect(store.chronicle.auditMoment(plants, begun, store.chronicle.moment)).not.toEqual([]);
});
