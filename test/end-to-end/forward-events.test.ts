/** `plantstore events --forward`: every event reaches a receiver, signed and in order. */
import { afterAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import { PlantStore } from "../../client/plant-store.ts";
import { forwardEvents, readTarget, type Timing } from "../../src/cli/forward-events.ts";
import { makeTerminal, runInProcess } from "../../testing/command.ts";
import { openGarden as open, serveHere, waitFor } from "../../testing/running-service.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";

const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
const service = await serveHere();
const folder = makeTemporaryFolder();
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

type Respond = (seq: number, tries: number) => Response | Promise<Response>;

/** A URL that takes `count` events, and then responds with 410, which ends a command. */
function startReceiver(count: number, respond: Respond = () => new Response()) {
  const requests: { seq: number; body: string; headers: Record<string, string> }[] = [];
  const seqs = () => requests.map(({ seq }) => seq);
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const body = await request.text();
      const { seq } = JSON.parse(body);
      requests.push({ seq, body, headers: Object.fromEntries(request.headers) });
      if (seq > count) return new Response(null, { status: 410 });
      return respond(seq, seqs().filter((each) => each === seq).length);
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}/hook`,
    requests,
    seqs,
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
    const [first] = receiver.requests;
    expect(first?.headers).toMatchObject({
      "webhook-id": "an%2Ena%20%C3%A9_1",
      "content-type": "application/json",
    });
    expect(first?.body).toEndWith('"plant":{"id":9007199254740993,"name":"Fern","tag":"é"}}');
    const verified = receiver.requests.map(({ body, headers }) =>
      new Webhook(secret).verify(body, headers),
    );
    expect(verified).toMatchObject([1, 2, 3, 4].map((seq) => ({ seq })));
    expect(Bun.JSONL.parse(out)).toEqual(
      [1, 2, 3].map((seq) => ({ seq, id: `an%2Ena%20%C3%A9_${seq}`, status: 200, tries: 1 })),
    );
    expect(garden.readState()).toEqual({ garden: "an.na é", url: receiver.url, seq: 3 });
  });

  test("is tried again with the same id after any other response, with longer pauses", async () => {
    const garden = await openGarden("cem");
    await garden.add(3);
    const statuses = [500, 404, 302, 400, 429, 503, 500, 500, 500, 500, 500, 500];
    using receiver = startReceiver(2, (seq, tries) => {
      const status = (seq === 1 && statuses[tries - 1]) || 200;
      return new Response(null, { status, headers: { location: "/elsewhere" } });
    });
    const pauses: number[] = [];
    const pause = async (ms: number) => void pauses.push(ms);
    const { error, out, said } = await forwardWith(garden, receiver.url, { pause });
    expect(error.message).toContain("410");
    expect(receiver.seqs()).toEqual([...statuses.map(() => 1), 1, 2, 3]);
    expect(new Set(receiver.requests.map(({ headers }) => headers["webhook-id"])).size).toBe(3);
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
    await garden.add(1);
    using receiver = startReceiver(1, () => new Promise<Response>(() => {}));
    let pauses = 0;
    const pause = async () => {
      if (++pauses === 2) throw new Error("enough");
      receiver[Symbol.dispose]();
    };
    const { error, said } = await forwardWith(garden, receiver.url, { timeoutMs: 500, pause });
    expect(error.message).toBe("enough");
    expect(said).toEqual([
      expect.stringMatching(/^Event 1 was not taken: no response within 0\.5 s\./),
      expect.stringMatching(/^Event 1 was not taken: (?!no response)/),
    ]);
  });

  test("gets what happens next, what is under way when SIGTERM comes, and later what it missed", async () => {
    const garden = await openGarden("ben");
    await garden.add(2);
    using receiver = startReceiver(4, (seq, tries) => {
      process.emit("SIGTERM");
      return new Response(null, { status: seq === 4 && tries === 1 ? 500 : 201 });
    });
    const running = garden.forward(receiver.url);
    await waitFor(() => Bun.file(garden.state).size > 0 || undefined);
    expect(garden.readState().seq).toBe(2);
    await garden.add(2);
    expect([(await running).exitCode, garden.readState().seq]).toEqual([0, 3]);
    for (const seq of [3, 4]) {
      const stopped = await garden.forward(receiver.url, "--from", "start");
      expect([stopped.exitCode, garden.readState().seq]).toEqual([0, seq]);
    }
    expect(receiver.seqs()).toEqual([3, 4, 4]);
  });
});
