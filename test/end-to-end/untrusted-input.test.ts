/** Commands with untrusted input: other programs, odd files, signals that come twice. */
import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeToken } from "../../src/auth/opaque-token.ts";
import { openScriptedService } from "../client/scripted-service.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { runProgram, spawnProgram, waitFor } from "./running-service.ts";

/** Each command is a process of its own, and a test runs several. */
setDefaultTimeout(120_000);

const folder = makeTemporaryFolder();
const token = makeToken();

afterAll(() => folder[Symbol.dispose]());

function run(args: readonly string[], url: string) {
  return runProgram(args, { PLANTSTORE_URL: url, PLANTSTORE_TOKEN: token });
}

function writeFile(name: string, text: string): string {
  const path = join(folder.path, name);
  writeFileSync(path, text);
  return path;
}

test("text of another program reaches the terminal without control characters", async () => {
  const odd = "\u001b]0;title\u0007\u009b31m\u202e";
  const body = JSON.stringify({ type: "urn:plantstore:problem:conflict", detail: odd });
  const headers = { "content-type": "application/problem+json" };
  const stranger = await openScriptedService({ status: 409, headers, body });
  const unready = await openScriptedService({ status: 503, headers, body });
  const spoken = [
    await run(["plants", "add", "Fern"], stranger.url),
    await run(["health"], unready.url),
  ];
  stranger.close();
  unready.close();
  for (const { errors } of spoken) {
    expect(errors).toContain("\\u009b");
    expect(errors.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\u202e]/u);
  }
});

test("health takes no redirect for a service that is ready", async () => {
  const login = await openScriptedService({ status: 200, body: "<html>Sign in</html>" });
  const proxy = await openScriptedService({ status: 302, headers: { location: login.url } });
  const { exitCode, out, errors } = await run(["health"], proxy.url);
  login.close();
  proxy.close();
  expect([exitCode, out, login.requests.length]).toEqual([6, "", 0]);
  expect(errors).toContain("doesn't respond like a Plant Store (status 302). Check --url.");
});

test("an export that is interrupted leaves nothing behind", async () => {
  const older = writeFile("interrupted.jsonl", "older\n");
  const link = '</plants?limit=1&after=7>; rel="next"';
  const stranger = await openScriptedService(
    { status: 200, headers: { link }, body: '[{"id":7,"name":"Fern","tag":""}]' },
    { status: 503, headers: { "retry-after": "60" } },
  );
  const exporting = spawnProgram(["export", older], {
    PLANTSTORE_URL: stranger.url,
    PLANTSTORE_TOKEN: token,
  });
  await waitFor(() => stranger.requests.length === 2 || undefined);
  await interruptTwice(exporting);
  expect(await exporting.exited).toBe(130);
  stranger.close();
  expect(readFileSync(older, "utf8")).toBe("older\n");
  expect(readdirSync(folder.path).filter((name) => name.includes("partial"))).toEqual([]);
});

test("an import that is interrupted says that it can go on", async () => {
  const { promise: isSent, resolve: send } = Promise.withResolvers<void>();
  using slow = Bun.serve({
    port: 0,
    async fetch({ method }) {
      if (method === "GET") return Response.json([]);
      send();
      await new Promise(() => {});
      return new Response();
    },
  });
  const path = writeFile("cut.csv", `name\n${"Fern\n".repeat(600)}`);
  const variables = { PLANTSTORE_URL: slow.url.origin, PLANTSTORE_TOKEN: token };
  await using child = spawnProgram(["import", path], variables);
  await isSent;
  await interruptTwice(child);
  expect(await child.exited).toBe(130);
  expect(await child.stdout.json()).toEqual({ stored: 0, alreadyThere: 0, refused: 0 });
  const errors = await child.stderr.text();
  expect(errors).toContain("Run the same import again to go on: no plant is added twice.\n");
  expect(errors).toEndWith("plantstore: Stopped. Not all rows were sent.\n");
});

/** As it comes by way of programs that pass a signal on, as well as from the terminal. */
async function interruptTwice(child: ReturnType<typeof spawnProgram>): Promise<void> {
  child.kill("SIGINT");
  await Bun.sleep(5);
  child.kill("SIGINT");
}
