/** All operations but the web pages: each with its parameters, its responses, and what it runs. */
import * as v from "valibot";
import { refuse } from "../domain/errors.ts";
import {
  assignedIdMax,
  type Plant,
  type PlantDraft,
  plantDraftSchema,
  plantIdMax,
  plantIdMin,
} from "../domain/plant.ts";
import {
  BulkResults,
  bulkBytesMax,
  bulkPlantsMax,
  idsBytesMax,
  plantCharactersMax,
  readBulk,
  readDeletion,
  readUpdate,
  renderChanged,
} from "./bulk.ts";
import {
  type DocumentedOperation,
  type Operation,
  plantOperation,
  type RequestBody,
} from "./operation.ts";
import {
  entityTagHeader,
  ifMatch,
  ifNoneMatch,
  inHeader,
  inPath,
  inQuery,
  integerText,
  keyText,
  searchText,
  tagText,
  wordText,
} from "./parameters.ts";
import { validateChange, validateObject } from "./request.ts";
import {
  entityHeaders,
  jsonReply,
  linkToNext,
  matchesTag,
  plantLocation,
  renderEvent,
  renderPlant,
  textReply,
  toFields,
} from "./response.ts";

const plantIdText = integerText(plantIdMin, plantIdMax);
const examplePlant = { name: "Monstera deliciosa", tag: "living room" };

const exampleEvent = {
  seq: 9121,
  type: "plant.created",
  at: "2026-11-15T22:00:00.000Z",
  user: "ada",
  plant: { id: 7, ...examplePlant },
};

const include = inQuery(wordText("id"), "`id`: plants in the response have their ids.", "id");

const limit = inQuery(
  v.pipe(integerText(0n, 2_147_483_647n), v.transform(Number)),
  "The maximum number of items to return. Default: all. Up to 1,000 are a page.",
  20,
);

const linkHeader = (example: string) => ({
  Link: {
    description: 'The next page (`rel="next"`), if a `limit` of up to 1,000 cut the list short.',
    example,
  },
});

const plantBody = {
  bytesMax: 64 * 1024,
  parse: (text, errors, { pathId }) => validateObject(plantDraftSchema, text, errors, { pathId }),
  schema: "PlantDraft",
} as const satisfies Omit<RequestBody<PlantDraft | undefined>, "example">;

const idempotencyKey = (charactersMax: number) =>
  inHeader(
    keyText(charactersMax),
    `1 to ${charactersMax} visible ASCII characters, bare or in double quotes.`,
    "6b1f7c9e-order-17",
  );

const etag = { ETag: { ...entityTagHeader, description: "A hash of the plant's name and tag." } };

const locationHeader = {
  description: "The path of the plant, with the base path. The last segment is the id.",
  example: "/plants/7",
  pattern: "/plants/-?[0-9]+$",
  required: true,
};

const plantId = (example: number) =>
  inPath(plantIdText, "The plant's id: a decimal integer in its shortest form.", example);

const createPlant = plantOperation({
  name: "createPlant",
  method: "POST",
  path: "/plants",
  scope: "write",
  summary: "Create a plant",
  description:
    "Responds once the plant is on stable storage. With an `Idempotency-Key` the request can be " +
    "repeated safely: for 24 hours, the same key returns the first response again.",
  parameters: {
    include,
    "Idempotency-Key": idempotencyKey(255),
  },
  body: {
    ...plantBody,
    example: examplePlant,
  },
  success: {
    status: 201,
    description: "The plant is stored.",
    headers: {
      Location: locationHeader,
      ...etag,
      "Idempotency-Replayed": {
        description: "`true` if an earlier request with the same key created the plant.",
        example: "true",
      },
    },
    schema: "Plant",
    example: examplePlant,
  },
  problems: ["conflict", "idempotency-mismatch"],
  async run({ plants, basePath }, { caller, body, parameters }) {
    const created = await plants.create(caller, body, parameters["Idempotency-Key"]);
    const Location = plantLocation(basePath, created.id);
    const headers: Record<string, string> = { Location, ...entityHeaders(created) };
    if (created.replayed) headers["Idempotency-Replayed"] = "true";
    return jsonReply(201, renderPlant(created, parameters.include), headers);
  },
});

const createPlants = plantOperation({
  name: "createPlants",
  method: "POST",
  path: "/plants/bulk",
  scope: "write",
  summary: "Create many plants",
  description:
    `An array of 1 to ${bulkPlantsMax} plants, at most 1 MiB, each of them at most ` +
    `${plantCharactersMax} characters of JSON. If any of them is invalid, nothing is stored. ` +
    "Otherwise the response has a result for each plant, in the same order: one that is refused " +
    "stops no other. With an `Idempotency-Key`, the whole request can be repeated safely: each " +
    "plant is remembered under the key and its place in the array.",
  parameters: { "Idempotency-Key": idempotencyKey(240) },
  body: {
    bytesMax: bulkBytesMax,
    parse: readBulk,
    schema: "PlantDraftList",
    example: [{ name: "Fern" }, { name: "Ivy", tag: "hall", id: 7 }],
  },
  success: {
    description: "A result for each plant, once every plant with status 201 is on stable storage.",
    schema: "ResultList",
    example: [
      { status: 201, id: 8 },
      { status: 409, code: "conflict", detail: "A plant with the id 7 already exists." },
    ],
  },
  async run({ plants }, { caller, body, parameters }) {
    const results = new BulkResults(body.length);
    await plants.createMany(caller, body, parameters["Idempotency-Key"], results.note);
    return jsonReply(200, results.render());
  },
});

const deletePlants = plantOperation({
  name: "deletePlants",
  method: "POST",
  path: "/plants/bulk-delete",
  scope: "write",
  summary: "Delete many plants",
  description:
    `Up to ${bulkPlantsMax} ids, at most 256 KiB. Responds once the deletions are on stable ` +
    "storage, and lists the ids without a plant. If the storage fails midway, some of the plants " +
    "may be deleted; sending the request again is safe.",
  parameters: {},
  body: {
    bytesMax: idsBytesMax,
    parse: readDeletion,
    schema: "PlantIds",
    // The API reference fills the example in, so these are ids that the service never assigns.
    example: { ids: [9_000_000_000_000_000, 9_000_000_000_000_001] },
  },
  success: {
    description: "The plants are gone.",
    schema: "Deletions",
    example: { deleted: 1, missing: [9_000_000_000_000_001] },
  },
  async run({ plants }, { caller, body: ids }) {
    const missing = await plants.deleteMany(caller, ids);
    return jsonReply(200, renderChanged("deleted", ids.length - missing.length, missing));
  },
});

const updatePlants = plantOperation({
  name: "updatePlants",
  method: "POST",
  path: "/plants/bulk-update",
  scope: "write",
  summary: "Change many plants",
  description:
    `Sets the same fields of up to ${bulkPlantsMax} plants, at most 256 KiB, with up to ` +
    `${plantCharactersMax} characters of JSON in \`set\`. Responds once the changes are on stable ` +
    "storage, and lists the ids without a plant. If the storage fails midway, some of the plants " +
    "may be changed; sending the request again is safe.",
  parameters: {},
  body: {
    bytesMax: idsBytesMax,
    parse: readUpdate,
    schema: "PlantUpdate",
    // As for deletions.
    example: { ids: [9_000_000_000_000_000, 9_000_000_000_000_001], set: { tag: "hall" } },
  },
  success: {
    description: "The plants are as `set` says. Plants that were like that already count, too.",
    schema: "Updates",
    example: { updated: 1, missing: [9_000_000_000_000_001] },
  },
  async run({ plants }, { caller, body: { ids, set } }) {
    const missing = await plants.patchMany(caller, ids, set);
    return jsonReply(200, renderChanged("updated", ids.length - missing.length, missing));
  },
});

const listTags = plantOperation({
  name: "listTags",
  method: "GET",
  path: "/tags",
  scope: "read",
  summary: "Count plants by tag",
  description:
    "The tags of the garden's plants in code point order, each with the number of its plants. " +
    "Plants without a tag are counted under the empty one. With a `limit` of up to 1,000, `Link` has " +
    "the next page. Otherwise the tags are streamed.",
  parameters: {
    limit,
    after: inQuery(tagText, "A tag. The list starts after it.", "hall"),
  },
  success: {
    description: "The tags.",
    headers: linkHeader('</tags?limit=20&after=shade>; rel="next"'),
    schema: "TagCountList",
    example: [
      { tag: "", plants: 12 },
      { tag: "shade", plants: 1668 },
    ],
  },
  isCacheable: true,
  async run({ plants, lists, basePath }, { caller, parameters }) {
    const { limit, after } = parameters;
    const scan = plants.tags(caller, after);
    const { body, next } = await lists.read(caller.garden, scan, limit, (tag) => tag);
    return jsonReply(200, body, next && { Link: linkToNext(`${basePath}/tags`, { ...next }) });
  },
});

const listPlants = plantOperation({
  name: "listPlants",
  method: "GET",
  path: "/plants",
  scope: "read",
  summary: "List plants",
  description:
    "The plants of the token's garden, by id. A `limit` of up to 1,000 returns a page, read at one " +
    "moment unless it is a search; if it cuts the list short, `Link` has the next page. Without `limit`, or with a higher " +
    "one, the plants are streamed, without a `Link`. A page of a search ends after looking at 20,000 " +
    "plants, so it may have fewer plants than `limit`, even none; `Link` goes on.",
  parameters: {
    limit,
    after: inQuery(plantIdText, "An id. The list starts after it.", 7),
    tag: inQuery(
      tagText,
      "Only plants with exactly this tag; empty: only plants without a tag.",
      "living room",
    ),
    q: inQuery(
      searchText,
      "A search: only plants that contain each of its words in their name or tag. Case and " +
        "accents don't matter.",
      "monstera",
    ),
    order: inQuery(
      wordText("asc", "desc"),
      "By ascending id (the default), or by descending id: the newest first.",
      "desc",
    ),
    include,
  },
  success: {
    description: "The plants.",
    headers: linkHeader('</plants?limit=20&after=27>; rel="next"'),
    schema: "PlantList",
    example: [examplePlant, { name: "Fern", tag: "" }],
  },
  isCacheable: true,
  async run({ plants, lists, basePath }, { caller, parameters }) {
    const { limit, after, tag, q, order, include } = parameters;
    const scan = plants.list(caller, { after, tag, order, search: q });
    const show = (plant: Plant) => toFields(plant, include);
    const { body, next } = await lists.read(caller.garden, scan, limit, show);
    const headers = next && {
      Link: linkToNext(`${basePath}/plants`, { ...next, tag, q, order, include }),
    };
    // In descending order, new plants come first.
    const isBeforeAppends =
      order !== "desc" && next?.after !== undefined && next.after <= assignedIdMax;
    return { ...jsonReply(200, body, headers), isBeforeAppends };
  },
});

const getPlant = plantOperation({
  name: "getPlant",
  method: "GET",
  path: "/plants/{id}",
  scope: "read",
  summary: "Get a plant",
  description: "The plant that `Location` names after a create.",
  parameters: {
    id: plantId(7),
    include,
    "If-None-Match": ifNoneMatch,
  },
  success: {
    description: "The plant.",
    headers: etag,
    schema: "Plant",
    example: examplePlant,
  },
  otherSuccess: {
    status: 304,
    description: "The plant is as `If-None-Match` knows it.",
    headers: etag,
  },
  problems: ["not-found"],
  async run({ plants }, { caller, parameters }) {
    const plant = await plants.get(caller, parameters.id);
    const headers = entityHeaders(plant);
    const known = parameters["If-None-Match"];
    if (known && matchesTag(known, headers.ETag)) return { status: 304, headers };
    return jsonReply(200, renderPlant(plant, parameters.include), headers);
  },
});

const putPlant = plantOperation({
  name: "putPlant",
  method: "PUT",
  path: "/plants/{id}",
  scope: "write",
  summary: "Replace or create a plant",
  description:
    "The plant with this id becomes what the body says; without a `tag`, it has none. Responds once " +
    "the plant is on stable storage. To change a plant and not overwrite somebody else's change, " +
    "send the `ETag` that you read as `If-Match`.",
  parameters: {
    id: plantId(7),
    include,
    "If-Match": ifMatch,
    "If-None-Match": inHeader(wordText("*"), "`*`: only if there is no such plant.", "*"),
  },
  refusedHeaders: ["Content-Range"],
  body: {
    ...plantBody,
    example: examplePlant,
  },
  success: {
    description: "The plant is replaced.",
    headers: etag,
    schema: "Plant",
    example: examplePlant,
  },
  otherSuccess: {
    status: 201,
    description: "The plant is new.",
    headers: { Location: locationHeader, ...etag },
    schema: "Plant",
    example: examplePlant,
  },
  problems: ["precondition-failed"],
  async run({ plants, basePath }, { caller, body, parameters }) {
    const { id, include, "If-Match": ifMatch, "If-None-Match": ifNoneMatch } = parameters;
    const plant = await plants.put(caller, id, body, { ifMatch, ifNoneMatch });
    const headers = entityHeaders(plant);
    const text = renderPlant(plant, include);
    if (!plant.isNew) return jsonReply(200, text, headers);
    return jsonReply(201, text, { ...headers, Location: plantLocation(basePath, id) });
  },
});

const patchPlant = plantOperation({
  name: "patchPlant",
  method: "PATCH",
  path: "/plants/{id}",
  scope: "write",
  summary: "Change a plant",
  description:
    "A JSON Merge Patch (RFC 7396): the fields in the body change, the others stay. Responds once " +
    "the change is on stable storage. Clients that change different fields at once all succeed.",
  parameters: { id: plantId(7), include, "If-Match": ifMatch },
  refusedHeaders: ["If-None-Match"],
  body: {
    bytesMax: plantBody.bytesMax,
    otherType: "application/merge-patch+json",
    parse: (text, errors) => validateChange(text, errors),
    schema: "PlantChange",
    example: { tag: "hall" },
  },
  success: {
    description: "The plant as it is now.",
    headers: etag,
    schema: "Plant",
    example: { ...examplePlant, tag: "hall" },
  },
  problems: ["not-found", "precondition-failed"],
  async run({ plants }, { caller, body, parameters }) {
    const { id, include, "If-Match": ifMatch } = parameters;
    const plant = await plants.patch(caller, id, body, { ifMatch });
    return jsonReply(200, renderPlant(plant, include), entityHeaders(plant));
  },
});

const deletePlant = plantOperation({
  name: "deletePlant",
  method: "DELETE",
  path: "/plants/{id}",
  scope: "write",
  summary: "Delete a plant",
  description: "Responds once the deletion is on stable storage.",
  // The API reference fills the example in, so it is an id that the service never assigns.
  parameters: {
    id: plantId(9_000_000_000_000_000),
    "If-Match": ifMatch,
  },
  refusedHeaders: ["If-None-Match"],
  success: { status: 204, description: "The plant is deleted." },
  problems: ["not-found", "precondition-failed"],
  async run({ plants }, { caller, parameters }) {
    await plants.delete(caller, parameters.id, { ifMatch: parameters["If-Match"] });
    return { status: 204 };
  },
});

const seqText = integerText(0n, BigInt(Number.MAX_SAFE_INTEGER));
const eventsMax = 1_000n;
const eventsDefault = 100;

const listEvents = plantOperation({
  name: "listEvents",
  method: "GET",
  path: "/events",
  scope: "read",
  summary: "List events",
  description:
    "What happened in the token's garden, in order. If `Link` has a next page, there is more; a " +
    "page may have fewer events than `limit`. For a copy of the garden that stays current, read " +
    "`lastEvent` from `/me`, list the plants, then read the events after it.\n\n" +
    "With `Accept: text/event-stream`, the response is a stream of server-sent events: first those " +
    "after `Last-Event-ID` or `after`, if sent, then each one as it happens. The `data` of each is " +
    "the same as in the list.",
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
    example: [exampleEvent],
  },
  problems: ["not-found", "gone"],
  async run({ events, openStream, basePath }, { caller, token, request, parameters }) {
    const isStream = acceptsStream.test(request.headers.get("accept") ?? "");
    const start = (isStream ? parameters["Last-Event-ID"] : undefined) ?? parameters.after;
    const after = start === undefined ? undefined : Number(start);
    if (isStream && parameters.limit !== undefined) throw limitOfStream;
    if (isStream) return openStream(request, caller, token, after);
    const limit = Number(parameters.limit ?? eventsDefault);
    const page = await events.read(caller, after, limit);
    const last = page.events.at(-1)?.seq;
    const hasMore = last !== undefined && last < page.lastEvent;
    const Link = linkToNext(`${basePath}/events`, { limit, after: last });
    return jsonReply(200, `[${page.events.map(renderEvent)}]`, hasMore ? { Link } : undefined);
  },
});

const acceptsStream = /^\s*text\/event-stream\b/i;
const limitOfStream = refuse({ parameter: "limit", detail: "has no meaning for a stream." });

const getMe = plantOperation({
  name: "getMe",
  method: "GET",
  path: "/me",
  scope: "read",
  summary: "Who am I",
  description: "What the token stands for.",
  parameters: {},
  success: {
    description:
      "The token's user, garden, scope and expiry, how many plants the garden has, and the number " +
      "of its last event.",
    schema: "Me",
    example: { user: "ada", garden: "home", scope: "write", plants: 4821, lastEvent: 9120 },
  },
  async run(context, { caller }) {
    const { user, garden, scope, expiresAtMs } = caller;
    const [plants, lastEvent] = await Promise.all([
      context.plants.count(caller),
      context.events.last(caller),
    ]);
    const expiresAt = expiresAtMs === undefined ? undefined : new Date(expiresAtMs).toISOString();
    return jsonReply(200, JSON.stringify({ user, garden, scope, plants, lastEvent, expiresAt }));
  },
});

export const operations: readonly DocumentedOperation[] = [
  createPlant,
  createPlants,
  updatePlants,
  deletePlants,
  listPlants,
  getPlant,
  putPlant,
  patchPlant,
  deletePlant,
  listTags,
  listEvents,
  getMe,
];

const prometheusText = "text/plain; version=0.0.4; charset=utf-8";

/** About the service itself. They need no token. */
export const serviceOperations: readonly Operation[] = [
  {
    name: "readOpenApi",
    method: "GET",
    path: "/openapi.json",
    run: async ({ renderOpenApi }) =>
      jsonReply(200, await renderOpenApi(), { "Cache-Control": "no-cache" }),
  },
  {
    name: "checkHealth",
    method: "GET",
    path: "/healthz",
    isProbe: true,
    run: async () => textReply("ok\n"),
  },
  {
    name: "checkReadiness",
    method: "GET",
    path: "/readyz",
    isProbe: true,
    async run({ checkStorage }) {
      await checkStorage();
      return textReply("ready\n");
    },
  },
  {
    name: "readMetrics",
    method: "GET",
    path: "/metrics",
    isProbe: true,
    run: async ({ renderMetrics }) => textReply(await renderMetrics(), prometheusText),
  },
];
