/** List, get and delete, one or many: limit, after, tag and the next page. */
import {
  as,
  atEnd,
  create,
  each,
  isOnce,
  jsonType,
  leaf,
  list,
  nextLink,
  plant,
  plants,
  rowsOf,
  type Sent,
  type Step,
  shown,
  tagged,
  times,
  toNext,
  tooLarge,
} from "../row.ts";

/** With a limit: a service that accepts the value must not send a whole garden. */
const refused = (parameter: string, ...values: string[]) =>
  each(values, [`GET /plants?${parameter}={each}&limit=1`, { errors: [parameter] }]);

const listRows = rowsOf("list", {
  "a list is a JSON array of name and tag, and nothing else": [
    ...plants(2),
    list("", shown(1, 2), jsonType),
  ],
  "plants are ordered by ascending id, as numbers": [
    create(plant(4, { id: "{far}" })),
    ...plants(3),
    list("", shown(1, 2, 3, 4)),
  ],
  'limit cuts the list, with Link and rel="next"': [
    ...plants(3),
    list("&limit=1", shown(1), { Link: nextLink }),
    list("&limit=2", shown(1, 2), { Link: nextLink }),
  ],
  "limit may be 0, and the Link leads to every plant": [
    ...plants(2),
    list("&limit=0", [], { Link: nextLink }),
    ["GET {next}", { json: shown(1), ...toNext }],
    ["GET {next}", { json: shown(2), ...atEnd }],
  ],
  "a limit that is not an integer from 0 to 2147483647 in its shortest form is 400": each(
    [
      "-1",
      "1.5",
      "1.0",
      "",
      "ten",
      "2147483648",
      "10000000000000000000",
      "1e2",
      "0x1",
      "%201",
      "1%0A",
      "%D9%A1",
      "%zz",
      "007",
      "%2B1",
      "+1",
      "-0",
    ],
    ["GET /plants?limit={each}", { errors: ["limit"] }],
  ),
  "after starts the list after an id": [
    ...plants(3),
    ["GET /plants?after={1}", { json: shown(2, 3) }],
  ],
  "after is exact beyond 2^53": [
    create(plant(1, { id: "{far}" })),
    create(plant(2, { id: "{far+1}" })),
    ["GET /plants?after={far}", { json: shown(2) }],
    ["GET /plants?after={far+1}", { json: [] }],
  ],
  "after may be the lowest and the highest id of 64 bits": [
    ["GET /plants?limit=1&after=-9223372036854775808", 200],
    ["GET /plants?limit=1&after=9223372036854775807", { json: [] }],
  ],
  "an after that is not an id in its shortest form is 400": refused(
    "after",
    "",
    "x",
    "1.5",
    "9223372036854775808",
    "-9223372036854775809",
    "007",
    "%2B7",
    "-0",
  ),
  "Link is absent when the list is complete": [
    ...plants(2),
    list("", shown(1, 2), { Link: null }),
    list("&limit=2", shown(1, 2), { Link: null }),
    list("&limit=2147483647", shown(1, 2), { Link: null }),
    ["GET /plants?after={2}&limit=0", { json: [], ...atEnd }],
  ],
  "following Link visits every plant exactly once": [
    ...plants(5),
    list("&limit=2", shown(1, 2)),
    ["GET {next}", { json: shown(3, 4), ...toNext }],
    ["GET {next}", { json: shown(5), ...atEnd }],
  ],
  "following Link misses nothing while plants are deleted": [
    ...plants(3),
    list("&limit=1", shown(1)),
    ["DELETE /plants/{1}", 204],
    ["GET {next}", { json: shown(2) }],
  ],
  "Link keeps include=id": [
    ...plants(2),
    list("&limit=1&include=id", [{ id: "{1}", ...shown(1)[0] }]),
    ["GET {next}", { json: [{ id: "{2}", ...shown(2)[0] }] }],
  ],
  "HEAD has the Link that GET has": [
    ...plants(2),
    list("&limit=1", shown(1), { Link: nextLink }),
    ["HEAD /plants?after={before}&limit=1", { same: ["Link"] }],
  ],
  "with include=id each plant has its id, too": [
    ...plants(2),
    list("&include=id", [
      { id: "{1}", ...shown(1)[0] },
      { id: "{2}", ...shown(2)[0] },
    ]),
  ],
  "include with another value, or twice, is 400": refused(
    "include",
    "",
    "name",
    "id,name",
    "id,",
    "ID",
    "%20id",
    "id&include=id",
  ),
  "a list shows no plant of another garden": [
    create(plant(1)),
    list("", shown(1)),
    [as("second", "GET /plants?after={before}"), { json: [] }],
  ],
});

const listed = (tag: string, ...numbers: number[]) =>
  numbers.map((number) => ({ name: `{name} ${number}`, tag }));
const listedWithId = (tag: string, number: number) =>
  listed(tag, number).map((plant) => ({ id: `{${number}}`, ...plant }));
const fern = leaf.repeat(100);
const anyTags = ["a b&c=d", "100%", "a+b", "\u00e9", "e\u0301", fern, "\ufffd"];

const tagRows = rowsOf("tag", {
  "tag lists the plants with exactly this tag, by ascending id": [
    tagged(3, "shade"),
    tagged(1, "shade"),
    tagged(2, "Shade"),
    tagged(4, "shade "),
    list("&tag=shade", listed("shade", 1, 3)),
    list("&tag=shade%20", listed("shade ", 4)),
    list("&tag=shad", []),
  ],
  "an empty tag lists the plants without one": [
    tagged(1, ""),
    tagged(2, "shade"),
    create({ name: "{name} 3", id: "{3}" }),
    list("&tag=", listed("", 1, 3)),
  ],
  "a tag may be any that a plant may have": anyTags.flatMap((tag, index) => [
    tagged(index + 1, tag),
    list(`&tag=${encodeURIComponent(tag)}`, listed(tag, index + 1)),
  ]),
  "limit, after and include are as in the whole list, and Link keeps the tag": [
    ...[1, 3, 5].map((number) => tagged(number, "a&b")),
    ...[2, 4].map((number) => tagged(number, "other")),
    list("&tag=a%26b&limit=1&include=id", listedWithId("a&b", 1), { Link: nextLink }),
    ["GET {next}", { json: listedWithId("a&b", 3), ...toNext }],
    ["GET {next}", { json: listedWithId("a&b", 5), ...atEnd }],
    ["GET /plants?tag=a%26b&after={1}", { json: listed("a&b", 3, 5), ...atEnd }],
  ],
  "a list by tag shows a change at once": [
    tagged(1, "shade"),
    list("&tag=shade", listed("shade", 1)),
    tagged(2, "shade"),
    list("&tag=shade", listed("shade", 1, 2)),
    ["DELETE /plants/{1}", 204],
    list("&tag=shade", listed("shade", 2)),
  ],
  "a list by tag shows no plant of another garden": [
    tagged(1, "shade"),
    [as("second", "GET /plants?after={before}&tag=shade"), { json: [] }],
  ],
  "a tag of more than 100 code points, with U+0000, invalid UTF-8 or given twice is 400": each(
    ["t".repeat(101), encodeURIComponent(`${fern}x`), "%00", "%ff", "%ed%a0%80", "x&tag=x"],
    ["GET /plants?limit=1&tag={each}", { errors: ["tag"] }],
  ),
});

/** Not a 64-bit id in its shortest form. */
const notIds = [
  "x",
  "{1}.5",
  "{1}x",
  "{1}%20",
  "0x1",
  "0{1}",
  "%2B{1}",
  "{1}.0",
  "{1}e0",
  "-0",
  "%31",
  "9223372036854775808",
  "-9223372036854775809",
  "1".repeat(400),
];

/** With a request id, so that bodies can be compared as a whole. */
const comparable = (request: string, token?: "second"): Sent => ({
  request,
  headers: { "X-Request-Id": "check" },
  ...(token && { token }),
});

const getRows = rowsOf("get", {
  "a plant is its name and its tag, and nothing else": [
    create(plant(1)),
    ["GET /plants/{1}", { json: shown(1)[0], headers: jsonType }],
    ["HEAD /plants/{1}", { same: ["status", "Content-Type", "Content-Length"] }],
  ],
  "what Location names can be read at once": [
    create({ name: "{name}" }),
    ["GET /plants/{assigned}", { json: { name: "{name}", tag: "" } }],
  ],
  "with include=id it has its id, too": [
    create(plant(1)),
    ["GET /plants/{1}?include=id", { json: { id: "{1}", ...shown(1)[0] } }],
    ["GET /plants/{1}?include=name", { errors: ["include"] }],
  ],
  "a plant is found exactly beyond 2^53": [
    create(plant(1, { id: "{far}" })),
    ["GET /plants/{far}?include=id", { json: { id: "{far}", ...shown(1)[0] } }],
    ["GET /plants/{far+1}", 404],
  ],
  "404 is the same for a plant that never was, one that is gone and one of another garden": [
    ...plants(2),
    ["DELETE /plants/{1}", 204],
    [comparable("GET /plants/{1}"), 404],
    [comparable("GET /plants/{3}"), { status: 404, same: ["body"] }],
    [comparable("GET /plants/{2}", "second"), { status: 404, same: ["body"] }],
    ["HEAD /plants/{1}", 404],
  ],
  "to read an id that is not an integer of 64 bits in its shortest form is 400": each(notIds, [
    "GET /plants/{each}",
    { errors: ["id"] },
  ]),
});

const deleteRows = rowsOf("delete", {
  "a delete is 204 without a body, and 404 the second time": [
    create(plant(1)),
    ["DELETE /plants/{1}", { status: 204, headers: { "Content-Type": null } }],
    ["DELETE /plants/{1}", 404],
  ],
  "a deleted plant is gone from the list at once, and no other is": [
    ...plants(3),
    ["DELETE /plants/{2}", 204],
    ...times(4, list("", shown(1, 3))),
  ],
  "of deletes of one plant at the same time one is 204, the others are 404": [
    create(plant(1)),
    [
      { request: "DELETE /plants/{1}", atOnce: 6 },
      { status: [204, 404], check: isOnce(204) },
    ],
  ],
  "a plant of another garden is 404 in the same way, and stays": [
    ...plants(2),
    ["DELETE /plants/{1}", 204],
    [comparable("DELETE /plants/{1}"), 404],
    [comparable("DELETE /plants/{3}"), { status: 404, same: ["body"] }],
    [comparable("DELETE /plants/{2}", "second"), { status: 404, same: ["body"] }],
    list("", shown(2)),
  ],
  "neighbors beyond 2^53 are told apart": [
    create({ name: "first", id: "{far}" }),
    create({ name: "second", id: "{far+1}" }),
    ["DELETE /plants/{far+1}", 204],
    list("", [{ name: "first", tag: "" }]),
  ],
  "an id that is not an integer of 64 bits in its shortest form is 400": each(notIds, [
    "DELETE /plants/{each}",
    { errors: ["id"] },
  ]),
  "the id of a deleted plant is free again": [
    create(plant(1)),
    ["DELETE /plants/{1}", 204],
    create(plant(1)),
  ],
});

const bulkDelete = "POST /plants/bulk-delete";
const deleteMany = (ids: readonly string[], deleted: number, missing: readonly string[]): Step => [
  { request: bulkDelete, body: { ids } },
  { json: { deleted, missing }, headers: jsonType },
];
const idsMax = 10_000;
const idsBytesMax = 256 * 1024;
/** Short enough that 10,000 of them fit. */
const manyIds = (count: number) => Array.from({ length: count }, (_, index) => index - 20_000);
const padded = (padTo: number): Sent => ({ request: bulkDelete, body: { ids: ["{1}"] }, padTo });

const deleteManyRows = rowsOf("delete many", {
  "the plants are gone, and ids without a plant are listed in their order": [
    ...plants(3),
    deleteMany(["{9}", "{3}", "{1}", "{8}"], 2, ["{9}", "{8}"]),
    ...times(4, list("", shown(2))),
    deleteMany(["{3}", "{2}"], 1, ["{3}"]),
  ],
  "an id that is given twice counts once": [
    create(plant(1)),
    deleteMany(["{1}", "{2}", "{1}", "{2}"], 1, ["{2}"]),
  ],
  "ids are exact beyond 2^53, and 1.0 is 1": [
    create(plant(1, { id: "{far}" })),
    deleteMany(["{far+1}"], 0, ["{far+1}"]),
    deleteMany(["{far}", "-9223372036854775808"], 1, ["-9223372036854775808"]),
    [
      { request: bulkDelete, body: '{"ids":[1.0,1e1,9223372036854775807]}' },
      { json: { deleted: 0, missing: ["1", "10", "9223372036854775807"] } },
    ],
  ],
  "a plant of another garden is missing, and stays": [
    create(plant(1)),
    [
      as("second", bulkDelete, { body: { ids: ["{1}"] } }),
      { json: { deleted: 0, missing: ["{1}"] } },
    ],
    list("", shown(1)),
  ],
  "a token that may only read is 403": [
    create(plant(1)),
    [as("read", bulkDelete, { body: { ids: ["{1}"] } }), 403],
    list("", shown(1)),
  ],
  "whatever is no integer of 64 bits is 400 and named, and nothing is deleted": [
    create(plant(1)),
    [
      {
        request: bulkDelete,
        body: '{"ids":[{1},"{1}",1.5,null,[],{},true,9223372036854775808,-9223372036854775809]}',
      },
      { errors: [1, 2, 3, 4, 5, 6, 7, 8].map((index) => `/ids/${index}`) },
    ],
    list("", shown(1)),
  ],
  "a body without ids, or with others, is 400": [
    [{ request: bulkDelete, body: "{}" }, { errors: ["/ids"] }],
    [{ request: bulkDelete, body: '{"ids":[]}' }, { errors: ["/ids"] }],
    [{ request: bulkDelete, body: '{"ids":7}' }, { errors: ["/ids"] }],
    [{ request: bulkDelete, body: '{"ids":[7],"tag":""}' }, { errors: ["/tag"] }],
    [{ request: bulkDelete, body: '{"ids":[7],"ids":[8]}' }, { errors: ["/ids"] }],
    [{ request: bulkDelete, body: "[7]" }, { errors: [""] }],
    [{ request: bulkDelete, body: '{"ids":[7]' }, { errors: [""] }],
    [{ request: bulkDelete, body: '{"ids":[07]}' }, { errors: [""] }],
    [{ request: `${bulkDelete}?include=id`, body: { ids: [7] } }, { errors: ["include"] }],
  ],
  "10,000 ids are taken, and one more is 413": [
    [
      { request: bulkDelete, body: { ids: manyIds(idsMax) } },
      { json: { deleted: 0, missing: manyIds(idsMax) } },
    ],
    [{ request: bulkDelete, body: { ids: manyIds(idsMax + 1) } }, tooLarge],
  ],
  "256 KiB are taken, and one byte more is 413": [
    create(plant(1)),
    [padded(idsBytesMax + 1), tooLarge],
    [padded(idsBytesMax), { json: { deleted: 1, missing: [] } }],
  ],
});

export const rows = [...listRows, ...tagRows, ...getRows, ...deleteRows, ...deleteManyRows];
