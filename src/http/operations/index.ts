/** All operations of the service. Each page has their parameters, schemas, examples and code. */
import type { DescribeSchemas } from "../json-schema.ts";
import type { DocumentedOperation } from "../operation.ts";
import { schemas as eventSchemas, listEvents } from "./events.ts";
import { createPlants, deletePlants, schemas as manySchemas, updatePlants } from "./many.ts";
import { getMe, schemas as meSchemas } from "./me.ts";
import {
  createPlant,
  deletePlant,
  getPlant,
  listPlants,
  patchPlant,
  schemas as plantSchemas,
  putPlant,
} from "./plants.ts";
import { listTags, schemas as tagSchemas } from "./tags.ts";

export { redirectToConsole, webPages } from "./pages.ts";
export { serviceOperations } from "./service.ts";

interface OperationGroup {
  readonly name: string;
  readonly description: string;
  readonly operations: readonly DocumentedOperation[];
}

/** What needs a token, as the OpenAPI document groups it. */
export const operationGroups: readonly OperationGroup[] = [
  {
    name: "plants",
    description: "The plants of the token's garden, one by one or as a list.",
    operations: [createPlant, listPlants, getPlant, putPlant, patchPlant, deletePlant],
  },
  {
    name: "bulk",
    description: "Up to 10,000 plants in one request.",
    operations: [createPlants, updatePlants, deletePlants],
  },
  { name: "tags", description: "The tags of the plants.", operations: [listTags] },
  {
    name: "events",
    description: "What happened in the garden, as a list or live.",
    operations: [listEvents],
  },
  { name: "token", description: "What the token stands for.", operations: [getMe] },
];

export const plantOperations = operationGroups.flatMap(({ operations }) => operations);

export const describeSchemas: DescribeSchemas = (describe) => ({
  ...plantSchemas(describe),
  ...manySchemas(describe),
  ...tagSchemas(describe),
  ...eventSchemas(describe),
  ...meSchemas(describe),
});
