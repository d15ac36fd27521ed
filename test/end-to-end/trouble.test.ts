/**
 * Trouble around the service: a log that nobody takes, npm between it and its signals, slow bodies.
 */
import { describe, expect, test } from "bun:test";
import { closeSync, constants, openSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { waitFor } from "./running-service.ts";

const root = join(import.meta.dir, "../..");

/** Ports of its own, because nothing tells which one was taken when the log goes nowhere. */
function pickPort(): number {
  const probe = Bun.serve({ port: 0, fetch: () => new Response("") });
  const { port } = probe;
  probe.stop(true);
  return port ?? 0;
}

async function untilAnswering(url: string): Promise<void> {
  await waitFor(() =>
    fetch(`${url}/healthz`).then(
      () => true,
      () => undefined,
    ),
  );
}

describe("a log that cannot be written", () => {
  test("does not hold the service up when nobody reads the pipe, nor its stop", async () => {
    using folder = makeTemporaryFolder();
    const port = pickPort();
    const pipe = join(folder.path, "log");
    expect((await Bun.spawn(["mkfifo", pipe]).exited) === 0).toBe(true);
    // Open for reading too, so that it can be opened at all, and never read.
    const unread = openSync(pipe, constants.O_RDWR);
    const database = join(folder.path, "plants.db");
    const args = ["src/main.ts", "serve", "--port", String(port), "--database", database];
    const child = Bun.spawn([process.execPath, ...args, "--threads", "2", "--log", "json"], {
      cwd: root,
      stdout: openSync(pipe, "w"),
      stderr: "ignore",
    });
    const url = `http://127.0.0.1:${port}`;
    await untilAnswering(url);
    // A pipe holds 64 KiB, which is fewer than 400 lines.
    for (let count = 0; count < 2_000; count += 100) {
      const asked = Array.from({ length: 100 }, async () => (await fetch(`${url}/plants`)).status);
      expect(new Set(await Promise.all(asked))).toEqual(new Set([401]));
    }
    child.kill("SIGTERM");
    expect(await child.exited).toBe(0);
    closeSync(unread);
  });

  test("does not change any answer", async () => {
    using folder = makeTemporaryFolder();
    const port = pickPort();
    const database = join(folder.path, "plants.db");
    const args = ["src/main.ts", "serve", "--port", String(port), "--database", database];
    const child = Bun.spawn([process.execPath, ...args], {
      cwd: root,
      stdout: openSync("/dev/full", "w"),
      stderr: "ignore",
    });
    const url = `http://127.0.0.1:${port}`;
    await untilAnswering(url);
    const answers = await Promise.all(
      Array.from({ length: 500 }, async () => (await fetch(`${url}/plants`)).status),
    );
    expect(new Set(answers)).toEqual(new Set([401]));
    child.kill("SIGTERM");
    expect(await child.exited).toBe(0);
  });
});

describe("npm start", () => {
  test("passes a signal on, so that the service stops as it should", async () => {
    using folder = makeTemporaryFolder();
    const port = pickPort();
    const database = join(folder.path, "plants.db");
    const child = Bun.spawn(
      ["npm", "start", "--", "--port", String(port), "--database", database],
      {
        cwd: root,
        stdout: "pipe",
        stderr: "ignore",
      },
    );
    const url = `http://127.0.0.1:${port}`;
    await untilAnswering(url);
    child.kill("SIGTERM");
    await child.exited;
    await waitFor(() =>
      fetch(`${url}/healthz`).then(
        () => undefined,
        () => true,
      ),
    );
    expect(await new Response(child.stdout).text()).toContain('"event":"stopped"');
  });

  test("has the settings that the commands beside it have: none of an .env file", async () => {
    using folder = makeTemporaryFolder();
    for (const name of ["package.json", "node_modules", "bin", "src"]) {
      symlinkSync(join(root, name), join(folder.path, name));
    }
    writeFileSync(join(folder.path, ".env"), "PLANTSTORE_DATABASE=elsewhere.db\n");
    const port = pickPort();
    const child = Bun.spawn(["npm", "start", "--", "--port", String(port), "--log", "json"], {
      cwd: folder.path,
      stdout: "pipe",
      stderr: "ignore",
    });
    await untilAnswering(`http://127.0.0.1:${port}`);
    child.kill("SIGTERM");
    expect(await new Response(child.stdout).text()).toContain('"database":"data/plants.db"');
  });
});
