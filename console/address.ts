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
    const fields = new URLSearchParams(location.hash.slice(1));
    place.value = {
      tag: fields.get("tag") ?? undefined,
      q: fields.get("q")?.trim() || undefined,
      order: fields.get("order") === "desc" ? "desc" : undefined,
      plant: toId(fields.get("plant") ?? ""),
    };
  };
  addEventListener("popstate", read);
  read();
}

/** Changes a part of the place. If Back leads there, it goes back instead. */
export function go(change: Place, isNewStep = true): void {
  const there = toHash(change);
  if (there === location.hash) return;
  if (isNewStep && history.state?.before === there) {
    history.back();
    return;
  }
  const url = location.pathname + location.search + there;
  if (isNewStep) history.pushState({ before: location.hash }, "", url);
  else history.replaceState(history.state, "", url);
  place.value = { ...place.value, ...change };
}

/** The address of this place after a change, from `#` on. */
export function toHash(change: Place): string {
  const fields = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...place.value, ...change })) {
    if (value !== undefined) fields.set(name, String(value));
  }
  return fields.size === 0 ? "" : `#${fields}`;
}
