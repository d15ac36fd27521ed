/** Lists longer than a page: pages and streams, whole and exact whatever happens meanwhile. */
import { describe, expect, test } from "bun:test";
import { create, remove } from "../../testing/tested-storage.ts";
import { onEachEngine } from "./garden.ts";

const seedling = "\u{1f331}";

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

function idsOf(plants: readonly { id: number }[]): number[] {
  return plants.map(({ id }) => id);
}

onEachEngine((garden) => {
  const { call, fetch, plant, walk, service } = garden;

  /** Stores plants with these ids. */
  async function growIds(ids: readonly number[], name = "Plant"): Promise<void> {
    await plant(ids.map((id) => ({ id: BigInt(id), name })));
  }

  describe("a page", () => {
    test("has up to 1,000 plants, and links that visit each exactly once", async () => {
      await growIds(range(1, 1_700));

      const pages = await walk("/plants?include=id&limit=1000");

      expect(pages.map(idsOf)).toEqual([range(1, 1_000), range(1_001, 1_700)]);
    });

    test("shows one moment, even with 1,000 of the longest names", async () => {
      const evenIds = range(1, 1_100).map((id) => 2 * id);
      await growIds(evenIds, seedling.repeat(200));

      const response = await fetch("GET /plants?include=id&limit=1000");
      await plant([{ id: 1n, name: "late" }]);
      await call("DELETE /plants/998", 204);
      await call("DELETE /plants/2000", 204);

      expect(idsOf(await response.json())).toEqual(evenIds.slice(0, 1_000));
      expect(response.headers.get("Link")).toContain("after=2000");
    });
  });

  describe("a stream", () => {
    test.each([1_001, 1_700, 2_147_483_647])(
      "with limit=%s has exactly that many plants, or all, and no link",
      async (limit) => {
        await growIds(range(1, 1_700));

        for (const filter of ["", "&q=plant", "&tag="]) {
          const target = `/plants?include=id&limit=${limit}${filter}`;
          const { json, next } = await call(`GET ${target}`, 200);
          expect(idsOf(json)).toEqual(range(1, Math.min(limit, 1_700)));
          expect(next).toBeUndefined();
        }
      },
    );

    test.each([
      "GET /plants?include=id",
      "GET /plants?include=id&limit=9999",
      "GET /plants?include=id&order=desc",
      "GET /plants?include=id&tag=",
      "GET /plants?include=id&q=fern",
    ])(
      "has each plant that stays exactly once, whatever is written meanwhile: %s",
      async (request) => {
        await growIds(range(1, 2_500), "Fern");

        const response = await fetch(request);
        await service.storage.apply([
          ...Array.from({ length: 500 }, () => create({ garden: garden.name })),
          remove(200n, garden.name),
          remove(2_200n, garden.name),
        ]);
        const ids = idsOf(await response.json());

        expect(new Set(ids).size).toBe(ids.length);
        const staying = range(1, 2_500).filter((id) => id !== 200 && id !== 2_200);
        expect(ids).toEqual(expect.arrayContaining(staying));
      },
    );

    test("breaks off once its token is revoked", async () => {
      await growIds(range(1, 3_000));

      const response = await fetch("GET /plants");
      await service.revoke(await garden.token());

      expect(await response.text().catch((error) => error)).toBeInstanceOf(Error);
    });

    test("that breaks off with its token is no error of the service", async () => {
      await growIds(range(1, 3_000));

      const response = await fetch("GET /plants");
      await service.revoke(await garden.token());
      await response.text().catch(() => "broken off");

      const { text } = await call("GET /metrics", 200);
      expect(text).toContain("\nplantstore_broken_streams_total 0\n");
      expect(service.readLog()).not.toContain('"level":"error"');
    });
  });

  describe("a search", () => {
    test("ends a page after 20,000 plants, with a link, but not a stream", async () => {
      await plant(
        range(1, 20_100).map((id) => ({
          id: BigInt(id),
          name: id === 20_050 ? "Royal fern" : "Ivy",
        })),
      );
      const found = [{ name: "Royal fern", tag: "" }];

      for (const limit of [1, 1_000]) {
        const { json, next } = await call(`GET /plants?q=FERN&limit=${limit}`, 200);
        expect(json).toEqual([]);
        expect(next).toBe(`/plants?limit=${limit}&after=20000&q=FERN`);
        expect((await call(`GET ${next}`, 200)).json).toEqual(found);
      }
      expect((await call("GET /plants?q=FERN", 200)).json).toEqual(found);
      expect((await call("GET /plants?q=FERN&limit=1001", 200)).json).toEqual(found);
    });

    test("is well-formed JSON even if some of its slices find nothing", async () => {
      await growIds(range(1, 1_000), "ivy");
      await growIds(range(1_001, 2_000), "fern");
      await growIds(range(2_001, 2_500), "ivy");

      const ferns = await call("GET /plants?q=fern&include=id", 200);
      expect(idsOf(ferns.json)).toEqual(range(1_001, 2_000));

      const ivies = await call("GET /plants?q=ivy&include=id", 200);
      expect(idsOf(ivies.json)).toEqual([...range(1, 1_000), ...range(2_001, 2_500)]);

      const oaks = await call("GET /plants?q=oak&include=id", 200);
      expect(oaks.json).toEqual([]);
    });
  });

  describe("tags", () => {
    const tags = range(1, 1_200).map((index) => `tag ${String(index).padStart(4, "0")}`);
    const counts = tags.map((tag) => ({ tag, plants: 1 }));

    test("have links up to a limit of 1,000", async () => {
      await plant(tags.map((tag) => ({ name: "Plant", tag })));

      const pages = await walk("/tags?limit=1000");

      expect(pages).toEqual([counts.slice(0, 1_000), counts.slice(1_000)]);
    });

    test("have no link above a limit of 1,000, and are as many as requested", async () => {
      await plant(tags.map((tag) => ({ name: "Plant", tag })));

      const { json, next } = await call("GET /tags?limit=1001", 200);

      expect(json).toEqual(counts.slice(0, 1_001));
      expect(next).toBeUndefined();
    });

    test("are counted exactly in two steps of 4,000 plants, up to the highest id", async () => {
      const highestId = 9223372036854775807n;
      const ids = [...range(1, 7_999).map(BigInt), highestId];
      await plant([...ids.map((id) => ({ id, tag: "b" })), { tag: "c" }]);
      const expected = [
        { tag: "b", plants: 8_000 },
        { tag: "c", plants: 1 },
      ];

      expect((await call("GET /tags", 200)).json).toEqual(expected);
      expect((await call("GET /tags?limit=2", 200)).json).toEqual(expected);
    });
  });
});
