/** The bytes of a file → its records and where each starts, in constant memory. */
import { usageError } from "./cli-error.ts";

/** Both count from 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

export interface Scanned {
  /** The offset after the record. */
  readonly end: number;
}

export interface PlacedRecord<Record extends Scanned> extends Position {
  /** Absent if the record is too long or never ends. Nothing follows it. */
  readonly record: Record | undefined;
}

/** More than any plant needs. */
const recordLengthMax = 64 * 1024;

/**
 * `scan` returns the record that starts at an offset, or nothing if the text ends before the record
 * does. Throws a `CliError` if the file isn't UTF-8.
 */
export function* splitRecords<Record extends Scanned>(
  chunks: Iterable<Uint8Array>,
  scan: (text: string, start: number) => Record | undefined,
): Generator<PlacedRecord<Record>, void> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  let position: Position = { line: 1, column: 1 };

  function* takeRecords(): Generator<PlacedRecord<Record>> {
    let at = 0;
    while (at < text.length) {
      const record = scan(text, at);
      if (record === undefined || record.end - at > recordLengthMax) break;
      yield { ...position, record };
      position = advance(position, text.slice(at, record.end));
      at = record.end;
    }
    text = text.slice(at);
  }

  for (const chunk of chunks) {
    text += decode(decoder, chunk);
    yield* takeRecords();
    if (text.length > recordLengthMax) return yield { ...position, record: undefined };
  }
  text += decode(decoder);
  // The last line may lack its end.
  if (text !== "") text += "\n";
  yield* takeRecords();
  if (text !== "") yield { ...position, record: undefined };
}

function decode(decoder: TextDecoder, chunk?: Uint8Array): string {
  try {
    return decoder.decode(chunk, { stream: chunk !== undefined });
  } catch {
    throw usageError("The file is not UTF-8. Convert it first, such as with iconv.");
  }
}

/** The position after the text. */
export function advance({ line, column }: Position, text: string): Position {
  const lines = text.split("\n");
  const lastLength = lines.at(-1)?.length ?? 0;
  return { line: line + lines.length - 1, column: (lines.length > 1 ? 1 : column) + lastLength };
}
