/** What a power cut has left of a disk, laid out on a real one, and of what was promised. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { InterposedIo } from "../interposed-io/interposed-io.ts";
import type { Note } from "./account.ts";

/** By path from the root: a folder before what is in it, and the bytes of files. */
export type Image = ReadonlyMap<string, Uint8Array | "folder">;

export interface Leftover {
  readonly image: Image;
  /** All that was sent and answered before. */
  readonly notes: readonly Note[];
}

export function lay(image: Image, root: string): void {
  for (const [path, content] of image) {
    if (content === "folder") mkdirSync(join(root, path), { recursive: true });
    else writeFileSync(join(root, path), content);
  }
}

/** Begins a recording with it, as if it had been written and synced there. */
export function pretend({ image, notes }: Leftover, root: string, io: InterposedIo): void {
  const toData = (path: string) => Buffer.from(join(root, path));
  const sync = (path: string) => {
    for (const kind of ["open", "sync", "synced"] as const)
      io.pretend({ kind, data: toData(path) });
  };
  for (const note of notes) io.note(JSON.stringify(note));
  for (const [path, content] of image) {
    if (content === "folder") io.pretend({ kind: "make folder", data: toData(path) });
    else {
      io.pretend({ kind: "open", data: toData(path) });
      io.pretend({ kind: "write", data: content });
      sync(path);
    }
    sync(dirname(path));
  }
}
