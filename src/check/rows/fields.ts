/** Plant: what a name, a tag and an id may be, and that they are kept as sent. */
import { create, each, list, plant, type ResponseCheck, rowsOf } from "../row.ts";

const leaf = "\u{1f33f}";
const named = (expected: object) => create({ name: "{each}", tag: "", id: "{1}" }, expected);
const tagged = (expected: object) => create({ name: "{name}", tag: "{each}", id: "{1}" }, expected);
const refusedTag = create('{"name":"{name}","id":{1},"tag":{each}}', { errors: ["/tag"] });
const refusedName = create('{"name":{each},"id":{1}}', { errors: ["/name"] });
const refusedId = create('{"name":"{name}","id":{each}}', { errors: ["/id"] });
const keptName = list("&fields=id,name,tag", [{ id: "{1}", name: "{each}", tag: "" }]);
const keptTag = list("&fields=id,name,tag", [{ id: "{1}", name: "{name}", tag: "{each}" }]);

const assign = (check: ResponseCheck) => create({ name: "{name}" }, { status: 201, check });

const isAssigned: ResponseCheck = ({ locatedId: id }) =>
  id !== undefined && id >= 1n && id < 2n ** 53n ? undefined : `the assigned id is ${id}`;

const isHigher: ResponseCheck = (_, all) => {
  const ids = all.flatMap(({ locatedId }) => locatedId ?? []);
  const isSorted = ids.every((id, index) => index === 0 || id > (ids[index - 1] ?? id));
  return isSorted ? undefined : `the ids were assigned in the order ${ids.join(", ")}`;
};

export const plantRows = rowsOf("plant", {
  "a name has 1 to 200 code points": each(
    ["n", "n".repeat(200), leaf.repeat(200)],
    named({ status: 201, json: { name: "{each}", tag: "" } }),
    keptName,
  ),
  "a name of 201 code points is 400": each(
    ["n".repeat(201), leaf.repeat(201)],
    named({ errors: ["/name"] }),
  ),
  "a name that is empty or only white space is 400": each(
    ["", " ", " \t\r\n", "\u00a0\u3000"],
    named({ errors: ["/name"] }),
  ),
  "a name is required": create({ tag: "x", id: "{1}" }, { errors: ["/name"] }),
  "a name that is not a string is 400": each(["null", "7", "true", '["Fern"]', "{}"], refusedName),
  'an absent tag is ""': [
    create({ name: "{name}", id: "{1}" }, { status: 201, json: { name: "{name}", tag: "" } }),
    list("", [{ name: "{name}", tag: "" }]),
  ],
  "a tag has 0 to 100 code points": each(
    ["", "t".repeat(100), leaf.repeat(100)],
    tagged({ status: 201 }),
    keptTag,
  ),
  "a tag of 101 code points is 400": each(
    ["t".repeat(101), leaf.repeat(101)],
    tagged({ errors: ["/tag"] }),
  ),
  "a tag that is not a string is 400": each(["null", "7", "false", "[]"], refusedTag),
  "a name is kept as sent: not trimmed, normalised or escaped": each(
    [" Fern \n", "e\u0301 \u00e9 \ufb01", 'a "quoted"\\ name\r\n</script>', "\u2028x\u0001"],
    named({ status: 201 }),
    keptName,
  ),
  "a tag is kept as sent, too": each([" ", "\tTag ", "e\u0301"], tagged({ status: 201 }), keptTag),
  "escapes mean what they stand for": create('{"\\u006eame":"{name} \\ud83c\\udf3f","id":{1}}', {
    status: 201,
    json: { name: `{name} ${leaf}`, tag: "" },
  }),
  "U+0000 is 400": [
    create(plant(1, { name: "a\0b" }), { errors: ["/name"] }),
    create(plant(1, { tag: "\0" }), { errors: ["/tag"] }),
  ],
  "a lone surrogate is 400": [
    create('{"name":"\\ud83c","id":{1}}', { errors: ["/name"] }),
    create('{"name":"{name}","id":{1},"tag":"\\ud83c"}', { errors: ["/tag"] }),
    create('{"name":"{name}","id":{1},"tag":"\\udf3f x"}', { errors: ["/tag"] }),
  ],
  "an id that is not an integer is 400": each(
    ["null", '"{1}"', "true", "[]", "{1}.5", "1e-1"],
    refusedId,
  ),
  "an id beyond 64 bits is 400": each(
    ["9223372036854775808", "-9223372036854775809", "1e400", "184467440737095516160", "{over}"],
    refusedId,
  ),
  "an id is kept exactly, up to the highest of 64 bits": each(
    ["{far}", "9223372036854775807"],
    create('{"name":"{name}","id":{each}}', {
      status: 201,
      headers: { Location: "{base}/plants/{each}" },
    }),
    list("&fields=id", [{ id: "{each}" }]),
    ["DELETE /plants/{each}", 204],
  ),
  "the lowest id of 64 bits is kept": {
    freeId: "-9223372036854775808",
    steps: [
      create('{"name":"{name}","id":-9223372036854775808}', {
        status: 201,
        headers: { Location: "{base}/plants/-9223372036854775808" },
      }),
      ["GET /plants?limit=1&fields=name", { json: [{ name: "{name}" }] }],
      ["DELETE /plants/-9223372036854775808", 204],
    ],
  },
  "0 is an id, and so is -0": {
    freeId: "0",
    ...each(
      ["0", "-0"],
      create('{"name":"{name}","id":{each}}', {
        status: 201,
        headers: { Location: "{base}/plants/0" },
      }),
      ["DELETE /plants/0", 204],
    ),
  },
  "an integer may be written as 1.0 or 1e3": each(
    ["{round}.0", "{thousands}e3"],
    create('{"name":"{name}","id":{each}}', {
      status: 201,
      headers: { Location: "{base}/plants/{round}" },
    }),
    ["DELETE /plants/{round}", 204],
  ),
  "an absent id is assigned, from 1 to 2^53−1": [
    assign(isAssigned),
    ["DELETE /plants/{assigned}", 204],
  ],
  "a later plant gets a higher id, also after a deletion": [
    assign(isHigher),
    assign(isHigher),
    ["DELETE /plants/{assigned}", 204],
    assign(isHigher),
  ],
  "gardens do not block each other's ids": [
    create(plant(1)),
    [{ request: "POST /plants", token: "second", body: plant(1, { tag: "other" }) }, 201],
  ],
});
