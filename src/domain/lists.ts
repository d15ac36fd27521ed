/**
 * What can be listed: plants, plants that a search finds, and tags. Each is read in steps, whose
 * size the caller chooses, so that other requests can run in between.
 */
import {
  nameCodePointsMax,
  type Plant,
  type PlantId,
  plantIdMax,
  plantIdMin,
  tagCodePointsMax,
  textLength,
} from "./plant.ts";
import type { CountedTag, Order, PlantReader } from "./ports.ts";

/** A list that is read step by step. A position is what a list goes on after. */
export interface Scan<Item, Position> {
  /** A search and a count look at more plants than they list. */
  readonly kind: "list" | "search" | "count";
  /** Where the next step goes on; absent: at the beginning. */
  readonly position: Position | undefined;
  positionOf(item: Item): Position;
  /**
   * Looks at up to `plants` plants, and lists what it finds: fewer items if they have more text
   * than `textMax`, but at least one. A step that fails can be tried again.
   */
  next(plants: number, textMax?: number): Promise<Step<Item>>;
}

export interface Step<Item> {
  readonly items: readonly Item[];
  /** How many plants it looked at. */
  readonly looks: number;
  /** True only if the list surely ends here. */
  readonly isLast: boolean;
}

export interface TagCount {
  readonly tag: string;
  readonly plants: number;
}

export type PlantScan = Scan<Plant, PlantId>;

export interface PlantQuery {
  readonly after?: PlantId | undefined;
  /** Only plants with exactly this tag. */
  readonly tag?: string | undefined;
  readonly order?: Order | undefined;
}

/** The most text an item can have: two UTF-16 units per code point of a plant. */
export const itemTextMax = 2 * (nameCodePointsMax + tagCodePointsMax);
/** Roughly how long a tag's count is as text. */
const countText = 16;

/** All plants of a garden, or those with a tag. A step is read at one moment. */
export function scanPlants(
  reader: PlantReader,
  garden: string,
  { after, tag, order }: PlantQuery,
): PlantScan {
  let position = after;
  return {
    kind: "list",
    get position() {
      return position;
    },
    positionOf: ({ id }) => id,
    async next(plants, textMax) {
      const items = await reader.list(garden, position, plants, { tag, order, textMax });
      position = items.at(-1)?.id ?? position;
      // Fewer than asked for: the list ended, or the next plant didn't fit.
      const hasRoom = () => textMax === undefined || textOf(items) <= textMax - itemTextMax;
      return { items, looks: items.length, isLast: items.length < plants && hasRoom() };
    },
  };
}

function textOf(plants: readonly Plant[]): number {
  return plants.reduce((sum, plant) => sum + textLength(plant), 0);
}

/** Of these plants, the ones that match. */
export function scanMatches(plants: PlantScan, matches: (plant: Plant) => boolean): PlantScan {
  return {
    kind: "search",
    get position() {
      return plants.position;
    },
    positionOf: plants.positionOf,
    async next(count, textMax) {
      const step = await plants.next(count, textMax);
      return { ...step, items: step.items.filter(matches) };
    },
  };
}

/**
 * The tags of a garden in code point order, with their numbers of plants. Each step counts along
 * the index by tag. A tag that fits into a step is counted in one statement, so its number is exact
 * for that moment. A tag with more plants takes several steps, and a plant that is added or deleted
 * between them counts only if its step comes later.
 */
export function scanTags(
  reader: PlantReader,
  garden: string,
  after: string | undefined,
): Scan<TagCount, string> {
  let position = after;
  /** A tag that has more plants than a step counts: its plants so far, and the last of them. */
  let long: CountedTag | undefined;
  return {
    kind: "count",
    get position() {
      return position;
    },
    positionOf: ({ tag }) => tag,
    async next(plants, textMax = Number.POSITIVE_INFINITY) {
      const from = long ? { tag: long.tag, id: long.lastId + 1n } : startAfter(position);
      const found = await reader.countByTag(garden, from, plants);
      const looks = found.reduce((sum, { plants }) => sum + plants, 0);
      const counted = long ? continueCount(long, found) : found;
      const isEnd = looks < plants;
      // The last tag of a full step may have more plants.
      const open = isEnd || counted.at(-1)?.lastId === plantIdMax ? undefined : counted.at(-1);
      const whole = open ? counted.slice(0, -1) : counted;
      const items = takeCounts(whole, textMax);
      position = items.at(-1)?.tag ?? position;
      // If others came before it, it's counted again from its first plant, in one statement.
      long = whole.length === 0 ? open : undefined;
      return { items, looks, isLast: isEnd && items.length === whole.length };
    },
  };
}

/** No tag contains U+0000, so none is between a tag and that tag with U+0001 after it. */
function startAfter(tag: string | undefined): { readonly tag: string; readonly id: PlantId } {
  return { tag: tag === undefined ? "" : `${tag}\u0001`, id: plantIdMin };
}

/** Adds what was counted of a long tag before to what was found after it. */
function continueCount(long: CountedTag, found: readonly CountedTag[]): readonly CountedTag[] {
  const [first, ...others] = found;
  if (first?.tag !== long.tag) return [long, ...found];
  return [{ ...first, plants: long.plants + first.plants }, ...others];
}

/** The first counts, up to this much text, but at least one. */
function takeCounts(counts: readonly CountedTag[], textMax: number): TagCount[] {
  const taken: TagCount[] = [];
  let text = 0;
  for (const { tag, plants } of counts) {
    text += tag.length + countText;
    if (text > textMax && taken.length > 0) break;
    taken.push({ tag, plants });
  }
  return taken;
}
