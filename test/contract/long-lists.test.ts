/** Lists longer than a page, and pages at their limits. */
import { expect, test } from "bun:test";
import { onEachEngine } from "./garden.ts";

onEachEngine(({ call, fetch, plant, walk }) => {
  const ids = (count: number) => Array.from({ length: count }, (_, index) => BigInt(index + 1));
  const idsOf = (items: readonly { id: number }[]) => items.map(({ id }) => BigInt(id));

  test("a limit of more than 1,000 is a stream: exact, whole and without a link", async () => {
    const all = ids(1_700);
    await plant(all.map((id) => ({ id, name: "Plant" })));
    for (const query of ["", "q=plant&", "tag=&"]) {
      for (const limit of [1_001, 1_699, 1_700, 1_701, 2_147_483_647]) {
        const reply = await call(`GET /plants?${query}include=id&limit=${limit}`, 200);
        expect([limit, idsOf(reply.json), reply.next]).toEqual([
          limit,
          all.slice(0, limit),
          undefined,
        ]);
      }
    }
    for (const [limit, isLinked] of [
      [0, true],
      [1_000, true],
      [1_001, false],
    ] as const) {
      const { next } = await call(`HEAD /plants?limit=${limit}`, 200);
      expect([limit, next !== undefined]).toEqual([limit, isLinked]);
    }
    for (const limit of [7, 999, 1_000]) {
      const pages = await walk(`/plants?include=id&limit=${limit}`);
      expect(idsOf(pages.flat() as { id: number }[])).toEqual(all);
    }
  });

  test("a page of up to 1,000 shows one moment, however long its names", async () => {
    const even = ids(1_100).map((id) => id * 2n);
    await plant(even.map((id) => ({ id, name: "\u{1f331}".repeat(200) })));
    const response = await fetch("GET /plants?include=id&limit=1000");
    await plant([{ id: 1n, name: "late" }]);
    for (const id of [998n, 2_000n]) await call(`DELETE /plants/${id}`, 204);
    expect(idsOf(await response.json())).toEqual(even.slice(0, 1_000));
    expect(response.headers.get("Link")).toContain("after=2000");
  });

  test("tags have links up to a limit of 1,000, and as many as asked for beyond", async () => {
    const tags = ids(1_200).map((id) => `tag ${String(id).padStart(4, "0")}`);
    await plant(tags.map((tag) => ({ name: "Plant", tag })));
    const tagsOf = (items: readonly unknown[]) =>
      items.map((each) => (each as { tag: string }).tag);
    expect(tagsOf((await walk("/tags?limit=1000")).flat())).toEqual(tags);
    for (const limit of [1_001, 1_200, 9_999]) {
      const { json, next } = await call(`GET /tags?limit=${limit}`, 200);
      expect([tagsOf(json), next]).toEqual([tags.slice(0, limit), undefined]);
    }
  });

  test("a page of a search ends after 20,000 plants, and its link goes on", async () => {
    await plant(ids(20_100).map((id) => ({ id, name: id === 20_050n ? "Royal fern" : "Ivy" })));
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
