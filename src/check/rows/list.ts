/** List: order, limit, after, fields, and the way to the next page. */
import { as, create, each, list, plant, plants, rowsOf, shown } from "../row.ts";

/** With a limit: a service that accepts the value must not send a whole garden. */
const refused = (parameter: string, ...values: string[]) =>
  each(values, [`GET /plants?${parameter}={each}&limit=1`, { errors: [parameter] }]);
const next = /^<[^>]*>; ?rel="?next"?$/;
const toNext = { headers: { Link: next } };
const atEnd = { headers: { Link: null } };

export const listRows = rowsOf("list", {
  "a list is a JSON array of name and tag, and nothing else": [
    ...plants(2),
    list("", shown(1, 2), { "Content-Type": /^application\/json(?:; ?charset=utf-8)?$/i }),
  ],
  "plants are ordered by ascending id, as numbers": [
    create(plant(4, { id: "{far}" })),
    ...plants(3),
    list("", shown(1, 2, 3, 4)),
  ],
  'limit cuts the list, with Link and rel="next"': [
    ...plants(3),
    list("&limit=1", shown(1), { Link: next }),
    list("&limit=2", shown(1, 2), { Link: next }),
  ],
  "limit may be 0, and the Link leads to every plant": [
    ...plants(2),
    list("&limit=0", [], { Link: next }),
    ["GET {next}", { json: shown(1), ...toNext }],
    ["GET {next}", { json: shown(2), ...atEnd }],
  ],
  "a limit that is not an integer from 0 to 2147483647 in its shortest form is 400": each(
    [
      ...["-1", "1.5", "1.0", "", "ten", "2147483648", "10000000000000000000", "1e2", "0x1"],
      ...["%201", "1%0A", "%D9%A1", "%zz", "007", "%2B1", "+1", "-0"],
    ],
    ["GET /plants?limit={each}", { errors: ["limit"] }],
  ),
  "a limit without a value is 400": ["GET /plants?limit", { errors: ["limit"] }],
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
    ...["", "x", "1.5", "9223372036854775808", "-9223372036854775809", "007", "%2B7", "-0"],
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
  "following Link misses nothing when plants are deleted meanwhile": [
    ...plants(3),
    list("&limit=1", shown(1)),
    ["DELETE /plants/{1}", 204],
    ["GET {next}", { json: shown(2) }],
  ],
  "Link keeps fields": [
    ...plants(2),
    list("&limit=1&fields=id", [{ id: "{1}" }]),
    ["GET {next}", { json: [{ id: "{2}" }] }],
  ],
  "HEAD has the Link that GET has": [
    ...plants(2),
    list("&limit=1", shown(1), { Link: next }),
    ["HEAD /plants?after={before}&limit=1", { same: ["Link"] }],
  ],
  "fields chooses among id, name and tag": [
    create(plant(1)),
    list("&fields=id,name,tag", [{ id: "{1}", ...shown(1)[0] }]),
    list("&fields=id", [{ id: "{1}" }]),
    list("&fields=tag,name", shown(1)),
    list("&fields=id%2Ctag", [{ id: "{1}", tag: "tag 1" }]),
  ],
  "fields of other names are 400": refused(
    "fields",
    ...["", ",", "colour", "id,", "id,,tag", "id,id", "id,colour", "ID", "id,%20name", "id;tag"],
  ),
  "a list shows no plant of another garden": [
    create(plant(1)),
    list("", shown(1)),
    [as("second", "GET /plants?after={before}"), { json: [] }],
  ],
});
