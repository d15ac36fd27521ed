/** `plantstore check` as it is called: what it shows, to whom, how it ends, and what it leaves. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import {
  makeToken,
  type RunningService,
  runProgram,
  spawnProgram,
  startService,
  waitFor,
} from "../end-to-end/running-service.ts";
import { changing, emptyResponse, openBrokenService, type Serve } from "./broken-service.ts";

setDefaultTimeout(120_000);

let service: RunningService;

beforeAll(async () => {
  service = await startService();
});

afterAll(() => service[Symbol.asyncDispose]());

function run(line: string, variables: Record<string, string> = {}) {
  const args = line.replace("URL", service.url).split(" ");
  return runProgram(args, { PLANTSTORE_TOKEN: service.token, ...variables });
}

async function listGarden(): Promise<string> {
  return (await service.call("GET /plants")).text();
}

function openBroken(serve: Serve) {
  return openBrokenService(service.url, { write: service.token }, serve);
}

describe("a check", () => {
  test("shows each rule by its topic, and ends with 0 if none fails", async () => {
    const { exitCode, out, errors } = await run("check URL --only idempotency");
    expect([exitCode, errors]).toEqual([0, ""]);
    expect(out).toStartWith(`${service.url}, checked against `);
    expect(out).toContain("\nidempotency\n  ✓ the same key and request give");
    expect(out).toContain("  – gardens do not share keys (needs PLANTSTORE_TOKEN_2, a token to");
    expect(out).toMatch(
      /\n\d+ passed, 0 failed, \d+ skipped, in [\d.]+ (?:min \d+ )?s\.\nWhat was created is/,
    );
    expect(out).not.toContain(service.token);
  });

  test("tells a machine the same", async () => {
    const { exitCode, out, errors } = await run("check --only tokens --json", {
      PLANTSTORE_URL: service.url,
    });
    expect([exitCode, errors]).toEqual([0, ""]);
    const report = JSON.parse(out);
    expect(report).toMatchObject({ url: service.url, failed: 0, leftBehind: [] });
    expect(report.rules.length).toBe(report.passed + report.skipped);
    expect(report.rules[0]).toEqual({
      topic: "tokens",
      rule: "every operation without a token is 401, without an error in the challenge",
      outcome: "passed",
    });
  });

  test("refuses a second token to the same garden", async () => {
    const same = await makeToken(service, "gardener");
    const { exitCode, out, errors } = await run("check URL", { PLANTSTORE_TOKEN_2: same });
    expect([exitCode, out]).toEqual([4, ""]);
    expect(errors).toContain("PLANTSTORE_TOKEN_2 must open another garden than PLANTSTORE_TOKEN.");
  });

  test("shows what was sent and what came where a rule fails, without tokens, and ends with 1", async () => {
    const serve = changing(({ headers }) => headers.delete("WWW-Authenticate"));
    using broken = openBroken(serve);
    const { exitCode, out } = await run(`check ${broken.url.origin} --only tokens`);
    expect(exitCode).toBe(1);
    expect(out).toContain("  ✗ every operation with an unknown token is 401 invalid_token\n");
    expect(out).toContain("the header WWW-Authenticate must be Bearer realm=");
    expect(out).toContain("      > GET /plants HTTP/1.1\n");
    expect(out).toContain("      > Authorization: Bearer …\n");
    expect(out).toContain("      < HTTP/1.1 401\n");
    expect(out).not.toContain(service.token.slice(0, 20));
  });

  test("says what it could not delete, and ends with 1", async () => {
    const keeps: Serve = async (request, forward) =>
      request.method === "DELETE" ? emptyResponse(204) : forward(request);
    using broken = openBroken(keeps);
    const { exitCode, errors } = await run(`check ${broken.url.origin} --only create`);
    expect(exitCode).toBe(1);
    expect(errors).toMatch(/^plantstore: Not deleted: the plant \d+, /);
    for (const [, id] of errors.matchAll(/plant (-?\d+)/g)) {
      await service.call(`DELETE /plants/${id}`);
    }
    expect(await listGarden()).toBe("[]");
  });

  test.each([
    ["PLANTSTORE_TOKEN", "write"],
    ["PLANTSTORE_TOKEN_2", "write"],
    ["PLANTSTORE_TOKEN_READ", "read"],
  ])(
    "doesn't begin if the garden of %s has plants in it, and ends with 2",
    async (variable, scope) => {
      const owner = await makeToken(service, variable);
      await service.call("POST /plants", { token: owner, body: '{"name":"Fern","id":-7}' });
      const token = await makeToken(service, variable, "--scope", scope);
      const { exitCode, out, errors } = await run("check URL", { [variable]: token });
      expect([exitCode, out]).toEqual([2, ""]);
      expect(errors).toMatch(
        new RegExp(`^plantstore: The garden of ${variable} has plants in it, .*an empty one.+\n$`),
      );
      const listed = await service.call("GET /plants", { token: owner });
      expect(await listed.json()).toEqual([{ name: "Fern", tag: "" }]);
    },
  );

  test("empties the garden when it is interrupted, and ends with 130", async () => {
    const slowly: Serve = async (request, forward) => {
      await Bun.sleep(20);
      return forward(request);
    };
    using broken = openBroken(slowly);
    const command = ["check", broken.url.origin, "--only", "list"];
    const child = spawnProgram(command, { PLANTSTORE_TOKEN: service.token });
    await waitFor(async () => ((await listGarden()) === "[]" ? undefined : true));
    child.kill("SIGINT");
    // As it comes by way of programs that pass it on, as well as from the terminal.
    await Bun.sleep(5);
    child.kill("SIGINT");
    const [exitCode, errors] = [await child.exited, await new Response(child.stderr).text()];
    expect(exitCode).toBe(130);
    expect(errors).toContain("Interrupted before the last rule.");
    expect(await listGarden()).toBe("[]");
  });
});

test.each<[line: string, exitCode: number, named: string]>([
  ["check plants.example", 2, "URL must be"],
  ["check http://me:secret@plants.example", 2, '"http://…@plants.example"'],
  ["check URL --only weather", 2, "--only must be one of surface, requests"],
  ["check URL --token plant_unknown", 2, "There is no flag --token."],
  ["check URL/elsewhere", 1, "Is it a Plant Store?"],
  ["check http://127.0.0.1:1", 6, "the connection is refused. Is the service running?"],
])("plantstore %s ends with %d and one line", async (line, exitCode, named) => {
  const finished = await run(line);
  expect(finished.exitCode).toBe(exitCode);
  expect(finished.errors).toStartWith("plantstore: ");
  expect(finished.errors.trimEnd()).not.toContain("\n");
  expect(finished.errors).toContain(named);
});

test.each([
  ["PLANTSTORE_TOKEN", "plant_unknown", 4],
  ["PLANTSTORE_TOKEN_2", "plant_unknown", 4],
  ["PLANTSTORE_TOKEN_READ", "half\u00e9", 4],
])("it names %s where that is the bad token (%s)", async (variable, token, exitCode) => {
  const finished = await run("check URL", { [variable]: token });
  expect(finished.exitCode).toBe(exitCode);
  expect(finished.errors).toMatch(new RegExp(`^plantstore: .*\\b${variable}\\b.*\\n$`));
});

test("with a token that may only read it does not begin", async () => {
  const reader = await makeToken(service, "alice", "--scope", "read");
  const finished = await run("check URL", { PLANTSTORE_TOKEN: reader });
  expect(finished).toMatchObject({ exitCode: 4, out: "" });
  expect(finished.errors).toMatch(/^plantstore: PLANTSTORE_TOKEN may only read\.\n$/);
});

test("it goes by TLS to an https address", async () => {
  const pathOf = (name: string) => join(import.meta.dir, `../certificates/${name}.pem`);
  const args = ["--tls-cert", pathOf("server"), "--tls-key", pathOf("server-key")];
  await using secure = await startService({ args });
  const line = `check https://localhost:${secure.port} --only create`;
  const variables = { PLANTSTORE_TOKEN: secure.token };
  const stranger = await run(line, variables);
  expect([stranger.exitCode, stranger.errors]).toEqual([6, expect.stringMatching(/NODE_EXTRA_CA/)]);
  const known = await run(line, { ...variables, NODE_EXTRA_CA_CERTS: pathOf("authority") });
  expect([known.exitCode, known.errors]).toEqual([0, ""]);
});
