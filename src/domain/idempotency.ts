/**
 * What is remembered of a create with an idempotency key, for how long, and in which row: a hash of
 * the request, and the id of its plant. The key of a row starts with the first characters of the
 * client's key, so that time-ordered keys (UUIDv7) are stored next to each other, and ends with a
 * hash of it. Plants of one bulk share rows: a row for each took longer to store than the plants.
 *
 * Bytes are kept as text of one character each (`latin1`) where they are compared or sent to a
 * thread; `toBytes` makes what an engine stores.
 */
import { hashedContent, type PlantDraft, type PlantId, sha256 } from "./plant.ts";
import type { KeyUse, Outcome } from "./ports.ts";

const headCharacters = 14;
const hashBytes = 16;
const idBytes = 8;
/**
 * An entry is the hash of a request, then the id of the plant that it created. It's all zeros if
 * that plant of the bulk wasn't created.
 */
const entryBytes = hashBytes + idBytes;
export const plantsPerRow = 128;

const keyLifetimeMs = 24 * 60 * 60 * 1000;

/** A row as an engine stores it. */
export interface StoredKey {
  readonly entries: Uint8Array;
  readonly expiresAtMs: number;
}

/** The plant's `index` is its place in its bulk, from 0; absent if it was sent alone. */
export function toKeyUse(
  key: string,
  index: number | undefined,
  draft: PlantDraft,
  nowMs: number,
): KeyUse {
  const requestHash = hash(JSON.stringify([draft.id?.toString() ?? null, ...hashedContent(draft)]));
  const isInBulk = index !== undefined;
  const rest = isInBulk
    ? hashOfBulk(key) + numberBytes(Math.floor(index / plantsPerRow))
    : hash(key);
  const rowKey = key.slice(0, headCharacters) + rest;
  const entry = isInBulk ? index % plantsPerRow : 0;
  const expiresAtMs = nowMs + keyLifetimeMs;
  return { rowKey, entry, isInBulk, requestHash, nowMs, expiresAtMs };
}

export function toBytes(text: string): Buffer {
  return Buffer.from(text, "latin1");
}

/** A row of keys, while a group of writes uses it. The group reads it once and stores it once. */
export class KeyRow {
  readonly rowKey: string;
  /**
   * Has room for a whole row as soon as it grows: allocating for each entry takes longer than
   * writing it.
   */
  #bytes: Buffer;
  #length: number;
  expiresAtMs: number;
  /** Whether the row is stored, or will be with this group. */
  isStored: boolean;
  isChanged = false;

  constructor(rowKey: string, stored: StoredKey | undefined, nowMs: number) {
    const valid = stored !== undefined && stored.expiresAtMs > nowMs ? stored : undefined;
    this.rowKey = rowKey;
    this.#bytes = Buffer.from(valid?.entries ?? []);
    this.#length = this.#bytes.length;
    this.expiresAtMs = valid?.expiresAtMs ?? 0;
    this.isStored = stored !== undefined;
  }

  /** One entry for a single plant; for a bulk, one for each plant up to the last. */
  get entries(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  /** The outcome if the key was used before; otherwise undefined. */
  recall({ entry, requestHash }: KeyUse): Outcome | undefined {
    const at = entry * entryBytes;
    if (at >= this.#length) return undefined;
    const earlier = this.#bytes.toString("latin1", at, at + hashBytes);
    if (earlier === noHash) return undefined;
    if (earlier !== requestHash) return { kind: "mismatch" };
    const id = this.#bytes.readBigInt64BE(at + hashBytes);
    return { kind: "created", id, replayed: true };
  }

  remember({ entry, requestHash, expiresAtMs }: KeyUse, plantId: PlantId): void {
    const at = entry * entryBytes;
    const end = at + entryBytes;
    if (end > this.#bytes.length) {
      const longer = Buffer.alloc(entry === 0 ? end : plantsPerRow * entryBytes);
      this.#bytes.copy(longer);
      this.#bytes = longer;
    }
    this.#length = Math.max(this.#length, end);
    this.#bytes.write(requestHash, at, "latin1");
    this.#bytes.writeBigInt64BE(plantId, at + hashBytes);
    this.expiresAtMs = expiresAtMs;
    this.isStored = true;
    this.isChanged = true;
  }
}

const noHash = "\0".repeat(hashBytes);

function hash(text: string): string {
  return sha256(text, "binary").slice(0, hashBytes);
}

let latestKey = "";
let latestHash = "";

/** Differs from the hash for a single plant. Cached, because all plants of a bulk share a key. */
function hashOfBulk(key: string): string {
  if (key !== latestKey) {
    latestKey = key;
    latestHash = hash(`${key}\n`);
  }
  return latestHash;
}

/** Big-endian, so that a bulk's rows are stored next to each other. */
function numberBytes(number: number): string {
  return String.fromCharCode(
    number >>> 24,
    (number >>> 16) & 255,
    (number >>> 8) & 255,
    number & 255,
  );
}
