/** What the commands for plants say at a terminal. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { runCommand } from "./run.ts";

const { PLANTSTORE_TOKEN } = process.env;
beforeAll(() => {
  process.env.PLANTSTORE_TOKEN = "somebody";
});
afterAll(() => {
  if (PLANTSTORE_TOKEN === undefined) delete process.env.PLANTSTORE_TOKEN;
  else process.env.PLANTSTORE_TOKEN = PLANTSTORE_TOKEN;
});

const moss = '[{"id":1,"name":"Moss","tag":"sun"}]';

/** What the command prints at a terminal, results and messages. */
async function runAtTerminal(args: string[], fetch: (request: Request) => Response) {
  using service = Bun.serve({ port: 0, fetch });
  const said: string[] = [];
  const exitCode = await runCommand([...args, "--url", service.url.origin], {
    isStdoutTty: true,
    isStderrTty: true,
    out: (text) => said.push(text),
    say: (text) => said.push(text),
  });
  return [exitCode, said];
}

test.each<[flags: string[], garden: string, messages: string[]]>([
  [[], "[]", ["There are no plants. Add one: plantstore plants add NAME"]],
  [
    ["--tag", "shade"],
    "[]",
    ['There are no plants with the tag "shade". Add one: plantstore plants add NAME'],
  ],
  [["--limit", "0"], moss, []],
])("plants list %j of %s", async (flags, garden, messages) => {
  const found = await runAtTerminal(["plants", "list", ...flags], () => new Response(garden));
  expect(found).toEqual([0, messages]);
});

describe("plants edit", () => {
  test.each<[flags: string[], putStatus: number, exitCode: number, message: string]>([
    [["--name", "Ivy"], 200, 0, "Changed plant 1: Moss (sun) is now Ivy (sun).\n"],
    [["--name", "Ivy", "--tag="], 200, 0, "Changed plant 1: Moss (sun) is now Ivy.\n"],
    [["--tag", "sun"], 500, 0, "Nothing to change: plant 1 is already Moss (sun).\n"],
    [[], 500, 2, "plantstore: Nothing to change. Give the plant a new --name, --tag or both."],
    [["--tag="], 412, 5, "plantstore: Somebody else keeps changing this plant. Try again."],
  ])("%j with a PUT that is %d", async (flags, putStatus, exitCode, message) => {
    const found = await runAtTerminal(["plants", "edit", "1", ...flags], ({ method }) => {
      if (method === "GET") return new Response(moss.slice(1, -1), { headers: { etag: '"1"' } });
      if (putStatus === 200) return new Response('{"id":1,"name":"Ivy","tag":"sun"}');
      const type = "urn:plantstore:problem:precondition-failed";
      const headers = { "content-type": "application/problem+json" };
      return new Response(JSON.stringify({ type, detail: "No." }), { status: putStatus, headers });
    });
    expect(found).toEqual([exitCode, [message]]);
  });
});
