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

    test("with null removes the tag, but not the name", async () => {
      await plant(stored);
      expect((await patch({ tag: null })).json).toEqual({ name: "Fern", tag: "" });
      expect((await get()).json).toEqual({ name: "Fern", tag: "" });
      expect((await patch({ name: null, tag: "hall" }, 400)).errors).toEqual(["/name"]);
      expect((await get()).json).toEqual({ name: "Fern", tag: "" });
    });

    test("may have the id of its path beside what it changes, and no other", async () => {
      await plant(stored);
      expect((await patch({ id: 1, tag: "hall" })).json).toEqual({ name: "Fern", tag: "hall" });
      expect((await patch({ id: 2, tag: "pond" }, 400)).errors).toEqual(["/id"]);
      expect((await patch({ id: 1 }, 400)).errors).toEqual([""]);
      expect((await get()).json).toEqual({ name: "Fern", tag: "hall" });
    });

    test("says in OPTIONS what it may be sent as", async () => {
      const { headers } = await call("OPTIONS /plants/1", 204);
      expect(headers.get("Accept-Patch")).toBe("application/json, application/merge-patch+json");
      expect((await call("OPTIONS /plants", 204)).headers.get("Accept-Patch")).toBeNull();
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
      ['"other"', 412],
    ])("If-Match: %s makes GET, HEAD, PUT, PATCH and DELETE %d", async (text, status) => {
      await grow("Fern");
      const headers = { "If-Match": await withTag(text) };
      await call("GET /plants/1", status, undefined, headers);
      await call("HEAD /plants/1", status, undefined, headers);
      await put({ name: "Fern" }, status, headers);
      await call("PATCH /plants/1", status, { name: "Fern" }, headers);
      await call("DELETE /plants/1", status === 200 ? 204 : 412, undefined, headers);
      expect(await list()).toEqual(status === 200 ? [] : ["Fern"]);
    });

    test.each([
      ['"other"', 200],
      ['W/"other", "another"', 200],
      ["TAG", 412],
      ["W/TAG", 412],
      ['"other", TAG', 412],
      ["*", 412],
    ])("If-None-Match: %s makes PUT, PATCH and DELETE %d", async (text, status) => {
      await grow("Fern");
      const headers = { "If-None-Match": await withTag(text) };
      await put({ name: "Fern" }, status, headers);
      await call("PATCH /plants/1", status, { name: "Fern" }, headers);
      await call("DELETE /plants/1", status === 200 ? 204 : 412, undefined, headers);
      expect(await list()).toEqual(status === 200 ? [] : ["Fern"]);
    });

    test("is checked with the other one, and If-Match decides first", async () => {
      await grow("Fern");
      const tag = await withTag("TAG");
      const both = (ifMatch: string, ifNoneMatch: string) => ({
        "If-Match": ifMatch,
        "If-None-Match": ifNoneMatch,
      });
      await call("GET /plants/1", 412, undefined, both('"other"', tag));
      await call("GET /plants/1", 304, undefined, both(tag, tag));
      await call("GET /plants/1", 200, undefined, both(tag, '"other"'));
      await put(ivy, 412, both(tag, tag));
      await call("PATCH /plants/1", 412, ivy, both("*", "*"));
      await call("DELETE /plants/1", 412, undefined, both('"other"', '"other"'));
      await put(ivy, 200, both(tag, '"other"'));
    });

    test("of a plant that doesn't exist is a 404, and a PUT creates it unless If-Match is sent", async () => {
      for (const text of ["*", '"x"', 'W/"x"']) {
        for (const name of ["If-Match", "If-None-Match"]) {
          await call("GET /plants/1", 404, undefined, { [name]: text });
          await call("HEAD /plants/1", 404, undefined, { [name]: text });
          await call("PATCH /plants/1", 404, ivy, { [name]: text });
          await call("DELETE /plants/1", 404, undefined, { [name]: text });
        }
        await put(fern, 412, { "If-Match": text });
        await put(fern, 201, { "If-None-Match": text });
        await call("DELETE /plants/1", 204);
      }
    });

    test("If-Match with tags is a 412 of any other write, because nothing else has an ETag", async () => {
      await grow("Fern");
      const writes = {
        "POST /plants": ivy,
        "POST /plants/bulk": [ivy],
        "POST /plants/bulk-update": { ids: [1], set: ivy },
        "POST /plants/bulk-delete": { ids: [1] },
      };
      for (const [request, body] of Object.entries(writes)) {
        for (const tags of ['"nope"', 'W/"nope"', await withTag("TAG"), '"a", "b"']) {
          const { json } = await call(request, 412, body, { "If-Match": tags });
          expect(json.detail).toContain("Nothing was changed");
        }
        expect((await call(request, 400, body, { "If-Match": "nope" })).errors).toEqual([
          "If-Match",
        ]);
        expect((await call(request, 400, "{", { "If-Match": '"nope"' })).status).toBe(400);
      }
      expect(await list()).toEqual(["Fern"]);
      await call("POST /plants", 201, ivy, { "If-Match": "*", "If-None-Match": "*" });
      await call("POST /plants", 201, ivy, { "If-None-Match": '"nope"' });
      expect(await list()).toEqual(["Fern", "Ivy", "Ivy"]);
    });

    test("of a read without an ETag passes, and so does that of OPTIONS", async () => {
      await grow("Fern");
      for (const headers of [{ "If-Match": '"nope"' }, { "If-None-Match": "*" }]) {
        for (const path of ["/plants", "/plants?limit=1", "/tags", "/events", "/me"]) {
          await call(`GET ${path}`, 200, undefined, headers);
          await call(`HEAD ${path}`, 200, undefined, headers);
        }
        await call("OPTIONS /plants", 204, undefined, headers);
        await call("OPTIONS /plants/1", 204, undefined, headers);
      }
    });

    test("that six puts at once share lets one of them pass", async () => {
      await put({ name: "Fern" }, 201, { "If-None-Match": "*" });
      const headers = { "If-Match": await withTag("TAG") };
      expect(await atOnce(6, "PUT /plants/1", ivy, headers)).toEqual([200, ...Array(5).fill(412)]);
    });
  });
});
