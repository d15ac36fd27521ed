/**
 * The panel that shows who did what in the garden, and when. It stays open beside the list while
 * people work. On a small screen it covers the page.
 */
import { useEffect } from "preact/hooks";
import { renderCount } from "../client/files/renderer.ts";
import type { ActivityLine, ChangedPlant } from "./activity.ts";
import { Button, Dialog, PlantLink } from "./parts.tsx";
import { activity, garden } from "./state.ts";
import { describeTime } from "./words.ts";

/** The same width as in the style sheet. */
const small = matchMedia("(max-width: 60rem)");

const verbs = { "plant.created": "added", "plant.replaced": "changed", "plant.deleted": "deleted" };

export function toggleActivity(): void {
  if (activity.isOpen.value) closeActivity();
  else activity.open();
}

function closeActivity(): void {
  const hadFocus = document.activeElement?.closest("#activity");
  activity.close();
  // Once the dialog is closed.
  if (hadFocus) setTimeout(() => document.getElementById("open-activity")?.focus());
}

export function ActivityPanel() {
  const { isOpen, lines, note, hasEarlier, isBusy } = activity;
  // Open beside the list, it would push the list away on a small screen.
  useEffect(() => small.addEventListener("change", closeActivity), []);
  return (
    <Dialog
      id="activity"
      class="activity"
      aria-labelledby="activity-title"
      isOpen={isOpen.value}
      isModal={small.matches || garden.isBare.value}
      onLeave={closeActivity}
      onKeyDown={({ key }) => key === "Escape" && closeActivity()}>
      <h2 id="activity-title">Activity</h2>
      <Button id="close-activity" class="link" onClick={closeActivity} label="Close" />
      <div class="events" role="region" aria-labelledby="activity-title" tabIndex={0}>
        <ol id="activity-list">
          {isOpen.value && lines.value.map((line) => <Line key={line.key} line={line} />)}
        </ol>
        <p id="activity-note" class="note" role="status">
          {note.value}
        </p>
        {lines.value.length > 0 && hasEarlier.value && (
          <Button
            id="earlier"
            class="link"
            isBusy={isBusy.value}
            onClick={() => void activity.showEarlier()}
            label="Show earlier"
          />
        )}
      </div>
    </Dialog>
  );
}

function Line({ line }: { line: ActivityLine }) {
  const { user, type, at, count, isCut, plants } = line;
  const amount = `${renderCount(count)}${isCut ? " or more" : ""} plant${count === 1 && !isCut ? "" : "s"}: `;
  return (
    <li>
      <p>
        <bdi class="user">{user}</bdi> {verbs[type]} {count > 1 || isCut ? amount : ""}
        {plants.map((changed, index) => (
          <span key={changed.plant.id}>
            {index > 0 && ", "}
            <Change changed={changed} isGone={type === "plant.deleted"} />
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
function Change({ changed, isGone }: { changed: ChangedPlant; isGone: boolean }) {
  const { plant, before } = changed;
  if (isGone) return <bdi>{plant.name}</bdi>;
  return (
    <>
      {before && before.name !== plant.name && (
        <>
          <bdi>{before.name}</bdi> →{" "}
        </>
      )}
      <PlantLink id={plant.id}>{plant.name}</PlantLink>
      {before && before.tag !== plant.tag && (
        <>
          {" "}
          (tag <bdi>{before.tag || "none"}</bdi> → <bdi>{plant.tag || "none"}</bdi>)
        </>
      )}
    </>
  );
}
