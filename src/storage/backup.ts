/**
 * Backups: everything in a store, of any engine, as one gzipped SQLite file, and back. The header
 * of the gzip file says when it was made, and its checksums reveal any change.
 */
import {
  appendFileSync,
  closeSync,
  createReadStream,
  createWriteStream,
  openSync,
  rmSync,
  statfsSync,
  statSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { constants, crc32, createGunzip, createGzip, gunzipSync } from "node:zlib";
import { PlantStoreError } from "../domain/errors.ts";
import { makeTemporaryFolder, removeLeftover, replaceDurably } from "./durable-file.ts";
import { mapFileError, toFileError } from "./failures.ts";
import { engineOf, inspectFile, isFile, maskAddress } from "./open.ts";
import { databaseBytes, isStore, readBytes } from "./sqlite-header.ts";
import type { Contents, TransferOptions } from "./storage.ts";

interface BackupSummary extends Contents {
  /** The backup has every write that was acknowledged before this time. */
  readonly madeAt: string;
}

export interface BackupWork extends TransferOptions {
  /** Called with what it does next, in words such as "Compressing". */
  readonly onPhase: (phase: string) => void;
}

type WriteBytes = (bytes: Uint8Array) => void | Promise<void>;

/** The name `target` appears only once the file is complete and durable. */
export async function writeBackup(
  address: string,
  target: string,
  work: BackupWork,
): Promise<BackupSummary> {
  const snapshot = `${target}.${crypto.randomUUID()}.partial.db`;
  try {
    return await replaceDurably(target, (descriptor) =>
      backUp(address, snapshot, (bytes) => appendFileSync(descriptor, bytes), work),
    );
  } catch (error) {
    throw mapWriteError(target, error);
  }
}

/** Calls `write` with the file, piece by piece. */
export async function streamBackup(
  address: string,
  write: WriteBytes,
  work: BackupWork,
): Promise<BackupSummary> {
  // In a container, the folder of the database may be the only one that can be written.
  const folder = isFile(address) ? dirname(address) : makeTemporaryFolder();
  try {
    return await backUp(address, join(folder, `${crypto.randomUUID()}.partial.db`), write, work);
  } catch (error) {
    throw mapFileError("write", folder, error);
  } finally {
    if (!isFile(address)) rmSync(folder, { recursive: true, force: true });
  }
}

/** Copies the store to the file `snapshot`, compresses that, and removes it. */
async function backUp(
  address: string,
  snapshot: string,
  write: WriteBytes,
  work: BackupWork,
): Promise<BackupSummary> {
  const madeAtMs = Math.floor(Date.now() / 1_000) * 1_000;
  try {
    createPrivate(snapshot);
    work.onPhase("Copying");
    await engineOf(address).backup(address, snapshot, work);
    const contents = await inspectCopy(snapshot, address);
    work.onPhase("Compressing");
    await compress(snapshot, madeAtMs, write, work.signal);
    return { madeAt: new Date(madeAtMs).toISOString(), ...contents };
  } finally {
    for (const suffix of ["", "-journal"]) removeLeftover(snapshot + suffix);
  }
}

/** Checks the backup first, then what is at the address. */
export async function restoreBackup(
  path: string,
  address: string,
  work: BackupWork,
): Promise<BackupSummary & { readonly kept: string | undefined }> {
  const backup = readBackup(path);
  let contents: Contents = { plants: 0, tokens: 0 };
  const kept = await engineOf(address).restore(address, work, async (target) => {
    contents = await unpack(backup, target, work);
    work.onPhase("Restoring");
  });
  return { madeAt: backup.madeAt, ...contents, kept };
}

/** Fails with `unavailable` unless the backup could be restored. */
export async function checkBackup(path: string, work: BackupWork): Promise<BackupSummary> {
  const backup = readBackup(path);
  const folder = makeTemporaryFolder();
  try {
    return await unpack(backup, join(folder, "plants.db"), work);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Fails if a service is using the source, where its engine can tell. */
export async function copyStore(
  from: string,
  to: string,
  work: BackupWork,
): Promise<Contents & { readonly kept: string | undefined }> {
  const source = engineOf(from);
  let contents: Contents = { plants: 0, tokens: 0 };
  const kept = await engineOf(to).restore(to, work, async (path) => {
    createPrivate(path);
    work.onPhase("Reading");
    await source.backup(from, path, { ...work, mustBeIdle: true });
    contents = await inspectCopy(path, from);
    work.onPhase("Writing");
  });
  return { ...contents, kept };
}

/** Fails if it could not be restored. */
async function inspectCopy(path: string, address: string): Promise<Contents> {
  try {
    return await inspectFile(path);
  } catch (cause) {
    const { code, message } = cause as PlantStoreError;
    if (!(cause instanceof PlantStoreError)) throw cause;
    throw new PlantStoreError(code, `Cannot copy ${maskAddress(address)}: ${message}.`, { cause });
  }
}

/** Only the owner may read it: it holds everyone's plants, and the hashes of tokens. */
function createPrivate(path: string): void {
  closeSync(openSync(path, "wx", 0o600));
}

/** 2.5 times as fast as the default, for files that are a third larger. */
const compressionLevel = 1;
const headerBytes = 10;

async function compress(
  source: string,
  madeAtMs: number,
  write: WriteBytes,
  signal: AbortSignal,
): Promise<void> {
  await pipeline(
    createReadStream(source, { highWaterMark: 2 ** 18 }),
    createGzip({ level: compressionLevel }),
    async (chunks: AsyncIterable<Buffer>) => {
      let skipped = 0;
      await write(renderHeader(madeAtMs));
      for await (const chunk of chunks) {
        const skip = Math.min(chunk.length, headerBytes - skipped);
        skipped += skip;
        await write(chunk.subarray(skip));
      }
    },
    { signal },
  );
}

/** A gzip header (RFC 1952) with a time and a checksum of its own, which Node does not write. */
function renderHeader(madeAtMs: number): Buffer {
  const header = Buffer.from([0x1f, 0x8b, 8, 2, 0, 0, 0, 0, 0, 255, 0, 0]);
  header.writeUInt32LE(madeAtMs / 1_000, 4);
  header.writeUInt16LE(crc32(header.subarray(0, headerBytes)) & 0xffff, headerBytes);
  return header;
}

interface Backup {
  readonly path: string;
  readonly madeAt: string;
  /** The size of its SQLite file, according to that file's header. */
  readonly unpackedBytes: number;
}

/** Whether a file looks like a backup, whole or not. */
export function isBackup(path: string): boolean {
  try {
    readBackup(path);
    return true;
  } catch {
    return false;
  }
}

/** Looks at the start of the file only. Fails unless it looks like a backup. */
function readBackup(path: string): Backup {
  try {
    // Opening a pipe would wait for somebody to write to it.
    const stats = statSync(path);
    if (!stats.isFile() && !stats.isDirectory()) throw notBackup(path);
    const start = readBytes(path, 0, 4_096);
    if (isStore(start)) throw notBackup(path, "it is a store itself, not a backup");
    const options = { finishFlush: constants.Z_SYNC_FLUSH };
    const header = start[0] === 0x1f ? gunzipSync(start, options) : start;
    if (!isStore(header)) throw notBackup(path);
    const madeAt = new Date(start.readUInt32LE(4) * 1_000).toISOString();
    return { path, madeAt, unpackedBytes: databaseBytes(header) };
  } catch (error) {
    if (error instanceof PlantStoreError) throw error;
    // Either the system refused to read it, or the contents make no sense.
    const isOfSystem = /^E[A-Z]+$/.test((error as { code?: string }).code ?? "");
    throw isOfSystem ? toFileError("read", path, error) : notBackup(path);
  }
}

function notBackup(
  path: string,
  reason = "it is not a backup of Plant Store, or not complete",
): PlantStoreError {
  return new PlantStoreError("unavailable", `Cannot restore ${path}: ${reason}.`);
}

/** Unpacks the SQLite file, and checks the whole backup and the whole file. */
async function unpack(backup: Backup, target: string, work: BackupWork): Promise<BackupSummary> {
  const { path, madeAt, unpackedBytes } = backup;
  const { signal } = work;
  work.onPhase("Unpacking");
  try {
    requireRoom(dirname(target), unpackedBytes);
    const reading = createReadStream(path);
    const writing = createWriteStream(target, { flags: "wx", mode: 0o600 });
    await pipeline([reading, createGunzip(), boundBytes(unpackedBytes), writing], { signal });
    work.onPhase("Checking");
    return { madeAt, ...(await inspectFile(target, { mustBeWhole: true })) };
  } catch (error) {
    throw mapUnpackError(path, target, error);
  }
}

/** Fails before the disk is full: a service may be writing to it. */
function requireRoom(folder: string, bytes: number): void {
  const { bavail, bsize } = statfsSync(folder);
  if (bytes <= bavail * bsize) return;
  const size = `${(bytes / 1e9).toFixed(1)} GB`;
  throw new PlantStoreError("unavailable", `it needs ${size}, and ${folder} has no room for that`);
}

/** A megabyte of gzip can unpack to a gigabyte, so unpacking ends where the file should. */
function boundBytes(max: number) {
  return async function* (chunks: AsyncIterable<Buffer>) {
    let bytes = 0;
    for await (const chunk of chunks) {
      bytes += chunk.length;
      if (bytes > max) throw new PlantStoreError("unavailable", "it is damaged: it is too long");
      yield chunk;
    }
  };
}

function mapUnpackError(path: string, target: string, cause: unknown): unknown {
  const { code = "", syscall } = cause as { code?: string; syscall?: string };
  const isCorrupt = code.startsWith("Z_");
  if (isCorrupt || (cause instanceof PlantStoreError && cause.code === "unavailable")) {
    const reason = isCorrupt ? "it is damaged or cut short" : (cause as Error).message;
    const message = `Cannot restore ${path}: ${reason.replace(/\.$/, "")}.`;
    return new PlantStoreError("unavailable", message, { cause });
  }
  return syscall === "read"
    ? toFileError("read", path, cause)
    : mapFileError("write", target, cause);
}

function mapWriteError(target: string, cause: unknown): unknown {
  // The store is only read, so it's the backup that has no room.
  const code = (cause as { code?: string }).code ?? "";
  if (["storage-full", "ENOSPC", "EDQUOT", "EFBIG"].includes(code)) {
    const message = `Cannot write ${target}: there is no room for it.`;
    return new PlantStoreError("storage-full", message, { cause });
  }
  return mapFileError("write", target, cause);
}
