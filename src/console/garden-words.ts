/** What the page says about a garden: whose it is, which plants are shown, what a filter found. */

import { renderCount } from "../plant-file/words.ts";
import { describeError, type Me } from "./api.ts";
import { find, message, show } from "./elements.ts";
import type { Garden } from "./garden.ts";

export interface Shown {
  /** How many plants the filter found. */
  readonly found: number;
  readonly filterText: string;
  readonly me: Me | undefined;
}

/** Everything about the garden but its plants and tags. */
export function drawWords(garden: Garden, { found, filterText, me }: Shown): void {
  const { size } = garden;
  const canWrite = me?.scope === "write";
  const hasMore = garden.next !== undefined;
  const isFirstLoad = garden.isLoading && size === 0;
  const isTrouble = garden.loadError !== undefined && size === 0;
  const isNothing = size === 0 && !hasMore && !isFirstLoad && !isTrouble;
  const isEmpty = isNothing && garden.tag === undefined;
  const isNoMatch = found === 0 && (size > 0 || (isNothing && !isEmpty));
  find("me").replaceChildren(me ? describeMe(me) : "");
  find("garden-title").textContent = size === 0 ? "Your garden" : describeSize(garden);
  find("garden-note").replaceChildren(...describeExtent(garden));
  find("filter-note").textContent = filterText && describeMatches(garden, found);
  find("no-match-title").textContent = hasMore ? "Nothing found yet" : "No plants found";
  find("no-match-note").textContent = describeNoMatch(garden);
  find("trouble-note").textContent = isTrouble ? describeError(garden.loadError) : "";
  find("empty-note").textContent = canWrite
    ? "This garden is empty. A plant needs a name; tag and id are optional."
    : "This garden is empty, and this token can only read.";
  show(find("table"), found > 0);
  show(find("empty"), isEmpty);
  show(find("no-match"), isNoMatch);
  show(find("trouble"), isTrouble);
  show(find("loading"), isFirstLoad);
  document.body.classList.toggle("read-only", !canWrite);
  document.body.classList.toggle("bare", size === 0 && garden.tag === undefined);
}

function describeMe({ user, garden, scope, expiresAt }: Me): Node {
  const access = scope === "write" ? "read and write" : "read only";
  const format = { dateStyle: "long", timeStyle: "short" } as const;
  const expiry = expiresAt
    ? `expires ${new Date(expiresAt).toLocaleString("en", format)}`
    : "never expires";
  return message`${user} · garden ${garden} · ${access} · ${expiry}`;
}

/** `15,100 plants`; `First 500 plants` if nobody knows how many have the chosen tag. */
function describeSize({ size, total }: Garden): string {
  return total === undefined ? `First ${renderCount(size, "plant")}` : renderCount(total, "plant");
}

/** Which plants the title counts. */
function describeExtent(garden: Garden): (Node | string)[] {
  const parts: (Node | string)[] = [];
  if (garden.tag === "") parts.push("without a tag");
  else if (garden.tag !== undefined) parts.push(message`tagged “${garden.tag}”`);
  if (garden.next !== undefined) {
    const isCounted = garden.total !== undefined;
    const loaded = isCounted ? `${renderCount(garden.size)} loaded, ` : "";
    parts.push(`${loaded}more as you scroll`);
  }
  const tags = garden.countTags().filter(([tag]) => tag !== "").length;
  if (garden.tag === undefined && tags > 0) parts.push(renderCount(tags, "tag"));
  return parts.flatMap((part, index) => (index === 0 ? [part] : [" · ", part]));
}

/** `the first 500 of 15,100 plants`, `the first 500 plants`, `all 12 plants`. */
export function describeLoaded({ size, next, total }: Garden): string {
  if (next === undefined)
    return size < 2 ? renderCount(size, "plant") : `all ${renderCount(size, "plant")}`;
  const of = total === undefined ? "" : `${renderCount(size)} of `;
  return `the first ${of}${renderCount(total ?? size, "plant")}`;
}

function describeMatches(garden: Garden, shown: number): string {
  const { size, next, loadError } = garden;
  const found = renderCount(shown);
  if (next === undefined) return `${found} of ${renderCount(size, "plant")}`;
  const rest = loadError === undefined ? ". Loading the rest…" : "";
  return `${found} among ${describeLoaded(garden)}${rest}`;
}

function describeNoMatch({ size, next, loadError }: Garden): string {
  if (size === 0) return "No plant has this tag.";
  if (next === undefined) return "No name, tag or id matches.";
  return loadError === undefined ? "Loading the rest of your plants…" : "";
}
