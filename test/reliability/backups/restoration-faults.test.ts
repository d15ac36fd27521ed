/** A restoration whose calls on the files fail, one after the other: all of it or nothing. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { openSqlite } from "../../../src/storage/sqlite/engine.ts";
import { runProgram } from "../../end-to-end/running-service.ts";
import { create } from "../../storage-contract/tested-storage.ts";
import { makeTemporaryFolder } from "../../temporary-folder.ts";
import { type Failing, InterposedIo, isInterposable } from "../interposed-io/interposed-io.ts";
import { readStore, type StoreFiles, writeStore } from "../store-files.ts";

setDefaultTimeout(60_000);

const kinds: readonly Failing["kinds"][number][] = ["open", "close", "sync", "rename", "unlink"];
/** More than there are of any kind. */
const callsMax = 30;

/** A store with that plant in its log. */
async function makeStore(path: string, name: string): Promise<StoreFiles> {
  const storage = openSqlite(path, { isServing: false });
  await storage.apply([create({ name })]);
  const files = readStore(path);
  await storage.close();
  return files;
}

async function namesIn(path: string): Promise<string[]> {
  const storage = openSqlite(path, { isServing: true, mustExist: true });
  const plants = await storage.list("home", undefined, 9);
  await storage.close();
  return plants.map(({ name }) => name);
}

describe.skipIf(!isInterposable)("a restoration over an older store", () => {
  const folder = makeTemporaryFolder();
  const backup = join(folder.path, "new.backup");
  let older: StoreFiles;

  afterAll(() => folder[Symbol.dispose]());

  beforeAll(async () => {
    const path = join(folder.path, "new.db");
    await makeStore(path, "new");
    await runProgram(["backup", backup, "--database", path]);
    older = await makeStore(join(folder.path, "old.db"), "old");
  });

  /** The n-th call fails; whether there was one. */
  async function restore(kind: (typeof kinds)[number], nth: number): Promise<boolean> {
    using data = makeTemporaryFolder();
    const path = join(data.path, "plants.db");
    writeStore(path, older);
    using io = new InterposedIo(data.path);
    const rule = io.fail({ kinds: [kind], error: "EIO", first: nth, last: nth });
    const args = ["restore", backup, "--force", "--database", path];
    const { exitCode, errors } = await runProgram(args, io.variables);
    const [name] = await namesIn(path);
    const what = `${kind} ${nth}: `;
    expect(name).toBeOneOf(exitCode === 0 ? ["new"] : ["old", "new"]);
    if (exitCode !== 0) expect(what + errors).toMatch(/^[^\n]+: plantstore: Cannot [^\n]+\.\n$/);
    return rule.counts().failed > 0;
  }

  test.each(kinds)("is done or leaves that one as it was, when %s fails", async (kind) => {
    let nth = 1;
    while (nth < callsMax && (await restore(kind, nth))) nth++;
    expect(nth).toBeWithin(2, callsMax);
  });
});
