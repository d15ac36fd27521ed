/**
 * What can be listed: plants, plants that a search finds, and tags. Each is read in steps, whose
 * size the caller chooses, so that other requests can run in between.
 */
import { andThen, type MaybePromise } from "../shared/promises.ts";
import {
  contentCharactersMax,
  countCharacters,
  type Plant,
  type PlantId,
  plantIdMax,
  plantIdMin,
} from "./plant.ts";
import type { CountedTag, Order, PlantReader } from "./ports.ts";

/** A list that is read step by step. Its position is the item after which it goes on. */
export interface Scan<Item, Position> {
  /** A search and a count look at more plants than they list. */
  readonly kind: "list" | "search" | "count";
  /** Where the next step goes on; absent: at the beginning. */
  readonly position: Position | undefined;
  positionOf(item: Item): Position;
  /**
   * Looks at up to `plantsMax` plants and returns the items that it finds, fewer if they have more
   * than `charactersMax` characters, but at least one. A step that fails can be tried again.
   */
  next(plantsMax: number, charactersMax?: number): MaybePromise<Step<Item>>;
}

export interface Step<Item> {
  readonly items: readonly Item[];
  /** How many plants it looked at. */
  readonly lookedAt: number;
  /** Whether the list ends here. False if that isn't certain. */
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
  /** Only plants that this search finds; see `scanMatches`. */
  readonly search?: string | undefined;
}

/** Roughly how many characters the count of a tag has as JSON. */
const countCharactersMax = 16;

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
    next(plantsMax, charactersMax) {
      const options = { tag, order, charactersMax };
      return andThen(reader.list(garden, position, plantsMax, options), (items) => {
        position = items.at(-1)?.id ?? position;
        // Fewer than asked for: the list ended, or the next plant didn't fit.
        const hadRoom = () =>
          charactersMax === undefined ||
          sumCharacters(items) + contentCharactersMax <= charactersMax;
        return { items, lookedAt: items.length, isLast: items.length < plantsMax && hadRoom() };
      });
    },
  };
}

function sumCharacters(plants: readonly Plant[]): number {
  return plants.reduce((sum, plant) => sum + countCharacters(plant), 0);
}

/** Of these plants, the ones that match. */
export function scanMatches(plants: PlantScan, matches: (plant: Plant) => boolean): PlantScan {
  return {
    kind: "search",
    get position() {
      return plants.position;
    },
    positionOf: plants.positionOf,
    async next(plantsMax, charactersMax) {
      const step = await plants.next(plantsMax, charactersMax);
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
  /**
   * A tag that has more plants than one step counts: how many were counted so far, and the last of
   * them.
   */
  let unfinished: CountedTag | undefined;
  return {
    kind: "count",
    get position() {
      return position;
    },
    positionOf: ({ tag }) => tag,
    async next(plantsMax, charactersMax = Number.POSITIVE_INFINITY) {
      const from = unfinished
        ? { tag: unfinished.tag, id: unfinished.lastId + 1n }
        : startAfter(position);
      const found = await reader.countByTag(garden, from, plantsMax);
      const lookedAt = found.reduce((sum, { plants }) => sum + plants, 0);
      const isEnd = lookedAt < plantsMax;
      const counts = unfinished ? continueCount(unfinished, found) : [...found];
      // The next step may find more plants of the last tag.
      const isLastOpen = !isEnd && counts.at(-1)?.lastId !== plantIdMax;
      const open = isLastOpen ? counts.pop() : undefined;
      const items = takeCounts(counts, charactersMax);
      position = items.at(-1)?.tag ?? position;
      // If other tags came before it, count it again from its first plant, in one statement.
      unfinished = counts.length === 0 ? open : undefined;
      return { items, lookedAt, isLast: isEnd && items.length === counts.length };
    },
  };
}

/** No tag contains U+0000, so none is between a tag and that tag with U+0001 after it. */
function startAfter(tag: string | undefined): { readonly tag: string; readonly id: PlantId } {
  return { tag: tag === undefined ? "" : `${tag}\u0001`, id: plantIdMin };
}

/** Adds the plants that were counted before to those found now. */
function continueCount(unfinished: CountedTag, found: readonly CountedTag[]): CountedTag[] {
  const [first, ...others] = found;
  if (first?.tag !== unfinished.tag) return [unfinished, ...found];
  return [{ ...first, plants: unfinished.plants + first.plants }, ...others];
}

/** The first counts, up to this many characters, but at least one. */
function takeCounts(counts: readonly CountedTag[], charactersMax: number): TagCount[] {
  const taken: TagCount[] = [];
  let characters = 0;
  for (const { tag, plants } of counts) {
    characters += tag.length + countCharactersMax;
    if (characters > charactersMax && taken.length > 0) break;
    taken.push({ tag, plants });
  }
  return taken;
}
