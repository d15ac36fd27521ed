/** How wide the window is, where that decides more than a style sheet can. */
import { type ReadonlySignal, signal } from "@preact/signals";

/** There is room beside the list. */
export const isWide = matches("(width > 60rem)");
/** As on a phone held upright. */
export const isNarrow = matches("(width <= 40rem)");

function matches(condition: string): ReadonlySignal<boolean> {
  const query = matchMedia(condition);
  const isMatch = signal(query.matches);
  query.addEventListener("change", () => {
    isMatch.value = query.matches;
  });
  return isMatch;
}
