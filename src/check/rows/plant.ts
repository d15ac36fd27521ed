/** Plant: what a name, a tag and an id may be, and that they are kept as sent. */
import {
  as,
  create,
  type Expected,
  each,
  leaf,
  list,
  plant,
  type ResponseCheck,
  rowsOf,
} from "../row.ts";

const withName = (expected: Expected) => create({ name: "{each}", id: "{1}" }, expected);
const withTag = (expected: Expected) =>
  create({ name: "{name}", tag: "{each}", id: "{1}" }, expected);
const refusedName = create('{"name":{each},"id":{1}}', { errors: ["/name"] });
const refusedTag = create('{"name":"{name}","id":{1},"tag":{each}}', { errors: ["/tag"] });
const refusedId = create('{"name":"{name}","id":{each}}', { errors: ["/id"] });

/** Creates a plant with the id `{each}`, and deletes it by `id`. */
const acceptedId = (id: string) => [
  create('{"name":"{name}","id":{each}}', {
    status: 201,
    headers: { Location: `{base}/plants/${id}` },
    skip: ({ status }) => (status === 409 ? "the garden has such a plant" : undefined),
  }),
  [`DELETE /plants/${id}`, 204] as const,
];

const isHigher: ResponseCheck = ({ locatedId }, all) => {
  const ids = all.flatMap((response) => response.locatedId ?? []);
  const isInRange = locatedId !== undefined && locatedId >= 1n && locatedId < 2n ** 53n;
  if (!isInRange) return `the assigned id is ${locatedId}`;
  const isSorted = ids.every((id, index) => index === 0 || id > (ids[index - 1] ?? id));
  return isSorted ? undefined : `the ids were assigned in the order ${ids.join(", ")}`;
};
const assignHigher = create({ name: "{name}" }, { status: 201, check: isHigher });

export const rows = rowsOf("plant", {
  "a name has 1 to 200 code points": each(
    ["n", "n".repeat(200), leaf.repeat(200)],
    withName({ status: 201, json: { name: "{each}", tag: "" } }),
    list("", [{ name: "{each}", tag: "" }]),
  ),
  "a name that is longer, empty or only white space is 400": each(
    ["n".repeat(201), leaf.repeat(201), "", " \t\r\n", "\u00a0\u3000"],
    withName({ errors: ["/name"] }),
  ),
  "a name is required": create({ tag: "x", id: "{1}" }, { errors: ["/name"] }),
  "a name that is not a string is 400": each(["null", "7", "true", '["Fern"]', "{}"], refusedName),
  'an absent tag is ""': [
    create({ name: "{name}", id: "{1}" }, { status: 201, json: { name: "{name}", tag: "" } }),
    list("", [{ name: "{name}", tag: "" }]),
  ],
  "a tag has 0 to 100 code points": each(
    ["", "t".repeat(100), leaf.repeat(100)],
    withTag({ status: 201 }),
    list("", [{ name: "{name}", tag: "{each}" }]),
  ),
  "a longer tag is 400": each(["t".repeat(101), leaf.repeat(101)], withTag({ errors: ["/tag"] })),
  "a tag that is not a string is 400": each(["null", "7", "false", "[]"], refusedTag),
  "strings are kept as sent: not trimmed, normalized or escaped": each(
    [" Fern \n", "e\u0301 \u00e9 \ufb01", 'a "quoted"\\ name\r\n</script>', "\u2028x\u0001"],
    create({ name: "{each}", tag: "{each}", id: "{1}" }),
    list("", [{ name: "{each}", tag: "{each}" }]),
  ),
  "escapes mean what they stand for": create('{"\\u006eame":"{name} \\ud83c\\udf3f","id":{1}}', {
    status: 201,
    json: { name: `{name} ${leaf}`, tag: "" },
  }),
  "U+0000 and lone surrogates are 400 in a name": each(['"a\\u0000b"', '"\\ud83c"'], refusedName),
  "U+0000 and lone surrogates are 400 in a tag": each(['"\\u0000"', '"\\udf3f x"'], refusedTag),
  "an id that is not an integer is 400": each(
    ["null", '"{1}"', "true", "[]", "{1}.5", "1e-1"],
    refusedId,
  ),
  "an id beyond 64 bits is 400": each(
    ["9223372036854775808", "-9223372036854775809", "1e400", "184467440737095516160"],
    refusedId,
  ),
  "an id is kept exactly beyond 2^53": each(
    ["{far}", "9223372036854775807"],
    create('{"name":"{name}","id":{each}}'),
    list("&include=id", [{ id: "{each}", name: "{name}", tag: "" }]),
    ["DELETE /plants/{each}", 204],
  ),
  "an id may be the lowest or the highest of 64 bits": each(
    ["-9223372036854775808", "9223372036854775807"],
    ...acceptedId("{each}"),
  ),
  "0 is an id, and so is -0": each(["0", "-0"], ...acceptedId("0")),
  "an integer may be written as 1.0 or 1e0": each(["{1}.0", "{1}e0"], ...acceptedId("{1}")),
  "an absent id is assigned, from 1 to 2^53−1, later plants higher": [
    assignHigher,
    assignHigher,
    ["DELETE /plants/{assigned}", 204],
    assignHigher,
  ],
  "gardens do not block each other's ids": [
    create(plant(1)),
    [as("second", "POST /plants", { body: plant(1, { tag: "other" }) }), 201],
  ],
});
