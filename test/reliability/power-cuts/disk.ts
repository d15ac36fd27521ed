/**
 * What may be on a disk when the power is cut. It follows the file operations of processes and
 * assumes no more than POSIX promises: data count once a sync of their file has returned, and names
 * once a sync of their folder has. Data that a failed sync should have written are lost, because
 * kernels take them for written.
 */
import { dirname, relative } from "node:path";
import { type Call, textOf } from "../interposed-io/call-log.ts";
import type { Image } from "./image.ts";
import { type Change, Content, type Dice, makeNoise, tear } from "./tearing.ts";

/** Of `open`: O_TRUNC. */
const emptiesFlag = 0o1000;
const mappedBytesMax = 32_768;

/** A file or a folder, whatever its names. */
interface Node {
  readonly isFolder: boolean;
  /** What is on the disk for sure: of a file, and of a folder. */
  readonly content: Content;
  readonly names: Map<string, Node>;
  /** Later changes, the oldest first. */
  pending: Pending[];
  /** It changes without calls, so it may contain anything. */
  isMapped: boolean;
}

type Pending = { readonly moment: number } & (
  | { readonly kind: "data"; readonly change: Change }
  | { readonly kind: "names"; readonly changed: ReadonlyMap<string, Node | undefined> }
);

export class Disk {
  readonly #root: string;
  readonly #top = makeNode(true);
  /** As the processes see it. */
  readonly #seen = new Map<string, Node>();
  readonly #opened = new Map<string, Node>();
  readonly #syncing = new Map<string, number>();
  #moment = 0;

  /** The root is a folder that is already on the disk. */
  constructor(root: string) {
    this.#root = root;
    this.#seen.set(root, this.#top);
  }

  /** Follows one call. */
  follow(call: Call): void {
    if (call.error !== 0 && call.kind !== "synced") return;
    this.#moment++;
    const descriptor = `${call.process} ${call.file}`;
    const node = this.#opened.get(descriptor);
    switch (call.kind) {
      case "open":
        this.#open(descriptor, textOf(call), call.at);
        break;
      case "write":
        this.#change(node, { at: call.at, data: call.data });
        break;
      case "truncate":
        this.#change(node, { size: call.at });
        break;
      case "map":
        if (node) node.isMapped = true;
        break;
      case "sync":
        this.#syncing.set(descriptor, this.#moment);
        break;
      case "synced":
        if (node && call.error === 0) settle(node, this.#syncing.get(descriptor) ?? 0);
        else if (node) lose(node, this.#syncing.get(descriptor) ?? 0);
        break;
      case "unlink":
        this.#rename([[textOf(call), undefined]]);
        break;
      case "rename": {
        const [from = "", to = ""] = textOf(call).split("\0");
        this.#rename([
          [from, undefined],
          [to, this.#seen.get(from)],
        ]);
        break;
      }
      case "make folder":
        this.#rename([[textOf(call), makeNode(true)]]);
        break;
    }
  }

  /** One of the disks that a cut at this moment may leave, at random. */
  cut(dice: Dice): Image {
    const image = new Map<string, Uint8Array | "folder">();
    const visit = (folder: Node) => {
      for (const [path, node] of namesAfter(folder, dice)) {
        const content = node.isFolder ? "folder" : contentAfter(node, dice);
        image.set(relative(this.#root, path), content);
        visit(node);
      }
    };
    visit(this.#top);
    return image;
  }

  /** A file may have been created by a call that is not recorded. */
  #open(descriptor: string, path: string, flags: number): void {
    if (!this.#seen.has(path)) this.#rename([[path, makeNode(false)]]);
    const node = this.#seen.get(path) as Node;
    this.#opened.set(descriptor, node);
    if (flags & emptiesFlag) this.#change(node, { size: 0 });
  }

  #change(node: Node | undefined, change: Change): void {
    node?.pending.push({ kind: "data", change, moment: this.#moment });
  }

  /** Several names in one folder change together or not at all. */
  #rename(changes: readonly (readonly [string, Node | undefined])[]): void {
    const [path = ""] = changes[0] ?? [];
    const folder = this.#seen.get(dirname(path));
    folder?.pending.push({ kind: "names", changed: new Map(changes), moment: this.#moment });
    for (const [name, node] of changes) {
      if (node) this.#seen.set(name, node);
      else this.#seen.delete(name);
    }
  }
}

function makeNode(isFolder: boolean): Node {
  return { isFolder, content: new Content(), names: new Map(), pending: [], isMapped: false };
}

function contentAfter(file: Node, dice: Dice): Uint8Array {
  if (file.isMapped) return makeNoise(dice(mappedBytesMax), dice);
  const changes = file.pending.flatMap((each) => (each.kind === "data" ? [each.change] : []));
  return tear(file.content, changes, dice);
}

/** Changes from before the sync began are on the disk from now on. */
function settle(node: Node, begunAt: number): void {
  const settled = node.pending.filter(({ moment }) => moment < begunAt);
  node.pending = node.pending.filter(({ moment }) => moment >= begunAt);
  for (const each of settled) {
    if (each.kind === "names") applyNames(node.names, each.changed);
    else node.content.apply(each.change);
  }
}

/** Data of a failed sync count only once they are written again. */
function lose(node: Node, begunAt: number): void {
  node.pending = node.pending.filter(({ kind, moment }) => kind === "names" || moment >= begunAt);
}

function applyNames(
  names: Map<string, Node>,
  changed: ReadonlyMap<string, Node | undefined>,
): void {
  for (const [name, node] of changed) {
    if (node) names.set(name, node);
    else names.delete(name);
  }
}

/** Names may change in any order, but each goes from one state to the next. */
function namesAfter(folder: Node, dice: Dice): Map<string, Node> {
  const names = new Map(folder.names);
  const left = new Set<string>();
  const keptOfThree = dice(4);
  for (const each of folder.pending) {
    if (each.kind !== "names") continue;
    const isHeld = [...each.changed.keys()].some((name) => left.has(name));
    const isKept = dice(3) < keptOfThree;
    if (isKept && !isHeld) applyNames(names, each.changed);
    else for (const name of each.changed.keys()) left.add(name);
  }
  return names;
}
