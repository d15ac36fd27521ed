/** File operations that fail: a full disk, and one that can't sync. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { type RunningService, startService } from "../../test/end-to-end/running-service.ts";
import { skipsUnless } from "../../test/skipping.ts";
import { makeTemporaryFolder } from "../../test/temporary-folder.ts";
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
