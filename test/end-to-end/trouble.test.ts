/** Trouble around the service: a log that nobody takes, npm between it and its signals, slow bodies. */
import { describe, expect, test } from "bun:test";
import { openSync } from "node:fs";
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
});
