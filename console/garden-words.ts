/** What the page says about a garden: whose it is, and which of its plants are shown. */
import { renderCount } from "../client/files/renderer.ts";
import {
  describeError,
  type Me,
  type PlantEvent,
  type Query,
  type Summary,
  tagsMax,
} from "./api.ts";
import { find, message, show } from "./elements.ts";
import type { PlantList } from "./plant-list.ts";

/** Draws everything about a garden except its plants and tags. */
export function drawWords(list: PlantList, summary: Summary | undefined, isLoading: boolean): void {
  const { size, isComplete, loadError } = list;
  const canWrite = summary?.me.scope === "write";
  const isTrouble = loadError !== undefined && size === 0;
  const isEmpty = isComplete && size === 0 && !isFiltered(list.query);
  find("me").replaceChildren(summary ? describeMe(summary.me) : "");
  find("garden-title").textContent = describeSize(list, summary);
  find("garden-note").replaceChildren(...describeExtent(list, summary));
  find("no-match-note").replaceChildren(describeNoMatch(list.query));
  find("trouble-note").textContent = isTrouble ? describeError(loadError) : "";
  find("empty-note").textContent = canWrite
    ? "This garden is empty. A plant needs a name; tag and id are optional."
    : "This garden is empty, and this token can only read.";
  show(find("table"), size > 0);
  show(find("empty"), isEmpty);
  show(find("no-match"), isComplete && size === 0 && !isEmpty);
  show(find("trouble"), isTrouble);
  show(find("loading"), !list.isLoaded && !isTrouble);
  show(find("open-activity"), summary?.me.lastEvent !== undefined);
  document.body.classList.toggle("read-only", !canWrite);
  document.body.classList.toggle("bare", size === 0 && !isFiltered(list.query));
  drawEnd(list, isLoading);
}

/** What follows the last row. */
function drawEnd({ size, next, loadError, query }: PlantList, isLoading: boolean): void {
  const hasFailed = loadError !== undefined && size > 0;
  const found = query.q === undefined ? renderCount(size, "plant") : `${renderCount(size)} found`;
  find("more-note").textContent = hasFailed
    ? `Couldn’t load more plants. ${describeError(loadError)}`
    : `Loading… ${found} so far`;
  show(find("more-note"), hasFailed || (isLoading && next !== undefined));
  find("load-more").textContent = hasFailed ? "Try again" : "Load more";
  show(find("load-more"), next !== undefined && !isLoading);
}

export function isFiltered({ tag, q }: Query): boolean {
  return tag !== undefined || q !== undefined;
}

/** How many plants the list has, loaded or not. Absent if that isn't known yet. */
export function countPlants(list: PlantList, summary: Summary | undefined): number | undefined {
  const { tag, q } = list.query;
  if (list.isComplete) return list.size;
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

/** `20,000 plants`, or `First 500 plants` while the total is unknown. */
function describeSize(list: PlantList, summary: Summary | undefined): string {
  const { size } = list;
  if (size === 0 && !isFiltered(list.query)) return "Your garden";
  const count = countPlants(list, summary);
  if (count === 0) return "No plants";
  if (count !== undefined) return renderCount(count, "plant");
  return size === 0 ? "Searching…" : `First ${renderCount(size, "plant")}`;
}

/** Which plants the title counts. */
function describeExtent(list: PlantList, summary: Summary | undefined): (Node | string)[] {
  const { tag, q } = list.query;
  const tags = summary?.tags.filter((each) => each.tag !== "").length ?? 0;
  const parts: (Node | string)[] = [];
  if (q !== undefined) parts.push(message`with “${q}”`);
  if (tag === "") parts.push("without a tag");
  else if (tag !== undefined) parts.push(message`tagged “${tag}”`);
  if (list.next !== undefined && q !== undefined) parts.push("more as you scroll");
  if (!isFiltered(list.query) && tags > 0) {
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

/** Who changed or deleted a plant, if its last event says so. */
export function describeChange(isGone: boolean, event: PlantEvent | undefined): Node {
  const what = `${isGone ? "deleted" : "changed"} this plant`;
  const isKnown = event && (event.type === "plant.deleted") === isGone;
  if (!isKnown) return new Text(`Somebody ${what} in the meantime.`);
  const how = new Text(`${what} (${describeTime(event.at)})`);
  return message`${event.user} ${how}.`;
}
