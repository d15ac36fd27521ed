/** Create and delete: what they return and what they change, and safe retries of a create. */
import {
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

/** Asked several times: on several threads or instances, others may respond. */
const times = (count: number, step: Step) => Array.from({ length: count }, () => step);

const isOnce =
  (status: number): ResponseCheck =>
  (_, all) => {
    const statuses = all.map((response) => response.status);
    const count = statuses.filter((each) => each === status).length;
    return count === 1 ? undefined : `one of them must be ${status}, and they are ${statuses}`;
  };

export const createRows = rowsOf("create", {
  "a create is 201, with the name and the tag and nothing else": create(plant(1), {
    status: 201,
    headers: {
      "Content-Type": /^application\/json(?:; ?charset=utf-8)?$/i,
      "Idempotency-Replayed": null,
    },
    json: shown(1)[0],
  }),
  "Location is {base path}/plants/{id}": create(plant(1), {
    status: 201,
    headers: { Location: "{base}/plants/{1}" },
  }),
  "a created plant is in the list at once": [
    create(plant(1)),
    ...times(4, list("&limit=1", shown(1))),
  ],
  "a taken id is 409": [
    create(plant(1)),
    create(plant(1, { tag: "x" }), 409),
    create(plant(1), 409),
  ],
  "a create that is 409 changes nothing": [
    create(plant(1)),
    create(plant(1, { tag: "second" }), 409),
    list("&limit=2", shown(1)),
  ],
  "of creates with one id at the same time one is 201, the others are 409": [
    { request: "POST /plants", body: plant(1), atOnce: 8 },
    { status: [201, 409], check: isOnce(201) },
  ],
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

export const idempotencyRows = rowsOf("idempotency", {
  "the same key and request give the same status, body and Location": [
    keyed(unnumbered),
    keyed(unnumbered, { status: 201, same: ["status", "body", "Location"] }),
  ],
  "a replay has Idempotency-Replayed: true, a first response does not": [
    keyed(plant(1), notReplayed),
    keyed(plant(1), replayed),
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
  "the same key with another request is 422": [
    keyed(plant(1)),
    keyed(plant(1, { name: "{name}!" }), 422),
    keyed(plant(1, { tag: "other" }), 422),
    keyed(shown(1)[0] as object, 422),
  ],
  "a request that is 422 creates nothing": [
    keyed(plant(1)),
    keyed(plant(2), 422),
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
    [`{key}${"~".repeat(219)}`, `"{key}${"~".repeat(219)}"`, "!#$%&'()*+,-./:;<=>?@[]^_`{|}~{key}"],
    keyed(plant(1), 201, "{each}"),
  ),
  "another key is 400 and named": each(
    [
      ...[`{key}${"~".repeat(220)}`, `"{key}${"~".repeat(220)}"`, "", '""', '"', '"open', '"a"b"'],
      ...["a b", '"a b"', '"a\\n"', "a\u007f", "caf\u00e9", "a, b"],
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
      {
        request: "POST /plants",
        token: "second",
        body: plant(1, { tag: "other" }),
        headers: { "Idempotency-Key": "{key}" },
      },
      notReplayed,
    ],
  ],
});

/** So that bodies can be compared as a whole. */
const steady = { "X-Request-Id": "check" };

export const deleteRows = rowsOf("delete", {
  "a delete is 204 without a body": [
    create(plant(1)),
    ["DELETE /plants/{1}", { status: 204, headers: { "Content-Type": null } }],
  ],
  "a deleted plant is gone from the list at once, and no other is": [
    ...plants(3),
    ["DELETE /plants/{2}", 204],
    ...times(4, list("", shown(1, 3))),
  ],
  "a second delete is 404": [
    create(plant(1)),
    ["DELETE /plants/{1}", 204],
    ["DELETE /plants/{1}", 404],
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
    [{ request: "DELETE /plants/{1}", headers: steady }, 404],
    [
      { request: "DELETE /plants/{2}", headers: steady },
      { status: 404, same: ["body"] },
    ],
  ],
  "404 is the same for a plant of another garden": [
    create(plant(1)),
    [{ request: "DELETE /plants/{1}", token: "second", headers: steady }, 404],
    [
      { request: "DELETE /plants/{2}", headers: steady },
      { status: 404, same: ["body"] },
    ],
  ],
  "a plant of another garden is not deleted": [
    create(plant(1)),
    [{ request: "DELETE /plants/{1}", token: "second" }, 404],
    list("", shown(1)),
  ],
  "neighbours beyond 2^53 are told apart": [
    create({ name: "first", id: "{far}" }),
    create({ name: "second", id: "{far+1}" }),
    ["DELETE /plants/{far+1}", 204],
    list("&fields=name", [{ name: "first" }]),
  ],
  "a delete of an id that is not an integer is 400": each(
    ["x", "{1}.5", "{1}x", "%20", "{1}%20", "0x1"],
    ["DELETE /plants/{each}", { errors: ["id"] }],
  ),
  "a delete of an id not in its shortest form is 400": each(
    ["0{1}", "+{1}", "%2B{1}", "{1}.0", "{1}e0", "-0", "%31"],
    ["DELETE /plants/{each}", { errors: ["id"] }],
  ),
  "a delete of an id beyond 64 bits is 400": each(
    ["{over}", "{under}", "9223372036854775808", "-9223372036854775809", "1".repeat(400)],
    ["DELETE /plants/{each}", { errors: ["id"] }],
  ),
  "the id of a deleted plant is free again": [
    create(plant(1)),
    ["DELETE /plants/{1}", 204],
    create(plant(1)),
  ],
});
