/** Stores with many plants, and what is in them. */
import type { Plant } from "../src/domain/plant.ts";
import { openStorage } from "../src/storage/open.ts";
import { create } from "./tested-storage.ts";

const batchPlants = 2_000;

/** Adds plants with the ids 0, 1, 2 …, unless they exist. */
export async function fillStore(address: string, plants: number, name = "Fern"): Promise<void> {
  const storage = await openStorage(address, { isServing: false });
  for (let from = 0; from < plants; from += batchPlants) {
    const length = Math.min(batchPlants, plants - from);
    const ids = Array.from({ length }, (_, index) => from + index);
    await storage.apply(ids.map((id) => create({ id: BigInt(id), name: `${name} ${id}` })));
  }
  await storage.close();
}

export async function readPlants(address: string, garden = "home"): Promise<readonly Plant[]> {
  const storage = await openStorage(address, { isServing: false, mustExist: true });
  const plants = await storage.list(garden, undefined, 2 ** 31 - 1);
  await storage.close();
  return plants;
}

export async function countPlants(address: string): Promise<number> {
  return (await readPlants(address)).length;
}
