/** `plantstore events` against a running service, in scripts. */
import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import {
  gather,
  makeToken,
  runProgram,
  spawnProgram,
  startService,
  waitFor,
} from "./running-service.ts";

setDefaultTimeout(120_000);

const service = await startService();
afterAll(() => service[Symbol.asyncDispose]());

async function openGarden(user: string) {
  const token = await makeToken(service, user);
  const variables = { PLANTSTORE_URL: service.url, PLANTSTORE_TOKEN: token };
  return {
    variables,
    add: (plant: object) => service.call("POST /plants", { token, body: JSON.stringify(plant) }),
  };
}

test("events are printed one JSON object per line, all pages, with exact ids", async () => {
  const { variables, add } = await openGarden("ann");
  await add({ id: 1, name: "x".repeat(200) });
  const many = Array.from({ length: 300 }, () => ({ name: "x".repeat(200) }));
  const token = variables.PLANTSTORE_TOKEN;
  await service.call("POST /plants/bulk", { token, body: JSON.stringify(many) });
  const last = '{"id":9007199254740993,"name":"Fern","tag":""}';
  await service.call("POST /plants", { token, body: last });
  const { out, errors, exitCode } = await runProgram(["events"], variables);
  expect([exitCode, errors]).toEqual([0, ""]);
  const lines = out.trimEnd().split("\n");
  expect(lines.map((line) => JSON.parse(line).seq)).toEqual(lines.map((_, index) => index + 1));
  expect(lines).toHaveLength(302);
  const rest = await runProgram(["events", "--json", "--after", "301"], variables);
  expect(rest.out).toBe(`${lines.at(-1)}\n`);
  expect(rest.out).toMatch(
    /^\{"seq":302,"type":"plant.created","at":"[^"]+","user":"ann","plant":/,
  );
  expect(rest.out).toEndWith(`"plant":${last}}\n`);
});

test("events are followed as they happen, and Ctrl+C ends that", async () => {
  const { variables, add } = await openGarden("bob");
  await add({ name: "Moss" });
  const child = spawnProgram(["events", "--follow"], variables);
  const { written, reading } = gather(child);
  const hasLine = (text: string) => waitFor(() => written.out.includes(text) || undefined);
  await hasLine("Moss");
  await add({ name: "Fern" });
  await hasLine("Fern");
  child.kill("SIGINT");
  expect(await child.exited).toBe(0);
  await reading;
  expect([written.out.trimEnd().split("\n").length, written.errors]).toEqual([2, ""]);
});

test("a service that keeps no events is reported in one line", async () => {
  await using quiet = await startService({ args: ["--events", "off"] });
  const variables = { PLANTSTORE_URL: quiet.url, PLANTSTORE_TOKEN: quiet.token };
  expect(await runProgram(["events", "--follow"], variables)).toEqual({
    exitCode: 1,
    out: "",
    errors: "plantstore: This service keeps no events: its setting --events is off.\n",
  });
});
