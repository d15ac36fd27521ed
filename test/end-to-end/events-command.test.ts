/** `plantstore events` against a running service, in scripts. */
import { Database } from "bun:sqlite";
import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { runCommand } from "../../src/cli/run.ts";
import { makeTerminal, runInProcess } from "../command.ts";
import { makeToken, startService } from "./running-service.ts";

setDefaultTimeout(120_000);

const service = await startService();
afterAll(() => service[Symbol.asyncDispose]());

async function openGarden(user: string) {
  const token = await makeToken(service, user);
  const variables = { PLANTSTORE_URL: service.url, PLANTSTORE_TOKEN: token };
  return {
    variables,
    run: (...args: string[]) => runInProcess(["events", ...args], variables),
    addMany: (plants: readonly object[]) =>
      service.call("POST /plants/bulk", { token, body: JSON.stringify(plants) }),
    add: (plant: object) => service.call("POST /plants", { token, body: JSON.stringify(plant) }),
  };
}

const seqsOf = (out: string) => [...out.matchAll(/"seq":(\d+)/g)].map(([, seq]) => Number(seq));
const count = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, at) => from + at);
const ferns = (many: number) => Array.from({ length: many }, () => ({ name: "Fern" }));

/** Follows until it has printed so much, and stops it as Ctrl+C does. */
async function followUntil(
  variables: Record<string, string>,
  flags: readonly string[],
  isEnough: (out: string) => boolean,
  isStdoutTty = false,
): Promise<string> {
  let all = "";
  const out = (text: string) => {
    all += text;
    if (isEnough(all)) process.emit("SIGINT");
  };
  const { terminal, written } = makeTerminal({ env: variables, out, isStdoutTty });
  expect(await runCommand(["events", "--follow", ...flags], terminal)).toBe(0);
  expect(written.said).toEqual([]);
  return all;
}

test.each([
  [[], 1_021],
  [["--last", "1003"], 28],
  [["--last", "5000"], 1],
  [["--after", "1028"], 1_029],
  [["--since", "1h"], 1],
])("--follow %j of 1,030 events begins with event %d", async (flags, first) => {
  const { variables, add, addMany } = await openGarden(`follower${flags.join()}`);
  await addMany(ferns(1_030));
  let hasAdded = false;
  const seen = await followUntil(variables, flags, (out) => {
    if (seqsOf(out).at(-1) === 1_030 && !hasAdded) {
      hasAdded = true;
      add({ name: "Moss" });
    }
    return out.includes("Moss");
  });
  expect(seqsOf(seen)).toEqual(count(first, 1_031));
});

test("--last, --since, --user and --plant choose events", async () => {
  const { variables, run, add, addMany } = await openGarden("dora");
  await add({ id: 5, name: "Moss" });
  await addMany(ferns(2_499));
  const database = new Database(service.database);
  const ago = Date.now() - 3 * 3_600_000;
  database.run("UPDATE events SET at_ms = ? WHERE garden = 'dora' AND seq <= 1200", [ago]);
  database.run("UPDATE events SET user = 'ed' WHERE garden = 'dora' AND seq IN (7, 900, 2000)");
  database.close();
  const token = variables.PLANTSTORE_TOKEN;
  const change = (request: string) => service.call(request, { token, body: '{"name":"Rose"}' });
  const choose = async (...flags: string[]) => seqsOf((await run(...flags)).out);
  expect(await choose()).toEqual(count(1, 2_500));
  expect(await choose("--last", "3")).toEqual([2_498, 2_499, 2_500]);
  expect(await choose("--last", "0")).toEqual([]);
  expect(await choose("--since", "2h")).toEqual(count(1_201, 2_500));
  expect(await choose("--since", "4h")).toEqual(count(1, 2_500));
  expect(await choose("--user", "ed")).toEqual([7, 900, 2_000]);
  expect(await choose("--user", "ed", "--last", "2")).toEqual([900, 2_000]);
  expect(await choose("--user", "ed", "--last", "9")).toEqual([7, 900, 2_000]);
  expect(await choose("--user", "ed", "--since", "2h")).toEqual([2_000]);
  expect(await choose("--plant", "5")).toEqual([1]);
  expect(await choose("--plant", "5", "--user", "ed")).toEqual([]);
  const followed = await followUntil(variables, ["--plant", "5"], (out) => {
    if (seqsOf(out).length === 1) change("PUT /plants/6").then(() => change("PUT /plants/5"));
    return out.includes("replaced");
  });
  expect(seqsOf(followed)).toEqual([1, 2_502]);
});

test.each([
  ["--last 3 --after 7", "Use only one of --last, --since and --after."],
  ["--last -1", "--last"],
  ["--since yesterday", "--since must be a time such as 30m, 2h or 7d"],
  ["--since 0h", "--since must be a time"],
  ["--plant fern", "--plant must be an integer such as 7"],
])("events %s is refused in one line", async (flags, message) => {
  const { exitCode, errors } = await runInProcess(["events", ...flags.split(" ")], {
    PLANTSTORE_TOKEN: service.token,
  });
  expect([exitCode, errors.split("\n").length]).toEqual([2, 2]);
  expect(errors).toContain(message);
});

test("columns stay aligned while events come one by one", async () => {
  const { variables, add } = await openGarden("finn");
  await add({ name: "Oak" });
  let added = 0;
  const table = await followUntil(
    variables,
    [],
    (out) => {
      if (added++ < 10)
        add({
          id: added + 10 ** (added % 6),
          name: "Monstera".repeat(1 + (added % 3)),
          tag: "hall",
        });
      return out.includes("\n11 ");
    },
    true,
  );
  const [header = "", ...rows] = table.trimEnd().split("\n");
  expect(rows.length).toBe(11);
  for (const name of ["WHEN", "WHO", "WHAT", "ID", "NAME"]) {
    const at = header.indexOf(name);
    expect(rows.filter((row) => row[at - 1] !== " " || row[at] === " ")).toEqual([]);
  }
});
