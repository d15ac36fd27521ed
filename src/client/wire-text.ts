/** Plants, results, ids and keys as text, as they travel. */
import { PlantStoreProblem } from "./problem-error.ts";
import type { ClientResponse } from "./send.ts";
import type {
  CreateResult,
  ListOptions,
  Plant,
  PlantDraft,
  StoredPlant,
  TagCount,
} from "./types.ts";

/** What the service accepts in one request. */
export const batchPlantsMax = 10_000;
const batchBytesMax = 1024 * 1024;
const bracketBytes = 2;

/**
 * A UUID of version 7: it starts with the time, which makes it cheap to store. Not `randomUUID`,
 * which browsers deny to pages loaded over plain HTTP.
 */
export function makeIdempotencyKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(10));
  // The version and the variant (RFC 9562).
  const random = Array.from(bytes, (byte, index) =>
    (index === 0 ? 0x70 | (byte & 15) : index === 2 ? 0x80 | (byte & 63) : byte)
      .toString(16)
      .padStart(2, "0"),
  );
  const hex = Date.now().toString(16).padStart(12, "0") + random.join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** The key of a later batch: with its number, inside the quotes if there are any. */
export function numberKey(key: string, batch: number): string {
  return key.replace(/"?$/, (quote) => `.${batch}${quote}`);
}

/** The id is written by hand, because `JSON.stringify` takes no bigint. */
export function renderDraft({ id, name, tag }: PlantDraft): string {
  const rest = JSON.stringify({ name, tag });
  return id === undefined ? rest : `{"id":${formatId(id)},${rest.slice(1)}`;
}

/** The drafts as JSON, as many at a time as the service accepts. */
export async function* toBatches(
  drafts: Iterable<PlantDraft> | AsyncIterable<PlantDraft>,
): AsyncGenerator<string[], void, undefined> {
  const encoder = new TextEncoder();
  let items: string[] = [];
  let bytes = bracketBytes;
  for await (const draft of drafts) {
    const item = renderDraft(draft);
    // With a comma.
    const itemBytes = encoder.encode(item).length + 1;
    const isFull = items.length === batchPlantsMax || bytes + itemBytes > batchBytesMax;
    if (isFull && items.length > 0) {
      yield items;
      items = [];
      bytes = bracketBytes;
    }
    items.push(item);
    bytes += itemBytes;
  }
  if (items.length > 0) yield items;
}

export async function* toGroups<Item>(
  items: Iterable<Item> | AsyncIterable<Item>,
  length: number,
): AsyncGenerator<Item[], void, undefined> {
  let group: Item[] = [];
  for await (const item of items) {
    if (group.push(item) < length) continue;
    yield group;
    group = [];
  }
  if (group.length > 0) yield group;
}

/** The ids without a plant. */
export function parseMissing(text: string): Set<bigint> {
  // The only texts in it are the names of its members.
  const { missing } = JSON.parse(text.replace(/-?\d+/g, '"$&"'));
  return new Set(missing.map(parseId));
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
function quoteIds(text: string): string {
  return text.replace(/"id":\s*(-?\d+)/g, '"id":"$1"');
}

export function parsePlants(text: string): Plant[] {
  const items: { id?: string | bigint }[] = JSON.parse(quoteIds(text));
  for (const item of items) {
    requireTexts(item);
    // A service that doesn't know `include` leaves the id out, which isn't an id.
    item.id = parseId(item.id);
  }
  return items as Plant[];
}

export function parsePlant({ text, headers }: ClientResponse): StoredPlant {
  const [plant] = parsePlants(`[${text}]`);
  if (!plant) throw new TypeError("The plant is missing.");
  return { ...plant, etag: readEtag(headers) };
}

/** A proxy that compresses makes the tag weak, and a weak one never matches. */
export function readEtag(headers: Headers): string {
  return headers.get("etag")?.replace(/^W\//, "") ?? "";
}

export function requireTexts(item: object): Pick<Plant, "name" | "tag"> {
  const plant = item as Plant;
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

export const leadsNowhere = "The link to the next page doesn't lead on.";

/** The query of the link to the page after this one. */
export function parseLink(headers: Headers): URLSearchParams | undefined {
  const query = /<[^>?]*\?([^>]*)>;\s*rel="next"/.exec(headers.get("link") ?? "")?.[1];
  return query === undefined ? undefined : new URLSearchParams(query);
}

/**
 * The id in the link to the page after this one. The rest of the link isn't followed: the token
 * goes nowhere else, and a proxy that rewrites paths does no harm.
 */
export function parseNext(
  headers: Headers,
  plants: readonly Plant[],
  { after, order, q }: Pick<ListOptions, "after" | "order" | "q">,
): bigint | undefined {
  const link = parseLink(headers);
  if (link === undefined) return undefined;
  const next = parseId(link.get("after"));
  const last = plants.at(-1)?.id;
  const leadsOn = (from: bigint | number) => (order === "desc" ? next < from : next > from);
  // Otherwise a broken service could keep the client busy forever. A search may find nothing in a
  // page, and goes on after plants that it doesn't show.
  const isNew = after === undefined || leadsOn(after);
  const isRest = last === undefined ? q !== undefined : next === last || leadsOn(last);
  if (isNew && isRest) return next;
  throw new TypeError(leadsNowhere);
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
