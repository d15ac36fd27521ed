/** Output that can't be written, or that nobody reads: commands say so, the service goes on. */
import { afterAll, expect, test } from "bun:test";
import { closeSync, constants, existsSync, openSync } from "node:fs";
import { join, resolve } from "node:path";
import { pickPorts } from "../processes.ts";
import { skipsUnless } from "../skipping.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { realProgram, serveHere, waitFor } from "./running-service.ts";

const folder = makeTemporaryFolder();
const service = await serveHere();
await service.call("POST /plants", { body: '{"name":"Fern"}' });
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

/** The program, by "$@", within a line of the shell. */
async function runInShell(line: string, args: readonly string[], url = service.url) {
  const child = Bun.spawn(["sh", "-c", line, "sh", process.execPath, realProgram, ...args], {
    cwd: folder.path,
    env: { PATH: process.env.PATH, PLANTSTORE_URL: url, PLANTSTORE_TOKEN: service.token },
    stderr: "pipe",
  });
  return { exitCode: await child.exited, errors: await new Response(child.stderr).text() };
}

test.skipIf(skipsUnless(existsSync("/dev/full"), "no /dev/full"))(
  "on a full disk, a command says so, and ends with 1",
  async () => {
    const finished = await runInShell('"$@" > /dev/full', ["export"]);
    const errors = "plantstore: Cannot write standard output: the disk is full.\n";
    expect(finished).toEqual({ exitCode: 1, errors });
  },
);

test("an export into a pipe ends with 141 when its reader goes away", async () => {
  let pages = 0;
  using endless = Bun.serve({
    port: 0,
    fetch() {
      const link = `</plants?after=${++pages}>; rel="next"`;
      return new Response(`[{"id":${pages},"name":"Fern","tag":""}]`, { headers: { link } });
    },
  });
  const line = 'mkfifo pipe && { head -n 1 pipe > first & } && "$@"';
  const finished = await runInShell(line, ["export", "pipe"], `${endless.url.origin}`);
  expect(finished.exitCode).toBe(141);
});

test.each([
  ["a pipe that nobody reads", "unread"],
  ["a full disk", "/dev/full"],
])("a log in %s does not hold up the service, nor its stop", async (_, place) => {
  // The log that would show the port goes nowhere.
  const [port = 0] = pickPorts(1);
  const path = resolve(folder.path, place);
  if (place === "unread") await Bun.$`mkfifo ${path}`;
  // Open for reading as well, so that it can be opened at all, and never read.
  const unread = openSync(path, constants.O_RDWR);
  const database = join(folder.path, `logging-${port}.db`);
  const args = ["serve", "--port", String(port), "--database", database, "--log", "json"];
  const child = Bun.spawn([process.execPath, realProgram, ...args, "--threads", "2"], {
    stdout: openSync(path, "w"),
    stderr: "ignore",
  });
  const url = `http://127.0.0.1:${port}`;
  await waitFor(() => fetch(`${url}/healthz`).then(Boolean, () => undefined));
  // A pipe holds 64 KiB, which is fewer than 400 lines.
  for (let count = 0; count < 500; count += 100) {
    const calls = Array.from({ length: 100 }, async () => (await fetch(`${url}/plants`)).status);
    expect(new Set(await Promise.all(calls))).toEqual(new Set([401]));
  }
  child.kill("SIGTERM");
  expect(await child.exited).toBe(0);
  closeSync(unread);
});
