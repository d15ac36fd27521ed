/** The contents page: every operation, its parameters, its responses, and what it runs. */
import { plantDraftSchema, plantFields, plantIdMax, plantIdMin } from "../domain/plant.ts";
import { countedIdMax } from "../domain/storage.ts";
import { type Operation, openOperation, plantOperation } from "./operation.ts";
import { integerText, keyText, namesText } from "./parameters.ts";
import { jsonReply, linkToNext, plantLocation, renderList, renderPlant } from "./response.ts";

const plantIdText = integerText(plantIdMin, plantIdMax, { format: "int64" });
const limitMax = 2_147_483_647;
const examplePlant = { name: "Monstera deliciosa", tag: "living room" };

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
    "Idempotency-Key": {
      in: "header",
      schema: keyText,
      description: "1 to 255 visible ASCII characters, bare or in double quotes.",
      example: "6b1f7c9e-order-17",
    },
  },
  body: {
    schema: plantDraftSchema,
    schemaName: "PlantDraft",
    examples: {
      assigned: { summary: "The service assigns the id", value: examplePlant },
      chosen: { summary: "The client chooses the id", value: { ...examplePlant, id: 7 } },
    },
  },
  success: {
    status: 201,
    description: "The plant is stored.",
    headers: {
      Location: {
        description: "The path of the plant, with the base path. The last segment is the id.",
        example: "/plants/7",
        required: true,
      },
      "Idempotency-Replayed": {
        description: "`true` if an earlier request with the same key created the plant.",
        example: "true",
      },
    },
    contentType: "application/json",
    schema: "Plant",
    examples: { created: { value: examplePlant } },
  },
  problems: [
    "conflict",
    "too-large",
    "unsupported-media-type",
    "idempotency-mismatch",
    "storage-full",
  ],
  async run({ plants, basePath }, { caller, body, parameters }) {
    const created = await plants.create(caller, body, parameters["Idempotency-Key"]);
    const headers: Record<string, string> = { Location: plantLocation(basePath, created.id) };
    if (created.replayed) headers["Idempotency-Replayed"] = "true";
    return jsonReply(201, renderPlant(created), headers);
  },
});

const listPlants = plantOperation({
  name: "listPlants",
  method: "GET",
  path: "/plants",
  scope: "read",
  summary: "List plants",
  description:
    "The plants of the token's garden, by ascending id. Without `limit`, all of them are " +
    "streamed. If `limit` cuts the list short, `Link` has the next page.",
  parameters: {
    limit: {
      in: "query",
      schema: integerText(0n, BigInt(limitMax), {
        format: "int32",
        minimum: 0,
        maximum: limitMax,
      }),
      description: "The maximum number of plants to return. Default: all.",
      example: 20,
    },
    after: {
      in: "query",
      schema: plantIdText,
      description: "An id. The list starts after it.",
      example: 7,
    },
    fields: {
      in: "query",
      schema: namesText(plantFields),
      description: "The fields of each item, separated by commas. Default: `name,tag`.",
      example: "id,name,tag",
    },
  },
  success: {
    status: 200,
    description: "The plants.",
    headers: {
      Link: {
        description: 'The next page (`rel="next"`), if `limit` cut the list short.',
        example: '</plants?limit=20&after=27>; rel="next"',
      },
    },
    contentType: "application/json",
    schema: "PlantList",
    examples: {
      plain: { summary: "Default fields", value: [examplePlant, { name: "Fern", tag: "" }] },
      withIds: { summary: "With fields=id,name", value: [{ id: 7, name: "Monstera deliciosa" }] },
    },
  },
  problems: [],
  isCacheable: true,
  async run({ plants, basePath }, { caller, parameters }) {
    const { after, fields } = parameters;
    const limit = parameters.limit === undefined ? undefined : Number(parameters.limit);
    const listing = await plants.list(caller, { limit, after });
    const headers = listing.next && { Link: linkToNext(basePath, listing.next, fields) };
    const reply = jsonReply(200, renderList(listing, fields ?? ["name", "tag"]), headers);
    const lastId = listing.next?.after;
    return { ...reply, isBeforeAppends: lastId !== undefined && lastId <= countedIdMax };
  },
});

const deletePlant = plantOperation({
  name: "deletePlant",
  method: "DELETE",
  path: "/plants/{id}",
  scope: "write",
  summary: "Delete a plant",
  description: "Responds once the deletion is on stable storage.",
  parameters: {
    id: {
      in: "path",
      schema: plantIdText,
      description: "The plant's id: a decimal integer in its shortest form.",
      // No example: the API reference would fill it in, and one click would delete that plant.
    },
  },
  success: { status: 204, description: "The plant is gone." },
  problems: ["not-found", "storage-full"],
  async run({ plants }, { caller, parameters }) {
    await plants.delete(caller, parameters.id);
    return { status: 204 };
  },
});

const readOpenApi = openOperation({
  name: "readOpenApi",
  path: "/openapi.json",
  summary: "This document",
  description: "The OpenAPI description of the service.",
  success: {
    status: 200,
    description: "An OpenAPI 3.1 document.",
    contentType: "application/json",
    schema: "Document",
  },
  problems: ["unavailable"],
  run: async ({ renderOpenApi }) => jsonReply(200, await renderOpenApi()),
});

const checkHealth = openOperation({
  name: "checkHealth",
  path: "/healthz",
  summary: "Alive",
  description: "Responds while the process is alive.",
  success: {
    status: 200,
    description: "The process is alive.",
    contentType: "text/plain; charset=utf-8",
    schema: "Text",
    examples: { alive: { value: "ok\n" } },
  },
  run: async () => textReply("ok\n"),
});

const checkReadiness = openOperation({
  name: "checkReadiness",
  path: "/readyz",
  summary: "Ready",
  description: "200 while the storage can be reached, otherwise 503.",
  success: {
    status: 200,
    description: "Requests can be served.",
    contentType: "text/plain; charset=utf-8",
    schema: "Text",
    examples: { ready: { value: "ready\n" } },
  },
  problems: ["unavailable"],
  async run({ checkStorage }) {
    await checkStorage();
    return textReply("ready\n");
  },
});

const readMetrics = openOperation({
  name: "readMetrics",
  path: "/metrics",
  summary: "Metrics",
  description: "Counters, gauges and histograms in the Prometheus text format.",
  success: {
    status: 200,
    description: "The metrics.",
    contentType: "text/plain; version=0.0.4; charset=utf-8",
    schema: "Text",
    examples: { some: { value: "plantstore_commits_total 42\n" } },
  },
  run: async ({ renderMetrics }) => ({
    status: 200,
    contentType: "text/plain; version=0.0.4; charset=utf-8",
    body: await renderMetrics(),
  }),
});

function textReply(body: string) {
  return { status: 200, contentType: "text/plain; charset=utf-8", body };
}

export const operations: readonly Operation[] = [
  createPlant,
  listPlants,
  deletePlant,
  readOpenApi,
  checkHealth,
  checkReadiness,
  readMetrics,
];
