/**
 * What can be listed: plants, plants that a search finds, and tags. Each is read in bounded steps,
 * so that other requests can run in between.
 */
import {
  nameCodePointsMax,
  type Plant,
  type PlantId,
  plantIdMax,
  plantIdMin,
  tagCodePointsMax,
} from "./plant.ts";
import type { CountedTag, Order, PlantReader } from "./storage.ts";

/** A list that is read step by step. A position is what a list goes on after. */
export interface Scan<Item, Position> {
  /** A page with a limit ends after it has looked at this many plants, whatever it found. */
  readonly looksMax?: number;
  positionOf(item: Item): Position;
  isPast(position: Position, last: Position): boolean;
  /** Of names and tags, in UTF-16 units. */
  textOf(item: Item): number;
  /**
   * Looks at up to `count` plants or tags after a position, or at fewer if they have more text than
   * `textMax`, which is at least `itemTextMax`.
   */
  read(after: Position | undefined, count: number, textMax: number): Promise<Step<Item, Position>>;
  /** Finds the last of the next `count` items faster than `read` does; absent: use that. */
  seek?(after: Position | undefined, count: number): Promise<Position | undefined>;
}

export interface Step<Item, Position> {
  readonly items: readonly Item[];
  /** Where the next step goes on. */
  readonly position: Position | undefined;
  readonly looks: number;
  /** True only if the list surely ends here. */
  readonly isLast: boolean;
}

export interface TagCount {
  readonly tag: string;
  readonly plants: number;
}

/** The most text an item can have: two UTF-16 units per code point. */
export const itemTextMax = 2 * (nameCodePointsMax + tagCodePointsMax);
const searchedPlantsMax = 20_000;
/** Counting this many takes a millisecond or two, and nothing else runs meanwhile. */
const countedPlantsMax = 4_000;
/** Roughly how long a tag's count is as text. */
const countText = 16;

export type PlantScan = Scan<Plant, PlantId>;

/** All plants of a garden, or those with a tag. */
export function scanPlants(
  reader: PlantReader,
  garden: string,
  { tag, order }: { readonly tag?: string | undefined; readonly order?: Order | undefined },
): PlantScan {
  const textOf = ({ name, tag }: Plant) => name.length + tag.length;
  return {
    positionOf: ({ id }) => id,
    isPast: (id, last) => (order === "desc" ? id < last : id > last),
    textOf,
    async read(after, count, textMax) {
      const isBounded = count * itemTextMax > textMax;
      const options = { tag, order, textMax: isBounded ? textMax : undefined };
      const items = await reader.list(garden, after, count, options);
      // Fewer than asked for: the list ended, or the next plant didn't fit.
      let isLast = items.length < count;
      if (isLast && isBounded) {
        const text = items.reduce((sum, plant) => sum + textOf(plant), 0);
        isLast = text <= textMax - itemTextMax;
      }
      return { items, position: items.at(-1)?.id ?? after, looks: items.length, isLast };
    },
    seek: (after, count) => reader.seek(garden, after, count, { tag, order }),
  };
}

/** Of these plants, the ones that match. */
export function scanMatches(plants: PlantScan, matches: (plant: Plant) => boolean): PlantScan {
  const { positionOf, isPast, textOf } = plants;
  return {
    looksMax: searchedPlantsMax,
    positionOf,
    isPast,
    textOf,
    async read(after, count, textMax) {
      const step = await plants.read(after, count, textMax);
      return { ...step, items: step.items.filter(matches) };
    },
  };
}

/**
 * The tags of a garden in code point order, with their numbers of plants. Counting walks the index
 * by tag, a few thousand plants at a time. A tag that fits into one step is counted in one
 * statement, so its number is exact for that moment. A tag with more plants takes several steps,
 * and a plant that is added or deleted meanwhile counts only if its step comes later.
 */
export function scanTags(
  reader: PlantReader,
  garden: string,
  turn: (garden: string) => Promise<unknown>,
): Scan<TagCount, string> {
  const textOf = ({ tag }: TagCount) => tag.length + countText;

  /** Counts the rest of a tag that has more plants than a step counts. */
  async function countLong({ tag, plants, lastId }: CountedTag): Promise<Step<TagCount, string>> {
    let looks = plants;
    let isLast = false;
    for (let last = lastId; last < plantIdMax; ) {
      await turn(garden);
      const from = { tag, id: last + 1n };
      const [counted, other] = await reader.countByTag(garden, from, countedPlantsMax);
      isLast = counted === undefined;
      if (counted?.tag !== tag) break;
      looks += counted.plants;
      last = counted.lastId;
      isLast = other === undefined && counted.plants < countedPlantsMax;
      if (isLast || other) break;
    }
    return { items: [{ tag, plants: looks }], position: tag, looks, isLast };
  }

  return {
    positionOf: ({ tag }) => tag,
    isPast: (tag, last) => Buffer.compare(Buffer.from(tag), Buffer.from(last)) > 0,
    textOf,
    async read(after, count, textMax) {
      // No tag contains U+0000, so none is between a tag and that tag with U+0001 after it.
      const from = { tag: after === undefined ? "" : `${after}\u0001`, id: plantIdMin };
      const found = await reader.countByTag(garden, from, countedPlantsMax);
      const looks = found.reduce((sum, { plants }) => sum + plants, 0);
      const isEnd = looks < countedPlantsMax;
      const [first] = found;
      // The last tag of a full step may have more plants. It's counted again from its first plant.
      const whole = isEnd ? found : found.slice(0, -1);
      if (first && whole.length === 0) return countLong(first);
      const items: TagCount[] = [];
      let text = 0;
      for (const { tag, plants } of whole) {
        text += textOf({ tag, plants });
        if (items.length === count || text > textMax) break;
        items.push({ tag, plants });
      }
      const isLast = isEnd && items.length === whole.length;
      return { items, position: items.at(-1)?.tag ?? after, looks, isLast };
    },
  };
}
