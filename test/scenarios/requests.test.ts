/** What the contract table cannot see of requests: connections, refusals, and what is logged. */
import { describe, expect, spyOn, test } from "bun:test";
import { overloaded, PlantStoreError } from "../../src/domain/errors.ts";
import { Scheduler } from "../../src/http/scheduler.ts";
import { createLog } from "../../src/log.ts";
import { create } from "../storage/tested-storage.ts";
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
});

test("a bulk reserves its size until its response is read, and a user has a share of that", async () => {
  // 1 MiB, of which a user may reserve half of 16.
  const body = `[${Array.from({ length: 256 }, () => '{"name":"Fern"}'.padEnd(4_094))}]`;
  const createMany = async (user: string) => {
    const authorization = `Bearer ${await world.makeToken({ user })}`;
    const headers = { authorization, "content-type": "application/json" };
    return world.fetch("POST /plants/bulk", { headers, body });
  };
  const unread = await Promise.all(Array.from({ length: 7 }, () => createMany("hog")));
  expect(new Set(unread.map(({ status }) => status))).toEqual(new Set([200]));
  await createMany("hog");
  const refused = await createMany("hog");
  expect([refused.status, refused.headers.get("Retry-After")]).toEqual([503, "1"]);
  expect((await createMany("other")).status).toBe(200);
  for (const response of unread) await response.text();
  expect((await createMany("hog")).status).toBe(200);
});

test("a request that waited too long for its turn is refused, after its token and scope", async () => {
  const token = await world.makeToken({ user: "hasty" });
  const readOnly = await world.makeToken({ user: "hasty", scope: "read" });
  // So that both tokens are cached.
  for (const each of [token, readOnly]) await world.call(each, "GET /plants");
  const lists: Promise<Response>[] = [];
  const others: Promise<Response>[] = [];
  using _ = spyOn(world.storage, "list").mockImplementation(async () => {
    // Longer than a tick, so all that the first one sends must wait, and each list takes a tick.
    Bun.sleepSync(11);
    if (lists.length > 0) return [];
    for (let after = 1; after <= 100; after++) {
      lists.push(world.call(token, `GET /plants?limit=1&after=${after}`));
    }
    others.push(
      world.call(token, "GET /plants"),
      world.call("unknown", "GET /plants"),
      world.call(readOnly, "POST /plants", { name: "Fern" }),
      world.fetch("GET /healthz"),
    );
    return [];
  });
  // No tick is under way.
  await Bun.sleep(20);
  const first = await world.call(token, "GET /plants?limit=1");
  const responses = [first, ...(await Promise.all(others))];
  expect(responses.map(({ status }) => status)).toEqual([200, 503, 401, 403, 200]);
  expect(responses[1]?.headers.get("Retry-After")).toBe("1");
  await Promise.all(lists);
});

test("a long list takes its turns in its own garden's queue, even if its token is new here", async () => {
  const token = await world.makeToken({ user: "newcomer" });
  const plants = Array.from({ length: 1_500 }, () => create({ garden: "newcomer" }));
  await world.storage.apply(plants);
  using turn = spyOn(Scheduler.prototype, "turn");
  const list = await (await world.call(token, "GET /plants")).json();
  expect(list).toHaveLength(1_500);
  expect(new Set(turn.mock.calls.map(([queue]) => queue))).toEqual(new Set(["newcomer"]));
});

describe("of a list that cannot be read", () => {
  async function listWith(failure: Error): Promise<[status: number, body: string]> {
    const token = await world.makeToken({ user: "alice" });
    using _ = spyOn(world.storage, "list").mockRejectedValue(failure);
    logged = "";
    const headers = { "X-Request-Id": "the-one" };
    const response = await world.call(token, "GET /plants", undefined, headers);
    log.flush();
    return [response.status, await response.text()];
  }

  test.each([
    ["internal", 500, new TypeError("the inside")],
    ["unavailable", 503, new PlantStoreError("unavailable", "No.", { cause: Error("the inside") })],
    [
      "storage-full",
      507,
      new PlantStoreError("storage-full", "No.", { cause: Error("the inside") }),
    ],
  ] as const)(
    "the cause of %s is logged with the id of the request, and not shown",
    async (code, expected, failure) => {
      const [status, body] = await listWith(failure);
      expect(status).toBe(expected);
      expect(body).toContain(`"urn:plantstore:problem:${code}"`);
      expect(body).not.toContain("inside");
      // First it looks whether the storage responds at all.
      while (!logged.includes("the inside")) {
        await Bun.sleep(1);
        log.flush();
      }
      expect(logged).toContain(`"request failed","requestId":"the-one","code":"${code}"`);
    },
  );

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
