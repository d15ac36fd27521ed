/** Create and delete: what they return and what they change, and safe retries of a create. */
import {
  as,
  create,
  type Expected,
  each,
  list,
  plant,
  plants,
  type ResponseCheck,
  rowsOf,
  type Step,
  shown,
} from "../row.ts";

/** Repeats a step: with several threads or instances, another one may respond. */
const times = (count: number, step: Step) => Array.from({ length: count }, () => step);

const isOnce =
  (status: number): ResponseCheck =>
  (_, all) => {
    const statuses = all.map((response) => response.status);
    const count = statuses.filter((each) => each === status).length;
    return count === 1 ? undefined : `one of them must be ${status}, and they are ${statuses}`;
  };

export const createRows = rowsOf("create", {
  "a create is 201, with Location, the name and the tag, and nothing else": create(plant(1), {
    status: 201,
    headers: {
      "Content-Type": /^application\/json(?:; ?charset=utf-8)?$/i,
      Location: "{base}/plants/{1}",
    },
    json: shown(1)[0],
  }),
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
  "fields chooses what the body has": each(
    ["id,name,tag", "tag,id,name"],
    [
      { request: "POST /plants?fields={each}", body: plant(1) },
      { status: 201, json: { id: "{1}", ...shown(1)[0] } },
    ],
    [
      { request: "POST /plants?fields=id", body: plant(2) },
      { status: 201, json: { id: "{2}" } },
    ],
  ),
  "other parameters and fields of other names are 400": each(
    ["fields=colour", "fields=", "fields=id&fields=id", "limit=1", "after=1", "tag=x"],
    [{ request: "POST /plants?{each}", body: plant(1) }, 400],
    list("", []),
  ),
  "a create that is 400 creates nothing": [
    create(plant(1, { colour: "green" }), 400),
    create(plant(1, { tag: null }), 400),
    list("", []),
  ],
});

const keyed = (body: object | string, expected: number | Expected = 201, key = "{key}") =>
  create(body, expected, { "Idempotency-Key": key });
/** The service assigns the id, so that a second plant would get another. */
const unnumbered = { name: "{name}", tag: "key" };
const replayed: Expected = { status: 201, headers: { "Idempotency-Replayed": "true" } };
const notReplayed: Expected = { status: 201, headers: { "Idempotency-Replayed": null } };
const tildes = "~".repeat(255 - crypto.randomUUID().length);

export const idempotencyRows = rowsOf("idempotency", {
  "the same key and request give the same response, with Idempotency-Replayed: true": [
    keyed(unnumbered, notReplayed),
    keyed(unnumbered, { ...replayed, same: ["status", "body", "Location"] }),
  ],
  "a replay has the fields that it asks for": [
    keyed(plant(1), notReplayed),
    [
      {
        request: "POST /plants?fields=id,tag",
        body: plant(1),
        headers: { "Idempotency-Key": "{key}" },
      },
      { ...replayed, json: { id: "{1}", tag: "tag 1" } },
    ],
  ],
  "retries at the same time create one plant": [
    {
      request: "POST /plants",
      body: unnumbered,
      headers: { "Idempotency-Key": "{key}" },
      atOnce: 6,
    },
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
    keyed(plant(1), replayed),
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
    keyed('{ "id": {1}, "tag": "", "name": "{name}" }', replayed),
    keyed('{"id":{1}.0,"n\\u0061me":"{name}"}', replayed),
  ],
  "a key is the same bare and in double quotes": [
    keyed(plant(1), 201, '{key}a"b'),
    keyed(plant(1), replayed, '"{key}a\\"b"'),
  ],
  "a key has up to 255 visible ASCII characters": each(
    [`{key}${tildes}`, `"{key}${tildes}"`, "!#$%&'()*+,-./:;<=>?@[]^_`{|}~{key}"],
    keyed(plant(1), 201, "{each}"),
  ),
  "another key is 400 and named": each(
    [
      `{key}${tildes}~`,
      `"{key}${tildes}~"`,
      "",
      '""',
      '"open',
      '"a"b"',
      "a b",
      '"a b"',
      "caf\u00e9",
    ],
    keyed(plant(1), { errors: ["Idempotency-Key"] }, "{each}"),
  ),
  "a request that was refused is not remembered": [
    keyed(plant(1, { tag: null }), 400),
    create(plant(1)),
    keyed(plant(1), 409),
    keyed(plant(2), notReplayed),
  ],
  "gardens do not share keys": [
    keyed(plant(1)),
    [
      as("second", "POST /plants", { body: plant(2), headers: { "Idempotency-Key": "{key}" } }),
      notReplayed,
    ],
  ],
});

/** With a request id, so that bodies can be compared as a whole. */
const deleteAs = (token: "second" | undefined, id: string): Step[0] => ({
  request: `DELETE /plants/${id}`,
  headers: { "X-Request-Id": "check" },
  ...(token && { token }),
});

/** What is no id of 64 bits in its shortest form. */
export const notIds = [
  ...["x", "{1}.5", "{1}x", "{1}%20", "0x1", "0{1}", "%2B{1}", "{1}.0", "{1}e0", "-0", "%31"],
  ...["9223372036854775808", "-9223372036854775809", "1".repeat(400)],
];

export const deleteRows = rowsOf("delete", {
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
  "404 is the same for a plant that never was and one that is gone": [
    create(plant(1)),
    ["DELETE /plants/{1}", 204],
    [deleteAs(undefined, "{1}"), 404],
    [deleteAs(undefined, "{2}"), { status: 404, same: ["body"] }],
  ],
  "a plant of another garden is 404 in the same way, and stays": [
    create(plant(1)),
    [deleteAs("second", "{1}"), 404],
    [deleteAs(undefined, "{2}"), { status: 404, same: ["body"] }],
    list("", shown(1)),
  ],
  "neighbours beyond 2^53 are told apart": [
    create({ name: "first", id: "{far}" }),
    create({ name: "second", id: "{far+1}" }),
    ["DELETE /plants/{far+1}", 204],
    list("&fields=name", [{ name: "first" }]),
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
