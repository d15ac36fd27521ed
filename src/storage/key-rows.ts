/**
 * The idempotency keys of a group of writes. Each row is read once and written once, however many
 * of the writes use it. Lines that were sent together share rows, because a row for every line took
 * longer than the plants.
 */
import type { PlantId } from "../domain/plant.ts";
import type { CreateWrite, Idempotency, Outcome } from "../domain/storage.ts";

/** A row as an engine stores it. */
export interface KeyRow {
  readonly garden: string;
  /** SHA-256 of the key; of a row of lines half of it, and the number of the row. */
  readonly keyHash: Buffer;
  /** SHA-256 of the request; empty in a row of lines. */
  readonly requestHash: Buffer;
  /** 0 in a row of lines. */
  readonly plantId: PlantId;
  /** 24 bytes for each line: half of the request's SHA-256 and the plant's id; zeros if none. */
  readonly lines: Buffer | null;
  readonly expiresAtMs: number;
}

export type KeyedCreate = CreateWrite & { readonly idempotency: Idempotency };

const linesPerRow = 256;
const lineHashBytes = 16;
const lineBytes = lineHashBytes + 8;

/** What is remembered of one request. */
interface Entry {
  readonly requestHash: Buffer;
  readonly plantId: PlantId;
}

interface Row {
  readonly garden: string;
  readonly keyHash: Buffer;
  readonly isOfLines: boolean;
  /** One, or one for each line. */
  readonly entries: (Entry | undefined)[];
  expiresAtMs: number;
  isStored: boolean;
  isChanged: boolean;
}

export class KeyRows {
  readonly #load: (garden: string, keyHash: Buffer) => KeyRow | undefined;
  readonly #rows = new Map<string, Row>();

  constructor(load: (garden: string, keyHash: Buffer) => KeyRow | undefined) {
    this.#load = load;
  }

  /** What an earlier request with the same key leads to; absent if there was none. */
  recall(write: KeyedCreate): Outcome | undefined {
    const entry = this.#rowOf(write).entries[placeOf(write.idempotency)];
    if (!entry) return undefined;
    const { requestHash, plantId } = entry;
    if (!hashRequest(write).subarray(0, requestHash.length).equals(requestHash)) {
      return { kind: "mismatch" };
    }
    return { kind: "created", id: plantId, replayed: true };
  }

  /** Whether remembering the write takes a row more than the garden has. */
  needsRow(write: KeyedCreate): boolean {
    return !this.#rowOf(write).isStored;
  }

  remember(write: KeyedCreate, plantId: PlantId): void {
    const row = this.#rowOf(write);
    const requestHash = hashRequest(write).subarray(0, row.isOfLines ? lineHashBytes : undefined);
    row.entries[placeOf(write.idempotency)] = { requestHash, plantId };
    row.expiresAtMs = write.idempotency.expiresAtMs;
    row.isStored = true;
    row.isChanged = true;
  }

  /** The rows to store. */
  changed(): KeyRow[] {
    return [...this.#rows.values()].filter(({ isChanged }) => isChanged).map(pack);
  }

  #rowOf({ garden, idempotency }: KeyedCreate): Row {
    const { key, line } = idempotency;
    const name = `${garden}\0${key}\0${line === undefined ? "" : Math.floor(line / linesPerRow)}`;
    let row = this.#rows.get(name);
    if (!row) {
      row = this.#open(garden, idempotency);
      this.#rows.set(name, row);
    }
    return row;
  }

  #open(garden: string, idempotency: Idempotency): Row {
    const keyHash = keyHashOf(idempotency);
    const stored = this.#load(garden, keyHash);
    const isValid = stored !== undefined && stored.expiresAtMs > idempotency.nowMs;
    return {
      garden,
      keyHash,
      isOfLines: idempotency.line !== undefined,
      entries: isValid ? unpack(stored) : [],
      expiresAtMs: stored?.expiresAtMs ?? 0,
      isStored: stored !== undefined,
      isChanged: false,
    };
  }
}

/** The key of the row that a write uses. */
export function keyHashOf({ key, line }: Idempotency): Buffer {
  if (line === undefined) return sha256(key);
  // Rows of a batch are next to each other.
  const hash = Buffer.alloc(lineHashBytes + 4, sha256(`${key}\n`).subarray(0, lineHashBytes));
  hash.writeUInt32BE(Math.floor(line / linesPerRow), lineHashBytes);
  return hash;
}

/** The place of a request in its row. */
function placeOf({ line = 0 }: Idempotency): number {
  return line % linesPerRow;
}

function hashRequest({ id, name, tag }: CreateWrite): Buffer {
  return sha256(JSON.stringify([id?.toString() ?? null, name, tag]));
}

export function sha256(text: string): Buffer {
  return Buffer.from(Bun.SHA256.hash(text).buffer);
}

function pack({ garden, keyHash, isOfLines, entries, expiresAtMs }: Row): KeyRow {
  const [first] = entries;
  if (!isOfLines && first) return { garden, keyHash, ...first, lines: null, expiresAtMs };
  const lines = Buffer.alloc(entries.length * lineBytes);
  for (const [place, entry] of entries.entries()) {
    if (!entry) continue;
    entry.requestHash.copy(lines, place * lineBytes);
    lines.writeBigInt64BE(entry.plantId, place * lineBytes + lineHashBytes);
  }
  return { garden, keyHash, requestHash: Buffer.alloc(0), plantId: 0n, lines, expiresAtMs };
}

const none = Buffer.alloc(lineHashBytes);

function unpack({ requestHash, plantId, lines }: KeyRow): (Entry | undefined)[] {
  if (lines === null) return [{ requestHash, plantId }];
  return Array.from({ length: lines.length / lineBytes }, (_, place) => {
    const hash = lines.subarray(place * lineBytes, place * lineBytes + lineHashBytes);
    if (hash.equals(none)) return undefined;
    const id = lines.readBigInt64BE(place * lineBytes + lineHashBytes);
    return { requestHash: hash, plantId: id };
  });
}
