/** The whole battery of the client, in one list. */
import type { ClientCase } from "./client-case.ts";
import { hostileCases } from "./hostile-cases.ts";
import { manyCases } from "./many-cases.ts";
import { plainCases } from "./plain-cases.ts";
import { putCases } from "./put-cases.ts";
import { scriptedCases } from "./scripted-cases.ts";
import { troubleCases } from "./trouble-cases.ts";

export const clientCases: readonly ClientCase[] = [
  ...plainCases,
  ...manyCases,
  ...putCases,
  ...troubleCases,
  ...scriptedCases,
  ...hostileCases,
];
