/** Memory: what bounds the bytes that bodies, bulks and lists of one garden take. */
import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { bearer, openGarden } from "./garden.ts";

const garden = openGarden("SQLite");
const { call, stranger, fetch, plant, startRequest, startRequests, service } = garden;

const mebibyte = 1024 * 1024;
const declaringMebibyte = { "Content-Length": String(mebibyte) };
const chunked = { "Transfer-Encoding": "chunked" };
/** Longer than anything else here, and invalid: what isn't refused for its size is a 400. */
const mebibyteOfJson = "[".padEnd(mebibyte);
/** 800 bytes of UTF-8. */
const longName = "\u{1f331}".repeat(200);

const repeat = <Item>(count: number, make: () => Item) => Array.from({ length: count }, make);
const statusesOf = (responses: readonly Response[]) => responses.map(({ status }) => status);

describe("the connection of a request whose token is", () => {
  describe.each([
    { what: "valid", headers: {} },
    { what: "unknown", headers: bearer("unknown") },
  ])("$what", ({ headers }) => {
    test.each([1, 70_000])("is kept after a body with a name of %d letters", async (length) => {
      const response = await fetch("POST /plants", { name: "x".repeat(length) }, headers);
      expect(response.headers.get("Connection")).toBeNull();
    });

    test("is closed after a body longer than any that is accepted", async () => {
      const response = await fetch("POST /plants", { name: "x".repeat(1_100_000) }, headers);
      expect(response.headers.get("Connection")).toBe("close");
    });
  });
});

test("each second, the rest of 16 refused chunked bodies is dropped, then connections close", async () => {
  const sendEndlessBody = () => {
    const body = new ReadableStream({ pull: (stream) => stream.enqueue(Buffer.from(" ")) });
    const headers = { "Content-Type": "application/json", ...chunked };
    return service.fetch("POST /plants", { headers, body });
  };
  service.clock.stepMs = 0;

  for (const second of ["first", "second"]) {
    service.clock.advance(1_001);
    for (let dropped = 0; dropped < 16; dropped++) {
      const { status, headers } = await sendEndlessBody();
      expect({ second, status }).toEqual({ second, status: 401 });
      expect(headers.get("Connection")).toBeNull();
    }
    const { status, headers } = await sendEndlessBody();
    expect({ second, status }).toEqual({ second, status: 401 });
    expect(headers.get("Connection")).toBe("close");
  }
});

describe("a garden may reserve half of what is free of 16 MiB: with ten unread pages of 821 kB,", () => {
  const getLongPage = () => fetch("GET /plants?limit=1000");
  const bulk = `[${repeat(256, () => '{"name":"Fern"}'.padEnd(4_090)).join(",")}]`;
  let pages: Response[];

  beforeEach(async () => {
    await plant(repeat(1_000, () => ({ name: longName })));
    pages = await Promise.all(repeat(10, getLongPage));
    expect(statusesOf(pages)).toEqual(Array(10).fill(200));
  });

  afterEach(async () => {
    await Promise.allSettled(pages.map(({ body }) => body?.cancel()));
  });

  test("another one is refused", async () => {
    await call("GET /plants?limit=1000", 503);
  });

  test("a bulk of 1 MiB is refused, with a time to wait", async () => {
    const { headers } = await call("POST /plants/bulk", 503, bulk);
    expect(headers.get("Retry-After")).toBe("1");
  });

  test("a short page is read", async () => {
    await call("GET /plants?limit=20", 200);
  });

  test("another garden's bulk is stored", async () => {
    await stranger("POST /plants/bulk", 200, bulk);
  });

  test("there is room for a bulk once one is read and another is canceled", async () => {
    await pages[0]?.text();
    await pages[1]?.body?.cancel();

    const unread = await fetch("POST /plants/bulk", bulk);
    expect(unread.status).toBe(200);
    await call("POST /plants/bulk", 503, bulk);

    await unread.text();
    const { json } = await call("POST /plants/bulk", 200, bulk);
    expect(json).toHaveLength(256);
  });
});

test("eleven long pages requested at once are ten pages and a refusal", async () => {
  await plant(repeat(1_000, () => ({ name: longName })));

  const pages = await Promise.all(repeat(11, () => fetch("GET /plants?limit=1000")));

  expect(statusesOf(pages)).toEqual([...Array(10).fill(200), 503]);
  for (const { body } of pages) await body?.cancel();
});

test("a hundred requests without a body make no room for more", async () => {
  await plant(repeat(1_000, () => ({ name: longName })));
  for (let sent = 0; sent < 100; sent++) await call("POST /plants", 400);

  const responses = await Promise.all(repeat(11, () => fetch("GET /plants?limit=1000")));
  expect(statusesOf(responses).sort()).toEqual([...Array(10).fill(200), 503]);
  await Promise.allSettled(responses.map(({ body }) => body?.cancel()));
});

describe("the memory of bodies:", () => {
  test("a declared length counts for its garden once the token is known", async () => {
    const toAnotherGarden = bearer(await garden.token("other"));
    const unfinished = await startRequests(8, "POST /plants/bulk", declaringMebibyte);
    // Once the service reads its body, a request's token is known.
    await Promise.all(unfinished.map((request) => request.write("{")));

    await call("POST /plants/bulk", 503, mebibyteOfJson);
    await call("POST /plants/bulk", 400, mebibyteOfJson, toAnotherGarden);
  });

  test("bodies to different gardens count together until their tokens are known", async () => {
    const users = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
    const tokens = await Promise.all(
      users.map((user) => service.makeToken({ user: `${garden.name}-${user}` })),
    );
    const unfinished = await Promise.all(
      tokens.map((token) =>
        startRequest("POST /plants/bulk", { ...bearer(token), ...declaringMebibyte }),
      ),
    );

    // The ninth is refused, even though there is room once the others' tokens are known.
    const responses = await Promise.all(unfinished.map((request) => request.end()));
    expect(statusesOf(responses)).toEqual([400, 400, 400, 400, 400, 400, 400, 400, 503]);
  });

  test("a body without a length takes as much as has arrived", async () => {
    const unfinished = await startRequests(9, "POST /plants/bulk", chunked);
    const arrived = Buffer.alloc(900 * 1024, " ");
    await Promise.all(unfinished.map((request) => request.write(arrived)));

    await call("POST /plants/bulk", 503, mebibyteOfJson);
  });

  // Until then it takes 256 KiB, and 40 of these don't fit.
  test("a body without a length takes only its own bytes once it is whole", async () => {
    // Results of 64 plants are sent as a stream, which nobody reads here.
    const bulk = `[${repeat(64, () => '{"name":"Fern"}').join(",")}]`;
    const unread: Response[] = [];
    for (let sent = 0; sent < 40; sent++) {
      const request = await startRequest("POST /plants/bulk", chunked);
      void request.write(bulk);
      unread.push(await request.end());
    }

    expect(statusesOf(unread)).toEqual(Array(40).fill(200));
    for (const { body } of unread) await body?.cancel();
  });

  test("a connection is closed if there is no room for its body", async () => {
    await startRequests(8, "POST /plants/bulk", declaringMebibyte);
    await call("GET /me", 200);

    const { headers } = await call("POST /plants/bulk", 503, mebibyteOfJson);

    expect(headers.get("Connection")).toBe("close");
  });

  describe("with fake timers,", () => {
    const realImmediate = setImmediate;
    afterEach(() => void jest.useRealTimers());

    /** Lets the service read what was sent. */
    async function passTicks(): Promise<void> {
      for (let tick = 0; tick < 20; tick++) {
        jest.advanceTimersByTime(0);
        await new Promise((resolve) => realImmediate(resolve));
      }
    }

    test("a late body takes none for what arrives after its refusal", async () => {
      await call("GET /me", 200);
      service.clock.stepMs = 0;
      jest.useFakeTimers();
      const late = await startRequests(3, "POST /plants/bulk", chunked);
      const sendSpaces = async (kibibytes: number) => {
        const spaces = Buffer.alloc(kibibytes * 1024, " ");
        // Once a request is refused, the service reads no more of it.
        for (const request of late) void request.write(spaces).catch(() => {});
        await passTicks();
      };
      await sendSpaces(300);
      jest.advanceTimersByTime(16_000);
      const refused = await Promise.all(late.map(({ response }) => response));
      expect(statusesOf(refused)).toEqual([408, 408, 408]);
      await sendSpaces(700);
      jest.useRealTimers();

      const unfinished = await startRequests(7, "POST /plants/bulk", declaringMebibyte);
      const responses = await Promise.all(unfinished.map((request) => request.end()));

      expect(statusesOf(responses)).toEqual([400, 400, 400, 400, 400, 400, 400]);
    });
  });
});

describe("the chunks of a streamed list", () => {
  const openStream = () => fetch("GET /plants");
  const readLongestChunk = async ({ body }: Response) => {
    const lengths = await Array.fromAsync(body ?? [], ({ length }) => length);
    return Math.max(...lengths);
  };

  beforeEach(() => plant(repeat(1_600, () => ({ name: longName }))));

  test("are shorter than 192 KiB", async () => {
    expect(await readLongestChunk(await openStream())).toBeLessThan(192 * 1024);
  });

  test("are shorter than 16 KiB while 600 others are open", async () => {
    service.clock.stepMs = 0;
    const others = await Promise.all(repeat(600, openStream));

    expect(await readLongestChunk(await openStream())).toBeLessThan(16 * 1024);

    for (const { body } of others) await body?.cancel();
    expect(await readLongestChunk(await openStream())).toBeGreaterThan(16 * 1024);
  });
});
