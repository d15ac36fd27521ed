/** Fairness: what keeps one garden's requests from taking all the time of a thread. */
import { afterEach, beforeEach, describe, expect, setSystemTime, test } from "bun:test";
import { bearer, openGarden } from "./garden.ts";

const garden = openGarden("SQLite");
const { call, stranger, fetch, atOnce, plant, startRequest, startRequests, service } = garden;

const declaringMebibyte = { "Content-Length": String(1024 * 1024) };
const chunked = { "Transfer-Encoding": "chunked" };

const repeat = <Item>(count: number, make: () => Item) => Array.from({ length: count }, make);
const statusesOf = (responses: readonly Response[]) => responses.map(({ status }) => status);

describe("while each slice of work takes a whole tick,", () => {
  beforeEach(() => {
    // A tick has 10 ms for slices, and the service reads its clock several times for each slice.
    service.clock.stepMs = 3;
  });

  describe("of 60 requests at once,", () => {
    beforeEach(() => call("GET /plants", 200));

    test("those that wait too long for their turn are refused", async () => {
      const statuses = await atOnce(60, "GET /plants");
      expect(new Set(statuses)).toEqual(new Set([200, 503]));
    });

    test("none learns of the load if its token is unknown", async () => {
      const statuses = await atOnce(60, "GET /plants", undefined, bearer("unknown"));
      expect(statuses).toEqual(Array(60).fill(401));
    });

    test("none learns of the load if it lacks the scope", async () => {
      const readOnly = bearer(await garden.token("read"));
      const statuses = await atOnce(60, "POST /plants", { name: "Fern" }, readOnly);
      expect(statuses).toEqual(Array(60).fill(403));
    });

    test("all get the health of the service", async () => {
      const statuses = await atOnce(60, "GET /healthz", undefined, { Authorization: null });
      expect(statuses).toEqual(Array(60).fill(200));
    });
  });

  test("a request without room for its body is refused before its turn", async () => {
    await call("GET /me", 200);
    await startRequests(8, "POST /plants/bulk", declaringMebibyte);
    let done = 0;
    const waiting = repeat(12, async () => {
      expect((await fetch("GET /me")).status).toBe(200);
      done++;
    });

    const refused = await startRequest("POST /plants/bulk", declaringMebibyte);
    expect((await refused.response).status).toBe(503);

    expect(done).toBeLessThan(8);
    await Promise.all(waiting);
  });

  const fern = '{"name":"Fern"}';
  const longFern = `${'{"name":"Fern"'.padEnd(4_010)}}`;
  // The bodies end with an error, so that they are checked and nothing else.
  test.each([
    // Slices of 2,000 plants.
    { work: "a list", slices: 10, request: "GET /plants" },
    // Slices of 1,000 plants that are searched; the first slice of a page comes at once.
    { work: "a search", slices: 20, request: "GET /plants?q=oak" },
    { work: "a page of a search", slices: 19, request: "GET /plants?q=oak&limit=5" },
    // Bulks in slices of 48 plants, or of 32 Ki characters if these are fewer.
    {
      work: "a bulk of 5,000 plants",
      slices: 100,
      request: "POST /plants/bulk",
      body: `[${repeat(5_000, () => fern).join(",")},{}]`,
    },
    {
      work: "a bulk of 250 long plants",
      slices: 27,
      request: "POST /plants/bulk",
      body: `[${repeat(250, () => longFern).join(",")},{}]`,
    },
    // Slices of 1,000 ids, or of 1,000 fields. The body is as large as one may be.
    {
      work: "a bulk delete of 10,000 ids",
      slices: 10,
      request: "POST /plants/bulk-delete",
      body: `{"ids":[${repeat(9_999, () => "1").join(",")},"x"]}`,
    },
    {
      work: "a bulk delete with 16,548 fields",
      slices: 16,
      request: "POST /plants/bulk-delete",
      body: `{${repeat(16_548, () => '"ids":[1]').join(",")}}`,
    },
  ])("another garden gets at least $slices responses during $work", async (long) => {
    await plant(repeat(20_500, () => ({})));
    let isOver = false;
    const work = fetch(long.request, long.body)
      .then((response) => response.text())
      .finally(() => {
        isOver = true;
      });

    let responses = 0;
    while (!isOver) {
      await stranger("GET /me", 200);
      responses++;
    }
    await work;

    expect(responses).toBeGreaterThanOrEqual(long.slices);
  });

  describe("another garden doesn't wait for many requests of a garden", () => {
    let done: number;
    beforeEach(() => {
      done = 0;
    });
    afterEach(() => void setSystemTime());

    /** Waits for a response, and counts it. */
    async function countWhenDone(response: Promise<Response>): Promise<Response> {
      await response;
      done++;
      return response;
    }

    /** Sends a request with this token, which must be among the first to get a response. */
    async function expectQuickResponse(token: string): Promise<void> {
      const { status } = await fetch("GET /me", undefined, bearer(token));
      expect(status).toBe(200);
      expect(done).toBeLessThan(8);
    }

    test("if the service knows its token", async () => {
      const ours = await garden.token();
      const theirs = await garden.token("other");
      await call("GET /me", 200, undefined, bearer(ours));
      await call("GET /me", 200, undefined, bearer(theirs));
      const many = repeat(12, () => countWhenDone(fetch("GET /me", undefined, bearer(ours))));

      await expectQuickResponse(theirs);

      expect(statusesOf(await Promise.all(many))).toEqual(Array(12).fill(200));
    });

    test("if there are many unknown tokens, and the service must look up its own again", async () => {
      const theirs = await garden.token("other");
      await call("GET /me", 200, undefined, bearer(theirs));
      // The service trusts the tokens it knows for four seconds.
      setSystemTime(Date.now() + 5_000);
      const many = repeat(12, () => countWhenDone(fetch("GET /me", undefined, bearer("unknown"))));

      await expectQuickResponse(theirs);

      expect(statusesOf(await Promise.all(many))).toEqual(Array(12).fill(401));
    });

    test("if there is no room for their bodies", async () => {
      const ours = await garden.token();
      const theirs = await garden.token("other");
      await call("GET /me", 200, undefined, bearer(ours));
      await call("GET /me", 200, undefined, bearer(theirs));
      await startRequests(8, "POST /plants/bulk", declaringMebibyte);
      const refused = await startRequests(60, "POST /plants/bulk", declaringMebibyte);
      const many = refused.map(({ response }) => countWhenDone(response));

      await expectQuickResponse(theirs);

      expect(statusesOf(await Promise.all(many))).toEqual(Array(60).fill(503));
    });

    test("if its token is new here", async () => {
      const theirs = await garden.token("other");
      const unfinished = await startRequests(20, "POST /plants", chunked);
      // Once the service reads its body, a request's token is known. It waits for its next turn.
      await Promise.all(unfinished.map((request) => request.write("{")));
      const many = unfinished.map((request) => countWhenDone(request.end()));
      for (let tick = 0; tick < 3; tick++) await new Promise(setImmediate);

      await expectQuickResponse(theirs);

      expect(statusesOf(await Promise.all(many))).toEqual(Array(20).fill(400));
    });
  });
});

describe("of 17 searches of a garden,", () => {
  const search = "GET /plants?q=oak&limit=1";

  beforeEach(async () => {
    await plant(repeat(20_500, () => ({})));
    // The service knows the tokens of both gardens.
    await call("GET /me", 200);
    await stranger("GET /me", 200);
  });

  test("16 run at once, and one more is refused when it has waited too long", async () => {
    const statuses = await atOnce(17, search);
    expect(statuses).toEqual([...Array(16).fill(200), 503]);
  });

  test("none delays a list, or another garden's search", async () => {
    const toAnotherGarden = bearer(await garden.token("other"));
    let ended = 0;
    const searches = repeat(17, async () => {
      await fetch(search);
      ended++;
    });

    const [list, searchElsewhere] = await Promise.all([
      fetch("GET /plants?limit=1"),
      fetch(search, undefined, toAnotherGarden),
    ]);

    expect(ended).toBe(0);
    expect(list.status).toBe(200);
    expect(searchElsewhere.status).toBe(200);
    await Promise.all(searches);
  });
});

test("64 searches of all gardens run at once, and one more waits", async () => {
  service.clock.stepMs = 0;
  const makeGarden = async (name: string, plants: number) => {
    const fields = { garden: `${garden.name}-${name}` };
    await plant(repeat(plants, () => fields));
    const token = await service.makeToken({ user: "ann", ...fields });
    await call("GET /me", 200, undefined, bearer(token));
    return token;
  };
  const ended: string[] = [];
  const search = async (which: string, token: string) => {
    const { status } = await fetch("GET /plants?q=oak&limit=1", undefined, bearer(token));
    expect(status).toBe(200);
    ended.push(which);
  };
  const first = await makeGarden("first", 5_000);
  const second = await makeGarden("second", 5_000);
  const third = await makeGarden("third", 5_000);
  const fourth = await makeGarden("fourth", 5_000);
  const empty = await makeGarden("empty", 0);

  await Promise.all([
    ...repeat(16, () => search("one of the 64", first)),
    ...repeat(16, () => search("one of the 64", second)),
    ...repeat(16, () => search("one of the 64", third)),
    ...repeat(16, () => search("one of the 64", fourth)),
    // If it didn't wait, it would end first.
    search("one more", empty),
  ]);

  expect(ended[0]).toBe("one of the 64");
  expect(ended).toHaveLength(65);
});
