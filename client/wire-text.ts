/** Plants, results, ids and keys as text, as they travel. */
import { PlantStoreProblem } from "./problem-error.ts";
import type { ClientResponse } from "./send.ts";
import type {
  CreateResult,
  Plant,
  PlantDraft,
  PlantField,
  StoredPlant,
  TagCount,
  Whole,
} from "./types.ts";

/**
 * What the service accepts in one request. Where a file is cut into bulks is part of the keys of its
 * import: with another number here, or another text from `renderDraft`, a file that was imported in
 * the last 24 hours by an older client is stored a second time, as files of 2.0 were by 3.0.
 */
const bulkItemsMax = 10_000;
/**
 * A quarter of what the service accepts, so that a bulk arrives in time over a slow connection. It's
 * part of the keys, too.
 */
const bulkBytesMax = 255 * 1024;

/**
 * Starts with the time, which makes keys cheap to store. Not `randomUUID`, which browsers deny to
 * pages loaded over plain HTTP.
 */
export function makeIdempotencyKey(): string {
  const random = crypto.getRandomValues(new BigUint64Array(2));
  return [Date.now(), ...random].map((part) => part.toString(36)).join("-");
}

/**
 * The id is written by hand, with all its digits: `JSON.stringify` takes no bigint. Changing the text
 * changes the keys of imports: see `bulkItemsMax`.
 */
export function renderDraft({ id, name, tag }: PlantDraft): string {
  const rest = JSON.stringify({ name, tag } satisfies Record<PlantField, unknown>);
  return id === undefined ? rest : `{"id":${formatId(id)},${rest.slice(1)}`;
}

/** The items as JSON, as many at a time as go into a request. */
export async function* toBulks<Item>(
  items: Iterable<Item> | AsyncIterable<Item>,
  render: (item: Item) => string,
): AsyncGenerator<string[], void, undefined> {
  const encoder = new TextEncoder();
  let bulk: string[] = [];
  let bytes = 0;
  for await (const item of items) {
    const text = render(item);
    // With a comma.
    const itemBytes = encoder.encode(text).length + 1;
    const isFull = bulk.length === bulkItemsMax || bytes + itemBytes > bulkBytesMax;
    if (isFull && bulk.length > 0) {
      yield bulk;
      bulk = [];
      bytes = 0;
    }
    bulk.push(text);
    bytes += itemBytes;
  }
  if (bulk.length > 0) yield bulk;
}

/** The ids without a plant, as decimal text. */
export function parseMissing(text: string): Set<string> {
  // The only strings in it are its keys, so every number can be quoted.
  const { missing } = JSON.parse(text.replace(/-?\d+/g, '"$&"'));
  return new Set(missing.map((id: unknown) => String(parseId(id))));
}

export function parseTags(text: string): TagCount[] {
  const tags: TagCount[] = JSON.parse(text);
  if (tags.every(({ tag, plants }) => typeof tag === "string" && plants > 0)) return tags;
  throw new TypeError("A field is missing.");
}

export function parseResults(text: string, count: number): CreateResult[] {
  const results = JSON.parse(quoteIds(text));
  if (results.length !== count) throw new TypeError("A result is missing.");
  return results.map((result: Record<string, unknown>) =>
    result.status === 201
      ? { status: 201, id: parseId(result.id), replayed: result.replayed === true }
      : result,
  );
}

/**
 * Throws a problem if the status is another one, or if the response isn't a Plant Store's, such as
 * a proxy's sign-in page.
 */
export function parse<Result>(
  response: ClientResponse,
  status: number,
  read: (response: ClientResponse) => Result,
): Result {
  try {
    if (response.status === status) return read(response);
  } catch {}
  throw new PlantStoreProblem(response);
}

/**
 * `JSON.parse` would round an id beyond 2^53. Text inside a string can't look like this: its quotes
 * are escaped.
 */
export function quoteIds(text: string): string {
  return text.replace(/"id":\s*(-?\d+)/g, '"id":"$1"');
}

export function parsePlants(text: string): Plant[] {
  const items: { id?: string | bigint }[] = JSON.parse(quoteIds(text));
  for (const item of items) readPlant(item);
  return items as Plant[];
}

/** In place: a list may have many. */
export function readPlant(item: { id?: unknown }): Plant {
  requireTexts(item);
  // A service that doesn't know `include` leaves the id out, which isn't an id.
  item.id = parseId(item.id);
  return item as Plant;
}

export function parsePlant({ text, headers }: ClientResponse): StoredPlant {
  return { ...readPlant(JSON.parse(quoteIds(text))), etag: readEtag(headers) };
}

/** A proxy that compresses makes the ETag weak, and a weak one never matches. */
export function readEtag(headers: Headers): string {
  return headers.get("etag")?.replace(/^W\//, "") ?? "";
}

export function requireTexts(item: object): Pick<Plant, PlantField> {
  const plant: Whole<"name" | "tag"> = item as Plant;
  if (typeof plant.name === "string" && typeof plant.tag === "string") return plant;
  throw new TypeError("A field is missing.");
}

export function renderQuery(
  values: Readonly<Record<string, string | number | undefined>>,
): URLSearchParams {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined) query.set(name, String(value));
  }
  return query;
}

/**
 * The `after` of the link to the next page; absent on the last page. The rest of the link isn't
 * followed: the token goes nowhere else, and a proxy that rewrites paths does no harm.
 */
export function parseNext(headers: Headers, after?: string): string | undefined {
  const query = /<[^>?]*\?([^>]*)>;\s*rel="next"/.exec(headers.get("link") ?? "")?.[1];
  if (query === undefined) return undefined;
  const next = new URLSearchParams(query).get("after");
  // Behind a proxy that drops the query, every page is the first one.
  if (next !== null && next !== after) return next;
  throw new TypeError("The link to the next page doesn't lead on.");
}

/** Throws if it is a number that may have been rounded already. */
export function formatId(id: bigint | number): string {
  if (typeof id === "bigint" || Number.isSafeInteger(id)) return String(id);
  throw new RangeError(`An id must be a bigint or a safe integer, not ${id}.`);
}

/** Stricter than `BigInt`, which takes an empty string for 0 and `0x7` for 7. */
export function parseId(text: unknown): bigint {
  if (typeof text === "string" && /^-?\d+$/.test(text)) return BigInt(text);
  throw new SyntaxError("An id must be a decimal integer.");
}
