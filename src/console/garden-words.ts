/** What the page says about a garden: whose it is, and which of its plants are shown. */

import { renderCount } from "../plant-file/words.ts";
import {
  describeError,
  type Me,
  type PlantEvent,
  type Query,
  type Summary,
  tagsMax,
} from "./api.ts";
import { find, message, show } from "./elements.ts";
import type { Garden } from "./garden.ts";

/** Everything about the garden but its plants and tags. */
export function drawWords(garden: Garden, summary: Summary | undefined): void {
  const { size, isComplete, loadError } = garden;
  const canWrite = summary?.me.scope === "write";
  const isTrouble = loadError !== undefined && size === 0;
  const isEmpty = isComplete && size === 0 && !isFiltered(garden.query);
  find("me").replaceChildren(summary ? describeMe(summary.me) : "");
  find("garden-title").textContent = describeSize(garden, summary);
  find("garden-note").replaceChildren(...describeExtent(garden, summary));
  find("no-match-note").replaceChildren(describeNoMatch(garden.query));
  find("trouble-note").textContent = isTrouble ? describeError(loadError) : "";
  find("empty-note").textContent = canWrite
    ? "This garden is empty. A plant needs a name; tag and id are optional."
    : "This garden is empty, and this token can only read.";
  show(find("table"), size > 0);
  show(find("empty"), isEmpty);
  show(find("no-match"), isComplete && size === 0 && !isEmpty);
  show(find("trouble"), isTrouble);
  show(find("loading"), !garden.isLoaded && !isTrouble);
  document.body.classList.toggle("read-only", !canWrite);
  document.body.classList.toggle("bare", size === 0 && !isFiltered(garden.query));
}

export function isFiltered({ tag, q }: Query): boolean {
  return tag !== undefined || q !== undefined;
}

/** How many plants the list has, loaded or not; absent if nobody knows yet. */
export function countPlants(garden: Garden, summary: Summary | undefined): number | undefined {
  const { tag, q } = garden.query;
  if (garden.isComplete) return garden.size;
  if (q !== undefined || !summary) return undefined;
  if (tag === undefined) return summary.me.plants;
  return summary.tags.find((each) => each.tag === tag)?.plants;
}

function describeMe({ user, garden, scope, expiresAt }: Me): Node {
  const access = scope === "write" ? "read and write" : "read only";
  const format = { dateStyle: "long", timeStyle: "short" } as const;
  const expiry = expiresAt
    ? `expires ${new Date(expiresAt).toLocaleString("en", format)}`
    : "never expires";
  return message`${user} · garden ${garden} · ${access} · ${expiry}`;
}

/** `20,000 plants`; `First 500 plants` if nobody knows how many there are. */
function describeSize(garden: Garden, summary: Summary | undefined): string {
  const { size } = garden;
  if (size === 0 && !isFiltered(garden.query)) return "Your garden";
  const count = countPlants(garden, summary);
  if (count === 0) return "No plants";
  if (count !== undefined) return renderCount(count, "plant");
  return size === 0 ? "Searching…" : `First ${renderCount(size, "plant")}`;
}

/** Which plants the title counts. */
function describeExtent(garden: Garden, summary: Summary | undefined): (Node | string)[] {
  const { tag, q } = garden.query;
  const tags = summary?.tags.filter((each) => each.tag !== "").length ?? 0;
  const parts: (Node | string)[] = [];
  if (q !== undefined) parts.push(message`with “${q}”`);
  if (tag === "") parts.push("without a tag");
  else if (tag !== undefined) parts.push(message`tagged “${tag}”`);
  if (garden.next !== undefined && q !== undefined) parts.push("more as you scroll");
  if (!isFiltered(garden.query) && tags > 0) {
    parts.push(`${renderCount(tags, "tag")}${tags < tagsMax ? "" : " or more"}`);
  }
  return parts.flatMap((part, index) => (index === 0 ? [part] : [" · ", part]));
}

function describeNoMatch({ tag, q }: Query): Node | string {
  if (q === undefined) return "No plant has this tag.";
  if (tag === undefined) return message`No name or tag has “${q}”.`;
  const which = tag === "" ? "without a tag" : message`tagged “${tag}”`;
  return message`No plant ${which} has “${q}” in its name.`;
}

/** `2:04 PM`, with the day unless it's today. */
export function describeTime(at: string): string {
  const date = new Date(at);
  const isToday = date.toDateString() === new Date().toDateString();
  const day = isToday ? {} : ({ dateStyle: "medium" } as const);
  return date.toLocaleString("en", { ...day, timeStyle: "short" });
}

/** Who changed or deleted a plant, as far as its last event says that. */
export function describeChange(isGone: boolean, event: PlantEvent | undefined): Node {
  const what = `${isGone ? "deleted" : "changed"} this plant`;
  const isKnown = event && (event.type === "plant.deleted") === isGone;
  if (!isKnown) return new Text(`Somebody ${what} in the meantime.`);
  const how = new Text(`${what} (${describeTime(event.at)})`);
  return message`${event.user} ${how}.`;
}
