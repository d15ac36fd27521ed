/**
 * What the page shows, kept in the address after `#` so that Back, reloads and bookmarks work.
 * Browsers don't send this part to the service.
 */
import { signal } from "@preact/signals";
import { toId } from "./api.ts";
import type { Column, SortedQuery } from "./order.ts";

interface Place extends SortedQuery {
  /** The plant whose row is open. */
  readonly plant?: bigint | undefined;
}

export const place = signal<Place>({});

const columns: readonly (string | null)[] = ["name", "tag", "id"] satisfies Column[];

/** What to do once the browser has gone back, which takes it a moment. Absent unless it is going. */
let afterBack: (() => void)[] | undefined;

/** Follows Back, Forward, links and edits of the address. */
export function followAddress(): void {
  const read = () => {
    const fields = new URLSearchParams(location.hash.slice(1));
    const sort = fields.get("sort");
    place.value = {
      tag: fields.get("tag") ?? undefined,
      q: fields.get("q")?.trim() || undefined,
      sort: columns.includes(sort) ? (sort as Column) : undefined,
      order: fields.get("order") === "desc" ? "desc" : undefined,
      plant: toId(fields.get("plant") ?? ""),
    };
  };
  addEventListener("popstate", () => {
    read();
    const waiting = afterBack ?? [];
    afterBack = undefined;
    for (const goOn of waiting) goOn();
  });
  // A link to a plant is easier to write as a query: `/?plant=7`.
  const plant = new URLSearchParams(location.search).get("plant");
  if (plant !== null) {
    history.replaceState(null, "", `${location.pathname}#${new URLSearchParams({ plant })}`);
  }
  read();
}

/** Changes a part of the place. If Back leads there, it goes back instead. */
export function go(change: Place, isNewStep = true): void {
  if (afterBack) {
    afterBack.push(() => go(change, isNewStep));
    return;
  }
  const there = toHash(change);
  if (there === location.hash) return;
  if (isNewStep && history.state?.before === there) {
    afterBack = [];
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
