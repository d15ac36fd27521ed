/** Where the path of a backup may lead. */
import { expect, test } from "bun:test";
import { lstatSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { makeTemporaryFolder } from "../../test/temporary-folder.ts";
import { openStorage } from "../storage/open.ts";
import { runCommand } from "./run.ts";

test.each([
  ["made where a link leads, also where there is nothing yet", "plants.backup", 0],
  ["refused where a link leads to a file of the database, also to one to come", "plants.db-wal", 2],
  ["refused where links lead in a circle", "link", 1],
])("is %s", async (_what, target, exitCode) => {
  using folder = makeTemporaryFolder();
  const [file, link] = [join(folder.path, "plants.db"), join(folder.path, "link")];
  await (await openStorage(file, { isServing: false })).close();
  symlinkSync(target, link);
  const silent = { isInteractive: false, isWatched: false, out: () => {}, say: () => {} };
  expect(await runCommand(["backup", link, "--database", file], silent)).toBe(exitCode);
  expect(lstatSync(link).isSymbolicLink()).toBe(true);
  const made = exitCode === 0 ? [target] : [];
  expect(readdirSync(folder.path).sort()).toEqual(["link", ...made, "plants.db"]);
});
