/** Lists of many plants, lists that change while they are read, and lists that are cached. */
import { describe, expect, test } from "bun:test";
import { create, remove } from "../storage/tested-storage.ts";
import { engines, openWorld, readToFailure } from "./scenario.ts";

const range = (length: number, toId: (index: number) => number) =>
  Array.from({ length }, (_, index) => BigInt(toId(index)));

describe.each(engines)("on %s, a list", (engine) => {
  const world = openWorld(engine);
  const countBroken = async () =>
    /^plantstore_broken_streams_total .*$/m.exec(
      await (await world.fetch("GET /metrics")).text(),
    )?.[0];

  interface Listed {
    readonly id: number;
    readonly tag: string;
  }

  /** A list, whole, and the target of its link. */
  async function read(token: string, target: string) {
    const response = await world.call(token, `GET ${target}`);
    expect(response.status).toBe(200);
    const next = /<(.+)>; rel="next"/.exec(response.headers.get("link") ?? "")?.[1];
    return { items: (await response.json()) as Listed[], next };
  }

  test("holds every plant exactly once if its links are followed, up to a limit of 1,000", async () => {
    const ids = range(1_700, (index) => index * 3 - 900);
    const token = await world.plant("walk", ids);
    for (const limit of [7, 499, 999, 1_000]) {
      const visited: number[] = [];
      let target: string | undefined = `/plants?include=id&limit=${limit}`;
      while (target && visited.length <= ids.length) {
        const { items, next } = await read(token, target);
        expect(items).toHaveLength(Math.min(limit, ids.length - visited.length));
        visited.push(...items.map(({ id }) => id));
        target = next;
      }
      expect(visited).toEqual(ids.map(Number));
    }
  });

  test("of more than 1,000 has as many plants as it may, and no link", async () => {
    const ids = range(1_700, (index) => index);
    const token = await world.plant("stream", ids);
    for (const query of ["", "q=plant&", "tag=&"]) {
      for (const limit of [1_001, 1_699, 1_700, 1_701, 2_147_483_647]) {
        const list = await read(token, `/plants?${query}include=id&limit=${limit}`);
        expect(list.items.map(({ id }) => BigInt(id))).toEqual(ids.slice(0, limit));
        expect(list.next).toBeUndefined();
      }
    }
    const rest = await read(token, "/plants?include=id&order=desc&limit=1001&after=1500");
    expect([rest.items.length, rest.items.at(-1)?.id]).toEqual([1_001, 499]);
  });

  test("has a link in HEAD where it has one in GET", async () => {
    const ids = range(1_100, (index) => index);
    const token = await world.plant("head", ids);
    for (const [limit, isLinked] of [
      [0, true],
      [1_000, true],
      [1_001, false],
    ] as const) {
      for (const method of ["GET", "HEAD"]) {
        const response = await world.call(token, `${method} /plants?limit=${limit}`);
        expect([limit, method, response.headers.has("link")]).toEqual([limit, method, isLinked]);
        await response.body?.cancel();
      }
    }
  });

  test("of up to 1,000 shows one moment, however long its names", async () => {
    const garden = "moment";
    const name = "\u{1f331}".repeat(200);
    const write = (id: bigint) => create({ garden, id, name });
    await world.storage.apply(range(1_100, (index) => index * 2).map(write));
    const token = await world.makeToken({ user: "planter", garden });
    const response = await world.call(token, "GET /plants?include=id&limit=1000");
    await world.storage.apply([write(1n), remove(998n, garden), remove(1_998n, garden)]);
    const plants = (await response.json()) as Listed[];
    expect(plants.map(({ id }) => id)).toEqual(range(1_000, (index) => index * 2).map(Number));
    expect(response.headers.get("link")).toContain("after=1998&");
  });

  test.each([
    ["limit=2400", 1, 2_400],
    ["limit=2400&order=desc", 101, 2_500],
    ["limit=2400&tag=", 1, 2_400],
    ["limit=2400&q=plant", 1, 2_400],
    ["limit=9999", 1, 2_500],
    ["", 1, 2_500],
  ])("of more than 1,000 is whole if others write meanwhile: %s", async (query, first, last) => {
    const garden = `written ${query}`;
    const ids = range(2_500, (index) => index + 1).map((id) => id * 2n);
    const token = await world.plant(garden, ids);
    const response = await world.call(token, `GET /plants?include=id&${query}`);
    const deleted = [400n, 4_400n];
    await world.storage.apply([
      ...range(500, (index) => 2_001 + index * 2).map((id) => create({ garden, id })),
      ...deleted.map((id) => remove(id, garden)),
    ]);
    const plants = (await response.json()) as Listed[];
    const listed = plants.map(({ id }) => BigInt(id));
    expect(new Set(listed).size).toBe(plants.length);
    const limit = Number(/limit=(\d+)/.exec(query)?.[1] ?? Number.POSITIVE_INFINITY);
    expect(plants.length).toBeLessThanOrEqual(limit);
    const end = listed.at(-1) ?? 0n;
    const isReached = (id: bigint) => (query.includes("desc") ? id >= end : id <= end);
    const missing = ids.filter((id) => isReached(id) && !listed.includes(id));
    expect(missing.filter((id) => !deleted.includes(id))).toEqual([]);
    // Plants that were added count toward the limit.
    const reached = plants.length === limit ? [] : [BigInt(first * 2), BigInt(last * 2)];
    for (const id of reached) expect(listed).toContain(id);
  });

  test("of tags has links up to a limit of 1,000, and as many tags as it may beyond", async () => {
    const garden = "tags";
    const tags = range(1_200, (index) => index).map(
      (index) => `tag ${String(index).padStart(4, "0")}`,
    );
    await world.storage.apply(tags.map((tag) => create({ garden, tag })));
    const token = await world.makeToken({ user: "planter", garden });
    const visited: string[] = [];
    let target: string | undefined = "/tags?limit=1000";
    while (target) {
      const { items, next }: Awaited<ReturnType<typeof read>> = await read(token, target);
      visited.push(...items.map(({ tag }) => tag));
      target = next;
    }
    expect(visited).toEqual(tags);
    for (const limit of [1_001, 1_200, 9_999]) {
      const { items, next } = await read(token, `/tags?limit=${limit}`);
      expect([items.map(({ tag }) => tag), next]).toEqual([tags.slice(0, limit), undefined]);
    }
    const none = await read(token, "/tags?limit=0&after=tag%201000");
    expect(none).toEqual({ items: [], next: "/tags?limit=1&after=tag%201000" });
  });

  test("of a search ends after 20,000 plants, and its link goes on", async () => {
    const garden = "found";
    const nameOf = (id: bigint) => (id === 20_050n ? "Royal fern" : "Ivy");
    await world.storage.apply(
      range(20_100, (index) => index + 1).map((id) => create({ garden, id, name: nameOf(id) })),
    );
    const token = await world.makeToken({ user: "planter", garden });
    for (const [limit, nextLimit] of [
      [0, 1],
      [1, 1],
      [1_000, 1_000],
    ]) {
      const page = await read(token, `/plants?q=FERN&limit=${limit}`);
      expect(page).toEqual({ items: [], next: `/plants?limit=${nextLimit}&after=20000&q=FERN` });
      expect((await read(token, page.next ?? "")).items).toHaveLength(1);
    }
    for (const query of ["", "&limit=1001"]) {
      expect((await read(token, `/plants?q=FERN${query}`)).items).toHaveLength(1);
    }
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
