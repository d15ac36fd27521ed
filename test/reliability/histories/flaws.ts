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
const sqliteEngine = "storage/sqlite/engine.ts";
const postgresBatch = "storage/postgres/batch.ts";
const postgresStatements = "storage/postgres/statements.ts";

export const flaws: Readonly<Record<string, Flaw>> = {
  "a list that was kept outlives the commit of another thread": {
    engine: "sqlite",
    threads: [4],
    trouble: "none",
    faults: [
      { file: sqliteEngine, text: "known.commits === commits", by: "true" },
      { file: sqliteEngine, text: "setImmediate(() => {", by: "Bun.sleep(100).then(() => {" },
    ],
  },
  "a list shows two moments": {
    engine: "sqlite",
    threads: [1],
    trouble: "none",
    faults: [
      {
        file: sqliteEngine,
        text: "async list(garden, after, count) {",
        by: `async list(garden, after, count) {
          const start = after === undefined ? fromStart.all(garden, Math.min(count, 2)) : [];
          const from = start.at(-1)?.id;
          if (from !== undefined) {
            await Bun.sleep(20);
            return [...start, ...fromAfter.all(garden, from, count - start.length)];
          }`,
      },
    ],
  },
  "keys are kept in memory, and lost with the process": {
    engine: "sqlite",
    threads: [1],
    trouble: "killed",
    faults: [
      {
        file: sqliteWriter,
        text: 'const begin = database.query("BEGIN IMMEDIATE");',
        by: 'const begin = database.query("BEGIN IMMEDIATE"); const keys = new Map();',
      },
      {
        file: sqliteWriter,
        text: "findKey.get(garden, key.hash)",
        by: "keys.get(garden + key.key)",
      },
      {
        file: sqliteWriter,
        text: "keepKey.run(garden, key.hash, key.requestHash, outcome.id, key.expiresAtMs)",
        by: `keys.set(garden + key.key, { request_hash: key.requestHash, plant_id: outcome.id,
          expires_at_ms: key.expiresAtMs })`,
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
  "instances do not take turns in a garden": {
    engine: "postgres",
    threads: [1, 1],
    trouble: "none",
    faults: [
      {
        file: postgresStatements,
        text: "INSERT INTO gardens (garden, last_id) SELECT",
        by: "WITH made AS (INSERT INTO gardens (garden, last_id) SELECT",
      },
      {
        file: postgresStatements,
        text: "DO UPDATE SET last_id = gardens.last_id\n",
        by: "DO NOTHING\n",
      },
      {
        file: postgresStatements,
        text: "RETURNING garden, last_id, plants_bound, keys_bound`",
        by: `RETURNING garden, last_id, plants_bound, keys_bound)
          SELECT garden, last_id, plants_bound, keys_bound FROM made UNION ALL
          SELECT garden, last_id, plants_bound, keys_bound FROM gardens WHERE garden = ANY ($1)\``,
      },
    ],
  },
  "keys are kept after the commit, in a transaction of their own": {
    engine: "postgres",
    threads: [1, 1],
    trouble: "killed",
    faults: [
      {
        file: postgresBatch,
        text: "await store(client, decision, known);",
        by: `await store(client, { ...decision, keys: [] }, known);
          await Bun.sleep(50);
          await client.query("BEGIN");
          await store(client, { ...decision, plants: [], gardens: new Map() }, known);`,
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
