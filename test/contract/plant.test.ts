/** One plant: to read, replace, change and delete it, and its ETag. */
import { describe, expect, test } from "bun:test";
import { onEachEngine } from "./garden.ts";

onEachEngine(({ call, stranger, list, grow, plant, atOnce, service }) => {
  test.each(["GET", "DELETE"])(
    "%s of a plant deleted, unknown or in another garden is the same 404",
    async (method) => {
      await grow("Fern", "Ivy");
      await call("DELETE /plants/1", 204);

      const headers = { "X-Request-Id": "same" };
      const deleted = await call(`${method} /plants/1`, 404, undefined, headers);
      const neverExisted = await call(`${method} /plants/3`, 404, undefined, headers);
      const ofAnotherGarden = await stranger(`${method} /plants/2`, 404, undefined, headers);

      expect(neverExisted.text).toBe(deleted.text);
      expect(ofAnotherGarden.text).toBe(deleted.text);
    },
  );

  describe("a delete", () => {
    test("removes the plant, and its 204 has no body", async () => {
      await grow("Fern", "Ivy");

      const deleted = await call("DELETE /plants/1", 204);

      expect(deleted.text).toBe("");
      expect(await list()).toEqual(["Ivy"]);
    });

    test("frees the id", async () => {
      await grow("Fern", "Ivy");
      await call("DELETE /plants/1", 204);

      await call("POST /plants", 201, { name: "Moss", id: 1 });

      expect(await list()).toEqual(["Moss", "Ivy"]);
    });

    test("succeeds once if six are sent at once", async () => {
      await grow("Fern");
      const statuses = await atOnce(6, "DELETE /plants/1");
      expect(statuses).toEqual([204, 404, 404, 404, 404, 404]);
    });
  });

  describe("a put", () => {
    test("creates a plant that doesn't exist", async () => {
      const created = await call("PUT /plants/1", 201, { name: "Fern", tag: "shade" });

      expect(created.text).toBe('{"name":"Fern","tag":"shade"}');
      expect(created.headers.get("Location")).toBe(`${service.base}/plants/1`);
      expect(await list("tag=shade")).toEqual(["Fern"]);
    });

    test("replaces a plant that exists", async () => {
      await call("PUT /plants/1", 201, { name: "Fern", tag: "shade" });

      const replaced = await call("PUT /plants/1", 200, { name: "Ivy", tag: "hall", id: 1 });

      expect(replaced.text).toBe('{"name":"Ivy","tag":"hall"}');
      expect(replaced.headers.get("Location")).toBeNull();
      const { text } = await call("GET /plants/1", 200);
      expect(text).toBe('{"name":"Ivy","tag":"hall"}');
    });

    test("takes the plant out of the list of its old tag", async () => {
      await call("PUT /plants/1", 201, { name: "Fern", tag: "shade" });
      expect(await list("tag=shade")).toEqual(["Fern"]);

      await call("PUT /plants/1", 200, { name: "Ivy", tag: "hall" });

      expect(await list("tag=shade")).toEqual([]);
    });

    test("without a tag empties the tag", async () => {
      await call("PUT /plants/1", 201, { name: "Ivy", tag: "hall" });

      const untagged = await call("PUT /plants/1?include=id", 200, { name: "Ivy" });

      expect(untagged.text).toBe('{"id":1,"name":"Ivy","tag":""}');
      const { text } = await call("GET /plants/1?include=id", 200);
      expect(text).toBe('{"id":1,"name":"Ivy","tag":""}');
    });

    test("ignores an Idempotency-Key, and is never a replay", async () => {
      const key = { "Idempotency-Key": "k" };
      const created = await call("PUT /plants/1", 201, { name: "Fern", tag: "shade" }, key);
      const replaced = await call("PUT /plants/1", 200, { name: "Ivy", tag: "hall" }, key);

      expect(created.headers.get("Idempotency-Replayed")).toBeNull();
      expect(replaced.headers.get("Idempotency-Replayed")).toBeNull();
      expect(replaced.text).toBe('{"name":"Ivy","tag":"hall"}');
    });
  });

  describe("a patch", () => {
    test("changes only the fields it has, and returns the whole plant", async () => {
      await plant([{ id: 1n, name: "Fern", tag: "shade" }]);

      const renamed = await call("PATCH /plants/1", 200, { name: "Royal fern" });
      expect(renamed.text).toBe('{"name":"Royal fern","tag":"shade"}');

      const untagged = await call("PATCH /plants/1?include=id", 200, { tag: "" });
      expect(untagged.json).toEqual({ id: 1, name: "Royal fern", tag: "" });

      await call("PATCH /plants/1", 200, { name: "Ivy", tag: "hall" });
      const { json } = await call("GET /plants/1", 200);
      expect(json).toEqual({ name: "Ivy", tag: "hall" });
    });

    test("can be sent as a JSON Merge Patch", async () => {
      await plant([{ id: 1n, name: "Fern", tag: "shade" }]);
      const headers = { "Content-Type": "application/merge-patch+json" };
      const renamed = await call("PATCH /plants/1", 200, { name: "Royal fern" }, headers);
      expect(renamed.text).toBe('{"name":"Royal fern","tag":"shade"}');
    });

    test("of another type is a 415 that lists the accepted types", async () => {
      await grow("Fern");
      const headers = { "Content-Type": "text/plain" };
      const refused = await call("PATCH /plants/1", 415, {}, headers);
      expect(refused.headers.get("Accept")).toBe("application/json, application/merge-patch+json");
    });

    test("lists the accepted types in the response to OPTIONS", async () => {
      const ofPlant = await call("OPTIONS /plants/1", 204);
      const ofPlants = await call("OPTIONS /plants", 204);

      const accepted = "application/json, application/merge-patch+json";
      expect(ofPlant.headers.get("Accept-Patch")).toBe(accepted);
      expect(ofPlants.headers.get("Accept-Patch")).toBeNull();
    });

    test("of a plant in another garden is a 404", async () => {
      await plant([{ id: 1n, name: "Fern", tag: "shade" }]);

      await stranger("PATCH /plants/1", 404, { tag: "x" });

      const { json } = await call("GET /plants/1", 200);
      expect(json).toEqual({ name: "Fern", tag: "shade" });
    });

    test("with null removes the tag", async () => {
      await plant([{ id: 1n, name: "Fern", tag: "shade" }]);

      const untagged = await call("PATCH /plants/1", 200, { tag: null });

      expect(untagged.json).toEqual({ name: "Fern", tag: "" });
      const { json } = await call("GET /plants/1", 200);
      expect(json).toEqual({ name: "Fern", tag: "" });
    });

    test("can't remove the name, and changes nothing if it tries", async () => {
      await plant([{ id: 1n, name: "Fern", tag: "" }]);

      const refused = await call("PATCH /plants/1", 400, { name: null, tag: "hall" });

      expect(refused.errors).toEqual(["/name"]);
      const { json } = await call("GET /plants/1", 200);
      expect(json).toEqual({ name: "Fern", tag: "" });
    });

    test("can have the id of its path beside a change", async () => {
      await plant([{ id: 1n, name: "Fern", tag: "shade" }]);
      const { json } = await call("PATCH /plants/1", 200, { id: 1, tag: "hall" });
      expect(json).toEqual({ name: "Fern", tag: "hall" });
    });

    test("can't have another id", async () => {
      await plant([{ id: 1n, name: "Fern", tag: "shade" }]);

      const { errors } = await call("PATCH /plants/1", 400, { id: 2, tag: "pond" });

      expect(errors).toEqual(["/id"]);
      const { json } = await call("GET /plants/1", 200);
      expect(json).toEqual({ name: "Fern", tag: "shade" });
    });

    test("can't have an id and nothing to change", async () => {
      await grow("Fern");
      const { errors } = await call("PATCH /plants/1", 400, { id: 1 });
      expect(errors).toEqual([""]);
    });

    test("of the name keeps a patch of the tag that comes at the same time", async () => {
      await plant([{ id: 1n, name: "Fern", tag: "shade" }]);

      await Promise.all([
        call("PATCH /plants/1", 200, { name: "Ivy" }),
        call("PATCH /plants/1", 200, { tag: "hall" }),
      ]);

      const { json } = await call("GET /plants/1", 200);
      expect(json).toEqual({ name: "Ivy", tag: "hall" });
    });
  });

  describe("the ETag", () => {
    test("is strong", async () => {
      await grow("Fern");
      const { headers } = await call("GET /plants/1", 200);
      expect(headers.get("ETag")).toMatch(/^"[!#-~]+"$/);
    });

    test("is the same in every response with the same name and tag", async () => {
      const fern = { name: "Fern", tag: "shade" };
      const created = await call("POST /plants", 201, { name: "Fern", tag: "shade", id: 1 });
      const etag = created.headers.get("ETag");

      const replies = [
        await call("GET /plants/1", 200),
        await call("HEAD /plants/1", 200),
        await call("GET /plants/1?include=id", 200),
        await call("PUT /plants/1", 200, fern),
        await call("PUT /plants/2", 201, fern),
        await call("PATCH /plants/2", 200, { tag: "shade" }),
      ];

      expect(etag).toMatch(/^"[!#-~]+"$/);
      for (const { headers } of replies) expect(headers.get("ETag")).toBe(etag);
    });

    test("is another one for every other name and tag", async () => {
      const replies = [
        await call("PUT /plants/1", 201, { name: "Fern", tag: "shade" }),
        await call("PUT /plants/1", 200, { name: "a", tag: "b" }),
        await call("PUT /plants/1", 200, { name: "a" }),
        await call("PUT /plants/1", 200, { name: "ab" }),
      ];

      const etags = new Set(replies.map(({ headers }) => headers.get("ETag")));
      expect(etags.size).toBe(4);
    });
  });
});
