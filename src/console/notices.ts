/** What the page says in passing: seen at its foot, and read out to those who listen. */
import { find, show } from "./elements.ts";

const noticeMs = 7_000;

const box = find("notice");
const text = find("notice-text");
let timer: ReturnType<typeof setTimeout> | undefined;

find("notice-close").addEventListener("click", hideNotice);

/** Only read out: what is said can be seen elsewhere. */
export function announce(message: string | null): void {
  find("announcer").textContent = message;
}

/** Good news goes by itself; trouble stays until it is dismissed. */
export function notify(message: Node, kind: "news" | "trouble" = "news"): void {
  clearTimeout(timer);
  text.replaceChildren(message);
  box.classList.toggle("trouble", kind === "trouble");
  show(box, true);
  announce(text.textContent);
  if (kind === "news") timer = setTimeout(hideNotice, noticeMs);
}

export function hideNotice(): void {
  clearTimeout(timer);
  show(box, false);
}
