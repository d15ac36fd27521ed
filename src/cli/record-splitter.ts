/**
 * Bytes of a file → its records with their line numbers, in constant memory, whatever the file
 * holds.
 */

/** A record as `scan` finds it in the text. */
export interface Scanned {
  readonly end: number;
}

export interface NumberedRecord<Record extends Scanned> {
  /** The line on which it starts, from 1. */
  readonly line: number;
  /** Absent if no record could be made out. */
  readonly record: Record | undefined;
}

/** More than any plant needs. */
const recordCharactersMax = 64 * 1024;
const byteOrderMark = "\u00EF\u00BB\u00BF";

/**
 * `scan` gives the record that starts there, or nothing if the text ends before it does. The text
 * has one character a byte: what stands in it is decoded later, field by field, so that one line
 * that is not UTF-8 does not spoil the others.
 */
export async function* splitRecords<Record extends Scanned>(
  chunks: AsyncIterable<Uint8Array>,
  scan: (text: string, start: number) => Record | undefined,
): AsyncGenerator<NumberedRecord<Record>> {
  let text = "";
  let line = 1;
  let isSkipping = false;

  function* takeRecords(isLast: boolean): Generator<NumberedRecord<Record>> {
    let at = 0;
    while (at < text.length) {
      const start = line === 1 && text.startsWith(byteOrderMark) ? byteOrderMark.length : at;
      const found = isSkipping ? undefined : scan(text, start);
      const record = found && found.end - start <= recordCharactersMax ? found : undefined;
      if (!record && !isSkipping && !isLast && text.length - at <= recordCharactersMax) break;
      // A record that does not end is given up at the end of its first line.
      const end = record?.end ?? (text.indexOf("\n", at) + 1 || text.length);
      if (!isSkipping) yield { line, record };
      line += countLines(text, at, end);
      isSkipping = !record && text[end - 1] !== "\n";
      at = end;
    }
    text = text.slice(at);
  }

  for await (const chunk of chunks) {
    text += Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString("latin1");
    yield* takeRecords(false);
  }
  if (text !== "" && !text.endsWith("\n")) text += "\n";
  yield* takeRecords(true);
}

function countLines(text: string, start: number, end: number): number {
  let count = 0;
  for (let at = text.indexOf("\n", start); at !== -1 && at < end; at = text.indexOf("\n", at + 1)) {
    count++;
  }
  return count;
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Fails with a `TypeError` if the bytes, one a character, are not UTF-8. */
export function decodeBytes(text: string): string {
  return /^[\0-\x7f]*$/.test(text) ? text : decoder.decode(Buffer.from(text, "latin1"));
}
