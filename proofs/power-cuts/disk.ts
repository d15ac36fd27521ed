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

/** Bytes written at an offset, or a file cut off or extended to a size. */
type Change = { readonly at: number; readonly data: Uint8Array } | { readonly size: number };
/** What has these names from now on. They change together or not at all. */
type Names = ReadonlyMap<string, Node | undefined>;
type Pending = { readonly moment: number } & ({ readonly change: Change } | { names: Names });

/** A file or a folder, whatever its names. */
interface Node {
  readonly isFolder: boolean;
  /** What is on the disk for sure: of a file, and of a folder. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly names: Map<string, Node>;
  /** Later changes, the oldest first. */
  pending: Pending[];
}

/** Of `open`: O_TRUNC. */
const emptiesFlag = 0o1000;
/** More than any file has here. */
const fileBytesMax = 2 ** 26;
/** The smallest unit that drives write; even these may be torn. */
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
    for (const [path, data] of image) apply(this.#place(path, false).bytes, { at: 0, data });
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
    if (kind === "rename") {
      const renamed = this.#seen.get(path);
      this.#rename(new Map([[path, undefined] as const, [newPath, renamed] as const]));
    }
  }

  /** One of the disks that a cut at this moment may leave, at random. */
  cut(dice: Dice): Image {
    const image = new Map<string, Uint8Array>();
    const visit = (folder: Node) => {
      for (const [path, node] of namesAfter(folder, dice)) {
        if (node.isFolder) visit(node);
        else image.set(path, contentAfter(node, dice));
      }
    };
    visit(this.#top);
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

  #rename(names: Names): void {
    const [path = ""] = names.keys();
    this.#seen.get(dirname(path))?.pending.push({ names, moment: this.#moment });
    applyNames(this.#seen, names);
  }
}

function makeNode(isFolder: boolean): Node {
  return { isFolder, bytes: makeBytes(), names: new Map(), pending: [] };
}

/** They can grow, and what is new is zero. */
function makeBytes(): Uint8Array<ArrayBuffer> {
  return new Uint8Array(new ArrayBuffer(0, { maxByteLength: fileBytesMax }));
}

function apply(bytes: Uint8Array<ArrayBuffer>, change: Change): void {
  if ("size" in change) bytes.buffer.resize(change.size);
  else {
    const end = change.at + change.data.length;
    if (end > bytes.length) bytes.buffer.resize(end);
    bytes.set(change.data, change.at);
  }
}

function applyNames(all: Map<string, Node>, names: Names): void {
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
    (each) => each.moment >= begunAt || (!hasSucceeded && "names" in each),
  );
  if (!hasSucceeded) return;
  for (const each of before) {
    if ("names" in each) applyNames(node.names, each.names);
    else apply(node.bytes, each.change);
  }
}

/** Names may change in any order, but each goes from one state to the next. */
function namesAfter(folder: Node, dice: Dice): Map<string, Node> {
  const names = new Map(folder.names);
  const left = new Set<string>();
  const keptOfThree = dice(4);
  for (const each of folder.pending) {
    if (!("names" in each)) continue;
    const isHeld = each.names.keys().some((name) => left.has(name));
    const isKept = dice(3) < keptOfThree;
    if (isKept && !isHeld) applyNames(names, each.names);
    else for (const name of each.names.keys()) left.add(name);
  }
  return names;
}

type Fate = "dropped" | "kept" | "torn";

/** What becomes of each unsynced change. Each way of losing some finds other faults. */
const ways: readonly ((index: number, one: number, dice: Dice) => Fate)[] = [
  () => "dropped",
  () => "kept",
  (index, one) => (index === one ? "torn" : index < one ? "kept" : "dropped"),
  (index, one) => (index === one ? "torn" : "kept"),
  (index, one) => (index === one ? "kept" : "dropped"),
  (_index, _one, dice) => (["dropped", "kept", "torn"] as const)[dice(3)] as Fate,
];

function contentAfter(file: Node, dice: Dice): Uint8Array {
  const bytes = makeBytes();
  apply(bytes, { at: 0, data: file.bytes });
  const changes = file.pending.flatMap((each) => ("change" in each ? [each.change] : []));
  const one = dice(changes.length);
  const way = ways[dice(ways.length)] as (typeof ways)[number];
  changes.forEach((change, index) => {
    const fate = way(index, one, dice);
    if (fate === "kept") apply(bytes, change);
    if (fate === "torn") tear(bytes, change, dice);
  });
  return bytes;
}

/** A size arrives or not. Of data nothing arrives, or the beginning, or any of the sectors. */
function tear(bytes: Uint8Array<ArrayBuffer>, change: Change, dice: Dice): void {
  const way = dice(4);
  if (way === 0) return;
  if ("size" in change) {
    apply(bytes, change);
    return;
  }
  const { at, data } = change;
  if (way === 1) {
    apply(bytes, { at, data: data.subarray(0, dice(data.length)) });
    return;
  }
  // The size may arrive without the data. Each sector is as it was, new, or garbage.
  apply(bytes, { size: Math.max(bytes.length, at + data.length) });
  const outcomes = 2 + dice(2);
  for (let from = 0; from < data.length; ) {
    const to = from + sectorBytes - ((at + from) % sectorBytes);
    const sector = data.subarray(from, to);
    const outcome = dice(outcomes);
    if (outcome === 1) bytes.set(sector, at + from);
    if (outcome === 2)
      bytes.set(
        sector.map(() => dice(256)),
        at + from,
      );
    from = to;
  }
}
