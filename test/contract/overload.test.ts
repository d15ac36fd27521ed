/** What keeps one garden from taking all memory and time, and what failures show to whom. */
import { beforeEach, describe, expect, spyOn, test } from "bun:test";
import { PlantStoreError } from "../../src/domain/errors.ts";
import { overloaded } from "../../src/limits/overload.ts";
import { waitFor } from "../end-to-end/running-service.ts";
import { bearer, openGarden } from "./garden.ts";

const garden = openGarden("SQLite");
const { call, stranger, fetch, plant, service } = garden;
const times = <Item>(count: number, make: () => Item) => Array.from({ length: count }, make);
const fern = { name: "Fern" };
const long = "x".repeat(4_000);
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
  const { clock } = service;
  for (let second = 1; second <= 2; second++) {
    clock.lookMs = 1_001;
    clock.now();
    clock.lookMs = 0;
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

test("a long body counts for the garden that its token opens, once the token is known", async () => {
  const theirs = bearer(await garden.token("other"));
  const mebibyte = 1024 * 1024;
  const declared = { "Content-Type": "application/json", "Content-Length": String(mebibyte) };
  const headers = { ...bearer(await garden.token()), ...declared };
  const bodies = times(8, () => new TransformStream<Uint8Array, Uint8Array>());
  const works = bodies.map(({ readable }) =>
    service.fetch("POST /plants/bulk", { headers, body: readable }),
  );
  const writers = bodies.map(({ writable }) => writable.getWriter());
  // Once the service reads its body, a request's token is known.
  await Promise.all(writers.map((writer) => writer.write(Buffer.from("{"))));
  expect((await fetch("POST /plants/bulk", "[".padEnd(mebibyte))).status).toBe(503);
  expect((await fetch("POST /plants/bulk", "[".padEnd(mebibyte), theirs)).status).toBe(400);
  for (const writer of writers) void writer.close();
  await Promise.all(works);
});

test("a stream comes in chunks of a bounded size, and in smaller ones beside many others", async () => {
  await plant(times(1_600, () => ({ name: longName })));
  const open = () => fetch("GET /plants");
  const findLongest = async ({ body }: Response) =>
    Math.max(...(await Array.fromAsync(body ?? [], ({ length }) => length)));
  expect(await findLongest(await open())).toBeLessThan(96 * 1024);
  service.clock.lookMs = 0;
  const others = await Promise.all(times(600, open));
  expect(await findLongest(await open())).toBeLessThan(16 * 1024);
  for (const { body } of others) await body?.cancel();
  expect(await findLongest(await open())).toBeGreaterThan(16 * 1024);
});

const manyKeys = `{${times(16_548, () => '"ids":[1]')}}`;

describe("while each slice of work takes a tick,", () => {
  /** Few enough looks fit into a tick's 10 ms for one slice. */
  beforeEach(() => {
    service.clock.lookMs = 3;
  });

  test("a request that waited too long for its turn is refused, after its token and scope", async () => {
    const statusesOf = async (...sent: Parameters<typeof fetch>) =>
      new Set((await Promise.all(times(60, () => fetch(...sent)))).map(({ status }) => status));
    await call("GET /plants", 200);
    expect(await statusesOf("GET /plants")).toEqual(new Set([200, 503]));
    expect(await statusesOf("GET /plants", undefined, bearer("unknown"))).toEqual(new Set([401]));
    const readOnly = bearer(await garden.token("read"));
    expect(await statusesOf("POST /plants", fern, readOnly)).toEqual(new Set([403]));
    const nobody = { Authorization: null };
    expect(await statusesOf("GET /healthz", undefined, nobody)).toEqual(new Set([200]));
  });

  test.each([
    ["a list", 20, "GET /plants", undefined],
    ["a search", 20, "GET /plants?q=oak", undefined],
    ["a page of a search", 19, "GET /plants?q=oak&limit=5", undefined],
    ["a bulk", 100, "POST /plants/bulk", [...times(5_000, () => fern), {}]],
    ["a bulk of long plants", 5, "POST /plants/bulk", [...times(100, () => ({ name: long })), {}]],
    ["a bulk delete with many keys", 16, "POST /plants/bulk-delete", manyKeys],
  ] as const)(
    "others get at least as many responses as %s has slices: %d",
    async (_, slices, request, body) => {
      await plant(times(20_500, () => ({})));
      let isOver = false;
      const work = fetch(request, body)
        .then((response) => response.text())
        .finally(() => {
          isOver = true;
        });
      let others = 0;
      while (!isOver) {
        await stranger("GET /me", 200);
        others++;
      }
      await work;
      expect(others).toBeGreaterThanOrEqual(slices);
    },
  );

  describe("a garden doesn't wait behind the many requests of another one", () => {
    let done: number;
    beforeEach(() => {
      done = 0;
    });
    const count = (response: Response) => {
      done++;
      return response.status;
    };
    const expectFirst = async (theirs: string) => {
      expect((await fetch("GET /me", undefined, bearer(theirs))).status).toBe(200);
      expect(done).toBeLessThan(8);
    };

    test("if the service knows its token", async () => {
      const theirs = await garden.token("other");
      for (const each of [await garden.token(), theirs]) {
        await call("GET /me", 200, undefined, bearer(each));
      }
      const works = times(12, () => fetch("GET /me").then(count));
      await expectFirst(theirs);
      expect(await Promise.all(works)).toEqual(times(12, () => 200));
    });

    test("if its token is new here", async () => {
      const theirs = await garden.token("other");
      const chunked = { "Content-Type": "application/json", "Transfer-Encoding": "chunked" };
      const headers = { ...bearer(await garden.token()), ...chunked };
      const bodies = times(20, () => new TransformStream<Uint8Array, Uint8Array>());
      const works = bodies.map(({ readable }) =>
        service.fetch("POST /plants", { headers, body: readable }).then(count),
      );
      const writers = bodies.map(({ writable }) => writable.getWriter());
      // Once the service reads its body, a request's token is known, and it waits for its next turn.
      await Promise.all(writers.map((writer) => writer.write(Buffer.from("{"))));
      for (const writer of writers) void writer.close();
      for (let tick = 0; tick < 3; tick++) await new Promise(setImmediate);
      await expectFirst(theirs);
      expect(await Promise.all(works)).toEqual(times(20, () => 400));
    });
  });
});

test("16 searches of a garden begin at once, one more waits or is refused, and lists and others don't wait", async () => {
  await plant(times(20_500, () => ({})));
  await stranger("GET /me", 200);
  await call("GET /me", 200);
  const ended: string[] = [];
  const send = async (what: string, ...sent: Parameters<typeof fetch>) => {
    const { status } = await fetch(...sent);
    ended.push(`${what}: ${status}`);
  };
  const search = "GET /plants?q=oak&limit=1";
  const searches = times(17, () => send("search", search));
  const other = bearer(await garden.token("other"));
  await Promise.all([send("list", "GET /plants?limit=1"), send("other", search, undefined, other)]);
  expect(ended.toSorted()).toEqual(["list: 200", "other: 200"]);
  await Promise.all(searches);
  expect(ended.slice(2).toSorted()).toEqual([...times(16, () => "search: 200"), "search: 503"]);
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
    using _ = spyOn(service.storage, "list").mockImplementation(() => Promise.reject(failure));
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
});

describe("overload", () => {
  const { call, fetch, service } = openGarden("SQLite");

  test("is logged as a number of refusals, and not as a failure of each", async () => {
    await call("GET /plants", 200);
    service.clock.lookMs = 6;
    const responses = await Promise.all(times(60, () => fetch("GET /plants")));
    const refused = responses.filter(({ status }) => status === 503);
    const logged = () => Number(/"overloaded","refused":(\d+)/.exec(service.readLog())?.[1]);
    expect(await waitFor(() => logged() || undefined)).toBe(refused.length);
    expect(service.readLog()).not.toContain("request failed");
  });
});
