/** Create: what a name, a tag and an id may be, what it returns, and safe retries. */
import { describe, expect, test } from "bun:test";
import { onEachEngine } from "./garden.ts";

/** One code point, two UTF-16 units, four bytes of UTF-8. */
const leaf = "\u{1f33f}";
const far = 2n ** 53n + 1n;
const [lowest, highest] = [-(2n ** 63n), 2n ** 63n - 1n];

onEachEngine(({ call, refuse, stranger, list, atOnce, service }) => {
  const create = (body: object | string, status = 201, headers?: Record<string, string>) =>
    call("POST /plants", status, body, headers);
  const all = async () => (await call("GET /plants?include=id", 200)).json;

  describe("a create", () => {
    test("is 201, with Location and ETag, the name and the tag, with include=id the id, and nothing else", async () => {
      const { text, headers } = await create({ name: "Fern", tag: "shade", id: 7 });
      expect(text).toBe('{"name":"Fern","tag":"shade"}');
      expect(headers.get("Location")).toBe(`${service.base}/plants/7`);
      expect(headers.get("ETag")).toMatch(/^"[!#-~]+"$/);
      expect(headers.get("Content-Type")).toBe("application/json");
      const withId = await call("POST /plants?include=id", 201, { name: "Fern" });
      expect(withId.text).toBe('{"id":8,"name":"Fern","tag":""}');
    });

    test("of a taken id is 409, and nothing changes", async () => {
      await create({ name: "Fern", id: 1 });
      await create({ name: "Fern", id: 1 }, 409);
      await create({ name: "Ivy", id: 1 }, 409);
      expect(await list()).toEqual(["Fern"]);
      await stranger("POST /plants", 201, { name: "Ivy", id: 1 });
    });

    test("of one id, eight times at once, is 201 once and 409 otherwise", async () => {
      const statuses = await atOnce(8, "POST /plants", { name: "Fern", id: 1 });
      expect(statuses).toEqual([201, ...Array(7).fill(409)]);
    });
  });

  test.each(["n", "n".repeat(200), leaf.repeat(200)])(
    "a name has 1 to 200 code points: %#",
    async (name) => {
      expect((await create({ name })).json).toEqual({ name, tag: "" });
      expect(await list()).toEqual([name]);
    },
  );

  test.each([undefined, "", "t".repeat(100), leaf.repeat(100)])(
    "a tag has 0 to 100 code points, and none if it is absent: %#",
    async (tag) => {
      expect((await create({ name: "Fern", tag })).json).toEqual({ name: "Fern", tag: tag ?? "" });
      expect((await call("GET /plants", 200)).json).toEqual([{ name: "Fern", tag: tag ?? "" }]);
    },
  );

  const refusedNames = [
    "n".repeat(201),
    leaf.repeat(201),
    "",
    " \t\r\n",
    "\u00a0\u3000",
    undefined,
  ];
  const refusedTags = ["t".repeat(101), leaf.repeat(101)];
  const refusedTexts = [null, 7, true, ["Fern"], {}, "a\u0000b", "\ud83c", "\udf3f x"];

  test.each([
    ...[...refusedNames, ...refusedTexts].map((name) => ({ tag: "x", name })),
    ...[...refusedTags, ...refusedTexts].map((tag) => ({ name: "Fern", tag })),
  ])(
    "a text is 400 if it is too long, no string, or has U+0000 or half a character: %#",
    async (body) => {
      expect((await create(body, 400)).errors).toEqual(body.name === "Fern" ? ["/tag"] : ["/name"]);
      expect(await list()).toEqual([]);
    },
  );

  test.each([" Fern \n", "e\u0301 \u00e9 \ufb01", 'a "b"\\\r\n</script>', "\u2028x\u0001"])(
    "strings are kept as sent, not trimmed, normalized or escaped: %#",
    async (text) => {
      await create({ name: text, tag: text });
      expect((await call("GET /plants", 200)).json).toEqual([{ name: text, tag: text }]);
    },
  );

  test("escapes mean what they stand for", async () => {
    await create('{"\\u006eame":"Fern \\ud83c\\udf3f"}');
    expect(await list()).toEqual([`Fern ${leaf}`]);
  });

  describe("an id", () => {
    test.each([
      ...["null", '"1"', "true", "[]", "1.5", "1e-1"],
      ...["9223372036854775808", "-9223372036854775809", "1e400", "184467440737095516160"],
    ])("that is no integer of 64 bits is 400: %s", async (id) => {
      expect((await create(`{"name":"Fern","id":${id}}`, 400)).errors).toEqual(["/id"]);
      expect(await list()).toEqual([]);
    });

    test.each([
      ["0", 0],
      ["-0", 0],
      ["7.0", 7],
      ["7e0", 7],
      [`${far}`, far],
      [`${lowest}`, lowest],
      [`${highest}`, highest],
    ])("of %s is kept exactly", async (text, id) => {
      const { headers } = await create(`{"name":"Fern","id":${text}}`);
      expect(headers.get("Location")).toBe(`${service.base}/plants/${id}`);
      expect(await all()).toEqual([{ id, name: "Fern", tag: "" }]);
      expect((await call(`GET /plants/${id}?include=id`, 200)).json.id).toBe(id);
      await call(`DELETE /plants/${id}`, 204);
    });

    const assign = async () =>
      (await call("POST /plants?include=id", 201, { name: "Fern" })).json.id;

    test("that is absent is assigned: one more than any before it, even after deletions", async () => {
      expect([await assign(), await assign()]).toEqual([1, 2]);
      await call("DELETE /plants/2", 204);
      expect(await assign()).toBe(3);
      await create({ name: "Fern", id: 10 });
      await call("PUT /plants/20", 201, { name: "Fern" });
      expect(await assign()).toBe(21);
    });

    test("below 1 or above 2^52 doesn't count for those, and after 2^52 none is left", async () => {
      for (const id of [-5, 0, 2 ** 52 + 1]) await create({ name: "Fern", id });
      expect(await assign()).toBe(1);
      await create({ name: "Fern", id: 2 ** 52 });
      await create({ name: "Fern" }, 409);
      await create({ name: "Fern", id: 5 });
    });
  });

  describe("an Idempotency-Key", () => {
    const fern = { name: "Fern", tag: "shade", id: 1 };
    const keyed = (body: object | string, status = 201, key = "k") =>
      create(body, status, { "Idempotency-Key": key });
    const isReplay = ({ headers }: { headers: Headers }) => headers.get("Idempotency-Replayed");

    test("with the same request gives the same response, and says so", async () => {
      const first = await keyed({ name: "Fern" });
      const again = await keyed({ name: "Fern" });
      expect([isReplay(first), isReplay(again)]).toEqual([null, "true"]);
      expect(again.text).toBe(first.text);
      for (const name of ["Location", "ETag"]) expect(again.header(name)).toBe(first.header(name));
      const headers = { "Idempotency-Key": "k" };
      const withId = await call("POST /plants?include=id", 201, { name: "Fern" }, headers);
      expect(withId.json).toEqual({ id: 1, name: "Fern", tag: "" });
      expect(await list()).toEqual(["Fern"]);
    });

    test("creates one plant, however many retries come at once", async () => {
      const replies = await Promise.all(Array.from({ length: 6 }, () => keyed({ name: "Fern" })));
      expect(new Set(replies.map((reply) => reply.header("Location"))).size).toBe(1);
      expect(replies.filter((reply) => isReplay(reply) === null)).toHaveLength(1);
      expect(await list()).toEqual(["Fern"]);
    });

    test("does not bring a deleted plant back", async () => {
      await keyed(fern);
      await call("DELETE /plants/1", 204);
      expect(isReplay(await keyed(fern))).toBe("true");
      expect(await list()).toEqual([]);
    });

    test("with another request is 422, and creates nothing", async () => {
      await keyed(fern);
      for (const change of [{ name: "Ivy" }, { tag: "" }, { id: 2 }, { id: undefined }]) {
        await keyed({ ...fern, ...change }, 422);
      }
      expect(await list()).toEqual(["Fern"]);
    });

    test("takes another spelling of the same JSON for the same request", async () => {
      await keyed({ name: "Fern", tag: "", id: 1 });
      for (const text of [
        '{ "tag": "", "name": "Fern", "id": 1 }',
        '{"id":1.0,"n\\u0061me":"Fern"}',
      ]) {
        expect(isReplay(await keyed(text))).toBe("true");
      }
    });

    test("is the same bare and in double quotes", async () => {
      await keyed(fern, 201, 'a"b');
      expect(isReplay(await keyed(fern, 201, '"a\\"b"'))).toBe("true");
    });

    test("has 1 to 255 visible ASCII characters; any other is 400 and named", async () => {
      const [long, longer] = ["~".repeat(255), "~".repeat(256)];
      for (const key of [long, `"${long}"`, "!#$%&'()*+,-./:;<=>?@[]^_`{|}~"]) {
        await keyed({ name: "Fern" }, 201, key);
      }
      for (const key of [
        longer,
        `"${longer}"`,
        "",
        '""',
        '"open',
        '"a"b"',
        "a b",
        '"a b"',
        "\u00e9",
      ]) {
        await refuse("POST /plants", ["Idempotency-Key"], fern, { "Idempotency-Key": key });
      }
    });

    test("is not used up by a request that was refused", async () => {
      await keyed({ ...fern, tag: null }, 400);
      await create(fern);
      await keyed(fern, 409);
      expect(isReplay(await keyed({ ...fern, id: 2 }))).toBeNull();
    });

    test("means nothing in another garden", async () => {
      await keyed(fern);
      const other = { ...fern, id: 2 };
      const reply = await stranger("POST /plants", 201, other, { "Idempotency-Key": "k" });
      expect(isReplay(reply)).toBeNull();
    });
  });
});
