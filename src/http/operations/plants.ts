/** Create, list, get, replace, change and delete a plant. */
import {
  contentFields,
  hasOneOf,
  type Plant,
  type PlantDraft,
  plantChangeSchema,
  plantDraftSchema,
  plantIdMax,
  plantIdMin,
  plantPatchSchema,
  plantSchema,
} from "../../domain/plant.ts";
import { andThen } from "../../shared/promises.ts";
import { type DescribeSchemas, refer } from "../json-schema.ts";
import { plantOperation, type RequestBody } from "../operation.ts";
import {
  entityTagHeader,
  ifMatch,
  ifNoneMatch,
  ifNoneMatchToWrite,
  inHeader,
  inPath,
  inQuery,
  integerText,
  keyText,
  limit,
  searchText,
  tagText,
  wordText,
} from "../parameters.ts";
import {
  entityHeaders,
  jsonReply,
  linkHeader,
  linkToNext,
  plantLocation,
  renderPlant,
  toFields,
} from "../reply.ts";
import { validateChange, validateObject } from "../validation.ts";

export const examplePlant = { name: "Monstera deliciosa", tag: "living room" };

export const schemas: DescribeSchemas = ({ fromValibot }) => ({
  PlantDraft: fromValibot(plantDraftSchema),
  Plant: {
    ...fromValibot(plantSchema),
    required: contentFields,
    description: "With its `id` if `include=id` was sent.",
  },
  PlantList: { type: "array", items: refer("schemas", "Plant") },
  PlantChange: { ...fromValibot(plantChangeSchema), minProperties: 1 },
  PlantPatch: { ...fromValibot(plantPatchSchema), minProperties: 1 },
});

const plantIdText = integerText(plantIdMin, plantIdMax);

const plantId = (example: number) =>
  inPath(plantIdText, "The plant's id: a decimal integer in its shortest form.", example);

const include = inQuery(wordText("id"), "`id`: plants in the response have their ids.", "id");

export const idempotencyKey = (charactersMax: number) =>
  inHeader(
    keyText(charactersMax),
    `1 to ${charactersMax} visible ASCII characters, bare or in double quotes.`,
    "6b1f7c9e-order-17",
  );

const plantBody = {
  bytesMax: 64 * 1024,
  parse: (text, _call, pathId) => validateObject(plantDraftSchema, text, { pathId }),
  schema: "PlantDraft",
} as const satisfies Omit<RequestBody<PlantDraft | undefined>, "example">;

const etag = { ETag: { ...entityTagHeader, description: "A hash of the plant's name and tag." } };

const locationHeader = {
  description: "The path of the plant, with the base path. The last segment is the id.",
  example: "/plants/7",
  pattern: "/plants/-?[0-9]+$",
  required: true,
};

export const createPlant = plantOperation({
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
  async run({ service, caller }, { body, parameters }) {
    const created = await service.plants.create(caller, body, parameters["Idempotency-Key"]);
    const Location = plantLocation(service.basePath, created.id);
    const headers: Record<string, string> = { Location, ...entityHeaders(created) };
    if (created.replayed) headers["Idempotency-Replayed"] = "true";
    return jsonReply(201, renderPlant(created, parameters.include), headers);
  },
});

export const listPlants = plantOperation({
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
        "accents don't matter. A word of nothing but accents, such as `´`, is passed over; a search " +
        "without any other word is a 400.",
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
  run({ service, caller }, { parameters }) {
    const { limit, after, tag, q, order, include } = parameters;
    const scan = service.plants.list(caller, { after, tag, order, search: q });
    const show = (plant: Plant) => toFields(plant, include);
    return andThen(service.lists.read(caller.garden, scan, limit, show), ({ body, next }) => {
      const headers = next && {
        Link: linkToNext(`${service.basePath}/plants`, { ...next, tag, q, order, include }),
      };
      return jsonReply(200, body, headers);
    });
  },
});

export const getPlant = plantOperation({
  name: "getPlant",
  method: "GET",
  path: "/plants/{id}",
  scope: "read",
  summary: "Get a plant",
  description: "The plant that `Location` names after a create.",
  parameters: {
    id: plantId(7),
    include,
    "If-Match": ifMatch,
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
  problems: ["not-found", "precondition-failed"],
  async run({ service, caller }, { parameters }) {
    const { id, include, "If-Match": ifMatch, "If-None-Match": known } = parameters;
    const plant = await service.plants.get(caller, id, ifMatch);
    const headers = entityHeaders(plant);
    if (known && hasOneOf(known, plant)) return { status: 304, headers };
    return jsonReply(200, renderPlant(plant, include), headers);
  },
});

export const putPlant = plantOperation({
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
    "If-None-Match": ifNoneMatchToWrite,
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
  async run({ service, caller }, { body, parameters }) {
    const { id, include, "If-Match": ifMatch, "If-None-Match": ifNoneMatch } = parameters;
    const plant = await service.plants.put(caller, id, body, { ifMatch, ifNoneMatch });
    const headers = entityHeaders(plant);
    const text = renderPlant(plant, include);
    if (!plant.isNew) return jsonReply(200, text, headers);
    return jsonReply(201, text, { ...headers, Location: plantLocation(service.basePath, id) });
  },
});

export const patchPlant = plantOperation({
  name: "patchPlant",
  method: "PATCH",
  path: "/plants/{id}",
  scope: "write",
  summary: "Change a plant",
  description:
    "A JSON Merge Patch (RFC 7396): the fields in the body change, the others stay, and " +
    '`"tag": null` removes the tag. Send a `name` or a `tag`. Responds once ' +
    "the change is on stable storage. Clients that change different fields at once all succeed.",
  parameters: {
    id: plantId(7),
    include,
    "If-Match": ifMatch,
    "If-None-Match": ifNoneMatchToWrite,
  },
  body: {
    bytesMax: plantBody.bytesMax,
    otherType: "application/merge-patch+json",
    parse: (text, _call, pathId) => validateChange(plantPatchSchema, text, { pathId }),
    schema: "PlantPatch",
    example: { tag: "hall" },
  },
  success: {
    description: "The plant as it is now.",
    headers: etag,
    schema: "Plant",
    example: { ...examplePlant, tag: "hall" },
  },
  problems: ["not-found"],
  async run({ service, caller }, { body, parameters }) {
    const { id, include, "If-Match": ifMatch, "If-None-Match": ifNoneMatch } = parameters;
    const plant = await service.plants.patch(caller, id, body, { ifMatch, ifNoneMatch });
    return jsonReply(200, renderPlant(plant, include), entityHeaders(plant));
  },
});

export const deletePlant = plantOperation({
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
    "If-None-Match": ifNoneMatchToWrite,
  },
  success: { status: 204, description: "The plant is deleted." },
  problems: ["not-found"],
  async run({ service, caller }, { parameters }) {
    const { id, "If-Match": ifMatch, "If-None-Match": ifNoneMatch } = parameters;
    await service.plants.delete(caller, id, { ifMatch, ifNoneMatch });
    return { status: 204 };
  },
});
