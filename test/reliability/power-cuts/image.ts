/** What is left on a disk after a crash: laid out on a real one, or as the start of a recording. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { InterposedIo } from "../interposed-io/interposed-io.ts";

/** By path from the root: the bytes of files, and folders before what is in them. */
export type Image = ReadonlyMap<string, Uint8Array | "folder">;

/** A database and its WAL, without the folder that they are in. */
export function readStore(path: string): Image {
  const files = [path, `${path}-wal`].filter((file) => existsSync(file));
  return new Map(files.map((file) => [basename(file), new Uint8Array(readFileSync(file))]));
}

export function writeImage(image: Image, root: string): void {
  for (const [path, content] of image) {
    if (content === "folder") mkdirSync(join(root, path), { recursive: true });
    else writeFileSync(join(root, path), content);
  }
}

/** Writes it, and records it as if a process had written and synced it. */
export function startFrom(image: Image, root: string, io: InterposedIo): void {
  writeImage(image, root);
  const pathOf = (path: string) => Buffer.from(join(root, path));
  const sync = (path: string) => {
    for (const kind of ["open", "sync", "synced"] as const) {
      io.pretend({ kind, data: pathOf(path) });
    }
  };
  for (const [path, content] of image) {
    if (content === "folder") io.pretend({ kind: "make folder", data: pathOf(path) });
    else {
      io.pretend({ kind: "open", data: pathOf(path) });
      io.pretend({ kind: "write", data: content });
      sync(path);
    }
    sync(dirname(path));
  }
}
