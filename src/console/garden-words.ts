/** What the page says about a garden: whose it is, which plants are shown, what a filter found. */
import type { Me } from "./api.ts";
import { count, message } from "./elements.ts";
import type { Garden } from "./garden.ts";

export function describeMe({ user, garden, scope, expiresAt }: Me): Node {
  const access = scope === "write" ? "read and write" : "read only";
  const format = { dateStyle: "long", timeStyle: "short" } as const;
  const expiry = expiresAt
    ? `expires ${new Date(expiresAt).toLocaleString("en", format)}`
    : "never expires";
  return message`${user} · garden ${garden} · ${access} · ${expiry}`;
}

/** Which plants the title counts. */
export function describeExtent(garden: Garden): (Node | string)[] {
  const parts: (Node | string)[] = [];
  if (garden.tag === "") parts.push("without a tag");
  else if (garden.tag !== undefined) parts.push(message`tagged “${garden.tag}”`);
  if (garden.next !== undefined) parts.push("more as you scroll");
  const tags = garden.countTags().filter(([tag]) => tag !== "").length;
  if (garden.tag === undefined && tags > 0) parts.push(count(tags, "tag"));
  return parts.flatMap((part, index) => (index === 0 ? [part] : [" · ", part]));
}

/** `the first 500 plants`, `all 12 plants`. */
export function describeLoaded({ size, next }: Garden): string {
  if (next !== undefined) return `the first ${count(size, "plant")}`;
  return size === 1 ? "1 plant" : `all ${count(size, "plant")}`;
}

export function describeMatches(garden: Garden, shown: number): string {
  const { size, next, loadError } = garden;
  const found = shown.toLocaleString("en");
  if (next === undefined) return `${found} of ${count(size, "plant")}`;
  const rest = loadError === undefined ? ". Loading the rest…" : "";
  return `${found} among ${describeLoaded(garden)}${rest}`;
}

export function describeNoMatch({ size, next, loadError }: Garden): string {
  if (size === 0) return "No plant has this tag.";
  if (next === undefined) return "No name, tag or id matches.";
  return loadError === undefined ? "Loading the rest of your plants…" : "";
}
