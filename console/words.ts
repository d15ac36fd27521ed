/** What the page says about a garden: what a token may do, and which plants are shown. */

import type { Whole } from "../client/types.ts";
import { renderBounds, renderCount } from "../src/shared/text.ts";
import {
  type Me,
  type Plant,
  type PlantEvent,
  type Query,
  type Summary,
  tagsMax,
  toId,
} from "./api.ts";
import { type Message, message } from "./message.ts";
import type { PlantList } from "./plant-list.ts";

export function isFiltered({ tag, q }: Query): boolean {
  return tag !== undefined || q !== undefined;
}

/**
 * How many plants the list has, loaded or not. Absent if that isn't known yet. Except for searches,
 * it comes from where the numbers of the tags come from, so that both change together.
 */
export function countPlants(list: PlantList, summary: Summary | undefined): number | undefined {
  const { tag, q } = list.query;
  const loaded = list.isComplete ? list.size : undefined;
  if (q !== undefined || !summary) return loaded;
  // The first plant is shown before it's counted.
  if (tag === undefined) return summary.me.plants || list.size;
  return summary.tags.find((each) => each.tag === tag)?.plants ?? loaded;
}

export function describeAccess({ scope }: Me): string {
  return scope === "write" ? "read and write" : "read only";
}

export function describeExpiry({ expiresAt }: Me): string {
  if (!expiresAt) return "never expires";
  const date = new Date(expiresAt);
  return `expires ${date.toLocaleString("en", { dateStyle: "long", timeStyle: "short" })}`;
}

/** Which plants are shown: `340 plants, 6 tags`, or `57 plants tagged “herbs”`. */
export function describeList(list: PlantList, summary: Summary | undefined): Message {
  const { tag, q } = list.query;
  const tags = (summary?.tags ?? []).filter((each) => each.tag !== "").length;
  const size = describeSize(list, summary);
  if (size === "") return "";
  if (!isFiltered(list.query)) {
    if (tags === 0) return size;
    return `${size}, ${renderCount(tags, "tag")}${tags < tagsMax ? "" : " or more"}`;
  }
  const parts: Message[] = [size];
  if (q !== undefined) parts.push(" ", message`with “${q}”`);
  if (tag !== undefined) parts.push(" ", describeTag(tag));
  if (q !== undefined && list.next !== undefined) parts.push(", more as you scroll");
  return parts;
}

/** `20,000 plants`, or `500 or more plants` while the total is unknown. Empty if nothing is known. */
export function describeSize(list: PlantList, summary: Summary | undefined): string {
  const { size, error } = list;
  const isKnown = size > 0 || (list.isLoaded && error.value === undefined);
  const count = countPlants(list, summary);
  if (size === 0 && !isFiltered(list.query)) return isKnown ? "No plants yet" : "";
  if (!isKnown) return error.value === undefined ? "Searching…" : "";
  if (count === 0) return "No plants";
  if (count !== undefined) return renderCount(count, "plant");
  return size === 0 ? "Searching…" : `${renderCount(size)} or more plants`;
}

function describeTag(tag: string): Message[] {
  return tag === "" ? ["without a tag"] : message`tagged “${tag}”`;
}

export function describeNoMatch({ tag, q }: Query): Message {
  if (q === undefined) return "No plant has this tag.";
  if (tag === undefined) {
    const andNoId = toId(q) === undefined ? "" : ", and no plant has this id";
    return message`No name or tag has “${q}”${[andNoId]}.`;
  }
  return message`No plant ${describeTag(tag)} has “${q}” in its name.`;
}

/** At the start of a sentence: `3 plants`, or `At least 3, at most 5 plants`. */
export function describeBounds(least: number, most: number): string {
  const text = renderBounds(least, most, "plant");
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** `“Fern”`, or `3 plants`. The outcome may be unknown for more of them. */
export function describePlants(
  plants: readonly Plant[],
  unknown: readonly Plant[] = [],
): Message[] {
  const [first] = plants;
  const { length } = plants;
  const isOne = first && length + unknown.length === 1;
  if (isOne) return message`“${first.name}”`;
  return [describeBounds(length, length + unknown.length)];
}

/** `“Fern”, tagged “hall”` */
export function describeVersion({ name, tag }: Omit<Whole<"name" | "tag">, "id">): Message[] {
  return tag === "" ? message`“${name}”` : message`“${name}”, tagged “${tag}”`;
}

/** `2:04 PM`, with the day unless it's today. */
export function describeTime(at: string): string {
  const date = new Date(at);
  const isToday = date.toDateString() === new Date().toDateString();
  return date.toLocaleString("en", {
    ...(!isToday && { dateStyle: "medium" }),
    timeStyle: "short",
  });
}

/** What somebody did to a plant, from what it was and what it is. */
export function describeVerb(before: Plant, after: Plant): string {
  const isRenamed = before.name !== after.name;
  const isMoved = before.tag !== after.tag;
  if (isRenamed === isMoved) return "changed";
  return isRenamed ? "renamed" : "moved";
}

/** `bob deleted it (2:04 PM).`, or `Somebody renamed it.` if it was too long ago to know. */
export function describeWho(event: PlantEvent | undefined, verb: string): Message {
  if (!event) return `Somebody ${verb} it.`;
  return message`${event.user} ${[`${verb} it (${describeTime(event.at)})`]}.`;
}
