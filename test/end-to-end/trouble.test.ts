/** Trouble around the service: a log that cannot be written, and npm between it and a signal. */
import { describe, expect, test } from "bun:test";
import { closeSync, constants, openSync } from "node:fs";
import { join, resolve } from "node:path";
import { pickPorts } from "../processes.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { waitFor } from "./running-service.ts";

const root = join(import.meta.dir, "../..");

async function waitUntilReady(url: string): Promise<void> {
  await waitFor(() =>
    fetch(`${url}/healthz`).then(
      () => true,
      () => undefined,
    ),
  );
}

describe("a log that cannot be written does not hold up the service, nor its stop:", () => {
  test.each([
    ["a pipe that nobody reads", "pipe"],
    ["a full disk", "/dev/full"],
  ])("%s", async (_, place) => {
    using folder = makeTemporaryFolder();
    // The log that would show the port goes nowhere.
    const [port = 0] = pickPorts(1);
    const path = resolve(folder.path, place);
    if (place === "pipe") await Bun.$`mkfifo ${path}`;
    // Open for reading as well, so that it can be opened at all, and never read.
    const unread = openSync(path, constants.O_RDWR);
    const database = join(folder.path, "plants.db");
    const args = ["src/main.ts", "serve", "--port", String(port), "--database", database];
    const child = Bun.spawn([process.execPath, ...args, "--threads", "2", "--log", "json"], {
      cwd: root,
      stdout: openSync(path, "w"),
      stderr: "ignore",
    });
    const url = `http://127.0.0.1:${port}`;
    await waitUntilReady(url);
    // A pipe holds 64 KiB, which is fewer than 400 lines.
    for (let count = 0; count < 1_000; count += 100) {
      const calls = Array.from({ length: 100 }, async () => (await fetch(`${url}/plants`)).status);
      expect(new Set(await Promise.all(calls))).toEqual(new Set([401]));
    }
    child.kill("SIGTERM");
    expect(await child.exited).toBe(0);
    closeSync(unread);
  });
});

test("npm start passes a signal on, so that the service stops as it should", async () => {
  using folder = makeTemporaryFolder();
  const [port = 0] = pickPorts(1);
  const database = join(folder.path, "plants.db");
  const command = ["npm", "start", "--", "--port", String(port), "--database", database];
  const child = Bun.spawn(command, { cwd: root, stdout: "pipe", stderr: "ignore" });
  await waitUntilReady(`http://127.0.0.1:${port}`);
  child.kill("SIGTERM");
  await child.exited;
  expect(await new Response(child.stdout).text()).toContain('"event":"stopped"');
});
