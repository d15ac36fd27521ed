/**
 * Idempotency keys as rows. The key of a row starts with the first characters of the client's key,
 * so that time-ordered keys (UUIDv7) are stored next to each other, and ends with a hash of it.
 * Plants of one bulk share rows, because a row for each took longer to store than the plants.
 *
 * Bytes are kept as text of one character each (`latin1`) where they are compared or sent to a
 * thread; `toBytes` makes what an engine stores.
 */
import type { PlantId } from "../domain/plant.ts";
import type { CreateWrite, Idempotency, Outcome } from "../domain/storage.ts";

const headCharacters = 14;
const hashBytes = 16;
const idBytes = 8;
/** For each request of a row: its hash, then the plant's id. Zeros if there is none. */
export const entryBytes = hashBytes + idBytes;
export const plantsPerRow = 128;

/** Where a key is remembered. */
interface KeyPlace {
  readonly row: string;
  /** How many characters of the row are the head of the client's key. */
  readonly headLength: number;
  readonly entry: number;
}

/** How a create uses its key. */
export interface KeyUse extends KeyPlace {
  readonly isOfBulk: boolean;
  readonly request: string;
  readonly nowMs: number;
  readonly expiresAtMs: number;
}

/** A row as an engine stores it. */
export interface StoredKey {
  readonly entries: Uint8Array;
  readonly expiresAtMs: number;
}

/** Hashes, so it is called on the thread of the request. */
export function toKeyUse(write: CreateWrite): KeyUse | undefined {
  const { idempotency } = write;
  if (idempotency === undefined) return undefined;
  const { index, nowMs, expiresAtMs } = idempotency;
  // The same as in 0.5, so that a retry after the upgrade is recognized.
  const request = hash(JSON.stringify([write.id?.toString() ?? null, write.name, write.tag]));
  const place = placeOfKey(idempotency);
  return { ...place, isOfBulk: index !== undefined, request, nowMs, expiresAtMs };
}

export function placeOfKey({ key, index }: Pick<Idempotency, "key" | "index">): KeyPlace {
  const head = key.slice(0, headCharacters);
  if (index === undefined) return { row: head + hash(key), headLength: head.length, entry: 0 };
  const row = head + hashOfBulk(key) + numberBytes(Math.floor(index / plantsPerRow));
  return { row, headLength: head.length, entry: index % plantsPerRow };
}

/** The row that 0.5 would have stored: it knew no head. */
export function olderRow({ row, headLength }: KeyUse): string {
  return `\0${row.slice(headLength)}`;
}

export function toBytes(text: string): Buffer {
  return Buffer.from(text, "latin1");
}

/** A row while a group of writes uses it: it is read once and stored once. */
export class KeyRow {
  readonly key: string;
  /** One entry for a single plant; for a bulk, one for each plant up to the last. */
  entries: Buffer;
  expiresAtMs: number;
  /** Whether it is there, or will be. */
  isStored: boolean;
  isChanged = false;

  constructor(
    key: string,
    stored: StoredKey | undefined,
    older: StoredKey | undefined,
    nowMs: number,
  ) {
    const valid = [stored, older].find((row) => row !== undefined && row.expiresAtMs > nowMs);
    this.key = key;
    this.entries = Buffer.from(valid?.entries ?? []);
    this.expiresAtMs = valid?.expiresAtMs ?? 0;
    this.isStored = stored !== undefined;
  }

  /** What an earlier request with the same key leads to; absent if there was none. */
  recall({ entry, request }: KeyUse): Outcome | undefined {
    const at = entry * entryBytes;
    if (at >= this.entries.length) return undefined;
    const earlier = this.entries.toString("latin1", at, at + hashBytes);
    if (earlier === noHash) return undefined;
    if (earlier !== request) return { kind: "mismatch" };
    const id = this.entries.readBigInt64BE(at + hashBytes);
    return { kind: "created", id, replayed: true };
  }

  remember({ entry, request, expiresAtMs }: KeyUse, plantId: PlantId): void {
    const at = entry * entryBytes;
    if (at >= this.entries.length) {
      const longer = Buffer.alloc(at + entryBytes);
      this.entries.copy(longer);
      this.entries = longer;
    }
    this.entries.write(request, at, "latin1");
    this.entries.writeBigInt64BE(plantId, at + hashBytes);
    this.expiresAtMs = expiresAtMs;
    this.isStored = true;
    this.isChanged = true;
  }
}

const noHash = "\0".repeat(hashBytes);
/** To allocate a buffer takes longer than to hash. */
const scratch = Buffer.alloc(32);

function hash(text: string): string {
  Bun.SHA256.hash(text, scratch);
  return scratch.toString("latin1", 0, hashBytes);
}

let latestKey = "";
let latestHash = "";

/** All plants of a bulk have the same key. This isn't its hash for a single plant. */
function hashOfBulk(key: string): string {
  if (key !== latestKey) {
    latestKey = key;
    latestHash = hash(`${key}\n`);
  }
  return latestHash;
}

/** The rows of a bulk are next to each other. */
function numberBytes(number: number): string {
  scratch.writeUInt32BE(number, 0);
  return scratch.toString("latin1", 0, 4);
}
