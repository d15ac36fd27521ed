/** A build whose instances migrate without a lock fails the suite. */
import { expect, test } from "bun:test";
import { changeProgram } from "../../changed-program.ts";
import { startAtOnce } from "./simultaneous-start.ts";

test("instances that migrate without waiting for each other are found", async () => {
  const file = "storage/postgres/migrate.ts";
  const read = "const from = await readSchema(client, steps.length);";
  using broken = changeProgram([
    { file, text: "pg_advisory_xact_lock", by: "abs" },
    // So that others migrate between its reading and its writing.
    { file, text: read, by: `${read} await client.query("SELECT pg_sleep(3)");` },
  ]);
  const faults = await startAtOnce(broken.program);
  expect(faults).toContainEqual(expect.stringMatching(/^did not start: /));
});
