/** Create: what it returns and what it changes, safe retries, and many plants at once. */
import {
  as,
  create,
  createMany,
  type Expected,
  each,
  isOnce,
  jsonType,
  list,
  plant,
  type ResponseCheck,
  rowsOf,
  type Sent,
  type Step,
  shown,
  strongTag,
  times,
  tooLarge,
  withKey,
} from "../row.ts";

const createRows = rowsOf("create", {
  "a create is 201, with Location and ETag, the name and the tag, and nothing else": create(
    plant(1),
    {
      status: 201,
      headers: { ...jsonType, ...strongTag, Location: "{base}/plants/{1}" },
      json: shown(1)[0],
    },
  ),
  "a created plant is in the list at once": [
    create(plant(1)),
    ...times(4, list("&limit=1", shown(1))),
  ],
  "a taken id is 409, and nothing changes": [
    create(plant(1)),
    create(plant(1), 409),
    create(plant(1, { tag: "second" }), 409),
    list("", shown(1)),
  ],
  "of creates with one id at the same time one is 201, the others are 409": [
    { request: "POST /plants", body: plant(1), atOnce: 8 },
    { status: [201, 409], check: isOnce(201) },
  ],
  "with include=id the body has the id, too": [
    { request: "POST /plants?include=id", body: plant(1) },
    { status: 201, json: { id: "{1}", ...shown(1)[0] } },
  ],
  "include with another value, or other parameters, are 400": each(
    ["include=name", "include=", "include=id&include=id", "limit=1", "after=1", "tag=x"],
    [{ request: "POST /plants?{each}", body: plant(1) }, 400],
    list("", []),
  ),
  "a create that is 400 creates nothing": [
    create(plant(1, { color: "green" }), 400),
    create(plant(1, { tag: null }), 400),
    list("", []),
  ],
});

/** The service assigns the id, so that a second plant would get another. */
const unnumbered = { name: "{name}", tag: "unnumbered" };
const keyed = (body: object | string, expected: number | Expected = 201, key = "{key}") =>
  create(body, expected, { "Idempotency-Key": key });
const replay: Expected = { status: 201, headers: { "Idempotency-Replayed": "true" } };
const noReplay: Expected = { status: 201, headers: { "Idempotency-Replayed": null } };
const tildes = "~".repeat(255 - crypto.randomUUID().length);

const idempotencyRows = rowsOf("idempotency", {
  "the same key and request give the same response, with Idempotency-Replayed: true": [
    keyed(unnumbered, noReplay),
    keyed(unnumbered, { ...replay, same: ["status", "body", "Location", "ETag"] }),
  ],
  "a replay has the id if the replay asks for it": [
    keyed(plant(1), noReplay),
    [
      { request: "POST /plants?include=id", body: plant(1), headers: withKey },
      { ...replay, json: { id: "{1}", ...shown(1)[0] } },
    ],
  ],
  "retries at the same time create one plant": [
    { request: "POST /plants", body: unnumbered, headers: withKey, atOnce: 6 },
    {
      status: 201,
      same: ["Location", "body"],
      check: (_, all) => {
        const first = all.filter((each) => each.header("Idempotency-Replayed") === undefined);
        return first.length === 1 ? undefined : `${first.length} of them are not replays`;
      },
    },
  ],
  "a replay does not bring a deleted plant back": [
    keyed(plant(1)),
    ["DELETE /plants/{1}", 204],
    keyed(plant(1), replay),
    list("", []),
  ],
  "the same key with another request is 422, and creates nothing": [
    keyed(plant(1)),
    keyed(plant(1, { name: "{name}!" }), 422),
    keyed(plant(1, { tag: "other" }), 422),
    keyed(plant(2), 422),
    keyed(shown(1)[0] as object, 422),
    list("", shown(1)),
  ],
  "a request in another spelling of JSON is the same": [
    keyed({ name: "{name}", tag: "", id: "{1}" }),
    keyed('{ "id": {1}, "tag": "", "name": "{name}" }', replay),
    keyed('{"id":{1}.0,"n\\u0061me":"{name}"}', replay),
  ],
  "a key is the same bare and in double quotes": [
    keyed(plant(1), 201, '{key}a"b'),
    keyed(plant(1), replay, '"{key}a\\"b"'),
  ],
  "a key has up to 255 visible ASCII characters": each(
    [`{key}${tildes}`, `"{key}${tildes}"`, "!#$%&'()*+,-./:;<=>?@[]^_`{|}~{key}"],
    keyed(plant(1), 201, "{each}"),
  ),
  "another key is 400 and named": each(
    [`{key}${tildes}~`, `"{key}${tildes}~"`, "", '""', '"open', '"a"b"', "a b", '"a b"', "\u00e9"],
    keyed(plant(1), { errors: ["Idempotency-Key"] }, "{each}"),
  ),
  "a request that was refused is not remembered": [
    keyed(plant(1, { tag: null }), 400),
    create(plant(1)),
    keyed(plant(1), 409),
    keyed(plant(2), noReplay),
  ],
  "gardens do not share keys": [
    keyed(plant(1)),
    [as("second", "POST /plants", { body: plant(2), headers: withKey }), noReplay],
  ],
});

const post = "POST /plants/bulk";
const created = (number: number) => ({ status: 201, id: `{${number}}` });
const replayed = (number: number) => ({ ...created(number), replayed: true });
const withKeyOf = (characters: number, expected: Expected): Step => {
  const key = "{key}".padEnd(characters - crypto.randomUUID().length + "{key}".length, "~");
  return [{ request: post, body: [plant(1)], headers: { "Idempotency-Key": key } }, expected];
};
/** A bulk that is refused, whatever else is in it. */
const refused = (body: object | string, errors: readonly string[]): readonly Step[] => [
  [{ request: post, body }, { errors }],
  list("", []),
];

const hasIdsOfFirst: ResponseCheck = (response, [first]) => {
  const [found, wanted] = [response, first].map((each) =>
    JSON.stringify(each?.results.map(({ id }) => id)),
  );
  return found === wanted ? undefined : `the ids must be ${wanted}, and are ${found}`;
};

const plantsMax = 10_000;
const bytesMax = 1024 * 1024;
/** Short enough that 10,000 of them fit. The first one takes the id. */
const equals = (count: number) =>
  Array.from({ length: count }, () => ({ name: "{name}", id: "{1}" }));
const padded = (number: number, padTo: number): Sent => ({
  request: post,
  body: [plant(number)],
  padTo,
});

const manyRows = rowsOf("many at once", {
  "an array creates a plant for each item, with the id of each in their order": [
    createMany([plant(2), unnumbered, plant(1)], [created(2), 201, created(1)]),
    list("", shown(1, 2)),
  ],
  "an id that no double can hold is exact": [
    createMany([plant(1, { id: "{far}" })], [{ status: 201, id: "{far}" }]),
    ["GET /plants/{far}", 200],
  ],
  "JSON Lines are 415, and the detail says what to send": each(
    ["application/jsonl", "application/x-ndjson", "Application/JSONL; charset=utf-8"],
    [
      { request: post, body: plant(1), headers: { "Content-Type": "{each}" } },
      { status: 415, detail: "one JSON array" },
    ],
    list("", []),
  ),
  "a plant that is refused stops no other": [
    createMany([plant(1), plant(1), plant(2)], [created(1), 409, created(2)]),
    list("", shown(1, 2)),
  ],
  "if any plant is invalid, errors name each field, and nothing is stored": refused(
    [plant(1), plant(2, { name: "" }), plant(3, { tag: null, color: 1 }), {}, plant(4)],
    ["/1/name", "/2/tag", "/2/color", "/3/name"],
  ),
  "an item that is not an object is 400 and named": each(
    ["7", "null", "[]", '"Fern"'],
    ...refused('[{"name":"{name}","id":{1}},{each}]', ["/1"]),
  ),
  "a repeated or unknown field in any item is 400 and named": [
    ...refused('[{"name":"{name}","id":{1}},{"name":"a","n\\u0061me":"b"}]', ["/1/name"]),
    ...refused('[{"name":"{name}","id":{1},"__proto__":{}}]', ["/0/__proto__"]),
  ],
  "at most 100 errors are listed": [
    { request: post, body: Array.from({ length: 150 }, () => ({})) },
    {
      status: 400,
      check: ({ errors }) => (errors.length === 100 ? undefined : `there are ${errors.length}`),
    },
  ],
  "a body that is not one JSON array is 400": each(
    [
      "",
      "{}",
      '{"name":"{name}","id":{1}}',
      "null",
      "[",
      "[,]",
      "]",
      "[]]",
      '[{"name":"{name}","id":{1}},]',
      '[{"name":"{name}","id":{1}}}',
      "[]{}",
      '[{"name":"{name}","id":{1}}{}]',
      '\ufeff[{"name":"{name}","id":{1}}]',
    ],
    [{ request: post, body: "{each}" }, { errors: [""] }],
    list("", []),
  ),
  "a syntax error in an item is 400, and says where": each(
    ['{"name":"{name}",}', '{"name":"{name}"', "{]", '{"name":"{name}","id":01}'],
    [
      { request: post, body: '[{"name":"{name}","id":{1}},{each}]' },
      {
        status: 400,
        check: ({ errors }) =>
          errors.some(({ pointer }) => pointer === "/1") ? undefined : "no error is at /1",
      },
    ],
    list("", []),
  ),
  "an empty array is 400": refused([], [""]),
  "an array at /plants is 400": [create([plant(1)], { errors: [""] }), list("", [])],
  "the same array with the same key gives the same ids, and creates nothing": [
    createMany([unnumbered, plant(1)], [201, created(1)], withKey),
    [
      { request: post, body: [unnumbered, plant(1)], headers: withKey },
      { results: [201, replayed(1)], check: hasIdsOfFirst },
    ],
    createMany([unnumbered, plant(1), plant(2)], [201, replayed(1), created(2)], withKey),
    list("", shown(1, 2)),
  ],
  "another plant with the same key and place is 422, and creates nothing": [
    createMany([plant(1), plant(2)], [201, 201], withKey),
    createMany([plant(1), plant(3), plant(4)], [replayed(1), 422, created(4)], withKey),
    list("", shown(1, 2, 4)),
  ],
  "a plant that was refused is not remembered": [
    [{ request: post, body: [plant(1), {}], headers: withKey }, { errors: ["/1/name"] }],
    createMany([plant(2), plant(2)], [created(2), 409], withKey),
    createMany([plant(2), plant(3)], [replayed(2), created(3)], withKey),
  ],
  "a key has up to 240 characters here": [
    withKeyOf(240, { results: [created(1)] }),
    withKeyOf(241, { errors: ["Idempotency-Key"] }),
  ],
  "include and other parameters are 400, together with what is wrong in the body": each(
    ["include", "limit", "color"],
    [{ request: `${post}?{each}=id`, body: [plant(1)] }, { errors: ["{each}"] }],
    [{ request: `${post}?{each}=id`, body: [{}] }, { errors: ["{each}", "/0/name"] }],
    list("", []),
  ),
  "invalid UTF-8 anywhere is 400 for the whole": [
    [{ request: post, bytes: '[{"name":"{name}","id":{1}},{"name":"\xff"}]' }, { errors: [""] }],
    list("", []),
  ],
  "10,000 plants are taken, and one more is 413": [
    createMany(equals(plantsMax), [
      created(1),
      ...Array.from({ length: plantsMax - 1 }, () => 409),
    ]),
    [{ request: post, body: equals(plantsMax + 1) }, tooLarge],
  ],
  "1 MiB is taken, and one byte more is 413": [
    [padded(1, bytesMax), { results: [201] }],
    [padded(2, bytesMax + 1), tooLarge],
    list("", shown(1)),
  ],
});

export const rows = [...createRows, ...idempotencyRows, ...manyRows];
