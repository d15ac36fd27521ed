/** Instances that migrate without waiting for each other are found out. */
import { expect, test } from "bun:test";
import { changeProgram } from "../../changed-program.ts";
import { startAtOnce } from "./simultaneous-start.ts";

test("instances that do not wait for each other to migrate it are found out", async () => {
  const file = "storage/postgres/migrate.ts";
  const look = "const from = await readSchema(client, steps.length);";
  using broken = changeProgram([
    { file, text: "pg_advisory_xact_lock", by: "abs" },
    // So that others come between its look and what it does about it.
    { file, text: look, by: `${look} await client.query("SELECT pg_sleep(3)");` },
  ]);
  const faults = await startAtOnce(broken.program);
  expect(faults).toContainEqual(expect.stringMatching(/^did not start: /));
});
