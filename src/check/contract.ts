/** The contract, by topic: every promise of the interface that a client can see. */
import type { Row } from "./row.ts";
import { createRows, deleteRows, idempotencyRows } from "./rows/create-and-delete.ts";
import { getRows, listRows, tagRows } from "./rows/list.ts";
import { manyRows } from "./rows/many.ts";
import { plantRows } from "./rows/plant.ts";
import { limitRows, requestRows } from "./rows/requests.ts";
import { browserRows, errorRows } from "./rows/responses.ts";
import { healthRows, openapiRows, surfaceRows } from "./rows/surface.ts";
import { meRows, tokenRows } from "./rows/tokens.ts";

export const contract: readonly Row[] = [
  ...surfaceRows,
  ...requestRows,
  ...plantRows,
  ...createRows,
  ...idempotencyRows,
  ...manyRows,
  ...listRows,
  ...tagRows,
  ...getRows,
  ...deleteRows,
  ...tokenRows,
  ...meRows,
  ...errorRows,
  ...browserRows,
  ...limitRows,
  ...healthRows,
  ...openapiRows,
];

export const topics: readonly string[] = [...new Set(contract.map(({ topic }) => topic))];
