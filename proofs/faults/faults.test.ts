/** File operations that fail, of a service on a full disk and of commands that write files. */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { openSqlite } from "../../src/storage/sqlite/engine.ts";
import {
  openGarden,
  type RunningService,
  runProgram,
  startService,
} from "../../test/end-to-end/running-service.ts";
import { skipsUnless } from "../../test/skipping.ts";
import { create } from "../../test/storage/tested-storage.ts";
import { makeTemporaryFolder } from "../../test/temporary-folder.ts";
import { type Failing, InterposedIo, isInterposable } from "../interposed-io/interposed-io.ts";
import { type Image, readImage, writeImage } from "../power-cuts/disk.ts";

setDefaultTimeout(120_000);

const isSkipped = skipsUnless(isInterposable, "needs Linux on x64 or arm64");
const changes: Failing["kinds"] = ["write", "truncate", "sync", "unlink", "make folder"];

/** The statuses of a create, a delete, a list and `/readyz`. */
async function callAll(service: RunningService): Promise<number[]> {
  const requests: [string, RequestInit?][] = [
    ["POST /plants", { body: '{"name":"Fern"}' }],
    ["DELETE /plants/1"],
    ["GET /plants"],
    ["GET /readyz"],
  ];
  const statuses: number[] = [];
  for (const [request, init] of requests) statuses.push((await service.call(request, init)).status);
  return statuses;
}

describe.skipIf(isSkipped)("file operations", () => {
  test.each([
    ["is full", ["write"], "ENOSPC", [507, 507, 200, 200], "Nothing was changed"],
    ["is full, for the user", ["write"], "EDQUOT", [503, 503, 200, 503], "outcome is unknown"],
    ["is read-only", changes, "EROFS", [503, 503, 200, 503], "outcome is unknown"],
    ["fails to sync", ["sync"], "EIO", [503, 503, 200, 503], "outcome is unknown"],
  ] as const)(
    "fail while the disk %s: writes are refused, reads go on, and it recovers",
    async (_, kinds, error, statuses, detail) => {
      using folder = makeTemporaryFolder();
      using io = new InterposedIo(folder.path);
      const database = join(folder.path, "plants.db");
      // One, because each thread is ready or not by its own commits.
      const args = ["--threads", "1"];
      await using service = await startService({ database, args, variables: io.variables });
      await service.call("POST /plants", { body: '{"name":"Fern"}' });
      io.fail({ kinds, error });
      const refused = await service.call("POST /plants", { body: '{"name":"Fern"}' });
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

  test("fail during an import, which says how to continue and adds nothing twice", async () => {
    using folder = makeTemporaryFolder();
    using io = new InterposedIo(folder.path);
    const database = join(folder.path, "plants.db");
    await using service = await startService({ database, variables: io.variables });
    const run = await openGarden(service, { user: "ivy" });
    const path = join(folder.path, "plants.csv");
    // Ten requests.
    const names = Array.from({ length: 20_000 }, (_, index) => `Plant ${index} `.padEnd(120, "x"));
    await Bun.write(path, ["name", ...names].join("\n"));
    io.fail({ kinds: ["write"], error: "ENOSPC", first: 2_000 });
    const stopped = await run(["import", path]);
    expect(stopped.exitCode).toBe(6);
    expect(JSON.parse(stopped.out).stored).toBeWithin(1, 20_000);
    expect(stopped.errors).toMatch(/^Added [\d,]+ plants in .* s\. .* no plant is added twice\.\n/);
    expect(stopped.errors).toEndWith(
      "\nplantstore: The service's disk is full. Make room there.\n",
    );
    expect(stopped.errors).not.toContain("Nothing was changed");
    io.heal();
    const continued = JSON.parse((await run(["import", path])).out);
    expect(continued.stored + continued.alreadyThere).toBe(20_000);
    expect(JSON.parse((await run(["whoami"])).out).plants).toBe(20_000);
  });
});

const service = await startService();
await service.call("POST /plants", { body: '{"name":"Fern"}' });
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

/** More than there are of any kind. */
const callsMax = 30;

async function namesIn(path: string): Promise<string[]> {
  const storage = openSqlite(path, { isServing: true, mustExist: true });
  const plants = await storage.list("home", undefined, 9);
  await storage.close();
  return plants.map(({ name }) => name);
}

test.skipIf(isSkipped).each(["open", "sync", "rename"] as const)(
  "a restore is done or leaves the old store in place when %s fails",
  async (kind) => {
    using folder = makeTemporaryFolder();
    const backup = join(folder.path, "new.db");
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
      writeImage(older, data.path);
      using io = new InterposedIo(data.path);
      io.fail({ kinds: [kind], error: "EIO", first: nth, last: nth });
      const args = ["restore", backup, "--database", join(data.path, "plants.db")];
      const { exitCode, errors } = await runProgram(args, io.variables);
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
