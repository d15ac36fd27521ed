/** Builds that are broken in ways that no single client notices fail the suite. */
import { expect, test } from "bun:test";
import { changeProgram, type Edit } from "../../changed-program.ts";
import { Deployment, type Layout } from "./deployment.ts";
import { tryHistory } from "./trial.ts";

/** Each flaw shows in one history of a few. */
const historiesMax = 200;

const flaws: Readonly<Record<string, Layout & { readonly edits: readonly Edit[] }>> = {
  "a cached list that outlives a commit that other lists show": {
    engine: "sqlite",
    threads: [1],
    edits: [
      {
        file: "storage/sqlite/versions.ts",
        text: "count % 2 === 0 ? count : undefined",
        by: "count >> 1",
      },
      { file: "storage/sqlite/worker.ts", text: "    end();", by: "Bun.sleepSync(5); end();" },
    ],
  },
  "a create on PostgreSQL that is confirmed before its commit": {
    engine: "postgres",
    threads: [1, 1],
    edits: [
      {
        file: "storage/postgres/batch.ts",
        text: "await store(client, decision, known);",
        by: "store(client, decision, known).catch(() => {});",
      },
    ],
  },
};

test.each(Object.entries(flaws))("%s is found", async (_, { edits, ...layout }) => {
  using broken = changeProgram(edits);
  const deployment = await Deployment.start(layout, broken.program);
  const found: string[] = [];
  for (let seed = 1; seed <= historiesMax && found.length === 0; seed++) {
    found.push(...(await tryHistory(deployment, seed, "none")).faults);
  }
  await deployment.stop();
  expect(found).not.toEqual([]);
});
