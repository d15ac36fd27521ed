/** Lists of many plants, lists that change while they are read, and lists that are cached. */
import { describe, expect, test } from "bun:test";
import { createLog } from "../../src/log.ts";
import { create, remove } from "../storage/tested-storage.ts";
import { engines, openWorld, readToFailure } from "./scenario.ts";

const range = (length: number, toId: (index: number) => number) =>
  Array.from({ length }, (_, index) => BigInt(toId(index)));

describe.each(engines)("on %s, a list", (engine) => {
  let logged = "";
  const log = createLog("json", (text) => {
    logged += text;
  });
  const world = openWorld(engine, {}, log);
  const countBroken = async () =>
    /^plantstore_broken_streams_total .*$/m.exec(
      await (await world.fetch("GET /metrics")).text(),
    )?.[0];

  test("holds every plant exactly once if its links are followed, whatever the limit", async () => {
    const ids = range(1_700, (index) => index * 3 - 900);
    const token = await world.plant("walk", ids);
    for (const limit of [7, 499, 500, 501, 1_699, 1_700, 2_000, 2_001]) {
      const visited: number[] = [];
      let target: string | undefined = `/plants?include=id&limit=${limit}`;
      while (target && visited.length <= ids.length) {
        const response: Response = await world.call(token, `GET ${target}`);
        const page = (await response.json()) as { id: number }[];
        expect(page.length).toBeLessThanOrEqual(limit);
        visited.push(...page.map(({ id }) => id));
        target = /<(.+)>; rel="next"/.exec(response.headers.get("link") ?? "")?.[1];
        if (target && limit >= ids.length) throw new Error("There is a link after a whole list.");
      }
      expect(visited).toEqual(ids.map(Number));
    }
  });

  test("of more than 2,000 has no link in HEAD", async () => {
    const token = await world.plant(
      "head",
      range(2_500, (index) => index),
    );
    const linkOf = async (limit: number) =>
      (await world.call(token, `HEAD /plants?limit=${limit}`)).headers.get("link");
    expect([await linkOf(2_400), await linkOf(2_000)]).toEqual([null, expect.any(String)]);
  });

  test.each([
    ["limit=2400", 1, 2_400],
    ["limit=2400&order=desc", 101, 2_500],
    ["limit=2400&tag=", 1, 2_400],
    ["limit=9999", 1, 2_500],
    ["", 1, 2_500],
  ])("of more than 2,000 is whole if others write meanwhile: %s", async (query, first, last) => {
    const garden = `written ${query}`;
    const ids = range(2_500, (index) => index + 1);
    const token = await world.plant(garden, ids);
    const response = await world.call(token, `GET /plants?include=id&${query}`);
    const deleted = [200n, 2_200n];
    await world.storage.apply([
      ...Array.from({ length: 500 }, () => create({ garden })),
      ...deleted.map((id) => remove(id, garden)),
    ]);
    const plants = (await response.json()) as { id: number }[];
    const listed = new Set(plants.map(({ id }) => BigInt(id)));
    const missing = ids.filter((id) => id >= first && id <= last && !listed.has(id));
    expect(missing.filter((id) => !deleted.includes(id))).toEqual([]);
    expect(listed.size).toBe(plants.length);
    if (query.includes("2400")) expect(plants.length).toBeLessThanOrEqual(2_400);
  });

  test("of more than 2,000 breaks off rather than exceed its limit, which is no error", async () => {
    const token = await world.plant(
      "moving",
      range(2_500, (index) => index * 2),
    );
    const before = await countBroken();
    const response = await world.call(token, "GET /plants?include=id&limit=2400");
    const failure = await readToFailure(response, async () => {
      await world.plant("moving", [4_701n]);
    });
    expect(failure).toBeInstanceOf(Error);
    expect(await countBroken()).toBe(before);
    log.flush();
    expect(logged).toContain(
      '"level":"info","event":"list ended: plants were added within the page"',
    );
    expect(logged).not.toContain('"level":"error"');
  });

  test("breaks off once its token is revoked, which is no error of the service", async () => {
    const before = await countBroken();
    const token = await world.plant(
      "long",
      range(3_000, (index) => index),
    );
    const id = (await world.storage.listTokens()).at(-1)?.id ?? "";
    const failure = await readToFailure(await world.call(token, "GET /plants"), async () => {
      await world.storage.revokeToken(id, Date.now());
      await world.assembly.authenticator.refresh();
    });
    expect(failure).toBeInstanceOf(Error);
    expect(await countBroken()).toBe(before);
  });
});

describe("a cached list", () => {
  const origins = ["https://a.example", "https://b.example"];
  const world = openWorld("SQLite", { corsOrigins: origins });

  /** The ids in a list once it is cached. */
  async function listOften(token: string, query: string): Promise<number[]> {
    const list = () => world.call(token, `GET /plants?include=id&${query}`);
    for (let time = 0; time < 3; time++) await (await list()).text();
    const plants = (await (await list()).json()) as { id: number }[];
    return plants.map(({ id }) => id);
  }

  test("is not shown to another garden, whatever both are named", async () => {
    const home = await world.plant("home", [1n, 2n]);
    const alike = await world.plant("homeinclude=id&limit=1", [3n]);
    const asLong = await world.plant("pond", [4n]);
    expect(await listOften(home, "limit=1")).toEqual([1]);
    expect(await listOften(asLong, "limit=1")).toEqual([4]);
    expect(await listOften(alike, "limit=1")).toEqual([3]);
    expect(await listOften(alike, "")).toEqual([3]);
    expect(await listOften(home, "limit=9")).toEqual([1, 2]);
  });

  test("shows every change to its page, and the last page what was added at the end", async () => {
    const token = await world.plant("changing", [1n, 2n, 3n]);
    const expectPages = async (first: number[], last: number[]) => {
      const newest = await listOften(token, "limit=1&order=desc");
      expect(newest).toEqual(last.slice(-1));
      expect(await listOften(token, "limit=1&q=plant")).toEqual(first.slice(0, 1));
      expect(await listOften(token, "limit=2")).toEqual(first);
      expect(await listOften(token, "limit=9&after=2")).toEqual(last);
    };
    await expectPages([1, 2], [3]);
    await world.storage.apply([create({ garden: "changing" })]);
    await expectPages([1, 2], [3, 4]);
    await world.plant("changing", [-1n]);
    await expectPages([-1, 1], [3, 4]);
    await world.storage.apply([remove(1n, "changing")]);
    await expectPages([-1, 2], [3, 4]);
  });

  test("whose last id is above all assigned ones shows plants that are put before it", async () => {
    const token = await world.plant("far", [0n, 2n ** 62n, 2n ** 62n + 2n ** 12n]);
    expect(await listOften(token, "limit=2")).toEqual([0, 2 ** 62]);
    await world.storage.apply([create({ garden: "far" })]);
    expect(await listOften(token, "limit=2")).toEqual([0, 1]);
  });

  test("may be read by pages of each permitted origin, and of no other", async () => {
    const token = await world.plant("garden", []);
    const allowed: (string | null)[] = [];
    const others = ["https://c.example", "https://a.example.evil.example", "null"];
    for (const Origin of [...origins, ...origins, ...others, ...origins]) {
      const { headers } = await world.call(token, "GET /plants", undefined, { Origin });
      allowed.push(headers.get("Access-Control-Allow-Origin"));
      expect(headers.get("Vary")).toContain("Origin");
    }
    expect(allowed).toEqual([...origins, ...origins, null, null, null, ...origins]);
  });
});
