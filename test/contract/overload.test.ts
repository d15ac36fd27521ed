/** What a client meets when the service can't keep up or fails, and what the log says of it. */
import { describe, expect, spyOn, test } from "bun:test";
import { overloaded, PlantStoreError } from "../../src/domain/errors.ts";
import { Scheduler } from "../../src/http/scheduler.ts";
import { waitFor } from "../end-to-end/running-service.ts";
import { bearer, openGarden } from "./garden.ts";

const garden = openGarden("SQLite");
const { call, reader, anonymous, fetch, plant, service } = garden;

test("a connection is kept, unless its body is longer than any that is accepted", async () => {
  const post = async (length: number, headers = {}) => {
    const response = await fetch("POST /plants", { name: "x".repeat(length) }, headers);
    return response.headers.get("Connection");
  };
  for (const length of [0, 1, 70_000]) expect(await post(length)).toBeNull();
  expect(await post(1_100_000)).toBe("close");
  expect(await post(1_100_000, bearer("unknown"))).toBe("close");
});

test("a bulk reserves its size until its response is read, and a garden has a share of that", async () => {
  // 1 MiB, of which a garden may reserve half of 16.
  const body = `[${Array(256).fill('{"name":"Fern"}'.padEnd(4_090)).join(",")}]`;
  const createMany = () => fetch("POST /plants/bulk", body);
  // Time stands still, so that none of them waits too long on a busy machine.
  using _ = spyOn(performance, "now").mockReturnValue(performance.now());
  const unread = await Promise.all(Array.from({ length: 7 }, createMany));
  expect(unread.map(({ status }) => status)).toEqual(Array(7).fill(200));
  await createMany();
  const refused = await createMany();
  expect([refused.status, refused.headers.get("Retry-After")]).toEqual([503, "1"]);
  await garden.stranger("POST /plants/bulk", 200, body);
  for (const response of unread) await response.text();
  await call("POST /plants/bulk", 200, body);
});

test("a body that does not arrive within 15 seconds is given up", async () => {
  const { readable } = new TransformStream<Uint8Array, Uint8Array>();
  const chunked = { "Content-Type": "application/json", "Transfer-Encoding": "chunked" };
  const headers = { ...bearer(await garden.token()), ...chunked };
  const responding = service.fetch("POST /plants", { headers, body: readable });
  await anonymous("GET /healthz", 200);
  const now = performance.now.bind(performance);
  using _ = spyOn(performance, "now").mockImplementation(() => now() + 15_100);
  const response = await responding;
  expect([response.status, response.headers.get("Connection")]).toEqual([408, "close"]);
  expect((await response.json()).detail).toContain("15 seconds");
});

test("a request that waited too long for its turn is refused, after its token and scope", async () => {
  using _late = spyOn(Scheduler.prototype, "turn").mockResolvedValue(true);
  using _busy = spyOn(Scheduler.prototype, "mayRun").mockReturnValue(false);
  expect((await call("GET /plants", 503)).header("Retry-After")).toBe("1");
  await anonymous("GET /plants", 401, undefined, bearer("unknown"));
  await reader("POST /plants", 403, { name: "Fern" });
  await anonymous("GET /healthz", 200);
});

test("a long list takes its turns in its own garden's queue, even if its token is new here", async () => {
  await plant(Array.from({ length: 1_500 }, () => ({})));
  using turn = spyOn(Scheduler.prototype, "turn");
  expect((await call("GET /plants", 200)).json).toHaveLength(1_500);
  expect(new Set(turn.mock.calls.map(([queue]) => queue))).toEqual(new Set([garden.name]));
});

test("a bulk is validated in turns, and its results come in chunks", async () => {
  using turn = spyOn(Scheduler.prototype, "turn");
  const response = await fetch("POST /plants/bulk", Array(5_000).fill({ name: "Fern", id: 1 }));
  expect(turn.mock.calls.length).toBeGreaterThan(5_000 / 50);
  const chunks = await Array.fromAsync(response.body ?? []);
  expect(Math.max(...chunks.map(({ length }) => length))).toBeLessThan(17_000);
  const long = Array(100).fill({ name: "x".repeat(4_000) });
  turn.mockClear();
  await call("POST /plants/bulk", 400, long);
  expect(turn.mock.calls.length).toBeGreaterThan(5);
});

describe("if a list cannot be read,", () => {
  async function listWith(failure: Error, status: number): Promise<string> {
    using _ = spyOn(service.storage, "list").mockRejectedValue(failure);
    const response = await fetch("GET /plants", undefined, { "X-Request-Id": "the-one" });
    expect(response.status).toBe(status);
    return response.text();
  }

  const inside = { cause: Error("the inside") };

  test.each([
    ["internal", 500, new TypeError("the inside")],
    ["unavailable", 503, new PlantStoreError("unavailable", "No.", inside)],
    ["storage-full", 507, new PlantStoreError("storage-full", "No.", inside)],
  ] as const)(
    "the cause of %s is logged with the id of the request, and not shown",
    async (code, status, failure) => {
      const problem = await listWith(failure, status);
      expect(problem).toContain(`"urn:plantstore:problem:${code}"`);
      expect(problem).not.toContain("inside");
      // First it looks whether the storage responds at all.
      const line = RegExp(`"request failed","requestId":"the-one","code":"${code}".*the inside`);
      await waitFor(() => line.test(service.readLog()) || undefined);
    },
  );

  test("overload is logged as a number of refusals, and not as a failure of each", async () => {
    const events: unknown[][] = [];
    using _ = spyOn(service.log, "event").mockImplementation((...event) => {
      events.push(event);
    });
    for (let time = 0; time < 3; time++) await listWith(overloaded, 503);
    await waitFor(() => events.length > 0 || undefined);
    expect(events[0]).toEqual(["warn", "overloaded", { refused: expect.any(Number) }]);
  });
});
