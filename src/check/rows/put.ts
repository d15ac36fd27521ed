/** Replacing a plant; entity tags and preconditions. */
import type { Expected, ResponseCheck, Step } from "../row.ts";
import {
  as,
  create,
  each,
  isOnce,
  jsonType,
  list,
  plant,
  rowsOf,
  shown,
  strongTag,
  times,
} from "../row.ts";
import type { SentHeaders } from "../service.ts";

const renamed = { name: "{name} renamed", tag: "new" };

function put(
  body: object | string,
  expected: number | Expected = 200,
  headers: SentHeaders = {},
): Step {
  return [{ request: "PUT /plants/{1}", body, headers }, expected];
}

const isOther: ResponseCheck = (response, [first]) => {
  const [found, earlier] = [response, first].map((each) => each?.header("ETag"));
  return found === earlier ? `the ETag must change, and is still ${found}` : undefined;
};

const putRows = rowsOf("put", {
  "a plant that is there becomes what the body says: 200, with the name and the tag": [
    create(plant(1)),
    put(renamed, { json: renamed, headers: { ...jsonType, ...strongTag, Location: null } }),
    ["GET /plants/{1}", { json: renamed }],
    ...times(4, list("", [renamed])),
  ],
  "a plant that isn't there is created: 201, with Location": [
    put(renamed, {
      status: 201,
      json: renamed,
      headers: { Location: "{base}/plants/{1}", ...strongTag },
    }),
    list("", [renamed]),
  ],
  "a tag that is left out is empty": [
    create(plant(1)),
    put({ name: "{name}" }, { json: { name: "{name}", tag: "" } }),
  ],
  "the same put again changes nothing, with an Idempotency-Key or without": [
    put(renamed, 201),
    put(renamed, { json: renamed }, { "Idempotency-Key": "{key}" }),
    put({ name: "{name}" }, { json: { name: "{name}", tag: "" } }, { "Idempotency-Key": "{key}" }),
  ],
  "an id in the body must be the one in the path": [
    put({ ...renamed, id: "{1}" }, 201),
    put({ ...renamed, id: "{2}" }, { errors: ["/id"] }),
    list("", [renamed]),
  ],
  "with include=id the response has the id, too": [
    [
      { request: "PUT /plants/{1}?include=id", body: renamed },
      { status: 201, json: { id: "{1}", ...renamed } },
    ],
    [{ request: "PUT /plants/{1}?limit=1", body: renamed }, { errors: ["limit"] }],
  ],
  "name and tag have the rules of a create": [
    put({ name: "", tag: null, color: 1 }, { errors: ["/name", "/tag", "/color"] }),
    put({ name: "", id: "{2}" }, { errors: ["/name", "/id"] }),
    put("{", { errors: [""] }),
    [{ request: "PUT /plants/x", body: renamed }, { errors: ["id"] }],
    put(renamed, 415, { "Content-Type": "text/plain" }),
    list("", []),
  ],
  "a put finds its plant exactly beyond 2^53": [
    create(plant(1, { id: "{far}" })),
    [{ request: "PUT /plants/{far}", body: renamed }, 200],
    ["GET /plants/{far}", { json: renamed }],
  ],
  "a list by tag shows a plant under its new tag, and no longer under the old one": [
    create(plant(1)),
    list("&tag=tag%201", shown(1)),
    put(renamed),
    list("&tag=tag%201", []),
    list("&tag=new", [renamed]),
  ],
  "a plant of another garden is not touched": [
    create(plant(1)),
    [as("second", "PUT /plants/{1}", { body: renamed }), 201],
    list("", shown(1)),
  ],
});

const preconditionRows = rowsOf("preconditions", {
  "a create, GET, HEAD and PUT have a strong ETag, the same for the same name and tag": [
    create(plant(1), { status: 201, headers: strongTag }),
    ["GET /plants/{1}", { same: ["ETag"] }],
    ["HEAD /plants/{1}", { same: ["ETag"] }],
    ["GET /plants/{1}?include=id", { same: ["ETag"] }],
    put(shown(1)[0] as object, { same: ["ETag"] }),
  ],
  "the ETag changes with the name, and with the tag": [
    put({ name: "a", tag: "b" }, 201),
    put({ name: "a", tag: "" }, { check: isOther }),
    put({ name: "ab", tag: "" }, { check: isOther }),
  ],
  "a read whose If-None-Match has the tag is 304, without a body": each(
    ["{etag}", "W/{etag}", '"other", {etag}', "*"],
    create(plant(1)),
    ["GET /plants/{1}", 200],
    [
      { request: "GET /plants/{1}", headers: { "If-None-Match": "{each}" } },
      { status: 304, headers: { "Content-Type": null, ...strongTag } },
    ],
    [{ request: "HEAD /plants/{1}", headers: { "If-None-Match": "{each}" } }, 304],
    [
      { request: "GET /plants/{1}", headers: { "If-None-Match": '"other"' } },
      { json: shown(1)[0] },
    ],
  ),
  "a read whose If-Match has no such tag is 412": [
    create(plant(1)),
    ["GET /plants/{1}", 200],
    [{ request: "GET /plants/{1}", headers: { "If-Match": "{etag}" } }, { json: shown(1)[0] }],
    [{ request: "GET /plants/{1}", headers: { "If-Match": '"other"' } }, 412],
    [{ request: "HEAD /plants/{1}", headers: { "If-Match": "W/{etag}" } }, 412],
    [{ request: "GET /plants/{2}", headers: { "If-Match": "*" } }, 404],
  ],
  "PUT and DELETE with an If-Match that matches are done": each(
    ["{etag}", '"other" , {etag}', "{etag},", ', ,"other",,{etag}', "*"],
    create(plant(1)),
    ["GET /plants/{1}", 200],
    put(shown(1)[0] as object, 200, { "If-Match": "{each}" }),
    [{ request: "DELETE /plants/{1}", headers: { "If-Match": "{each}" } }, 204],
  ),
  "PUT and DELETE with an If-Match that doesn't match are 412, and change nothing": each(
    ['"other"', "W/{etag}", '""'],
    create(plant(1)),
    ["GET /plants/{1}", 200],
    put(renamed, 412, { "If-Match": "{each}" }),
    [{ request: "DELETE /plants/{1}", headers: { "If-Match": "{each}" } }, 412],
    list("", shown(1)),
  ),
  "PUT with If-Match of a plant that isn't there is 412, and creates nothing": each(
    ["*", '"x"'],
    put(renamed, 412, { "If-Match": "{each}" }),
    list("", []),
  ),
  "DELETE of a plant that isn't there is 404, whatever its precondition": each(
    ["*", '"x"', 'W/"x"'],
    [{ request: "DELETE /plants/{1}", headers: { "If-Match": "{each}" } }, 404],
  ),
  "PUT with If-None-Match: * creates, and is 412 if the plant is there": [
    put(renamed, 201, { "If-None-Match": "*" }),
    put({ name: "{name}" }, 412, { "If-None-Match": "*" }),
    list("", [renamed]),
  ],
  "of puts with the same If-Match at the same time, one is 200": [
    put({ name: "{name}" }, 201),
    [
      { request: "PUT /plants/{1}", body: renamed, headers: { "If-Match": "{etag}" }, atOnce: 6 },
      { status: [200, 412], check: isOnce(200) },
    ],
  ],
  "a malformed precondition is 400 and named": each(
    ["x", "{1}", '"x', '"x" "y"', "*, *", "W/*", "", ","],
    [
      { request: "PUT /plants/{1}", body: renamed, headers: { "If-Match": "{each}" } },
      { errors: ["If-Match"] },
    ],
    [
      { request: "DELETE /plants/{1}", headers: { "If-Match": "{each}" } },
      { errors: ["If-Match"] },
    ],
    [
      { request: "GET /plants/{1}", headers: { "If-None-Match": "{each}" } },
      { errors: ["If-None-Match"] },
    ],
    list("", []),
  ),
  "PUT takes If-None-Match with an asterisk only": put(
    renamed,
    { errors: ["If-None-Match"] },
    {
      "If-None-Match": '"x"',
    },
  ),
});

export const rows = [...putRows, ...preconditionRows];
