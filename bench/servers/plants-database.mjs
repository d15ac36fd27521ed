/**
 * What the hand-written servers share, for bun:sqlite and better-sqlite3: prepared statements, a
 * cache of tokens, and one durable commit per write.
 */
import { createHash } from "node:crypto";

const tokenCacheMs = 5_000;

/** The token of an Authorization header, for frameworks that don't read it themselves. */
export function readBearer(authorization = "") {
  return /^Bearer (\S+)$/i.exec(authorization)?.[1] ?? "";
}

export function openPlants(database) {
  database.exec("PRAGMA journal_mode = WAL");
  database.exec("PRAGMA synchronous = FULL");
  const findToken = database.prepare("SELECT garden FROM tokens WHERE hash = ?");
  const list = database.prepare(
    "SELECT name, tag FROM plants WHERE garden = ? AND id > ? ORDER BY id LIMIT ?",
  );
  const add = database.prepare(
    `INSERT INTO plants (garden, id, name, tag)
     SELECT ?, coalesce(max(id), 0) + 1, ?, ? FROM plants WHERE garden = ?
     RETURNING id`,
  );
  const remove = database.prepare("DELETE FROM plants WHERE garden = ? AND id = ?");

  const gardens = new Map();
  // A revoked token is refused within seconds.
  setInterval(() => gardens.clear(), tokenCacheMs).unref();

  return {
    findGarden(token) {
      const cached = gardens.get(token);
      if (cached !== undefined) return cached;
      const hash = createHash("sha256").update(token).digest("hex");
      const garden = findToken.get(hash)?.garden;
      if (garden !== undefined) gardens.set(token, garden);
      return garden;
    },
    /** All plants if there is no limit. */
    list: (garden, limit = -1, after = 0) => list.all(garden, after, limit),
    add: (garden, name, tag) => add.get(garden, name, tag, garden).id,
    remove: (garden, id) => remove.run(garden, id).changes > 0,
  };
}
