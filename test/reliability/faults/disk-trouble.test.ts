/** A full or read-only disk: the responses meanwhile, and the recovery without a restart. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { type RunningService, startService, waitFor } from "../../end-to-end/running-service.ts";
import { skipsUnless } from "../../skipping.ts";
import { makeTemporaryFolder } from "../../temporary-folder.ts";
import { type Failing, InterposedIo, isInterposable } from "../interposed-io/interposed-io.ts";

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

describe.skipIf(skipsUnless(isInterposable, "needs Linux on x64 or arm64"))("when the disk", () => {
  test.each([
    ["is full", { kinds: ["write"], error: "ENOSPC" }, [507, 507, 200, 200]],
    ["is full, for the user", { kinds: ["write"], error: "EDQUOT" }, [503, 503, 200, 503]],
    ["is read-only", { kinds: changes, error: "EROFS" }, [503, 503, 200, 503]],
    ["fails to sync", { kinds: ["sync"], error: "EIO" }, [503, 503, 200, 503]],
  ] as const)(
    "%s, writes are refused and reads go on until it recovers",
    async (_, failing, statuses) => {
      using folder = makeTemporaryFolder();
      using io = new InterposedIo(folder.path);
      const database = join(folder.path, "plants.db");
      await using service = await startService({ database, variables: io.variables });
      expect((await service.call("POST /plants", { body: '{"name":"Fern"}' })).status).toBe(201);
      io.fail(failing);
      for (let round = 0; round < 3; round++) expect(await callAll(service)).toEqual([...statuses]);
      io.heal();
      expect(await callAll(service)).toEqual([201, 204, 200, 200]);
      service.signal("SIGTERM");
      expect(await service.exited).toBe(0);
    },
  );

  test("is full, a bulk request counts as a failed commit", async () => {
    using folder = makeTemporaryFolder();
    using io = new InterposedIo(folder.path);
    const database = join(folder.path, "plants.db");
    await using service = await startService({ database, variables: io.variables });
    io.fail({ kinds: ["write"], error: "ENOSPC" });
    const headers = { "content-type": "application/jsonl" };
    await service.call("POST /plants/bulk", { body: '{"name":"Fern"}\n'.repeat(100), headers });
    // Another thread may respond, and learns of it within a second.
    const metrics = await waitFor(async () => {
      const text = await (await service.call("GET /metrics")).text();
      return /^plantstore_failed_commits_total\{code="storage-full"\} [1-9]/m.test(text)
        ? text
        : undefined;
    });
    expect(metrics).toContain("\nplantstore_ready 1\n");
  });

  test("is read-only, a start is refused in one line", async () => {
    using folder = makeTemporaryFolder();
    const database = join(folder.path, "plants.db");
    {
      await using service = await startService({ database });
      service.signal("SIGTERM");
      await service.exited;
    }
    using io = new InterposedIo(folder.path);
    io.fail({ kinds: ["open", ...changes], error: "EROFS" });
    const failure = await startService({ database, variables: io.variables }).catch(String);
    expect(failure).toMatch(/It ended with 1: plantstore: Cannot open [^\n]+\.\n$/);
  });
});
