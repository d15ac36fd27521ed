/**
 * What the page shows, as it stands in the address after `#`, so that Back, a reload and a bookmark
 * work. Browsers don't send this part to the service.
 */
import type { Query } from "./api.ts";
import { make } from "./elements.ts";

export interface Place extends Query {
  /** The plant whose card is open. */
  readonly plant?: bigint | undefined;
}

export class Address {
  readonly #onChange: (place: Place) => void;

  /** `onChange` is also called for Back, Forward and an address that somebody edits. */
  constructor(onChange: (place: Place) => void) {
    this.#onChange = onChange;
    addEventListener("popstate", () => onChange(this.place));
  }

  get place(): Place {
    const fields = new URLSearchParams(location.hash.slice(1));
    const plant = fields.get("plant") ?? "";
    return {
      tag: fields.get("tag") ?? undefined,
      q: fields.get("q")?.trim() || undefined,
      order: fields.get("order") === "desc" ? "desc" : undefined,
      plant: /^-?\d{1,19}$/.test(plant) ? BigInt(plant) : undefined,
    };
  }

  /** Goes to another place. Where Back would lead to it, this is that step back. */
  go(place: Place): void {
    const { hash: here } = location;
    const there = render(place);
    if (there === here) return;
    if (history.state?.before === there) history.back();
    else {
      history.pushState({ before: here }, "", toUrl(there));
      this.#onChange(place);
    }
  }

  /** A link to a place, which is decided when somebody follows it. */
  link(text: string, decide: () => Place): HTMLAnchorElement {
    const link = make("a", { href: "#" }, text);
    link.addEventListener("click", (event) => {
      event.preventDefault();
      this.go(decide());
    });
    return link;
  }

  /** The same, without a step: Back leads to where it led before. */
  replace(place: Place): void {
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
