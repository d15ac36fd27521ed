/** Create: what a name, a tag and an id may be, what it returns, and safe retries. */
import { describe, expect, test } from "bun:test";
import { onEachEngine } from "./garden.ts";

/** One code point, two UTF-16 units, four bytes of UTF-8. */
const leaf = "\u{1f33f}";
const far = 2n ** 53n + 1n;
const [lowest, highest] = [-(2n ** 63n), 2n ** 63n - 1n];

onEachEngine(({ call, stranger, list, atOnce, service }) => {
  const create = (body: object | string, status = 201, headers?: Record<string, string>) =>
    call("POST /plants", status, body, headers);

  test("a create is 201, with Location and ETag, the name and the tag, with include=id the id, and nothing else", async () => {
    const { text, headers } = await create({ name: "Fern", tag: "shade", id: 7 });
    expect(text).toBe('{"name":"Fern","tag":"shade"}');
    expect(headers.get("Location")).toBe(`${service.base}/plants/7`);
    expect(headers.get("ETag")).toMatch(/^"[!#-~]+"$/);
    expect(headers.get("Content-Type")).toBe("application/json");
    const withId = await call("POST /plants?include=id", 201, { name: "Fern" });
    expect(withId.text).toBe('{"id":8,"name":"Fern","tag":""}');
    await stranger("POST /plants", 201, { name: "Ivy", id: 7 });
  });

  test("a create of one id, eight times at once, is 201 once and 409 otherwise", async () => {
    const statuses = await atOnce(8, "POST /plants", { name: "Fern", id: 1 });
    expect(statuses).toEqual([201, ...Array(7).fill(409)]);
  });

  test.each([
    ["n", undefined],
    ["n".repeat(200), "t".repeat(100)],
    [leaf.repeat(200), leaf.repeat(100)],
    [" Fern \n", ""],
    ...["e\u0301 \u00e9 \ufb01", 'a "b"\\\r\n</script>', "\u2028x\u0001"].map((text) => [
      text,
      text,
    ]),
  ])(
    "a name of 1 to 200 code points and a tag of 0 to 100 are kept as sent: %#",
    async (name, tag) => {
      const stored = { name, tag: tag ?? "" };
      expect((await create({ name, tag })).json).toEqual(stored);
      expect((await call("GET /plants", 200)).json).toEqual([stored]);
    },
  );

  test("escapes mean what they stand for", async () => {
    await create('{"\\u006eame":"Fern \\ud83c\\udf3f"}');
    expect(await list()).toEqual([`Fern ${leaf}`]);
  });

  describe("an id", () => {
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
      const plant = { id, name: "Fern", tag: "" };
      expect((await call("GET /plants?include=id", 200)).json).toEqual([plant]);
      expect((await call(`GET /plants/${id}?include=id`, 200)).json).toEqual(plant);
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
      expect((await create({ name: "Fern" }, 409)).json.detail).toStartWith("No id");
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

    test("is the same in quotes, and so is the request in another spelling of its JSON", async () => {
      await keyed({ name: "Fern", tag: "", id: 1 }, 201, 'a"b');
      const spellings = [
        '{ "tag": "", "name": "Fern", "id": 1 }',
        '{"id":1.0,"n\\u0061me":"Fern"}',
      ];
      for (const text of spellings)
        expect(isReplay(await keyed(text, 201, '"a\\"b"'))).toBe("true");
    });

    test("may have 255 visible ASCII characters", async () => {
      const long = "~".repeat(255);
      for (const key of [long, `"${long}"`, "!#$%&'()*+,-./:;<=>?@[]^_`{|}~"]) {
        await keyed({ name: "Fern" }, 201, key);
      }
    });

    test("is not used up by a request that was refused, and means nothing in another garden", async () => {
      await keyed({ ...fern, tag: null }, 400);
      await create(fern);
      await keyed(fern, 409);
      expect(isReplay(await keyed({ ...fern, id: 2 }))).toBeNull();
      const reply = await stranger("POST /plants", 201, fern, { "Idempotency-Key": "k" });
      expect(isReplay(reply)).toBeNull();
    });
  });
});
