/** The head of the table: a box that selects all plants, and columns to sort by. */
import { renderCount } from "../src/shared/text.ts";
import { go } from "./address.ts";
import { type Column, sortedMax } from "./order.ts";
import { Button } from "./parts.tsx";
import { garden, selection } from "./state.ts";

export function TableHead() {
  const { canWrite } = garden;
  const { changing, isAll, size } = selection;
  return (
    <div role="rowgroup">
      <div class="row head" role="row" aria-rowindex={1}>
        <span class="box" role="columnheader">
          {canWrite.value ? (
            <input
              id="select-all"
              type="checkbox"
              aria-label={selection.allLabel}
              title={selection.allLabel}
              checked={isAll.value}
              indeterminate={size.value > 0 && !isAll.value}
              disabled={changing.isRunning.value}
              onClick={() => void selection.toggleAll()}
            />
          ) : (
            <span class="unseen">Selected</span>
          )}
        </span>
        <SortHeader column="name" label="Name" />
        <SortHeader column="tag" label="Tag" />
        <SortHeader column="id" label="Id" class="number" />
      </div>
    </div>
  );
}

interface SortHeaderProps {
  readonly column: Column;
  readonly label: string;
  readonly class?: string;
}

/** Sorts by this column, or the other way round if it's sorted by it already. */
function SortHeader({ column, label, class: name = column }: SortHeaderProps) {
  const { by, isDown } = garden.list.value.order;
  const isSorted = by === column;
  const isPossible = column === "id" || garden.isSortable.value;
  const why = `Up to ${renderCount(sortedMax, "plant")} can be sorted by ${column}.`;
  const sort = () =>
    go({ sort: column, order: isSorted && !isDown ? "desc" : undefined, plant: undefined });
  return (
    <span
      class={name}
      role="columnheader"
      aria-sort={isSorted ? (isDown ? "descending" : "ascending") : "none"}>
      <Button
        id={`sort-${column}`}
        class="sort"
        aria-disabled={!isPossible || undefined}
        title={isPossible ? undefined : `${why} Search, or choose a tag.`}
        onClick={() => isPossible && sort()}>
        {label}
        <span aria-hidden="true">{isSorted && (isDown ? " ↓" : " ↑")}</span>
      </Button>
    </span>
  );
}
