/**
 * Parses a JSON object without losing anything that was sent: integers keep all their digits, and
 * repeated keys are reported, which a reviver of `JSON.parse` doesn't see. Splits a JSON array into
 * its items, so that a long one can be parsed bit by bit.
 */

interface JsonObject {
  readonly members: Readonly<Record<string, unknown>>;
  readonly repeatedKeys: readonly string[];
}

/** The text isn't JSON, because of what begins there. */
export class NotJsonError extends SyntaxError {
  constructor(readonly at: number) {
    super("is not valid JSON");
  }
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

/** A part of a JSON text, and where it starts there. */
export interface JsonPart {
  readonly text: string;
  readonly start: number;
}

/**
 * The items of a JSON array, to be parsed next. One with more than `charactersMax` may be cut off,
 * and must be the last that is asked for. Throws a `SyntaxError` if there is no array, or what is
 * between the items is wrong. `textStart` is where the text starts in a longer one.
 */
export function itemsOf(
  text: string,
  charactersMax = text.length,
  textStart = 0,
): Generator<JsonPart, void> {
  const skipItem = (start: number) => skipValue(text, start, charactersMax + 1);
  const toItem = (start: number, end: number) => ({
    text: text.slice(start, end),
    start: textStart + start,
  });
  return partsOf(text, textStart, "[", "]", skipItem, toItem);
}

/** The members of a JSON object likewise. */
export function membersOf(text: string): Generator<readonly [key: string, value: JsonPart], void> {
  let keyEnd = 0;
  let valueStart = 0;
  function skipMember(start: number): number {
    if (text[start] !== '"') return start;
    keyEnd = skipString(text, start);
    const colonAt = skipSpace(text, keyEnd);
    valueStart = skipSpace(text, colonAt + 1);
    const end = skipValue(text, valueStart);
    return text[colonAt] === ":" && end > valueStart ? end : start;
  }
  return partsOf(text, 0, "{", "}", skipMember, (start, end) => [
    parsePart({ text: text.slice(start, keyEnd), start }) as string,
    { text: text.slice(valueStart, end), start: valueStart },
  ]);
}

/** Throws a `NotJsonError` if the part isn't JSON. */
export function parsePart({ text, start }: JsonPart): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new NotJsonError(start);
  }
}

/**
 * What is between two brackets and separated by commas. `skip` returns the end of the part that
 * starts there, or its start if it's malformed.
 */
function* partsOf<Part>(
  text: string,
  textStart: number,
  opening: "[" | "{",
  closing: "]" | "}",
  skip: (start: number) => number,
  read: (start: number, end: number) => Part,
): Generator<Part, void> {
  let at = skipSpace(text, 0);
  if (text[at] !== opening) {
    throw new SyntaxError(`must be ${opening === "[" ? "a JSON array" : "one JSON object"}`);
  }
  at = skipSpace(text, at + 1);
  for (let isFirst = true; !(isFirst && text[at] === closing); isFirst = false) {
    const end = skip(at);
    if (end === at) throw new NotJsonError(textStart + at);
    yield read(at, end);
    at = skipSpace(text, end);
    if (text[at] === closing) break;
    if (text[at] !== ",") throw new NotJsonError(textStart + at);
    at = skipSpace(text, at + 1);
  }
  at = skipSpace(text, at + 1);
  if (at < text.length) throw new NotJsonError(textStart + at);
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

/** `[` or `{`. */
function isOpening(code: number): boolean {
  return code === 91 || code === 123;
}

/** `]` or `}`. */
function isClosing(code: number): boolean {
  return code === 93 || code === 125;
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

const quote = 34;
const comma = 44;
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

/** To after the value, at most `charactersMax` further unless it's a string. */
function skipValue(text: string, start: number, charactersMax = text.length): number {
  const end = Math.min(text.length, start + charactersMax);
  const first = text[start];
  if (first === '"') return skipString(text, start);
  if (first === "{" || first === "[") return skipNested(text, start, end);
  let at = start;
  while (at < end && !endsScalar(text.charCodeAt(at))) at++;
  return at;
}

/** A comma, a bracket or space: a number or a word ends before it. */
function endsScalar(code: number): boolean {
  return code === comma || isOpening(code) || isClosing(code) || isSpace(code);
}

/**
 * From an opening bracket to after the closing one, or to the end. It looks at each character:
 * searching for the next bracket takes 16 times as long where there are many.
 */
function skipNested(text: string, start: number, end: number): number {
  let depth = 0;
  for (let at = start; at < end; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) at = skipString(text, at) - 1;
    else if (isOpening(code)) depth++;
    else if (isClosing(code) && --depth === 0) return at + 1;
  }
  return end;
}

/** More digits than any 64-bit integer has. */
const digitsMax = 20;
const plainInteger = /^-?(?:0|[1-9]\d{0,18})$/;

/**
 * The exact integer that a JSON number stands for (`1.0` and `1e3` are integers too); absent if it
 * isn't one, or the text isn't a JSON number. A huge number becomes one that is out of the 64-bit
 * range.
 */
export function exactInteger(source: string): bigint | undefined {
  if (plainInteger.test(source)) return BigInt(source);
  const parts = /^(-?)(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(source);
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
