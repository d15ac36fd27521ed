/** `plants list` at a terminal when there is nothing to list. */
import { afterAll, beforeAll, expect, test } from "bun:test";
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

test.each<[flags: string[], garden: string, messages: string[]]>([
  [[], "[]", ["There are no plants. Add one: plantstore plants add NAME"]],
  [
    ["--tag", "shade"],
    "[]",
    ['There are no plants with the tag "shade". Add one: plantstore plants add NAME'],
  ],
  [["--limit", "0"], moss, []],
])("plants list %j of %s", async (flags, garden, messages) => {
  using service = Bun.serve({ port: 0, fetch: () => new Response(garden) });
  const said: string[] = [];
  const exitCode = await runCommand(["plants", "list", "--url", service.url.origin, ...flags], {
    isStdoutTty: true,
    isStderrTty: true,
    out: (text) => said.push(text),
    say: (text) => said.push(text),
  });
  expect([exitCode, said]).toEqual([0, messages]);
});
