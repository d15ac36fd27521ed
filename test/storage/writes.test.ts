/**
 * Random writes on both engines have the outcomes that the model of a garden predicts. The rules
 * themselves are tested in rules.test.ts, but PostgreSQL's statement for plain creates states them a
 * second time.
 */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import fc from "fast-check";
import { openStorage } from "../../src/storage/open.ts";
import { auditStore } from "../../testing/audited-store.ts";
import { makeDatabase } from "../../testing/postgres-server.ts";
import { alwaysAsync } from "../../testing/property.ts";
import {
  describeGarden,
  groups,
  ModelGardens,
  quotas,
  toResponse,
  toWrite,
} from "../../testing/random-writes.ts";
import { fastestParent, makeTemporaryFolder } from "../../testing/temporary-folder.ts";

describe.each(["SQLite", "PostgreSQL"] as const)("on %s,", (engine) => {
  test.each(quotas)(
    "random groups have the outcomes, plants and events that the model predicts, %s",
    async (_quota, plantsMax) => {
      using folder = makeTemporaryFolder(fastestParent());
      await using database = engine === "SQLite" ? undefined : await makeDatabase();
      const address = database?.url ?? join(folder.path, "plants.db");
      const storage = await openStorage(address, { isServing: false, plantsMax });

      let runs = 0;
      const property = fc.asyncProperty(groups, async (sentGroups) => {
        runs++;
        // Each run has new gardens in the same storage.
        const run = runs;
        const storedName = (garden: string) => `${garden} ${run}`;
        const models = new ModelGardens(plantsMax);

        for (const sent of sentGroups) {
          const writes = sent.map((each) => toWrite(each, storedName(each.garden)));
          const outcomes = await storage.apply(writes);
          const responses = outcomes.map((outcome, index) => toResponse(outcome, sent[index]));
          expect(responses.join("\n")).toBe(models.take(sent).join("\n"));
        }

        for (const [garden, expected] of models.describe()) {
          const plants = await storage.list(storedName(garden), undefined, 1_000);
          const page = await storage.readEvents(storedName(garden), 0, 1_000, 1e6);
          expect(describeGarden(plants, page.events, page.lastEvent)).toBe(expected);
        }
      });
      // Each run takes ten times as long on PostgreSQL.
      await alwaysAsync(property, engine === "SQLite" ? 125 : 12);

      await storage.close();
      expect(await auditStore(address)).toEqual([]);
    },
    120_000,
  );
});
