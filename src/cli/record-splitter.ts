/** The bytes of a file → its records and where each starts, in constant memory. */

export interface Position {
  /** From 1. */
  readonly line: number;
  /** From 1, in code points. */
  readonly column: number;
}

export interface Scanned {
  /** The offset after the record. */
  readonly end: number;
}

export interface PlacedRecord<Record extends Scanned> extends Position {
  /** Absent if the record is too long or never ends. */
  readonly record: Record | undefined;
}

/** More than any plant needs. */
const recordBytesMax = 64 * 1024;
const byteOrderMark = "\u00EF\u00BB\u00BF";

/**
 * `scan` returns the record that starts at an offset, or nothing if the text ends before the record
 * does. The text has one character per byte and is decoded field by field later, so that one record
 * that isn't UTF-8 doesn't spoil the others.
 */
export function* splitRecords<Record extends Scanned>(
  chunks: Iterable<Uint8Array>,
  scan: (text: string, start: number) => Record | undefined,
): Generator<PlacedRecord<Record>, void> {
  let text = "";
  let position: Position = { line: 1, column: 1 };
  let isFirst = true;
  let isSkipping = false;

  function* takeRecords(isLast: boolean): Generator<PlacedRecord<Record>> {
    let at = 0;
    while (at < text.length) {
      const start = isFirst && text.startsWith(byteOrderMark) ? byteOrderMark.length : at;
      const found = isSkipping ? undefined : scan(text, start);
      const record = found && found.end - start <= recordBytesMax ? found : undefined;
      if (!record && !isSkipping && !isLast && text.length - at <= recordBytesMax) break;
      // Skip the rest of the line of a record that doesn't end.
      const end = record?.end ?? (text.indexOf("\n", at) + 1 || text.length);
      if (!isSkipping) yield { ...position, record };
      position = advance(position, text, start, end);
      isSkipping = !record && text[end - 1] !== "\n";
      isFirst = false;
      at = end;
    }
    text = text.slice(at);
  }

  for (const chunk of chunks) {
    text += Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString("latin1");
    yield* takeRecords(false);
  }
  if (text !== "" && !text.endsWith("\n")) text += "\n";
  yield* takeRecords(true);
}

/** The position at `end`, given the one at `start`. */
export function advance(from: Position, text: string, start: number, end: number): Position {
  let { line, column } = from;
  let lineStart = start;
  for (let at = text.indexOf("\n", start); at !== -1 && at < end; at = text.indexOf("\n", at + 1)) {
    line++;
    column = 1;
    lineStart = at + 1;
  }
  for (let at = lineStart; at < end; at++) {
    // Continuation bytes of UTF-8 belong to the character before them.
    if ((text.charCodeAt(at) & 0xc0) !== 0x80) column++;
  }
  return { line, column };
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Throws a `TypeError` if the bytes, one per character, aren't UTF-8. */
export function decodeBytes(text: string): string {
  return /^[\0-\x7f]*$/.test(text) ? text : decoder.decode(Buffer.from(text, "latin1"));
}
