/** What a disk, a bad cable or a careless hand may do to the files of a store, at random. */
import type { StoreFiles } from "../store-files.ts";
import { pageBytes } from "./sound-store.ts";

type Dice = (sides: number) => number;

export interface Damage {
  readonly what: string;
  readonly files: StoreFiles;
}

/**
 * Damages one of the files in one way. The other file, and the one that is handed in, stay as they
 * are.
 */
export function damage(sound: StoreFiles, dice: Dice): Damage {
  const isLog = sound.log.length > 0 && dice(2) === 0;
  const before = isLog ? sound.log : sound.database;
  const [what, spoil] = kinds[dice(kinds.length)] as (typeof kinds)[number];
  const after = spoil(new Uint8Array(before), dice);
  const files = isLog ? { ...sound, log: after } : { ...sound, database: after };
  return { what: `${isLog ? "log" : "database"}: ${what}`, files };
}

type Kind = readonly [what: string, spoil: (bytes: Uint8Array, dice: Dice) => Uint8Array];

const kinds: readonly Kind[] = [
  ["a bit", (bytes, dice) => flipBits(bytes, dice, 1, bytes.length)],
  ["some bits", (bytes, dice) => flipBits(bytes, dice, 2 + dice(50), bytes.length)],
  // Where a page says what is in it, and the file what it is.
  ["bits of a page's header", (bytes, dice) => flipPageHeader(bytes, dice)],
  ["bits of the file's header", (bytes, dice) => flipBits(bytes, dice, 1 + dice(4), 100)],
  ["a page of zeros", (bytes, dice) => fillPage(bytes, dice, () => 0)],
  ["a page of ones", (bytes, dice) => fillPage(bytes, dice, () => 255)],
  ["a page of chance", (bytes, dice) => fillPage(bytes, dice, () => dice(256))],
  ["a sector of zeros", (bytes, dice) => fillSector(bytes, dice)],
  ["a page in place of another", (bytes, dice) => copyPage(bytes, dice)],
  ["two pages changed over", (bytes, dice) => swapPages(bytes, dice)],
  ["cut short", (bytes, dice) => bytes.slice(0, dice(bytes.length))],
  ["cut short at a page", (bytes, dice) => bytes.slice(0, pageStart(bytes, dice))],
  ["empty", () => new Uint8Array()],
  ["longer", (bytes, dice) => lengthen(bytes, dice)],
];

function flipBits(bytes: Uint8Array, dice: Dice, count: number, below: number): Uint8Array {
  for (let flips = 0; flips < count; flips++) flipBit(bytes, dice, dice(below));
  return bytes;
}

function flipPageHeader(bytes: Uint8Array, dice: Dice): Uint8Array {
  const start = pageStart(bytes, dice);
  for (let flips = dice(4); flips >= 0; flips--) flipBit(bytes, dice, start + dice(40));
  return bytes;
}

function flipBit(bytes: Uint8Array, dice: Dice, at: number): void {
  bytes[at] = (bytes[at] ?? 0) ^ (1 << dice(8));
}

function fillPage(bytes: Uint8Array, dice: Dice, make: () => number): Uint8Array {
  const start = pageStart(bytes, dice);
  for (let at = start; at < start + pageBytes; at++) bytes[at] = make();
  return bytes;
}

function fillSector(bytes: Uint8Array, dice: Dice): Uint8Array {
  const start = dice(bytes.length / 512) * 512;
  return bytes.fill(0, start, start + 512);
}

function copyPage(bytes: Uint8Array, dice: Dice): Uint8Array {
  const from = pageStart(bytes, dice);
  return bytes.copyWithin(pageStart(bytes, dice), from, from + pageBytes);
}

function swapPages(bytes: Uint8Array, dice: Dice): Uint8Array {
  const [one, other] = [pageStart(bytes, dice), pageStart(bytes, dice)];
  const kept = bytes.slice(one, one + pageBytes);
  bytes.copyWithin(one, other, other + pageBytes);
  bytes.set(kept.subarray(0, bytes.length - other), other);
  return bytes;
}

function lengthen(bytes: Uint8Array, dice: Dice): Uint8Array {
  const more = Uint8Array.from({ length: dice(3 * pageBytes) }, () => dice(256));
  return Uint8Array.from([...bytes, ...more]);
}

function pageStart(bytes: Uint8Array, dice: Dice): number {
  return dice(Math.floor(bytes.length / pageBytes)) * pageBytes;
}
