/** Finds JSON records in a file, as JSON Lines or as one array, and where JSON is malformed. */
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

const token =
  /\s*(?:[{}[\],:]|"(?:[ !#-[\]-\u00ff]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])|(?:true|false|null)\b)/y;

/** A plant has three values; more would only exhaust the stack. */
const nestedMax = 1_000;

/**
 * The offset of the first token that doesn't belong there; absent if the text is JSON. `JSON.parse`
 * doesn't report it.
 */
export function findSyntaxError(text: string): number | undefined {
  let at = 0;
  let nested = 0;
  const peek = () => text[matchAt(/\s*/y, text, at)];
  /** Whether the next token is one of these characters; `"` is any string. */
  const take = (characters: string): boolean => {
    const next = peek();
    const end = matchAt(token, text, at);
    if (next === undefined || end === at || !characters.includes(next)) return false;
    at = end;
    return true;
  };
  const members = (close: string, member: () => boolean): boolean => {
    if (take(close)) return true;
    do if (!member()) return false;
    while (take(","));
    return take(close);
  };
  const value = (): boolean => {
    if (++nested > nestedMax) return false;
    if (take("{")) return members("}", () => take('"') && take(":") && value());
    if (take("[")) return members("]", value);
    return take('"-0123456789tfn');
  };
  const isJson = value() && peek() === undefined;
  return isJson ? undefined : matchAt(/\s*/y, text, at);
}

/** Where the match of a sticky pattern ends; `start` if there is none. */
function matchAt(pattern: RegExp, text: string, start: number): number {
  pattern.lastIndex = start;
  return pattern.test(text) ? pattern.lastIndex : start;
}
