/** The contents page: every rule of the interface that can be seen from outside, by topic. */
import type { Rule } from "../rule.ts";
import { browserRules } from "./browser-rules.ts";
import { createRules } from "./create-rules.ts";
import { deleteRules } from "./delete-rules.ts";
import { errorRules } from "./error-rules.ts";
import { healthRules } from "./health-rules.ts";
import { idempotencyRules } from "./idempotency-rules.ts";
import { limitRules } from "./limit-rules.ts";
import { listRules } from "./list-rules.ts";
import { openapiRules } from "./openapi-rules.ts";
import { plantRules } from "./plant-rules.ts";
import { requestRules } from "./request-rules.ts";
import { surfaceRules } from "./surface-rules.ts";
import { tokenRules } from "./token-rules.ts";

export const allRules: readonly Rule[] = [
  ...surfaceRules,
  ...requestRules,
  ...plantRules,
  ...createRules,
  ...idempotencyRules,
  ...listRules,
  ...deleteRules,
  ...tokenRules,
  ...errorRules,
  ...browserRules,
  ...limitRules,
  ...healthRules,
  ...openapiRules,
];
