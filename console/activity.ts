/**
 * The panel that shows who did what in the garden, and when, newest first, as it happens. It stays
 * open beside the list while people work. On a small screen it covers the page.
 */
import { renderCount } from "../client/files/renderer.ts";
import { describeError, type Plant, type PlantEvent } from "./api.ts";
import { find, make, setChildren, show, whileBusy } from "./elements.ts";
import { describeTime } from "./garden-words.ts";
import { api } from "./session.ts";

/** How many events stay in the panel when new ones arrive. */
const keptMax = 2_000;
/** Changes further apart than this get separate lines. */
const togetherMs = 60_000;
const namesMax = 3;

/** The same width as in the style sheet. */
const small = matchMedia("(max-width: 60rem)");

const verbs = { "plant.created": "added", "plant.replaced": "changed", "plant.deleted": "deleted" };

export class Activity {
  readonly #linkTo: (plant: Plant) => HTMLElement;
  readonly #dialog = find<HTMLDialogElement>("activity");
  readonly #opener = find("open-activity");
  readonly #list = find("activity-list");
  readonly #earlier = find<HTMLButtonElement>("earlier");
  /** Newest first. */
  #events: PlantEvent[] = [];
  /** Whether the service may have earlier ones. */
  #hasEarlier = true;
  #shown = new Map<string, HTMLElement>();

  constructor(linkTo: (plant: Plant) => HTMLElement) {
    this.#linkTo = linkTo;
    this.#opener.addEventListener("click", () => (this.#dialog.open ? this.close() : this.#open()));
    find("close-activity").addEventListener("click", () => this.close());
    this.#dialog.addEventListener("keydown", ({ key }) => key === "Escape" && this.close());
    this.#dialog.addEventListener("close", () =>
      this.#opener.setAttribute("aria-expanded", "false"),
    );
    this.#earlier.addEventListener("click", () => {
      void whileBusy(this.#earlier, () => this.#load(this.#events.at(-1)?.seq));
    });
    // Open beside the list, it would push the list away on a small screen.
    small.addEventListener("change", () => this.close());
  }

  add(events: readonly PlantEvent[]): void {
    if (!this.#dialog.open) return;
    this.#merge(events);
    if (this.#events.splice(keptMax).length > 0) this.#hasEarlier = true;
    this.#draw();
  }

  close(): void {
    const hadFocus = this.#dialog.contains(document.activeElement);
    this.#dialog.close();
    if (hadFocus) this.#opener.focus();
  }

  #open(): void {
    const isAlone = small.matches || document.body.classList.contains("bare");
    if (isAlone) this.#dialog.showModal();
    else this.#dialog.show();
    this.#opener.setAttribute("aria-expanded", "true");
    this.#events = [];
    this.#hasEarlier = true;
    this.#draw();
    void whileBusy(this.#earlier, () => this.#load());
  }

  /** Loads what came before an event, or the latest events. */
  async #load(before?: number): Promise<void> {
    const note = find("activity-note");
    try {
      const events = await api.eventsBefore(before);
      this.#merge(events);
      this.#hasEarlier &&= this.#events.at(-1)?.seq !== 1 && (!before || events.length > 0);
      note.textContent = this.#events.length === 0 ? "Nothing has happened lately." : "";
    } catch (error) {
      note.textContent = describeError(error);
    }
    this.#draw();
  }

  #merge(events: readonly PlantEvent[]): void {
    const bySeq = new Map([...this.#events, ...events].map((event) => [event.seq, event]));
    this.#events = [...bySeq.values()].sort((a, b) => b.seq - a.seq);
  }

  #draw(): void {
    const lines = toLines(this.#events);
    this.#shown = new Map(
      lines.map((line) => [toKey(line), this.#shown.get(toKey(line)) ?? this.#makeItem(line)]),
    );
    setChildren(this.#list, [...this.#shown.values()]);
    show(this.#earlier, this.#events.length > 0 && this.#hasEarlier);
  }

  #makeItem(line: readonly PlantEvent[]): HTMLElement {
    const [{ user, type, at }] = line as [PlantEvent];
    const plants = [...new Map(line.map(({ plant }) => [plant.id, plant])).values()];
    const names: (Node | string)[] = plants.slice(0, namesMax).flatMap((plant, index) => {
      const name = type === "plant.deleted" ? make("bdi", {}, plant.name) : this.#linkTo(plant);
      return index === 0 ? [name] : [", ", name];
    });
    if (plants.length > namesMax) names.push(", …");
    const count = plants.length === 1 ? "" : `${renderCount(plants.length, "plant")}: `;
    return make(
      "li",
      {},
      make("p", {}, make("bdi", { class: "user" }, user), ` ${verbs[type]} ${count}`, ...names),
      make("time", { datetime: at, class: "note" }, describeTime(at)),
    );
  }
}

/** Puts what one user did in a row, such as an import, on one line. */
function toLines(events: readonly PlantEvent[]): PlantEvent[][] {
  const lines: PlantEvent[][] = [];
  for (const event of events) {
    const line = lines.at(-1);
    const next = line?.at(-1);
    const isTogether =
      next?.user === event.user &&
      next.type === event.type &&
      Date.parse(next.at) - Date.parse(event.at) < togetherMs;
    if (isTogether) line?.push(event);
    else lines.push([event]);
  }
  return lines;
}

function toKey(line: readonly PlantEvent[]): string {
  return `${line[0]?.seq}-${line.at(-1)?.seq}`;
}
