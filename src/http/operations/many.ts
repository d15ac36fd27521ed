/** Many plants in one request: created, changed or deleted. */
import {
  bulkBytesMax,
  bulkPlantsMax,
  idsBytesMax,
  readBulk,
  readDeletion,
  readUpdate,
} from "../bulk-body.ts";
import { BulkResults, renderChanged } from "../bulk-results.ts";
import {
  closed,
  type DescribeSchemas,
  integer,
  type Json,
  openList,
  refer,
  text,
} from "../json-schema.ts";
import { plantOperation } from "../operation.ts";
import { jsonReply } from "../reply.ts";
import { plantCharactersMax } from "../validation.ts";
import { idempotencyKey } from "./plants.ts";

const bulkBounds = { minItems: 1, maxItems: bulkPlantsMax };

const plantId = integer("int64");

export const schemas: DescribeSchemas = () => ({
  PlantDraftList: { type: "array", items: refer("schemas", "PlantDraft"), ...bulkBounds },
  ResultList: { type: "array", items: refer("schemas", "Result"), ...bulkBounds },
  Result: {
    ...closed(
      { status: { type: "integer", format: "int32", ...openList(201, 409, 422, 507) } },
      {
        id: integer("int64", "With status 201."),
        replayed: {
          type: "boolean",
          description: "`true` if an earlier request with the same key created the plant.",
        },
        code: { type: "string", ...openList("conflict", "idempotency-mismatch", "storage-full") },
        detail: text("What to fix. Safe to show."),
      },
    ),
    description: "What became of one plant of a bulk: its id, or why it was refused.",
  },
  PlantUpdate: closed({
    ids: { type: "array", items: plantId, ...bulkBounds },
    set: refer("schemas", "PlantChange"),
  }),
  Updates: describeChanged("updated"),
  PlantIds: closed({ ids: { type: "array", items: plantId, ...bulkBounds } }),
  Deletions: describeChanged("deleted"),
});

function describeChanged(done: "deleted" | "updated"): Json {
  return closed({
    [done]: integer("int32", `How many plants were ${done}.`, {
      minimum: 0,
      maximum: bulkPlantsMax,
    }),
    missing: {
      type: "array",
      items: plantId,
      maxItems: bulkPlantsMax,
      description: "The ids without a plant, in the order in which they were sent.",
    },
  });
}

export const createPlants = plantOperation({
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
  async run({ service, caller }, { body, parameters }) {
    const results = new BulkResults(body.length);
    await service.plants.createMany(caller, body, parameters["Idempotency-Key"], results.note);
    return jsonReply(200, results.render());
  },
});

// The API reference fills the examples in, so their ids are ones that the service never assigns.

export const deletePlants = plantOperation({
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
    example: { ids: [9_000_000_000_000_000, 9_000_000_000_000_001] },
  },
  success: {
    description: "The plants are gone.",
    schema: "Deletions",
    example: { deleted: 1, missing: [9_000_000_000_000_001] },
  },
  async run({ service, caller }, { body: ids }) {
    const missing = await service.plants.deleteMany(caller, ids);
    return jsonReply(200, renderChanged("deleted", ids.length - missing.length, missing));
  },
});

export const updatePlants = plantOperation({
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
    example: { ids: [9_000_000_000_000_000, 9_000_000_000_000_001], set: { tag: "hall" } },
  },
  success: {
    description: "The plants are as `set` says. Plants that were like that already count, too.",
    schema: "Updates",
    example: { updated: 1, missing: [9_000_000_000_000_001] },
  },
  async run({ service, caller }, { body: { ids, set } }) {
    const missing = await service.plants.patchMany(caller, ids, set);
    return jsonReply(200, renderChanged("updated", ids.length - missing.length, missing));
  },
});
