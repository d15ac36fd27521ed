/** Create: every row of the interface that a POST to /plants touches. */
import { describe } from "bun:test";
import { engines, openWorld, runScenarios, type Scenario } from "./scenario.ts";

describe.each(engines)("on %s", (engine) => {
  const world = openWorld(engine);
  const request = "POST /plants";
  const leaf = "\u{1f33f}";

  const accepted: readonly (Partial<Scenario> & { name: string; body: object | string })[] = [
    {
      name: "stores name, tag and id, and answers with name and tag only",
      body: { name: "Fern", tag: "shade", id: 7 },
      answer: { name: "Fern", tag: "shade" },
      answerHeaders: {
        Location: "/plants/7",
        "Content-Type": "application/json",
        "Cache-Control": "no-store",
        "Idempotency-Replayed": null,
      },
      left: [7n],
    },
    {
      name: "takes an absent tag for an empty one",
      body: { name: "Fern" },
      answer: { name: "Fern", tag: "" },
    },
    {
      name: "assigns an id above the highest where none is given",
      given: [{ id: 41n }],
      body: { name: "Fern" },
      answerHeaders: { Location: "/plants/42" },
      left: [41n, 42n],
    },
    {
      name: "keeps 9007199254740993 exactly",
      body: '{"name":"Fern","id":9007199254740993}',
      answerHeaders: { Location: "/plants/9007199254740993" },
      left: [9007199254740993n],
    },
    {
      name: "keeps the lowest id of 64 bits",
      body: '{"name":"Fern","id":-9223372036854775808}',
      left: [-(2n ** 63n)],
    },
    {
      name: "keeps the highest id of 64 bits",
      body: '{"name":"Fern","id":9223372036854775807}',
      left: [2n ** 63n - 1n],
    },
    { name: "takes 0 for an id", body: { name: "Fern", id: 0 }, left: [0n] },
    { name: "takes -0 for the id 0", body: '{"name":"Fern","id":-0}', left: [0n] },
    { name: "takes 1e3 for the integer 1000", body: '{"name":"Fern","id":1e3}', left: [1000n] },
    { name: "takes 1.0 for the integer 1", body: '{"name":"Fern","id":1.0}', left: [1n] },
    { name: "takes 200 code points of name", body: { name: "n".repeat(200) } },
    { name: "takes 200 emoji of name", body: { name: leaf.repeat(200) } },
    { name: "takes 100 emoji of tag", body: { name: "Fern", tag: leaf.repeat(100) } },
    { name: "takes one code point of name", body: { name: "n" } },
    {
      name: "keeps white space around a name",
      body: { name: " Fern\n", tag: " " },
      answer: { name: " Fern\n", tag: " " },
    },
    {
      name: "does not normalise",
      body: { name: "e\u0301 \u00e9" },
      answer: { name: "e\u0301 \u00e9", tag: "" },
    },
    {
      name: "reads escapes in keys and values",
      body: '{"\\u006eame":"\\ud83c\\udf3f"}',
      answer: { name: leaf, tag: "" },
    },
    {
      name: "takes a body with a charset",
      body: { name: "Fern" },
      headers: { "Content-Type": "application/json; charset=UTF-8" },
    },
  ];

  const refused: readonly (Partial<Scenario> & { name: string; faults: readonly string[] })[] = [
    { name: "refuses a plant without a name", body: {}, faults: ["/name"] },
    { name: "refuses an empty name", body: { name: "" }, faults: ["/name"] },
    { name: "refuses a name of white space", body: { name: " \t\u00a0\u3000" }, faults: ["/name"] },
    { name: "refuses 201 code points of name", body: { name: "n".repeat(201) }, faults: ["/name"] },
    { name: "refuses 201 emoji of name", body: { name: leaf.repeat(201) }, faults: ["/name"] },
    { name: "refuses a name of null", body: { name: null }, faults: ["/name"] },
    { name: "refuses a name of a number", body: { name: 7 }, faults: ["/name"] },
    { name: "refuses U+0000 in a name", body: { name: "a\0b" }, faults: ["/name"] },
    { name: "refuses U+0000 in a tag", body: { name: "Fern", tag: "\0" }, faults: ["/tag"] },
    { name: "refuses a lone surrogate", body: '{"name":"\\ud83c"}', faults: ["/name"] },
    {
      name: "refuses a lone low surrogate in a tag",
      body: '{"name":"Fern","tag":"\\udf3f"}',
      faults: ["/tag"],
    },
    {
      name: "refuses 101 code points of tag",
      body: { name: "F", tag: "t".repeat(101) },
      faults: ["/tag"],
    },
    { name: "refuses a tag of null", body: { name: "Fern", tag: null }, faults: ["/tag"] },
    { name: "refuses an id of null", body: { name: "Fern", id: null }, faults: ["/id"] },
    { name: "refuses an id of text", body: { name: "Fern", id: "7" }, faults: ["/id"] },
    { name: "refuses an id of true", body: { name: "Fern", id: true }, faults: ["/id"] },
    { name: "refuses a fraction for an id", body: '{"name":"Fern","id":1.5}', faults: ["/id"] },
    {
      name: "refuses an id above 64 bits",
      body: '{"name":"Fern","id":9223372036854775808}',
      faults: ["/id"],
    },
    {
      name: "refuses an id below 64 bits",
      body: '{"name":"Fern","id":-9223372036854775809}',
      faults: ["/id"],
    },
    { name: "refuses an id of 1e400", body: '{"name":"Fern","id":1e400}', faults: ["/id"] },
    {
      name: "names an unknown field",
      body: { name: "Fern", colour: "green" },
      faults: ["/colour"],
    },
    {
      name: "names an unknown field with odd characters as a JSON Pointer",
      body: { name: "Fern", "a/b~c": 1 },
      faults: ["/a~1b~0c"],
    },
    {
      name: "refuses a field named __proto__",
      body: '{"name":"Fern","__proto__":{"tag":"x"}}',
      faults: ["/__proto__"],
    },
    { name: "refuses a repeated field", body: '{"name":"Fern","name":"Ivy"}', faults: ["/name"] },
    {
      name: "refuses a field that is repeated under an escape",
      body: '{"name":"Fern","\\u006eame":"Ivy"}',
      faults: ["/name"],
    },
    {
      name: "reports every fault of a request at once",
      request: "POST /plants?x=1",
      headers: { "Idempotency-Key": "a b" },
      body: '{"name":"","tag":5,"id":1.5,"colour":1}',
      faults: ["x", "Idempotency-Key", "/colour", "/name", "/tag", "/id"],
    },
    { name: "refuses an array", body: "[]", faults: [""] },
    { name: "refuses null", body: "null", faults: [""] },
    { name: "refuses a string", body: '"x"', faults: [""] },
    { name: "refuses an empty body", body: "", faults: [""] },
    { name: "refuses two objects", body: '{"name":"a"}{"name":"b"}', faults: [""] },
    { name: "refuses malformed JSON", body: '{"name":"Fern",}', faults: [""] },
    { name: "refuses a byte order mark", body: '\ufeff{"name":"Fern"}', faults: [""] },
    {
      name: "refuses invalid UTF-8",
      body: Uint8Array.from([...Buffer.from('{"name":"'), 0xc3, 0x28, ...Buffer.from('"}')]),
      faults: [""],
    },
    {
      name: "refuses deep nesting in an unknown field",
      body: `{"name":"Fern","deep":${"[".repeat(20_000)}${"]".repeat(20_000)}}`,
      faults: ["/deep"],
    },
    {
      name: "refuses deep nesting that never ends",
      body: "[".repeat(60_000),
      faults: [""],
    },
    {
      name: "refuses a body of exactly 64 KiB for its name, not for its size",
      body: `{"name":"${"n".repeat(64 * 1024 - 11)}"}`,
      faults: ["/name"],
    },
    {
      name: "refuses a request with neither body nor content type",
      faults: [""],
    },
  ];

  describe("create", () => {
    runScenarios(
      world,
      accepted.map((scenario) => ({ request, status: 201, left: [1n], ...scenario })),
    );
    runScenarios(
      world,
      refused.map((scenario) => ({
        request,
        status: 400,
        problem: "invalid-request",
        ...scenario,
      })),
    );
    runScenarios(world, [
      {
        name: "refuses a taken id and changes nothing",
        given: [{ id: 7n, name: "first" }],
        request,
        body: { name: "second", id: 7 },
        status: 409,
        problem: "conflict",
      },
      {
        name: "refuses a body of 64 KiB and one byte",
        request,
        body: `{"name":"${"n".repeat(64 * 1024 - 10)}"}`,
        status: 413,
        problem: "too-large",
        answerHeaders: { Connection: "close" },
      },
      {
        name: "refuses a body without a content type",
        request,
        body: '{"name":"Fern"}',
        headers: { "Content-Type": "" },
        status: 415,
        problem: "unsupported-media-type",
      },
      {
        name: "refuses a body that is encoded",
        request,
        body: '{"name":"Fern"}',
        headers: { "Content-Encoding": "gzip" },
        status: 415,
        problem: "unsupported-media-type",
      },
      ...[
        "text/plain",
        "application/json-patch+json",
        "application/json; charset=latin1",
        "json",
      ].map(
        (type): Scenario => ({
          name: `refuses a body of type ${type}`,
          request,
          body: '{"name":"Fern"}',
          headers: { "Content-Type": type },
          status: 415,
          problem: "unsupported-media-type",
        }),
      ),
    ]);
  });
});
