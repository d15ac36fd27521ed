/** A new store of either engine, and whether one is whole and its gardens are counted exactly. */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { assignedIdMax } from "../../src/domain/plant.ts";
import { makeDatabase, runStatement } from "../postgres-server.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";

export type Engine = "sqlite" | "postgres";

/** `database` is what the program takes. The folder is for anything. */
export interface Place {
  readonly database: string;
  readonly folder: string;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function makePlace(engine: Engine): Promise<Place> {
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

/** Gardens whose row is wrong, or missing. All are of one moment, so it may run under load. */
const statement = `
  SELECT garden, sum(plants) AS plants, sum(held) AS held, sum(keys) AS keys, sum(known) AS known,
      max(last_id) AS last_id, max(highest) AS highest, sum(last_event) AS last_event,
      sum(events) AS events
    FROM (
      SELECT garden, plants, 0 AS held, keys, 0 AS known, last_id, 0 AS highest, last_event,
          0 AS events
        FROM gardens
      UNION ALL
      SELECT garden, 0, count(*), 0, 0, 0,
          coalesce(max(id) FILTER (WHERE id BETWEEN 1 AND ${assignedIdMax}), 0), 0, 0
        FROM plants GROUP BY garden
      UNION ALL
      SELECT garden, 0, 0, 0, count(*), 0, 0, 0, 0 FROM idempotency_keys GROUP BY garden
      UNION ALL
      SELECT garden, 0, 0, 0, 0, 0, 0, 0, count(*) FROM events GROUP BY garden
    ) AS counted
    GROUP BY garden
    HAVING sum(plants) <> sum(held) OR sum(keys) <> sum(known) OR max(last_id) < max(highest)
      OR sum(last_event) <> sum(events)`;

/** Empty if all is well. The address is a file, or a URL with one host. */
export async function auditStore(address: string): Promise<string[]> {
  if (address.startsWith("postgres")) return render(await runStatement(address, statement));
  using file = new Database(address, { readonly: true, safeIntegers: true });
  const damages = file.query("PRAGMA integrity_check").values().flat();
  const miscounted = file.query<Record<string, unknown>, []>(statement).all();
  const isWhole = damages.join() === "ok";
  return [...(isWhole ? [] : damages.map((damage) => `damaged: ${damage}`)), ...render(miscounted)];
}

function render(miscounted: readonly Record<string, unknown>[]): string[] {
  return miscounted.map(
    ({ garden, plants, held, keys, known, last_id, highest, last_event, events }) =>
      `miscounted: ${garden} counts ${plants} plants of ${held}, ${keys} keys of ${known}, ` +
      `${last_event} events of ${events}, and the last id ${last_id} of ${highest}`,
  );
}
