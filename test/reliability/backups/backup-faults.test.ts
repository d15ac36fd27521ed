/** Backups and restores whose file operations fail, one after the other. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { openSqlite } from "../../../src/storage/sqlite/engine.ts";
import { runProgram } from "../../end-to-end/running-service.ts";
import { skipsUnless } from "../../skipping.ts";
import { create } from "../../storage-contract/tested-storage.ts";
import { makeTemporaryFolder } from "../../temporary-folder.ts";
import { type Failing, InterposedIo, isInterposable } from "../interposed-io/interposed-io.ts";
import { readStore, type StoreFiles, writeStore } from "../store-files.ts";

setDefaultTimeout(120_000);

const kinds: readonly Failing["kinds"][number][] = ["open", "close", "sync", "rename", "unlink"];
/** More than there are of any kind. */
const callsMax = 30;

/** A store with that plant in its WAL. */
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

describe.skipIf(skipsUnless(isInterposable, "needs Linux on x64 or arm64"))(
  "a restore over an older store",
  () => {
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

    /** Makes the n-th operation fail. Returns whether there was one. */
    async function inject(
      [kind, nth]: readonly [(typeof kinds)[number], nth: number],
      command: (path: string) => readonly string[],
      look: (path: string, isDone: boolean) => Promise<void>,
    ): Promise<boolean> {
      using data = makeTemporaryFolder();
      const path = join(data.path, "plants.db");
      writeStore(path, older);
      using io = new InterposedIo(data.path);
      const rule = io.fail({ kinds: [kind], error: "EIO", first: nth, last: nth });
      const variables = { ...io.variables, PLANTSTORE_DATABASE: path };
      const { exitCode, errors } = await runProgram(command(path), variables);
      expect({ kind, nth, errors }).toEqual({
        kind,
        nth,
        errors: exitCode === 0 ? "" : expect.stringMatching(/^plantstore: [^\n]+\.\n$/),
      });
      await look(path, exitCode === 0);
      return rule.counts().failed > 0;
    }

    /** In the store, and in the old one, if it was set aside. */
    async function plantsAt(path: string): Promise<string[]> {
      const kept = readdirSync(dirname(path)).filter((name) => /\.before-.+Z$/.test(name));
      const paths = [path, ...kept.map((name) => join(dirname(path), name))];
      return (await Promise.all(paths.map(namesIn))).flat();
    }

    test.each(kinds)("is done or leaves the old store in place when %s fails", async (kind) => {
      let nth = 1;
      const restore = () =>
        inject(
          [kind, nth],
          () => ["restore", backup, "--force"],
          async (path, isDone) => {
            const plants = await plantsAt(path);
            // The last sync of the folder may fail after the rename.
            if (isDone || plants.length > 1) expect(plants).toEqual(["new", "old"]);
            else expect(plants).toEqual(["old"]);
          },
        );
      while (nth < callsMax && (await restore())) nth++;
      expect(nth).toBeWithin(2, callsMax);
    });

    test("a backup is done, or says in one line why not, when unlink fails", async () => {
      let nth = 1;
      const backUp = () =>
        inject(
          ["unlink", nth],
          (path) => ["backup", `${path}.backup`],
          async (path) => {
            expect(await namesIn(path)).toEqual(["old"]);
          },
        );
      while (nth < callsMax && (await backUp())) nth++;
      expect(nth).toBeWithin(2, callsMax);
    });
  },
);
