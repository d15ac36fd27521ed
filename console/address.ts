/**
 * What the page shows, kept in the address after `#` so that Back, reloads and bookmarks work.
 * Browsers don't send this part to the service.
 */
import { signal } from "@preact/signals";
import { type Query, toId } from "./api.ts";

export interface Place extends Query {
  /** The plant whose card is open. */
  readonly plant?: bigint | undefined;
}

export class Address {
  readonly place = signal(parsePlace(location.hash));

  /** Follows Back, Forward and edits of the address, too. */
  constructor() {
    addEventListener("popstate", () => {
      this.place.value = parsePlace(location.hash);
    });
  }

  /** Changes a part of the place. If Back leads there, it goes back instead. */
  go(change: Place): void {
    const place = { ...this.place.value, ...change };
    const { hash: here } = location;
    const there = renderPlace(place);
    if (there === here) return;
    if (history.state?.before === there) history.back();
    else {
      history.pushState({ before: here }, "", toUrl(there));
      this.place.value = place;
    }
  }

  /** The same as `go`, without a new step in the history. */
  replace(change: Place): void {
    const place = { ...this.place.value, ...change };
    history.replaceState(history.state, "", toUrl(renderPlace(place)));
    this.place.value = place;
  }
}

export function parsePlace(hash: string): Place {
  const fields = new URLSearchParams(hash.slice(1));
  return {
    tag: fields.get("tag") ?? undefined,
    q: fields.get("q")?.trim() || undefined,
    order: fields.get("order") === "desc" ? "desc" : undefined,
    plant: toId(fields.get("plant") ?? ""),
  };
}

export function renderPlace(place: Place): string {
  const fields = new URLSearchParams();
  for (const name of ["tag", "q", "order", "plant"] as const) {
    if (place[name] !== undefined) fields.set(name, String(place[name]));
  }
  return fields.size === 0 ? "" : `#${fields}`;
}

function toUrl(hash: string): string {
  return location.pathname + location.search + hash;
}
