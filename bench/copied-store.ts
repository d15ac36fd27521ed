/** A store with many plants, for measurements of moves and backups. */
import type { MovedRecords } from "../src/domain/transfer.ts";
import { openStorage } from "../src/storage/open.ts";

const gardens = 100;
const batchRecords = 10_000;
const dayMs = 86_400_000;

/** Half of the plants in one garden, the others in many; a key for every hundredth plant. */
export async function fillStore(address: string, plants: number): Promise<void> {
  const storage = await openStorage(address, { isServing: false });
  const transfer = storage.transfer(Date.now());
  const gardenOf = (index: number) => (index % 2 === 0 ? "hot" : `garden ${index % gardens}`);
  for (let from = 0; from < plants; from += batchRecords) {
    const batch: MovedRecords["plants"][] = Array.from({ length: batchRecords }, (_, offset) => ({
      garden: gardenOf(from + offset),
      id: BigInt(from + offset),
      name: `Monstera deliciosa ${from + offset}`,
      tag: "living room",
    }));
    await transfer.add("plants", batch);
    const keys = batch
      .filter(({ id }) => id % 100n === 0n)
      .map(({ garden, id }) => {
        const request = '{"name":"Monstera deliciosa","tag":"living room"}';
        return { garden, key: `key-${id}`, request, plantId: id, expiresAtMs: Date.now() + dayMs };
      });
    await transfer.add("keys", keys);
  }
  await storage.close();
}
