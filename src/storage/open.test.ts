/** Which addresses lead to the same database. */
import { expect, test } from "bun:test";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { makeEmptyFile, makeTemporaryFolder } from "../../test/temporary-folder.ts";
import { isSameFile } from "./open.ts";

test("a file and a link to it are the same", () => {
  using folder = makeTemporaryFolder();
  const path = makeEmptyFile(folder.path);
  const link = join(folder.path, "link.db");
  symlinkSync(path, link);
  expect(isSameFile(path, link)).toBe(true);
  expect(isSameFile(path, join(folder.path, "missing.db"))).toBe(false);
});

test("a file that cannot be read counts as another one: opening it reports why", () => {
  using folder = makeTemporaryFolder();
  const loop = join(folder.path, "loop.db");
  symlinkSync(loop, loop);
  expect(isSameFile(makeEmptyFile(folder.path), loop)).toBe(false);
  expect(isSameFile(loop, loop)).toBe(false);
});
