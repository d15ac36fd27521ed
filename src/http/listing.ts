/**
 * Lists of any length in constant memory. A short list is sent whole; a longer one is read page by
 * page, at the client's pace.
 */
import { FairSemaphore } from "../async/fair-semaphore.ts";
import { overloaded, PlantStoreError } from "../domain/errors.ts";
import { itemTextMax, type Scan } from "../domain/lists.ts";
import type { Source } from "./stream.ts";

export interface ListRange<Position> {
  readonly limit?: number | undefined;
  readonly after?: Position | undefined;
}

export interface Listing<Item, Position> {
  readonly first: readonly Item[];
  /** The pages after `first`, perhaps none; absent if the list is short and sent whole. */
  readonly rest?: Source<readonly Item[]> | undefined;
  /** What goes on where `limit` cut the list short; absent when the list is complete. */
  readonly next?: ListRange<Position> | undefined;
}

/** A page is read at one moment and sent as one chunk: 1,000 plants, or fewer with long names. */
const pageItemsMax = 1_000;
/** A list with a limit up to this is read at one moment if it fits into a page's text. */
const snapshotItemsMax = 2_000;
/** Of names and tags, in UTF-16 units: 40 to 100 KiB as JSON. */
const pageTextMax = 32 * 1024;
/** A list with more text is a stream even if it is one page, because only streams are counted. */
const wholeTextMax = 16 * 1024;
/** A client that reads slowly holds a page in memory, so many such clients get smaller pages. */
const openPagesTextMax = 2 * 1024 * 1024;
const pageTextMin = 2 * 1024;
const seekItemsMax = 4_000;
/**
 * How many lists that may be long begin at the same time, in all and in one garden. With more, each
 * of them waits for every read, and most are refused after some of their work.
 */
const beginningMax = 64;
const gardenBeginningMax = 16;

/** The lists of one thread. Their open pages share a bounded amount of memory. */
export class Lists {
  readonly #turn: (garden: string) => Promise<unknown>;
  readonly #beginning = new FairSemaphore(beginningMax, gardenBeginningMax);
  #open = 0;

  /** `turn` resolves when a garden may go on with long work. */
  constructor(turn: (garden: string) => Promise<unknown>) {
    this.#turn = turn;
  }

  read<Item, Position>(
    garden: string,
    scan: Scan<Item, Position>,
    { limit, after }: ListRange<Position>,
  ): Promise<Listing<Item, Position>> {
    if (limit === undefined) return this.#beginning.run(garden, () => this.#readAll(scan, after));
    const read = () => this.#readPage(garden, scan, after, limit);
    return limit * itemTextMax <= pageTextMax ? read() : this.#beginning.run(garden, read);
  }

  async #readAll<Item, Position>(
    scan: Scan<Item, Position>,
    after: Position | undefined,
  ): Promise<Listing<Item, Position>> {
    const { items, position, isLast } = await scan.read(after, pageItemsMax, this.#textMax());
    return isLast
      ? this.#onePage(scan, items)
      : { first: items, rest: this.#readOn(scan, position) };
  }

  async #readPage<Item, Position>(
    garden: string,
    scan: Scan<Item, Position>,
    after: Position | undefined,
    limit: number,
  ): Promise<Listing<Item, Position>> {
    const { looksMax } = scan;
    const textMax = this.#textMax();
    // One item more than requested shows whether the limit cut the list short.
    const count = Math.min(limit, snapshotItemsMax) + 1;
    const first: Item[] = [];
    let [text, looks, position] = [0, 0, after];
    while (first.length < count && looks !== looksMax && text <= textMax - itemTextMax) {
      if (looks > 0) await this.#turn(garden);
      const wanted = countOf(scan, looks, count - first.length);
      const step = await scan.read(position, wanted, textMax - text);
      for (const item of step.items) {
        first.push(item);
        text += scan.textOf(item);
      }
      looks += step.looks;
      position = step.position;
      if (step.isLast && first.length <= limit) return this.#onePage(scan, first);
    }
    // A page of 0 would link to itself forever, so its link asks for pages of 1.
    if (limit === 0) {
      return { first: [], next: { limit: 1, after: first.length > 0 ? after : position } };
    }
    if (first.length > limit) {
      const page = first.slice(0, limit);
      return this.#onePage(scan, page, { limit, after: scan.positionOf(page.at(-1) as Item) });
    }
    if (looks === looksMax) return this.#onePage(scan, first, { limit, after: position });
    // The page is too long for one chunk. Its end is found first, because `next` goes out in a
    // header, before the items.
    const others = limit - first.length;
    const { last, isLast } = await this.#findEnd(garden, scan, position, others, looks);
    const next = isLast ? undefined : { limit, after: last };
    if (last === position) return this.#onePage(scan, first, next);
    return { first, rest: this.#readOn(scan, position, { last, count: others }), next };
  }

  /** The position of the last of the next `count` items, and whether the list ends there. */
  async #findEnd<Item, Position>(
    garden: string,
    scan: Scan<Item, Position>,
    after: Position | undefined,
    count: number,
    alreadyLooked: number,
  ): Promise<{ readonly last: Position | undefined; readonly isLast: boolean }> {
    let [remaining, looks, last] = [count, alreadyLooked, after];
    while (remaining > 0) {
      if (looks === scan.looksMax) return { last, isLast: false };
      await this.#turn(garden);
      if (scan.seek) {
        const step = Math.min(remaining, seekItemsMax);
        const found = await scan.seek(last, step);
        if (found === undefined) return { last, isLast: true };
        last = found;
        remaining -= step;
        continue;
      }
      const step = await scan.read(last, countOf(scan, looks, pageItemsMax), pageTextMax);
      const passed = step.items.slice(0, remaining);
      remaining -= passed.length;
      looks += step.looks;
      last = remaining === 0 ? scan.positionOf(passed.at(-1) as Item) : step.position;
      if (step.isLast && passed.length === step.items.length) return { last, isLast: true };
    }
    const { items, isLast } = await scan.read(last, 1, itemTextMax);
    return { last, isLast: isLast && items.length === 0 };
  }

  #onePage<Item, Position>(
    { textOf }: Scan<Item, Position>,
    first: readonly Item[],
    next?: ListRange<Position>,
  ): Listing<Item, Position> {
    const text = first.reduce((sum, item) => sum + textOf(item), 0);
    if (text <= wholeTextMax) return { first, next };
    return { first, rest: { next: async () => undefined, close: this.#countOpen() }, next };
  }

  /** The pages after a position, up to a last item or to the end of the list. */
  #readOn<Item, Position>(
    scan: Scan<Item, Position>,
    after: Position | undefined,
    bound: { readonly last?: Position | undefined; readonly count?: number } = {},
  ): Source<readonly Item[]> {
    const { last, count = Number.POSITIVE_INFINITY } = bound;
    let remaining = count;
    let position = after;
    let isOpen = true;
    const countClosed = this.#countOpen();
    const close = () => {
      isOpen = false;
      countClosed();
    };
    const isPast = (each: Position) => last !== undefined && scan.isPast(each, last);
    return {
      next: async () => {
        if (!isOpen) return undefined;
        const step = await waitingOn(() => scan.read(position, pageItemsMax, this.#textMax()));
        const page = step.items.filter((item) => !isPast(scan.positionOf(item)));
        remaining -= page.length;
        if (remaining < 0) {
          // Items were added before `last`, and nobody knows which they are. Sending all would
          // exceed the limit, and `next`, which went out first, would skip what is left out.
          throw new PlantStoreError("conflict", "Plants were added within the page.");
        }
        position = step.position as Position;
        if (step.isLast || position === last || isPast(position)) close();
        return page;
      },
      close,
    };
  }

  /** How much text a page may have now. */
  #textMax(): number {
    const share = Math.max(pageTextMin, openPagesTextMax / (this.#open + 1));
    return Math.min(pageTextMax, share);
  }

  /** Counts an open list until the function that it returns is called. */
  #countOpen(): () => void {
    let isOpen = true;
    this.#open++;
    return () => {
      if (isOpen) this.#open--;
      isOpen = false;
    };
  }
}

/** A list that has begun isn't refused any more: it waits for its garden's turn again. */
async function waitingOn<Result>(read: () => Promise<Result>): Promise<Result> {
  for (;;) {
    try {
      return await read();
    } catch (error) {
      if (error !== overloaded) throw error;
    }
  }
}

/** How many items to read next, or how many plants to look at. */
function countOf<Item, Position>(
  { looksMax }: Scan<Item, Position>,
  looks: number,
  count: number,
): number {
  return looksMax === undefined ? count : Math.min(pageItemsMax, looksMax - looks);
}
