/** The tryout as a user runs it: one instance dies, the other goes on, and nothing is left. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { makeCaller, untilItSays, waitFor } from "../../testing/running-service.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";

/** PostgreSQL and two instances take long to start on a busy machine. */
const startMs = 90_000;

setDefaultTimeout(2 * startMs);

function startTryout(folder: string) {
  const program = join(import.meta.dir, "../../deploy/try-postgres.ts");
  return Bun.spawn([process.execPath, program, "--port", "0"], {
    env: { ...process.env, TMPDIR: folder },
    stdout: "pipe",
    stderr: "pipe",
  });
}

describe("npm run try:postgres", () => {
  const folder = makeTemporaryFolder();
  let child: ReturnType<typeof startTryout>;
  let screen: Awaited<ReturnType<typeof untilItSays>>;
  let callOne: ReturnType<typeof makeCaller>;
  let callTwo: ReturnType<typeof makeCaller>;

  /** The first group of what matches on its screen. */
  function findOnScreen(pattern: RegExp): string | undefined {
    return pattern.exec(screen.written.out)?.[1];
  }

  beforeAll(async () => {
    // PostgreSQL does not run as root, and then must get to its data.
    chmodSync(folder.path, 0o755);
    child = startTryout(folder.path);
    screen = await untilItSays(/(Stop everything)/, child, startMs);
    const token = findOnScreen(/PLANTSTORE_TOKEN=(\w+)/);
    callOne = makeCaller(findOnScreen(/instance one +(\S+)/) ?? "", token);
    callTwo = makeCaller(findOnScreen(/instance two +(\S+)/) ?? "", token);
  });

  afterAll(async () => {
    // Asked to end, not killed, so that it stops its instances.
    child.kill("SIGTERM");
    await child.exited;
    folder[Symbol.dispose]();
  });

  const fern = { body: '{"name":"Fern"}', headers: { connection: "close" } };

  test("goes on with all plants when one of its two instances is killed", async () => {
    expect((await callOne("POST /plants", fern)).status).toBe(201);

    process.kill(Number(findOnScreen(/kill -9 (\d+)/)), "SIGKILL");
    await waitFor(() => findOnScreen(/(instance one has ended)/));

    expect((await callTwo("POST /plants", fern)).status).toBe(201);
    const list = await callTwo("GET /plants", { headers: { connection: "close" } });
    expect(await list.json()).toHaveLength(2);
  });

  test("stops everything with Ctrl+C, and leaves nothing behind", async () => {
    child.kill("SIGINT");
    await screen.reading;

    expect(await child.exited).toBe(0);
    expect(screen.written.out).toEndWith("Stopped, and removed the data.\n");
    const afterwards = callTwo("GET /plants", { headers: { connection: "close" } });
    expect(await afterwards.catch(() => "stopped")).toBe("stopped");
    expect(readdirSync(folder.path)).toEqual([]);
  });
});
