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
const statement = `
  SELECT garden, sum(plants) AS plants, sum(held) AS held, sum(keys) AS keys, sum(known) AS known,
      max(last_id) AS last_id, max(highest) AS highest
    FROM (
      SELECT garden, plants, 0 AS held, keys, 0 AS known, last_id, 0 AS highest FROM gardens
      UNION ALL
      SELECT garden, 0, count(*), 0, 0, 0,
          coalesce(max(id) FILTER (WHERE id BETWEEN 1 AND ${assignedIdMax}), 0)
        FROM plants GROUP BY garden
      UNION ALL
      SELECT garden, 0, 0, 0, count(*), 0, 0 FROM idempotency_keys GROUP BY garden
    ) AS counted
    GROUP BY garden
    HAVING sum(plants) <> sum(held) OR sum(keys) <> sum(known) OR max(last_id) < max(highest)`;

/**
 * Events that contradict the events or plants of their garden. Together they leave no room for an
 * event without its write, nor for a write without its event: the numbers have no gaps up to the
 * garden's last one, each event fits the one before it of the same plant, and the last event of
 * each plant says whether it's there, and with what.
 */
const eventStatements = [
  `SELECT garden, last_event AS seq, 'numbered with gaps' AS wrong
    FROM gardens LEFT JOIN
      (SELECT garden, count(*) AS events, max(seq) AS highest FROM events GROUP BY garden) AS log
      USING (garden)
    WHERE last_event <> coalesce(events, 0) OR last_event <> coalesce(highest, 0)`,
  `SELECT garden, seq, type || ' after ' || coalesce(before, 'nothing') AS wrong
    FROM (
      SELECT *, lag(type) OVER plant AS before, lag(name) OVER plant AS old_name,
          lag(tag) OVER plant AS old_tag
        FROM events WINDOW plant AS (PARTITION BY garden, id ORDER BY seq)
    ) AS event
    WHERE (type = 'created') <> (coalesce(before, 'deleted') = 'deleted')
      OR (type = 'deleted') <> (name = old_name AND tag = old_tag)
        AND type <> 'created'`,
  `SELECT garden, seq, 'the plant is otherwise' AS wrong
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
  const statements = [statement, ...(skipsEvents ? [] : eventStatements)];
  if (address.startsWith("postgres")) {
    const rows: Row[] = [];
    for (const each of statements) rows.push(...(await runStatement(address, each)));
    return rows.map(render);
  }
  using file = new Database(address, { readonly: true, safeIntegers: true });
  const damages = file.query("PRAGMA integrity_check").values().flat();
  const rows = statements.flatMap((each) => file.query<Row, []>(each).all());
  const isWhole = damages.join() === "ok";
  return [...(isWhole ? [] : damages.map((damage) => `damaged: ${damage}`)), ...rows.map(render)];
}

type Row = Record<string, unknown>;

function render({ garden, seq, wrong, ...row }: Row): string {
  if (wrong !== undefined) return `wrong event: ${garden} has ${seq}: ${wrong}`;
  const { plants, held, keys, known, last_id, highest } = row;
  const counts = `${plants} plants of ${held}, ${keys} keys of ${known}`;
  return `miscounted: ${garden} counts ${counts}, and the last id ${last_id} of ${highest}`;
}
