/**
 * What the page shows, kept in the address after `#` so that Back, reloads and bookmarks work.
 * Browsers don't send this part to the service.
 */
import { type Query, toId } from "./api.ts";
import { make } from "./elements.ts";

export interface Place extends Query {
  /** The plant whose card is open. */
  readonly plant?: bigint | undefined;
}

export class Address {
  readonly #onChange: (place: Place) => void;

  /** Calls `onChange` for Back, Forward and edits of the address, too. */
  constructor(onChange: (place: Place) => void) {
    this.#onChange = onChange;
    addEventListener("popstate", () => onChange(this.place));
  }

  get place(): Place {
    const fields = new URLSearchParams(location.hash.slice(1));
    return {
      tag: fields.get("tag") ?? undefined,
      q: fields.get("q")?.trim() || undefined,
      order: fields.get("order") === "desc" ? "desc" : undefined,
      plant: toId(fields.get("plant") ?? ""),
    };
  }

  /** Changes a part of the place. If Back leads there, it goes back instead. */
  go(change: Place): void {
    const place = { ...this.place, ...change };
    const { hash: here } = location;
    const there = render(place);
    if (there === here) return;
    if (history.state?.before === there) history.back();
    else {
      history.pushState({ before: here }, "", toUrl(there));
      this.#onChange(place);
    }
  }

  /** A link that opens a plant. */
  link(text: string, plant: bigint): HTMLAnchorElement {
    const link = make("a", { href: "#" }, text);
    link.addEventListener("click", (event) => {
      event.preventDefault();
      this.go({ plant });
    });
    return link;
  }

  /** The same as `go`, without a new step in the history. */
  replace(change: Place): void {
    const place = { ...this.place, ...change };
    history.replaceState(history.state, "", toUrl(render(place)));
    this.#onChange(place);
  }
}

function render(place: Place): string {
  const fields = new URLSearchParams();
  for (const name of ["tag", "q", "order", "plant"] as const) {
    if (place[name] !== undefined) fields.set(name, String(place[name]));
  }
  return fields.size === 0 ? "" : `#${fields}`;
}

function toUrl(hash: string): string {
  return location.pathname + location.search + hash;
}
