/** Ten instances on an empty database, as when they are all deployed at once. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { changeProgram } from "../../changed-program.ts";
import { startAtOnce } from "./simultaneous-start.ts";

setDefaultTimeout(60_000);

test("ten instances that start at once migrate an empty database once, and all serve it", async () => {
  expect(await startAtOnce()).toEqual([]);
});

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
