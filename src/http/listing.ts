/**
 * A list as a response: a page, or a stream with a count. A page of plants is read at one moment,
 * and links to the next one. Anything longer is read and sent slice by slice, at the client's pace
 * and in constant memory. Searches and tag counts look at many plants, so only a few of them begin at
 * the same time.
 */

import type { Scan, Step } from "../domain/lists.ts";
import { contentCharactersMax } from "../domain/plant.ts";
import { withoutRefusal } from "../limits/overload.ts";
import type { ReservedBytes } from "../limits/reserved-bytes.ts";
import { Semaphore } from "../limits/semaphore.ts";
import { andThen, type MaybePromise } from "../shared/promises.ts";
import { ChunkSizes, type Source } from "./stream.ts";

export interface Listing<Position> {
  /** Short lists are sent whole. */
  readonly body: string | Source<string | Uint8Array>;
  /** The next page; absent after the last one, and with a stream. */
  readonly next?: { readonly limit: number; readonly after: Position | undefined };
}

/** What a client sees of an item. */
type Show<Item> = (item: Item) => unknown;

const pageItemsMax = 1_000;
/** A page of a search ends when it has looked at this many plants, whatever it found. */
const searchedPlantsMax = 20_000;
/** Reading, searching or counting this many plants takes a millisecond or two. */
const slicePlants = { list: 2_000, search: 1_000, count: 4_000 } as const;
/** Of names and tags, in UTF-16 units: 80 to 200 KiB as JSON. */
const sliceCharactersMax = 64 * 1024;
/**
 * A text of up to this many characters is sent whole, and may be cached. A longer one is a stream,
 * because only streams say when they have been sent.
 */
const wholeCharactersMax = 64 * 1024;
/** How many searches and counts begin at the same time, in all and in one garden. */
const permitsMax = 64;
const gardenPermitsMax = 16;
/** A search may find nothing for long. A space this often keeps its connection from being idle. */
const signOfLifeMs = 1_000;

const encoder = new TextEncoder();

/** The lists of one thread. */
export class Lists {
  readonly #permits: Semaphore;
  readonly #chunkSizes = new ChunkSizes(2_048, sliceCharactersMax, 2 * 1024 * 1024);

  /** `turn` resolves when a garden may go on with long work. */
  constructor(
    private readonly turn: (garden: string) => Promise<unknown>,
    private readonly reservedBytes: ReservedBytes,
    now?: () => number,
  ) {
    this.#permits = new Semaphore(permitsMax, gardenPermitsMax, now);
  }

  /** Up to `limit` items, or all. Fails with `overloaded` if it has to wait too long to begin. */
  read<Item, Position>(
    garden: string,
    scan: Scan<Item, Position>,
    limit: number | undefined,
    show: Show<Item>,
  ): MaybePromise<Listing<Position>> {
    const read = () =>
      limit !== undefined && limit <= pageItemsMax
        ? this.#readPage(garden, scan, limit, show)
        : this.#openStream(garden, scan, limit ?? Number.POSITIVE_INFINITY, show);
    return scan.kind === "list" ? read() : this.#permits.run(garden, read);
  }

  #readPage<Item, Position>(
    garden: string,
    scan: Scan<Item, Position>,
    limit: number,
    show: Show<Item>,
  ): MaybePromise<Listing<Position>> {
    const start = scan.position;
    const plants = scan.kind === "search" ? searchedPlantsMax : Number.POSITIVE_INFINITY;
    // One item more than requested shows whether the limit cut the list short.
    const reading =
      scan.kind === "list"
        ? scan.next(limit + 1)
        : this.#search(garden, scan, { items: limit + 1, plants, characters: sliceCharactersMax });
    return andThen(reading, (read) => {
      const items = read.items.slice(0, limit);
      const body = this.#holdPage(garden, `[${renderItems(items, show)}]`);
      const isCut = read.items.length > limit;
      if (!isCut && read.isLast) return { body };
      const last = items.at(-1);
      const end = last === undefined ? start : scan.positionOf(last);
      // A page of 0 would link to itself forever, so its link asks for pages of 1.
      return { body, next: { limit: limit || 1, after: isCut ? end : scan.position } };
    });
  }

  /** Searches or counts, slice by slice, until it has enough items or has looked at enough plants. */
  async #search<Item>(
    garden: string,
    scan: Scan<Item, unknown>,
    max: { readonly items: number; readonly plants: number; readonly characters: number },
  ): Promise<Step<Item>> {
    const items: Item[] = [];
    for (let lookedAt = 0; ; await this.turn(garden)) {
      const plants = Math.min(slicePlants[scan.kind], max.plants - lookedAt);
      const step = await withoutRefusal(() => scan.next(plants, max.characters));
      items.push(...step.items);
      lookedAt += step.lookedAt;
      const isEnough = items.length >= max.items || lookedAt >= max.plants;
      if (step.isLast || isEnough) return { items, lookedAt, isLast: step.isLast };
    }
  }

  /** A page that isn't short counts toward its garden's reserved bytes until it is sent. */
  #holdPage(garden: string, text: string): Listing<unknown>["body"] {
    if (text.length <= wholeCharactersMax) return text;
    let bytes: Uint8Array | undefined = encoder.encode(text);
    const reserved = this.reservedBytes.open(garden);
    reserved.add(bytes.length);
    return {
      async next() {
        const sent = bytes;
        bytes = undefined;
        return sent;
      },
      close: () => reserved.release(),
    };
  }

  /**
   * Reads the first chunk. A list reads one slice for it. A search looks at as many plants as for a
   * page: most searches end there, and only a few of them begin at the same time.
   */
  async #openStream<Item>(
    garden: string,
    scan: Scan<Item, unknown>,
    limit: number,
    show: Show<Item>,
  ): Promise<Listing<never>> {
    const read = () => scan.next(slicePlants[scan.kind], this.#chunkSizes.size);
    const characters = this.#chunkSizes.size;
    // So many fit into a chunk, whatever their names and tags.
    const items = Math.ceil(characters / contentCharactersMax);
    const max = { items, plants: searchedPlantsMax, characters };
    const first = scan.kind === "list" ? await read() : await this.#search(garden, scan, max);
    const array = new ArrayText(limit, show);
    const opening = `[${array.add(first)}`;
    if (array.isWhole && opening.length <= wholeCharactersMax) return { body: opening };
    return { body: new ListStream(opening, array, read, this.#chunkSizes.open()) };
  }
}

/** What follows the opening bracket of a JSON array with up to `limit` items, step by step. */
class ArrayText<Item> {
  #separator = "";
  isWhole = false;

  constructor(
    private limit: number,
    private readonly show: Show<Item>,
  ) {}

  add({ items, isLast }: Step<Item>): string {
    const shown = items.slice(0, this.limit);
    this.limit -= shown.length;
    this.isWhole = isLast || this.limit === 0;
    const separator = shown.length > 0 ? this.#separator : "";
    if (shown.length > 0) this.#separator = ",";
    return separator + renderItems(shown, this.show) + (this.isWhole ? "]" : "");
  }
}

class ListStream<Item> implements Source<string> {
  #sentAtMs = performance.now();

  constructor(
    private opening: string,
    private readonly array: ArrayText<Item>,
    private readonly read: () => MaybePromise<Step<Item>>,
    readonly close: () => void,
  ) {}

  async next(): Promise<string | undefined> {
    const { opening, array } = this;
    this.opening = "";
    if (opening !== "") return opening;
    if (array.isWhole) return undefined;
    const text = array.add(await withoutRefusal(this.read));
    const nowMs = performance.now();
    if (text === "" && nowMs - this.#sentAtMs < signOfLifeMs) return "";
    this.#sentAtMs = nowMs;
    return text || " ";
  }
}

/** Without the brackets. */
function renderItems<Item>(items: readonly Item[], show: Show<Item>): string {
  return JSON.stringify(items.map(show)).slice(1, -1);
}
