/** `plantstore events` against a running service, in scripts. */
import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { makeTerminal, runHere, runInProcess } from "../../testing/command.ts";
import { openGarden as open, serveHere } from "../../testing/running-service.ts";

const service = await serveHere();
afterAll(() => service[Symbol.asyncDispose]());

async function openGarden(user: string) {
  const { env, call, run } = await open(service, { user });
  return {
    env,
    call: (request: string, body: object) => call(request, { body: JSON.stringify(body) }),
    run: (flags = "") => run(`events ${flags}`.trim()),
  };
}

const seqsOf = (out: string) => [...out.matchAll(/"seq":(\d+)/g)].map(([, seq]) => Number(seq));
const count = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, at) => from + at);
const ferns = (many: number) => Array.from({ length: many }, () => ({ name: "Fern" }));

/** Follows until it has printed so much, and stops it as Ctrl+C does. */
async function followUntil(
  env: Record<string, string>,
  flags: readonly string[],
  isEnough: (out: string) => boolean,
): Promise<string> {
  let all = "";
  const out = (text: string) => {
    all += text;
    if (isEnough(all)) process.emit("SIGINT");
  };
  const { terminal, written } = makeTerminal({ env, out });
  expect(await runHere(["events", "--follow", ...flags], terminal)).toBe(0);
  expect(written.said).toEqual([]);
  return all;
}

test("are printed one JSON object per line, with exact ids", async () => {
  const { call, run } = await openGarden("ann");
  await call("POST /plants/bulk", [{ name: "Moss" }, { name: "Ivy" }]);
  await call("PUT /plants/9007199254740993", { name: "Fern" });
  const { out, errors, exitCode } = await run();
  expect([exitCode, errors, seqsOf(out)]).toEqual([0, "", [1, 2, 3]]);
  const last = out.trimEnd().split("\n").at(-1);
  expect(last).toMatch(/^\{"seq":3,"type":"plant.created","at":"[^"]+","user":"ann","plant":/);
  expect(last).toEndWith('"plant":{"id":9007199254740993,"name":"Fern","tag":""}}');
});

test("--follow begins where the flags say, and goes on with what happens", async () => {
  const { env, call } = await openGarden("follower");
  await call("POST /plants/bulk", ferns(1_030));
  let last = 1_030;
  for (const [flags, first] of [
    [[], 1_021],
    [["--last", "1003"], 29],
    [["--after", "1028", "--last", "2"], 1_031],
    [["--since", "1h"], 1],
  ] as const) {
    let hasAdded = false;
    const seen = await followUntil(env, flags, (out) => {
      const isCaughtUp = seqsOf(out).at(-1) === last;
      if (isCaughtUp && !hasAdded) void call("POST /plants", { name: "Moss" });
      hasAdded ||= isCaughtUp;
      return seqsOf(out).at(-1) === last + 1;
    });
    last++;
    expect([flags, seqsOf(seen)]).toEqual([flags, count(first, last)]);
  }
});

test("--last, --since, --user and --plant choose events", async () => {
  const { env, run, call } = await openGarden("dora");
  await call("POST /plants", { id: 5, name: "Moss" });
  await call("POST /plants/bulk", ferns(2_499));
  using database = new Database(service.database);
  const ago = Date.now() - 3 * 3_600_000;
  database.run("UPDATE events SET at_ms = ? WHERE garden = 'dora' AND seq <= 1200", [ago]);
  database.run("UPDATE events SET user = 'ed' WHERE garden = 'dora' AND seq IN (7, 900, 2000)");
  for (const [flags, chosen] of [
    ["", count(1, 2_500)],
    ["--last 3", [2_498, 2_499, 2_500]],
    ["--last 0", []],
    ["--since 2h", count(1_201, 2_500)],
    ["--user ed", [7, 900, 2_000]],
    ["--user ed --last 2", [900, 2_000]],
    ["--user ed --since 2h --after 7", [2_000]],
    ["--plant 5", [1]],
  ] as const) {
    const { out } = await run(flags);
    expect([flags, seqsOf(out)]).toEqual([flags, [...chosen]]);
  }
  const followed = await followUntil(env, ["--plant", "5"], (out) => {
    const change = (id: number) => call(`PUT /plants/${id}`, { name: "Rose" });
    if (seqsOf(out).length === 1) void change(6).then(() => change(5));
    return out.includes("replaced");
  });
  expect(seqsOf(followed)).toEqual([1, 2_502]);
  // Of those, it shows what is still kept.
  database.run("DELETE FROM events WHERE garden = 'dora' AND seq <= 2000");
  expect(seqsOf((await run("--last 1000")).out)).toEqual(count(2_001, 2_502));
});

test("events that a service doesn't keep are reported in one line", async () => {
  await using quiet = await serveHere({ events: "off" });
  const env = { PLANTSTORE_URL: quiet.url, PLANTSTORE_TOKEN: quiet.token };
  expect(await runInProcess("events --follow", env)).toEqual({
    exitCode: 1,
    out: "",
    errors: "plantstore: This service keeps no events: its setting --events is off.\n",
  });
});
