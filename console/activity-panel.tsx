/** Shows who did what in the garden, and when, beside the list while people work. */

import type { Whole } from "../client/types.ts";
import { renderCount } from "../src/shared/text.ts";
import type { ActivityLine } from "./activity.ts";
import { toHash } from "./address.ts";
import { message } from "./message.ts";
import { Button } from "./parts.tsx";
import { activity, garden } from "./state.ts";
import { describeTime } from "./words.ts";

const verbs = { "plant.created": "added", "plant.replaced": "changed", "plant.deleted": "deleted" };

export function ActivityPanel() {
  const { isOpen, lines, note, hasEarlier, loading } = activity;
  // Without events, there is nothing to show.
  if (garden.summary.value?.me.lastEvent === undefined) return null;
  return (
    <details
      id="activity"
      class="activity"
      open={isOpen.value}
      onToggle={({ currentTarget }) => void activity.toggle(currentTarget.open)}>
      <summary id="open-activity">Activity</summary>
      <div class="events" role="region" aria-labelledby="open-activity" tabIndex={0}>
        <ol id="activity-list">
          {isOpen.value && lines.value.map(({ key, ...line }) => <Line key={key} {...line} />)}
        </ol>
        <p class="note" role="status">
          {note.value}
        </p>
        {lines.value.length > 0 && hasEarlier.value && (
          <Button id="earlier" class="link" task={loading} onClick={() => activity.showEarlier()}>
            Show earlier
          </Button>
        )}
      </div>
    </details>
  );
}

function Line({ user, type, at, count, isCut, plants }: Omit<ActivityLine, "key">) {
  const amount = isCut ? `${renderCount(count)} or more plants` : renderCount(count, "plant");
  return (
    <li>
      <p>
        <bdi class="user">{user}</bdi> {verbs[type]} {count > 1 || isCut ? `${amount}: ` : ""}
        {plants.map((change, index) => (
          <span key={change.plant.id}>
            {index > 0 && ", "}
            <Change {...change} isGone={type === "plant.deleted"} />
          </span>
        ))}
        {count > plants.length && ", …"}
      </p>
      <time dateTime={at} class="note">
        {describeTime(at)}
      </time>
    </li>
  );
}

/** `Fern → Royal fern (tag hall → pond)` */
function Change(change: ActivityLine["plants"][number] & { isGone: boolean }) {
  const { plant, before = plant, isGone } = change;
  const { id, name, tag }: Whole<"name" | "tag"> = plant;
  if (isGone) return <bdi>{name}</bdi>;
  return (
    <>
      {before.name !== name && message`${before.name} → `}
      <a href={toHash({ plant: id })}>{name}</a>
      {before.tag !== tag && message` (tag ${before.tag || "none"} → ${tag || "none"})`}
    </>
  );
}
