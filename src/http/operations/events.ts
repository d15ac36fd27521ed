/** What happened in a garden: as a list, or live. */
import { refuse } from "../../domain/errors.ts";
import { plantSchema } from "../../domain/plant.ts";
import { closed, type DescribeSchemas, integer, openList, refer, text } from "../json-schema.ts";
import { plantOperation } from "../operation.ts";
import { inHeader, inQuery, integerText } from "../parameters.ts";
import { jsonReply, linkToNext, renderEvent, variesByAccept } from "../reply.ts";
import { prefersEventStream } from "../request-head.ts";
import { identityBounds } from "./me.ts";
import { examplePlant } from "./plants.ts";

export const schemas: DescribeSchemas = ({ fromValibot }) => ({
  EventList: { type: "array", items: refer("schemas", "Event"), maxItems: Number(eventsMax) },
  // OpenAPI 3.2 describes a stream as an array of its items, too. And so, clients that are generated
  // from 3.1 have one type for both forms of the response.
  EventStream: {
    type: "array",
    items: refer("schemas", "Event"),
    description:
      "Server-sent events, without an end. The `data` of each is one of these as JSON, its `id` is " +
      "the `seq`, and its `event` is the `type`.",
  },
  Event: {
    ...closed({
      seq: integer("int64", "Counts from 1 in each garden. A restored backup skips numbers.", {
        minimum: 1,
        maximum: Number.MAX_SAFE_INTEGER,
      }),
      type: { type: "string", ...openList("plant.created", "plant.replaced", "plant.deleted") },
      at: { type: "string", format: "date-time" },
      user: text("Who made the change.", identityBounds),
      plant: refer("schemas", "EventPlant"),
    }),
    description: "A change to a plant.",
  },
  EventPlant: {
    ...fromValibot(plantSchema),
    required: Object.keys(plantSchema.entries),
    description: "The plant after the change or, if it was deleted, before it.",
  },
});

const exampleEvent = {
  seq: 9121,
  type: "plant.created",
  at: "2026-11-15T22:00:00.000Z",
  user: "ada",
  plant: { id: 7, ...examplePlant },
};

const streamStart = `retry: 2000
id: 9120

id: ${exampleEvent.seq}
event: ${exampleEvent.type}
data: ${JSON.stringify(exampleEvent)}`;

const seqText = integerText(0n, BigInt(Number.MAX_SAFE_INTEGER));
const eventsMax = 1_000n;
const eventsDefault = 100;

export const listEvents = plantOperation({
  name: "listEvents",
  method: "GET",
  path: "/events",
  scope: "read",
  summary: "List events",
  description:
    "What happened in the token's garden, in order. If `Link` has a next page, there is more; a " +
    "page may have fewer events than `limit`. For a copy of the garden that stays current, read " +
    "`lastEvent` from `/me`, list the plants, then read the events after it.\n\n" +
    "If `Accept` prefers `text/event-stream` to `application/json`, the response is a stream of " +
    "server-sent events: first those after `Last-Event-ID` or `after`, if sent, then each one as it " +
    "happens. A comment line comes every 15 seconds. The first `id` is the position that the stream " +
    `starts from, without an event:\n\n\`\`\`\n${streamStart}\n\`\`\``,
  parameters: {
    after: inQuery(
      seqText,
      "The number of an event. The list starts after it. Default: the oldest kept.",
      9120,
    ),
    limit: inQuery(
      integerText(1n, eventsMax),
      `The maximum number of events to return. Default: ${eventsDefault}.`,
      100,
    ),
    "Last-Event-ID": inHeader(
      seqText,
      "For a stream, the same as `after`. If both are sent, this one counts.",
      9120,
    ),
  },
  success: {
    description: "The events.",
    headers: {
      Link: {
        description: 'The next page (`rel="next"`), if there are more events.',
        example: '</events?limit=100&after=9220>; rel="next"',
      },
    },
    schema: "EventList",
    streamSchema: "EventStream",
    example: [exampleEvent],
  },
  problems: ["not-found", "gone"],
  async run(call, { parameters }) {
    const { service, caller } = call;
    const isStream = prefersEventStream(call.request.headers.get("accept") ?? "");
    const start = (isStream ? parameters["Last-Event-ID"] : undefined) ?? parameters.after;
    const after = start === undefined ? undefined : Number(start);
    if (isStream && parameters.limit !== undefined) throw limitOfStream;
    if (isStream) return service.feed.open(call, after);
    const limit = Number(parameters.limit ?? eventsDefault);
    const page = await service.events.read(caller, after, limit);
    const last = page.events.at(-1)?.seq;
    const hasMore = last !== undefined && last < page.lastEvent;
    const Link = linkToNext(`${service.basePath}/events`, { limit, after: last });
    const body = `[${page.events.map(renderEvent)}]`;
    return jsonReply(200, body, { ...variesByAccept, ...(hasMore && { Link }) });
  },
});

const limitOfStream = refuse({ parameter: "limit", detail: "has no meaning for a stream." });
