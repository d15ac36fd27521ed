/**
 * What the Hono and the Elysia server share: plants and tokens on bun:sqlite, with prepared
 * statements, a cache of tokens and one durable commit per write.
 */
import { Database } from "bun:sqlite";
import { createHash } from "node:crypto";

const tokenCacheMs = 5_000;

export interface PlantRow {
  readonly name: string;
  readonly tag: string;
}

export function openPlants(path: string) {
  const database = new Database(path);
  database.run("PRAGMA journal_mode = WAL");
  database.run("PRAGMA synchronous = FULL");
  database.run(`
    CREATE TABLE IF NOT EXISTS plants (
      garden TEXT NOT NULL,
      id INTEGER NOT NULL,
      name TEXT NOT NULL,
      tag TEXT NOT NULL,
      PRIMARY KEY (garden, id)
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS tokens (
      hash TEXT NOT NULL PRIMARY KEY,
      garden TEXT NOT NULL
    ) WITHOUT ROWID;
  `);

  const findToken = database.query<{ garden: string }, [string]>(
    "SELECT garden FROM tokens WHERE hash = ?",
  );
  const list = database.query<PlantRow, [string, number, number]>(
    "SELECT name, tag FROM plants WHERE garden = ? AND id > ? ORDER BY id LIMIT ?",
  );
  const add = database.query<{ id: number }, [string, string, string]>(
    `INSERT INTO plants (garden, id, name, tag)
     SELECT ?1, coalesce(max(id), 0) + 1, ?2, ?3 FROM plants WHERE garden = ?1
     RETURNING id`,
  );
  const remove = database.query<unknown, [string, number]>(
    "DELETE FROM plants WHERE garden = ? AND id = ?",
  );

  const gardens = new Map<string, string>();
  // A revoked token is refused within seconds.
  setInterval(() => gardens.clear(), tokenCacheMs).unref();

  return {
    /** The garden that a token opens. */
    findGarden(token: string): string | undefined {
      const cached = gardens.get(token);
      if (cached !== undefined) return cached;
      const hash = createHash("sha256").update(token).digest("hex");
      const garden = findToken.get(hash)?.garden;
      if (garden !== undefined) gardens.set(token, garden);
      return garden;
    },
    /** All plants if there is no limit. */
    list: (garden: string, limit = -1, after = 0): PlantRow[] => list.all(garden, after, limit),
    add: (garden: string, name: string, tag: string) => add.get(garden, name, tag)?.id,
    remove: (garden: string, id: number): boolean => remove.run(garden, id).changes > 0,
    close: () => database.close(),
  };
}
