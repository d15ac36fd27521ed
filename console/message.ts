/** What the page says to people: messages with names in them, notices, questions, what to undo. */
import { computed, signal } from "@preact/signals";
import { type ComponentChildren, h } from "preact";
import { describeError } from "./api.ts";

export type Message = ComponentChildren;

/** Messages cut quoted names to this many characters. */
const nameMax = 50;
const noticeMs = 7_000;

/**
 * A message with names in it: the strings. Each is isolated, so a right-to-left name doesn't
 * reorder the words around it. Names in quotes are cut if they are long. Other parts stay as is.
 */
export function message(texts: TemplateStringsArray, ...parts: readonly Message[]): Message[] {
  return texts.flatMap((text, index) => {
    const part = parts[index];
    if (typeof part !== "string" || part === "") return [text, part];
    return [text, h("bdi", null, text.endsWith("“") ? cut(part) : part)];
  });
}

function cut(name: string): string {
  const characters = [...name];
  return characters.length <= nameMax ? name : `${characters.slice(0, nameMax - 1).join("")}…`;
}

/** What screen readers say of changes that others can see. The number makes the same text new. */
export const announcement = signal<{ text: Message; number: number }>({ text: "", number: 0 });

export function announce(text: Message): void {
  announcement.value = { text, number: announcement.value.number + 1 };
}

/** The message at the foot of the page. */
export const notice = signal<{ text: Message; isTrouble: boolean } | undefined>();
let noticeTimer: ReturnType<typeof setTimeout> | undefined;

/** News disappears by itself. Trouble stays until somebody dismisses it. */
export function notify(text: Message, isTrouble = false): void {
  hideNotice();
  notice.value = { text, isTrouble };
  announce(text);
  if (!isTrouble) noticeTimer = setTimeout(hideNotice, noticeMs);
}

export function warn(what: Message, error: unknown): void {
  notify([what, " ", describeError(error)], true);
}

export function hideNotice(): void {
  clearTimeout(noticeTimer);
  notice.value = undefined;
}

interface Question {
  readonly title: string;
  readonly note: string;
  /** The label of the button that means yes. */
  readonly action: string;
  readonly answer: (isYes: boolean) => void;
}

export const question = signal<Question | undefined>();

/** Asks before doing something large. Escape and the focused button mean no. */
export async function confirm(title: string, note: string, action: string): Promise<boolean> {
  question.value?.answer(false);
  const { promise, resolve } = Promise.withResolvers<boolean>();
  question.value = { title, note, action, answer: resolve };
  const isYes = await promise;
  question.value = undefined;
  return isYes;
}

/** Work of which only one runs at a time. */
export class Task {
  readonly isRunning = signal(false);

  async run(work: () => Promise<void>): Promise<void> {
    if (this.isRunning.value) return;
    this.isRunning.value = true;
    try {
      await work();
    } finally {
      this.isRunning.value = false;
    }
  }
}

export interface UndoStep {
  /** What was done. */
  readonly text: Message;
  /** Undoes it, and returns what to say, if anything. It may be called again after it failed. */
  readonly run: () => Promise<Message>;
}

/** What can be undone, for as long as the page is open: the last change first. */
const steps = signal<readonly UndoStep[]>([]);
export const nextUndo = computed(() => steps.value.at(-1));
/** Whether the page shows what can be undone. The key works even if it doesn't. */
export const isUndoShown = signal(false);
export const undoing = new Task();

export function offerUndo(text: Message, run: UndoStep["run"]): UndoStep {
  const step = { text, run };
  steps.value = [...steps.value, step];
  isUndoShown.value = true;
  announce(text);
  return step;
}

export function hideUndo(): void {
  isUndoShown.value = false;
}

export function forgetUndo(): void {
  steps.value = [];
  hideUndo();
}

export async function undo(): Promise<void> {
  const step = nextUndo.value;
  if (!step) return;
  await undoing.run(async () => {
    try {
      const text = await step.run();
      steps.value = steps.value.filter((each) => each !== step);
      if (text) notify(text);
    } catch (error) {
      isUndoShown.value = true;
      warn("It may not have been undone. It’s safe to undo again.", error);
    }
  });
}
