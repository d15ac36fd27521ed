/** Plants, results, ids and keys as text, as they travel. */
import { PlantStoreProblem } from "./problem-error.ts";
import type { ClientResponse } from "./send.ts";
import type { CreateResult, Plant, PlantDraft, PlantField, StoredPlant } from "./types.ts";
import type * as wire from "./wire-types.ts";

/** What the service takes in one request. */
const batchLinesMax = 10_000;
const batchBytesMax = 1024 * 1024;

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

/** The drafts as lines, as many at a time as the service takes. */
export async function* toBatches(
  drafts: Iterable<PlantDraft> | AsyncIterable<PlantDraft>,
): AsyncGenerator<string[], void, undefined> {
  const encoder = new TextEncoder();
  let lines: string[] = [];
  let bytes = 0;
  for await (const draft of drafts) {
    const line = renderDraft(draft);
    const lineBytes = encoder.encode(line).length + 1;
    if (lines.length === batchLinesMax || (bytes + lineBytes > batchBytesMax && bytes > 0)) {
      yield lines;
      lines = [];
      bytes = 0;
    }
    lines.push(line);
    bytes += lineBytes;
  }
  if (lines.length > 0) yield lines;
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
  yield group;
}

export function parseResults(text: string, count: number): CreateResult[] {
  // In JSON a line break is never part of a string.
  const results = JSON.parse(quoteIds(`[${text.trimEnd().replaceAll("\n", ",")}]`));
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

export function parsePlants(text: string, fields: readonly PlantField[]): wire.Plant[] {
  const items: { id?: string | bigint }[] = JSON.parse(quoteIds(text));
  for (const item of items) {
    requireTexts(item, fields);
    if (item.id !== undefined) item.id = parseId(item.id);
  }
  return items as wire.Plant[];
}

export function parsePlant({ text, headers }: ClientResponse): StoredPlant {
  const [plant] = parsePlants(`[${text}]`, ["id", "name", "tag"]);
  if (!plant) throw new TypeError("The plant is missing.");
  return { ...(plant as Plant), etag: readEtag(headers) };
}

/** A proxy that compresses makes the tag weak, and a weak one never matches. */
export function readEtag(headers: Headers): string {
  return headers.get("etag")?.replace(/^W\//, "") ?? "";
}

/** A service that doesn't know `fields` leaves the id out. */
export function requireTexts<Item extends object>(item: Item, fields: readonly PlantField[]): Item {
  const members = item as Readonly<Record<string, unknown>>;
  if (fields.every((field) => typeof members[field] === "string")) return item;
  throw new TypeError("A field is missing.");
}

/**
 * The id in the link to the page after this one. The rest of the link isn't followed: the token
 * goes nowhere else, and a proxy that rewrites paths does no harm.
 */
export function parseNext(
  headers: Headers,
  plants: readonly wire.Plant[],
  after: bigint | number | undefined,
): bigint | undefined {
  const query = /<[^>?]*\?([^>]*)>;\s*rel="next"/.exec(headers.get("link") ?? "")?.[1];
  if (query === undefined) return undefined;
  const next = parseId(new URLSearchParams(query).get("after"));
  const last = plants.at(-1);
  // Otherwise a broken service could keep the client busy forever.
  const isAhead =
    (after === undefined || next > after) && (last?.id === undefined || next >= last.id);
  if (last && isAhead) return next;
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
