/** Replies and what goes into them: plants, events, links, locations, entity tags. */
import { contentHash, contentOf, type Plant, type PlantId, withId } from "../domain/plant.ts";
import type { GardenEvent } from "../domain/ports.ts";
import type { HeaderDescription } from "./json-schema.ts";
import type { Source } from "./stream.ts";

/** A response without the headers that all responses share. */
export interface Reply {
  readonly status: number;
  readonly contentType?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** All headers but the request id, for a response that is sent more than once. */
  readonly builtHeaders?: Headers | undefined;
  /** Complete, or a source of chunks that are made as the client reads them. */
  readonly body?: string | Uint8Array<ArrayBuffer> | Source<string | Uint8Array> | undefined;
  /** The body goes on until the client leaves; what happens to it after the start isn't logged. */
  readonly isLive?: boolean;
}

export function jsonReply(
  status: number,
  body: Reply["body"],
  headers?: Readonly<Record<string, string>>,
): Reply {
  return { status, contentType: "application/json", headers, body };
}

const plainText = "text/plain; charset=utf-8";

export function textReply(body: string, contentType = plainText): Reply {
  return { status: 200, contentType, body };
}

/** What a client asks for besides the name and the tag. */
type Include = "id" | undefined;

export function renderPlant(plant: Plant, include: Include): string {
  return JSON.stringify(toFields(plant, include));
}

/** What a client sees of a plant, to be rendered as JSON. */
export function toFields(plant: Plant, include: Include): Readonly<Record<string, unknown>> {
  return include === "id" ? withId(exactId(plant.id), plant) : contentOf(plant);
}

/** TypeScript doesn't know this standard function yet. */
const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown };

/** As JSON: `JSON.stringify` refuses a bigint, and a number would round large ids. */
function exactId(id: PlantId): unknown {
  const number = Number(id);
  return Number.isSafeInteger(number) ? number : rawJSON(id.toString());
}

/** Of events: a list or a stream. With the origin, on which other headers can depend. */
export const variesByAccept = { Vary: "Accept, Origin" };

export function renderEvent({ seq, type, atMs, user, plant }: GardenEvent): string {
  const at = new Date(atMs).toISOString();
  return JSON.stringify({ seq, type: `plant.${type}`, at, user, plant: toFields(plant, "id") });
}

export function plantLocation(basePath: string, id: PlantId): string {
  return `${basePath}/plants/${id}`;
}

/**
 * The headers of a response about one plant. The tag is a hash of the name and tag: that's enough to
 * detect a change, so no version is stored. A proxy that compressed the response would make the tag
 * weak, and `If-Match` would never match.
 */
export function entityHeaders(plant: Plant) {
  return { ETag: `"${contentHash(plant)}"`, "Cache-Control": "no-store, no-transform" };
}

/** The link to the next page; parameters that are absent are left out. */
export function linkToNext(
  path: string,
  parameters: Readonly<Record<string, string | number | bigint | undefined>>,
): string {
  let query = "";
  for (const name in parameters) {
    const value = parameters[name];
    if (value === undefined) continue;
    const text = typeof value === "string" ? encodeURIComponent(value) : value;
    query += `${query === "" ? "?" : "&"}${name}=${text}`;
  }
  return `<${path}${query}>; rel="next"`;
}

/** `Link`, as the OpenAPI document describes it. */
export function linkHeader(example: string): Record<string, HeaderDescription> {
  return {
    Link: {
      description: 'The next page (`rel="next"`), if a `limit` of up to 1,000 cut the list short.',
      example,
    },
  };
}
