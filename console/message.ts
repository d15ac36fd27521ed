/** What the page says to people: messages with names in them, notices and questions. */
import { signal } from "@preact/signals";

/** Text, somebody's own words, or a link to a plant. */
export type Part = string | { readonly name: string } | { readonly plant: bigint };
export type Message = readonly Part[];

/** Messages cut quoted names to this many characters. */
const nameMax = 50;

/**
 * A message with names in it. Each name is isolated, so a right-to-left name doesn't reorder the
 * words around it. Names in quotes are cut if they are long.
 */
export function message(
  texts: TemplateStringsArray,
  ...names: readonly (string | Message | { readonly plant: bigint })[]
): Message {
  return texts.flatMap((text, index): Message => {
    const name = names[index] ?? "";
    if (Array.isArray(name)) return [text, ...name];
    if (typeof name !== "string") return [text, name as Part];
    return name === "" ? [text] : [text, { name: text.endsWith("“") ? cut(name) : name }];
  });
}

function cut(name: string): string {
  const characters = [...name];
  return characters.length <= nameMax ? name : `${characters.slice(0, nameMax - 1).join("")}…`;
}

export function toText(parts: Message): string {
  const toWords = (part: Part) =>
    typeof part === "string" ? part : "name" in part ? part.name : String(part.plant);
  return parts.map(toWords).join("");
}

/** What screen readers say of changes that others can see. */
export const announcement = signal("");

export interface Notice {
  readonly text: Message;
  readonly kind: "news" | "trouble";
}

/** The message at the foot of the page. */
export const notice = signal<Notice | undefined>();

const noticeMs = 7_000;
let noticeTimer: ReturnType<typeof setTimeout> | undefined;

/** News disappears by itself; trouble stays until somebody dismisses it. */
export function notify(text: Message, kind: Notice["kind"] = "news"): void {
  hideNotice();
  notice.value = { text, kind };
  announcement.value = toText(text);
  if (kind === "news") noticeTimer = setTimeout(hideNotice, noticeMs);
}

export function hideNotice(): void {
  clearTimeout(noticeTimer);
  notice.value = undefined;
}

export interface Question {
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
  return promise.finally(() => {
    question.value = undefined;
  });
}
