/** The contents page: every operation of the service, what it takes, answers and runs. */
import { plantDraftSchema, plantFields, plantIdMax, plantIdMin } from "../domain/plant.ts";
import { type Operation, openOperation, plantOperation } from "./operation.ts";
import { integerText, keyText, namesText } from "./parameters.ts";
import { jsonAnswer, linkToNext, plantLocation, renderList, renderPlant } from "./response.ts";

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
    "Answers once the plant is on stable storage. With an `Idempotency-Key` the request can be " +
    "sent again safely: the key is remembered for 24 hours, and the first answer comes again.",
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
        description: "The plant's address, with the base path. Its last part is the id.",
        example: "/plants/7",
        required: true,
      },
      "Idempotency-Replayed": {
        description: "`true` when an earlier request with the same key had created the plant.",
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
    return jsonAnswer(201, renderPlant(created), headers);
  },
});

const listPlants = plantOperation({
  name: "listPlants",
  method: "GET",
  path: "/plants",
  scope: "read",
  summary: "List plants",
  description:
    "The plants of the garden that the token opens, by ascending id. Without `limit` all of them, " +
    "streamed. With it, a `Link` to the next page is there whenever the list was cut short.",
  parameters: {
    limit: {
      in: "query",
      schema: integerText(0n, BigInt(limitMax), {
        format: "int32",
        minimum: 0,
        maximum: limitMax,
      }),
      description: "The maximum number of results to return. All, if absent.",
      example: 20,
    },
    after: {
      in: "query",
      schema: plantIdText,
      description: "An id; the list starts behind it.",
      example: 7,
    },
    fields: {
      in: "query",
      schema: namesText(plantFields),
      description: "Which fields the items have, separated by commas. `name,tag`, if absent.",
      example: ["id", "name", "tag"],
    },
  },
  success: {
    status: 200,
    description: "The plants.",
    headers: {
      Link: {
        description: 'Where `limit` cut the list short: the next page, as `rel="next"`.',
        example: '</plants?limit=20&after=27>; rel="next"',
      },
    },
    contentType: "application/json",
    schema: "PlantList",
    examples: {
      plain: { summary: "As it comes", value: [examplePlant, { name: "Fern", tag: "" }] },
      withIds: { summary: "With fields=id,name", value: [{ id: 7, name: "Monstera deliciosa" }] },
    },
  },
  problems: [],
  isKept: true,
  async run({ plants, basePath }, { caller, parameters }) {
    const { after, fields } = parameters;
    const limit = parameters.limit === undefined ? undefined : Number(parameters.limit);
    const listing = await plants.list(caller, { limit, after });
    const headers = listing.next && { Link: linkToNext(basePath, listing.next, fields) };
    return jsonAnswer(200, renderList(listing, fields ?? ["name", "tag"]), headers);
  },
});

const deletePlant = plantOperation({
  name: "deletePlant",
  method: "DELETE",
  path: "/plants/{id}",
  scope: "write",
  summary: "Delete a plant",
  description: "Answers once the deletion is on stable storage.",
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
  run: async ({ renderOpenApi }) => jsonAnswer(200, await renderOpenApi()),
});

const checkHealth = openOperation({
  name: "checkHealth",
  path: "/healthz",
  summary: "Alive",
  description: "Answers as long as the process does.",
  success: {
    status: 200,
    description: "The process is alive.",
    contentType: "text/plain; charset=utf-8",
    schema: "Text",
    examples: { alive: { value: "ok\n" } },
  },
  run: async () => textAnswer("ok\n"),
});

const checkReadiness = openOperation({
  name: "checkReadiness",
  path: "/readyz",
  summary: "Ready",
  description: "Answers 200 while the storage answers, and 503 otherwise.",
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
    return textAnswer("ready\n");
  },
});

const readMetrics = openOperation({
  name: "readMetrics",
  path: "/metrics",
  summary: "Metrics",
  description: "Counters, gauges and histograms in the text format of Prometheus.",
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

function textAnswer(body: string) {
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
