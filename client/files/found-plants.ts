/** Finds the plants that have certain ids, many in a request. */
import type { Plant, PlantStore } from "../plant-store.ts";

const idMin = -(2n ** 63n);
const pageSize = 1_000;

/** Ids that are close to each other take few requests. */
export async function findPlants(
  store: PlantStore,
  ids: readonly bigint[],
  signal?: AbortSignal,
): Promise<Map<bigint, Plant>> {
  const found = new Map<bigint, Plant>();
  let left = ids.toSorted((a, b) => (a < b ? -1 : 1));
  for (let first = left[0]; first !== undefined; first = left[0]) {
    const { plants } = await store.page({
      after: first === idMin ? undefined : first - 1n,
      limit: Math.min(pageSize, left.length),
      signal,
    });
    for (const plant of plants) found.set(plant.id, plant);
    const last = plants.at(-1)?.id;
    left = last === undefined ? [] : left.filter((id) => id > last);
  }
  return found;
}
