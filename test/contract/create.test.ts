/** Create: what a name, a tag and an id may be, what it returns, and safe retries. */
import { describe, expect, test } from "bun:test";
import { onEachEngine } from "./garden.ts";

/** One code point, two UTF-16 units, four bytes of UTF-8. */
const leaf = "\u{1f33f}";

onEachEngine(({ call, stranger, list, atOnce, service }) => {
  describe("a create", () => {
    test("returns the name and the tag, with Location and ETag", async () => {
      const plant = { name: "Fern", tag: "shade", id: 7 };

      const { text, headers } = await call("POST /plants", 201, plant);

      expect(text).toBe('{"name":"Fern","tag":"shade"}');
      expect(headers.get("Location")).toBe(`${service.base}/plants/7`);
      expect(headers.get("ETag")).toMatch(/^"[!#-~]+"$/);
      expect(headers.get("Content-Type")).toBe("application/json");
    });

    test("returns the id, too, with include=id", async () => {
      await call("POST /plants", 201, { name: "Ivy", id: 7 });

      const { text } = await call("POST /plants?include=id", 201, { name: "Fern" });

      expect(text).toBe('{"id":8,"name":"Fern","tag":""}');
    });

    test("can have an id that another garden uses", async () => {
      await call("POST /plants", 201, { name: "Fern", id: 7 });
      await stranger("POST /plants", 201, { name: "Ivy", id: 7 });
    });

    test("of one id, eight times at once, succeeds once and is a 409 otherwise", async () => {
      const statuses = await atOnce(8, "POST /plants", { name: "Fern", id: 1 });

      expect(statuses).toEqual([201, 409, 409, 409, 409, 409, 409, 409]);
    });
  });

  describe("a name and a tag are kept exactly", () => {
    test.each([
      ["of 1 and 0 code points", { name: "n", tag: "" }],
      ["of 200 and 100 code points", { name: leaf.repeat(200), tag: leaf.repeat(100) }],
      ["with white space around them", { name: " Fern \n", tag: " Fern \n" }],
      [
        "in any Unicode normalization form",
        { name: "e\u0301 \u00e9 \ufb01", tag: "e\u0301 \u00e9 \ufb01" },
      ],
      [
        "with characters that JSON or HTML escapes",
        { name: 'a "b"\\\r\n</script>', tag: 'a "b"\\\r\n</script>' },
      ],
      [
        "with line separators and control characters",
        { name: "\u2028x\u0001", tag: "\u2028x\u0001" },
      ],
    ])("%s", async (_, plant) => {
      const created = await call("POST /plants", 201, plant);

      expect(created.json).toEqual(plant);
      expect((await call("GET /plants", 200)).json).toEqual([plant]);
    });

    test("from JSON with escapes", async () => {
      await call("POST /plants", 201, '{"\\u006eame":"Fern \\ud83c\\udf3f"}');

      expect((await call("GET /plants", 200)).json).toEqual([{ name: `Fern ${leaf}`, tag: "" }]);
    });
  });

  describe("an id", () => {
    test.each([
      ["-0", 0],
      ["7.0", 7],
      ["7e0", 7],
      ["9007199254740993", 9007199254740993n],
      ["-9223372036854775808", -9223372036854775808n],
      ["9223372036854775807", 9223372036854775807n],
    ])("sent as %s is exact in every request", async (sent, id) => {
      const { headers } = await call("POST /plants", 201, `{"name":"Fern","id":${sent}}`);
      expect(headers.get("Location")).toBe(`${service.base}/plants/${id}`);

      const plant = { id, name: "Fern", tag: "" };
      expect((await call("GET /plants?include=id", 200)).json).toEqual([plant]);
      expect((await call(`GET /plants/${id}?include=id`, 200)).json).toEqual(plant);

      await call(`PUT /plants/${id}`, 200, { name: "Ivy" });
      expect((await call(`GET /plants/${id}`, 200)).json).toEqual({ name: "Ivy", tag: "" });

      await call(`DELETE /plants/${id}`, 204);
      expect(await list()).toEqual([]);
    });
  });

  describe("the next id", () => {
    /** Creates a plant without an id, and returns the one that it was assigned. */
    async function assignId(): Promise<unknown> {
      const { json } = await call("POST /plants?include=id", 201, { name: "Fern" });
      return json.id;
    }

    test("starts at 1 and goes up by one", async () => {
      expect(await assignId()).toBe(1);
      expect(await assignId()).toBe(2);
    });

    test.each([-5, 0, 2 ** 52 + 1])("isn't affected by the chosen id %d", async (id) => {
      await call("POST /plants", 201, { name: "Ivy", id });

      expect(await assignId()).toBe(1);
      expect(await assignId()).toBe(2);
    });

    test("is never that of a plant that was deleted", async () => {
      expect(await assignId()).toBe(1);
      expect(await assignId()).toBe(2);
      await call("DELETE /plants/2", 204);

      expect(await assignId()).toBe(3);
    });

    test("comes after an id that a create has chosen", async () => {
      await call("POST /plants", 201, { name: "Ivy", id: 10 });

      expect(await assignId()).toBe(11);
    });

    test("comes after an id that a PUT has chosen", async () => {
      await call("PUT /plants/20", 201, { name: "Ivy" });

      expect(await assignId()).toBe(21);
    });

    test("can be 2^52", async () => {
      await call("POST /plants", 201, { name: "Ivy", id: 2 ** 52 - 1 });

      expect(await assignId()).toBe(2 ** 52);
    });

    test("doesn't exist once 2^52 is used, but others can still be chosen", async () => {
      await call("POST /plants", 201, { name: "Ivy", id: 2 ** 52 });

      const { json } = await call("POST /plants", 409, { name: "Fern" });

      expect(json.detail).toStartWith("No id");
      await call("POST /plants", 201, { name: "Fern", id: 5 });
    });
  });

  describe("a retry with an Idempotency-Key", () => {
    test("gets the original response, marked as replayed", async () => {
      const key = { "Idempotency-Key": "k" };

      const first = await call("POST /plants", 201, { name: "Fern" }, key);
      const retry = await call("POST /plants", 201, { name: "Fern" }, key);

      expect(first.headers.get("Idempotency-Replayed")).toBeNull();
      expect(retry.headers.get("Idempotency-Replayed")).toBe("true");
      expect(retry.text).toBe(first.text);
      expect(retry.headers.get("Location")).toBe(first.headers.get("Location"));
      expect(retry.headers.get("ETag")).toBe(first.headers.get("ETag"));
      expect(await list()).toEqual(["Fern"]);
    });

    test("gets the id with include=id, even if the first request didn't", async () => {
      const key = { "Idempotency-Key": "k" };
      await call("POST /plants", 201, { name: "Fern" }, key);

      const retry = await call("POST /plants?include=id", 201, { name: "Fern" }, key);

      expect(retry.json).toEqual({ id: 1, name: "Fern", tag: "" });
    });

    test("doesn't bring back a plant that was deleted", async () => {
      const key = { "Idempotency-Key": "k" };
      await call("POST /plants", 201, { name: "Fern" }, key);
      await call("DELETE /plants/1", 204);

      const retry = await call("POST /plants", 201, { name: "Fern" }, key);

      expect(retry.headers.get("Idempotency-Replayed")).toBe("true");
      expect(await list()).toEqual([]);
    });

    test("creates one plant, however many of them come at once", async () => {
      const key = { "Idempotency-Key": "k" };

      const replies = await Promise.all(
        Array.from({ length: 6 }, () => call("POST /plants", 201, { name: "Fern" }, key)),
      );

      const locations = replies.map(({ headers }) => headers.get("Location"));
      expect(new Set(locations).size).toBe(1);
      const originals = replies.filter(({ headers }) => !headers.has("Idempotency-Replayed"));
      expect(originals).toHaveLength(1);
      expect(await list()).toEqual(["Fern"]);
    });

    test("can spell the same plant differently", async () => {
      const key = { "Idempotency-Key": "k" };
      await call("POST /plants", 201, { name: "Fern", tag: "shade", id: 1 }, key);

      const respelled = '{"tag":"shade", "id":1.0,"n\\u0061me":"Fern"}';
      const retry = await call("POST /plants", 201, respelled, key);

      expect(retry.headers.get("Idempotency-Replayed")).toBe("true");
    });

    test.each([
      ["name", { name: "Ivy", tag: "shade", id: 1 }],
      ["tag", { name: "Fern", tag: "", id: 1 }],
      ["id", { name: "Fern", tag: "shade", id: 2 }],
      ["id: none", { name: "Fern", tag: "shade" }],
    ])("is a 422 and creates nothing with another %s", async (_, changed) => {
      const key = { "Idempotency-Key": "k" };
      await call("POST /plants", 201, { name: "Fern", tag: "shade", id: 1 }, key);

      await call("POST /plants", 422, changed, key);

      expect(await list()).toEqual(["Fern"]);
    });
  });

  describe("an Idempotency-Key", () => {
    test.each([
      ["of 255 characters", "~".repeat(255)],
      ["of all punctuation that needs no escape", "!#$%&'()*+,-./:;<=>?@[]^_`{|}~"],
    ])("%s is the same bare and in quotes", async (_, key) => {
      await call("POST /plants", 201, { name: "Fern" }, { "Idempotency-Key": key });

      const quoted = { "Idempotency-Key": `"${key}"` };
      const { headers } = await call("POST /plants", 201, { name: "Fern" }, quoted);

      expect(headers.get("Idempotency-Replayed")).toBe("true");
    });

    test("with a quotation mark is the same bare and, with a backslash, in quotes", async () => {
      await call("POST /plants", 201, { name: "Fern" }, { "Idempotency-Key": 'a"b' });

      const quoted = { "Idempotency-Key": '"a\\"b"' };
      const { headers } = await call("POST /plants", 201, { name: "Fern" }, quoted);

      expect(headers.get("Idempotency-Replayed")).toBe("true");
    });

    test("in quotes can have spaces, and each of them counts", async () => {
      const quotedKeys = ['"a b"', '" a"', '"a  b "', '" "', `"${"~ ".repeat(127)}"`];

      for (const quotedKey of quotedKeys) {
        const key = { "Idempotency-Key": quotedKey };
        const first = await call("POST /plants", 201, { name: "Fern" }, key);
        expect(first.headers.get("Idempotency-Replayed")).toBeNull();
        const retry = await call("POST /plants", 201, { name: "Fern" }, key);
        expect(retry.headers.get("Idempotency-Replayed")).toBe("true");
      }

      expect(await list()).toEqual(["Fern", "Fern", "Fern", "Fern", "Fern"]);
    });

    test.each(["a b", '"a b', 'a b"', '"a\tb"'])("like %j is a 400", async (key) => {
      const reply = await call("POST /plants", 400, { name: "Fern" }, { "Idempotency-Key": key });

      expect(reply.errors).toEqual(["Idempotency-Key"]);
    });

    // Only at its beginning does a quotation mark mean that the key is in quotes.
    test.each(['a"', 'a"b"', "a\\"])("like %s is fine without quotes", async (key) => {
      await call("POST /plants", 201, { name: "Fern" }, { "Idempotency-Key": key });
    });

    test("can be sent again after a 400", async () => {
      const key = { "Idempotency-Key": "k" };
      await call("POST /plants", 400, { name: "Fern", tag: null }, key);

      const { headers } = await call("POST /plants", 201, { name: "Fern" }, key);

      expect(headers.get("Idempotency-Replayed")).toBeNull();
    });

    test("can be sent again after a 409, even with another id", async () => {
      const key = { "Idempotency-Key": "k" };
      await call("POST /plants", 201, { name: "Ivy", id: 1 });
      await call("POST /plants", 409, { name: "Fern", id: 1 }, key);

      const { headers } = await call("POST /plants", 201, { name: "Fern", id: 2 }, key);

      expect(headers.get("Idempotency-Replayed")).toBeNull();
    });

    test("means nothing in another garden", async () => {
      const key = { "Idempotency-Key": "k" };
      await call("POST /plants", 201, { name: "Fern", id: 2 }, key);

      const { headers } = await stranger("POST /plants", 201, { name: "Fern", id: 1 }, key);

      expect(headers.get("Idempotency-Replayed")).toBeNull();
    });
  });
});
