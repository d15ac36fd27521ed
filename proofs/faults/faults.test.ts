/** File operations that fail: on a full disk, one that can't sync, and one without links. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { countPlants, fillStore } from "../../testing/filled-store.ts";
import {
  type RunningService,
  readOutput,
  spawnProgram,
  startService,
  waitFor,
} from "../../testing/running-service.ts";
import { skipsUnless } from "../../testing/skipping.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";
import { InterposedIo, isInterposable } from "../interposed-io/interposed-io.ts";

setDefaultTimeout(120_000);

const isSkipped = skipsUnless(isInterposable, "needs Linux on x64 or arm64");
const fern = '{"name":"Fern"}';

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

test.skipIf(isSkipped)(
  "where a file system has no links, a backup gets its name, and still replaces no file",
  async () => {
    using source = makeTemporaryFolder();
    using folder = makeTemporaryFolder();
    using io = new InterposedIo(folder.path);
    const database = join(source.path, "plants.db");
    // So many that a file can appear while the backup is made.
    await fillStore(database, 20_000);
    const start = (target: string) =>
      spawnProgram(["backup", target, "--database", database], io.variables);
    io.fail({ kinds: ["link"], error: "EPERM" });

    const done = join(folder.path, "done.db");
    expect(await readOutput(start(done))).toMatchObject({ exitCode: 0, errors: "" });
    expect([io.failed, await countPlants(done)]).toEqual([1, 20_000]);

    const taken = join(folder.path, "taken.db");
    const making = start(taken);
    const names = () => readdirSync(folder.path);
    await waitFor(() => names().some((name) => name.endsWith(".partial")) || undefined);
    writeFileSync(taken, "precious");
    const errors = `plantstore: ${taken} exists already.\n`;
    expect(await readOutput(making)).toEqual({ exitCode: 1, out: "", errors });
    expect([io.failed, readFileSync(taken, "utf8")]).toEqual([2, "precious"]);
    expect(names().filter((name) => name.endsWith(".partial"))).toEqual([]);
  },
);
