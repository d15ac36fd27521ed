/** Finds the JSON records in a file: one per line, or the elements of an array. */
import type { Scanned } from "./record-splitter.ts";

export interface JsonRecord extends Scanned {
  readonly isInArray: boolean;
  /** In an array: what stands before the record, such as a comma. */
  readonly lead: string;
  /** Empty at the end of an array. */
  readonly body: string;
}

/** A file whose first character is `[` is one array; any other has a record per line. */
export function createJsonScanner(): (text: string, start: number) => JsonRecord | undefined {
  let kind: "lines" | "array" | undefined;
  return (text, start) => {
    const first = kind ?? text[matchAt(/\s*/y, text, start)];
    if (first !== undefined) kind ??= first === "[" ? "array" : "lines";
    const record = kind === "array" ? scanElement(text, start) : scanLine(text, start);
    // Only blank lines may follow the array.
    if (record?.lead.includes("]")) kind = "lines";
    return record;
  };
}

function scanLine(text: string, start: number): JsonRecord | undefined {
  const end = text.indexOf("\n", start);
  if (end === -1) return undefined;
  return { isInArray: false, lead: "", body: text.slice(start, end), end: end + 1 };
}

function scanElement(text: string, start: number): JsonRecord | undefined {
  const bodyStart = matchAt(/[\s,[\]]*/y, text, start);
  const lead = text.slice(start, bodyStart);
  const end = lead.includes("]") ? bodyStart : findElementEnd(text, bodyStart);
  if (end === undefined) return undefined;
  return { isInArray: true, lead, body: text.slice(bodyStart, end), end };
}

/** The end of the element that starts there: where its brackets close, else before a comma. */
function findElementEnd(text: string, start: number): number | undefined {
  let depth = 0;
  const part = /"(?:[^"\\]|\\[\s\S])*"|["{}[\],\n]/g;
  part.lastIndex = start;
  for (let found = part.exec(text); found !== null; found = part.exec(text)) {
    const [character] = found;
    if (character === '"') return undefined;
    if (character === "{" || character === "[") depth++;
    else if (character === "}" || character === "]") depth--;
    if (depth < 0 || (depth === 0 && /[,\n]/.test(character))) return found.index;
    if (depth === 0 && character === "}") return part.lastIndex;
  }
  return undefined;
}

/** Where the match of a sticky pattern ends; `start` if there is none. */
function matchAt(pattern: RegExp, text: string, start: number): number {
  pattern.lastIndex = start;
  return pattern.test(text) ? pattern.lastIndex : start;
}
