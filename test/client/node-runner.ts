/**
 * Runs the client's cases under Node: world on standard input, one result a line on the output.
 */
import { readFileSync } from "node:fs";
import type { ClientWorld } from "./client-case.ts";
import { nodeCases } from "./client-cases.ts";

const { url, tokens } = JSON.parse(readFileSync(0, "utf8")) as { url: string; tokens: string[] };

/** Below the time of the test that runs all of them, so that it says which one hangs. */
const caseMs = 100_000;

/** At the same time: with all of them, those that measure time measure the others. */
const runners = 8;

const results: { readonly name: string; readonly fault: string | undefined }[] = [];
const waiting = [...nodeCases.entries()];

async function runNext(): Promise<void> {
  const next = waiting.shift();
  if (next === undefined) return;
  const [index, { name, run }] = next;
  const world: ClientWorld = { url, token: tokens[index] ?? "" };
  const hung = new Promise<string>((resolve) => {
    setTimeout(() => resolve(`It took more than ${caseMs} ms.`), caseMs).unref();
  });
  const ended = run(world).then(
    () => undefined,
    (error: unknown) => (error instanceof Error ? error.stack : String(error)),
  );
  results[index] = { name, fault: await Promise.race([ended, hung]) };
  return runNext();
}

await Promise.all(Array.from({ length: runners }, runNext));
for (const result of results) process.stdout.write(`${JSON.stringify(result)}\n`);
process.exit(0);
