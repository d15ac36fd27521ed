/** JSON with 64-bit ids, also in engines whose `JSON.parse` rounds them and hides the digits. */

/** Other strings are matched whole, so that an id inside one is not taken for an id. */
const idOrString = /("id"\s*:\s*)(-?\d+)(?![\d.eE])|"[^"\\]*(?:\\.[^"\\]*)*"/g;

/** Every member `id` that is an integer becomes a bigint. Throws if the text is not JSON. */
export function parseWithExactIds(text: string): unknown {
  const marked = text.replace(idOrString, (part, key?: string, digits?: string) =>
    digits === undefined ? part : `${key}{"digits":"${digits}"}`,
  );
  return JSON.parse(marked, (key, value) =>
    key === "id" && typeof value?.digits === "string" ? BigInt(value.digits) : value,
  );
}

/** The digits of an id. Throws if it is a number that may have been rounded already. */
export function renderId(id: bigint | number): string {
  if (typeof id === "bigint" || Number.isSafeInteger(id)) return String(id);
  throw new RangeError(`An id must be a bigint or a safe integer, not ${id}.`);
}

/** Throws if the text is no id: `BigInt` alone would take "" for 0, and "0x7" for 7. */
export function readId(text: unknown): bigint {
  if (typeof text === "string" && /^-?\d+$/.test(text)) return BigInt(text);
  throw new SyntaxError("An id must be a decimal integer.");
}
