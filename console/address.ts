/**
 * What the page shows, kept in the address after `#` so that Back, reloads and bookmarks work.
 * Browsers don't send this part to the service.
 */
import { signal } from "@preact/signals";
import { type Query, toId } from "./api.ts";

interface Place extends Query {
  /** The plant whose card is open. */
  readonly plant?: bigint | undefined;
}

export const place = signal<Place>({});

/** Follows Back, Forward, links and edits of the address. */
export function followAddress(): void {
  const read = () => {
    place.value = parsePlace(location.hash);
  };
  addEventListener("popstate", read);
  read();
}

/** Changes a part of the place. If Back leads there, it goes back instead. */
export function go(change: Place): void {
  const there = toHash(change);
  if (there === location.hash) return;
  if (history.state?.before === there) history.back();
  else {
    history.pushState({ before: location.hash }, "", toUrl(there));
    place.value = { ...place.value, ...change };
  }
}

/** The same as `go`, without a new step in the history. */
export function replace(change: Place): void {
  history.replaceState(history.state, "", toUrl(toHash(change)));
  place.value = { ...place.value, ...change };
}

function parsePlace(hash: string): Place {
  const fields = new URLSearchParams(hash.slice(1));
  return {
    tag: fields.get("tag") ?? undefined,
    q: fields.get("q")?.trim() || undefined,
    order: fields.get("order") === "desc" ? "desc" : undefined,
    plant: toId(fields.get("plant") ?? ""),
  };
}

/** The address of this place after a change, from `#` on. */
export function toHash(change: Place): string {
  const { tag, q, order, plant } = { ...place.value, ...change };
  const fields = Object.entries({ tag, q, order, plant: plant?.toString() });
  const given = fields.filter((field): field is [string, string] => field[1] !== undefined);
  return given.length === 0 ? "" : `#${new URLSearchParams(given)}`;
}

function toUrl(hash: string): string {
  return location.pathname + location.search + hash;
}
