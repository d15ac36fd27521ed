/**
 * The tryout as a user has it: everything starts, one instance dies, the other goes on, all is
 * gone.
 */
import { expect, test } from "bun:test";
import { chmodSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { waitFor } from "../../test/end-to-end/running-service.ts";
import { skipsOutsideLinux } from "../../test/skipping.ts";
import { makeTemporaryFolder } from "../../test/temporary-folder.ts";

const program = join(import.meta.dir, "try.ts");
/** PostgreSQL and two instances take long to start on a busy machine. */
const startMs = 90_000;

async function startTryout(folder: string, ...flags: string[]) {
  // PostgreSQL does not run as root, and then must get to its data.
  chmodSync(folder, 0o755);
  const child = Bun.spawn([process.execPath, program, "--port", "0", ...flags], {
    env: { ...process.env, TMPDIR: folder },
    stdout: "pipe",
    stderr: "pipe",
  });
  let said = "";
  (async () => {
    for await (const chunk of child.stdout) said += new TextDecoder().decode(chunk);
  })();
  const find = (pattern: RegExp) => pattern.exec(said)?.[1];
  const stop = async (signal: NodeJS.Signals) => {
    child.kill(signal);
    return child.exited;
  };
  await waitFor(
    () => find(/(Stop all of it)/),
    () => child.exitCode !== null && `It ended: ${said}`,
    startMs,
  ).catch(async (error) => {
    await stop("SIGTERM");
    throw error;
  });
  const url = find(/load balancer +(\S+)/) ?? "";
  const token = find(/PLANTSTORE_TOKEN=(\w+)/) ?? "";
  const call = (method: string, body?: string) =>
    fetch(`${url}/plants`, {
      method,
      keepalive: false,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body }),
    });
  return {
    find,
    call,
    stop,
    pid: Number(find(/kill -9 (\d+)/)),
    said: () => said,
    /** Asked to end, not killed, so that it stops its instances. */
    [Symbol.asyncDispose]: async () => void (await stop("SIGTERM")),
  };
}

/** Processes whose command line or folder tells that they are part of a tryout in this folder. */
function leftRunning(folder: string): string[] {
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap((pid) => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
        const environment = readFileSync(`/proc/${pid}/environ`, "utf8");
        return `${command}${environment}`.includes(folder) ? [`${pid} ${command}`] : [];
      } catch {
        // It has ended since, or is not ours to look at.
        return [];
      }
    });
}

test.skipIf(skipsOutsideLinux())(
  "goes on when an instance dies, starts it again, and leaves nothing behind",
  async () => {
    using folder = makeTemporaryFolder();
    await using tryout = await startTryout(folder.path);
    const { find, call, stop, pid, said } = tryout;
    expect((await call("POST", '{"name":"Fern"}')).status).toBe(201);
    process.kill(pid, "SIGKILL");
    // What it took with it in its last moment nobody can answer.
    await waitFor(() => (existsSync(`/proc/${pid}`) ? undefined : true));
    for (let count = 0; count < 10; count++) {
      expect((await call("POST", '{"name":"Moss"}')).status).toBe(201);
    }
    expect(await (await call("GET")).json()).toHaveLength(11);
    await waitFor(() => find(/one {2}is (started again)/), undefined, startMs);
    expect(leftRunning(folder.path)).not.toEqual([]);

    expect(await stop("SIGINT")).toBe(0);
    expect(said()).toEndWith("All is stopped and removed.\n");
    expect(leftRunning(folder.path)).toEqual([]);
    expect(readdirSync(folder.path)).toEqual([]);
  },
  2 * startMs,
);

test(
  "keeps the data where it is told to, and goes on with them the next time",
  async () => {
    using folder = makeTemporaryFolder();
    const kept = join(folder.path, "kept");
    await using first = await startTryout(folder.path, "--keep", kept);
    expect((await first.call("POST", '{"name":"Fern"}')).status).toBe(201);
    expect(await first.stop("SIGTERM")).toBe(0);
    expect(existsSync(join(kept, "PG_VERSION"))).toBe(true);

    await using second = await startTryout(folder.path, "--keep", kept);
    expect(second.said()).toContain("data of before");
    expect(await (await second.call("GET")).json()).toEqual([{ name: "Fern", tag: "" }]);
    expect(await second.stop("SIGTERM")).toBe(0);
  },
  2 * startMs,
);

test("says in one line that its port is taken", async () => {
  using taken = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const child = Bun.spawn([process.execPath, program, "--port", String(taken.port)], {
    stdout: "pipe",
    stderr: "pipe",
  });
  expect(await child.exited).toBe(1);
  expect(await new Response(child.stderr).text()).toMatch(/^try:postgres: .*(?:use|EADDR).*\n$/);
});
