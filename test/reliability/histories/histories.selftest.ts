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
        text: "await store(client, changes);",
        by: "store(client, changes).catch(() => {});",
      },
    ],
  },
  ...Object.fromEntries(
    (["sqlite", "postgres"] as const).map((engine) => [
      `a precondition on ${engine} that is compared before the write, not in it`,
      {
        engine,
        threads: [2],
        edits: [
          {
            file: "domain/plants.ts",
            text: 'const put = { kind: "put", garden, id, name, tag, preconditions } as const;',
            by: `const [found] = await reader.list(garden, id - 1n, 1);
              const ifMatch = preconditions?.ifMatch;
              if (ifMatch && (found?.id !== id || !ifMatch.includes(contentHash(found)))) throw preconditionFailed();
              if (preconditions?.ifNoneMatch && found?.id === id) throw preconditionFailed();
              const put = { kind: "put", garden, id, name, tag } as const;`,
          },
          {
            file: "domain/plants.ts",
            text: "nameCodePointsMax,\n",
            by: "nameCodePointsMax, contentHash,\n",
          },
        ],
      },
    ]),
  ),
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
