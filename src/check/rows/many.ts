/** Many plants at once: a create on each line, a result on each line, safe retries, limits. */
import {
  createMany,
  type Expected,
  each,
  list,
  plant,
  type ResponseCheck,
  rowsOf,
  type Sent,
  type Step,
  shown,
} from "../row.ts";

const post = "POST /plants";
const jsonLines = { "Content-Type": "application/jsonl" };
const created = (number: number) => ({ status: 201, id: `{${number}}` });
const replayed = (number: number) => ({ ...created(number), replayed: true });
const unnumbered = { name: "{name}", tag: "many" };
const keyed = (sent: NonNullable<Sent["lines"]>, expected: NonNullable<Expected["lines"]>) =>
  createMany(sent, expected, { "Idempotency-Key": "{key}" });
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
const sized = (padTo: number): Sent => ({ request: post, lines: [plant(1), plant(2)], padTo });
const tooLarge = { status: [413] };

export const manyRows = rowsOf("many at once", {
  "JSON Lines create a plant for each line, with the id of each in their order": [
    createMany([plant(2), unnumbered, plant(1)], [created(2), 201, created(1)]),
    list("", shown(1, 2)),
  ],
  "the type may be application/jsonl or application/x-ndjson, in UTF-8": each(
    ["application/jsonl", "application/x-ndjson", "Application/JSONL; charset=utf-8"],
    createMany([plant(1)], [created(1)], { "Content-Type": "{each}" }),
  ),
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
    keyed([unnumbered, plant(1)], [201, created(1)]),
    [
      { request: post, lines: [unnumbered, plant(1)], headers: { "Idempotency-Key": "{key}" } },
      { lines: [201, replayed(1)], check: hasIdsOfFirst },
    ],
    keyed([unnumbered, plant(1), plant(2)], [201, replayed(1), created(2)]),
    list("", shown(1, 2)),
  ],
  "another line with the same key and number is 422, and creates nothing": [
    keyed([plant(1), plant(2)], [201, 201]),
    keyed([plant(1), plant(3), plant(4)], [replayed(1), 422, created(4)]),
    list("", shown(1, 2, 4)),
  ],
  "a line that was refused is not remembered": [
    keyed([plant(1, { tag: null }), plant(2)], [["/tag"], 201]),
    keyed([plant(1), plant(2)], [created(1), replayed(2)]),
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
    [sized(bytesMax), { lines: [201, 201] }],
    [sized(bytesMax + 1), tooLarge],
  ],
});
