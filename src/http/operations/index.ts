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

/** What needs a token. The OpenAPI document describes it. */
export const plantOperations: readonly DocumentedOperation[] = [
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

export const describeSchemas: DescribeSchemas = (describe) => ({
  ...plantSchemas(describe),
  ...manySchemas(describe),
  ...tagSchemas(describe),
  ...eventSchemas(describe),
  ...meSchemas(describe),
});
