/**
 * Invalid requests: each is refused, lists where its errors are, and changes nothing. `errors` has
 * the places in alphabetical order, each once.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { onEachEngine } from "./garden.ts";

/** One code point, but two UTF-16 units and four bytes of UTF-8. */
const leaf = "\u{1f33f}";

onEachEngine(({ call, grow }) => {
  beforeEach(() => grow("Fern"));

  // For every test here: nothing was created, changed or deleted.
  afterEach(async () => {
    const { json } = await call("GET /me", 200);
    expect(json).toMatchObject({ plants: 1, lastEvent: 1 });
  });

  describe("the path and the host:", () => {
    test.each([
      "/nothing-here",
      "/plants/",
      "/plants/1/2",
      "/Plants",
      "/plants%2F1",
      "/assets/x",
      "/me/",
    ])("there is nothing at %s", async (path) => {
      await call(`GET ${path}`, 404);
    });

    test.each(["a/b?c", "a, b", "user@host", "host:port", ""])(
      "refuses the Host '%s'",
      async (host) => {
        const { errors } = await call("GET /plants", 400, undefined, { Host: host });
        expect(errors).toEqual(["Host"]);
      },
    );
  });

  describe("the type and framing of a body:", () => {
    describe.each(["POST /plants", "PUT /plants/1"])("%s", (request) => {
      test.each([
        "",
        "text/plain",
        "application/merge-patch+json",
        "application/json; charset=latin1",
      ])("refuses the Content-Type '%s'", async (type) => {
        await call(request, 415, { name: "Fern" }, { "Content-Type": type });
      });

      test("refuses a body without a Content-Type", async () => {
        await call(request, 415, { name: "Fern" }, { "Content-Type": null });
      });
    });

    test("refuses a compressed body", async () => {
      await call("POST /plants", 415, { name: "Fern" }, { "Content-Encoding": "gzip" });
    });

    test.each(["chunked,", "gzip, chunked", "gzip"])(
      "refuses the Transfer-Encoding '%s'",
      async (encoding) => {
        const headers = { "Transfer-Encoding": encoding };
        const { errors } = await call("POST /plants", 400, { name: "Fern" }, headers);
        expect(errors).toEqual(["Transfer-Encoding"]);
      },
    );

    test.each([
      "GET /plants",
      "GET /plants/1",
      "GET /me",
      "GET /tags",
      "GET /events",
      "DELETE /plants/1",
    ])("%s refuses a body", async (request) => {
      const { errors } = await call(request, 400, undefined, { "Content-Length": "2" });
      expect(errors).toEqual([""]);
    });
  });

  describe("the JSON of a create:", () => {
    test.each(["", "{", '{"name":"Fern"}{}', '{"name":"Fern",}', "{'name':'Fern'}"])(
      "refuses a body that isn't JSON: %s",
      async (body) => {
        const { errors } = await call("POST /plants", 400, body);
        expect(errors).toEqual([""]);
      },
    );

    test.each(["null", "7", '"Fern"', "[]", '[{"name":"Fern"}]'])(
      "refuses JSON that isn't an object: %s",
      async (body) => {
        const { errors } = await call("POST /plants", 400, body);
        expect(errors).toEqual([""]);
      },
    );

    test("refuses a request without a body", async () => {
      const { errors } = await call("POST /plants", 400);
      expect(errors).toEqual([""]);
    });

    test("refuses a byte order mark", async () => {
      const { errors } = await call("POST /plants", 400, '\ufeff{"name":"Fern"}');
      expect(errors).toEqual([""]);
    });

    test("refuses 60,000 nested arrays", async () => {
      const { errors } = await call("POST /plants", 400, "[".repeat(60_000));
      expect(errors).toEqual([""]);
    });

    test.each([
      { what: "an incomplete sequence", bytes: [0xc3, 0x28] },
      { what: "a byte that UTF-8 never uses", bytes: [0xff] },
      { what: "an overlong encoding", bytes: [0xc0, 0x80] },
      { what: "an encoded surrogate", bytes: [0xed, 0xa0, 0x80] },
    ])("refuses invalid UTF-8: $what", async ({ bytes }) => {
      const body = Buffer.concat([
        Buffer.from('{"name":"Fern '),
        Buffer.from(bytes),
        Buffer.from('"}'),
      ]);

      const { errors } = await call("POST /plants", 400, body);

      expect(errors).toEqual([""]);
    });
  });

  describe("the fields of a create:", () => {
    test("refuses unknown fields, even those that are special in JavaScript", async () => {
      const body = '{"name":"Fern","Name":"Ivy","__proto__":{}}';
      const { errors } = await call("POST /plants", 400, body);
      expect(errors).toEqual(["/Name", "/__proto__"]);
    });

    test("escapes slash and tilde in the pointer to an unknown field", async () => {
      const { errors } = await call("POST /plants", 400, '{"name":"Fern","a/b~c":1}');
      expect(errors).toEqual(["/a~1b~0c"]);
    });

    test.each(['{"name":"a","name":"b"}', '{"name":"a","\\u006eame":"b"}'])(
      "refuses a repeated field: %s",
      async (body) => {
        const { errors } = await call("POST /plants", 400, body);
        expect(errors).toEqual(["/name"]);
      },
    );

    test.each([
      { what: "null", text: null },
      { what: "a number", text: 7 },
      { what: "a boolean", text: true },
      { what: "an array", text: ["Fern"] },
      { what: "an object", text: {} },
      { what: "a string with U+0000", text: "a\u0000b" },
      { what: "a lone high surrogate", text: "\ud83c" },
      { what: "a string with a lone low surrogate", text: "\udf3f x" },
    ])("refuses $what as a name or a tag", async ({ text }) => {
      const wrongName = await call("POST /plants", 400, { name: text, tag: "x" });
      const wrongTag = await call("POST /plants", 400, { name: "Fern", tag: text });

      expect(wrongName.errors).toEqual(["/name"]);
      expect(wrongTag.errors).toEqual(["/tag"]);
    });

    test.each([
      { what: "is missing", name: undefined },
      { what: "is empty", name: "" },
      { what: "is only ASCII white space", name: " \t\r\n" },
      { what: "is only Unicode white space", name: "\u00a0\u3000" },
      { what: "has 201 letters", name: "n".repeat(201) },
      { what: "has 201 code points beyond the BMP", name: leaf.repeat(201) },
    ])("refuses a name that $what", async ({ name }) => {
      const { errors } = await call("POST /plants", 400, { name, tag: "x" });
      expect(errors).toEqual(["/name"]);
    });

    test.each([
      { what: "101 letters", tag: "t".repeat(101) },
      { what: "101 code points beyond the BMP", tag: leaf.repeat(101) },
    ])("refuses a tag that has $what", async ({ tag }) => {
      const { errors } = await call("POST /plants", 400, { name: "Fern", tag });
      expect(errors).toEqual(["/tag"]);
    });

    test.each([
      "null",
      '"1"',
      "true",
      "[]",
      "1.5",
      "1e-1",
      "1e400",
      "184467440737095516160",
      "9223372036854775808",
      "-9223372036854775809",
    ])("refuses the id %s", async (id) => {
      const { errors } = await call("POST /plants", 400, `{"name":"Fern","id":${id}}`);
      expect(errors).toEqual(["/id"]);
    });

    test("refuses an id that is taken, even by the same plant", async () => {
      await call("POST /plants", 409, { name: "Ivy", id: 1 });
      await call("POST /plants", 409, { name: "Fern", id: 1 });
    });
  });

  describe("the body of a PUT or PATCH:", () => {
    test("a PUT lists its unknown field and every invalid one", async () => {
      // The id may be in the body, but it isn't the one in the path.
      const body = { name: "", tag: null, color: 1, id: 2 };
      const { errors } = await call("PUT /plants/1", 400, body);
      expect(errors).toEqual(["/color", "/id", "/name", "/tag"]);
    });

    test.each(["{}", "[]"])("a PATCH refuses a body without changes: %s", async (body) => {
      const { errors } = await call("PATCH /plants/1", 400, body);
      expect(errors).toEqual([""]);
    });

    test.each([null, ""])("a PATCH refuses the name %j", async (name) => {
      const { errors } = await call("PATCH /plants/1", 400, { name });
      expect(errors).toEqual(["/name"]);
    });

    test("a PATCH lists every invalid field", async () => {
      // The id may be in the body, but it isn't the one in the path.
      const { errors } = await call("PATCH /plants/1", 400, { id: 2, tag: 7 });
      expect(errors).toEqual(["/id", "/tag"]);
    });
  });

  describe("the id in a path:", () => {
    test.each([
      "x",
      "1.5",
      "1x",
      "1%20",
      "0x1",
      "01",
      "%2B1",
      "1.0",
      "1e0",
      "-0",
      "%31",
      "9223372036854775808",
      "-9223372036854775809",
      "1".repeat(400),
    ])("GET and DELETE refuse the id %s", async (id) => {
      const get = await call(`GET /plants/${id}`, 400);
      const remove = await call(`DELETE /plants/${id}`, 400);

      expect(get.errors).toEqual(["id"]);
      expect(remove.errors).toEqual(["id"]);
    });

    test.each(["PUT", "PATCH"])("%s refuses an id that isn't an integer", async (method) => {
      const { errors } = await call(`${method} /plants/x`, 400, { name: "Ivy" });
      expect(errors).toEqual(["id"]);
    });
  });

  describe("headers:", () => {
    test.each([
      { what: "of 256 characters", key: "~".repeat(256) },
      { what: "that is empty", key: "" },
      { what: "of two quotation marks", key: '""' },
      { what: "that isn't ASCII", key: "é" },
      { what: "without its closing quotation mark", key: '"open' },
      { what: "with a quotation mark inside", key: '"a"b"' },
      { what: "with a space outside quotation marks", key: "a b" },
    ])("refuses an Idempotency-Key $what", async ({ key }) => {
      const headers = { "Idempotency-Key": key };
      const { errors } = await call("POST /plants", 400, { name: "Ivy" }, headers);
      expect(errors).toEqual(["Idempotency-Key"]);
    });

    describe.each(["If-Match", "If-None-Match"])("%s", (header) => {
      test.each(["x", "1", '"x', '"x" "y"', "*, *", "W/*", "", ","])(
        "refuses the malformed condition '%s' with any method",
        async (condition) => {
          const headers = { [header]: condition };

          const get = await call("GET /plants/1", 400, undefined, headers);
          const put = await call("PUT /plants/1", 400, { name: "Fern" }, headers);
          const patch = await call("PATCH /plants/1", 400, { tag: "x" }, headers);
          const remove = await call("DELETE /plants/1", 400, undefined, headers);

          expect(get.errors).toEqual([header]);
          expect(put.errors).toEqual([header]);
          expect(patch.errors).toEqual([header]);
          expect(remove.errors).toEqual([header]);
        },
      );
    });

    // If it were ignored, a part of the plant would replace all of it.
    test("PUT refuses a Content-Range", async () => {
      const headers = { "Content-Range": "bytes 0-9/10" };
      const { errors } = await call("PUT /plants/1", 400, { name: "Ivy" }, headers);
      expect(errors).toEqual(["Content-Range"]);
    });

    test.each(["x", "-1"])(
      "refuses the Last-Event-ID %s, although a list ignores a valid one",
      async (id) => {
        const { errors } = await call("GET /events", 400, undefined, { "Last-Event-ID": id });
        expect(errors).toEqual(["Last-Event-ID"]);
      },
    );
  });

  describe("the query:", () => {
    test.each(["color", "Limit", "__proto__", ""])(
      "GET /plants refuses the unknown parameter '%s'",
      async (name) => {
        const { errors } = await call(`GET /plants?${name}=3`, 400);
        expect(errors).toEqual([name]);
      },
    );

    test.each(["POST /plants", "PUT /plants/1"])("%s refuses a limit", async (request) => {
      const { errors } = await call(`${request}?limit=1`, 400, { name: "Fern", id: 1 });
      expect(errors).toEqual(["limit"]);
    });

    test.each(["GET /tags", "GET /me", "DELETE /plants/1"])(
      "%s refuses to include ids",
      async (request) => {
        const { errors } = await call(`${request}?include=id`, 400);
        expect(errors).toEqual(["include"]);
      },
    );

    test.each(["-1", "1.5", "", "ten", "2147483648", "%201", "1%0A", "%D9%A1", "007", "%2B1"])(
      "refuses the limit '%s'",
      async (limit) => {
        const { errors } = await call(`GET /plants?limit=${limit}`, 400);
        expect(errors).toEqual(["limit"]);
      },
    );

    test.each(["", "x", "1.5", "-0", "9223372036854775808", "-9223372036854775809"])(
      "refuses a list after '%s'",
      async (after) => {
        const { errors } = await call(`GET /plants?after=${after}`, 400);
        expect(errors).toEqual(["after"]);
      },
    );

    test.each(["", "name", "id,name", "ID"])("refuses a list that includes '%s'", async (field) => {
      const { errors } = await call(`GET /plants?include=${field}`, 400);
      expect(errors).toEqual(["include"]);
    });

    test("a single plant can't include its name", async () => {
      const { errors } = await call("GET /plants/1?include=name", 400);
      expect(errors).toEqual(["include"]);
    });

    test.each(["", "down", "DESC"])("refuses the order '%s'", async (order) => {
      const { errors } = await call(`GET /plants?order=${order}`, 400);
      expect(errors).toEqual(["order"]);
    });

    test.each([
      { what: "of 101 letters", tag: "t".repeat(101) },
      { what: "of 101 code points", tag: encodeURIComponent(`${leaf.repeat(100)}x`) },
      { what: "with U+0000", tag: "%00" },
      { what: "that isn't UTF-8", tag: "%ff" },
      { what: "with a surrogate", tag: "%ed%a0%80" },
    ])("refuses to list a tag $what", async ({ tag }) => {
      const { errors } = await call(`GET /plants?tag=${tag}`, 400);
      expect(errors).toEqual(["tag"]);
    });

    test.each([
      { what: "that is empty", search: "" },
      { what: "of a space", search: "%20" },
      { what: "of Unicode white space", search: "%E3%80%80%0A" },
      { what: "of 101 code points", search: encodeURIComponent(leaf.repeat(101)) },
      { what: "with U+0000", search: "a%00" },
      { what: "that isn't UTF-8", search: "%ff" },
      { what: "with a surrogate", search: "%ed%a0%80" },
      { what: "of an accent only", search: "%C2%B4" },
      { what: "of a combining accent only", search: "%CC%81" },
      { what: "of two accents only", search: "%C2%B4+%C2%A8" },
    ])("refuses a search $what", async ({ search }) => {
      const { errors } = await call(`GET /plants?q=${search}`, 400);
      expect(errors).toEqual(["q"]);
    });

    test.each([
      { parameter: "include", query: "include=id&include=id" },
      { parameter: "order", query: "order=desc&order=desc" },
      { parameter: "tag", query: "tag=x&tag=x" },
      { parameter: "q", query: "q=a&q=a" },
    ])("refuses a repeated parameter: $query", async ({ parameter, query }) => {
      const { errors } = await call(`GET /plants?${query}`, 400);
      expect(errors).toEqual([parameter]);
    });

    test.each(["%ZZ", "100%", "%4", "%%41", "%u0041", "%EF%BF%BD%g0"])(
      "refuses the malformed percent-encoding %s, and not the right one beside it",
      async (tag) => {
        const { errors } = await call(`GET /plants?q=%25&tag=${tag}`, 400);
        expect(errors).toEqual(["tag"]);
      },
    );

    test("lists every parameter that isn't encoded correctly", async () => {
      const { errors } = await call("GET /plants?q=%ZZ&tag=%ff&limit=%", 400);
      expect(errors).toEqual(["limit", "q", "tag"]);
    });

    test.each([
      { what: "of 101 letters", query: `after=${"t".repeat(101)}` },
      { what: "with U+0000", query: "after=%00" },
      { what: "that is repeated", query: "after=a&after=a" },
    ])("GET /tags refuses an after $what", async ({ query }) => {
      const { errors } = await call(`GET /tags?${query}`, 400);
      expect(errors).toEqual(["after"]);
    });

    test("GET /tags refuses a negative limit", async () => {
      const { errors } = await call("GET /tags?limit=-1", 400);
      expect(errors).toEqual(["limit"]);
    });

    test("GET /events refuses a limit over 1000", async () => {
      const { errors } = await call("GET /events?limit=1001", 400);
      expect(errors).toEqual(["limit"]);
    });

    test("GET /events refuses a limit of 0, a negative after and an include", async () => {
      const { errors } = await call("GET /events?limit=0&after=-1&include=id", 400);
      expect(errors).toEqual(["after", "include", "limit"]);
    });

    test("a stream of events refuses a limit", async () => {
      const headers = { Accept: "text/event-stream" };
      const { errors } = await call("GET /events?limit=1", 400, undefined, headers);
      expect(errors).toEqual(["limit"]);
    });
  });
});
