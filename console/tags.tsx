/** Plants by tag, as bars that choose a tag. On a phone they are chips. */
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { renderCount } from "../src/shared/text.ts";
import { go } from "./address.ts";
import type { TagCount } from "./api.ts";
import { compareTexts } from "./order.ts";
import { Button } from "./parts.tsx";
import { garden } from "./state.ts";

const fewMax = 12;
const manyMax = 400;

export function Tags() {
  const areAllShown = useSignal(false);
  const drawn = useRef<readonly TagCount[]>([]);
  const chosen = garden.list.value.query.tag;
  // Somebody who is about to choose a tag doesn't want it to move.
  const isUsed = document.querySelector("#tags:hover, #tags:focus-within") !== null;
  const sorted = sortTags(isUsed ? drawn.current : []);
  drawn.current = sorted;
  const shown = sorted.slice(0, areAllShown.value ? manyMax : fewMax);
  if (chosen !== undefined && !shown.some(({ tag }) => tag === chosen)) {
    shown.push(sorted.find(({ tag }) => tag === chosen) ?? { tag: chosen, plants: 0 });
  }
  const most = sorted.reduce((max, { plants }) => Math.max(max, plants), 1);
  const toggleAll = () => {
    areAllShown.value = !areAllShown.value;
  };
  return (
    <div id="tags" class="tags" role="group" aria-label="Show one tag only">
      {shown.map(({ tag, plants }) => (
        <button
          key={`tag ${tag}`}
          class="chip"
          type="button"
          aria-pressed={tag === chosen}
          style={{ "--share": String(plants / most) }}
          onClick={() => go({ tag: tag === chosen ? undefined : tag })}>
          <bdi class={tag === "" ? "absent" : ""}>{tag || "no tag"}</bdi>{" "}
          <span class="amount">{renderCount(plants)}</span>
        </button>
      ))}
      {sorted.length > fewMax && (
        <Button class="link" onClick={toggleAll} label={areAllShown.value ? "Fewer" : "All tags"} />
      )}
    </div>
  );
}

/** What a tag's input suggests. */
export function KnownTags() {
  const tags = sortTags([]).filter(({ tag }) => tag !== "");
  return (
    <datalist id="known-tags">
      {tags.slice(0, manyMax).map(({ tag }) => (
        <option key={tag} value={tag} />
      ))}
    </datalist>
  );
}

/** The tags with the most plants first. The ones in `fixed` stay where they are. */
function sortTags(fixed: readonly TagCount[]): TagCount[] {
  const places = new Map(fixed.map(({ tag }, index) => [tag, index]));
  const placeOf = ({ tag }: TagCount) => places.get(tag) ?? fixed.length;
  return (garden.summary.value?.tags ?? []).toSorted(
    (a, b) => placeOf(a) - placeOf(b) || b.plants - a.plants || compareTexts(a.tag, b.tag),
  );
}
