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
  "a replay has the fields that it asks for": [
    keyed(plant(1), noReplay),
    [
      { request: "POST /plants?fields=id,tag", body: plant(1), headers: withKey },
      { ...replay, json: { id: "{1}", tag: "tag 1" } },
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
const jsonLines = { "Content-Type": "application/jsonl" };
const created = (number: number) => ({ status: 201, id: `{${number}}` });
const replayed = (number: number) => ({ ...created(number), replayed: true });
const withKeyOf = (characters: number, expected: Expected): Step => {
  const key = "{key}".padEnd(characters - crypto.randomUUID().length + "{key}".length, "~");
  return [{ request: post, lines: [plant(1)], headers: { "Idempotency-Key": key } }, expected];
};

const hasIdsOfFirst: ResponseCheck = (response, [first]) => {
  const [found, wanted] = [response, first].map((each) =>
    JSON.stringify(each?.lines.map((line) => line?.id)),
  );
  return found === wanted ? undefined : `the ids must be ${wanted}, and are ${found}`;
};

const linesMax = 10_000;
const bytesMax = 1024 * 1024;
const invalid = (count: number) => Array.from({ length: count }, () => "{}");
const sized = (padTo: number, ...lines: (object | string)[]): Sent => ({
  request: post,
  lines,
  padTo,
});

const manyRows = rowsOf("many at once", {
  "JSON Lines create a plant for each line, with the id of each in their order": [
    createMany([plant(2), unnumbered, plant(1)], [created(2), 201, created(1)]),
    list("", shown(1, 2)),
  ],
  "the type may be application/jsonl or application/x-ndjson, in UTF-8": each(
    ["application/jsonl", "application/x-ndjson", "Application/JSONL; charset=utf-8"],
    createMany([plant(1)], [created(1)], { "Content-Type": "{each}" }),
  ),
  "lines are taken at /plants/bulk only, and there nothing else": [
    create(plant(1), 415, jsonLines),
    [{ request: post, body: plant(1) }, 415],
    list("", []),
  ],
  "a line that is refused stops no other": [
    createMany(
      [plant(1), plant(1), plant(2, { name: "" }), "{", plant(2, { tag: null, x: 1 }), plant(3)],
      [created(1), 409, ["/name"], [""], ["/tag", "/x"], created(3)],
    ),
    list("", shown(1, 3)),
  ],
  "a line break at the end is optional, and any other empty line is not an object": [
    createMany([plant(1), ""], [created(1)]),
    createMany(["", plant(2), "", "", plant(3), "", ""], [[""], 201, [""], [""], 201, [""]]),
  ],
  "an empty body is one empty line": createMany([""], [[""]]),
  "the same lines with the same key give the same ids, and create nothing": [
    createMany([unnumbered, plant(1)], [201, created(1)], withKey),
    [
      { request: post, lines: [unnumbered, plant(1)], headers: withKey },
      { lines: [201, replayed(1)], check: hasIdsOfFirst },
    ],
    createMany([unnumbered, plant(1), plant(2)], [201, replayed(1), created(2)], withKey),
    list("", shown(1, 2)),
  ],
  "another line with the same key and number is 422, and creates nothing": [
    createMany([plant(1), plant(2)], [201, 201], withKey),
    createMany([plant(1), plant(3), plant(4)], [replayed(1), 422, created(4)], withKey),
    list("", shown(1, 2, 4)),
  ],
  "a line that was refused is not remembered": [
    createMany([plant(1, { tag: null }), plant(2)], [["/tag"], 201], withKey),
    createMany([plant(1), plant(2)], [created(1), replayed(2)], withKey),
  ],
  "a key has up to 240 characters here": [
    withKeyOf(240, { lines: [created(1)] }),
    withKeyOf(241, { errors: ["Idempotency-Key"] }),
  ],
  "fields and other parameters are 400": each(
    ["fields", "limit", "colour"],
    [{ request: `${post}?{each}=id`, lines: [plant(1)] }, { errors: ["{each}"] }],
    list("", []),
  ),
  "invalid UTF-8 anywhere is 400 for the whole": [
    [
      { request: post, bytes: '{"name":"{name}","id":{1}}\n{"name":"\xff"}', headers: jsonLines },
      { errors: [""] },
    ],
    list("", []),
  ],
  "10,000 lines are taken, and one more is 413": [
    createMany(
      invalid(linesMax),
      invalid(linesMax).map(() => ["/name"]),
    ),
    [{ request: post, lines: [plant(1), ...invalid(linesMax)] }, tooLarge],
    list("", []),
  ],
  "1 MiB is taken, and one byte more is 413": [
    [sized(bytesMax, plant(1), ""), { lines: [201, [""]] }],
    [sized(bytesMax + 1, plant(2), ""), tooLarge],
    list("", shown(1)),
  ],
  "a line of 4,096 characters is taken, and one more is 400": [
    [sized(4_096, plant(1)), { lines: [201] }],
    [sized(4_097, plant(2)), { lines: [[""]] }],
    list("", shown(1)),
  ],
});

export const rows = [...createRows, ...idempotencyRows, ...manyRows];
