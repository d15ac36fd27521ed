/** Who did what in the garden: beside the list, or behind a button where there is no room for it. */
import { computed, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Whole } from "../client/types.ts";
import { renderCount } from "../src/shared/text.ts";
import { type ActivityLine, countedMax } from "./activity.ts";
import { toHash } from "./address.ts";
import { message } from "./message.ts";
import { Button, Dialog, focusSoon } from "./parts.tsx";
import { isWide } from "./screen.ts";
import { activity, garden, session } from "./state.ts";
import { describeTime } from "./words.ts";

/** Without events, there is nothing to show. */
export const hasActivity = computed(() => garden.summary.value?.me.lastEvent !== undefined);
const isDialogOpen = signal(false);

export function openActivity(): void {
  isDialogOpen.value = true;
}

function closeActivity(): void {
  isDialogOpen.value = false;
  // What opened it may have been in a menu, which is closed.
  focusSoon(document.getElementById("open-more") ? "open-more" : "open-activity");
}

export function ActivityPanel() {
  const isShown = hasActivity.value && (isWide.value || isDialogOpen.value);
  useEffect(() => {
    if (isShown) void activity.open();
    else activity.close();
  }, [isShown]);
  if (!hasActivity.value) return null;
  if (isWide.value) {
    return (
      <div id="activity" class="activity">
        <h2 id="activity-title">Activity</h2>
        <Events />
      </div>
    );
  }
  return (
    <Dialog
      id="activity"
      class="card dialog activity"
      aria-labelledby="activity-title"
      isOpen={isDialogOpen.value && session.isSignedIn.value}
      onLeave={closeActivity}>
      <h2 id="activity-title">Activity</h2>
      <Events />
      <div class="actions">
        <Button id="close-activity" autofocus onClick={closeActivity} label="Close" />
      </div>
    </Dialog>
  );
}

function Events() {
  const { isOpen, lines, note, hasEarlier, loading } = activity;
  return (
    <div class="events" role="region" aria-labelledby="activity-title" tabIndex={0}>
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
  );
}

/** `ada moved 1,538 plants to hall`, or the newest few plants with what was done to each. */
function Line({ user, verb, movedTo, at, count, isCut, plants }: Omit<ActivityLine, "key">) {
  const isMany = count > 1 || isCut;
  const amount = isMany && renderAmount(count, isCut);
  return (
    <li>
      <p>
        <bdi class="user">{user}</bdi>{" "}
        {movedTo === undefined ? (
          <>
            {verb} {amount && `${amount}: `}
            <Plants plants={plants} count={count} />
          </>
        ) : movedTo === "" ? (
          `removed the tag of ${amount}`
        ) : (
          message`moved ${[amount]} to ${movedTo}`
        )}
      </p>
      <time dateTime={at} class="note">
        {describeTime(at)}
      </time>
    </li>
  );
}

function renderAmount(count: number, isCut: boolean): string {
  if (count > countedMax) return `more than ${renderCount(countedMax, "plant")}`;
  return isCut ? `${renderCount(count)} or more plants` : renderCount(count, "plant");
}

function Plants({ plants, count }: Pick<ActivityLine, "plants" | "count">) {
  return (
    <>
      {plants.map((change, index) => (
        <span key={change.plant.id}>
          {index > 0 && ", "}
          <Change {...change} />
        </span>
      ))}
      {count > plants.length && ", …"}
    </>
  );
}

/** `Fern → Royal fern (tag hall → pond)` */
function Change({ plant, before = plant, isGone }: ActivityLine["plants"][number]) {
  const { id, name, tag }: Whole<"name" | "tag"> = plant;
  return (
    <>
      {before.name !== name && message`${before.name} → `}
      {isGone ? (
        <bdi>{name}</bdi>
      ) : (
        <a href={toHash({ plant: id })} onClick={closeActivity}>
          {name}
        </a>
      )}
      {before.tag !== tag && message` (tag ${before.tag || "none"} → ${tag || "none"})`}
    </>
  );
}
