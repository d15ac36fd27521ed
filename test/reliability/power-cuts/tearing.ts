/** What a power cut does to unsynced writes: each is dropped, kept or torn. */

export type Dice = (sides: number) => number;

/** Bytes written at an offset, or a file cut off or extended to a size. */
export type Change = { readonly at: number; readonly data: Uint8Array } | { readonly size: number };

type Fate = "dropped" | "kept" | "torn";

/** The smallest unit that drives write; even these may be torn. */
const sectorBytes = 512;
const noiseBytes = 61;

/** The content with what is left of the changes, in their order. */
export function tear(content: Content, changes: readonly Change[], dice: Dice): Uint8Array {
  const torn = content.copy();
  const fates = changes.length === 0 ? [] : chooseFates(changes.length, dice);
  changes.forEach((change, index) => {
    if (fates[index] === "kept") torn.apply(change);
    if (fates[index] === "torn") tearOne(torn, change, dice);
  });
  return torn.bytes;
}

/** Each way of losing writes finds other faults, so all of them are tried. */
function chooseFates(count: number, dice: Dice): Fate[] {
  const all = (fate: Fate): Fate[] => Array<Fate>(count).fill(fate);
  const one = dice(count);
  const apart: Fate = dice(2) === 0 ? "torn" : "dropped";
  switch (dice(6)) {
    case 0:
      return all("dropped");
    case 1:
      return all("kept");
    case 2:
      return all("kept")
        .with(one, apart)
        .fill("dropped", one + 1);
    case 3:
      return all("kept").map((fate, index) => (index === one ? apart : fate));
    case 4:
      return all("dropped").map((fate, index) => (index === one ? "kept" : fate));
    default:
      return all("kept").map(() => (["dropped", "kept", "torn"] as const)[dice(3)] as Fate);
  }
}

function tearOne(content: Content, change: Change, dice: Dice): void {
  if ("size" in change) {
    if (dice(2) === 0) content.apply(change);
    return;
  }
  const { at, data } = change;
  const end = at + data.length;
  const some = dice(data.length + 1);
  switch (dice(5)) {
    case 0:
      content.write(at, data.subarray(0, some));
      break;
    case 1:
      content.write(at + some, data.subarray(some));
      break;
    case 2:
      // The size arrived, and the data did not.
      content.grow(end);
      break;
    case 3:
      content.write(at, data);
      content.write(at + some, makeNoise(Math.min(sectorBytes, data.length - some), dice));
      break;
    default:
      for (let from = at; from < end; ) {
        const to = Math.min(end, (Math.floor(from / sectorBytes) + 1) * sectorBytes);
        if (dice(2) === 0) content.write(from, data.subarray(from - at, to - at));
        from = to;
      }
  }
}

/** A few random bytes, repeated. */
export function makeNoise(size: number, dice: Dice): Uint8Array {
  const some = Uint8Array.from({ length: noiseBytes }, () => dice(256));
  return Buffer.alloc(size, some);
}

/** The bytes of one file, with room to grow. */
export class Content {
  #room = new Uint8Array();
  #size = 0;

  get bytes(): Uint8Array {
    return this.#room.subarray(0, this.#size);
  }

  copy(): Content {
    const copy = new Content();
    copy.write(0, this.bytes);
    return copy;
  }

  apply(change: Change): void {
    if ("data" in change) this.write(change.at, change.data);
    else if (change.size > this.#size) this.grow(change.size);
    else this.#size = change.size;
  }

  write(at: number, data: Uint8Array): void {
    if (data.length === 0) return;
    this.grow(at + data.length);
    this.#room.set(data, at);
  }

  /** What is new is zero. */
  grow(size: number): void {
    if (size <= this.#size) return;
    if (size > this.#room.length) {
      const room = new Uint8Array(size * 2);
      room.set(this.bytes);
      this.#room = room;
    }
    this.#room.fill(0, this.#size, size);
    this.#size = size;
  }
}
