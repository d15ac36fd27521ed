/**
 * Builds of the service that are broken in ways that no single client notices, for the suite to
 * find.
 */
import { changeProgram, type Edit } from "../../changed-program.ts";
import { Deployment, type Layout } from "./deployment.ts";
import { type Trouble, tryHistory } from "./trial.ts";

/** Each flaw shows in one history of a few. */
const historiesMax = 200;

export interface Flaw extends Layout {
  readonly trouble: Trouble;
  readonly faults: readonly Edit[];
}

const sqliteWriter = "storage/sqlite/writer.ts";
const postgresBatch = "storage/postgres/batch.ts";

export const flaws: Readonly<Record<string, Flaw>> = {
  "a list that was kept outlives the commit of another thread": {
    engine: "sqlite",
    threads: [4],
    trouble: "none",
    faults: [
      {
        file: "storage/sqlite/worker.ts",
        text: "if (isChange(outcomes[from++])) versions.change(garden);",
        by: "if (isChange(outcomes[from++])) setTimeout(() => versions.change(garden), 100);",
      },
    ],
  },
  "writes are answered before they are committed": {
    engine: "sqlite",
    threads: [1],
    trouble: "killed",
    faults: [
      {
        file: sqliteWriter,
        text: "    begin.run();",
        by: "if (!database.inTransaction) { begin.run(); setTimeout(() => commit.run(), 5); }",
      },
      { file: sqliteWriter, text: "      commit.run();", by: "" },
    ],
  },
  "a create is answered before its commit": {
    engine: "postgres",
    threads: [1, 1],
    trouble: "none",
    faults: [
      {
        file: postgresBatch,
        text: "await store(client, decision, known);",
        by: "store(client, decision, known).catch(() => {});",
      },
    ],
  },
};

/** What the first history that shows the flaw has wrong; nothing if none does. */
export async function findFlaw(flaw: Flaw): Promise<readonly string[]> {
  using broken = changeProgram(flaw.faults);
  const deployment = await Deployment.start(flaw, broken.program);
  try {
    for (let seed = 1; seed <= historiesMax; seed++) {
      const { faults } = await tryHistory(deployment, { seed, trouble: flaw.trouble });
      if (faults.length > 0) return faults;
    }
    return [];
  } finally {
    await deployment.stop();
  }
}
