/** Reads the file operations that interposer.c has recorded, in their order. */

/** In the order of `enum kind` in interposer.c; the last one is for notes of the test. */
export const kinds = [
  "open",
  "close",
  "read",
  "write",
  "truncate",
  "sync",
  "synced",
  "unlink",
  "rename",
  "make folder",
  "map",
  "note",
] as const;
export type Kind = (typeof kinds)[number];

export interface Call {
  readonly kind: Kind;
  /** Of which process. */
  readonly process: number;
  /** The descriptor; -1 where there is none. */
  readonly file: number;
  /** The flags of `open`, the offset of `write` and `map`, the size of `truncate`. */
  readonly at: number;
  /** What the call returned. */
  readonly result: number;
  /** Its errno; 0 if it succeeded. */
  readonly error: number;
  /** The bytes written, or the path; for `rename`, both paths with a zero byte between them. */
  readonly data: Uint8Array;
}

const headBytes = 48;

/** The last record may be incomplete, and is left out then. */
export function parseCalls(bytes: Buffer): Call[] {
  const calls: Call[] = [];
  for (let from = 0; from + headBytes <= bytes.length; ) {
    const end = from + bytes.readUInt32LE(from);
    if (end > bytes.length) break;
    const read = (index: number) => Number(bytes.readBigInt64LE(from + 8 + 8 * index));
    calls.push({
      kind: kinds[bytes.readUInt32LE(from + 4)] as Kind,
      process: read(0),
      file: read(1),
      at: read(2),
      result: read(3),
      error: read(4),
      data: bytes.subarray(from + headBytes, end),
    });
    from = end;
  }
  return calls;
}

export function textOf(call: Call): string {
  return Buffer.from(call.data).toString();
}

/** A call in the format of the log. */
export function packCall(call: Partial<Call> & Pick<Call, "kind">): Uint8Array {
  const { kind, data = new Uint8Array(), process = 0, file = 0, at = 0, result = 0 } = call;
  const head = Buffer.alloc(headBytes);
  head.writeUInt32LE(headBytes + data.length, 0);
  head.writeUInt32LE(kinds.indexOf(kind), 4);
  [process, file, at, result, call.error ?? 0].forEach((value, index) => {
    head.writeBigInt64LE(BigInt(value), 8 + 8 * index);
  });
  return Buffer.concat([head, data]);
}
