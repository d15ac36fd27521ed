/** Requests: paths and methods, the order of checks, sizes, and everything that is refused. */
import { expect, test } from "bun:test";
import { makeToken } from "../../src/auth/opaque-token.ts";
import { onEachEngine, type SentBody } from "./garden.ts";

const allowed: Readonly<Record<string, readonly [allowed: string, others: string]>> = {
  "/plants": ["GET, HEAD, POST, OPTIONS", "PUT PATCH DELETE"],
  "/plants/1": ["GET, HEAD, PUT, PATCH, DELETE, OPTIONS", "POST"],
  "/plants/bulk": ["POST, OPTIONS", "GET PUT DELETE"],
  "/plants/bulk-update": ["POST, OPTIONS", "GET PATCH"],
  "/plants/bulk-delete": ["POST, OPTIONS", "GET DELETE"],
  "/tags": ["GET, HEAD, OPTIONS", "POST DELETE"],
  "/events": ["GET, HEAD, OPTIONS", "POST DELETE"],
  "/me": ["GET, HEAD, OPTIONS", "POST PUT DELETE"],
};
const publicPaths = ["/openapi.json", "/docs", "/", "/healthz", "/readyz", "/metrics"];
const methods = (text: string | null) => text?.split(", ").toSorted();
const sendable =
  "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, " +
  "X-Request-Id, traceparent, tracestate";
const json = "application/json";
const fern = { name: "Fern", id: 1 };
const ivy = { name: "Ivy" };
const set = { tag: "x" };
/** One code point, two UTF-16 units, four bytes of UTF-8. */
const leaf = "\u{1f33f}";
const latin1 = (text: string) => Buffer.from(`{"name":"Fern ${text}"}`, "latin1");
const longPlant = `${'{"name":"a"'.padEnd(4_096)}}`;
const withFern = (item: string) => `[{"name":"Fern"},${item}]`;
const below = (count: number) => Array.from({ length: count }, (_, index) => index);
const words = (start: string, values: string) => values.split(" ").map((value) => start + value);

const [id, key] = ["/plants/1", "Idempotency-Key"];
const [bulk, bulkDelete] = ["POST /plants/bulk", "POST /plants/bulk-delete"];
const bulkUpdate = "POST /plants/bulk-update";
const wrongTexts = [null, 7, true, ["Fern"], {}, "a\u0000b", "\ud83c", "\udf3f x"];
const wrongNames = ["n".repeat(201), leaf.repeat(201), "", " \t\r\n", "\u00a0\u3000", undefined];
const wrongTags = ["t".repeat(101), leaf.repeat(101)];
const wrongIds = [
  ...["x", "1.5", "1x", "1%20", "0x1", "01", "%2B1", "1.0", "1e0", "-0", "%31"],
  ...["9223372036854775808", "-9223372036854775809", "1".repeat(400)],
];
const wrongNumbers = [
  ...["null", '"1"', "true", "[]", "1.5", "1e-1", "1e400", "184467440737095516160"],
  ...["9223372036854775808", "-9223372036854775809"],
];
const [longTag, longSearch] = ["x", leaf].map((end) => encodeURIComponent(leaf.repeat(100) + end));
const malformedTags = ["x", "1", '"x', '"x" "y"', "*, *", "W/*", "", ","];

/**
 * Any of the requests with any of the bodies and any value of the header is refused with a status,
 * or with a 400 that names exactly these places.
 */
type Refusal = readonly [
  requests: string | readonly string[],
  expected: number | readonly string[],
  bodies?: readonly SentBody[],
  header?: readonly [name: string, ...values: (string | null)[]],
];

const wrongUpdate = { ids: ["1"], set: { id: 2, tag: 7 }, more: 1 };

const noBody = [undefined];
const transfer = ["Transfer-Encoding"];
const noHeader: Refusal[3] = ["Accept", null];
const wrongTypes = ["text/plain", "application/merge-patch+json", `${json}; charset=latin1`];
const refusals: Readonly<Record<string, readonly Refusal[]>> = {
  "a path or host that isn't one": [
    [words("GET /", "nothing-here plants/ plants/1/2 Plants plants%2F1 assets/x me/"), 404],
    ["GET /plants", ["Host"], noBody, ["Host", "a/b?c", "a, b", "user@host", "host:port", ""]],
  ],
  "a body that isn't one JSON object in UTF-8": [
    [["POST /plants", `PUT ${id}`], 415, [fern], ["Content-Type", null, "", ...wrongTypes]],
    ["POST /plants", 415, [fern], ["Content-Encoding", "gzip"]],
    ["POST /plants", [""], ["{", "", '{"name":"Fern"}{}', '{"name":"Fern",}', "{'name':'Fern'}"]],
    ["POST /plants", [""], [undefined, "null", "7", '"Fern"', "[]", '[{"name":"Fern"}]']],
    ["POST /plants", [""], ['\ufeff{"name":"Fern"}', "[".repeat(60_000)]],
    ["POST /plants", [""], ["\xc3\x28", "\xff", "\xc0\x80", "\xed\xa0\x80"].map(latin1)],
    [words("GET /", "plants plants/1 me tags events"), [""], noBody, ["Content-Length", "2"]],
    ["POST /plants", transfer, [fern], ["Transfer-Encoding", "chunked,", "gzip, chunked", "gzip"]],
    [`DELETE ${id}`, [""], noBody, ["Content-Length", "2"]],
  ],
  "an unknown or repeated name": [
    ["POST /plants", ["/Name", "/__proto__"], ['{"name":"Fern","Name":"Ivy","__proto__":{}}']],
    ["POST /plants", ["/a~1b~0c"], ['{"name":"Fern","a/b~c":1}']],
    ["POST /plants", ["/name"], ["name", "\\u006eame"].map((name) => `{"name":"a","${name}":"b"}`)],
    ...["color", "Limit", "__proto__", ""].map(
      (name) => [`GET /plants?${name}=3`, [name]] as const,
    ),
    [["POST /plants?limit=1", `PUT ${id}?limit=1`], ["limit"], [fern]],
    [["GET /tags?include=id", "GET /me?include=id", `DELETE ${id}?include=id`], ["include"]],
    [`${bulkDelete}?include=id`, ["include"], [{ ids: [7] }]],
  ],
  "a name, tag or id that a plant can't have": [
    ["POST /plants", ["/name"], [...wrongTexts, ...wrongNames].map((name) => ({ name, tag: "x" }))],
    ["POST /plants", ["/tag"], [...wrongTexts, ...wrongTags].map((tag) => ({ name: "Fern", tag }))],
    ["POST /plants", ["/id"], wrongNumbers.map((number) => `{"name":"Fern","id":${number}}`)],
    [wrongIds.flatMap((each) => [`GET /plants/${each}`, `DELETE /plants/${each}`]), ["id"]],
    [["PUT /plants/x", "PATCH /plants/x"], ["id"], [ivy]],
    ["POST /plants", 409, [fern, { ...ivy, id: 1 }]],
    [`PUT ${id}`, ["/color", "/id", "/name", "/tag"], [{ name: "", tag: null, color: 1, id: 2 }]],
    [`PATCH ${id}`, [""], [{}, "[]"]],
    [`PATCH ${id}`, ["/name"], [{ name: null }, { name: "" }]],
    [`PATCH ${id}`, ["/id", "/tag"], [{ id: 2, tag: 7 }]],
  ],
  "a wrong key or precondition": [
    ["POST /plants", [key], [ivy], [key, "~".repeat(256), "", '""', "é", '"open', '"a"b"', "a b"]],
    [bulk, [key], [[ivy]], [key, "~".repeat(241)]],
    ...["If-Match", "If-None-Match"].flatMap((name): Refusal[] => [
      [`PUT ${id}`, [name], [fern], [name, ...malformedTags]],
      [`PATCH ${id}`, [name], [set], [name, ...malformedTags]],
      [[`GET ${id}`, `DELETE ${id}`], [name], noBody, [name, ...malformedTags]],
    ]),
    // It would change what the write means.
    [`PUT ${id}`, ["Content-Range"], [ivy], ["Content-Range", "bytes 0-9/10"]],
  ],
  "a precondition that doesn't hold, or has no plant": [
    [[`PUT ${id}`, `PATCH ${id}`], 412, [ivy], ["If-Match", '"other"', '""', 'W/"other"']],
    [`DELETE ${id}`, 412, noBody, ["If-Match", '"other"', '""']],
    [`PUT ${id}`, 412, [ivy], ["If-None-Match", "*"]],
    ["PUT /plants/2", 412, [ivy], ["If-Match", "*", '"x"', 'W/"x"']],
    [["GET /plants/2", "HEAD /plants/2", "DELETE /plants/2"], 404],
    ["DELETE /plants/2", 404, noBody, ["If-Match", "*", '"x"', 'W/"x"']],
    ["PATCH /plants/2", 404, [set], ["If-Match", null, "*"]],
  ],
  "a wrong parameter": [
    [words("GET /plants?limit=", "-1 1.5  ten 2147483648 %201 1%0A %D9%A1 007 %2B1"), ["limit"]],
    [words("GET /plants?after=", " x 1.5 -0 9223372036854775808 -9223372036854775809"), ["after"]],
    [words("GET /plants?include=", " name id,name ID id&include=id"), ["include"]],
    [words("GET /plants?order=", " down DESC desc&order=desc"), ["order"]],
    [words("GET /plants?tag=", `${wrongTags[0]} ${longTag} %00 %ff %ed%a0%80 x&tag=x`), ["tag"]],
    [words("GET /plants?q=", ` ${longSearch} %20 %E3%80%80%0A a%00 %ff %ed%a0%80 a&q=a`), ["q"]],
    // Percent-encoding that is none, beside some that is right.
    [words("GET /plants?q=%25&tag=", "%ZZ 100% %4 %%41 %u0041 %EF%BF%BD%g0"), ["tag"]],
    ["GET /plants?q=%ZZ&tag=%ff&limit=%", ["limit", "q", "tag"]],
    // Words of accents only.
    [words("GET /plants?q=", "%C2%B4 %CC%81 %C2%B4+%C2%A8"), ["q"]],
    [`GET ${id}?include=name`, ["include"]],
    [words("GET /tags?after=", `${wrongTags[0]} %00 a&after=a`), ["after"]],
    [["GET /tags?limit=-1", "GET /events?limit=1001"], ["limit"]],
    ["GET /events?limit=0&after=-1&include=id", ["after", "include", "limit"]],
    ["GET /events?limit=1", ["limit"], noBody, ["Accept", "text/event-stream"]],
    ["GET /events", ["Last-Event-ID"], noBody, ["Last-Event-ID", "x", "-1"]],
  ],
  "a wrong bulk": [
    [bulk, ["/1"], ["7", "null", '"x"', "[]", longPlant].map(withFern)],
    [bulk, [""], ['{"name":"a",}', "{]", "01", "tru", '"\\x"', '{"a":}'].map(withFern)],
    [bulk, [""], ['[7,{"name":}]', "[1 2]", "['a']", '[{"name":"a"},1e]', "[-]"]],
    [bulk, ["/0/name", "/1/color", "/1/tag"], [[{ name: "" }, { ...ivy, tag: null, color: 1 }]]],
    [bulk, [""], ["", "{}", "null", "[", "[,]", "]", "[]", "[]{}"]],
    [bulk, [""], ['[{"name":"a"},]', '[{"name":"a"}}', '[{"name":"a"}{}]', '\ufeff[{"name":"a"}]']],
    [`${bulk}?include=id`, ["/0/name", "include"], [[{}]]],
    [bulk, 413, [below(10_001).map(() => ivy)]],
  ],
  "a wrong bulk delete or update": [
    [bulkDelete, ["/ids"], ["{}", '{"ids":[]}', '{"ids":7}', '{"ids":[7],"ids":[8]}']],
    [bulkDelete, ["/tag"], [{ ids: [7], tag: "" }]],
    [bulkDelete, [""], ["", "[7]", "{ids:[7]}", '{"ids":[7]', '{"ids":[7}', '{"ids":[7],}']],
    [bulkDelete, [""], ['{"ids":[7]}}', '{"ids" [7]}', '{"ids":[7,]}', '{"ids":["7",07]}']],
    [bulkDelete, [""], ['{"ids":07}', '{"ids":[7],"tag":tru}', '{"ids":[7],"tag":[01]}']],
    [bulkUpdate, [""], ['{"ids":[7],"set":{"tag":}}', '{"ids":[7],"set":{"tag":""}']],
    [bulkDelete, below(10).map((index) => `/ids/${index}`), [`{"ids":[${wrongNumbers}]}`]],
    [bulkDelete, 413, [{ ids: below(10_001) }]],
    [bulkUpdate, 413, [{ ids: below(10_001), set }]],
    [bulkUpdate, ["/ids"], [{ set }, { ids: [], set }]],
    [bulkUpdate, ["/set"], [{ ids: [1] }, { ids: [1], set: {} }, { ids: [1], set: [] }]],
    [bulkUpdate, ["/ids/0", "/more", "/set/id", "/set/tag"], [wrongUpdate]],
    [bulkUpdate, ["/ids", "/set"], [{ ids: 7, set: 7 }, '{"ids":7,"set":{},"set":{}}']],
    [bulkUpdate, ["/set"], [`{"ids":[1],"set":${'{"tag":"x"'.padEnd(4_096)}}}`]],
    [bulkDelete, ["/ids/0"], [{ ids: ["x".repeat(4_095)] }, { ids: [[Array(4_000).fill([])]] }]],
  ],
};

onEachEngine(({ call, reader, anonymous, grow, list }) => {
  test.each(Object.entries(refusals))("%s is refused, and changes nothing", async (_, rows) => {
    await grow("Fern");
    for (const [requests, expected, bodies = noBody, [name, ...values] = noHeader] of rows) {
      const status = typeof expected === "number" ? expected : 400;
      for (const request of [requests].flat()) {
        for (const body of bodies) {
          for (const value of values) {
            const reply = await call(request, status, body, { [name]: value });
            const places = status === expected ? expected : reply.errors;
            expect({ request, body, value, places }).toMatchObject({ places: expected });
          }
        }
      }
    }
    expect((await call("GET /me", 200)).json).toMatchObject({ plants: 1, lastEvent: 1 });
  });

  test("a body is refused with a list, however often that was asked for without one", async () => {
    for (const request of ["GET /plants?limit=9", "GET /tags"]) {
      for (let time = 0; time < 3; time++) await call(request, 200);
      await call(request, 400, undefined, { "Content-Length": "2" });
    }
  });

  test.each(Object.entries(allowed))(
    "%s lists its methods in Allow: for a preflight, and where another method is used",
    async (path, [allow, others]) => {
      const { headers } = await anonymous(`OPTIONS ${path}`, 204);
      expect(methods(headers.get("Allow"))).toEqual(methods(allow));
      expect(methods(headers.get("Access-Control-Allow-Methods"))).toEqual(methods(allow));
      expect(headers.get("Access-Control-Allow-Headers")).toBe(sendable);
      expect(headers.get("Access-Control-Max-Age")).toBe("86400");
      for (const method of others.split(" ")) {
        const refused = await anonymous(`${method} ${path}`, 405);
        expect(methods(refused.headers.get("Allow"))).toEqual(methods(allow));
      }
    },
  );

  test.each(publicPaths)("%s has GET and HEAD only, no token and no parameters", async (path) => {
    await anonymous(`GET ${path}`, 200);
    const isDocument = path === "/openapi.json";
    const allow = isDocument ? "GET, HEAD, OPTIONS" : "GET, HEAD";
    for (const method of isDocument ? ["POST"] : ["POST", "OPTIONS"]) {
      expect((await anonymous(`${method} ${path}`, 405)).headers.get("Allow")).toBe(allow);
    }
    expect((await anonymous(`GET ${path}?color=green`, 400)).errors).toEqual(["color"]);
  });

  test("nothing may store a response on a path that needs a token or doesn't exist, whatever it is", async () => {
    // The garden checks it of each response.
    await grow("Fern");
    for (const path of Object.keys(allowed)) {
      await anonymous(`OPTIONS ${path}`, 204);
      await anonymous(`TRACE ${path}`, 405);
      await anonymous(`${path.includes("bulk") ? "POST" : "GET"} ${path}`, 401);
    }
    for (const path of ["/nothing", "/plants/1/2", "/assets/nothing.js"]) {
      for (const method of ["GET", "HEAD", "POST", "OPTIONS"]) {
        const status = path.startsWith("/assets") && !/GET|HEAD/.test(method) ? 405 : 404;
        await anonymous(`${method} ${path}`, status);
      }
    }
    await call("GET /plants/1", 304, undefined, { "If-None-Match": "*" });
    await call("GET /plants", 400, undefined, { Host: "a, b" });
    await reader("DELETE /plants/1", 403);
    await call("POST /plants", 415, "{}", { "Content-Type": "text/plain" });
  });

  test("a Content-Encoding of identity is none, and any other is a 415", async () => {
    await call("POST /plants", 201, ivy, { "Content-Encoding": "identity" });
    for (const encoding of ["gzip", "br", "identity, gzip"]) {
      const { json } = await call("POST /plants", 415, ivy, { "Content-Encoding": encoding });
      expect(json.detail).toContain("Content-Encoding");
    }
    expect(await list()).toEqual(["Ivy"]);
  });

  test("path, method, token, scope, expectation, type, size, query and body are checked in this order", async () => {
    const wrong = ["{", { "Content-Type": "text/plain" }] as const;
    const wronger = ["{", { "Content-Type": "text/plain", Expect: "100-Continue" }] as const;
    await anonymous("PUT /nothing-here", 404, ...wronger);
    await anonymous("PUT /plants", 405, ...wronger);
    await anonymous("POST /plants?color=green", 401, ...wronger);
    await anonymous("DELETE /plants/x", 401);
    await reader("POST /plants?color=green", 403, ...wronger);
    await reader("DELETE /plants/x", 403);
    await call("POST /plants?color=green", 417, ...wronger);
    const refused = await call("POST /plants?color=green", 415, ...wrong);
    expect(refused.headers.get("Accept")).toBe(json);
    await call("POST /plants?color=green", 413, { name: "x".repeat(70_000) });
    expect((await call("POST /plants?color=green", 400, "{")).errors).toEqual(["", "color"]);
  });

  test("an expectation other than 100-continue, in lower case, is a 417 that says what to send", async () => {
    for (const Expect of ["100-Continue", "200-ok", "100-continue, 200-ok", ""]) {
      const { json } = await call("POST /plants", 417, ivy, { Expect });
      expect(json.detail).toContain("Expect: 100-continue");
      await call("GET /plants", 417, undefined, { Expect });
      await anonymous("GET /healthz", 417, undefined, { Expect });
    }
    await call("POST /plants", 201, ivy, { Expect: "100-continue" });
    expect(await list()).toEqual(["Ivy"]);
  });

  test("every error of query, headers and body is listed, each once, and 100 at most", async () => {
    const body = { name: "", tag: 5, id: 1.5, color: 1 };
    const { errors } = await call("POST /plants?limit=1", 400, body, { [key]: "a b" });
    expect(errors).toEqual(["/color", "/id", "/name", "/tag", key, "limit"]);
    const query = "after=y&color=green&include=z&limit=x&order=up&q=&tag=%00";
    const names = ["after", "color", "include", "limit", "order", "q", "tag"];
    expect((await call(`GET /plants?${query}`, 400)).errors).toEqual(names);
    const repeated = below(150).map((index) => `a${index}&a${index}`);
    const reply = await call(`${bulk}?${repeated.join("&")}`, 400, Array(150).fill({}));
    expect([reply.json.errors.length, reply.errors.length]).toEqual([100, 100]);
  });

  test("detail shows a name that reverses text or moves the cursor in its escaped form", async () => {
    const reply = await call("POST /plants", 400, { name: "Fern", "\u202eevil\u009b": 1 });
    expect(reply.json.detail).not.toMatch(/\p{Cc}|\p{Cf}/u);
  });

  test("the Content-Type may say that the charset is UTF-8", async () => {
    for (const parameter of ["; charset=utf-8", ';charset="UTF-8"', ";"]) {
      await call("POST /plants", 201, ivy, { "Content-Type": `Application/JSON${parameter}` });
    }
  });

  test("a Content-Type of 15,000 spaces is a 415 at once", async () => {
    // Each once took more than a second.
    for (let time = 0; time < 200; time++) {
      await call("POST /plants", 415, undefined, { "Content-Type": `a${" ".repeat(15_000)}b` });
    }
  });

  test("the caller's X-Request-Id comes back, unless it is malformed or holds a token", async () => {
    const token = makeToken("greenhouse");
    const secret = token.slice("plant_".length);
    const mistyped = secret.slice(0, -1) + (secret.endsWith("0") ? "1" : "0");
    const good = ["a", "A-1._z", "x".repeat(128), "0".repeat(64), mistyped];
    const malformed = ["x".repeat(129), "a b", "a/b", "\u00e9", ""];
    const tokens = [token, `Bearer-${token}`, token.slice(0, 26)];
    const secrets = [secret, `id-${secret}`, `x${secret}y`];
    const made = new Set<string | null>();
    for (const id of [...good, ...malformed, ...tokens, ...secrets]) {
      const sent = { "X-Request-Id": id };
      for (const [ask, status] of [[anonymous, 401] as const, [call, 200] as const]) {
        const { headers } = await ask("GET /plants", status, undefined, sent);
        expect([id, headers.get("X-Request-Id") === id]).toEqual([id, good.includes(id)]);
        made.add(headers.get("X-Request-Id"));
      }
    }
    expect(made.size).toBe(good.length + 2 * (malformed.length + tokens.length + secrets.length));
  });

  test.each([
    ["POST /plants", 201, 64, '{"name":"Fern"}'],
    ["PUT /plants/1", 201, 64, '{"name":"Fern"}'],
    ["PATCH /plants/1", 404, 64, '{"name":"Fern"}'],
    [bulk, 200, 1_024, '[{"name":"Fern"}]'],
    [bulkDelete, 200, 256, '{"ids":[7]}'],
    [bulkUpdate, 200, 256, '{"ids":[7],"set":{"tag":"x"}}'],
  ])("%s is %d with %d KiB, and 413 with one byte more", async (request, status, kib, body) => {
    await call(request, 413, body.padEnd(kib * 1_024 + 1));
    expect(await list()).toEqual([]);
    await call(request, status, body.padEnd(kib * 1_024));
  });
});
