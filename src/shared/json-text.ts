/**
 * Parses a JSON object without losing anything that was sent: integers keep all their digits, and
 * repeated keys are reported, which a reviver of `JSON.parse` doesn't see. Splits a JSON array into
 * its items, so that a long one can be parsed bit by bit.
 */

interface JsonObject {
  readonly members: Readonly<Record<string, unknown>>;
  readonly repeatedKeys: readonly string[];
}

/** No valid object has more members, so the numbers of the others don't matter. */
const exactMembersMax = 16;

/** Absent if the text is not JSON, or is JSON but not an object. */
export function parseJsonObject(text: string): JsonObject | undefined {
  // An exception costs as much as parsing a hundred plants.
  if (!startsObject(text)) return undefined;
  let members: Record<string, unknown>;
  try {
    members = JSON.parse(text);
  } catch {
    return undefined;
  }
  const count = restoreIntegers(text, members);
  const isRepeating = count !== Object.keys(members).length;
  return { members, repeatedKeys: isRepeating ? findRepeatedKeys(text) : [] };
}

/** Replaces rounded integers by what the text says. Returns how many members the text has. */
function restoreIntegers(text: string, members: Record<string, unknown>): number {
  let count = 0;
  scanMembers(text, (keyStart, keyEnd, valueStart, valueEnd) => {
    count++;
    if (count > exactMembersMax || !startsNumber(text.charCodeAt(valueStart))) return;
    const key = readString(text, keyStart, keyEnd);
    // A repeated key overwrites the earlier value.
    if (typeof members[key] !== "number" && typeof members[key] !== "bigint") return;
    const source = text.slice(valueStart, valueEnd);
    members[key] = exactInteger(source) ?? Number(source);
  });
  return count;
}

/** Whether the text, if it is JSON at all, must be an object. */
export function startsObject(text: string): boolean {
  return text[skipSpace(text, 0)] === "{";
}

/** The text of a member of a valid JSON object; empty if it has none with this key. */
export function memberText(text: string, key: string): string {
  let found = "";
  scanMembers(text, (keyStart, keyEnd, valueStart, valueEnd) => {
    if (readString(text, keyStart, keyEnd) === key) found = text.slice(valueStart, valueEnd);
  });
  return found;
}

/**
 * The items of a JSON array, each as its text, to be parsed next. One with more than
 * `charactersMax` may be cut off, and must be the last that is asked for. Throws a `SyntaxError` if
 * there is no array, or what is between the items is wrong.
 */
export function* itemsOf(text: string, charactersMax = text.length): Generator<string, void> {
  let at = skipSpace(text, 0);
  if (text[at] !== "[") throw new SyntaxError("must be a JSON array");
  at = skipSpace(text, at + 1);
  for (let isFirst = true; !(isFirst && text[at] === "]"); isFirst = false) {
    const end = skipValue(text, at, charactersMax + 1);
    if (end === at) throw new SyntaxError("is not valid JSON");
    yield text.slice(at, end);
    at = skipSpace(text, end);
    if (text[at] === "]") break;
    if (text[at] !== ",") throw new SyntaxError("is not valid JSON");
    at = skipSpace(text, at + 1);
  }
  if (skipSpace(text, at + 1) < text.length) throw new SyntaxError("is not valid JSON");
}

/** The text is a valid JSON object, so a plain scan finds its members again. */
function scanMembers(
  text: string,
  visit: (keyStart: number, keyEnd: number, valueStart: number, valueEnd: number) => void,
): void {
  for (let at = skipSpace(text, text.indexOf("{") + 1); text[at] !== "}"; ) {
    const keyEnd = skipString(text, at);
    const valueStart = skipSpace(text, skipSpace(text, keyEnd) + 1);
    const valueEnd = skipValue(text, valueStart);
    visit(at, keyEnd, valueStart, valueEnd);
    at = skipSpace(text, valueEnd);
    if (text[at] === ",") at = skipSpace(text, at + 1);
  }
}

function findRepeatedKeys(text: string): readonly string[] {
  const seen = new Set<string>();
  const repeated: string[] = [];
  scanMembers(text, (keyStart, keyEnd) => {
    const key = readString(text, keyStart, keyEnd);
    if (seen.has(key)) repeated.push(key);
    seen.add(key);
  });
  return repeated;
}

/** A minus or a digit. */
function startsNumber(code: number): boolean {
  return code === 45 || (code >= 48 && code <= 57);
}

function readString(text: string, start: number, end: number): string {
  const inside = text.slice(start + 1, end - 1);
  return inside.includes("\\") ? JSON.parse(text.slice(start, end)) : inside;
}

function skipSpace(text: string, start: number): number {
  let at = start;
  while (isSpace(text.charCodeAt(at))) at++;
  return at;
}

/** Space, tab, line feed, carriage return. */
function isSpace(code: number): boolean {
  return code === 32 || code === 9 || code === 10 || code === 13;
}

const backslash = 92;

/** From an opening quote to after the closing one, or to the end if there is none. */
function skipString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  // A quote after an odd number of backslashes does not close.
  while (text.charCodeAt(end - 1) === backslash && isEscaped(text, end))
    end = text.indexOf('"', end + 1);
  return end < 0 ? text.length : end + 1;
}

function isEscaped(text: string, at: number): boolean {
  let first = at;
  while (text[first - 1] === "\\") first--;
  return (at - first) % 2 === 1;
}

/** What matters inside an object or an array. */
const structure = /["{}[\]]/g;

/** To after the value, at most `charactersMax` further. */
function skipValue(text: string, start: number, charactersMax = text.length): number {
  const end = Math.min(text.length, start + charactersMax);
  let depth = 0;
  let at = start;
  while (at < end) {
    if (depth > 0) {
      // Ten times as fast as to look at each character of a long array.
      structure.lastIndex = at;
      if (!structure.test(text)) return end;
      at = structure.lastIndex - 1;
      if (at >= end) return end;
    }
    const character = text.charAt(at);
    if (character === '"') {
      at = skipString(text, at);
      if (depth === 0) return at;
      continue;
    }
    if (character === "{" || character === "[") depth++;
    else if (character === "}" || character === "]") {
      if (depth === 0) return at;
      depth--;
      if (depth === 0) return at + 1;
    } else if (depth === 0 && (character === "," || isSpace(text.charCodeAt(at)))) return at;
    at++;
  }
  return end;
}

/** More digits than any 64-bit integer has. */
const digitsMax = 20;
const plainInteger = /^-?\d{1,19}$/;

/**
 * The exact integer that a JSON number stands for (`1.0` and `1e3` are integers too); absent if it
 * isn't one. A huge number becomes one that is out of the 64-bit range.
 */
export function exactInteger(source: string): bigint | undefined {
  if (plainInteger.test(source)) return BigInt(source);
  const parts = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(source);
  if (!parts) return undefined;
  const [, sign, whole = "", fraction = "", exponentText = "0"] = parts;
  const all = (whole + fraction).replace(/^0+/, "");
  if (all === "") return 0n;
  // Not by /0+$/, which takes quadratic time on a long run of zeros that is not at the end.
  let end = all.length;
  while (all[end - 1] === "0") end--;
  const digits = all.slice(0, end);
  const exponent = Number(exponentText) - fraction.length + all.length - end;
  if (exponent < 0) return undefined;
  const magnitude =
    digits.length + exponent > digitsMax ? 2n ** 64n : BigInt(digits + "0".repeat(exponent));
  return sign === "-" ? -magnitude : magnitude;
}
