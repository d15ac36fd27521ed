/** Builds that are broken in ways that no single client notices fail the suite. */
import { expect, test } from "bun:test";
import { changeProgram, type Edit } from "../../changed-program.ts";
import { Deployment, type Layout } from "./deployment.ts";
import { tryHistory } from "./trial.ts";

/** Each flaw shows in one history of a few. */
const historiesMax = 200;

const flaws: Readonly<Record<string, Layout & { readonly edit: Edit }>> = {
  "a cached list that outlives the commit of another thread": {
    engine: "sqlite",
    threads: [4],
    edit: {
      file: "storage/sqlite/worker.ts",
      text: "versions.change(write.garden, isAppend);",
      by: "setTimeout(() => versions.change(write.garden, isAppend), 100);",
    },
  },
  "a create on PostgreSQL that is confirmed before its commit": {
    engine: "postgres",
    threads: [1, 1],
    edit: {
      file: "storage/postgres/batch.ts",
      text: "await store(client, decision, known);",
      by: "store(client, decision, known).catch(() => {});",
    },
  },
};

test.each(Object.entries(flaws))("%s is found", async (_, { edit, ...layout }) => {
  using broken = changeProgram([edit]);
  const deployment = await Deployment.start(layout, broken.program);
  const found: string[] = [];
  for (let seed = 1; seed <= historiesMax && found.length === 0; seed++) {
    found.push(...(await tryHistory(deployment, seed, "none")).faults);
  }
  await deployment.stop();
  expect(found).not.toEqual([]);
});
