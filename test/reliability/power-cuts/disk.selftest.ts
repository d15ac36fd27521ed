/** A disk after a cut holds what it must, and in turn everything that it may. */
import { expect, test } from "bun:test";
import { makeDice, spread } from "../../dice.ts";
import type { Call, Kind } from "../interposed-io/call-log.ts";
import { Disk } from "./disk.ts";

const tries = 400;
const log = "/root/log";

/** One file after the other gets the descriptors 1, 2, …; the folder has 9. */
function makeCall(kind: Kind, file: number, { at = 0, text = "" } = {}): Call {
  return { kind, process: 1, file, at, result: 0, error: 0, data: Buffer.from(text) };
}

const openFolder = makeCall("open", 9, { text: "/root" });
const openLog = makeCall("open", 1, { text: log });
const sync = (file: number) => [makeCall("sync", file), makeCall("synced", file)];
const write = (text: string, at = 0) => makeCall("write", 1, { at, text });
const settled = [openFolder, openLog, write("old"), ...sync(1), ...sync(9)];

/** Everything that a file may hold after a cut; `undefined` where it is not there. */
function outcomes(calls: readonly Call[], path = "log"): Set<string | undefined> {
  const disk = new Disk("/root");
  for (const call of calls) disk.follow(call);
  return new Set(
    Array.from({ length: tries }, (_, seed) => {
      const content = disk.cut(makeDice(spread(seed))).get(path);
      return content === undefined ? undefined : Buffer.from(content as Uint8Array).toString();
    }),
  );
}

test("what was synced is there, and nothing else", () => {
  expect(outcomes(settled)).toEqual(new Set(["old"]));
});

test("what was not is there, is not, or is torn", () => {
  const found = outcomes([...settled, write("new")]);
  for (const content of ["old", "new", "nld", "olw"]) expect(found).toContain(content);
});

test("of two writes the later one may arrive alone", () => {
  const found = outcomes([...settled, write("a", 3), write("b", 4)]);
  for (const content of ["old", "olda", "oldab", "old\0b"]) expect(found).toContain(content);
});

test("a file may grow by zeros", () => {
  expect(outcomes([...settled, write("new", 3)])).toContain("old\0\0\0");
});

test("a file may be cut off, or not yet", () => {
  const found = outcomes([...settled, makeCall("truncate", 1, { at: 1 })]);
  expect(found).toEqual(new Set(["old", "o"]));
});

test("a sync covers what came before it began, once it has returned", () => {
  const begun = [...settled, write("new"), makeCall("sync", 1), write("!", 3)];
  expect(outcomes(begun)).toContain("old");
  const found = outcomes([...begun, makeCall("synced", 1)]);
  expect(found).not.toContain("old");
  for (const content of ["new", "new!"]) expect(found).toContain(content);
});

test("what a sync that failed should have written is lost, unless it is written again", () => {
  const failed = [makeCall("sync", 1), { ...makeCall("synced", 1), error: 5 }];
  const lost = [...settled, write("new"), ...failed];
  expect(outcomes(lost)).toEqual(new Set(["old"]));
  expect(outcomes([...lost, ...sync(1)])).toEqual(new Set(["old"]));
  expect(outcomes([...lost, write("new"), ...sync(1)])).toEqual(new Set(["new"]));
});

test("a new file may be missing until its folder is synced", () => {
  const made = [openFolder, openLog, write("old"), ...sync(1)];
  expect(outcomes(made)).toEqual(new Set(["old", undefined]));
});

test("a file that was removed may be back until its folder is synced", () => {
  const removed = [...settled, makeCall("unlink", -1, { text: log })];
  expect(outcomes(removed)).toEqual(new Set(["old", undefined]));
  expect(outcomes([...removed, ...sync(9)])).toEqual(new Set([undefined]));
});

test("a file that was renamed has one of its names, and never none", () => {
  const renamed = [...settled, makeCall("rename", -1, { text: `${log}\0/root/new` })];
  const disk = new Disk("/root");
  for (const call of renamed) disk.follow(call);
  const names = new Set(
    Array.from({ length: tries }, (_, seed) => [...disk.cut(makeDice(spread(seed))).keys()].join()),
  );
  expect(names).toEqual(new Set(["log", "new"]));
});

test("a folder that was made may be missing, with all that is in it, until the one above is synced", () => {
  const inside = makeCall("open", 1, { text: "/root/data/log" });
  const openInside = makeCall("open", 8, { text: "/root/data" });
  const make = makeCall("make folder", -1, { text: "/root/data" });
  const made = [openFolder, make, openInside, inside, write("old"), ...sync(1), ...sync(8)];
  expect(outcomes(made, "data/log")).toEqual(new Set(["old", undefined]));
  expect(outcomes([...made, ...sync(9)], "data/log")).toEqual(new Set(["old"]));
});

test("a file that is mapped may hold anything", () => {
  expect(outcomes([...settled, makeCall("map", 1)]).size).toBeGreaterThan(tries / 2);
});
