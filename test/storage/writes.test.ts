/**
 * Writes come to what the model of a garden says on both engines, too: PostgreSQL's statement for
 * plain creates states the rules a second time.
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
    "random groups come to what the model says, and leave its plants and events, %s",
    async (_, plantsMax) => {
      using folder = makeTemporaryFolder(fastestParent());
      await using database = engine === "SQLite" ? undefined : await makeDatabase();
      const address = database?.url ?? join(folder.path, "plants.db");
      const storage = await openStorage(address, { isServing: false, plantsMax });
      let run = 0;
      const property = fc.asyncProperty(groups, async (sentGroups) => {
        const models = new ModelGardens(plantsMax);
        run++;
        const nameOf = (garden: string) => `${garden} ${run}`;
        for (const sent of sentGroups) {
          const writes = sent.map((each) => toWrite(each, nameOf(each.garden)));
          const outcomes = await storage.apply(writes);
          const responses = outcomes.map((outcome, at) => toResponse(outcome, sent[at]));
          expect(responses.join("\n")).toBe(models.take(sent).join("\n"));
        }
        for (const [garden, model] of models.describe()) {
          const plants = await storage.list(nameOf(garden), undefined, 1_000);
          const { events, lastEvent } = await storage.readEvents(nameOf(garden), 0, 1_000, 1e6);
          expect(describeGarden(plants, events, lastEvent)).toBe(model);
        }
      });
      // Each takes ten times as long on PostgreSQL.
      await alwaysAsync(property, engine === "SQLite" ? 125 : 12);
      await storage.close();
      expect(await auditStore(address)).toEqual([]);
    },
    120_000,
  );
});
