/** A new store of either engine, and whether one is whole and its gardens are counted exactly. */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { assignedIdMax } from "../src/domain/plant.ts";
import { makeDatabase, runStatement } from "../test/postgres-server.ts";
import { makeTemporaryFolder } from "../test/temporary-folder.ts";

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
const miscounted = `
  SELECT garden, concat('miscounted: ', plants, ' plants of ', held, ', ', keys, ' keys of ', known,
      ', last id ', last_id, ' of ', highest) AS wrong
    FROM gardens
      FULL JOIN (
        SELECT garden, count(*) AS held,
            max(id) FILTER (WHERE id BETWEEN 1 AND ${assignedIdMax}) AS highest
          FROM plants GROUP BY garden
      ) AS counted USING (garden)
      FULL JOIN (SELECT garden, count(*) AS known FROM idempotency_keys GROUP BY garden) AS keyed
        USING (garden)
    WHERE coalesce(plants, 0) <> coalesce(held, 0) OR coalesce(keys, 0) <> coalesce(known, 0)
      OR coalesce(last_id, 0) < coalesce(highest, 0)`;

/**
 * Events that contradict the events or plants of their garden. Together they leave no room for an
 * event without its write, nor for a write without its event: the numbers have no gaps up to the
 * garden's last one, each event fits the one before it of the same plant, and the last event of
 * each plant says whether it's there, and with what.
 */
const eventStatements = [
  `SELECT garden, concat('events up to ', last_event, ' with gaps') AS wrong
    FROM gardens LEFT JOIN
      (SELECT garden, count(*) AS events, max(seq) AS highest FROM events GROUP BY garden) AS log
      USING (garden)
    WHERE last_event <> coalesce(events, 0) OR last_event <> coalesce(highest, 0)`,
  `SELECT garden, concat('event ', seq, ': ', type, ' after ', before) AS wrong
    FROM (
      SELECT *, lag(type) OVER plant AS before, lag(name) OVER plant AS old_name,
          lag(tag) OVER plant AS old_tag
        FROM events WINDOW plant AS (PARTITION BY garden, id ORDER BY seq)
    ) AS event
    WHERE (type = 'created') <> (coalesce(before, 'deleted') = 'deleted')
      OR (type = 'deleted') <> (name = old_name AND tag = old_tag)
        AND type <> 'created'`,
  `SELECT garden, concat('event ', seq, ': the plant is otherwise') AS wrong
    FROM (
      SELECT *, row_number() OVER (PARTITION BY garden, id ORDER BY seq DESC) AS age FROM events
    ) AS event
    FULL JOIN plants USING (garden, id)
    WHERE coalesce(age, 1) = 1
      AND (plants.name IS DISTINCT FROM CASE type WHEN 'deleted' THEN NULL ELSE event.name END
        OR plants.tag IS DISTINCT FROM CASE type WHEN 'deleted' THEN NULL ELSE event.tag END)`,
];

/**
 * Empty if all is well. The address is a file, or a URL with one host. Checking a hundred thousand
 * events takes a second, in which nothing else runs.
 */
export async function auditStore(address: string, { skipsEvents = false } = {}): Promise<string[]> {
  const statements = [miscounted, ...(skipsEvents ? [] : eventStatements)];
  if (address.startsWith("postgres")) {
    const rows: Row[] = [];
    for (const each of statements) rows.push(...((await runStatement(address, each)) as Row[]));
    return rows.map(render);
  }
  using file = new Database(address, { readonly: true, safeIntegers: true });
  const damages = file.query("PRAGMA integrity_check").values().flat();
  const found = statements.flatMap((each) => file.query<Row, []>(each).all()).map(render);
  return damages.join() === "ok" ? found : [`damaged: ${damages}`, ...found];
}

type Row = { garden: string; wrong: string };

function render({ garden, wrong }: Row): string {
  return `${wrong}, in ${garden}`;
}
