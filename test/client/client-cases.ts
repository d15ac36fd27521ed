/** The client's cases in two lists: for Bun, and those that other runtimes could break. */
import type { ClientCase } from "./client-case.ts";
import { hostileCases } from "./hostile-cases.ts";
import { manyCases } from "./many-cases.ts";
import { plainCases } from "./plain-cases.ts";
import { putCases } from "./put-cases.ts";
import { scriptedCases } from "./scripted-cases.ts";
import { troubleCases } from "./trouble-cases.ts";

/** Connections, timers, headers and streams are the runtime's. */
export const nodeCases: readonly ClientCase[] = [...plainCases, ...troubleCases, ...hostileCases];

export const clientCases: readonly ClientCase[] = [
  ...nodeCases,
  ...manyCases,
  ...putCases,
  ...scriptedCases,
];
