/** Lists longer than a page: what is read at a time, what waits, their memory; and the cache. */
import { afterEach, beforeEach, describe, expect, mock, spyOn, test } from "bun:test";
import { overloaded } from "../../src/domain/errors.ts";
import { plantIdMax } from "../../src/domain/plant.ts";
import { Scheduler } from "../../src/http/scheduler.ts";
import { waitFor } from "../end-to-end/running-service.ts";
import { create, remove } from "../storage/tested-storage.ts";
import { engines, onEachEngine, openGarden } from "./garden.ts";

const range = (count: number) => Array.from({ length: count }, (_, index) => BigInt(index + 1));
const idsOf = (items: readonly { id: number }[]) => items.map(({ id }) => BigInt(id));
const tagsOf = (items: readonly { tag: string }[]) => items.map(({ tag }) => tag);
const seedling = "\u{1f331}";

onEachEngine(({ call, fetch, plant, walk }) => {
  test("a limit of more than 1,000 is a stream: exact, whole and without a link", async () => {
    const all = range(1_700);
    await plant(all.map((id) => ({ id, name: "Plant" })));
    for (const query of ["", "q=plant&", "tag=&"]) {
      for (const limit of [1_001, 1_699, 1_700, 1_701, 2_147_483_647]) {
        const { json, next } = await call(`GET /plants?${query}include=id&limit=${limit}`, 200);
        expect([limit, idsOf(json), next]).toEqual([limit, all.slice(0, limit), undefined]);
      }
    }
    const isLinked = async (limit: number) =>
      (await call(`HEAD /plants?limit=${limit}`, 200)).next !== undefined;
    expect([await isLinked(0), await isLinked(1_000), await isLinked(1_001)]).toEqual([
      ...[true, true, false],
    ]);
    for (const limit of [7, 999, 1_000]) {
      expect(idsOf((await walk(`/plants?include=id&limit=${limit}`)).flat())).toEqual(all);
    }
  });

  test("a page of up to 1,000 shows one moment, however long its names", async () => {
    const even = range(1_100).map((id) => id * 2n);
    await plant(even.map((id) => ({ id, name: seedling.repeat(200) })));
    const response = await fetch("GET /plants?include=id&limit=1000");
    await plant([{ id: 1n, name: "late" }]);
    for (const id of [998n, 2_000n]) await call(`DELETE /plants/${id}`, 204);
    expect(idsOf(await response.json())).toEqual(even.slice(0, 1_000));
    expect(response.headers.get("Link")).toContain("after=2000");
  });

  test("tags have links up to a limit of 1,000, and as many as asked for beyond", async () => {
    const tags = range(1_200).map((id) => `tag ${String(id).padStart(4, "0")}`);
    await plant(tags.map((tag) => ({ name: "Plant", tag })));
    expect(tagsOf((await walk("/tags?limit=1000")).flat())).toEqual(tags);
    for (const limit of [1_001, 1_200, 9_999]) {
      const { json, next } = await call(`GET /tags?limit=${limit}`, 200);
      expect([tagsOf(json), next]).toEqual([tags.slice(0, limit), undefined]);
    }
  });

  test("a page of a search ends after 20,000 plants, and its link goes on", async () => {
    await plant(range(20_100).map((id) => ({ id, name: id === 20_050n ? "Royal fern" : "Ivy" })));
    for (const limit of [1, 1_000]) {
      const page = await call(`GET /plants?q=FERN&limit=${limit}`, 200);
      expect([page.json, page.next]).toEqual([[], `/plants?limit=${limit}&after=20000&q=FERN`]);
      expect((await call(`GET ${page.next}`, 200)).json).toHaveLength(1);
    }
    for (const query of ["", "&limit=1001"]) {
      expect((await call(`GET /plants?q=FERN${query}`, 200)).json).toHaveLength(1);
    }
  });
});

describe.each(engines)("a long list on %s", (engine) => {
  const garden = openGarden(engine);
  const { call, fetch, plant, service } = garden;

  test.each(["", "limit=9999", "order=desc", "tag=", "q=fern"])(
    "is whole if others write meanwhile: %s",
    async (query) => {
      const ids = range(2_500);
      await plant(ids.map((id) => ({ id })));
      const response = await fetch(`GET /plants?include=id&${query}`);
      const deleted = [200n, 2_200n];
      await service.storage.apply([
        ...Array.from({ length: 500 }, () => create({ garden: garden.name })),
        ...deleted.map((id) => remove(id, garden.name)),
      ]);
      const plants = idsOf(await response.json());
      const listed = new Set(plants);
      const missing = ids.filter((id) => !listed.has(id) && !deleted.includes(id));
      expect([missing, listed.size]).toEqual([[], plants.length]);
    },
  );

  test("breaks off once its token is revoked, which is no error of the service", async () => {
    await plant(range(3_000).map((id) => ({ id })));
    const reader = (await fetch("GET /plants")).body?.getReader();
    await reader?.read();
    await service.revoke(await garden.token());
    const readRest = async () => {
      while (!(await reader?.read())?.done);
    };
    expect(await readRest().catch((error) => error)).toBeInstanceOf(Error);
    const { text } = await garden.anonymous("GET /metrics", 200);
    expect(text).toContain("\nplantstore_broken_streams_total 0\n");
    expect(service.readLog()).not.toContain('"level":"error"');
  });

  test.each([
    ["the last", (id: bigint) => id <= 1_000],
    ["the first", (id: bigint) => id > 1_000],
    ["one in the middle", (id: bigint) => id <= 1_000 || id > 2_000],
    ["all", () => false],
  ])("of a search is well-formed when a slice is empty: %s", async (_case, isFern) => {
    await plant(range(2_500).map((id) => ({ id, name: isFern(id) ? "fern" : "a" })));
    const { json } = await call("GET /plants?q=fern&include=id", 200);
    expect(idsOf(json)).toEqual(range(2_500).filter(isFern));
  });

  test.each([
    ["and the last id that there is", [plantIdMax]],
    ["and nothing after it", []],
  ])("of tags counts exactly two steps of 4,000 plants, %s", async (_case, others) => {
    const ids = [...range(8_000 - others.length), ...others];
    await plant([...ids.map((id) => ({ id, tag: "b" })), { tag: "c" }]);
    using count = spyOn(service.storage, "countByTag");
    const expected = Object.entries({ b: 8_000, c: 1 }).map(([tag, plants]) => ({ tag, plants }));
    for (const query of ["", "?limit=2"]) {
      expect((await call(`GET /tags${query}`, 200)).json).toEqual(expected);
    }
    expect(new Set(count.mock.calls.map(([, , plants]) => plants))).toEqual(new Set([4_000]));
  });
});

describe("memory and turns", () => {
  const garden = openGarden("SQLite");
  const { call, fetch, plant, service } = garden;
  const grow = (count: number, name: string) => plant(range(count).map((id) => ({ id, name })));

  /** Time stands still, so that no request waits too long on a busy machine. */
  beforeEach(() => {
    spyOn(performance, "now").mockReturnValue(performance.now());
  });
  afterEach(() => mock.restore());

  /** The lengths of a response's chunks, as text, and its plants. */
  async function readChunks(response: Response) {
    const chunks: string[] = [];
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) chunks.push(decoder.decode(chunk));
    return { lengths: chunks.map(({ length }) => length), plants: JSON.parse(chunks.join("")) };
  }

  /** Refuses these reads of the storage, counted from 1. */
  function refuse(...refused: number[]) {
    const list = service.storage.list.bind(service.storage);
    let reads = 0;
    return spyOn(service.storage, "list").mockImplementation((...query) =>
      refused.includes(++reads) ? Promise.reject(overloaded) : list(...query),
    );
  }

  test("a page is read in one go", async () => {
    using list = spyOn(service.storage, "list");
    for (const limit of [0, 20, 1_000]) await call(`GET /plants?limit=${limit}`, 200);
    const reads = list.mock.calls.map(([, , count, options]) => [count, options?.charactersMax]);
    expect(reads).toEqual([1, 21, 1_001].map((count) => [count, undefined]));
  });

  test("a page that isn't short takes reserved bytes until it is sent or given up", async () => {
    // 822 kB, of which a garden may reserve half of 16 MiB.
    await grow(1_000, seedling.repeat(200));
    const getPage = () => fetch("GET /plants?limit=1000");
    const pages = await Promise.all(range(11).map(getPage));
    expect(pages.map(({ status }) => status)).toEqual([...Array(10).fill(200), 503]);
    expect((await fetch("GET /plants?limit=20")).status).toBe(200);
    await pages[0]?.text();
    expect((await getPage()).status).toBe(200);
    await pages[1]?.body?.cancel();
    const { lengths, plants } = await readChunks(await getPage());
    expect([lengths.length, plants.length]).toEqual([1, 1_000]);
    for (const page of pages.slice(2)) await page.body?.cancel();
  });

  test("a stream comes in chunks of a bounded size, and in smaller ones beside many others", async () => {
    await grow(1_600, seedling.repeat(100));
    const alone = await readChunks(await fetch("GET /plants"));
    expect([Math.max(...alone.lengths) < 48 * 1024, alone.plants.length]).toEqual([true, 1_600]);
    const others = await Promise.all(range(600).map(() => fetch("GET /plants")));
    const beside = await readChunks(await fetch("GET /plants"));
    expect([Math.max(...beside.lengths) < 8 * 1024, beside.plants.length]).toEqual([true, 1_600]);
    for (const { body } of others) await body?.cancel();
    expect(await readChunks(await fetch("GET /plants"))).toEqual(alone);
  });

  test("a list that has begun isn't refused when the storage is busy; it waits", async () => {
    await grow(2_500, "a");
    for (const [query, refused, count] of [
      ["", [2, 3], 2_500],
      ["?q=fern", [1, 3], 0],
      ["?q=fern&limit=5", [1, 3], 0],
    ] as const) {
      using _ = refuse(...refused);
      expect((await readChunks(await fetch(`GET /plants${query}`))).plants).toHaveLength(count);
    }
    using _ = refuse(1);
    await call("GET /plants", 503);
  });

  test("a search takes turns, for a page and before it begins to send a stream", async () => {
    await plant(range(20_500).map((id) => ({ id, name: id % 5_000n === 0n ? "fern" : "a" })));
    for (const query of ["&limit=5", ""]) {
      using turn = spyOn(Scheduler.prototype, "turn");
      const response = await fetch(`GET /plants?q=fern${query}`);
      expect(turn.mock.calls.length).toBeGreaterThanOrEqual(19);
      await response.text();
    }
  });

  test("a search waits for one of its garden's 16 places, and a list doesn't", async () => {
    await grow(3, "a");
    await garden.token();
    const waiting: (() => void)[] = [];
    const list = service.storage.list.bind(service.storage);
    using _list = spyOn(service.storage, "list").mockImplementation(async (...query) => {
      await new Promise<void>((resolve) => waiting.push(resolve));
      return list(...query);
    });
    const untilWaiting = (count: number) => waitFor(() => waiting.length >= count || undefined);
    const ask = (count: number, query: string) =>
      range(count).map((id) =>
        fetch(`GET /plants?${query}limit=${[1, 20, 1_001][Number(id % 3n)]}`),
      );
    const searches = ask(20, "q=a&");
    await untilWaiting(16);
    const lists = ask(50, "");
    await untilWaiting(66);
    expect(waiting).toHaveLength(66);
    for (const go of waiting.splice(0)) go();
    await untilWaiting(4);
    for (const go of waiting) go();
    const responses = await Promise.all([...searches, ...lists]);
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]));
  });
});

describe("a cached list", () => {
  const garden = openGarden("SQLite");
  const { list, plant, service } = garden;

  /** The names in a list once it is cached. */
  async function listOften(query: string): Promise<string[]> {
    for (let time = 0; time < 3; time++) await list(query);
    return list(query);
  }
  const grow = (...ids: bigint[]) => plant(ids.map((id) => ({ id, name: `${id}` })));

  test("is not shown to another garden, whatever both are named", async () => {
    const seen: string[][] = [];
    const gardens = { home: [1n, 2n], "home\\nlistPlants?limit=1": [3n], pond: [4n] };
    for (const [name, ids] of Object.entries(gardens)) {
      garden.reset(name);
      await grow(...ids);
      seen.push(await listOften("limit=1"), await listOften(""));
    }
    expect(seen).toEqual([["1"], ["1", "2"], ["3"], ["3"], ["4"], ["4"]]);
  });

  test("shows every change to its page, and the last page what was added at the end", async () => {
    const expectPages = async (first: string[], last: string[]) => {
      expect(await listOften("limit=1&order=desc")).toEqual(last.slice(-1));
      expect(await listOften("limit=1&q=1")).toEqual(first.slice(0, 1));
      expect(await listOften("limit=2")).toEqual(first);
      expect(await listOften("limit=9&after=2")).toEqual(last);
    };
    await grow(1n, 12n, 13n);
    await expectPages(["1", "12"], ["12", "13"]);
    await grow(14n);
    await expectPages(["1", "12"], ["12", "13", "14"]);
    await grow(-1n);
    await expectPages(["-1", "1"], ["12", "13", "14"]);
    // Its id is assigned, so pages before it stay cached.
    await plant([{ name: "15" }]);
    await expectPages(["-1", "1"], ["12", "13", "14", "15"]);
    await service.storage.apply([remove(1n, garden.name)]);
    await expectPages(["-1", "12"], ["12", "13", "14", "15"]);
  });

  test("whose last id is above all assigned ones shows plants that are put before it", async () => {
    await grow(0n, 2n ** 62n, 2n ** 62n + 2n ** 12n);
    expect(await listOften("limit=2")).toEqual(["0", `${2n ** 62n}`]);
    await plant([{ name: "new" }]);
    expect(await listOften("limit=2")).toEqual(["0", "new"]);
  });
});
