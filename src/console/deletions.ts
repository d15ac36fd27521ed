/** What was deleted here and can be restored: the same plants, with the same ids. */
import { renderCount } from "../plant-file/words.ts";
import { describeError, type Host, makeIdempotencyKey, type Plant } from "./api.ts";
import { announce, find, message, notify, show, whileBusy } from "./elements.ts";

interface Deletion {
  readonly plants: readonly Plant[];
  /** Sent with every try to restore them, so that none is restored twice. */
  readonly key: string;
}

export interface DeletionEvents extends Host {
  readonly onRestored: (plants: readonly Plant[]) => void;
}

export class Deletions {
  readonly #events: DeletionEvents;
  readonly #button = find<HTMLButtonElement>("undo-button");
  /** The last one is undone first. */
  #deletions: Deletion[] = [];

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
    if (deletion) await whileBusy(this.#button, () => this.#restore(deletion));
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
      const advice = "It’s safe to undo again.";
      notify(message`Nothing may have been restored. ${describeError(error)} ${advice}`, "trouble");
    }
  }

  /** The message stays until somebody dismisses it. */
  #draw(): void {
    const plants = this.#deletions.at(-1)?.plants ?? [];
    const [first] = plants;
    const text =
      plants.length === 1
        ? message`“${first?.name ?? ""}” was deleted.`
        : message`${renderCount(plants.length, "plant")} were deleted.`;
    find("undo-text").replaceChildren(text);
    show(find("undo"), first !== undefined);
  }
}
