/** Root follows no symbolic links of other users, who could lead it to any file of the system. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fillStore } from "../filled-store.ts";
import { skipsUnless } from "../skipping.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { type RunningService, runProgram, startService } from "./running-service.ts";

setDefaultTimeout(120_000);

const user = 1234;

describe.skipIf(skipsUnless(process.getuid?.() === 0, "needs root"))("as root", () => {
  const folder = makeTemporaryFolder();
  const inRoots = (name: string) => `${folder.path}/root/${name}`;
  const inUsers = (name: string) => `${folder.path}/user/${name}`;
  let service: RunningService;

  beforeAll(async () => {
    service = await startService();
    chmodSync(folder.path, 0o755);
    for (const name of ["root", "user"]) mkdirSync(join(folder.path, name));
    lchownSync(join(folder.path, "user"), user, user);
    await fillStore(inRoots("plants.db"), 3);
    await runProgram(["backup", inRoots("plants.backup"), "--database", inRoots("plants.db")]);
    writeFileSync(inRoots("plants.csv"), "name\nSecret\n");
    for (const name of ["plants.db", "new.db", "plants.backup", "plants.csv", "folder"]) {
      symlinkSync(inRoots(name === "folder" ? "" : name), inUsers(name));
      lchownSync(inUsers(name), user, user);
    }
    // A link of root that leads to one of the user.
    symlinkSync(inUsers("plants.backup"), inRoots("link.backup"));
  });

  afterAll(async () => {
    await service[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });

  const run = (line: string) =>
    runProgram(line.replaceAll("USERS", inUsers("")).replaceAll("ROOTS", inRoots("")).split(" "), {
      PLANTSTORE_URL: service.url,
      PLANTSTORE_TOKEN: service.token,
    });

  test.each([
    "serve --port 0 --database USERSnew.db",
    "token create ada --database USERSfolder/other.db",
    "backup ROOTSlink.backup --force --database ROOTSplants.db",
    "restore USERSplants.backup --database USERSmine.db",
    "restore ROOTSplants.backup --database USERSplants.db --force",
    "copy --from USERSplants.db --to USERSmine.db",
    "export USERSplants.csv",
    "import USERSplants.csv",
    "import ROOTSplants.csv --rejects USERSfolder/x.csv",
  ])("plantstore %s is refused", async (line) => {
    const readRoots = () =>
      readdirSync(inRoots("")).map((name) => [name, readFileSync(inRoots(name))]);
    const before = readRoots();
    const refused = await run(line);
    expect(refused).toMatchObject({ exitCode: 1, out: "" });
    expect(refused.errors).toMatch(
      /^plantstore: .+\/user\/[\w.]+ is a link of user 1234, which root doesn't follow.+\n$/,
    );
    expect(readRoots()).toEqual(before);
    expect(existsSync(inUsers("mine.db"))).toBe(false);
  });

  test("links of root are followed, even in a folder of another user", async () => {
    symlinkSync(inRoots("plants.db"), inUsers("roots.db"));
    expect(await run("token list --database USERSroots.db")).toMatchObject({ exitCode: 0 });
    symlinkSync(inRoots("export.csv"), inUsers("export.csv"));
    expect(await run("export USERSexport.csv")).toMatchObject({ exitCode: 0 });
  });
});
