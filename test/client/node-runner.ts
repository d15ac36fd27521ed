/** Runs the cases that other runtimes could break under Node; prints why each failed, if it did. */
import { readFileSync } from "node:fs";
import { runCase } from "./client-case.ts";
import { eventCases } from "./event-cases.ts";
import { plainCases } from "./plain-cases.ts";
import { troubleCases } from "./trouble-cases.ts";

const { url, tokens } = JSON.parse(readFileSync(0, "utf8")) as { url: string; tokens: string[] };

/** Below the time of the test that runs all of them, so that it says which one hangs. */
const caseMs = 100_000;

// Connections, timers, headers and streams are the runtime's.
const cases = Object.entries({ ...plainCases, ...troubleCases, ...eventCases });
await Promise.all(
  cases.map(async ([name, run], index) => {
    const hung = new Promise<never>((_, reject) => {
      setTimeout(() => reject(new Error(`It took more than ${caseMs} ms.`)), caseMs).unref();
    });
    const faults = await Promise.race([
      runCase(run, { url, token: tokens[index] ?? "" }),
      hung,
    ]).then(
      () => undefined,
      (error) => String(error.stack ?? error),
    );
    process.stdout.write(`${JSON.stringify({ name, faults })}\n`);
  }),
);
process.exit(0);
