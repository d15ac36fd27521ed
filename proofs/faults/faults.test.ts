/** File operations that fail, of a service on a full disk and of commands that write files. */
import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import {
  type RunningService,
  runProgram,
  startService,
} from "../../test/end-to-end/running-service.ts";
import { fillStore, readPlants } from "../../test/filled-store.ts";
import { skipsUnless } from "../../test/skipping.ts";
import { makeTemporaryFolder } from "../../test/temporary-folder.ts";
import { type Failing, InterposedIo, isInterposable } from "../interposed-io/interposed-io.ts";

setDefaultTimeout(120_000);

const isSkipped = skipsUnless(isInterposable, "needs Linux on x64 or arm64");
const fern = '{"name":"Fern"}';
const changes: Failing["kinds"] = ["write", "truncate", "sync", "unlink", "make folder"];

/** The statuses of a create, a delete, a list and `/readyz`. */
async function callAll(service: RunningService): Promise<number[]> {
  const created = await service.call("POST /plants", { body: fern });
  const statuses = [created.status];
  for (const request of ["DELETE /plants/1", "GET /plants", "GET /readyz"]) {
    statuses.push((await service.call(request)).status);
  }
  return statuses;
}

test.skipIf(isSkipped).each([
  ["is full", ["write"], "ENOSPC", [507, 507, 200, 200], "Nothing was changed"],
  ["is full, for the user", ["write"], "EDQUOT", [503, 503, 200, 503], "outcome is unknown"],
  ["is read-only", changes, "EROFS", [503, 503, 200, 503], "outcome is unknown"],
  ["fails to sync", ["sync"], "EIO", [503, 503, 200, 503], "outcome is unknown"],
] as const)(
  "file operations fail while the disk %s: writes are refused, reads go on, and it recovers",
  async (_, kinds, error, statuses, detail) => {
    using folder = makeTemporaryFolder();
    using io = new InterposedIo(folder.path);
    const database = join(folder.path, "plants.db");
    // One, because each thread is ready or not by its own commits.
    const args = ["--threads", "1"];
    await using service = await startService({ database, args, variables: io.variables });
    await service.call("POST /plants", { body: fern });
    io.fail({ kinds, error });
    const refused = await service.call("POST /plants", { body: fern });
    expect(await refused.text()).toContain(detail);
    for (let round = 0; round < 3; round++) expect(await callAll(service)).toEqual([...statuses]);
    const metrics = await (await service.call("GET /metrics")).text();
    expect(metrics).toMatch(/^plantstore_failed_commits_total\{.+\} [1-9]/m);
    io.heal();
    expect(await callAll(service)).toEqual([201, 204, 200, 200]);
    service.signal("SIGTERM");
    expect(await service.exited).toBe(0);
  },
);

const service = await startService();
await service.call("POST /plants", { body: fern });
afterAll(() => service[Symbol.asyncDispose]());

/** Makes a new file while one of its syncs fails. */
async function makeFile(command: "export" | "backup", first: number) {
  using folder = makeTemporaryFolder();
  using io = new InterposedIo(folder.path);
  io.fail({ kinds: ["sync"], error: "EIO", first, last: first });
  const { exitCode } = await runProgram([command, join(folder.path, "plants.csv")], {
    ...io.variables,
    PLANTSTORE_URL: service.url,
    PLANTSTORE_TOKEN: service.token,
    PLANTSTORE_DATABASE: service.database,
  });
  return { exitCode, syncs: io.counts().matched, left: readdirSync(folder.path) };
}

test.skipIf(isSkipped).each(["export", "backup"] as const)(
  "the %s of a store fails if its file or its folder can't be synced",
  async (command) => {
    const { exitCode, syncs } = await makeFile(command, 1_000);
    expect(exitCode).toBe(0);
    expect(await makeFile(command, syncs - 1)).toMatchObject({ exitCode: 1, left: [] });
    expect(await makeFile(command, syncs)).toMatchObject({ exitCode: 1, left: ["plants.csv"] });
  },
);

test.skipIf(isSkipped).each(["open", "sync", "rename"] as const)(
  "a restore is done or leaves the old store in place when %s fails",
  async (kind) => {
    using folder = makeTemporaryFolder();
    const backup = join(folder.path, "backup.db");
    await fillStore(join(folder.path, "new.db"), 1, "new");
    await runProgram(["backup", backup, "--database", join(folder.path, "new.db")]);
    /** Makes the n-th operation fail. Returns whether there was one. */
    async function restore(nth: number): Promise<boolean> {
      using data = makeTemporaryFolder();
      await fillStore(join(data.path, "plants.db"), 1, "old");
      using io = new InterposedIo(data.path);
      io.fail({ kinds: [kind], error: "EIO", first: nth, last: nth });
      const args = ["restore", backup, "--database", join(data.path, "plants.db")];
      const { exitCode, errors } = await runProgram(args, io.variables);
      const reason = exitCode === 0 ? "" : expect.stringMatching(/^plantstore: [^\n]+\.\n$/);
      expect({ kind, nth, errors }).toEqual({ kind, nth, errors: reason });
      const kept = readdirSync(data.path).filter((name) => /\.before-.+Z$/.test(name));
      const stores = ["plants.db", ...kept].map((name) => readPlants(join(data.path, name)));
      const names = (await Promise.all(stores)).flat().map(({ name }) => name);
      // The last sync of the folder may fail after the rename.
      const isDone = exitCode === 0 || stores.length > 1;
      expect(names).toEqual(isDone ? ["new 0", "old 0"] : ["old 0"]);
      return io.counts().failed > 0;
    }

    let nth = 1;
    while (await restore(nth)) nth++;
    expect(nth).toBeGreaterThan(1);
  },
);
