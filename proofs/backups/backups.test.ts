/** Backups under load are restored on either engine; exports and restores survive failing disks. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { openSqlite } from "../../src/storage/sqlite/engine.ts";
import { runProgram, startService } from "../../test/end-to-end/running-service.ts";
import { skipsUnless } from "../../test/skipping.ts";
import { create } from "../../test/storage/tested-storage.ts";
import { makeTemporaryFolder } from "../../test/temporary-folder.ts";
import { InterposedIo, isInterposable } from "../interposed-io/interposed-io.ts";
import { type Image, readImage, writeImage } from "../power-cuts/disk.ts";
import { type Case, drill } from "./drill.ts";

setDefaultTimeout(120_000);

test.each<[Case["from"], Case["to"], Case["loss"]]>([
  ["sqlite", "sqlite", "all but the WAL"],
  ["sqlite", "postgres", "all files"],
  ["postgres", "sqlite", "all files"],
])("a backup of %s under load is restored to %s after the loss of %s", async (from, to, loss) => {
  const { faults, figures } = await drill(1, { from, to, loss });
  expect(faults).toEqual([]);
  expect(figures.restored).toBeGreaterThan(0);
});

/** More than there are of any kind. */
const callsMax = 30;

async function namesIn(path: string): Promise<string[]> {
  const storage = openSqlite(path, { isServing: true, mustExist: true });
  const plants = await storage.list("home", undefined, 9);
  await storage.close();
  return plants.map(({ name }) => name);
}

const isSkipped = skipsUnless(isInterposable, "needs Linux on x64 or arm64");

test.skipIf(isSkipped).each([
  ["file", 1, []],
  ["folder", 2, ["plants.csv"]],
])("an export whose %s can't be synced fails", async (_, nth, left) => {
  await using service = await startService();
  await service.call("POST /plants", { body: '{"name":"Fern"}' });
  using folder = makeTemporaryFolder();
  using io = new InterposedIo(folder.path);
  io.fail({ kinds: ["sync"], error: "EIO", first: nth, last: nth });
  const { exitCode } = await runProgram(["export", join(folder.path, "plants.csv")], {
    ...io.variables,
    PLANTSTORE_URL: service.url,
    PLANTSTORE_TOKEN: service.token,
  });
  expect([exitCode, io.counts().failed]).toEqual([1, 1]);
  expect(readdirSync(folder.path)).toEqual(left);
});

test.skipIf(isSkipped).each(["open", "sync", "rename"] as const)(
  "a restore is done or leaves the old store in place when %s fails",
  async (kind) => {
    using folder = makeTemporaryFolder();
    const backup = join(folder.path, "new.backup");
    let older: Image = new Map();
    for (const name of ["new", "old"]) {
      using store = makeTemporaryFolder();
      const path = join(store.path, "plants.db");
      const storage = openSqlite(path, { isServing: false });
      await storage.apply([create({ name })]);
      if (name === "new") await runProgram(["backup", backup, "--database", path]);
      // With the plant in its WAL.
      else older = readImage(store.path);
      await storage.close();
    }

    /** Makes the n-th operation fail. Returns whether there was one. */
    async function restore(nth: number): Promise<boolean> {
      using data = makeTemporaryFolder();
      const path = join(data.path, "plants.db");
      writeImage(older, data.path);
      using io = new InterposedIo(data.path);
      io.fail({ kinds: [kind], error: "EIO", first: nth, last: nth });
      const variables = { ...io.variables, PLANTSTORE_DATABASE: path };
      const { exitCode, errors } = await runProgram(["restore", backup, "--force"], variables);
      const reason = exitCode === 0 ? "" : expect.stringMatching(/^plantstore: [^\n]+\.\n$/);
      expect({ kind, nth, errors }).toEqual({ kind, nth, errors: reason });
      const kept = readdirSync(data.path).filter((name) => /\.before-.+Z$/.test(name));
      const plants = await Promise.all(
        ["plants.db", ...kept].map((name) => namesIn(join(data.path, name))),
      );
      // The last sync of the folder may fail after the rename.
      const isDone = exitCode === 0 || plants.length > 1;
      expect(plants.flat()).toEqual(isDone ? ["new", "old"] : ["old"]);
      return io.counts().failed > 0;
    }

    let nth = 1;
    while (nth < callsMax && (await restore(nth))) nth++;
    expect(nth).toBeWithin(2, callsMax);
  },
);
