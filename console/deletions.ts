/** Undoes deletions: the same plants come back, with the same ids. */
import { renderCount } from "../client/files/renderer.ts";
import { describeError, makeIdempotencyKey, type Plant } from "./api.ts";
import { announce, find, message, notify, show, whileBusy } from "./elements.ts";
import { api } from "./session.ts";

interface Deletion {
  readonly plants: readonly Plant[];
  /** Makes it safe to undo again after a lost response. */
  readonly key: string;
}

export class Deletions {
  readonly #onRestored: (plants: readonly Plant[]) => void;
  readonly #button = find<HTMLButtonElement>("undo-button");
  /** The last one is the first to be undone. */
  #deletions: Deletion[] = [];

  constructor(onRestored: (plants: readonly Plant[]) => void) {
    this.#onRestored = onRestored;
    this.#button.addEventListener("click", () => void this.undo());
    find("undo-close").addEventListener("click", () => {
      this.#deletions = [];
      this.#draw();
    });
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

  async #restore(deletion: Deletion): Promise<void> {
    const { plants, key: idempotencyKey } = deletion;
    const [first] = plants;
    try {
      const results = await api.createMany(plants, { idempotencyKey });
      const restored = plants.filter((_, index) => results[index]?.status === 201);
      this.#deletions = this.#deletions.filter((each) => each !== deletion);
      this.#draw();
      this.#onRestored(restored);
      const refusal = results.find((result) => result.status !== 201);
      if (refusal) {
        const count = `${renderCount(restored.length)} of ${renderCount(plants.length, "plant")}`;
        notify(message`Restored ${count}. ${refusal.detail}`, "trouble");
      } else if (plants.length === 1) notify(message`“${first?.name ?? ""}” is back.`);
      else notify(message`${renderCount(plants.length, "plant")} are back.`);
    } catch (error) {
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
