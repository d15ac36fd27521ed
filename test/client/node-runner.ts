/** Runs the cases that other runtimes could break under Node; prints why each failed, if it did. */
import { readFileSync } from "node:fs";
import { runCase } from "./client-case.ts";
import { eventCases } from "./event-cases.ts";
import { plainCases } from "./plain-cases.ts";
import { troubleCases } from "./trouble-cases.ts";

const { url, tokens } = JSON.parse(readFileSync(0, "utf8")) as { url: string; tokens: string[] };

// Connections, timers, headers and streams are the runtime's.
const cases = Object.entries({ ...plainCases, ...troubleCases, ...eventCases });
await Promise.all(
  cases.map(async ([name, run], index) => {
    const running = runCase(run, { url, token: tokens[index] ?? "" }).then(() => undefined);
    const faults = await running.catch((error) => String(error.stack ?? error));
    process.stdout.write(`${JSON.stringify({ name, faults })}\n`);
  }),
);
process.exit(0);
