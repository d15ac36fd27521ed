/** What was deleted here and can be restored: the same plants, with the same ids. */
import { renderCount } from "../plant-file/words.ts";
import { type Api, describeError, makeIdempotencyKey, type Plant } from "./api.ts";
import { announce, find, message, notify, show, whileBusy } from "./elements.ts";

/** For one plant. The message about several stays until somebody dismisses it. */
const undoMs = 20_000;

interface Deletion {
  readonly plants: readonly Plant[];
  /** Sent with every try to restore them, so that none is restored twice. */
  readonly key: string;
}

export interface DeletionEvents {
  readonly api: () => Api;
  readonly onRestored: (plants: readonly Plant[]) => void;
  /** True if the page has handled the error, and the message need not show it. */
  readonly onError: (error: unknown) => boolean;
}

export class Deletions {
  readonly #events: DeletionEvents;
  readonly #box = find("undo");
  readonly #button = find<HTMLButtonElement>("undo-button");
  /** The last one is undone first. */
  #deletions: Deletion[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(events: DeletionEvents) {
    this.#events = events;
    this.#button.addEventListener("click", () => void this.undo());
    find("undo-close").addEventListener("click", () => this.forget());
  }

  add(plants: readonly Plant[]): void {
    this.#deletions.push({ plants, key: makeIdempotencyKey() });
    this.#draw();
    announce(find("undo-text").textContent);
  }

  async undo(): Promise<void> {
    const deletion = this.#deletions.at(-1);
    if (!deletion) return;
    this.#stopClock();
    await whileBusy(this.#button, () => this.#restore(deletion));
  }

  /** From now on nothing can be restored. */
  forget(): void {
    this.#deletions = [];
    this.#draw();
  }

  async #restore(deletion: Deletion): Promise<void> {
    const { plants, key } = deletion;
    const [first] = plants;
    try {
      const results = await this.#events.api().restore(plants, key);
      const restored = plants.filter((_, index) => results[index]?.status === 201);
      this.#deletions = this.#deletions.filter((each) => each !== deletion);
      this.#draw();
      this.#events.onRestored(restored);
      const refusal = results.find((result) => result.status !== 201);
      if (refusal) {
        const count = `${renderCount(restored.length)} of ${renderCount(plants.length, "plant")}`;
        notify(message`Restored ${count}. ${refusal.detail}`, "trouble");
      } else if (plants.length === 1) notify(message`“${first?.name ?? ""}” is back.`);
      else notify(message`${renderCount(plants.length, "plant")} are back.`);
    } catch (error) {
      if (this.#events.onError(error)) return;
      this.#draw();
      const advice = "It’s safe to undo again.";
      notify(message`Nothing may have been restored. ${describeError(error)} ${advice}`, "trouble");
    }
  }

  #draw(): void {
    const plants = this.#deletions.at(-1)?.plants ?? [];
    const [first] = plants;
    this.#stopClock();
    show(this.#box, first !== undefined);
    if (!first) return;
    const isOne = plants.length === 1;
    find("undo-text").replaceChildren(
      isOne
        ? message`“${first.name}” was deleted.`
        : `${renderCount(plants.length, "plant")} were deleted.`,
    );
    if (isOne) this.#startClock();
  }

  #startClock(): void {
    this.#box.classList.add("ticking");
    this.#timer = setTimeout(() => {
      // The clock starts over for anyone reading the message or reaching for the button.
      if (this.#box.matches(":hover, :focus-within")) this.#draw();
      else this.forget();
    }, undoMs);
  }

  #stopClock(): void {
    clearTimeout(this.#timer);
    this.#box.classList.remove("ticking");
    // Reading a size restarts the style sheet's animation.
    void this.#box.offsetWidth;
  }
}
