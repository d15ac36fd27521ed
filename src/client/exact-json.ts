/**
 * JSON with integers of 64 bits, in engines whose `JSON.parse` rounds them and hides the digits.
 */

/** Strings are matched whole, so that a number inside of one is not taken for a number. */
const stringOrNumber = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g;

/** Numbers come as text, with all their digits. */
export function parseWithNumbersAsText(text: string): unknown {
  return JSON.parse(text.replace(stringOrNumber, (part) => (part[0] === '"' ? part : `"${part}"`)));
}

/** The digits of an id. Fails if it is a number that may have been rounded already. */
export function renderId(id: bigint | number): string {
  if (typeof id === "bigint" || Number.isSafeInteger(id)) return String(id);
  throw new RangeError(`An id must be a bigint or a safe integer, not ${id}.`);
}

/** Fails if no id looks like that: `BigInt` takes nothing at all for 0, and `0x7` for 7. */
export function readId(text: unknown): bigint {
  if (typeof text === "string" && /^-?\d+$/.test(text)) return BigInt(text);
  throw new SyntaxError("An id must be a decimal integer.");
}
