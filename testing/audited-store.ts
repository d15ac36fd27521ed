/** A new store of either engine, and whether one is whole and its gardens are counted exactly. */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { assignedIdMax } from "../src/domain/plant.ts";
import { skippedEvents } from "../src/storage/event-cleanup.ts";
import { makeDatabase, runStatement } from "./postgres-server.ts";
import { makeTemporaryFolder } from "./temporary-folder.ts";

export type Engine = "sqlite" | "postgres";

export type Place = Awaited<ReturnType<typeof makePlace>>;

/** `database` is what the program takes. */
export async function makePlace(engine: Engine) {
  const folder = makeTemporaryFolder();
  const server = engine === "postgres" ? await makeDatabase() : undefined;
  return {
    database: server?.url ?? join(folder.path, "plants.db"),
    folder: folder.path,
    async [Symbol.asyncDispose]() {
      await server?.drop();
      folder[Symbol.dispose]();
    },
  };
}

/**
 * Gardens whose row is wrong or missing, whose events have gaps, or whose plants are not what their
 * last events say. Events begin with 1 or, after the garden was deleted, beyond a million. All are
 * of one moment, so it may run under load.
 */
const findWrong = `
  SELECT concat('miscounted: ', plants, ' plants of ', held, ', ', keys, ' keys of ', known,
      ', last id ', last_id, ' of ', highest, ', in ', garden) AS wrong
    FROM gardens
      FULL JOIN (
        SELECT garden, count(*) AS held,
            max(id) FILTER (WHERE id BETWEEN 1 AND ${assignedIdMax}) AS highest
          FROM plants GROUP BY garden
      ) AS counted USING (garden)
      FULL JOIN (SELECT garden, count(*) AS known FROM idempotency_keys GROUP BY garden) AS keyed
        USING (garden)
    WHERE coalesce(plants, 0) <> coalesce(held, 0) OR coalesce(keys, 0) <> coalesce(known, 0)
      OR coalesce(last_id, 0) < coalesce(highest, 0)
  UNION ALL
  SELECT concat('events up to ', last_event, ' with gaps, in ', garden)
    FROM gardens LEFT JOIN
      (SELECT garden, count(*) AS events, min(seq) AS lowest, max(seq) AS highest
        FROM events GROUP BY garden) AS log
      USING (garden)
    WHERE last_event <> coalesce(highest, last_event) OR events <> highest - lowest + 1
      OR coalesce(lowest, last_event + 1) BETWEEN 2 AND ${skippedEvents}
  UNION ALL
  SELECT concat('event ', seq, ': the plant is otherwise, in ', garden)
    FROM (
      SELECT *, row_number() OVER (PARTITION BY garden, id ORDER BY seq DESC) AS age FROM events
    ) AS event
    FULL JOIN plants USING (garden, id)
    WHERE coalesce(age, 1) = 1
      AND (plants.name IS DISTINCT FROM CASE type WHEN 'deleted' THEN NULL ELSE event.name END
        OR plants.tag IS DISTINCT FROM CASE type WHEN 'deleted' THEN NULL ELSE event.tag END)`;

/** Empty if all is well. The address is a file, or a URL with one host. */
export async function auditStore(address: string): Promise<string[]> {
  if (address.startsWith("postgres")) {
    return (await runStatement(address, findWrong)).map(({ wrong }) => `${wrong}`);
  }
  using file = new Database(address, { readonly: true, safeIntegers: true });
  const damages = file.query("PRAGMA integrity_check").values().flat();
  const found = file.query<[string], []>(findWrong).values().flat() as string[];
  return damages.join() === "ok" ? found : [`damaged: ${damages}`, ...found];
}
