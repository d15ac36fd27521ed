/** What keeps one garden from taking all memory and time, and what failures show to whom. */
import { describe, expect, spyOn, test } from "bun:test";
import { FairSemaphore } from "../../src/async/fair-semaphore.ts";
import { overloaded, PlantStoreError } from "../../src/domain/errors.ts";
import { Scheduler } from "../../src/http/scheduler.ts";
import { waitFor } from "../end-to-end/running-service.ts";
import { bearer, openGarden, stopTime } from "./garden.ts";

stopTime();
const garden = openGarden("SQLite");
const { call, reader, stranger, anonymous, fetch, plant, service } = garden;
const times = <Item>(count: number, make: () => Item) => Array.from({ length: count }, make);
const longName = "\u{1f331}".repeat(200);

test("a connection is kept, unless its body is longer than any that is accepted", async () => {
  for (const [length, connection] of [
    [1, null],
    [70_000, null],
    [1_100_000, "close"],
  ] as const) {
    for (const headers of [{}, bearer("unknown")]) {
      const response = await fetch("POST /plants", { name: "x".repeat(length) }, headers);
      expect([length, response.headers.get("Connection")]).toEqual([length, connection]);
    }
  }
});

test("the rest of a chunked body is dropped, of 16 a second; then its connection is closed", async () => {
  const sendChunks = async () => {
    const body = new ReadableStream({ pull: (stream) => stream.enqueue(Buffer.from(" ")) });
    const headers = { "Content-Type": "application/json", "Transfer-Encoding": "chunked" };
    const response = await service.fetch("POST /plants", { headers, body });
    return [response.status, response.headers.get("Connection")];
  };
  for (let second = 1; second <= 2; second++) {
    spyOn(performance, "now").mockReturnValue(performance.now() + 1_001);
    for (let dropped = 0; dropped < 16; dropped++) expect(await sendChunks()).toEqual([401, null]);
    expect(await sendChunks()).toEqual([401, "close"]);
  }
});

test("bulks and long pages reserve their size until they are read or given up; a garden has half of 16 MiB", async () => {
  // 822 kB, and 1 MiB.
  const getPage = () => fetch("GET /plants?limit=1000");
  const bulk = `[${times(256, () => '{"name":"Fern"}'.padEnd(4_090)).join(",")}]`;
  const createMany = () => fetch("POST /plants/bulk", bulk);
  await plant(times(1_000, () => ({ name: longName })));
  const pages = await Promise.all(times(11, getPage));
  expect(pages.map(({ status }) => status)).toEqual([...times(10, () => 200), 503]);
  const refused = await createMany();
  expect([refused.status, refused.headers.get("Retry-After")]).toEqual([503, "1"]);
  expect((await fetch("GET /plants?limit=20")).status).toBe(200);
  await stranger("POST /plants/bulk", 200, bulk);
  await pages[0]?.text();
  await pages[1]?.body?.cancel();
  const unread = await createMany();
  expect([unread.status, (await createMany()).status]).toEqual([200, 503]);
  await unread.text();
  expect(await (await createMany()).json()).toHaveLength(256);
  for (const page of pages.slice(2)) await page.body?.cancel();
});

test("a stream comes in chunks of a bounded size, and in smaller ones beside many others", async () => {
  await plant(times(1_600, () => ({ name: longName })));
  const open = () => fetch("GET /plants");
  const findLongest = async ({ body }: Response) =>
    Math.max(...(await Array.fromAsync(body ?? [], ({ length }) => length)));
  expect(await findLongest(await open())).toBeLessThan(96 * 1024);
  const others = await Promise.all(times(600, open));
  expect(await findLongest(await open())).toBeLessThan(16 * 1024);
  for (const { body } of others) await body?.cancel();
  expect(await findLongest(await open())).toBeGreaterThan(16 * 1024);
});

test("a body that does not arrive within 15 seconds is given up", async () => {
  const { readable } = new TransformStream<Uint8Array, Uint8Array>();
  const chunked = { "Content-Type": "application/json", "Transfer-Encoding": "chunked" };
  const headers = { ...bearer(await garden.token()), ...chunked };
  const responding = service.fetch("POST /plants", { headers, body: readable });
  await anonymous("GET /healthz", 200);
  spyOn(performance, "now").mockReturnValue(performance.now() + 15_100);
  const response = await responding;
  expect([response.status, response.headers.get("Connection")]).toEqual([408, "close"]);
  expect((await response.json()).detail).toContain("15 seconds");
});

test("a request that waited too long for its turn is refused, after its token and scope", async () => {
  using _late = spyOn(Scheduler.prototype, "turn").mockResolvedValue(true);
  using _busy = spyOn(Scheduler.prototype, "mayRun").mockReturnValue(false);
  expect((await call("GET /plants", 503)).headers.get("Retry-After")).toBe("1");
  await anonymous("GET /plants", 401, undefined, bearer("unknown"));
  await reader("POST /plants", 403, { name: "Fern" });
  await anonymous("GET /healthz", 200);
});

test("lists, searches and bulks take turns in their garden's queue, even if its token is new here", async () => {
  await plant(times(20_500, () => ({})));
  for (const [turns, request, body] of [
    [100, "POST /plants/bulk", Array(5_000).fill({ name: "Fern", id: 1 })],
    [19, "GET /plants"],
    [19, "GET /plants?q=oak"],
    [19, "GET /plants?q=oak&limit=5"],
    [5, "POST /plants/bulk", Array(100).fill({ name: "x".repeat(4_000) })],
    [16, "POST /plants/bulk-delete", `{${Array(16_548).fill('"ids":[1]')}}`],
    [1, "POST /plants/bulk-update", `{"set":{"tag":${"[".repeat(200_000)}}}`],
  ] as const) {
    using turn = spyOn(Scheduler.prototype, "turn");
    await (await fetch(request, body)).text();
    expect(turn.mock.calls.length).toBeGreaterThanOrEqual(turns);
    expect(new Set(turn.mock.calls.flat())).toEqual(new Set([garden.name]));
  }
});

test("a search needs one of its garden's places, and a list doesn't", async () => {
  using run = spyOn(FairSemaphore.prototype, "run");
  for (const query of ["limit=1", "limit=1001", ""]) await call(`GET /plants?${query}`, 200);
  expect(run).not.toHaveBeenCalled();
  for (const query of ["limit=1", ""]) await call(`GET /plants?q=a&${query}`, 200);
  expect(run.mock.calls.map(([name]) => name)).toEqual([garden.name, garden.name]);
});

test("a list that has begun isn't refused when the storage is busy; it waits", async () => {
  await plant(times(2_500, () => ({})));
  const list = service.storage.list.bind(service.storage);
  for (const [query, refused, count] of [
    ["", [2, 3], 2_500],
    ["?q=oak", [1, 3], 0],
    ["?q=oak&limit=5", [1, 3], 0],
  ] as const) {
    let reads = 0;
    using _ = spyOn(service.storage, "list").mockImplementation((...asked) =>
      (refused as readonly number[]).includes(++reads)
        ? Promise.reject(overloaded)
        : list(...asked),
    );
    expect((await call(`GET /plants${query}`, 200)).json).toHaveLength(count);
    expect(reads).toBeGreaterThan(3);
  }
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
    "the cause of %s is logged with the request's id, user and garden, and not shown",
    async (code, status, failure) => {
      expect(await listWith(failure, status)).not.toContain("inside");
      // First it looks whether the storage responds at all.
      const line = await waitFor(() =>
        service
          .readLog()
          .split("\n")
          .find((each) => each.includes('"request failed"') && each.includes(`"${code}"`)),
      );
      const whose = { requestId: "the-one", user: "ann", garden: garden.name };
      expect(JSON.parse(line)).toMatchObject({ ...whose, code });
      expect(line).toContain("the inside");
    },
  );

  test("overload is logged as a number of refusals, and not as a failure of each", async () => {
    using event = spyOn(service.log, "event");
    for (let time = 0; time < 3; time++) await listWith(overloaded, 503);
    const [logged] = await waitFor(() => event.mock.calls[0] && event.mock.calls);
    expect(logged).toEqual(["warn", "overloaded", { refused: expect.any(Number) }]);
  });
});
