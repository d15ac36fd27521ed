/** What `plants edit` says, above all while somebody else changes the plant. */
import { expect, test } from "bun:test";
import { makeTerminal } from "../../test/command.ts";
import { runCommand } from "./run.ts";

const moss = '{"id":1,"name":"Moss","tag":"sun"}';

test.each<[flags: string[], putStatus: number, exitCode: number, message: string]>([
  [["--name", "Ivy"], 200, 0, "Changed plant 1: Moss (sun) is now Ivy (sun).\n"],
  [["--tag", "sun"], 500, 0, "Nothing to change: plant 1 is already Moss (sun).\n"],
  [["--tag="], 412, 5, "plantstore: Somebody else keeps changing this plant. Try again."],
])("plants edit %j with a PUT that is %d", async (flags, putStatus, expected, message) => {
  const fetch = ({ method }: Request) => {
    if (method === "GET") return new Response(moss, { headers: { etag: '"1"' } });
    if (putStatus === 200) return new Response(moss.replace("Moss", "Ivy"));
    const type = "urn:plantstore:problem:precondition-failed";
    const headers = { "content-type": "application/problem+json" };
    return new Response(JSON.stringify({ type, detail: "No." }), { status: putStatus, headers });
  };
  using service = Bun.serve({ port: 0, fetch });
  const env = { PLANTSTORE_TOKEN: "somebody", PLANTSTORE_URL: service.url.origin };
  const { terminal, written } = makeTerminal({ env, isStdoutTty: true, isStderrTty: true });
  const exitCode = await runCommand(["plants", "edit", "1", ...flags], terminal);
  expect([exitCode, written.out + written.said]).toEqual([expected, message]);
});
