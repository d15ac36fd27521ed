/** What can be undone: the last change first, until somebody dismisses the message. */
import { computed, signal } from "@preact/signals";
import { describeError } from "./api.ts";
import { announcement, type Message, message, notify, toText } from "./message.ts";

export interface UndoStep {
  /** What was done. */
  readonly text: Message;
  /** Undoes it, and returns what to say. It may be called again after it failed. */
  readonly run: () => Promise<UndoResult>;
}

export interface UndoResult {
  readonly text: Message;
  readonly isWhole: boolean;
}

export class Undo {
  readonly #steps = signal<readonly UndoStep[]>([]);
  readonly isBusy = signal(false);
  /** The step that comes next. */
  readonly next = computed(() => this.#steps.value.at(-1));

  add(step: UndoStep): void {
    this.#steps.value = [...this.#steps.value, step];
    announcement.value = toText(step.text);
  }

  dismiss(): void {
    this.#steps.value = [];
  }

  async undo(): Promise<void> {
    const step = this.next.value;
    if (!step || this.isBusy.value) return;
    this.isBusy.value = true;
    try {
      const { text, isWhole } = await step.run();
      this.#steps.value = this.#steps.value.filter((each) => each !== step);
      notify(text, isWhole ? "news" : "trouble");
    } catch (error) {
      const advice = "It may not have been undone. It’s safe to undo again.";
      notify(message`${describeError(error)} ${advice}`, "trouble");
    } finally {
      this.isBusy.value = false;
    }
  }
}
