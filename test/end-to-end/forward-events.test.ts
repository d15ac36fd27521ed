/** `plantstore events --forward`: every event reaches a receiver, signed and in order. */
import { afterAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import { PlantStore } from "../../client/plant-store.ts";
import { forwardEvents, readTarget, type Timing } from "../../src/cli/forward-events.ts";
import { makeTerminal, runInProcess } from "../command.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { openGarden as open, serveHere, waitFor } from "./running-service.ts";

const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
const service = await serveHere();
const folder = makeTemporaryFolder();
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

interface Received {
  readonly seq: number;
  readonly id: string;
  readonly body: string;
  readonly headers: Record<string, string>;
}

type Respond = (received: Received, tries: number) => Response | Promise<Response>;

/** A URL that takes `count` events, and then responds with 410, which ends a command. */
function startReceiver(
  count: number,
  respond: Respond = () => new Response(null, { status: 204 }),
) {
  const requests: Received[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const body = await request.text();
      const { seq } = JSON.parse(body);
      const headers = Object.fromEntries(request.headers);
      const received = { seq, id: headers["webhook-id"] ?? "", body, headers };
      requests.push(received);
      if (seq > count) return new Response(null, { status: 410 });
      return respond(received, requests.filter((each) => each.seq === seq).length);
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}/hook`,
    requests,
    seqs: () => requests.map(({ seq }) => seq),
    [Symbol.dispose]: () => void server.stop(true),
  };
}

async function openGarden(user: string) {
  const { token, env: access } = await open(service, { user });
  const env = { ...access, PLANTSTORE_WEBHOOK_SECRET: secret };
  const store = new PlantStore({ url: service.url, token });
  const state = join(folder.path, `${user}.state`);
  return {
    env,
    store,
    state,
    add: (count: number) =>
      store.createMany(Array.from({ length: count }, (_, at) => ({ name: `Fern ${at}` }))),
    readState: () => JSON.parse(readFileSync(state, "utf8")),
    forward: (url: string, ...more: string[]) =>
      runInProcess(["events", "--forward", url, "--state", state, ...more], env),
  };
}

type Garden = Awaited<ReturnType<typeof openGarden>>;

/** The same as the command, with pauses and deadlines of the test's. */
async function forwardWith(garden: Garden, url: string, timing: Partial<Timing>) {
  const { env, store, state } = garden;
  const { terminal, written } = makeTerminal({ env });
  const call = { words: [], flags: { forward: url, state, from: "start" }, terminal };
  const { garden: name, lastEvent = 0 } = await store.me();
  const forwarding = { ...readTarget(call), garden: name, lastEvent, show: () => {} };
  const all = { pause: async () => {}, timeoutMs: 15_000, ...timing };
  const error = await forwardEvents(store, call, forwarding, all).catch((thrown) => thrown);
  return { error, ...written };
}

describe("a receiver", () => {
  test("gets every event in order, signed by Standard Webhooks, with the id's digits", async () => {
    const garden = await openGarden("an.na é");
    await garden.store.put(9007199254740993n, { name: "Fern", tag: "é" });
    await garden.add(3);
    using receiver = startReceiver(3);
    const { exitCode, out, errors } = await garden.forward(receiver.url, "--from", "start");
    expect([exitCode, errors]).toEqual([
      1,
      "plantstore: The receiver responded to event 4 with 410: it wants no more events.\n",
    ]);
    expect(receiver.seqs()).toEqual([1, 2, 3, 4]);
    const [first] = receiver.requests as [Received];
    expect(first.id).toBe("an%2Ena%20%C3%A9_1");
    expect(first.headers["content-type"]).toBe("application/json");
    expect(first.body).toEndWith('"plant":{"id":9007199254740993,"name":"Fern","tag":"é"}}');
    const verified = receiver.requests.map(({ body, headers }) =>
      new Webhook(secret).verify(body, headers),
    );
    expect(verified).toMatchObject([1, 2, 3, 4].map((seq) => ({ seq })));
    const other = new Webhook(`whsec_${Buffer.alloc(32, 8).toString("base64")}`);
    expect(() => other.verify(first.body, first.headers)).toThrow("No matching signature");
    expect(Bun.JSONL.parse(out)).toEqual(
      [1, 2, 3].map((seq) => ({ seq, id: `an%2Ena%20%C3%A9_${seq}`, status: 204, tries: 1 })),
    );
    expect(garden.readState()).toEqual({ garden: "an.na é", url: receiver.url, seq: 3 });
  });

  test("gets what happens next, and later what it missed while nothing ran", async () => {
    const garden = await openGarden("ben");
    await garden.add(2);
    using receiver = startReceiver(3);
    const running = garden.forward(receiver.url);
    await waitFor(() => Bun.file(garden.state).size > 0 || undefined);
    expect(garden.readState().seq).toBe(2);
    await garden.add(2);
    expect((await running).exitCode).toBe(1);
    expect(receiver.seqs()).toEqual([3, 4]);
    expect((await garden.forward(receiver.url, "--from", "start")).exitCode).toBe(1);
    expect(receiver.seqs()).toEqual([3, 4, 4]);
  });

  test("is tried again with the same id after any other response, with longer pauses", async () => {
    const garden = await openGarden("cem");
    await garden.add(3);
    const statuses = [500, 404, 302, 400, 429, 503, 500, 500, 500, 500, 500, 500];
    using receiver = startReceiver(2, ({ seq }, tries) => {
      const status = (seq === 1 && statuses[tries - 1]) || 200;
      return new Response(null, { status, headers: { location: "/elsewhere" } });
    });
    const pauses: number[] = [];
    const pause = async (ms: number) => void pauses.push(ms);
    const { error, out, said } = await forwardWith(garden, receiver.url, { pause });
    expect(error.message).toContain("410");
    expect(receiver.seqs()).toEqual([...statuses.map(() => 1), 1, 2, 3]);
    expect(new Set(receiver.requests.map(({ id }) => id)).size).toBe(3);
    for (const [index, pauseMs] of pauses.entries()) {
      const longest = Math.min(300_000, 2_000 * 2 ** index);
      expect(pauseMs).toBeWithin(longest / 2, longest + 1);
    }
    expect(JSON.parse(out.split("\n")[0] ?? "")).toMatchObject({ seq: 1, status: 200, tries: 13 });
    expect(said).toHaveLength(statuses.length);
    expect(said[0]).toMatch(
      /^Event 1 was not taken: the response is 500\. Next try in (?:1\.\d|2\.0) s\.$/,
    );
  });

  test("is tried again if it is late, or away", async () => {
    const garden = await openGarden("dan");
    await garden.add(2);
    const late = Promise.withResolvers<Response>();
    using receiver = startReceiver(1, (_, tries) =>
      tries === 1 ? late.promise : new Response("thanks"),
    );
    const { said } = await forwardWith(garden, receiver.url, { timeoutMs: 50 });
    late.resolve(new Response());
    // A busy machine may be late more often.
    expect(receiver.seqs().slice(0, 2)).toEqual([1, 1]);
    expect(receiver.seqs()).toContain(2);
    expect(said[0]).toStartWith("Event 1 was not taken: no response within 0.1 s.");
    receiver[Symbol.dispose]();
    const pause = () => Promise.reject(new Error("enough"));
    const { error, said: away } = await forwardWith(garden, receiver.url, { pause });
    expect(error.message).toBe("enough");
    expect(away[0]).toStartWith("Event 2 was not taken: ");
  });

  test("gets the delivery under way before SIGTERM ends the command", async () => {
    const garden = await openGarden("eva");
    await garden.add(2);
    using receiver = startReceiver(2, () => {
      process.emit("SIGTERM");
      return new Response(null, { status: 201 });
    });
    const { exitCode, errors } = await garden.forward(receiver.url, "--from", "start");
    expect([exitCode, errors]).toEqual([0, ""]);
    expect([receiver.seqs(), garden.readState().seq]).toEqual([[1], 1]);
  });

  test("is stopped by SIGTERM in a pause, and the event is sent next time", async () => {
    const garden = await openGarden("fay");
    await garden.add(1);
    using receiver = startReceiver(1, (_, tries) => {
      setTimeout(() => process.emit("SIGTERM"), 0);
      return new Response(null, { status: tries === 1 ? 500 : 200 });
    });
    expect((await garden.forward(receiver.url, "--from", "start")).exitCode).toBe(0);
    expect(garden.readState().seq).toBe(0);
    expect((await garden.forward(receiver.url)).exitCode).toBe(0);
    expect(garden.readState().seq).toBe(1);
  });
});
