/** Backups that are taken under load are restored on either engine. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { type Case, drill } from "./drill.ts";

setDefaultTimeout(120_000);

test.each<[Case["from"], Case["to"], Case["loss"]]>([
  ["sqlite", "sqlite", "all but the WAL"],
  ["sqlite", "postgres", "all files"],
  ["postgres", "sqlite", "all files"],
])("a backup of %s under load is restored to %s after the loss of %s", async (from, to, loss) => {
  const { faults, figures } = await drill(1, { from, to, loss });
  expect(faults).toEqual([]);
  expect(figures.restored).toBeGreaterThan(0);
});
