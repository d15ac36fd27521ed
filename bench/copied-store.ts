/** A store with many plants, for measurements of copies and backups. */
import type { CreateWrite } from "../src/domain/storage.ts";
import { openStorage } from "../src/storage/open.ts";

const gardens = 100;
const batchPlants = 1_000;
const dayMs = 86_400_000;

/** Half of the plants in one garden, the others in many; a key for every hundredth plant. */
export async function fillStore(address: string, plants: number): Promise<void> {
  const storage = await openStorage(address, { isServing: false });
  for (let from = 0; from < plants; from += batchPlants) {
    const batch = Array.from({ length: batchPlants }, (_, offset) => create(from + offset));
    await storage.apply(batch);
  }
  await storage.close();
}

function create(index: number): CreateWrite {
  const nowMs = Date.now();
  const key = { key: `key-${index}`, nowMs, expiresAtMs: nowMs + dayMs };
  return {
    kind: "create",
    garden: index % 2 === 0 ? "hot" : `garden ${index % gardens}`,
    id: BigInt(index),
    name: `Monstera deliciosa ${index}`,
    tag: "living room",
    idempotency: index % 100 === 0 ? key : undefined,
  };
}
