/**
 * A backup as a file: a SQLite database, a line of JSON that describes it, and a line with the
 * SHA-256 of everything before. So any bit of it that changes is noticed. It does not look into the
 * database.
 */
import {
  closeSync,
  constants,
  createReadStream,
  fstatSync,
  fsyncSync,
  openSync,
  readSync,
  writeSync,
} from "node:fs";
import { PlantStoreError } from "../domain/errors.ts";
import type { Contents } from "./backup.ts";
import type { Tally } from "./copy.ts";

export interface Description extends Contents {
  /** What was answered before is in it. */
  readonly madeAt: string;
  /** Of the program that made it. */
  readonly version: string;
}

const kind = "plantstore backup 1";
/** More than the two lines take. */
const endBytesMax = 1_024;
/** Without a brace inside: a plant before it may be named like the beginning of the line. */
const endPattern = /\{"kind":"plantstore backup 1",[^{}\n]*\}\n([0-9a-f]{64})\n$/;

/** Adds the two lines to a database, and resolves once all of it is on the disk. */
export async function seal(
  path: string,
  description: Description,
  signal: AbortSignal,
): Promise<void> {
  const hash = new Bun.CryptoHasher("sha256");
  for await (const bytes of createReadStream(path)) {
    hash.update(bytes);
    signal.throwIfAborted();
  }
  const line = `${JSON.stringify({ kind, ...description })}\n`;
  const descriptor = openSync(path, "a");
  try {
    const end = Buffer.from(`${line}${hash.update(line).digest("hex")}\n`);
    // Where there is no room for the rest, the next call says so.
    for (let rest = end; rest.length > 0; ) rest = rest.subarray(writeSync(descriptor, rest));
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** What a backup says of itself; absent if it is none. Whether it is whole is not looked at. */
export function readDescription(path: string): Description | undefined {
  return readEnd(path)?.description;
}

/**
 * Reads a backup to its end, hands out the bytes of its database and fails with `unavailable`, in
 * words that follow "Cannot …: ", unless every bit is as it was. The bytes are good only if it
 * resolves.
 */
export async function unseal(
  path: string,
  take: (bytes: Uint8Array) => void,
  tally: Tally,
  signal: AbortSignal,
): Promise<Description> {
  const end = readEnd(path);
  if (end === undefined) {
    throw new PlantStoreError("unavailable", "it is no backup of Plant Store, or not whole");
  }
  const { description, databaseBytes, sealedBytes } = end;
  const hash = new Bun.CryptoHasher("sha256");
  tally.plantsInAll = description.plants;
  let readBytes = 0;
  for await (const bytes of createReadStream(path, { end: sealedBytes - 1 })) {
    signal.throwIfAborted();
    hash.update(bytes);
    if (readBytes < databaseBytes) take(bytes.subarray(0, databaseBytes - readBytes));
    readBytes += bytes.length;
    tally.plants = Math.floor((description.plants * readBytes) / sealedBytes);
  }
  if (readBytes !== sealedBytes || hash.digest("hex") !== end.checksum) {
    throw new PlantStoreError("unavailable", "it is damaged: its checksum is another one");
  }
  return description;
}

interface End {
  readonly description: Description;
  readonly checksum: string;
  readonly databaseBytes: number;
  /** Those that the checksum is of. */
  readonly sealedBytes: number;
}

function readEnd(path: string): End | undefined {
  // Without waiting: a pipe would be opened only once somebody writes to it.
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = fstatSync(descriptor);
    // A folder is told by whoever reads it.
    if (!stats.isFile() && !stats.isDirectory()) return undefined;
    const { size } = stats;
    const end = Buffer.alloc(Math.min(size, endBytesMax));
    readSync(descriptor, end, 0, end.length, size - end.length);
    // Byte for byte, because what stands before is no text.
    const [lines = "", checksum = ""] = endPattern.exec(end.toString("latin1")) ?? [];
    if (lines === "") return undefined;
    const description = parse(lines.split("\n")[0]);
    if (description === undefined) return undefined;
    return {
      description,
      checksum,
      databaseBytes: size - lines.length,
      sealedBytes: size - checksum.length - 1,
    };
  } finally {
    closeSync(descriptor);
  }
}

/** Whoever made the file may have written anything there. */
function parse(line = ""): Description | undefined {
  try {
    const description: Description = JSON.parse(line);
    const { plants, tokens, madeAt } = description;
    const isCount = (number: unknown) => Number.isSafeInteger(number) && Number(number) >= 0;
    const isTime = typeof madeAt === "string" && /^[\dT:.Z-]{10,30}$/.test(madeAt);
    return isCount(plants) && isCount(tokens) && isTime ? description : undefined;
  } catch {
    return undefined;
  }
}
