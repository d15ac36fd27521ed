/** Which plants a search finds. Decided here, so that no engine's collation has a say in it. */
import type { Plant } from "./plant.ts";

export const searchCodePointsMax = 100;

const space = /[\p{White_Space}\uFEFF]+/u;
const notAscii = /[^\0-\x7f]/;
const marks = /\p{M}/gu;

/** Finds plants whose name or tag contains each word of the search, in any order. */
export function createMatcher(search: string): (plant: Plant) => boolean {
  const words = wordsOf(search);
  return ({ name, tag }) => {
    // No word contains the line break, so none is found half in the name and half in the tag.
    const text = fold(`${name}\n${tag}`);
    return words.every((word) => text.includes(word));
  };
}

/** Without words that are nothing but accents, such as ´. */
export function wordsOf(search: string): string[] {
  const words = search.split(space).map((word) => fold(word).trim());
  return words.filter((word) => word !== "");
}

/** Without case and accents. */
function fold(text: string): string {
  if (!notAscii.test(text)) return text.toLowerCase();
  // A sigma has two lower-case forms, and which one it gets depends on its place in the word.
  return text.normalize("NFKD").replace(marks, "").toLowerCase().replaceAll("ς", "σ");
}
