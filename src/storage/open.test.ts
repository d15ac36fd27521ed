/** Which addresses are taken for the same, before either is opened. */
import { expect, test } from "bun:test";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { makeEmptyFile, makeTemporaryFolder } from "../../test/temporary-folder.ts";
import { isSameDatabase } from "./open.ts";

test("a file and a link to it are the same", () => {
  using folder = makeTemporaryFolder();
  const path = makeEmptyFile(folder.path);
  const link = join(folder.path, "link.db");
  symlinkSync(path, link);
  expect(isSameDatabase(path, link)).toBe(true);
  expect(isSameDatabase(path, join(folder.path, "missing.db"))).toBe(false);
});

test("one that cannot be looked at, as behind a folder of another user, is left to its opening", () => {
  using folder = makeTemporaryFolder();
  const loop = join(folder.path, "loop.db");
  symlinkSync(loop, loop);
  expect(isSameDatabase(makeEmptyFile(folder.path), loop)).toBe(false);
  expect(isSameDatabase(loop, loop)).toBe(false);
});
