/**
 * The idempotency keys of a group of writes. Each row is read once and written once, however many
 * of the writes use it. Lines that were sent together share rows, because a row for every line took
 * longer than the plants.
 */
import type { PlantId } from "../domain/plant.ts";
import type { CreateWrite, Idempotency, Outcome, Write } from "../domain/storage.ts";

/** A row as an engine stores it. */
export interface KeyRow {
  readonly garden: string;
  /** SHA-256 of the key. For lines: its first 16 bytes, then the number of the row. */
  readonly keyHash: Buffer;
  /** SHA-256 of the request; for lines empty. */
  readonly requestHash: Buffer;
  /** For lines 0. */
  readonly plantId: PlantId;
  /** 24 bytes for each line: half of the request's SHA-256, then the plant's id; zeros if none. */
  readonly lines: Buffer | null;
  readonly expiresAtMs: number;
}

type KeyedCreate = CreateWrite & { readonly idempotency: Idempotency };

export function isKeyed(write: Write): write is KeyedCreate {
  return write.kind === "create" && write.idempotency !== undefined;
}

const hashBytes = 32;
const lineHashBytes = hashBytes / 2;
const idBytes = 8;
export const linesPerRow = 128;

/** A row in use: for each of its requests a hash of the request, and the plant's id. */
interface Row {
  readonly garden: string;
  readonly key: string;
  /** The number of a row of lines. */
  readonly number: number | undefined;
  readonly keyHash: Buffer;
  readonly hashBytes: number;
  readonly entries: Buffer;
  expiresAtMs: number;
  isStored: boolean;
  isChanged: boolean;
}

export class KeyRows {
  readonly #load: (garden: string, keyHash: Buffer) => KeyRow | undefined;
  readonly #rows = new Map<string, Row>();
  #latest: Row | undefined;

  constructor(load: (garden: string, keyHash: Buffer) => KeyRow | undefined) {
    this.#load = load;
  }

  /** What an earlier request with the same key leads to; absent if there was none. */
  recall(write: KeyedCreate): Outcome | undefined {
    const { entries, hashBytes } = this.#rowOf(write);
    const at = indexInRow(write.idempotency) * (hashBytes + idBytes);
    const earlier = entries.subarray(at, at + hashBytes);
    if (earlier.equals(noHash.subarray(0, hashBytes))) return undefined;
    if (!hashRequest(write).subarray(0, hashBytes).equals(earlier)) return { kind: "mismatch" };
    return { kind: "created", id: entries.readBigInt64BE(at + hashBytes), replayed: true };
  }

  /** Whether remembering the write takes one more row of the garden. */
  needsRow(write: KeyedCreate): boolean {
    return !this.#rowOf(write).isStored;
  }

  remember(write: KeyedCreate, plantId: PlantId): void {
    const row = this.#rowOf(write);
    const at = indexInRow(write.idempotency) * (row.hashBytes + idBytes);
    hashRequest(write).copy(row.entries, at, 0, row.hashBytes);
    row.entries.writeBigInt64BE(plantId, at + row.hashBytes);
    row.expiresAtMs = write.idempotency.expiresAtMs;
    row.isStored = true;
    row.isChanged = true;
  }

  /** The rows to store. */
  changed(): KeyRow[] {
    return [...this.#rows.values()].filter(({ isChanged }) => isChanged).map(toStored);
  }

  #rowOf({ garden, idempotency }: KeyedCreate): Row {
    const { key, line } = idempotency;
    const number = line === undefined ? undefined : Math.floor(line / linesPerRow);
    const latest = this.#latest;
    if (latest?.number === number && latest?.key === key && latest.garden === garden) return latest;
    const name = `${garden}\0${key}\0${number}`;
    const row = this.#rows.get(name) ?? this.#open(garden, number, idempotency);
    this.#rows.set(name, row);
    this.#latest = row;
    return row;
  }

  #open(garden: string, number: number | undefined, idempotency: Idempotency): Row {
    const keyHash = keyHashOf(idempotency);
    const stored = this.#load(garden, keyHash);
    const isLineRow = number !== undefined;
    const row: Row = {
      garden,
      key: idempotency.key,
      number,
      keyHash,
      hashBytes: isLineRow ? lineHashBytes : hashBytes,
      entries: Buffer.alloc(
        isLineRow ? linesPerRow * (lineHashBytes + idBytes) : hashBytes + idBytes,
      ),
      expiresAtMs: stored?.expiresAtMs ?? 0,
      isStored: stored !== undefined,
      isChanged: false,
    };
    if (stored && stored.expiresAtMs > idempotency.nowMs) {
      (stored.lines ?? stored.requestHash).copy(row.entries);
      if (!isLineRow) row.entries.writeBigInt64BE(stored.plantId, hashBytes);
    }
    return row;
  }
}

function toStored({ garden, keyHash, hashBytes, entries, expiresAtMs }: Row): KeyRow {
  if (hashBytes === lineHashBytes) {
    const requestHash = Buffer.alloc(0);
    return { garden, keyHash, requestHash, plantId: 0n, lines: entries, expiresAtMs };
  }
  const requestHash = entries.subarray(0, hashBytes);
  const plantId = entries.readBigInt64BE(hashBytes);
  return { garden, keyHash, requestHash, plantId, lines: null, expiresAtMs };
}

/** The key of the row that a write uses. */
export function keyHashOf({ key, line }: Pick<Idempotency, "key" | "line">): Buffer {
  if (line === undefined) return sha256(key);
  // The rows of a batch are next to each other.
  const hash = Buffer.alloc(lineHashBytes + 4);
  sha256(`${key}\n`).copy(hash, 0, 0, lineHashBytes);
  hash.writeUInt32BE(Math.floor(line / linesPerRow), lineHashBytes);
  return hash;
}

/** The place of a request in its row. */
function indexInRow({ line = 0 }: Idempotency): number {
  return line % linesPerRow;
}

export function sha256(text: string): Buffer {
  return Buffer.from(Bun.SHA256.hash(text).buffer);
}

const noHash = Buffer.alloc(hashBytes);
const scratch = Buffer.alloc(hashBytes);

/** Good until the next call: to allocate a buffer takes longer than to hash. */
function hashRequest({ id, name, tag }: CreateWrite): Buffer {
  Bun.SHA256.hash(JSON.stringify([id?.toString() ?? null, name, tag]), scratch);
  return scratch;
}
