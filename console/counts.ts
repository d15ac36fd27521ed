/** How many plants and tags there are after changes, so that numbers and rows change together. */
import { type Plant, type Summary, type TagCount, tagsMax } from "./api.ts";

/** A plant as it was and as it is: without `before` it's new, without `after` it's gone. */
export interface PlantChange {
  readonly before?: Plant | undefined;
  readonly after?: Plant | undefined;
}

export function countAfter(summary: Summary, changes: readonly PlantChange[]): Summary {
  const { me, tags } = summary;
  const counts = new Map(tags.map(({ tag, plants }) => [tag, plants]));
  let { plants } = me;
  const add = (plant: Plant | undefined, amount: 1 | -1) => {
    if (!plant) return;
    plants += amount;
    counts.set(plant.tag, (counts.get(plant.tag) ?? 0) + amount);
  };
  for (const { before, after } of changes) {
    add(before, -1);
    add(after, 1);
  }
  const isWhole = tags.length < tagsMax;
  const known = new Set(tags.map(({ tag }) => tag));
  const counted = [...counts]
    .map(([tag, count]): TagCount => ({ tag, plants: count }))
    .filter((each) => each.plants > 0 && (isWhole || known.has(each.tag)));
  return { me: { ...me, plants }, tags: counted };
}
