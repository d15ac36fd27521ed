/** A disk that is mounted read-only: every command that writes to it says so, in one line. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { fillStore } from "../filled-store.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { realProgram, runProgram } from "./running-service.ts";

const canMount =
  Bun.which("unshare") !== null &&
  Bun.spawnSync(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/tmp"]).success;

const folder = makeTemporaryFolder();
const disk = join(folder.path, "disk");
const [store, missing] = [join(disk, "plants.db"), join(disk, "new", "plants.db")];
const backup = join(folder.path, "plants.backup");

beforeAll(async () => {
  await fillStore(store, 1);
  await runProgram(["backup", backup, "--database", store]);
});
afterAll(() => folder[Symbol.dispose]());

/** In a mount namespace of its own, so that the mount ends with the process. */
function runReadOnly(args: readonly string[]) {
  const mounting = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"';
  const command = ["sh", "-c", mounting, disk, process.execPath, realProgram, ...args];
  return Bun.spawnSync(["unshare", "-m", ...command], { cwd: folder.path });
}

test
  .skipIf(!canMount)
  .each([
    [["serve", "--port", "0", "--database", store]],
    [["serve", "--port", "0", "--database", missing]],
    [["token", "create", "ada", "--database", store]],
    [["token", "create", "ada", "--database", missing]],
    [["token", "list", "--database", store]],
    [["backup", join(disk, "plants.backup"), "--database", store]],
    [["backup", join(folder.path, "other.backup"), "--database", store]],
    [["restore", backup, "--database", store, "--force"]],
    [["restore", backup, "--database", missing]],
    [["copy", "--from", join(folder.path, "none.db"), "--to", missing]],
  ])("%p", (args) => {
  const { exitCode, stdout, stderr } = runReadOnly(args);
  expect([exitCode, stdout.toString()]).toEqual([1, ""]);
  expect(stderr.toString()).toMatch(
    /^plantstore: Cannot (?:open|write) [^\n]+ read-only[^\n]*\.\n$/,
  );
});
