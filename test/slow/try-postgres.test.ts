/** The tryout as a user runs it: one instance dies, the other goes on, and nothing is left. */
import { expect, test } from "bun:test";
import { chmodSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { makeCaller, untilItSays, waitFor } from "../../testing/running-service.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";

const program = join(import.meta.dir, "../../deploy/try-postgres.ts");
/** PostgreSQL and two instances take long to start on a busy machine. */
const startMs = 90_000;

test(
  "goes on when an instance dies, and leaves nothing behind",
  async () => {
    using folder = makeTemporaryFolder();
    // PostgreSQL does not run as root, and then must get to its data.
    chmodSync(folder.path, 0o755);
    const child = Bun.spawn([process.execPath, program, "--port", "0"], {
      env: { ...process.env, TMPDIR: folder.path },
      stdout: "pipe",
      stderr: "pipe",
    });
    // Asked to end, not killed, so that it stops its instances.
    using stack = new DisposableStack();
    stack.defer(() => child.kill("SIGTERM"));
    const { written, reading } = await untilItSays(/(Stop everything)/, child, startMs);
    const find = (pattern: RegExp) => pattern.exec(written.out)?.[1];
    const token = find(/PLANTSTORE_TOKEN=(\w+)/) ?? "";
    const [one, two] = ["one", "two"].map((name) =>
      makeCaller(find(new RegExp(`instance ${name} +(\\S+)`)) ?? "", token),
    ) as [ReturnType<typeof makeCaller>, ReturnType<typeof makeCaller>];
    const headers = { connection: "close" };
    const create = { headers, body: '{"name":"Fern"}' };
    expect((await one("POST /plants", create)).status).toBe(201);
    process.kill(Number(find(/kill -9 (\d+)/)), "SIGKILL");
    await waitFor(() => find(/(instance one has ended)/));
    expect((await two("POST /plants", create)).status).toBe(201);
    expect(await (await two("GET /plants", { headers })).json()).toHaveLength(2);

    child.kill("SIGINT");
    await reading;
    expect(await child.exited).toBe(0);
    expect(written.out).toEndWith("Stopped, and removed the data.\n");
    expect(await two("GET /plants", { headers }).catch(() => "stopped")).toBe("stopped");
    expect(readdirSync(folder.path)).toEqual([]);
  },
  2 * startMs,
);
