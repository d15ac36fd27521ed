/** Changing plants without reading them first: PATCH of one, bulk-update of many. */
import { describe, expect, test } from "bun:test";
import { onEachEngine } from "./garden.ts";

const fern = { id: 1n, name: "Fern", tag: "shade" };
const mergePatch = { "Content-Type": "application/merge-patch+json" };

onEachEngine(({ call, reader, stranger, refuse, list, plant, grow }) => {
  const typesOfEvents = async () =>
    (await call("GET /events", 200)).json.map(({ type }: { type: string }) => type);

  describe("a patch", () => {
    test("changes what it names, keeps the rest, and answers with the plant and its ETag", async () => {
      await plant([fern]);
      const renamed = await call("PATCH /plants/1", 200, { name: "Royal fern" }, mergePatch);
      expect(renamed.text).toBe('{"name":"Royal fern","tag":"shade"}');
      const moved = await call("PATCH /plants/1?include=id", 200, { tag: "" });
      expect(moved.json).toEqual({ id: 1, name: "Royal fern", tag: "" });
      expect(moved.header("ETag")).toBe((await call("GET /plants/1", 200)).header("ETag"));
      await call("PATCH /plants/1", 200, { name: "Ivy", tag: "hall" });
      expect((await call("GET /plants/1", 200)).json).toEqual({ name: "Ivy", tag: "hall" });
    });

    test("of different fields at once loses none of them", async () => {
      await plant([fern]);
      const changes = [{ name: "Ivy" }, { tag: "hall" }];
      await Promise.all(changes.map((change) => call("PATCH /plants/1", 200, change)));
      expect((await call("GET /plants/1", 200)).json).toEqual({ name: "Ivy", tag: "hall" });
    });

    test("is an event with the whole plant, unless the plant is like that already", async () => {
      await plant([fern]);
      await call("PATCH /plants/1", 200, { tag: "hall" });
      await call("PATCH /plants/1", 200, { tag: "hall" });
      const { json } = await call("GET /events?after=1", 200);
      expect(json).toMatchObject([
        { seq: 2, type: "plant.replaced", plant: { id: 1, name: "Fern", tag: "hall" } },
      ]);
    });

    test("holds to If-Match, and is 404 without a plant, whatever the precondition", async () => {
      await plant([fern]);
      const etag = (await call("GET /plants/1", 200)).header("ETag") ?? "";
      await call("PATCH /plants/1", 412, { tag: "x" }, { "If-Match": '"other"' });
      await call("PATCH /plants/1", 200, { tag: "hall" }, { "If-Match": etag });
      await call("PATCH /plants/1", 412, { tag: "x" }, { "If-Match": etag });
      await call("PATCH /plants/2", 404, { tag: "x" });
      await call("PATCH /plants/2", 404, { tag: "x" }, { "If-Match": "*" });
      await stranger("PATCH /plants/1", 404, { tag: "x" });
      expect(await list()).toEqual(["Fern"]);
    });

    test.each([
      [{}, [""]],
      [{ name: null }, ["/name"]],
      [{ name: "" }, ["/name"]],
      [{ tag: 7, species: "x" }, ["/species", "/tag"]],
      [{ id: 1, tag: "x" }, ["/id"]],
      ["[]", [""]],
    ])("of %j is 400, and changes nothing", async (body, places) => {
      await plant([fern]);
      await refuse("PATCH /plants/1", places, body);
      expect(await typesOfEvents()).toEqual(["plant.created"]);
    });

    test("needs the scope write and JSON, and a 415 says which types it takes", async () => {
      await plant([fern]);
      await reader("PATCH /plants/1", 403, { tag: "x" });
      const refused = await call("PATCH /plants/1", 415, "tag=x", { "Content-Type": "text/plain" });
      expect(refused.header("Accept")).toBe("application/json, application/merge-patch+json");
      const created = await call("POST /plants", 415, { name: "x" }, mergePatch);
      expect(created.header("Accept")).toBe("application/json");
    });
  });

  test("headers that would change what a write means are refused, not ignored", async () => {
    await plant([fern]);
    await refuse("PUT /plants/1", ["Content-Range"], fern, { "Content-Range": "bytes 0-9/10" });
    await refuse("DELETE /plants/1", ["If-None-Match"], undefined, { "If-None-Match": "*" });
    await refuse("PATCH /plants/1", ["If-None-Match"], { tag: "x" }, { "If-None-Match": '"a"' });
    expect(await list()).toEqual(["Fern"]);
  });

  describe("a bulk update", () => {
    const update = async (ids: readonly (number | bigint)[], set: object) =>
      (await call("POST /plants/bulk-update", 200, { ids, set })).json;

    test("sets fields of many plants, and lists the ids without one in their order", async () => {
      await plant([fern, { id: 2n, name: "Ivy" }, { id: 3n, name: "Moss" }]);
      expect(await update([9, 2, 1, 8, 2], { tag: "hall" })).toEqual({
        updated: 2,
        missing: [9, 8],
      });
      expect(await list("tag=hall")).toEqual(["Fern", "Ivy"]);
      expect(await list()).toEqual(["Fern", "Ivy", "Moss"]);
    });

    test("counts a plant that is like that already, which is no event", async () => {
      await plant([fern, { id: 2n, name: "Ivy" }]);
      expect(await update([1, 2], { tag: "shade" })).toEqual({ updated: 2, missing: [] });
      expect(await typesOfEvents()).toEqual(["plant.created", "plant.created", "plant.replaced"]);
    });

    test("changes more plants than fit into one commit", async () => {
      const ids = Array.from({ length: 600 }, (_, index) => index + 1);
      await grow(...ids.map((id) => `Plant ${id}`));
      expect(await update(ids, { tag: "x".repeat(100) })).toEqual({ updated: 600, missing: [] });
      expect((await call("GET /tags", 200)).json).toEqual([{ tag: "x".repeat(100), plants: 600 }]);
    });

    test.each([
      [{ ids: [1] }, ["/set"]],
      [{ set: { tag: "x" } }, ["/ids"]],
      [{ ids: [], set: { tag: "x" } }, ["/ids"]],
      [{ ids: [1], set: {} }, ["/set"]],
      [{ ids: [1], set: [] }, ["/set"]],
      [{ ids: [1], set: { tag: null } }, ["/set/tag"]],
      [{ ids: [1], set: { id: 2, name: "" } }, ["/set/id", "/set/name"]],
      [{ ids: ["1"], set: { tag: "x" } }, ["/ids/0"]],
      [{ ids: ["1"], set: { name: "" }, more: 1 }, ["/more", "/set/name", "/ids/0"]],
    ])("of %j is 400, and changes nothing", async (body, places) => {
      await plant([fern]);
      await refuse("POST /plants/bulk-update", places, body);
      expect(await typesOfEvents()).toEqual(["plant.created"]);
    });

    test("needs the scope write", async () => {
      await reader("POST /plants/bulk-update", 403, { ids: [1], set: { tag: "x" } });
    });
  });
});
