/** File operations that fail for as long as a disk is full or read-only. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import {
  openGarden,
  type RunningService,
  startService,
} from "../../test/end-to-end/running-service.ts";
import { skipsUnless } from "../../test/skipping.ts";
import { makeTemporaryFolder } from "../../test/temporary-folder.ts";
import { type Failing, InterposedIo, isInterposable } from "../interposed-io/interposed-io.ts";

setDefaultTimeout(120_000);

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

describe.skipIf(skipsUnless(isInterposable, "needs Linux on x64 or arm64"))(
  "file operations",
  () => {
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
        for (let round = 0; round < 3; round++)
          expect(await callAll(service)).toEqual([...statuses]);
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
      const names = Array.from({ length: 20_000 }, (_, index) =>
        `Plant ${index} `.padEnd(120, "x"),
      );
      await Bun.write(path, ["name", ...names].join("\n"));
      io.fail({ kinds: ["write"], error: "ENOSPC", first: 2_000 });
      const stopped = await run(["import", path]);
      expect(stopped.exitCode).toBe(6);
      expect(JSON.parse(stopped.out).stored).toBeWithin(1, 20_000);
      expect(stopped.errors).toMatch(
        /^Added [\d,]+ plants in .* s\. .* no plant is added twice\.\n/,
      );
      expect(stopped.errors).toEndWith(
        "\nplantstore: The service's disk is full. Make room there.\n",
      );
      expect(stopped.errors).not.toContain("Nothing was changed");
      io.heal();
      const continued = JSON.parse((await run(["import", path])).out);
      expect(continued.stored + continued.alreadyThere).toBe(20_000);
      expect(JSON.parse((await run(["whoami"])).out).plants).toBe(20_000);
    });
  },
);
