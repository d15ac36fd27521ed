/** The tryout as a user runs it: one instance dies, the other goes on, and nothing is left. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { makeCaller, untilItSays, waitFor } from "../end-to-end/running-service.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";

const program = join(import.meta.dir, "../../deploy/try-postgres.ts");
/** PostgreSQL and two instances take long to start on a busy machine. */
const startMs = 90_000;
setDefaultTimeout(2 * startMs);

async function startTryout(folder: string, ...flags: string[]) {
  // PostgreSQL does not run as root, and then must get to its data.
  chmodSync(folder, 0o755);
  const child = Bun.spawn([process.execPath, program, "--port", "0", ...flags], {
    env: { ...process.env, TMPDIR: folder },
    stdout: "pipe",
    stderr: "pipe",
  });
  const starting = untilItSays(/(Stop everything)/, child, startMs);
  starting.catch(() => child.kill("SIGTERM"));
  const { written, reading } = await starting;
  const find = (pattern: RegExp) => pattern.exec(written.out)?.[1];
  const stop = async (signal: NodeJS.Signals) => {
    child.kill(signal);
    await reading;
    return child.exited;
  };
  const urlOf = (name: string) => find(new RegExp(`instance ${name} +(\\S+)`)) ?? "";
  const token = find(/PLANTSTORE_TOKEN=(\w+)/) ?? "";
  const headers = { connection: "close" };
  const call = (instance: "one" | "two", request: string, body?: string) =>
    makeCaller(urlOf(instance), token)(request, { headers, ...(body && { body }) });
  return {
    find,
    call,
    stop,
    pid: Number(find(/kill -9 (\d+)/)),
    said: () => written.out,
    /** Asked to end, not killed, so that it stops its instances. */
    [Symbol.asyncDispose]: async () => void (await stop("SIGTERM")),
  };
}

test("goes on when an instance dies, and leaves nothing behind", async () => {
  using folder = makeTemporaryFolder();
  await using tryout = await startTryout(folder.path);
  const { find, call, stop, pid, said } = tryout;
  expect((await call("one", "POST /plants", '{"name":"Fern"}')).status).toBe(201);
  process.kill(pid, "SIGKILL");
  await waitFor(() => find(/(instance one has ended)/));
  expect((await call("two", "POST /plants", '{"name":"Moss"}')).status).toBe(201);
  expect(await (await call("two", "GET /plants")).json()).toHaveLength(2);

  expect(await stop("SIGINT")).toBe(0);
  expect(said()).toEndWith("Stopped, and removed the data.\n");
  expect(await call("two", "GET /plants").catch(() => "stopped")).toBe("stopped");
  expect(readdirSync(folder.path)).toEqual([]);
});

test("keeps the data where it is told to, and uses it again the next time", async () => {
  using folder = makeTemporaryFolder();
  const kept = join(folder.path, "kept");
  await using first = await startTryout(folder.path, "--keep", kept);
  expect((await first.call("one", "POST /plants", '{"name":"Fern"}')).status).toBe(201);
  expect(await first.stop("SIGTERM")).toBe(0);
  expect(existsSync(join(kept, "PG_VERSION"))).toBe(true);

  await using second = await startTryout(folder.path, "--keep", kept);
  expect(await (await second.call("two", "GET /plants")).json()).toEqual([
    { name: "Fern", tag: "" },
  ]);
  expect(await second.stop("SIGTERM")).toBe(0);
});
