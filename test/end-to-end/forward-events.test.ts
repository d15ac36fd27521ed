/** `plantstore events --forward`: every event reaches a receiver, signed and in order. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import { PlantStore } from "../../client/plant-store.ts";
import { forwardEvents, readTarget, type Timing } from "../../src/cli/forward-events.ts";
import { makeTerminal, runInProcess } from "../../testing/command.ts";
import { openGarden as openGardenAt, serveHere, waitFor } from "../../testing/running-service.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";

const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
const service = await serveHere();
const folder = makeTemporaryFolder();
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

/** Responds to an event by its number; `tries` counts how often it was sent, this time included. */
type Respond = (seq: number, tries: number) => Response | Promise<Response>;

/** A URL that takes the events up to `lastSeq`, and then responds with 410, which ends a command. */
function startReceiver(lastSeq: number, respond: Respond = () => new Response()) {
  const requests: { seq: number; body: string; headers: Record<string, string> }[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const body = await request.text();
      const { seq } = JSON.parse(body);
      requests.push({ seq, body, headers: Object.fromEntries(request.headers) });
      if (seq > lastSeq) return new Response(null, { status: 410 });
      const tries = requests.filter((each) => each.seq === seq).length;
      return respond(seq, tries);
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}/hook`,
    requests,
    /** The numbers of the events, in the order in which they came. */
    receivedSeqs: () => requests.map(({ seq }) => seq),
    [Symbol.dispose]: () => void server.stop(true),
  };
}

async function openGarden(user: string) {
  const { token, env: access } = await openGardenAt(service, { user });
  const env = { ...access, PLANTSTORE_WEBHOOK_SECRET: secret };
  const store = new PlantStore({ url: service.url, token });
  const state = join(folder.path, `${user}.state`);
  return {
    env,
    store,
    state,
    /** Each plant is one event. */
    addFerns: (count: number) =>
      store.createMany(Array.from({ length: count }, (_, index) => ({ name: `Fern ${index}` }))),
    readState: () => JSON.parse(readFileSync(state, "utf8")),
    forward: (url: string, ...flags: readonly string[]) =>
      runInProcess(["events", "--forward", url, "--state", state, ...flags], env),
  };
}

type Garden = Awaited<ReturnType<typeof openGarden>>;

/** The same as the command with --from start, with pauses and deadlines of the test's. */
async function forwardWith(garden: Garden, url: string, timing: Partial<Timing>) {
  const { env, store, state } = garden;
  const { terminal, written } = makeTerminal({ env });
  const call = { words: [], flags: { forward: url, state, from: "start" }, terminal };
  const { garden: name, lastEvent = 0 } = await store.me();
  const forwarding = { ...readTarget(call), garden: name, lastEvent, show: () => {} };
  const wholeTiming = { pause: async () => {}, timeoutMs: 15_000, ...timing };
  const error = await forwardEvents(store, call, forwarding, wholeTiming).catch((thrown) => thrown);
  return { error, ...written };
}

describe("a receiver of four events, who wants no more after the third,", () => {
  let garden: Garden;
  let receiver: ReturnType<typeof startReceiver>;
  let forwarded: Awaited<ReturnType<Garden["forward"]>>;

  beforeAll(async () => {
    garden = await openGarden("an.na é");
    await garden.store.put(9007199254740993n, { name: "Fern", tag: "é" });
    await garden.addFerns(3);
    receiver = startReceiver(3);
    forwarded = await garden.forward(receiver.url, "--from", "start");
  });
  afterAll(() => receiver[Symbol.dispose]());

  test("gets every event in order", () => {
    expect(receiver.receivedSeqs()).toEqual([1, 2, 3, 4]);
  });

  test("gets JSON with all digits of a plant's id", () => {
    const [first] = receiver.requests;

    expect(first?.headers["content-type"]).toBe("application/json");
    expect(first?.body).toEndWith('"plant":{"id":9007199254740993,"name":"Fern","tag":"é"}}');
  });

  test("gets an id of the garden's name, encoded, and the event's number", () => {
    expect(receiver.requests.map(({ headers }) => headers["webhook-id"])).toEqual([
      "an%2Ena%20%C3%A9_1",
      "an%2Ena%20%C3%A9_2",
      "an%2Ena%20%C3%A9_3",
      "an%2Ena%20%C3%A9_4",
    ]);
  });

  test("can verify each event with a library for Standard Webhooks", () => {
    const verified = receiver.requests.map(({ body, headers }) =>
      new Webhook(secret).verify(body, headers),
    );

    expect(verified).toMatchObject([{ seq: 1 }, { seq: 2 }, { seq: 3 }, { seq: 4 }]);
  });

  test("ends the command, which prints a line for each event that was taken", () => {
    expect(forwarded.exitCode).toBe(1);
    expect(forwarded.errors).toBe(
      "plantstore: The receiver responded to event 4 with 410: it wants no more events.\n",
    );
    expect(Bun.JSONL.parse(forwarded.out)).toEqual([
      { seq: 1, id: "an%2Ena%20%C3%A9_1", status: 200, tries: 1 },
      { seq: 2, id: "an%2Ena%20%C3%A9_2", status: 200, tries: 1 },
      { seq: 3, id: "an%2Ena%20%C3%A9_3", status: 200, tries: 1 },
    ]);
  });

  test("leaves a state file with the last event that was taken", () => {
    expect(garden.readState()).toEqual({ garden: "an.na é", url: receiver.url, seq: 3 });
  });
});

describe("an event that wasn't taken", () => {
  const failures = [500, 404, 302, 400, 429, 503, 500, 500, 500, 500, 500, 500];

  /** A receiver that responds to event 1 with each of these failures, and then takes events 1 and 2. */
  const startFailingReceiver = () =>
    startReceiver(2, (seq, tries) => {
      const failure = seq === 1 ? failures[tries - 1] : undefined;
      return new Response(null, { status: failure ?? 200, headers: { location: "/elsewhere" } });
    });

  test("is sent again after any response but 410, before the next event", async () => {
    const garden = await openGarden("again");
    await garden.addFerns(3);
    using receiver = startFailingReceiver();

    const { error } = await forwardWith(garden, receiver.url, {});

    expect(receiver.receivedSeqs()).toEqual([1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3]);
    expect(error.message).toContain("410");
  });

  test("keeps its id, so that the receiver can recognize it", async () => {
    const garden = await openGarden("same-id");
    await garden.addFerns(3);
    using receiver = startFailingReceiver();

    await forwardWith(garden, receiver.url, {});

    for (const { seq, headers } of receiver.requests) {
      expect(headers["webhook-id"]).toBe(`same-id_${seq}`);
    }
  });

  test("is sent after pauses that double, up to five minutes, less a random part", async () => {
    const garden = await openGarden("pauses");
    await garden.addFerns(3);
    using receiver = startFailingReceiver();
    const pausesMs: number[] = [];

    await forwardWith(garden, receiver.url, { pause: async (ms) => void pausesMs.push(ms) });

    expect(pausesMs).toHaveLength(12);
    for (const [index, pauseMs] of pausesMs.entries()) {
      const longestMs = Math.min(300_000, 2_000 * 2 ** index);
      expect(pauseMs).toBeGreaterThanOrEqual(longestMs / 2);
      expect(pauseMs).toBeLessThanOrEqual(longestMs);
    }
  });

  test("is reported each time, and its tries are counted when it is taken", async () => {
    const garden = await openGarden("reports");
    await garden.addFerns(3);
    using receiver = startFailingReceiver();

    const { out, said } = await forwardWith(garden, receiver.url, {});

    expect(said).toHaveLength(12);
    expect(said[0]).toMatch(
      /^Event 1 was not taken: the response is 500\. Next try in (?:1\.\d|2\.0) s\.$/,
    );
    expect(Bun.JSONL.parse(out)[0]).toMatchObject({ seq: 1, status: 200, tries: 13 });
  });

  test("because the receiver didn't respond in time is reported, and sent again", async () => {
    const garden = await openGarden("late");
    await garden.addFerns(1);
    using receiver = startReceiver(1, (_, tries) =>
      tries === 1 ? new Promise<Response>(() => {}) : new Response(null, { status: 410 }),
    );

    const { said } = await forwardWith(garden, receiver.url, { timeoutMs: 500 });

    expect(receiver.receivedSeqs()).toEqual([1, 1]);
    expect(said).toEqual([
      expect.stringMatching(/^Event 1 was not taken: no response within 0\.5 s\./),
    ]);
  });

  test("because the receiver is away is reported, before the next pause", async () => {
    const garden = await openGarden("away");
    await garden.addFerns(1);
    const receiver = startReceiver(1);
    receiver[Symbol.dispose]();

    const { error, said } = await forwardWith(garden, receiver.url, {
      async pause() {
        throw new Error("Enough: the pause begins.");
      },
    });

    expect(error.message).toBe("Enough: the pause begins.");
    expect(said).toEqual([expect.stringMatching(/^Event 1 was not taken: (?!no response)/)]);
  });
});

describe("forwarding", () => {
  test("begins with the next event, unless told otherwise", async () => {
    const garden = await openGarden("next");
    await garden.addFerns(2);
    using receiver = startReceiver(3);
    const running = garden.forward(receiver.url);
    await waitFor(() => Bun.file(garden.state).size > 0 || undefined);
    expect(garden.readState().seq).toBe(2);

    await garden.addFerns(2);
    await running;

    expect(receiver.receivedSeqs()).toEqual([3, 4]);
    expect(garden.readState().seq).toBe(3);
  });

  test("ends with 0 at SIGTERM, after the event under way", async () => {
    const garden = await openGarden("ends");
    await garden.addFerns(2);
    using receiver = startReceiver(2, () => {
      process.emit("SIGTERM");
      return new Response(null, { status: 201 });
    });

    const { exitCode } = await garden.forward(receiver.url, "--from", "start");

    expect(exitCode).toBe(0);
    expect(receiver.receivedSeqs()).toEqual([1]);
    expect(garden.readState().seq).toBe(1);
  });

  test("goes on after the last event that was taken, even with --from start", async () => {
    const garden = await openGarden("goes-on");
    await garden.addFerns(2);
    using receiver = startReceiver(2, () => {
      process.emit("SIGTERM");
      return new Response(null, { status: 201 });
    });
    await garden.forward(receiver.url, "--from", "start");

    const { exitCode } = await garden.forward(receiver.url, "--from", "start");

    expect(exitCode).toBe(0);
    expect(receiver.receivedSeqs()).toEqual([1, 2]);
    expect(garden.readState().seq).toBe(2);
  });

  test("sends an event again that wasn't taken when SIGTERM came", async () => {
    const garden = await openGarden("refused");
    await garden.addFerns(2);
    using receiver = startReceiver(2, (seq, tries) => {
      if (seq === 2) process.emit("SIGTERM");
      return new Response(null, { status: seq === 2 && tries === 1 ? 500 : 201 });
    });

    const stopped = await garden.forward(receiver.url, "--from", "start");
    expect(stopped.exitCode).toBe(0);
    expect(garden.readState().seq).toBe(1);

    const again = await garden.forward(receiver.url);
    expect(again.exitCode).toBe(0);
    expect(garden.readState().seq).toBe(2);
    expect(receiver.receivedSeqs()).toEqual([1, 2, 2]);
  });
});
