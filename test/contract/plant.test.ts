/** One plant: to get, replace, patch and delete it, its ETag, and preconditions. */
import { describe, expect, test } from "bun:test";
import { onEachEngine } from "./garden.ts";

const fern = { name: "Fern", tag: "shade" };
const ivy = { name: "Ivy", tag: "hall" };
const stored = [{ id: 1n, ...fern }];

onEachEngine(({ call, stranger, list, grow, plant, atOnce, service }) => {
  const put = (body: object | string, status = 200, headers?: Record<string, string>) =>
    call("PUT /plants/1", status, body, headers);
  const get = () => call("GET /plants/1", 200);

  test.each(["GET", "DELETE"])(
    "%s is the same 404 for a plant that never was, one that is gone and one of another garden",
    async (method) => {
      await grow("Fern", "Ivy");
      await call("DELETE /plants/1", 204);
      const headers = { "X-Request-Id": "same" };
      const gone = await call(`${method} /plants/1`, 404, undefined, headers);
      const never = await call(`${method} /plants/3`, 404, undefined, headers);
      const foreign = await stranger(`${method} /plants/2`, 404, undefined, headers);
      expect([never.text, foreign.text]).toEqual([gone.text, gone.text]);
    },
  );

  test("a delete is 204 without a body, once even if six come at once, and the id is free again", async () => {
    await grow("Fern", "Ivy");
    await call("DELETE /plants/1", 204);
    expect(await list()).toEqual(["Ivy"]);
    await call("POST /plants", 201, { name: "Moss", id: 1 });
    expect(await list()).toEqual(["Moss", "Ivy"]);
    expect(await atOnce(6, "DELETE /plants/1")).toEqual([204, ...Array(5).fill(404)]);
  });

  test("a put creates the plant or replaces it, its tag included, whatever Idempotency-Key it has", async () => {
    const key = { "Idempotency-Key": "k" };
    const created = await put(fern, 201, key);
    expect(created.text).toBe('{"name":"Fern","tag":"shade"}');
    expect(created.headers.get("Location")).toBe(`${service.base}/plants/1`);
    expect(await list("tag=shade")).toEqual(["Fern"]);
    const replaced = await put({ ...ivy, id: 1 }, 200, key);
    expect(replaced.text).toBe('{"name":"Ivy","tag":"hall"}');
    for (const name of ["Location", "Idempotency-Replayed"]) {
      expect(replaced.headers.get(name)).toBeNull();
    }
    expect((await get()).text).toBe('{"name":"Ivy","tag":"hall"}');
    expect(await list("tag=shade")).toEqual([]);
    const untagged = await call("PUT /plants/1?include=id", 200, { name: "Ivy" });
    expect(untagged.text).toBe('{"id":1,"name":"Ivy","tag":""}');
    expect((await call("GET /plants/1?include=id", 200)).text).toBe(untagged.text);
  });

  describe("a patch", () => {
    const patch = (change: object, status = 200, headers?: Record<string, string>) =>
      call("PATCH /plants/1", status, change, headers);

    test("changes what it names, keeps the rest, and answers with the plant", async () => {
      await plant(stored);
      const headers = { "Content-Type": "application/merge-patch+json" };
      const renamed = await patch({ name: "Royal fern" }, 200, headers);
      expect(renamed.text).toBe('{"name":"Royal fern","tag":"shade"}');
      const moved = await call("PATCH /plants/1?include=id", 200, { tag: "" });
      expect(moved.json).toEqual({ id: 1, name: "Royal fern", tag: "" });
      await patch(ivy);
      expect((await get()).json).toEqual(ivy);
      await stranger("PATCH /plants/1", 404, { tag: "x" });
      const refused = await patch({}, 415, { "Content-Type": "text/plain" });
      const accepted = "application/json, application/merge-patch+json";
      expect(refused.headers.get("Accept")).toBe(accepted);
    });

    test("of different fields at once loses none of them", async () => {
      await plant(stored);
      await Promise.all([{ name: "Ivy" }, { tag: "hall" }].map((change) => patch(change)));
      expect((await get()).json).toEqual(ivy);
    });
  });

  test("an ETag is strong, the same wherever a plant with this content is shown, and no other's", async () => {
    const replies = [
      await call("POST /plants", 201, { ...fern, id: 1 }),
      await get(),
      await call("HEAD /plants/1", 200),
      await call("GET /plants/1?include=id", 200),
      await put(fern),
      await call("PUT /plants/2", 201, fern),
      await call("PATCH /plants/2", 200, { tag: "shade" }),
    ];
    const [etag, ...others] = new Set(replies.map(({ headers }) => headers.get("ETag")));
    expect([etag, others]).toEqual([expect.stringMatching(/^"[!#-~]+"$/), []]);
    const seen = new Set([etag]);
    for (const content of [{ name: "a", tag: "b" }, { name: "a" }, { name: "ab" }]) {
      seen.add((await put(content)).headers.get("ETag"));
    }
    expect(seen.size).toBe(4);
  });

  describe("a precondition", () => {
    const withTag = async (text: string) =>
      text.replace("TAG", (await get()).headers.get("ETag") ?? "");

    test("If-None-Match makes a read 304 if the plant matches", async () => {
      await grow("Fern");
      for (const text of ["TAG", "W/TAG", '"other", TAG', "*"]) {
        const known = { "If-None-Match": await withTag(text) };
        const { headers } = await call("GET /plants/1", 304, undefined, known);
        expect(headers.get("ETag")).toBe(await withTag("TAG"));
        await call("HEAD /plants/1", 304, undefined, known);
      }
      await call("GET /plants/1", 200, undefined, { "If-None-Match": '"other"' });
    });

    test.each([
      ["TAG", 200],
      [', ,"other" ,,TAG,', 200],
      ["*", 200],
      ["W/TAG", 412],
    ])("If-Match: %s makes PUT, PATCH and DELETE %d", async (text, status) => {
      await grow("Fern");
      const headers = { "If-Match": await withTag(text) };
      await put({ name: "Fern" }, status, headers);
      await call("PATCH /plants/1", status, { name: "Fern" }, headers);
      await call("DELETE /plants/1", status === 200 ? 204 : 412, undefined, headers);
      expect(await list()).toEqual(status === 200 ? [] : ["Fern"]);
    });

    test("that six puts at once share lets one of them pass", async () => {
      await put({ name: "Fern" }, 201, { "If-None-Match": "*" });
      const headers = { "If-Match": await withTag("TAG") };
      expect(await atOnce(6, "PUT /plants/1", ivy, headers)).toEqual([200, ...Array(5).fill(412)]);
    });
  });
});
