/**
 * Runs the client's battery under Node: world on standard input, one result a line on the output.
 */
import { readFileSync } from "node:fs";
import type { ClientWorld } from "./client-case.ts";
import { clientCases } from "./client-cases.ts";

const { url, tokens } = JSON.parse(readFileSync(0, "utf8")) as { url: string; tokens: string[] };

const results = clientCases.map(async ({ name, run }, index) => {
  const world: ClientWorld = { url, token: tokens[index] ?? "" };
  const fault = await run(world).then(
    () => undefined,
    (error: unknown) => (error instanceof Error ? error.stack : String(error)),
  );
  return { name, fault };
});
for (const result of await Promise.all(results)) {
  process.stdout.write(`${JSON.stringify(result)}\n`);
}
