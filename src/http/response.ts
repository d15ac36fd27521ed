/** Renders plants, links and locations. */
import { contentHash, type Plant, type PlantId } from "../domain/plant.ts";
import type { Listing, ListQuery, Source } from "../domain/plants.ts";
import type { GardenEvent } from "../domain/storage.ts";
import type { Reply } from "./operation.ts";

export function jsonReply(
  status: number,
  body: Reply["body"],
  headers?: Readonly<Record<string, string>>,
): Reply {
  return { status, contentType: "application/json", headers, body };
}

export const plainText = "text/plain; charset=utf-8";

export function textReply(body: string, contentType = plainText): Reply {
  return { status: 200, contentType, body };
}

/** What a client asks for besides the name and the tag. */
export type Include = "id" | undefined;

export function renderPlant(plant: Plant, include: Include): string {
  return JSON.stringify(show(plant, include));
}

/** A short list is sent whole; a longer one is rendered at the client's pace. */
export function renderList(listing: Listing, include: Include): Reply["body"] {
  const first = renderItems(listing.first, include);
  return listing.rest ? renderPages(first, listing.rest, include) : `[${first}]`;
}

function renderPages(
  first: string,
  rest: Source<readonly Plant[]>,
  include: Include,
): Source<string> {
  let opening = `[${first}`;
  let isOpen = true;
  return {
    async next() {
      if (!isOpen) return undefined;
      if (opening !== "") {
        const text = opening;
        opening = "";
        return text;
      }
      const page = await rest.next();
      if (page) return page.length > 0 ? `,${renderItems(page, include)}` : "";
      isOpen = false;
      return "]";
    },
    close: () => rest.close(),
  };
}

/** Without the brackets. */
function renderItems(plants: readonly Plant[], include: Include): string {
  return JSON.stringify(plants.map((plant) => show(plant, include))).slice(1, -1);
}

function show({ id, name, tag }: Plant, include: Include): Readonly<Record<string, unknown>> {
  return include === "id" ? { id: exactId(id), name, tag } : { name, tag };
}

/** TypeScript doesn't know this standard function yet. */
const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown };

/** As JSON: `JSON.stringify` refuses a bigint, and a number would round large ids. */
function exactId(id: PlantId): unknown {
  const number = Number(id);
  return Number.isSafeInteger(number) ? number : rawJSON(id.toString());
}

export function renderEvent({ seq, type, atMs, user, ...plant }: GardenEvent): string {
  const at = new Date(atMs).toISOString();
  return JSON.stringify({ seq, type: `plant.${type}`, at, user, plant: show(plant, "id") });
}

export function plantLocation(basePath: string, id: PlantId): string {
  return `${basePath}/plants/${id}`;
}

/** Made of the name and tag: no version is stored, and none is needed to compare and set. */
export function entityTag(plant: Plant): string {
  return `"${contentHash(plant)}"`;
}

/** The contents that a strong comparison matches: a weak tag never does (RFC 9110, 8.8.3.2). */
export function toContentHashes(tags: "*" | readonly string[]): "*" | readonly string[] {
  if (tags === "*") return tags;
  return tags.filter((tag) => !tag.startsWith("W/")).map((tag) => tag.slice(1, -1));
}

export function matchesTag(
  tags: "*" | readonly string[],
  tag: string,
  comparison: "strong" | "weak",
): boolean {
  const ignored = comparison === "weak" ? "W/" : "";
  return tags === "*" || tags.some((each) => each.replace(ignored, "") === tag);
}

export function linkToNext(
  basePath: string,
  next: ListQuery,
  { include, tag }: { readonly include: Include; readonly tag: string | undefined },
): string {
  let target = `${basePath}/plants?limit=${next.limit}`;
  if (next.after !== undefined) target += `&after=${next.after}`;
  if (tag !== undefined) target += `&tag=${encodeURIComponent(tag)}`;
  if (include) target += `&include=${include}`;
  return `<${target}>; rel="next"`;
}
