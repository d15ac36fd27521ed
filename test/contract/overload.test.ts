/** What keeps one garden from taking all memory and time, and what failures show to whom. */
import {
  afterEach,
  beforeEach,
  describe,
  expect,
  jest,
  setSystemTime,
  spyOn,
  test,
} from "bun:test";
import { PlantStoreError } from "../../src/domain/errors.ts";
import { overloaded } from "../../src/limits/overload.ts";
import { waitFor } from "../../testing/running-service.ts";
import { bearer, openGarden } from "./garden.ts";

const garden = openGarden("SQLite");
const { call, stranger, fetch, plant, service } = garden;
const times = <Item>(count: number, make: () => Item) => Array.from({ length: count }, make);
const fern = { name: "Fern" };
const longName = "\u{1f331}".repeat(200);
const mebibyte = 1024 * 1024;
const realImmediate = setImmediate;
afterEach(() => void jest.useRealTimers());

/** Sends the heads of so many requests, whose bodies the test sends. */
async function sendHeads(count: number, request: string, more: Record<string, string>) {
  const token = bearer(await garden.token());
  const headers = { ...token, "Content-Type": "application/json", ...more };
  const bodies = times(count, () => new TransformStream<Uint8Array, Uint8Array>());
  const responses = bodies.map(({ readable }) =>
    service.fetch(request, { headers, body: readable }),
  );
  return { responses, writers: bodies.map(({ writable }) => writable.getWriter()) };
}

const ofMebibyte = { "Content-Length": String(mebibyte) };
const chunked = { "Transfer-Encoding": "chunked" };

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
  const { responses, writers } = await sendHeads(8, "POST /plants/bulk", ofMebibyte);
  // Once the service reads its body, a request's token is known.
  await Promise.all(writers.map((writer) => writer.write(Buffer.from("{"))));
  expect((await fetch("POST /plants/bulk", "[".padEnd(mebibyte))).status).toBe(503);
  expect((await fetch("POST /plants/bulk", "[".padEnd(mebibyte), theirs)).status).toBe(400);
  for (const writer of writers) void writer.close();
  await Promise.all(responses);
});

test("bodies count together while their tokens are new here, and one without room gets none later", async () => {
  const users = Array.from("123456789", (each) => `${garden.name}-${each}`);
  const tokens = await Promise.all(users.map((user) => service.makeToken({ user })));
  const sent = await Promise.all(
    tokens.map((token) => sendHeads(1, "POST /plants/bulk", { ...bearer(token), ...ofMebibyte })),
  );
  for (const { writers } of sent) void writers[0]?.close();
  const responses = await Promise.all(sent.flatMap((each) => each.responses));
  expect(responses.map(({ status }) => status)).toEqual([...times(8, () => 400), 503]);
});

test("a body without a length takes what has arrived of it", async () => {
  const { responses, writers } = await sendHeads(9, "POST /plants/bulk", chunked);
  const arrived = Buffer.alloc(900 * 1024, " ");
  await Promise.all(writers.map((writer) => writer.write(arrived)));
  expect((await fetch("POST /plants/bulk", "[".padEnd(mebibyte))).status).toBe(503);
  for (const writer of writers) void writer.close();
  await Promise.all(responses);
});

test("a body without a length takes no more than it has, once it is whole", async () => {
  const bulk = Buffer.from(`[${times(64, () => '{"name":"Fern"}')}]`);
  const unread: (Response | undefined)[] = [];
  while (unread.length < 40) {
    const { responses, writers } = await sendHeads(1, "POST /plants/bulk", chunked);
    void writers[0]?.write(bulk);
    void writers[0]?.close();
    unread.push(await responses[0]);
  }
  expect(unread.map((each) => each?.status)).toEqual(times(40, () => 200));
  for (const each of unread) await each?.body?.cancel();
});

test("a connection is closed if there is no room for its body", async () => {
  const { responses, writers } = await sendHeads(8, "POST /plants/bulk", ofMebibyte);
  await call("GET /me", 200);
  const { status, headers } = await fetch("POST /plants/bulk", "[".padEnd(mebibyte));
  expect([status, headers.get("Connection")]).toEqual([503, "close"]);
  for (const writer of writers) void writer.close();
  await Promise.all(responses);
});

test("a body that goes on arriving after its refusal takes no memory from its garden", async () => {
  await call("GET /me", 200);
  service.clock.lookMs = 0;
  jest.useFakeTimers();
  const ticks = async () => {
    for (let tick = 0; tick < 20; tick++) {
      jest.advanceTimersByTime(0);
      await new Promise((resolve) => realImmediate(resolve));
    }
  };
  const late = await sendHeads(3, "POST /plants/bulk", chunked);
  const sendSpaces = async (kib: number) => {
    for (const writer of late.writers) {
      void writer.write(Buffer.alloc(kib * 1024, " ")).catch(() => {});
    }
    await ticks();
  };
  await sendSpaces(300);
  jest.advanceTimersByTime(16_000);
  const refused = await Promise.all(late.responses);
  expect(refused.map(({ status }) => status)).toEqual([408, 408, 408]);
  await sendSpaces(700);
  jest.useRealTimers();
  const { responses, writers } = await sendHeads(7, "POST /plants/bulk", ofMebibyte);
  for (const writer of writers) void writer.close();
  const statuses = (await Promise.all(responses)).map(({ status }) => status);
  expect(statuses).toEqual(times(7, () => 400));
});

test("a stream comes in chunks of a bounded size, and in smaller ones beside many others", async () => {
  await plant(times(1_600, () => ({ name: longName })));
  const open = () => fetch("GET /plants");
  const findLongest = async ({ body }: Response) =>
    Math.max(...(await Array.fromAsync(body ?? [], ({ length }) => length)));
  expect(await findLongest(await open())).toBeLessThan(192 * 1024);
  service.clock.lookMs = 0;
  const others = await Promise.all(times(600, open));
  expect(await findLongest(await open())).toBeLessThan(16 * 1024);
  for (const { body } of others) await body?.cancel();
  expect(await findLongest(await open())).toBeGreaterThan(16 * 1024);
});

const manyKeys = `{${times(16_548, () => '"ids":[1]')}}`;
const longPlant = `${'{"name":"Fern"'.padEnd(4_010)}}`;
const manyIds = `{"ids":[${times(9_999, () => 1)},"x"]}`;

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

  test("a body that there is no room for is refused before its turn", async () => {
    const ours = bearer(await garden.token());
    await call("GET /me", 200);
    const { responses, writers } = await sendHeads(8, "POST /plants/bulk", ofMebibyte);
    let done = 0;
    const waiting = times(12, async () => {
      expect((await fetch("GET /me", undefined, ours)).status).toBe(200);
      done++;
    });
    const refused = await sendHeads(1, "POST /plants/bulk", ofMebibyte);
    expect((await refused.responses[0])?.status).toBe(503);
    expect(done).toBeLessThan(8);
    await Promise.all(waiting);
    for (const writer of writers) void writer.close();
    await Promise.all(responses);
  });

  test.each([
    ["a list", 10, "GET /plants", undefined],
    ["a search", 20, "GET /plants?q=oak", undefined],
    ["a page of a search", 19, "GET /plants?q=oak&limit=5", undefined],
    ["a bulk", 100, "POST /plants/bulk", [...times(5_000, () => fern), {}]],
    ["a bulk of long plants", 27, "POST /plants/bulk", `[${times(250, () => longPlant)},{}]`],
    ["a bulk delete with many ids", 10, "POST /plants/bulk-delete", manyIds],
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
    afterEach(() => void setSystemTime());
    const count = (response: Response) => {
      done++;
      return response.status;
    };
    const expectFirst = async (theirs: string) => {
      expect((await fetch("GET /me", undefined, bearer(theirs))).status).toBe(200);
      expect(done).toBeLessThan(8);
    };

    test("if the service knows its token", async () => {
      const [ours, theirs] = [await garden.token(), await garden.token("other")];
      for (const each of [ours, theirs]) await call("GET /me", 200, undefined, bearer(each));
      const works = times(12, () => fetch("GET /me", undefined, bearer(ours)).then(count));
      await expectFirst(theirs);
      expect(await Promise.all(works)).toEqual(times(12, () => 200));
    });

    test("if the service must look up its token again", async () => {
      const theirs = await garden.token("other");
      await call("GET /me", 200, undefined, bearer(theirs));
      // So long after it last looked, it trusts no token that it knows.
      setSystemTime(Date.now() + 5_000);
      const works = times(12, () => fetch("GET /me", undefined, bearer("unknown")).then(count));
      await expectFirst(theirs);
      expect(await Promise.all(works)).toEqual(times(12, () => 401));
    });

    test("if there is no room for their bodies", async () => {
      const [ours, theirs] = [await garden.token(), await garden.token("other")];
      for (const each of [ours, theirs]) await call("GET /me", 200, undefined, bearer(each));
      const first = await sendHeads(8, "POST /plants/bulk", ofMebibyte);
      const refused = await sendHeads(60, "POST /plants/bulk", ofMebibyte);
      const works = refused.responses.map((response) => response.then(count));
      await expectFirst(theirs);
      expect(await Promise.all(works)).toEqual(times(60, () => 503));
      for (const writer of first.writers) void writer.close();
      await Promise.all(first.responses);
    });

    test("if its token is new here", async () => {
      const theirs = await garden.token("other");
      const { responses, writers } = await sendHeads(20, "POST /plants", chunked);
      const works = responses.map((response) => response.then(count));
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

test("64 searches of all gardens begin at once, and one more begins when one has ended", async () => {
  service.clock.lookMs = 0;
  const tokens: string[] = [];
  for (const [name, plants] of Object.entries({ a: 5_000, b: 5_000, c: 5_000, d: 5_000, e: 0 })) {
    const theirs = { garden: `${garden.name}-${name}` };
    await plant(times(plants, () => theirs));
    tokens.push(await service.makeToken({ user: "ann", ...theirs }));
  }
  for (const token of tokens) await call("GET /me", 200, undefined, bearer(token));
  const ended: string[] = [];
  const search = async (what: string, token = "") => {
    const { status } = await fetch("GET /plants?q=oak&limit=1", undefined, bearer(token));
    ended.push(`${what}: ${status}`);
  };
  const searches = tokens.slice(0, 4).flatMap((each) => times(16, () => search("one", each)));
  // Alone, it would end first: its garden is empty.
  await Promise.all([...searches, search("one more", tokens[4])]);
  expect(ended[0]).toBe("one: 200");
  expect(ended.toSorted()).toEqual([...times(64, () => "one: 200"), "one more: 200"].toSorted());
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
