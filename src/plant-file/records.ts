/** The bytes of a file → its records and where each starts, in constant memory. */

/** The file can't be read at all. */
export class PlantFileError extends Error {}

export interface Scanned {
  /** The offset after the record. */
  readonly end: number;
}

/** Lines and columns count from 1. */
interface Position {
  readonly line: number;
  readonly column: number;
}

export interface PlacedRecord<Record extends Scanned> extends Position {
  /** As it is in the file, with the end of its line. */
  readonly source: string;
  /** Absent if the record is too long or never ends. Nothing follows it. */
  readonly record: Record | undefined;
}

/** More than any plant needs. */
const recordLengthMax = 64 * 1024;

/**
 * `scan` returns the record that starts at an offset, or nothing if the text ends before the record
 * does. Throws a `PlantFileError` if the file isn't UTF-8.
 */
export function* splitRecords<Record extends Scanned>(
  chunks: Iterable<Uint8Array>,
  scan: (text: string, start: number) => Record | undefined,
): Generator<PlacedRecord<Record>, void> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let firstBytes: readonly number[] = [];
  let text = "";
  let position: Position = { line: 1, column: 1 };

  function* takeRecords(): Generator<PlacedRecord<Record>> {
    let at = 0;
    while (at < text.length) {
      const record = scan(text, at);
      if (record === undefined || record.end - at > recordLengthMax) break;
      const source = text.slice(at, record.end);
      yield { line: position.line, column: position.column, source, record };
      position = advance(position, source);
      at = record.end;
    }
    text = text.slice(at);
  }

  for (const chunk of chunks) {
    if (firstBytes.length < 4) {
      firstBytes = [...firstBytes, ...chunk.subarray(0, 4)].slice(0, 4);
      refuseBinary(firstBytes);
      refuseUtf16(firstBytes);
    }
    text += decode(decoder, chunk);
    yield* takeRecords();
    if (text.length > recordLengthMax)
      return yield { ...position, source: text, record: undefined };
  }
  text += decode(decoder);
  // The last line may lack its end.
  if (text !== "") text += "\n";
  yield* takeRecords();
  if (text !== "") yield { ...position, source: text, record: undefined };
}

const workbook =
  "The file is an Excel workbook or another archive, not text. Save the sheet as CSV (in Excel: " +
  '"CSV UTF-8") and import that.';

/** What people mistake for a file of plants, by its first bytes. */
const binaries: readonly [bytes: readonly number[], message: string][] = [
  [[0x50, 0x4b, 0x03, 0x04], workbook],
  [[0xd0, 0xcf, 0x11, 0xe0], workbook],
  [[0x1f, 0x8b], "The file is compressed. Unpack it with gunzip, and import what is in it."],
];

function refuseBinary(firstBytes: readonly number[]): void {
  const found = binaries.find(([bytes]) => bytes.every((byte, at) => byte === firstBytes[at]));
  if (found) throw new PlantFileError(found[1]);
}

/** With its byte order mark, or without: then one byte of an ASCII character is 0. */
function refuseUtf16([first = 1, second = 1]: readonly number[]): void {
  if (first >= 0xfe || first === 0 || second === 0) {
    throw new PlantFileError(`The file is UTF-16, not UTF-8. ${saveAsUtf8}`);
  }
}

const saveAsUtf8 = 'Save it as UTF-8 (in Excel: "CSV UTF-8"), or convert it with iconv.';

/** Old Mac programs end lines in CR alone, which would make the file one line. */
export function refuseCrLines(firstLine: string): void {
  if (!/\r(?!\n)./s.test(firstLine)) return;
  throw new PlantFileError(
    "The lines of this file end in CR alone. Save it with line ends of Unix (LF) or Windows (CRLF).",
  );
}

function decode(decoder: TextDecoder, chunk?: Uint8Array): string {
  try {
    return decoder.decode(chunk, { stream: chunk !== undefined });
  } catch {
    throw new PlantFileError(`The file is not UTF-8. ${saveAsUtf8}`);
  }
}

/** The position after the text. */
function advance({ line, column }: Position, text: string): Position {
  let breaks = 0;
  let lineStart = 0;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", lineStart)) {
    breaks++;
    lineStart = at + 1;
  }
  return { line: line + breaks, column: (breaks > 0 ? 1 : column) + text.length - lineStart };
}

/** Of JSON Lines: a line. Of an array: white space, a bracket, a comma or an element. */
export interface JsonRecord extends Scanned {
  readonly isInArray: boolean;
  readonly text: string;
}

/** A file whose first character is `[` is one array; any other has a record per line. */
export function createJsonScanner(): (text: string, start: number) => JsonRecord | undefined {
  let isInArray: boolean | undefined;
  return (text, start) => {
    const [, first] = /^\s*(\S)/.exec(isInArray === undefined ? text.slice(start) : "") ?? [];
    if (first !== undefined) isInArray = first === "[";
    const end = isInArray ? findTokenEnd(text, start) : text.indexOf("\n", start) + 1;
    if (end === 0) return undefined;
    return { isInArray: isInArray === true, text: text.slice(start, end), end };
  };
}

/** 0 if the text ends first. */
function findTokenEnd(text: string, start: number): number {
  const punctuation = /\s+|[[\],]/y;
  punctuation.lastIndex = start;
  if (punctuation.test(text)) return punctuation.lastIndex;
  let depth = 0;
  const part = /"(?:[^"\\]|\\[\s\S])*"|["{}[\],\n]/g;
  part.lastIndex = start;
  for (let found = part.exec(text); found !== null; found = part.exec(text)) {
    const [character] = found;
    // A string that doesn't end here.
    if (character === '"') return 0;
    if (character === "{" || character === "[") depth++;
    else if (character === "}" || character === "]") depth--;
    if (depth < 0 || (depth === 0 && /[,\n]/.test(character))) return found.index;
    if (depth === 0 && character === "}") return part.lastIndex;
  }
  return 0;
}
