/** Root opens only its own stores, whatever links another user has made. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
} from "node:fs";
import { join } from "node:path";
import { runInProcess } from "../command.ts";
import { fillStore } from "../filled-store.ts";
import { skipsUnless } from "../skipping.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";

const user = 1234;

describe.skipIf(skipsUnless(process.getuid?.() === 0, "needs root"))("as root,", () => {
  const folder = makeTemporaryFolder();
  const roots = `${folder.path}/root`;
  const users = `${folder.path}/user`;

  beforeAll(async () => {
    chmodSync(folder.path, 0o755);
    for (const path of [roots, users]) mkdirSync(path);
    for (const path of [`${roots}/plants.db`, `${roots}/user.db`, `${users}/plants.db`]) {
      await fillStore(path, 3);
    }
    await runInProcess(["backup", `${roots}/plants.backup`, "--database", `${roots}/plants.db`]);
    // Root's store behind the user's link, the user's file in root's folder, and root's link to a
    // file in the user's folder.
    symlinkSync(`${roots}/plants.db`, `${roots}/users-link.db`);
    lchownSync(`${roots}/users-link.db`, user, user);
    chownSync(`${roots}/user.db`, user, user);
    symlinkSync(`${users}/plants.db`, `${roots}/link.db`);
    symlinkSync(`${roots}/plants.db`, `${roots}/own-link.db`);
    chownSync(users, user, user);
  });

  afterAll(() => folder[Symbol.dispose]());

  const run = (line: string) =>
    runInProcess(line.replaceAll("USER", users).replaceAll("ROOT", roots).split(" "));
  const readAll = () =>
    [roots, users].flatMap((path) =>
      readdirSync(path).map((name) => [name, Bun.hash(readFileSync(join(path, name)))]),
    );

  test.each([
    "serve --port 0 --database USER/plants.db",
    "serve --port 0 --database ROOT/user.db",
    "serve --port 0 --database ROOT/link.db",
    "serve --port 0 --database ROOT/users-link.db",
    "token create ada --database USER/new.db",
    "backup ROOT/new.backup --database USER/plants.db",
    "restore ROOT/plants.backup --database USER/new.db",
    "copy USER/plants.db postgres://u@127.0.0.1:1/x",
  ])("plantstore %s is refused, and changes nothing", async (line) => {
    const before = readAll();
    const refused = await run(line);
    expect(refused).toMatchObject({ exitCode: 1, out: "" });
    expect(refused.errors).toMatch(
      /^plantstore: Cannot open \S+: it belongs to user 1234, not to root \(run .+sudo -u '#1234' plantstore …\)\.\n$/,
    );
    expect(readAll()).toEqual(before);
  });

  test.each([
    ["a backup in another user's folder", "restore USER/plants.db --database ROOT/restored.db"],
    ["a link of root to a store of root", "token list --database ROOT/own-link.db"],
  ])("%s is used", async (_, line) => {
    expect(await run(line)).toMatchObject({ exitCode: 0 });
  });
});
