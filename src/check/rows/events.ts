/** Events: what is one, pages, positions that are gone, streams. */
import {
  as,
  create,
  each,
  jsonType,
  plant,
  type ResponseCheck,
  rowsOf,
  type Step,
  withKey,
} from "../row.ts";
import type { ServiceResponse } from "../service.ts";

/** Keeps the number of the last event as `{last}`. */
const me: Step = [
  "GET /me",
  { skip: ({ json }) => (json?.lastEvent === undefined ? "events are off" : undefined) },
];

const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** What the events must be, after those that `/me` counted and the first `skipped` of the row. */
const shows =
  (expected: readonly string[], skipped = 0): ResponseCheck =>
  ({ json }, all) => {
    const [who] = all.map((response) => response.json);
    const reasons = (json as unknown[]).map((event, index) => whyNot(event, who, index + skipped));
    const found = json.map(({ type, plant }: Event) => `${type} ${plant.name} ${plant.tag}`.trim());
    if (String(found) !== String(expected)) return `they must be ${expected}, and are ${found}`;
    return reasons.find((reason) => reason !== undefined);
  };

interface Event {
  readonly type: string;
  readonly plant: { readonly name: string; readonly tag: string };
}

function whyNot(event: unknown, me: ServiceResponse["json"], index: number): string | undefined {
  const { seq, type, at, user, plant, ...others } = event as Record<string, unknown>;
  const [last, members] = [me.lastEvent, Object.keys({ ...(plant as object) })];
  if (seq !== last + index + 1) return `the seq after ${last + index} is ${seq}`;
  if (!time.test(String(at))) return `at is ${at}`;
  if (user !== me.user) return `user must be ${me.user}, and is ${user}`;
  if (String(members) !== "id,name,tag") return `the plant of ${type} has the members ${members}`;
  const [other] = Object.keys(others);
  return other && `${other} must not be there`;
}

const events = (query: string, expected: readonly string[], skipped?: number): Step => [
  `GET /events?after={last}${query}`,
  { headers: { ...jsonType, Link: null }, check: shows(expected, skipped) },
];

const named = (number: number) => `plantstore check ${number}`;
const stream = { Accept: "text/event-stream" };

export const rows = rowsOf("events", {
  "a create, a replacement and a deletion are events, in order": [
    me,
    create(plant(1)),
    [{ request: "PUT /plants/{1}", body: { name: "{name} 2" } }, 200],
    ["DELETE /plants/{1}", 204],
    [{ request: "PUT /plants/{2}", body: { name: "{name} 3" } }, 201],
    events("", [
      `plant.created ${named(1)} tag 1`,
      `plant.replaced ${named(2)}`,
      `plant.deleted ${named(2)}`,
      `plant.created ${named(3)}`,
    ]),
  ],
  "what changes nothing is no event": [
    me,
    create(plant(1), 201, withKey),
    create(plant(1), 201, withKey),
    create(plant(1), 409),
    [{ request: "PUT /plants/{1}", body: plant(1) }, 200],
    [{ request: "PUT /plants/{1}", body: plant(1), headers: { "If-None-Match": "*" } }, 412],
    ["DELETE /plants/{2}", 404],
    events("", [`plant.created ${named(1)} tag 1`]),
  ],
  "each plant of a bulk is an event": [
    me,
    [{ request: "POST /plants/bulk", body: [plant(1), plant(1), plant(2)] }, 200],
    events("", [`plant.created ${named(1)} tag 1`, `plant.created ${named(2)} tag 2`]),
  ],
  "if there are more, Link has the next page": [
    me,
    ...[1, 2, 3].map((number) => create(plant(number))),
    [
      "GET /events?after={last}&limit=2",
      {
        headers: { Link: /^<[^>]*\/events\?[^>]*>; rel="next"$/ },
        check: shows([`plant.created ${named(1)} tag 1`, `plant.created ${named(2)} tag 2`]),
      },
    ],
    [
      "GET {next}",
      { headers: { Link: null }, check: shows([`plant.created ${named(3)} tag 3`], 2) },
    ],
  ],
  "a read-only token may read them, and HEAD is as GET": [
    me,
    create(plant(1)),
    [as("read", "GET /events?after={last}"), { headers: jsonType }],
    [
      as("read", "HEAD /events?after={last}"),
      { same: ["status", "Content-Type", "Content-Length"] },
    ],
  ],
  "a number that no event has yet is 410": each(["", "text/event-stream"], me, [
    { request: "GET /events?after=9007199254740991", headers: { Accept: "{each}" } },
    410,
  ]),
  "a client that prefers JSON, or wants no stream, gets a page": each(
    ["text/event-stream;q=0", "application/json, text/event-stream;q=0.5"],
    me,
    [{ request: "GET /events?after={last}", headers: { Accept: "{each}" } }, { headers: jsonType }],
  ),
  "limit is 1 to 1,000, after is a number, and nothing else is taken": [
    me,
    ["GET /events?after={last}&limit=1000", 200],
    ["GET /events?limit=0&after=-1&include=id", { errors: ["limit", "after", "include"] }],
    ["GET /events?limit=1001", { errors: ["limit"] }],
  ],
  "a stream sends what happened after Last-Event-ID, which goes before after": {
    hint: "a proxy may be buffering the response",
    steps: [
      me,
      create(plant(1)),
      [
        {
          request: "GET /events?after=9007199254740991",
          headers: { ...stream, "Last-Event-ID": "{last}" },
          until: "}}\n\n",
        },
        {
          headers: { "Content-Type": /^text\/event-stream\b/, "Cache-Control": ["no-store"] },
          check: ({ text }) =>
            /^retry: 2000\n\nid: \d+\nevent: plant\.created\ndata: \{.*"tag":"tag 1"\}\}\n\n$/.test(
              text,
            )
              ? undefined
              : `this is not the stream: ${text}`,
        },
      ],
    ],
  },
  "a Last-Event-ID that is no number is 400, and so is the limit of a stream": [
    me,
    [
      { request: "GET /events", headers: { ...stream, "Last-Event-ID": "x" } },
      { errors: ["Last-Event-ID"] },
    ],
    [{ request: "GET /events?limit=1", headers: stream }, { errors: ["limit"] }],
  ],
});
