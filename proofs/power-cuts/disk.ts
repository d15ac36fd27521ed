/**
 * What may be on a disk when the power is cut. It follows the file operations of processes and
 * assumes no more than POSIX promises: data count once a sync of their file has returned, and names
 * once a sync of their folder has. Data that a failed sync should have written are lost, because
 * kernels take them for written.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Call } from "../interposed-io/interposed-io.ts";

export type Dice = (sides: number) => number;

/** The files below a folder, by their path from there. */
export type Image = ReadonlyMap<string, Uint8Array>;

export function readImage(folder: string): Image {
  const paths = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  return new Map(paths.map((path) => [path.slice(folder.length), readFileSync(path)]));
}

export function writeImage(image: Image, folder: string): void {
  for (const [path, bytes] of image) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), bytes);
  }
}

/** A file or a folder, whatever its names. */
interface Node {
  readonly isFolder: boolean;
  /** What is on the disk for sure: of a file, and of a folder. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly names: Map<string, Node>;
  /** Later changes, the oldest first. */
  pending: { readonly moment: number; readonly change: Change }[];
}

/** Bytes written at an offset, or a new size of a file, or what has these names from now on. */
type Change =
  | { readonly at: number; readonly data: Uint8Array }
  | { readonly size: number }
  | { readonly names: ReadonlyMap<string, Node | undefined> };

/** Of `open`: O_TRUNC. */
const emptiesFlag = 0o1000;
/** More than any file has here. */
const fileBytesMax = 2 ** 26;
/** The smallest unit that drives write. */
const sectorBytes = 512;

export class Disk {
  readonly #top = makeNode(true);
  /** As the processes see it. */
  readonly #seen = new Map([["/", this.#top]]);
  readonly #opened = new Map<string, Node>();
  readonly #syncing = new Map<string, number>();
  #moment = 0;

  /** The image is already on the disk. */
  constructor(image: Image = new Map()) {
    for (const [path, data] of image) apply(this.#place(path, false), { at: 0, data });
  }

  /** Follows one call. */
  follow({ kind, descriptor, at, error, data }: Call): void {
    if (error !== 0 && kind !== "synced") return;
    this.#moment++;
    const node = this.#opened.get(descriptor);
    const [path = "", newPath = ""] = kind === "write" ? [] : data.toString().split("\0");
    if (kind === "open") this.#open(descriptor, path, at);
    if (kind === "write") this.#change(node, { at, data });
    if (kind === "truncate") this.#change(node, { size: at });
    if (kind === "sync") this.#syncing.set(descriptor, this.#moment);
    if (kind === "synced" && node) settle(node, this.#syncing.get(descriptor) ?? 0, error === 0);
    if (kind === "unlink") this.#rename(new Map([[path, undefined]]));
    if (kind === "make folder") this.#rename(new Map([[path, makeNode(true)]]));
    if (kind === "link") this.#rename(new Map([[newPath, this.#seen.get(path)]]));
    if (kind === "rename") {
      const renamed = this.#seen.get(path);
      this.#rename(new Map([[path, undefined] as const, [newPath, renamed] as const]));
    }
  }

  /** One of the disks that a cut at this moment may leave, at random. */
  cut(dice: Dice): Image {
    const image = new Map<string, Uint8Array>();
    const visit = (path: string, node: Node) => {
      const { isFolder, bytes, names } = afterCut(node, dice);
      if (!isFolder) image.set(path, bytes);
      for (const [name, each] of names) visit(name, each);
    };
    visit("/", this.#top);
    return image;
  }

  #place(path: string, isFolder: boolean): Node {
    const node = this.#seen.get(path) ?? makeNode(isFolder);
    if (node !== this.#top) this.#place(dirname(path), true).names.set(path, node);
    this.#seen.set(path, node);
    return node;
  }

  /** A file may have been created by a call that is not recorded. */
  #open(descriptor: string, path: string, flags: number): void {
    if (!this.#seen.has(path)) this.#rename(new Map([[path, makeNode(false)]]));
    const node = this.#seen.get(path) as Node;
    this.#opened.set(descriptor, node);
    if (flags & emptiesFlag) this.#change(node, { size: 0 });
  }

  #change(node: Node | undefined, change: Change): void {
    node?.pending.push({ change, moment: this.#moment });
  }

  /** They change together or not at all. */
  #rename(names: ReadonlyMap<string, Node | undefined>): void {
    const [path = ""] = names.keys();
    this.#change(this.#seen.get(dirname(path)), { names });
    rename(this.#seen, names);
  }
}
function makeNode(isFolder: boolean): Node {
  // They can grow, and what is new is zero.
  const bytes = new Uint8Array(new ArrayBuffer(0, { maxByteLength: fileBytesMax }));
  return { isFolder, bytes, names: new Map(), pending: [] };
}

function apply({ bytes, names }: Node, change: Change): void {
  if ("names" in change) rename(names, change.names);
  else if ("size" in change) bytes.buffer.resize(change.size);
  else {
    const end = change.at + change.data.length;
    if (end > bytes.length) bytes.buffer.resize(end);
    bytes.set(change.data, change.at);
  }
}

function rename(all: Map<string, Node>, names: ReadonlyMap<string, Node | undefined>): void {
  for (const [name, node] of names) {
    if (node) all.set(name, node);
    else all.delete(name);
  }
}

/**
 * Changes from before the sync began are on the disk from now on. If it failed, data count only
 * once they are written again.
 */
function settle(node: Node, begunAt: number, hasSucceeded: boolean): void {
  const before = node.pending.filter(({ moment }) => moment < begunAt);
  node.pending = node.pending.filter(
    ({ moment, change }) => moment >= begunAt || (!hasSucceeded && "names" in change),
  );
  if (hasSucceeded) for (const { change } of before) apply(node, change);
}

type Fate = "dropped" | "kept" | "torn";

/** What becomes of each unsynced change. Each way of losing some finds other faults. */
const ways: readonly ((index: number, one: number, dice: Dice) => Fate)[] = [
  (index, one) => (index === one ? "torn" : index < one ? "kept" : "dropped"),
  (index, one) => (index === one ? "torn" : "kept"),
  (index, one) => (index === one ? "kept" : "dropped"),
  (_index, _one, dice) => (["dropped", "kept", "torn"] as const)[dice(3)] as Fate,
];

/** Names may change in any order, but each goes from one state to the next. */
function afterCut(node: Node, dice: Dice): Node {
  const left = makeNode(node.isFolder);
  apply(left, { at: 0, data: node.bytes });
  apply(left, { names: node.names });
  // Or none of them, such as with the lowest numbers: then all changes are dropped.
  const one = dice(node.pending.length + 1) - 1;
  const way = ways[dice(ways.length)] as (typeof ways)[number];
  const lost = new Set<string>();
  for (const [index, { change }] of node.pending.entries()) {
    const fate = way(index, one, dice);
    const names = "names" in change ? [...change.names.keys()] : [];
    const isKept = fate === "kept" && !names.some((name) => lost.has(name));
    if (isKept) apply(left, change);
    else for (const name of names) lost.add(name);
    if ("data" in change && fate === "torn") tear(left, change, dice);
  }
  return left;
}

/** Each sector is as it was, new, zero or garbage. */
function tear(file: Node, { at, data }: { at: number; data: Uint8Array }, dice: Dice): void {
  for (let from = 0; from < data.length; from += sectorBytes) {
    const sector = data.subarray(from, from + sectorBytes);
    const outcomes = [sector, sector.map(() => 0), sector.map(() => dice(256))];
    const left = outcomes[dice(outcomes.length + 1)];
    if (left) apply(file, { at: at + from, data: left });
  }
}
