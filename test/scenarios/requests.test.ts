/** What the contract table cannot see of requests: connections, refusals, and what is logged. */
import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { overloaded, PlantStoreError } from "../../src/domain/errors.ts";
import { createLog } from "../../src/log.ts";
import { openWorld } from "./scenario.ts";

let logged = "";
const log = createLog("json", (lines) => {
  logged += lines;
});
const world = openWorld("SQLite", {}, log);

test("a connection is kept after a body, and closed after one that is longer than any accepted", async () => {
  const token = await world.makeToken({ user: "alice" });
  const connectionAfter = async (name: string, credential = token) =>
    (await world.call(credential, "POST /plants", { name })).headers.get("connection");
  expect(await connectionAfter("")).toBeNull();
  expect(await connectionAfter("Fern")).toBeNull();
  expect(await connectionAfter("x".repeat(70_000))).toBeNull();
  expect(await connectionAfter("x".repeat(1_100_000))).toBe("close");
  expect(await connectionAfter("x".repeat(1_100_000), "unknown")).toBe("close");
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/jsonl" };
  const many = await world.fetch("POST /plants/bulk", { headers, body: "x".repeat(70_000) });
  expect([many.status, many.headers.get("connection")]).toEqual([200, null]);
});

test("an error of many says how many more there are", async () => {
  const names = Array.from({ length: 150 }, (_, index) => `a${index}`).join("&");
  const problem = await (await world.fetch(`GET /healthz?${names}`)).json();
  expect(problem).toMatchObject({
    detail: "a0 is not a parameter of this operation (and 99 more; see errors).",
  });
});

describe("with a base path", () => {
  const based = openWorld("SQLite", { basePath: "/v1" });

  test.each(["/plants", "/healthz", "/v1plants", "/v2/plants"])(
    "nothing is found at %s",
    async (path) => {
      expect((await based.fetch(`GET ${path}`)).status).toBe(404);
    },
  );
});

test("requests that waited too long get 503 and Retry-After, and change nothing", async () => {
  const token = await world.makeToken({ user: "waiting" });
  let nowMs = performance.now();
  const clock = spyOn(performance, "now").mockImplementation(() => nowMs);
  try {
    // As many as pass in one tick.
    const passing = Array.from({ length: 32 }, () => world.fetch("GET /healthz"));
    nowMs += 25;
    const waiting = [
      world.call(token, "GET /plants"),
      world.call(token, "POST /plants", { name: "Fern" }),
    ];
    nowMs += 501;
    const refused = await Promise.all(waiting);
    expect(refused.map(({ status }) => status)).toEqual([503, 503]);
    expect(refused.map((each) => each.headers.get("Retry-After"))).toEqual(["1", "1"]);
    expect((await Promise.all(passing)).every(({ ok }) => ok)).toBe(true);
  } finally {
    clock.mockRestore();
  }
  expect(await world.storage.list("waiting", undefined, 1)).toEqual([]);
});

test("a bulk request holds its body until its response is read, and a user has a share of that", async () => {
  const headersOf = async (user: string) => ({
    authorization: `Bearer ${await world.makeToken({ user })}`,
    "content-type": "application/jsonl",
  });
  const [hog, other] = await Promise.all([headersOf("hog"), headersOf("other")]);
  // 1 MiB, of which a user may hold half of 16.
  const body = `${'{"name":"Fern"}'.padEnd(4_095)}\n`.repeat(256);
  const createMany = (headers: HeadersInit) => world.fetch("POST /plants/bulk", { headers, body });
  const unread = await Promise.all(Array.from({ length: 7 }, () => createMany(hog)));
  expect(new Set(unread.map(({ status }) => status))).toEqual(new Set([200]));
  await createMany(hog);
  const refused = await createMany(hog);
  expect([refused.status, refused.headers.get("Retry-After")]).toEqual([503, "1"]);
  const one = await world.call(await world.makeToken({ user: "hog" }), "POST /plants", {
    name: "Fern",
  });
  expect(one.status).toBe(201);
  const results = await (await createMany(other)).text();
  expect(results.match(/"status":201/g)).toHaveLength(256);
  for (const response of unread) await response.text();
  expect((await createMany(hog)).status).toBe(200);
});

test("bodies that never arrive keep nobody from sending theirs", async () => {
  const headers = {
    authorization: `Bearer ${await world.makeToken({ user: "silent" })}`,
    "content-type": "application/jsonl",
  };
  const silence = { ...headers, "content-length": String(1024 * 1024) };
  const left: ReadableStreamDefaultController[] = [];
  const waiting = Array.from({ length: 64 }, () => {
    const body = new ReadableStream({ start: (controller) => void left.push(controller) });
    return world.fetch("POST /plants/bulk", { headers: silence, body });
  });
  const body = '{"name":"Fern"}\n'.repeat(1_000);
  const response = await world.fetch("POST /plants/bulk", { headers, body });
  expect(response.status).toBe(200);
  await response.text();
  for (const controller of left) controller.error(new Error("The client left."));
  await Promise.all(waiting);
});

test("HEAD of a long page seeks nothing", async () => {
  const token = await world.plant(
    "long",
    Array.from({ length: 3_000 }, (_, id) => BigInt(id)),
  );
  const seeking = spyOn(world.storage, "seek");
  try {
    const head = await world.call(token, "HEAD /plants?limit=2500");
    expect([head.status, head.headers.get("Link")]).toEqual([200, null]);
    expect(seeking).not.toHaveBeenCalled();
    const short = await world.call(token, "HEAD /plants?limit=20");
    expect(short.headers.get("Link")).toContain("after=19");
  } finally {
    seeking.mockRestore();
  }
});

describe("of a list that cannot be read", () => {
  let reading: ReturnType<typeof spyOn<typeof world.storage, "list">>;

  beforeEach(() => {
    reading = spyOn(world.storage, "list");
  });

  afterEach(() => {
    reading.mockRestore();
  });

  async function listWith(failure: Error): Promise<[status: number, body: string]> {
    const token = await world.makeToken({ user: "alice" });
    reading.mockRejectedValue(failure);
    logged = "";
    const headers = { "X-Request-Id": "the-one" };
    const response = await world.call(token, "GET /plants", undefined, headers);
    log.flush();
    return [response.status, await response.text()];
  }

  test("a bug is logged in full, with the id of the request, and not shown to the caller", async () => {
    const [status, body] = await listWith(new TypeError("what went wrong inside"));
    expect(status).toBe(500);
    expect(body).toContain('"urn:plantstore:problem:internal"');
    expect(body).not.toContain("inside");
    expect(logged).toMatch(/"request failed","requestId":"the-one","code":"internal".+TypeError/);
    expect(logged).toContain("what went wrong inside");
  });

  test.each([
    ["unavailable", 503],
    ["storage-full", 507],
  ] as const)("a storage that is %s is logged with its cause", async (code, expected) => {
    const cause = new Error("the disk is gone");
    const [status, body] = await listWith(new PlantStoreError(code, "Not now.", { cause }));
    expect(status).toBe(expected);
    expect(body).toContain(`"urn:plantstore:problem:${code}"`);
    expect(body).not.toContain("disk");
    expect(logged).toContain(`"request failed","requestId":"the-one","code":"${code}"`);
    expect(logged).toContain("the disk is gone");
  });

  test("overload is logged as a number of refusals, and not as a failure of each", async () => {
    const events: unknown[][] = [];
    using _ = spyOn(log, "event").mockImplementation((...event) => {
      events.push(event);
    });
    for (let time = 0; time < 3; time++) expect((await listWith(overloaded))[0]).toBe(503);
    while (events.length === 0) await Bun.sleep(50);
    expect(events[0]).toEqual(["warn", "overloaded", { refused: expect.any(Number) }]);
  });
});
