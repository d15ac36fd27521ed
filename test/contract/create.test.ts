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

  test("names of 1 to 200 code points and tags of 0 to 100 are kept as sent", async () => {
    const odd = [" Fern \n", "e\u0301 \u00e9 \ufb01", 'a "b"\\\r\n</script>', "\u2028x\u0001"];
    const plants = [
      { name: "n", tag: "" },
      { name: leaf.repeat(200), tag: leaf.repeat(100) },
      ...odd.map((text) => ({ name: text, tag: text })),
    ];
    for (const plant of plants) expect((await create(plant)).json).toEqual(plant);
    await create('{"\\u006eame":"Fern \\ud83c\\udf3f"}');
    const escaped = { name: `Fern ${leaf}`, tag: "" };
    expect((await call("GET /plants", 200)).json).toEqual([...plants, escaped]);
  });

  describe("an id", () => {
    test.each([
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
      await call(`PUT /plants/${id}`, 200, { name: "Fern" });
      expect((await call(`GET /plants/${id}?include=id`, 200)).json).toEqual(plant);
      await call(`DELETE /plants/${id}`, 204);
    });

    test("that is absent is one more than any from 1 to 2^52 before it, even after deletions", async () => {
      const assign = async () =>
        (await call("POST /plants?include=id", 201, { name: "Fern" })).json.id;
      for (const id of [-5, 0, 2 ** 52 + 1]) await create({ name: "Fern", id });
      expect([await assign(), await assign()]).toEqual([1, 2]);
      await call("DELETE /plants/2", 204);
      expect(await assign()).toBe(3);
      await create({ name: "Fern", id: 10 });
      expect(await assign()).toBe(11);
      await call("PUT /plants/20", 201, { name: "Fern" });
      expect(await assign()).toBe(21);
      await create({ name: "Fern", id: 2 ** 52 });
      expect((await create({ name: "Fern" }, 409)).json.detail).toStartWith("No id");
      await create({ name: "Fern", id: 5 });
    });
  });

  describe("an Idempotency-Key", () => {
    const fern = { name: "Fern", tag: "shade", id: 1 };
    const keyed = (body: object | string, status = 201, key = "k", query = "") =>
      call(`POST /plants${query}`, status, body, { "Idempotency-Key": key });
    const isReplay = ({ headers }: { headers: Headers }) => headers.get("Idempotency-Replayed");

    test("with the same request gives the same response, says so, and brings no plant back", async () => {
      const first = await keyed({ name: "Fern" });
      const again = await keyed({ name: "Fern" });
      expect([isReplay(first), isReplay(again), again.text]).toEqual([null, "true", first.text]);
      for (const name of ["Location", "ETag"]) {
        expect(again.headers.get(name)).toBe(first.headers.get(name));
      }
      const withId = await keyed({ name: "Fern" }, 201, "k", "?include=id");
      expect(withId.json).toEqual({ id: 1, name: "Fern", tag: "" });
      await call("DELETE /plants/1", 204);
      expect(isReplay(await keyed({ name: "Fern" }))).toBe("true");
      expect(await list()).toEqual([]);
    });

    test("creates one plant, however many retries come at once", async () => {
      const replies = await Promise.all(Array.from({ length: 6 }, () => keyed({ name: "Fern" })));
      expect(new Set(replies.map(({ headers }) => headers.get("Location"))).size).toBe(1);
      expect(replies.filter((reply) => isReplay(reply) === null)).toHaveLength(1);
      expect(await list()).toEqual(["Fern"]);
    });

    test("with another request is 422, and creates nothing", async () => {
      await keyed(fern);
      for (const change of [{ name: "Ivy" }, { tag: "" }, { id: 2 }, { id: undefined }]) {
        await keyed({ ...fern, ...change }, 422);
      }
      expect(await list()).toEqual(["Fern"]);
    });

    test("of up to 255 visible characters is the same in quotes, and so is the request in other JSON", async () => {
      const spelling = '{"tag":"shade", "id":1.0,"n\\u0061me":"Fern"}';
      await keyed(fern, 201, 'a"b');
      expect(isReplay(await keyed(spelling, 201, '"a\\"b"'))).toBe("true");
      for (const key of ["~".repeat(255), "!#$%&'()*+,-./:;<=>?@[]^_`{|}~"]) {
        await keyed({ name: "Fern" }, 201, key);
        expect(isReplay(await keyed({ name: "Fern" }, 201, `"${key}"`))).toBe("true");
      }
    });

    test("may have spaces in its quotes, and only there", async () => {
      const keys = ["a b", " a", "a  b ", " ", "~ ".repeat(127)];
      for (const key of keys) {
        expect(isReplay(await keyed({ name: "Fern" }, 201, `"${key}"`))).toBeNull();
        expect(isReplay(await keyed({ name: "Fern" }, 201, `"${key}"`))).toBe("true");
      }
      expect(await list()).toEqual(keys.map(() => "Fern"));
      for (const key of ["a b", '"a b', 'a b"', '"a\tb"']) {
        expect((await keyed({ name: "Fern" }, 400, key)).errors).toEqual(["Idempotency-Key"]);
      }
      // Bare, a quotation mark is fine anywhere but at the beginning.
      for (const key of ['a"', 'a"b"', "a\\"]) await keyed({ name: "Fern" }, 201, key);
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
