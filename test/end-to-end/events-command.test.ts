/** `plantstore events` against a running service, in scripts. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { makeTerminal, runHere, runInProcess } from "../../testing/command.ts";
import { openGarden as openGardenAt, serveHere } from "../../testing/running-service.ts";

const service = await serveHere();
afterAll(() => service[Symbol.asyncDispose]());

async function openGarden(user: string) {
  const { env, call, run } = await openGardenAt(service, { user });
  return {
    env,
    run,
    call: (request: string, body: object) => call(request, { body: JSON.stringify(body) }),
    /** Each plant is one event. */
    addFerns: (count: number) =>
      call("POST /plants/bulk", {
        body: JSON.stringify(Array.from({ length: count }, () => ({ name: "Fern" }))),
      }),
  };
}

/** The numbers of the events that a command printed. */
const readSeqs = (out: string) => [...out.matchAll(/"seq":(\d+)/g)].map(([, seq]) => Number(seq));

/** All numbers from the first to the last, both included. */
const range = (first: number, last: number) =>
  Array.from({ length: last - first + 1 }, (_, index) => first + index);

/**
 * Follows events until it has printed so much, and stops as Ctrl+C does. `isEnough` is called with
 * everything that was printed so far. Returns all of that.
 */
async function followUntil(
  env: Record<string, string>,
  flags: readonly string[],
  isEnough: (printed: string) => boolean,
): Promise<string> {
  let printed = "";
  const { terminal, written } = makeTerminal({
    env,
    out(text) {
      printed += text;
      if (isEnough(printed)) process.emit("SIGINT");
    },
  });
  expect(await runHere(["events", "--follow", ...flags], terminal)).toBe(0);
  expect(written.said).toEqual([]);
  return printed;
}

describe("events", () => {
  test("are printed one JSON object per line, in order", async () => {
    const { call, run } = await openGarden("ann");
    await call("POST /plants/bulk", [{ name: "Moss" }, { name: "Ivy" }]);
    await call("PUT /plants/7", { name: "Fern" });

    const { exitCode, out, errors } = await run("events");

    expect(exitCode).toBe(0);
    expect(errors).toBe("");
    const lines = out.trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line).seq)).toEqual([1, 2, 3]);
  });

  test("have a type, a time, a user and a plant, with all digits of its id", async () => {
    const { call, run } = await openGarden("digits");
    await call("PUT /plants/9007199254740993", { name: "Fern" });

    const { out } = await run("events");

    expect(out.replace(/"at":"[^"]+"/, '"at":"2026-11-15T22:00:00.000Z"')).toBe(
      '{"seq":1,"type":"plant.created","at":"2026-11-15T22:00:00.000Z","user":"digits",' +
        '"plant":{"id":9007199254740993,"name":"Fern","tag":""}}\n',
    );
  });

  test("that a service doesn't keep are reported in one line", async () => {
    await using quietService = await serveHere({ events: "off" });
    const env = { PLANTSTORE_URL: quietService.url, PLANTSTORE_TOKEN: quietService.token };

    expect(await runInProcess("events --follow", env)).toEqual({
      exitCode: 1,
      out: "",
      errors: "plantstore: This service keeps no events: its setting --events is off.\n",
    });
  });
});

describe("of 2,500 events", () => {
  let run: Awaited<ReturnType<typeof openGarden>>["run"];

  // The first 1,200 are three hours old, and three are of the user ed.
  beforeAll(async () => {
    const garden = await openGarden("dora");
    run = garden.run;
    await garden.call("POST /plants", { id: 5, name: "Moss" });
    await garden.addFerns(2_499);
    using database = new Database(service.database);
    const threeHoursAgoMs = Date.now() - 3 * 3_600_000;
    database.run("UPDATE events SET at_ms = ? WHERE garden = 'dora' AND seq <= 1200", [
      threeHoursAgoMs,
    ]);
    database.run("UPDATE events SET user = 'ed' WHERE garden = 'dora' AND seq IN (7, 900, 2000)");
  });

  test.each<[command: string, seqs: number[]]>([
    ["events", range(1, 2_500)],
    ["events --last 3", [2_498, 2_499, 2_500]],
    ["events --last 0", []],
    ["events --since 2h", range(1_201, 2_500)],
    ["events --user ed", [7, 900, 2_000]],
    ["events --user ed --last 2", [900, 2_000]],
    ["events --user ed --since 2h --after 7", [2_000]],
    ["events --plant 5", [1]],
  ])("plantstore %s prints the ones that its flags choose", async (command, seqs) => {
    const { out } = await run(command);

    expect(readSeqs(out)).toEqual(seqs);
  });
});

test("--last prints what is left of the last events if some are no longer kept", async () => {
  const { addFerns, run } = await openGarden("forgetful");
  await addFerns(2_502);
  using database = new Database(service.database);
  database.run("DELETE FROM events WHERE garden = 'forgetful' AND seq <= 2000");

  const { out } = await run("events --last 1000");

  expect(readSeqs(out)).toEqual(range(2_001, 2_502));
});

describe("--follow", () => {
  test.each<[flags: string[], first: number]>([
    [[], 1_021],
    [["--last", "1003"], 28],
    [["--after", "1020", "--last", "2"], 1_029],
    [["--since", "1h"], 1],
  ])("with the flags %j begins at %d of 1,030 events, and goes on", async (flags, first) => {
    const { env, call, addFerns } = await openGarden(`follower-${first}`);
    await addFerns(1_030);
    let hasAdded = false;

    const printed = await followUntil(env, flags, (printedSoFar) => {
      const lastSeq = readSeqs(printedSoFar).at(-1);
      if (lastSeq === 1_030 && !hasAdded) {
        hasAdded = true;
        void call("POST /plants", { name: "Moss" });
      }
      return lastSeq === 1_031;
    });

    expect(readSeqs(printed)).toEqual(range(first, 1_031));
  });

  test("--plant goes on with what happens to that plant only", async () => {
    const { env, call, addFerns } = await openGarden("follower-of-5");
    await call("POST /plants", { id: 5, name: "Moss" });
    await addFerns(2_499);
    let hasChanged = false;
    async function changeAnotherPlantAndThisOne(): Promise<void> {
      await call("PUT /plants/6", { name: "Rose" });
      await call("PUT /plants/5", { name: "Rose" });
    }

    const printed = await followUntil(env, ["--plant", "5"], (printedSoFar) => {
      if (!hasChanged) void changeAnotherPlantAndThisOne();
      hasChanged = true;
      return printedSoFar.includes("replaced");
    });

    expect(readSeqs(printed)).toEqual([1, 2_502]);
  });
});
