/** Lists longer than a page: pages and streams, whole and exact whatever happens meanwhile. */
import { expect, test } from "bun:test";
import { plantIdMax } from "../../src/domain/plant.ts";
import { create, remove } from "../../testing/tested-storage.ts";
import { onEachEngine } from "./garden.ts";

const range = (count: number) => Array.from({ length: count }, (_, index) => BigInt(index + 1));
const idsOf = (items: readonly { id: number }[]) => items.map(({ id }) => BigInt(id));
const seedling = "\u{1f331}";

onEachEngine((garden) => {
  const { call, fetch, plant, walk, service } = garden;

  test("a limit of more than 1,000 is a stream: exact, whole and without a link", async () => {
    const all = range(1_700);
    await plant(all.map((id) => ({ id, name: "Plant" })));
    for (const query of ["", "q=plant&", "tag=&"]) {
      for (const limit of [1_001, 1_700, 2_147_483_647]) {
        const { json, next } = await call(`GET /plants?${query}include=id&limit=${limit}`, 200);
        expect([limit, idsOf(json), next]).toEqual([limit, all.slice(0, limit), undefined]);
      }
    }
    expect(idsOf((await walk("/plants?include=id&limit=1000")).flat())).toEqual(all);
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
    const counts = tags.map((tag) => ({ tag, plants: 1 }));
    expect((await walk("/tags?limit=1000")).flat()).toEqual(counts);
    const { json, next } = await call("GET /tags?limit=1001", 200);
    expect([json, next]).toEqual([counts.slice(0, 1_001), undefined]);
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

  test.each(["", "limit=9999", "order=desc", "tag=", "q=fern"])(
    "a stream is whole if others write meanwhile: %s",
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
      expect(new Set(plants).size).toBe(plants.length);
      expect([...plants, ...deleted]).toEqual(expect.arrayContaining(ids));
    },
  );

  test("a stream breaks off once its token is revoked, which is no error of the service", async () => {
    await plant(range(3_000).map((id) => ({ id })));
    const response = await fetch("GET /plants");
    await service.revoke(await garden.token());
    expect(await response.text().catch((error) => error)).toBeInstanceOf(Error);
    const { text } = await call("GET /metrics", 200);
    expect(text).toContain("\nplantstore_broken_streams_total 0\n");
    expect(service.readLog()).not.toContain('"level":"error"');
  });

  test("a search is well-formed when a slice has no match: the first and last, the middle, all", async () => {
    const isFern = (id: bigint) => id > 1_000n && id <= 2_000n;
    await plant(range(2_500).map((id) => ({ id, name: isFern(id) ? "fern" : "ivy" })));
    for (const [word, isFound] of [
      ["fern", isFern],
      ["ivy", (id: bigint) => !isFern(id)],
      ["oak", () => false],
    ] as const) {
      const { json } = await call(`GET /plants?q=${word}&include=id`, 200);
      expect(idsOf(json)).toEqual(range(2_500).filter(isFound));
    }
  });

  test("tags are counted exactly in two steps of 4,000 plants, up to the last id that there is", async () => {
    const ids = [...range(7_999), plantIdMax];
    await plant([...ids.map((id) => ({ id, tag: "b" })), { tag: "c" }]);
    const expected = Object.entries({ b: 8_000, c: 1 }).map(([tag, plants]) => ({ tag, plants }));
    for (const query of ["", "?limit=2"]) {
      expect((await call(`GET /tags${query}`, 200)).json).toEqual(expected);
    }
  });
});
