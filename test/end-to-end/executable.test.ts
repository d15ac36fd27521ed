/** The single executable, in an empty folder, with nothing of this machine around it. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import manifest from "../../package.json" with { type: "json" };
import { build } from "../../scripts/build.ts";
import { makeDatabase } from "../postgres-server.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { waitFor } from "./running-service.ts";

const folder = makeTemporaryFolder();
const executable = join(folder.path, "plantstore");
const home = join(folder.path, "empty");

beforeAll(async () => {
  mkdirSync(home);
  await build(executable);
});
afterAll(() => folder[Symbol.dispose]());

function start(args: readonly string[], env: Record<string, string> = {}) {
  return Bun.spawn([executable, ...args], { cwd: home, env, stdout: "pipe", stderr: "pipe" });
}

async function run(args: readonly string[], env?: Record<string, string>) {
  const child = start(args, env);
  const [out, errors] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { out, errors, exitCode: await child.exited };
}

/** What is done at its address; then it is stopped, and says with which code it ended. */
async function serve(args: readonly string[], use: (url: string) => Promise<void>) {
  const child = start(["serve", "--port", "0", ...args]);
  let out = "";
  const reading = (async () => {
    for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) out += text;
  })();
  try {
    const url = await waitFor(
      () => /"url":"([^"]+)"/.exec(out)?.[1],
      () => child.exitCode !== null && `It ended: ${out}`,
    );
    await use(url);
  } finally {
    child.kill("SIGTERM");
  }
  await reading;
  return child.exited;
}

async function createListDelete(url: string, token: string): Promise<void> {
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  const body = '{"name":"Monstera","tag":"living room","id":7}';
  const created = await fetch(`${url}/plants`, { method: "POST", headers, body });
  expect(created.status).toBe(201);
  const listed = await fetch(`${url}/plants`, { headers });
  expect(await listed.text()).toBe('[{"name":"Monstera","tag":"living room"}]');
  const deleted = await fetch(`${url}/plants/7`, { method: "DELETE", headers });
  expect(deleted.status).toBe(204);
}

describe("the executable", () => {
  test("tells its version and its commands", async () => {
    expect((await run(["--version"])).out).toContain(manifest.version);
    expect((await run(["--help"])).out).toContain("Run the service.");
  });

  test("serves plants on several threads, from a folder that it makes", async () => {
    const token = (await run(["token", "create", "ada"])).out.trim();
    const exitCode = await serve(["--threads", "2"], (url) => createListDelete(url, token));
    expect(exitCode).toBe(0);
    expect(readdirSync(home)).toEqual(["data"]);
  });

  test("holds the console, the API reference and all that they load", async () => {
    await serve([], async (url) => {
      for (const path of ["/", "/docs"]) {
        const page = await fetch(url + path);
        expect(page.status).toBe(200);
        const assets = (await page.text()).match(/assets\/[\w.-]+/g) ?? [];
        expect(assets.length).toBeGreaterThan(1);
        for (const asset of assets) expect((await fetch(`${url}/${asset}`)).status).toBe(200);
      }
    });
  });

  test("calls a running service", async () => {
    const token = (await run(["token", "create", "bea"])).out.trim();
    await serve([], async (url) => {
      const access = { PLANTSTORE_URL: url, PLANTSTORE_TOKEN: token };
      expect((await run(["plants", "add", "Fern"], access)).exitCode).toBe(0);
      expect((await run(["plants", "list"], access)).out).toContain("Fern");
    });
  });

  test("says whether a service is ready", async () => {
    const nobody = await run(["health"], { PLANTSTORE_URL: "http://127.0.0.1:1" });
    expect([nobody.exitCode, nobody.out]).toEqual([6, ""]);
    expect(nobody.errors).toContain("No response from http://127.0.0.1:1");
    await serve(["--base-path", "/v1"], async (url) => {
      expect(await run(["health", "--url", url])).toMatchObject({ exitCode: 0, out: "ready\n" });
      const { port } = new URL(url);
      const own = {
        PLANTSTORE_PORT: port,
        PLANTSTORE_BASE_PATH: "/v1",
        PLANTSTORE_HOST: "0.0.0.0",
      };
      expect(await run(["health"], own)).toMatchObject({ exitCode: 0 });
      const elsewhere = await run(["health", "--url", url.replace("/v1", "")]);
      expect(elsewhere.exitCode).toBe(6);
      expect(elsewhere.errors).toContain("is not ready (404): There is nothing at this path.\n");
    });
  });

  test("serves from PostgreSQL", async () => {
    const database = await makeDatabase();
    const token = (await run(["token", "create", "ada", "--database", database.url])).out.trim();
    const exitCode = await serve(["--database", database.url], (url) =>
      createListDelete(url, token),
    );
    expect(exitCode).toBe(0);
    await database.drop();
  });
});
