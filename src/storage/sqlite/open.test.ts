/** Where a file may lie that is opened. */
import { expect, test } from "bun:test";
import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeTemporaryFolder, touch } from "../../../test/temporary-folder.ts";
import { openSqlite } from "./engine.ts";
import { isMountPoint } from "./opening.ts";

test("a file that cannot be looked at is not said to be missing", () => {
  using folder = makeTemporaryFolder();
  const path = join(folder.path, "plants.db");
  symlinkSync(path, path);
  const opening = () => openSqlite(path, { isServing: false, mustExist: true });
  expect(opening).toThrow("in a circle");
});

test("a folder that a link leads to in vain, as to a disk that is not mounted, is told", () => {
  using folder = makeTemporaryFolder();
  const link = join(folder.path, "data");
  symlinkSync(join(folder.path, "disk"), link);
  const opening = () => openSqlite(join(link, "plants.db"), { isServing: false });
  expect(opening).toThrow("a link that leads nowhere");
});

test("a file that is mounted by itself is told from one in a folder that is mounted", () => {
  using folder = makeTemporaryFolder();
  const mountsPath = join(folder.path, "mountinfo");
  const mount = (path: string) => `36 25 8:1 /plants.db ${path} rw - ext4 /dev/sda1 rw\n`;
  writeFileSync(mountsPath, mount("/data") + mount("/my\\040data\\134/plants.db"));
  expect(isMountPoint("/my data\\/plants.db", mountsPath)).toBe(true);
  expect(isMountPoint("/data/plants.db", mountsPath)).toBe(false);
  expect(isMountPoint("/data", join(folder.path, "missing"))).toBe(false);
});

/** In a name space of its own, so that the mount ends with it. */
function openMounted(folder: string, path: string) {
  const engine = JSON.stringify(join(import.meta.dir, "engine.ts"));
  const options = "{ isServing: true }";
  const script = `(await import(${engine})).openSqlite(${JSON.stringify(path)}, ${options}).close()`;
  const command = 'mount --bind "$1" "$2" && exec "$3" -e "$4"';
  const words = [join(folder, "elsewhere.db"), path, process.execPath, script];
  return Bun.spawnSync(["unshare", "-m", "sh", "-c", command, "sh", ...words]);
}

const canMount =
  Bun.which("unshare") !== null &&
  Bun.spawnSync(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/tmp"]).success;

test.skipIf(!canMount)("it is not opened, because its log would not lie beside it", () => {
  using folder = makeTemporaryFolder();
  touch(join(folder.path, "elsewhere.db"));
  const path = touch(join(folder.path, "plants.db"));
  const { exitCode, stderr } = openMounted(folder.path, path);
  expect(stderr.toString()).toContain("it is mounted by itself");
  expect(exitCode).toBe(1);
});
