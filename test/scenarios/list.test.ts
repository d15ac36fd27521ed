/** List: limit, after, fields, the way on to the next page, and long lists. */
import { describe, expect, test } from "bun:test";
import { engines, openWorld, runScenarios, type Scenario } from "./scenario.ts";

describe.each(engines)("on %s", (engine) => {
  const world = openWorld(engine);
  const three = [
    { id: 30n, name: "C", tag: "x" },
    { id: -10n, name: "A", tag: "" },
    { id: 9007199254740993n, name: "D", tag: "y" },
  ];

  const accepted: readonly Omit<Scenario, "status">[] = [
    {
      name: "lists name and tag by ascending id",
      given: three,
      request: "GET /plants",
      answer: [
        { name: "A", tag: "" },
        { name: "C", tag: "x" },
        { name: "D", tag: "y" },
      ],
      answerHeaders: {
        Link: null,
        "Content-Type": "application/json",
        "Cache-Control": "no-store",
      },
    },
    { name: "lists an empty garden as an empty array", request: "GET /plants", answer: [] },
    {
      name: "cuts the list at limit and links to the next page",
      given: three,
      request: "GET /plants?limit=2",
      answer: [
        { name: "A", tag: "" },
        { name: "C", tag: "x" },
      ],
      answerHeaders: { Link: '</plants?limit=2&after=30>; rel="next"' },
    },
    {
      name: "has no link when limit is just enough",
      given: three,
      request: "GET /plants?limit=3",
      answerHeaders: { Link: null },
    },
    {
      name: "takes the highest limit",
      given: three,
      request: "GET /plants?limit=2147483647",
      answerHeaders: { Link: null },
    },
    {
      name: "takes a limit of 0, and leads on to pages of 1 because a page of 0 leads nowhere",
      given: three,
      request: "GET /plants?limit=0",
      answer: [],
      answerHeaders: { Link: '</plants?limit=1>; rel="next"' },
    },
    {
      name: "has no link for a limit of 0 in an empty garden",
      request: "GET /plants?limit=0",
      answer: [],
      answerHeaders: { Link: null },
    },
    {
      name: "starts behind an id",
      given: three,
      request: "GET /plants?after=-10",
      answer: [
        { name: "C", tag: "x" },
        { name: "D", tag: "y" },
      ],
    },
    {
      name: "starts behind an id that no plant has",
      given: three,
      request: "GET /plants?after=9007199254740992",
      answer: [{ name: "D", tag: "y" }],
    },
    {
      name: "starts behind the highest id there is",
      given: three,
      request: "GET /plants?after=9223372036854775807",
      answer: [],
    },
    {
      name: "keeps fields in the link to the next page",
      given: three,
      request: "GET /plants?fields=tag,id&limit=1",
      answer: [{ id: -10, tag: "" }],
      answerHeaders: { Link: '</plants?limit=1&after=-10&fields=id,tag>; rel="next"' },
    },
    {
      name: "reads an escaped comma in fields",
      given: three,
      request: "GET /plants?fields=id%2Cname&limit=1",
      answer: [{ id: -10, name: "A" }],
    },
  ];

  const refused: readonly [target: string, ...faults: string[]][] = [
    ["limit=", "limit"],
    ["limit", "limit"],
    ["limit=-1", "limit"],
    ["limit=1.5", "limit"],
    ["limit=ten", "limit"],
    ["limit=2147483648", "limit"],
    ["limit=+1", "limit"],
    ["limit=%201", "limit"],
    ["limit=1e2", "limit"],
    ["limit=0x10", "limit"],
    ["limit=1&limit=2", "limit"],
    ["limit=%zz", "limit"],
    ["after=", "after"],
    ["after=007", "after"],
    ["after=9223372036854775808", "after"],
    ["after=-9223372036854775809", "after"],
    ["after=1&after=1", "after"],
    ["fields=", "fields"],
    ["fields=id,", "fields"],
    ["fields=id,id", "fields"],
    ["fields=colour", "fields"],
    ["fields=id, name", "fields"],
    ["offset=3", "offset"],
    ["Limit=3", "Limit"],
    ["token=secret", "token"],
    ["=", ""],
    ["limit=x&after=y&fields=z&w=1", "w", "limit", "after", "fields"],
  ];

  describe("list", () => {
    runScenarios(
      world,
      accepted.map((scenario) => ({ status: 200, ...scenario })),
    );
    runScenarios(
      world,
      refused.map(([query, ...faults]) => ({
        name: `refuses ?${query}`,
        given: three,
        request: `GET /plants?${query.replace(" ", "%20")}`,
        status: 400,
        problem: "invalid-request",
        faults,
      })),
    );
    runScenarios(world, [
      {
        name: "refuses a body",
        request: "GET /plants",
        headers: { "Content-Length": "2" },
        status: 400,
        problem: "invalid-request",
        faults: [""],
      },
      {
        name: "answers HEAD like GET",
        given: three,
        request: "HEAD /plants?limit=1",
        status: 200,
        answerHeaders: {
          Link: '</plants?limit=1&after=-10>; rel="next"',
          "Content-Type": "application/json",
        },
      },
    ]);

    test("shows an id with all its digits", async () => {
      const headers = await plantGarden("digits", [9007199254740993n]);
      const response = await world.fetch("GET /plants?fields=id", { headers });
      expect(await response.text()).toBe('[{"id":9007199254740993}]');
    });

    test.each([1, 7, 499, 500, 501, 1000, 1700, 2000, 2001])(
      "visits every plant exactly once by following the link, %d at a time",
      async (limit) => {
        const ids = Array.from({ length: 1700 }, (_, index) => BigInt(index * 3 - 900));
        const headers = await plantGarden(`walk-${limit}`, ids);
        const visited: number[] = [];
        let target: string | undefined = `/plants?fields=id&limit=${limit}`;
        for (let pages = 0; target; pages++) {
          const response: Response = await world.fetch(`GET ${target}`, { headers });
          const page = (await response.json()) as { id: number }[];
          expect(page.length).toBeLessThanOrEqual(limit);
          visited.push(...page.map(({ id }) => id));
          target = /<(.+)>; rel="next"/.exec(response.headers.get("link") ?? "")?.[1];
          if (target && limit >= 1700) throw new Error("There is a link behind a complete list.");
          if (pages > 2_000) throw new Error("The links never end.");
        }
        expect(visited).toEqual(ids.map(Number));
      },
    );

    test("shows every change at once, also one by another process, however often it is asked", async () => {
      const headers = await plantGarden("changing", [1n]);
      const listIds = async () => {
        await world.fetch("GET /plants?fields=id&limit=20", { headers });
        return (await world.fetch("GET /plants?fields=id&limit=20", { headers })).text();
      };
      expect(await listIds()).toBe('[{"id":1}]');
      await plantGarden("changing", [2n]);
      expect(await listIds()).toBe('[{"id":1},{"id":2}]');
      await world.fetch("DELETE /plants/1", { headers });
      expect(await listIds()).toBe('[{"id":2}]');
      const other = await world.openAgain();
      await other.apply([{ kind: "delete", garden: "changing", id: 2n }]);
      await other.close();
      expect(await listIds()).toBe("[]");
    });

    test("does not show a kept list to another garden, or without a token", async () => {
      const mine = await plantGarden("kept", [1n]);
      const theirs = await plantGarden("other", [2n]);
      const list = async (headers?: HeadersInit) =>
        (await world.fetch("GET /plants?fields=id", headers ? { headers } : {})).text();
      expect(await list(mine)).toBe('[{"id":1}]');
      expect(await list(theirs)).toBe('[{"id":2}]');
      expect(await list()).toContain("unauthenticated");
    });

    test("sends a long list whole, as one valid array", async () => {
      const ids = Array.from({ length: 1_500 }, (_, index) => BigInt(index));
      const headers = await plantGarden("long", ids);
      const response = await world.fetch("GET /plants", { headers });
      expect(await response.json()).toHaveLength(1_500);
      expect(response.headers.get("link")).toBeNull();
      // Where the runtime found no such header, it would tell a length of 0.
      const head = await world.fetch("HEAD /plants", { headers });
      expect([head.headers.get("transfer-encoding"), await head.text()]).toEqual(["chunked", ""]);
    });

    test("shows one moment, up to a limit of 2,000, however slowly it is read", async () => {
      const ids = Array.from({ length: 1_500 }, (_, index) => BigInt(index * 2));
      const headers = await plantGarden("still", ids);
      const response = await world.fetch("GET /plants?fields=id&limit=1400", { headers });
      await plantGarden("still", [2_001n]);
      const page = (await response.json()) as { id: number }[];
      expect(page.map(({ id }) => id)).toEqual(ids.slice(0, 1_400).map(Number));
    });

    test("breaks off rather than exceed the limit when plants come in before the last one", async () => {
      const ids = Array.from({ length: 2_500 }, (_, index) => BigInt(index * 2));
      const headers = await plantGarden("moving", ids);
      const response = await world.fetch("GET /plants?fields=id&limit=2400", { headers });
      const reader = response.body?.getReader();
      await reader?.read();
      await plantGarden("moving", [2_001n]);
      const readRest = async () => {
        while (!(await reader?.read())?.done);
      };
      const failure = await readRest().catch((error) => error);
      expect(failure).toBeInstanceOf(Error);
    });

    async function plantGarden(garden: string, ids: readonly bigint[]): Promise<HeadersInit> {
      await world.storage.apply(
        ids.map((id) => ({
          kind: "create",
          garden,
          id,
          name: `Plant ${id}`,
          tag: "",
          idempotency: undefined,
        })),
      );
      const token = await world.makeToken({ user: "walker", garden });
      return { authorization: `Bearer ${token}` };
    }
  });
});
