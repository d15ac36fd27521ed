/**
 * The panel that shows who did what in the garden, and when. It stays open beside the list while
 * people work. On a small screen it covers the page.
 */
import { useEffect } from "preact/hooks";
import { renderCount } from "../client/files/renderer.ts";
import type { Whole } from "../client/types.ts";
import type { ActivityLine } from "./activity.ts";
import { message } from "./message.ts";
import { Button, Dialog, focusSoon, onEscape, PlantLink } from "./parts.tsx";
import { activity, garden, session } from "./state.ts";
import { describeTime } from "./words.ts";

/** The same width as in the style sheet. */
const small = matchMedia("(max-width: 60rem)");

const verbs = { "plant.created": "added", "plant.replaced": "changed", "plant.deleted": "deleted" };

export function toggleActivity(): void {
  if (activity.isOpen.value) closeActivity();
  else void activity.open();
}

function closeActivity(): void {
  const hadFocus = document.activeElement?.closest("#activity");
  activity.isOpen.value = false;
  if (hadFocus) focusSoon("open-activity");
}

export function ActivityPanel() {
  const { isOpen, lines, note, hasEarlier, loading } = activity;
  // Open beside the list, it would push the list away on a small screen.
  useEffect(() => small.addEventListener("change", closeActivity), []);
  return (
    <Dialog
      id="activity"
      class="activity"
      aria-labelledby="activity-title"
      isOpen={isOpen.value && session.isSignedIn.value}
      isModal={small.matches || garden.isBare.value}
      onLeave={closeActivity}
      onKeyDown={onEscape(closeActivity)}>
      <h2 id="activity-title">Activity</h2>
      <Button id="close-activity" class="link" onClick={closeActivity} label="Close" />
      <div class="events" role="region" aria-labelledby="activity-title" tabIndex={0}>
        <ol id="activity-list">{isOpen.value && lines.value.map((line) => <Line {...line} />)}</ol>
        <p id="activity-note" class="note" role="status">
          {note.value}
        </p>
        {lines.value.length > 0 && hasEarlier.value && (
          <Button id="earlier" class="link" task={loading} onClick={() => activity.showEarlier()}>
            Show earlier
          </Button>
        )}
      </div>
    </Dialog>
  );
}

function Line({ user, type, at, count, isCut, plants }: ActivityLine) {
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
function Change({
  plant,
  before = plant,
  isGone,
}: ActivityLine["plants"][number] & { isGone: boolean }) {
  const { id, name, tag }: Whole<"name" | "tag"> = plant;
  if (isGone) return <bdi>{name}</bdi>;
  return (
    <>
      {before.name !== name && message`${before.name} → `}
      <PlantLink id={id} name={name} />
      {before.tag !== tag && message` (tag ${before.tag || "none"} → ${tag || "none"})`}
    </>
  );
}
