/** One plant: to get, replace and delete it, its ETag, and preconditions. */
import { describe, expect, test } from "bun:test";
import { onEachEngine } from "./garden.ts";

const fern = { name: "Fern", tag: "shade" };
const ivy = { name: "Ivy", tag: "hall" };
const far = 2n ** 53n + 1n;

onEachEngine(({ call, stranger, list, grow, plant, atOnce, service }) => {
  const put = (body: object | string, status = 200, headers?: Record<string, string>) =>
    call("PUT /plants/1", status, body, headers);
  const tagOf = async () => (await call("GET /plants/1", 200)).header("ETag") ?? "";

  test.each(["GET", "DELETE", "PUT"])(
    "%s of an id that is no integer of 64 bits in its shortest form is 400",
    async (method) => {
      await grow("Fern");
      const malformed = ["x", "1.5", "1x", "1%20", "0x1", "01", "%2B1", "1.0", "1e0", "-0", "%31"];
      const outside = ["9223372036854775808", "-9223372036854775809", "1".repeat(400)];
      for (const id of [...malformed, ...outside]) {
        const body = method === "PUT" ? fern : undefined;
        expect((await call(`${method} /plants/${id}`, 400, body)).errors).toEqual(["id"]);
      }
      expect(await list()).toEqual(["Fern"]);
    },
  );

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
      await call("HEAD /plants/1", 404);
      expect(await list()).toEqual(["Ivy"]);
    },
  );

  test("neighbors beyond 2^53 are told apart", async () => {
    await plant([far, far + 1n].map((id) => ({ id, name: `Plant ${id}` })));
    expect((await call(`GET /plants/${far}?include=id`, 200)).json.id).toBe(far);
    await call(`PUT /plants/${far}`, 200, fern);
    await call(`DELETE /plants/${far + 1n}`, 204);
    await call(`GET /plants/${far + 1n}`, 404);
    expect(await list()).toEqual(["Fern"]);
  });

  describe("a get", () => {
    test("shows name and tag, with include=id the id, and nothing else", async () => {
      await plant([{ id: 1n, ...fern }]);
      const { text, headers } = await call("GET /plants/1", 200);
      expect(text).toBe('{"name":"Fern","tag":"shade"}');
      const head = await call("HEAD /plants/1", 200);
      for (const name of ["Content-Type", "ETag"]) {
        expect(head.header(name)).toBe(headers.get(name) ?? "");
      }
      expect((await call("GET /plants/1?include=id", 200)).json).toEqual({ id: 1, ...fern });
      expect((await call("GET /plants/1?include=name", 400)).errors).toEqual(["include"]);
    });
  });

  describe("a delete", () => {
    test("is 204 without a body, 404 the second time, and the id is free again", async () => {
      await grow("Fern", "Ivy");
      const { text, headers } = await call("DELETE /plants/1", 204);
      expect([text, headers.get("Content-Type")]).toEqual(["", null]);
      await call("DELETE /plants/1", 404);
      expect(await list()).toEqual(["Ivy"]);
      await call("POST /plants", 201, { name: "Moss", id: 1 });
      expect(await list()).toEqual(["Moss", "Ivy"]);
    });

    test("of one plant, six times at once, is 204 once and 404 otherwise", async () => {
      await grow("Fern");
      expect(await atOnce(6, "DELETE /plants/1")).toEqual([204, ...Array(5).fill(404)]);
    });
  });

  describe("a put", () => {
    test("replaces a plant that is there: 200, with the name and the tag", async () => {
      await plant([{ id: 1n, ...fern }]);
      expect(await list("tag=shade")).toEqual(["Fern"]);
      const { text, headers } = await put(ivy);
      expect(text).toBe('{"name":"Ivy","tag":"hall"}');
      expect([headers.get("Content-Type"), headers.get("Location")]).toEqual([
        "application/json",
        null,
      ]);
      expect((await call("GET /plants/1", 200)).json).toEqual(ivy);
      expect([await list(), await list("tag=shade"), await list("tag=hall")]).toEqual([
        ...[["Ivy"], [], ["Ivy"]],
      ]);
    });

    test("creates a plant that isn't there: 201, with Location", async () => {
      const { json, headers } = await put(fern, 201);
      expect([json, headers.get("Location")]).toEqual([fern, `${service.base}/plants/1`]);
      expect(await list()).toEqual(["Fern"]);
    });

    test("without a tag leaves none, and with include=id shows the id", async () => {
      await plant([{ id: 1n, ...fern }]);
      expect((await put({ name: "Fern" })).json).toEqual({ name: "Fern", tag: "" });
      const { json } = await call("PUT /plants/1?include=id", 200, ivy);
      expect(json).toEqual({ id: 1, ...ivy });
    });

    test("pays no attention to an Idempotency-Key", async () => {
      const key = { "Idempotency-Key": "k" };
      await put(fern, 201, key);
      expect((await put(fern, 200, key)).header("Idempotency-Replayed")).toBeUndefined();
      expect((await put(ivy, 200, key)).json).toEqual(ivy);
    });

    test("has the rules of a create, and an id in the body must be the one in the path", async () => {
      await put({ ...fern, id: 1 }, 201);
      const wrong = { name: "", tag: null, color: 1, id: 2 };
      const { errors } = await put(wrong, 400);
      expect(errors.toSorted()).toEqual(["/color", "/id", "/name", "/tag"]);
      expect((await put({ ...ivy, id: 2 }, 400)).errors).toEqual(["/id"]);
      expect((await put("{", 400)).errors).toEqual([""]);
      expect((await call("PUT /plants/1?limit=1", 400, ivy)).errors).toEqual(["limit"]);
      expect(await list()).toEqual(["Fern"]);
    });
  });

  describe("an ETag", () => {
    test("is strong, and the same wherever the plant is shown", async () => {
      const created = await call("POST /plants", 201, { ...fern, id: 1 });
      const shown = [
        await call("GET /plants/1", 200),
        await call("HEAD /plants/1", 200),
        await call("GET /plants/1?include=id", 200),
        await put(fern),
        await call("PUT /plants/2", 201, fern),
      ];
      expect(created.header("ETag")).toMatch(/^"[!#-~]+"$/);
      for (const reply of shown) expect(reply.header("ETag")).toBe(created.header("ETag"));
    });

    test("changes with the name, and with the tag", async () => {
      const tags = new Set<string | undefined>();
      tags.add((await put({ name: "a", tag: "b" }, 201)).header("ETag"));
      tags.add((await put({ name: "a", tag: "" })).header("ETag"));
      tags.add((await put({ name: "ab", tag: "" })).header("ETag"));
      expect(tags.size).toBe(3);
    });
  });

  describe("a precondition", () => {
    const withTag = async (text: string) => text.replace("TAG", await tagOf());

    test.each(["TAG", "W/TAG", '"other", TAG', "*"])(
      "If-None-Match: %s that the plant matches makes a read 304",
      async (text) => {
        await grow("Fern");
        const known = { "If-None-Match": await withTag(text) };
        const { headers } = await call("GET /plants/1", 304, undefined, known);
        expect([headers.get("Content-Type"), headers.get("ETag")]).toEqual([null, await tagOf()]);
        await call("HEAD /plants/1", 304, undefined, known);
        await call("GET /plants/1", 200, undefined, { "If-None-Match": '"other"' });
      },
    );

    test.each([
      ...["TAG", '"other" , TAG', "TAG,", ', ,"other",,TAG', "*"].map(
        (text) => [text, 200] as const,
      ),
      ...['"other"', "W/TAG", '""'].map((text) => [text, 412] as const),
    ])("If-Match: %s makes PUT and DELETE %d, which then change nothing", async (text, status) => {
      await grow("Fern");
      const headers = { "If-Match": await withTag(text) };
      await put(status === 200 ? { name: "Fern" } : ivy, status, headers);
      expect(await list()).toEqual(["Fern"]);
      await call("DELETE /plants/1", status === 200 ? 204 : 412, undefined, headers);
      expect(await list()).toEqual(status === 200 ? [] : ["Fern"]);
    });

    test.each(["*", '"x"', 'W/"x"'])(
      "If-Match: %s of a plant that isn't there makes PUT 412, and DELETE 404",
      async (text) => {
        await put(ivy, 412, { "If-Match": text });
        await call("DELETE /plants/1", 404, undefined, { "If-Match": text });
        expect(await list()).toEqual([]);
      },
    );

    test("If-None-Match: * lets PUT create, and is 412 if the plant is there", async () => {
      await put(fern, 201, { "If-None-Match": "*" });
      await put(ivy, 412, { "If-None-Match": "*" });
      expect(await list()).toEqual(["Fern"]);
      expect((await put(ivy, 400, { "If-None-Match": '"x"' })).errors).toEqual(["If-None-Match"]);
    });

    test("that six puts at once share lets one of them pass", async () => {
      await grow("Fern");
      const headers = { "If-Match": await tagOf() };
      expect(await atOnce(6, "PUT /plants/1", ivy, headers)).toEqual([200, ...Array(5).fill(412)]);
    });

    test.each(["x", "1", '"x', '"x" "y"', "*, *", "W/*", "", ","])(
      "that is malformed is 400 and named: %p",
      async (text) => {
        for (const [request, name] of [
          ["PUT /plants/1", "If-Match"],
          ["DELETE /plants/1", "If-Match"],
          ["GET /plants/1", "If-None-Match"],
        ] as const) {
          const body = request.startsWith("PUT") ? ivy : undefined;
          expect((await call(request, 400, body, { [name]: text })).errors).toEqual([name]);
        }
        expect(await list()).toEqual([]);
      },
    );
  });
});
